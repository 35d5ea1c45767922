//! Every setting, in one table, and the folders that follow from them (DESIGN 3.6).

use std::ffi::OsString;
use std::path::PathBuf;

use etcetera::BaseStrategy as _;
use toolshelf_core::redact;

/// A setting that an environment variable carries.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The variable.
    pub(crate) name: &'static str,
    /// Names that other systems use for the same.
    pub(crate) aliases: &'static [&'static str],
    /// What it does.
    pub(crate) about: &'static str,
}

/// The folder of the shelf.
pub(crate) const SHELF_DIR: Setting = Setting {
    name: "TOOLSHELF_SHELF_DIR",
    aliases: &["VOICEBOX_WASM_SHELF_DIR"],
    about: "the folder of the shelf",
};
/// The folder of what can be made again.
pub(crate) const CACHE_DIR: Setting = Setting {
    name: "TOOLSHELF_CACHE_DIR",
    aliases: &[],
    about: "the folder of compiled code; it may be deleted at any time",
};
/// The folder of what must be kept.
pub(crate) const DATA_DIR: Setting = Setting {
    name: "TOOLSHELF_DATA_DIR",
    aliases: &[],
    about: "the folder of this host's keys, and of the shelf where no other is set",
};
/// Where the companion is served.
pub(crate) const LISTEN: Setting =
    Setting { name: "TOOLSHELF_LISTEN", aliases: &[], about: "the address of `toolshelf serve`" };
/// What lets clients in.
pub(crate) const TOKEN: Setting = Setting {
    name: "TOOLSHELF_TOKEN",
    aliases: &[],
    about: "the token of `toolshelf serve`, instead of the one in the data folder",
};
/// What is logged.
pub(crate) const LOG: Setting = Setting {
    name: "TOOLSHELF_LOG",
    aliases: &[],
    about: "what `toolshelf serve` logs: error, warn, info, debug, or a filter such as toolshelf=debug",
};

/// The file of settings that are too long for a variable.
pub(crate) const CONFIG: Setting = Setting {
    name: "TOOLSHELF_CONFIG",
    aliases: &[],
    about: "the file toolshelf.toml: folders and agents of tasks, and the live model",
};

macro_rules! extension_settings {
    ($($setting:ident = $name:literal, $about:literal;)*) => {
        $(
            #[doc = concat!("Of extensions: ", $about, ".")]
            pub(crate) const $setting: Setting = Setting {
                name: concat!("TOOLSHELF_", $name),
                aliases: &[concat!("CORECRUXD_", $name)],
                about: $about,
            };
        )*
    };
}

extension_settings! {
    WASM_FUEL = "WASM_FUEL_DEFAULT", "fuel of one call of an extension";
    WASM_MEMORY_BYTES = "WASM_MEMORY_BYTES_DEFAULT", "memory of one call of an extension, in bytes";
    WASM_WALL_MS = "WASM_WALL_MS_DEFAULT", "time of one call of an extension, in milliseconds";
    WASM_EPOCH_TICK_MS = "WASM_EPOCH_TICK_MS", "how exactly that time is kept, in milliseconds; read at the start";
    ALLOW_UNSIGNED = "EXTENSIONS_ALLOW_UNSIGNED", "true: take extensions without a signature; for development";
    ALLOW_PLAIN_HTTP = "EXTENSIONS_ALLOW_PLAIN_HTTP", "true: call external tools over plain http";
    EXTERNAL_TIMEOUT_SECONDS = "EXTENSIONS_TIMEOUT_SECONDS", "time of one call of an external tool, in seconds";
    EXTERNAL_MAX_REQUEST_BYTES = "EXTENSIONS_MAX_REQUEST_BYTES", "longest request to an external tool";
    EXTERNAL_MAX_RESPONSE_BYTES = "EXTENSIONS_MAX_RESPONSE_BYTES", "longest response of an external tool";
    EXTERNAL_RATE_PER_MIN = "EXTENSIONS_DEFAULT_RATE_PER_MIN", "calls of an external tool in a minute, where no grant says";
    ALWAYS_PRIVATE_PREFIXES = "ALWAYS_PRIVATE_PREFIXES", "beginnings of entities whose facts are private, with commas";
    SHARE_PREFIXES = "SHARE_PREFIXES_OVERRIDE", "beginnings of entities that are not private after all, with commas";
}

/// Whether requests may go to this computer and its networks.
pub(crate) const ALLOW_PRIVATE_ADDRESSES: Setting = Setting {
    name: "TOOLSHELF_EXTENSIONS_ALLOW_PRIVATE_ADDRESSES",
    aliases: &[],
    about: "true: download from and call servers of private networks",
};
/// Who vouches for servers.
pub(crate) const CA_FILE: Setting = Setting {
    name: "TOOLSHELF_EXTENSIONS_CA_FILE",
    aliases: &[],
    about: "a PEM file of the only authorities whose servers are trusted, instead of the public ones",
};
/// Where the key of the secrets lies.
pub(crate) const VAULT_KEY: Setting = Setting {
    name: "TOOLSHELF_VAULT_KEY",
    aliases: &[],
    about: "where the key of the secrets is put: keyring, file, or auto (the system's keyring where one answers)",
};
/// Where extensions are looked up.
pub(crate) const REGISTRY: Setting = Setting {
    name: "TOOLSHELF_EXTENSIONS_REGISTRY",
    aliases: &[],
    about: "the index of `toolshelf ext search`: an https address or a file",
};

