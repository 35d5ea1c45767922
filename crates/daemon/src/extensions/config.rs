//! The settings of extensions, read anew for each call.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use toolshelf_core::rate::{RATE_LIMIT_DEFAULT_PER_MIN, RATE_LIMIT_MAX_PER_MIN};

use super::vault_key::KeyPlace;
use crate::settings::{self, Setting};

/// Longest request to an external tool where no setting says, in bytes.
pub(crate) const EXTERNAL_REQUEST_MAX_BYTES: u64 = 262_144;
/// Longest response of an external tool where no setting says, in bytes.
pub(crate) const EXTERNAL_RESPONSE_MAX_BYTES: u64 = 262_144;
/// Time of one call of an external tool where no setting says.
pub(crate) const EXTERNAL_TIMEOUT: Duration = Duration::from_secs(5);

/// No setting grants an external tool more than this.
const EXTERNAL_MOST_BYTES: u64 = 64 * 1024 * 1024;
const EXTERNAL_MOST_SECONDS: u64 = 600;

/// Says what a variable is set to.
type LookUp = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// Where variables are looked up.
#[derive(Clone)]
pub(crate) struct Variables(Arc<LookUp>);

impl Variables {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        Self(Arc::new(|name| std::env::var_os(name)))
    }

    /// Those that `look_up` knows.
    #[cfg(test)]
    pub(crate) fn from(look_up: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }

    fn text(&self, setting: &Setting) -> Option<String> {
        let (_, value) = setting.value_in(|name| (self.0)(name))?;
        Some(value.to_string_lossy().trim().to_owned())
    }

    /// The number; what is none counts as unset.
    fn number<T: FromStr>(&self, setting: &Setting) -> Option<T> {
        self.text(setting)?.parse().ok()
    }

    fn is_on(&self, setting: &Setting) -> bool {
        let value = self.text(setting).unwrap_or_default().to_ascii_lowercase();
        ["1", "true", "yes", "on"].contains(&value.as_str())
    }

    /// May extensions be installed without a signature?
    pub(crate) fn allow_unsigned(&self) -> bool {
        self.is_on(&settings::ALLOW_UNSIGNED)
    }

    /// May requests go to this computer and its networks?
    pub(super) fn allow_private_addresses(&self) -> bool {
        self.is_on(&settings::ALLOW_PRIVATE_ADDRESSES)
    }

    /// The index of the registry, where one is set.
    pub(super) fn registry(&self) -> Option<String> {
        self.text(&settings::REGISTRY)
    }

    /// Where the key of the secrets is put.
    pub(crate) fn vault_key(&self) -> KeyPlace {
        KeyPlace::of_text(&self.text(&settings::VAULT_KEY).unwrap_or_default())
    }

    /// Prefixes of private facts: those that are added, and those that are taken away, each a list with commas.
    pub(super) fn private_prefixes(&self) -> (String, String) {
        let list = |setting| self.text(setting).unwrap_or_default();
        (list(&settings::ALWAYS_PRIVATE_PREFIXES), list(&settings::SHARE_PREFIXES))
    }

    /// The file of the authorities that are trusted, where one is set.
    pub(super) fn ca_file(&self) -> Option<String> {
        self.text(&settings::CA_FILE)
    }

    /// What calls of external tools are held to.
    pub(super) fn external(&self) -> ExternalLimits {
        let bytes = |setting, default: u64| {
            self.number(setting).filter(|bytes| *bytes > 0).unwrap_or(default).min(EXTERNAL_MOST_BYTES)
        };
        let seconds = self.number(&settings::EXTERNAL_TIMEOUT_SECONDS).filter(|seconds| *seconds > 0);
        let rate = self.number(&settings::EXTERNAL_RATE_PER_MIN).unwrap_or(RATE_LIMIT_DEFAULT_PER_MIN);
        ExternalLimits {
            timeout: seconds.map_or(EXTERNAL_TIMEOUT, |seconds: u64| {
                Duration::from_secs(seconds.min(EXTERNAL_MOST_SECONDS))
            }),
            request_bytes: bytes(&settings::EXTERNAL_MAX_REQUEST_BYTES, EXTERNAL_REQUEST_MAX_BYTES),
            response_bytes: bytes(&settings::EXTERNAL_MAX_RESPONSE_BYTES, EXTERNAL_RESPONSE_MAX_BYTES),
            rate_per_min: rate.min(RATE_LIMIT_MAX_PER_MIN),
            plain_http: self.is_on(&settings::ALLOW_PLAIN_HTTP),
            private_addresses: self.allow_private_addresses(),
        }
    }
}

