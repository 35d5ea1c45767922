//! Clients of the server for agents that are not of this project: the official conformance suite, the official inspector
//! and the client of the TypeScript SDK. `tests/mcp/package.json` pins them, and Node 22, which some of them ask for.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::{setup, sh};

/// What is run, in `tests/mcp/`.
const SCRIPTS: [&str; 4] = ["run.mjs", "fixtures.mjs", "sdk.mjs", "expected-failures.yml"];
const PACKAGE: &str = "package.json";

/// Where the clients are installed.
fn folder() -> PathBuf {
    sh::tools_folder().join("mcp")
}

fn node() -> PathBuf {
    folder().join("node_modules/node/bin/node")
}

/// Installs the clients unless those very versions are there.
pub(crate) fn clients() -> Result<()> {
    let source = sh::root().join("tests/mcp").join(PACKAGE);
    let wanted = fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
    // Written last, so that it stands for an installation that came to its end.
    let installed = folder().join("installed.json");
    if node().is_file() && fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    setup::node()?;
    println!("fetching the clients of MCP, about half a minute…");
    fs::create_dir_all(folder())?;
    fs::write(folder().join(PACKAGE), &wanted)?;
    let options = [
        "--no-save",
        "--package-lock=false",
        "--no-audit",
        "--no-fund",
        "--omit=optional",
        "--loglevel=error",
    ];
    let npm = || {
        let mut npm = sh::program("npm");
        npm.current_dir(folder());
        npm
    };
    sh::run(npm().arg("install").arg("--ignore-scripts").args(options))?;
    // The one script that is run: it fetches Node for this kind of machine.
    sh::run(npm().args(["rebuild", "node", "--loglevel=error"]))?;
    ensure!(node().is_file(), "npm has not installed Node 22 into {}", folder().display());
    fs::write(installed, wanted)?;
    Ok(())
}

/// Runs them against the program of this workspace.
pub(crate) fn test() -> Result<()> {
    clients()?;
    sh::run(sh::cargo().args(["build", "--package", "toolshelf", "--bin", "toolshelf"]))?;
    for script in SCRIPTS {
        let source = sh::root().join("tests/mcp").join(script);
        fs::copy(&source, folder().join(script))
            .with_context(|| format!("cannot copy {}", source.display()))?;
    }
    let program = sh::root().join("target/debug/toolshelf");
    let mut node = std::process::Command::new(node());
    sh::run(node.current_dir(folder()).arg("run.mjs").arg(program))
}