/// On whose behalf agents call extensions.
pub(crate) const MCP_PASSPORT: Setting = Setting {
    name: "TOOLSHELF_MCP_PASSPORT",
    aliases: &[],
    about: "the passport that agents call extensions with; `mcp` where it is not set",
};
/// What happens when a tool appears on the shelf.
pub(crate) const MCP_NEW_TOOLS: Setting = Setting {
    name: "TOOLSHELF_MCP_NEW_TOOLS",
    aliases: &[],
    about: "ask: agents are offered a new tool of the shelf only when it is approved",
};

/// The table.
pub(crate) const ALL: &[&Setting] = &[
    &SHELF_DIR,
    &CACHE_DIR,
    &DATA_DIR,
    &CONFIG,
    &LISTEN,
    &TOKEN,
    &LOG,
    &WASM_FUEL,
    &WASM_MEMORY_BYTES,
    &WASM_WALL_MS,
    &WASM_EPOCH_TICK_MS,
    &ALLOW_UNSIGNED,
    &ALLOW_PLAIN_HTTP,
    &EXTERNAL_TIMEOUT_SECONDS,
    &EXTERNAL_MAX_REQUEST_BYTES,
    &EXTERNAL_MAX_RESPONSE_BYTES,
    &EXTERNAL_RATE_PER_MIN,
    &ALWAYS_PRIVATE_PREFIXES,
    &SHARE_PREFIXES,
    &ALLOW_PRIVATE_ADDRESSES,
    &CA_FILE,
    &MCP_PASSPORT,
    &MCP_NEW_TOOLS,
    &VAULT_KEY,
    &REGISTRY,
];

impl Setting {
    /// The value, and the variable that it comes from. An empty variable counts as unset.
    pub(crate) fn value(&self) -> Option<(&'static str, OsString)> {
        self.value_in(|name| std::env::var_os(name))
    }

    /// The variable that it comes from, and the value as it may be shown.
    pub(crate) fn shown(&self) -> Option<(&'static str, String)> {
        let (from, value) = self.value()?;
        let secret = redact::is_secret_name(self.name);
        Some((from, if secret { redact::REDACTED.to_owned() } else { value.to_string_lossy().into_owned() }))
    }

    /// The same, where variables come from somewhere else than the environment.
    pub(crate) fn value_in(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Option<(&'static str, OsString)> {
        let names = std::iter::once(&self.name).chain(self.aliases);
        names.filter_map(|name| Some((*name, variable(name)?))).find(|(_, value)| !value.is_empty())
    }

    fn path(&self) -> Option<PathBuf> {
        self.value().map(|(_, value)| value.into())
    }
}

/// Where the shelf's folder is, and why there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShelfDir {
    /// The folder.
    pub(crate) path: PathBuf,
    /// What chose it.
    pub(crate) from: &'static str,
}

/// The folder of the shelf: what the caller names, else the setting, else the first of the usual places that is there.
pub(crate) fn shelf_dir(named: Option<PathBuf>) -> Option<ShelfDir> {
    if let Some(path) = named {
        return Some(ShelfDir { path, from: "--shelf" });
    }
    if let Some((from, value)) = SHELF_DIR.value() {
        return Some(ShelfDir { path: value.into(), from });
    }
    let usual = data_dir().map(|dir| (dir.join("shelf"), "the usual place"));
    let seed = std::env::home_dir().map(|home| (home.join(".isocan/modules/wasm-tools"), "an older place"));
    let mut places = usual.into_iter().chain(seed);
    places.find(|(path, _)| path.is_dir()).map(|(path, from)| ShelfDir { path, from })
}

/// The folder of keys, by the platform's convention where it is not set.
pub(crate) fn data_dir() -> Option<PathBuf> {
    DATA_DIR.path().or_else(|| Some(strategy()?.data_dir().join("toolshelf")))
}

/// The folder of what can be made again, by the platform's convention where it is not set.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    CACHE_DIR.path().or_else(|| Some(strategy()?.cache_dir().join("toolshelf")))
}

/// The file of settings, by the platform's convention where it is not set.
pub(crate) fn config_file() -> Option<PathBuf> {
    CONFIG.path().or_else(|| Some(strategy()?.config_dir().join("toolshelf/toolshelf.toml")))
}

fn strategy() -> Option<impl etcetera::BaseStrategy> {
    etcetera::base_strategy::choose_native_strategy().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_read_where_the_name_is_unset_or_empty() {
        let of = |variables: &'static [(&str, &str)]| {
            let value = move |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
            };
            SHELF_DIR.value_in(value).map(|(from, value)| (from, value.into_string().unwrap()))
        };
        let (name, alias) = ("TOOLSHELF_SHELF_DIR", "VOICEBOX_WASM_SHELF_DIR");
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("TOOLSHELF_SHELF_DIR", "/a")]), Some((name, "/a".to_owned())));
        let both = of(&[("TOOLSHELF_SHELF_DIR", ""), ("VOICEBOX_WASM_SHELF_DIR", "/b")]);
        assert_eq!(both, Some((alias, "/b".to_owned())));
        assert_eq!(of(&[("TOOLSHELF_SHELF_DIR", ""), ("VOICEBOX_WASM_SHELF_DIR", "")]), None);
    }

    #[test]
    fn no_two_settings_share_a_name() {
        let names: Vec<_> =
            ALL.iter().flat_map(|setting| setting.aliases.iter().chain([&setting.name])).collect();
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
