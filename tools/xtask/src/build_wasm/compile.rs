//! From a source in `tools/guests/` to the bytes of a module, the same ones wherever that is done.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::{pins, sh};

/// The compiler that the committed Rust tools come from. Another one makes other bytes of the same source, so with
/// another one they are neither rebuilt nor compared.
const RUSTC: &str = "rustc 1.95.0 (59807616e 2026-04-14)";

/// The module that the source in `tools/guests/<guest>/` makes: that of the text there, if there is one of that name,
/// or else that of the Rust package. The committed one if this machine's compiler would make another.
pub(super) fn module_or_committed(guest: &str, text: &str, committed: &str) -> Result<Vec<u8>> {
    let source = sh::root().join("tools/guests").join(guest);
    let text = source.join(text);
    if text.is_file() {
        return Ok(wat::parse_file(text)?);
    }
    let rustc = sh::output(sh::program("rustc").arg("--version"))?;
    if rustc.trim() != RUSTC {
        println!("note: {guest} is left as it is: built by {RUSTC}, and here is {}", rustc.trim());
        return fs::read(sh::root().join(committed)).with_context(|| format!("{committed} is missing"));
    }
    cargo_build(guest, &source)
}

/// Builds a Rust package, such that the bytes do not depend on where.
///
/// Two things would tell folders apart. Paths in panic messages are given other prefixes. And Cargo takes the path of a
/// dependency outside of the workspace into the names of all symbols, which changes their order: so the
/// package and `toolshelf-guest` are copied into a workspace of their own.
fn cargo_build(guest: &str, source: &Path) -> Result<Vec<u8>> {
    let root = sh::root();
    let stage = root.join("target/guests").join(guest);
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    copy(source, &stage)?;
    copy(&root.join("crates/guest"), &stage.join("guest"))?;
    let manifest = fs::read_to_string(source.join("Cargo.toml"))?;
    fs::write(stage.join("Cargo.toml"), staged_manifest(&manifest)?)?;
    if !is_extension(&manifest) {
        let guest = stage.join("guest/Cargo.toml");
        fs::write(&guest, without_dependencies(&fs::read_to_string(&guest)?))?;
    }

    let target = root.join("target/guests/target");
    let flags = [
        format!("--remap-path-prefix={}={}", stage.display(), guest),
        format!("--remap-path-prefix={}=crates", cargo_sources()?.display()),
    ];
    let flags = flags.map(|flag| serde_json::Value::from(flag).to_string()).join(", ");
    let mut cargo = sh::cargo();
    cargo
        .current_dir(&stage)
        .args(["build", "--quiet", "--release", "--locked", "--target", pins::WASM_TARGET, "--target-dir"])
        .arg(&target)
        .args(["--config", &format!("target.{}.rustflags = [{flags}]", pins::WASM_TARGET)]);
    // They would take the place of all the flags in configuration files.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(variable);
    }
    sh::run(&mut cargo)?;

    let file = target.join(pins::WASM_TARGET).join("release").join(guest.replace('-', "_"));
    let file = file.with_extension("wasm");
    fs::read(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// The package's manifest as that of a workspace: what `toolshelf-guest` inherits comes from this workspace's manifest.
fn staged_manifest(package: &str) -> Result<String> {
    let ours = fs::read_to_string(sh::root().join("Cargo.toml"))?;
    let mut staged = package.replace("../../../crates/guest", "guest");
    staged.push_str("\n[workspace]\nmembers = [\"guest\"]\n");
    let mut inherited = false;
    for line in ours.lines() {
        if line.starts_with('[') {
            inherited = line == "[workspace.package]" || line.starts_with("[workspace.lints.");
        }
        if inherited {
            staged.push_str(line);
            staged.push('\n');
        }
    }
    Ok(staged)
}

fn is_extension(package: &str) -> bool {
    package.lines().any(|line| line.starts_with("toolshelf-guest") && line.contains("\"extension\""))
}

/// The manifest of `toolshelf-guest` for a shelf tool. As a member of the staged workspace it would have its optional
/// dependencies in the tool's lock file, where nothing needs them.
fn without_dependencies(guest: &str) -> String {
    let mut kept = String::new();
    let mut dependencies = false;
    for line in guest.lines() {
        if line.starts_with('[') {
            dependencies = line == "[dependencies]";
        }
        if dependencies {
            continue;
        }
        kept.push_str(if line.starts_with("extension = ") { "extension = []" } else { line });
        kept.push('\n');
    }
    kept
}

/// Copies a folder, without what was built in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        if entry.file_name() == "target" {
            continue;
        }
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?;
        }
    }
    Ok(())
}

/// Where Cargo unpacks the crates it downloads.
fn cargo_sources() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    Ok(home.context("there is no home folder, and CARGO_HOME is not set")?.join("registry/src"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(path: &str) -> String {
        fs::read_to_string(sh::root().join(path)).unwrap()
    }

    #[test]
    fn a_staged_package_depends_on_the_copy_beside_it() {
        for guest in ["diff-loose", "note-summary"] {
            let package = manifest(&format!("tools/guests/{guest}/Cargo.toml"));
            let staged = staged_manifest(&package).unwrap();
            assert!(staged.contains("path = \"guest\""), "{guest}");
            assert!(staged.contains("[workspace.package]") && staged.contains("[workspace.lints.rust]"));
            assert!(!staged.contains("[workspace.dependencies]"));
            assert_eq!(is_extension(&package), guest == "note-summary");
        }
    }

    #[test]
    fn a_shelf_tool_is_built_from_a_crate_without_dependencies() {
        let guest = without_dependencies(&manifest("crates/guest/Cargo.toml"));
        assert!(!guest.contains("serde") && guest.contains("extension = []") && guest.contains("[lints]"));
    }
}
