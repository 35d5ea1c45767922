//! The page's program: compiled, split where its functions ask for it, and bound to JavaScript.
//!
//! Trunk would compile and bind in one go, and the split has to happen in between: the splitter needs the relocations
//! that the linker leaves, and wasm-bindgen drops them.
//! So the hook of [`crate::finish`] calls this, for `cargo xtask build` and for `trunk serve` alike.
//! A function marked with `wasm_split` imports what it calls from the chunk that it went to: without the splitter
//! the program would not start.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{chunks, pins, sh};

/// The name of the files that every visitor loads: `app.js` and `app_bg.wasm`.
pub(crate) const NAME: &str = "app";

/// The script that loads the chunks. `app.js` imports it under this name.
pub(crate) const LINK: &str = "__wasm_split.js";

/// How the program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Small, for visitors.
    Release,
    /// Quickly, with names for the debugger.
    Debug,
}

impl Profile {
    /// The profile that Trunk tells its hooks by the variable `TRUNK_PROFILE`.
    pub(crate) fn of_trunk(name: &str) -> Self {
        if name == "release" { Self::Release } else { Self::Debug }
    }

    fn of_cargo(self) -> &'static str {
        match self {
            Self::Release => "wasm-release",
            Self::Debug => "dev",
        }
    }
}

/// Builds the program into a new folder below `folder` and returns that folder's name.
///
/// The name holds a digest of all files: they belong to one compilation and only work together, so they are cached
/// together too, and inside the folder they find each other by the names that their tools gave them.
pub(crate) fn build(profile: Profile, folder: &Path) -> Result<String> {
    let program = compile(profile)?;
    let work = sh::root().join("target/page");
    let (split, bound) = (work.join("split"), work.join("bound"));
    for fresh in [&split, &bound] {
        renew(fresh)?;
    }
    let main = split.join(format!("{NAME}.wasm"));
    divide(&program, &split, &main)?;
    bind(profile, &main, &bound)?;
    std::fs::remove_file(&main)?;
    chunks::finish(profile, &split, &bound)?;
    let name = format!("{NAME}-{}", digest(&bound)?);
    copy(&bound, &folder.join(&name))?;
    Ok(name)
}

/// Compiles the app and returns where its module is. The linker's option goes to this program alone, so that the
/// crates below it are the ones that the tests use.
fn compile(profile: Profile) -> Result<PathBuf> {
    let messages = sh::output(
        sh::cargo()
            .args(["rustc", "--offline", "--package", "toolshelf-app", "--bin", "toolshelf-app"])
            .args(["--target", pins::WASM_TARGET, "--profile", profile.of_cargo()])
            .args(["--message-format", "json-render-diagnostics"])
            .args(["--", "-C", "link-arg=--emit-relocs"]),
    )
    .context("the app does not compile")?;
    built_module(&messages).context("Cargo built the app but names no module")
}

/// The `.wasm` file that Cargo's messages name last.
fn built_module(messages: &str) -> Option<PathBuf> {
    let files = messages
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    files
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .find(|file| file.extension().is_some_and(|end| end == "wasm"))
}

/// Splits the module: what every visitor needs goes to `main`, the chunks and their loader to `folder`.
fn divide(program: &Path, folder: &Path, main: &Path) -> Result<()> {
    let module = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let glue = format!("./{NAME}.js");
    let link = format!("./{LINK}");
    let mut options = wasm_split_cli_support::Options::new(&module);
    options.output_dir = folder;
    options.main_out_path = main;
    options.main_module = &glue;
    options.link_name = &link;
    wasm_split_cli_support::transform(options)
        .map_err(|error| anyhow!("the program cannot be split: {error:#}"))?;
    Ok(())
}

/// Writes the JavaScript that goes with the module, and the module as that wants it.
fn bind(profile: Profile, main: &Path, folder: &Path) -> Result<()> {
    let mut bindgen = sh::program("wasm-bindgen");
    // A chunk puts its functions into the table that the main module exports for it, under the linker's name.
    bindgen.arg("--keep-lld-exports");
    bindgen
        .arg(main)
        .args(["--target", "web", "--no-typescript", "--out-name", NAME, "--out-dir"])
        .arg(folder);
    if profile == Profile::Release {
        bindgen.args(["--remove-name-section", "--remove-producers-section"]);
    }
    sh::run(&mut bindgen).context("the JavaScript of the app cannot be written")
}

/// Removes what an earlier build left there.
fn renew(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Sixteen digits that change when any file of the folder does.
fn digest(folder: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    for path in sorted(folder)? {
        let bytes = std::fs::read(&path)?;
        hash.update(path.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update([0]);
        hash.update(bytes.len().to_le_bytes());
        hash.update(&bytes);
    }
    Ok(hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for path in sorted(from)? {
        let name = path.file_name().context("a file without a name")?;
        std::fs::copy(&path, to.join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    Ok(())
}

/// The files of a folder, which has no folders in it: the app calls no JavaScript of its own that would be put there.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        ensure!(path.is_file(), "{} is not expected among the files of the app", path.display());
        files.push(path);
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_found_among_the_messages_of_cargo() {
        let messages = r#"{"reason":"compiler-artifact","filenames":["/t/libcore.rlib"]}
{"reason":"compiler-artifact","filenames":["/t/toolshelf-app.wasm"]}
not a message
{"reason":"build-finished","success":true}"#;
        assert_eq!(built_module(messages), Some("/t/toolshelf-app.wasm".into()));
        assert_eq!(built_module("{}"), None);
    }

    #[test]
    fn the_digest_covers_names_and_contents() {
        let folder = std::env::temp_dir().join(format!("xtask-app-{}", std::process::id()));
        let mut digests = Vec::new();
        for (name, text) in [("a", "1"), ("a", "2"), ("b", "2")] {
            renew(&folder).unwrap();
            std::fs::write(folder.join(name), text).unwrap();
            digests.push(digest(&folder).unwrap());
        }
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(digests[0].len(), 16);
        digests.dedup();
        assert_eq!(digests.len(), 3);
    }

    #[test]
    fn trunk_says_which_profile() {
        assert_eq!(Profile::of_trunk("release").of_cargo(), "wasm-release");
        assert_eq!(Profile::of_trunk("debug").of_cargo(), "dev");
    }
}