#[cfg(feature = "wasm-extensions")]
impl Variables {
    /// What a module may use.
    pub(super) fn limits(&self) -> toolshelf_sandbox::crux::Limits {
        let default = toolshelf_sandbox::crux::Limits::DEFAULT;
        toolshelf_sandbox::crux::Limits {
            fuel: self.number(&settings::WASM_FUEL).unwrap_or(default.fuel),
            memory_bytes: self.number(&settings::WASM_MEMORY_BYTES).unwrap_or(default.memory_bytes),
            wall_ms: self.number(&settings::WASM_WALL_MS).unwrap_or(default.wall_ms),
        }
    }

    /// The length of an epoch.
    pub(super) fn tick(&self) -> Duration {
        let default = toolshelf_sandbox::crux::engine::EPOCH_TICK_MS;
        Duration::from_millis(self.number(&settings::WASM_EPOCH_TICK_MS).unwrap_or(default).clamp(1, 10_000))
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables").finish_non_exhaustive()
    }
}

/// What calls of external tools are held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExternalLimits {
    pub(super) timeout: Duration,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
    /// Where the grant says nothing.
    pub(super) rate_per_min: u32,
    pub(super) plain_http: bool,
    pub(super) private_addresses: bool,
}

impl ExternalLimits {
    /// The same, tightened by what a manifest says of itself; 0 says nothing.
    pub(super) fn tightened(mut self, max_runtime_ms: u64, max_output_bytes: u64) -> Self {
        if max_runtime_ms > 0 {
            self.timeout = self.timeout.min(Duration::from_millis(max_runtime_ms));
        }
        if max_output_bytes > 0 {
            self.response_bytes = self.response_bytes.min(max_output_bytes);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(known: &'static [(&str, &str)]) -> Variables {
        Variables::from(move |name| {
            known.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn defaults_are_those_of_the_documents() {
        let limits = variables(&[]).external();
        assert_eq!(
            limits,
            ExternalLimits {
                timeout: Duration::from_secs(5),
                request_bytes: 262_144,
                response_bytes: 262_144,
                rate_per_min: 10,
                plain_http: false,
                private_addresses: false,
            }
        );
        assert!(!variables(&[]).allow_unsigned());
    }

    #[test]
    fn both_names_are_read_and_nonsense_is_the_default() {
        let limits = variables(&[
            ("CORECRUXD_EXTENSIONS_TIMEOUT_SECONDS", "7"),
            ("TOOLSHELF_EXTENSIONS_MAX_REQUEST_BYTES", " 100 "),
            ("CORECRUXD_EXTENSIONS_MAX_RESPONSE_BYTES", "-1"),
            ("TOOLSHELF_EXTENSIONS_DEFAULT_RATE_PER_MIN", "many"),
            ("CORECRUXD_EXTENSIONS_ALLOW_PLAIN_HTTP", "Yes"),
        ])
        .external();
        assert_eq!((limits.timeout, limits.request_bytes), (Duration::from_secs(7), 100));
        assert_eq!((limits.response_bytes, limits.rate_per_min), (262_144, 10));
        assert!(limits.plain_http && !limits.private_addresses);
        for (value, on) in
            [("1", true), ("TRUE", true), ("on", true), ("0", false), ("no", false), ("", false)]
        {
            let variables = Variables::from(move |name| {
                (name == "CORECRUXD_EXTENSIONS_ALLOW_UNSIGNED").then(|| value.into())
            });
            assert_eq!(variables.allow_unsigned(), on, "{value}");
        }
    }

    #[test]
    fn a_manifest_tightens_and_never_loosens() {
        let limits = variables(&[]).external();
        assert_eq!(limits.tightened(0, 0), limits);
        assert_eq!(limits.tightened(100, 10).timeout, Duration::from_millis(100));
        assert_eq!(limits.tightened(100, 10).response_bytes, 10);
        assert_eq!(limits.tightened(u64::MAX, u64::MAX), limits);
    }

    #[cfg(feature = "wasm-extensions")]
    #[test]
    fn limits_of_modules_come_from_their_variables() {
        use toolshelf_sandbox::crux::Limits;
        assert_eq!(variables(&[]).limits(), Limits::DEFAULT);
        let limits = variables(&[
            ("CORECRUXD_WASM_FUEL_DEFAULT", "5"),
            ("TOOLSHELF_WASM_MEMORY_BYTES_DEFAULT", "65536"),
            ("CORECRUXD_WASM_WALL_MS_DEFAULT", "soon"),
        ])
        .limits();
        assert_eq!(limits, Limits { fuel: 5, memory_bytes: 65_536, ..Limits::DEFAULT });
        assert_eq!(variables(&[]).tick(), Duration::from_millis(10));
        assert_eq!(variables(&[("CORECRUXD_WASM_EPOCH_TICK_MS", "0")]).tick(), Duration::from_millis(1));
    }
}
