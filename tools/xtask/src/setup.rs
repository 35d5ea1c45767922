//! Installs what is missing, once per machine, and says what it does and how long that takes.
//!
//! Nothing here downloads a program from anywhere but the Rust, Debian and npm package managers that are already set
//! up.
//! Where a package manager cannot be used the step ends with one sentence that says what to install.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::{mcp, nats, pins, sh};

/// Everything that building and testing need.
pub(crate) fn everything() -> Result<()> {
    for_build()?;
    for_tests()
}

/// What `cargo xtask build` and `run` need.
pub(crate) fn for_build() -> Result<()> {
    for_package()?;
    cargo_tool("trunk", "trunk", pins::TRUNK, &["--locked"], "6 to 11 minutes")?;
    crates()
}

/// What `cargo xtask package` needs.
pub(crate) fn for_package() -> Result<()> {
    wasm_target()?;
    cargo_tool("wasm-bindgen", "wasm-bindgen-cli", pins::WASM_BINDGEN, &[], "about 3 minutes")
}

/// Fetches the crates of the page, which is then built offline: a build downloads nothing.
fn crates() -> Result<()> {
    sh::run(sh::cargo().args(["fetch", "--quiet", "--target", pins::WASM_TARGET]))
        .context("the crates that the page is made of cannot be fetched")
}

/// What the tests need besides: a browser, its driver, the accessibility rules and a NATS server.
pub(crate) fn for_tests() -> Result<()> {
    chromium()?;
    axe_core()?;
    mcp::clients()?;
    nats::server()
}

/// Adds the compiler's wasm32 target. It is done by hand because a machine may forbid rustup to add it by itself.
pub(crate) fn wasm_target() -> Result<()> {
    let sysroot = sh::output(sh::program("rustc").args(["--print", "sysroot"]))?;
    if Path::new(sysroot.trim()).join("lib/rustlib").join(pins::WASM_TARGET).is_dir() {
        return Ok(());
    }
    println!("adding the compiler target {}, a few seconds…", pins::WASM_TARGET);
    sh::run(sh::program("rustup").args(["target", "add", pins::WASM_TARGET]))
        .with_context(|| format!("install the standard library for {}, then try again", pins::WASM_TARGET))
}

/// Installs a program from its crate unless that very version is there.
fn cargo_tool(program: &str, package: &str, version: &str, options: &[&str], time: &str) -> Result<()> {
    if installed_version(program).as_deref() == Some(version) {
        return Ok(());
    }
    println!("installing {package} {version}, built once per machine, {time}…");
    sh::run(sh::cargo().args(["install", package, "--version", version]).args(options))?;
    let found = installed_version(program);
    ensure!(
        found.as_deref() == Some(version),
        "{program} {version} was installed, but the one that is found says {found:?}"
    );
    Ok(())
}

/// The second word that `<program> --version` prints, after its name.
fn installed_version(program: &str) -> Option<String> {
    sh::find(program)?;
    let text = sh::output(sh::program(program).arg("--version")).ok()?;
    text.split_whitespace().nth(1).map(str::to_owned)
}

/// The names that Chromium goes by, the usual one first.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The driver for the browser tests.
pub(crate) fn chromedriver() -> Result<PathBuf> {
    let named = std::env::var_os("CHROMEDRIVER").map(PathBuf::from);
    named
        .or_else(|| sh::find("chromedriver"))
        .context("chromedriver is not installed: run `cargo xtask setup`")
}

fn chromium() -> Result<()> {
    let browser = BROWSERS.iter().any(|name| sh::find(name).is_some());
    if browser && chromedriver().is_ok() {
        return Ok(());
    }
    debian_packages(
        &["chromium", "chromium-driver"],
        "install Chromium and the chromedriver of the same version, and put both on the PATH",
    )
}

/// The accessibility rules, an npm package whose one script is injected into the page under test.
fn axe_core() -> Result<()> {
    let script = sh::tools_folder().join("node_modules/axe-core/axe.min.js");
    if sha256_of(&script).is_ok_and(|digest| digest == pins::AXE_CORE_SHA256) {
        return Ok(());
    }
    node()?;
    let package = format!("axe-core@{}", pins::AXE_CORE);
    println!("fetching {package}, a few seconds…");
    std::fs::create_dir_all(sh::tools_folder())?;
    sh::run(
        sh::program("npm")
            .args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
            .arg(sh::tools_folder())
            .arg(&package),
    )?;
    let digest = sha256_of(&script)?;
    ensure!(
        digest == pins::AXE_CORE_SHA256,
        "the script of {package} has the digest {digest}, not the pinned {}",
        pins::AXE_CORE_SHA256
    );
    Ok(())
}

/// Node.js with npm: the accessibility checker comes from there, and the npm package is tested in it.
pub(crate) fn node() -> Result<()> {
    if sh::find("node").is_some() && sh::find("npm").is_some() {
        return Ok(());
    }
    debian_packages(&["nodejs", "npm"], "install Node.js 20 or later with npm")
}

fn sha256_of(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Installs Debian packages where we may; otherwise says what is missing in one sentence.
fn debian_packages(packages: &[&str], otherwise: &str) -> Result<()> {
    let is_debian = Path::new("/etc/debian_version").exists() && sh::find("apt-get").is_some();
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !(is_debian && is_root) {
        bail!("{otherwise}, then try again");
    }
    println!("installing the Debian packages {}, about half a minute…", packages.join(" and "));
    sh::run(sh::program("apt-get").args(["update", "--quiet"]))?;
    sh::run(
        sh::program("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "--yes", "--quiet", "--no-install-recommends"])
            .args(packages),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_its_version_in_the_second_word() {
        let version = installed_version("cargo").unwrap();
        assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
        assert_eq!(installed_version("no-such-program"), None);
    }
}
