//! Commands that drive the built page in a real browser. The driving itself is in `tests/e2e`.

use anyhow::Result;

use crate::{build, setup, sh};

/// Measures the page in headless Chromium.
pub(crate) fn bench() -> Result<()> {
    drive("bench", &[])
}

/// Takes pictures of the page, wide and narrow, light and dark.
pub(crate) fn screenshot() -> Result<()> {
    drive("screenshot", &["target/screenshots"])
}

fn drive(program: &str, arguments: &[&str]) -> Result<()> {
    setup::everything()?;
    build::page()?;
    sh::run(sh::cargo().args(["run", "--quiet", "--package", "e2e", "--bin", program, "--"]).args(arguments))
}
