//! The npm package `toolshelf`, in `target/package/`: the browser crate with its feature `api`, and the scripts and
//! types in `crates/browser/package/`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::{pins, setup, sh};

/// Name of the module and its glue.
const NAME: &str = "toolshelf";
const VERSION: &str = "{{version}}";
const LICENSES: [&str; 3] = ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"];

fn folder() -> PathBuf {
    sh::root().join("target/package")
}

fn sources() -> PathBuf {
    sh::root().join("crates/browser/package")
}

/// Makes the package.
pub(crate) fn build() -> Result<()> {
    setup::for_package()?;
    println!("building the package; the first build takes a minute or two…");
    // Only here is the crate a module of its own: as a part of the page it is linked once, with the page.
    sh::run(
        sh::cargo()
            .args(["rustc", "--quiet", "--package", "toolshelf-browser", "--lib", "--crate-type", "cdylib"])
            .args(["--features", "api", "--profile", "wasm-release", "--target", pins::WASM_TARGET]),
    )?;
    let folder = folder();
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let module =
        sh::root().join("target").join(pins::WASM_TARGET).join("wasm-release/toolshelf_browser.wasm");
    sh::run(
        sh::program("wasm-bindgen")
            .args(["--target", "web", "--no-typescript", "--omit-default-module-path", "--out-name", NAME])
            .args(["--remove-name-section", "--remove-producers-section"])
            .arg("--out-dir")
            .arg(&folder)
            .arg(&module),
    )?;
    for entry in fs::read_dir(sources())? {
        let path = entry?.path();
        let name = path.file_name().context("a source of the package has no name")?;
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fs::write(folder.join(name), text.replace(VERSION, env!("CARGO_PKG_VERSION")))?;
    }
    for license in LICENSES {
        fs::copy(sh::root().join(license), folder.join(license))?;
    }
    report(&folder)
}

/// Runs the package's tests in Node.
pub(crate) fn test() -> Result<()> {
    build()?;
    setup::node()?;
    let tests = sh::root().join("tests/package");
    let mut files: Vec<_> = fs::read_dir(&tests)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    ensure!(!files.is_empty(), "there are no tests in {}", tests.display());
    sh::run(sh::program("node").arg("--test").args(&files))
}

fn report(folder: &Path) -> Result<()> {
    let module = fs::metadata(folder.join(format!("{NAME}_bg.wasm")))?.len();
    println!(
        "target/package/ is done, its module {module} bytes; `npm pack ./target/package` makes the file to install"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_says_its_version_and_ships_what_it_names() {
        let manifest = fs::read_to_string(sources().join("package.json")).unwrap();
        assert_eq!(manifest.matches(VERSION).count(), 1);
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["name"], NAME);
        assert_eq!(manifest["license"], "MIT OR Apache-2.0");
        for file in ["index.js", "index.d.ts", "README.md"] {
            assert!(sources().join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn everything_that_is_exported_has_a_type() {
        let index = fs::read_to_string(sources().join("index.js")).unwrap();
        let types = fs::read_to_string(sources().join("index.d.ts")).unwrap();
        let words = |text: &str| -> Vec<String> {
            let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let typed = words(&types);
        let mut exported = 0;
        for block in index.split("export ").skip(1) {
            let names = match block.strip_prefix("const {").or_else(|| block.strip_prefix('{')) {
                Some(list) => words(list.split('}').next().unwrap()),
                None => words(block.trim_start_matches("const ")).into_iter().take(1).collect(),
            };
            for name in names {
                assert!(typed.contains(&name), "index.d.ts does not know `{name}`");
                exported += 1;
            }
        }
        assert!(exported > 40, "{exported}");
    }
}
