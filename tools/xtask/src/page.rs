//! Commands that drive the built page in a real browser. The driving itself is in `tests/e2e`.

use anyhow::Result;

use crate::{build, package, setup, sh};

/// Measures calls of tools in headless Chromium.
pub(crate) fn bench_browser() -> Result<()> {
    drive("bench", &["browser"])
}

/// Measures the reducer natively, then tasks in headless Chromium.
pub(crate) fn bench_tasks() -> Result<()> {
    let example = ["run", "--quiet", "--release", "--package", "toolshelf-core", "--example", "reduce_speed"];
    sh::run(sh::cargo().args(example))?;
    package::build()?;
    drive("bench", &["tasks"])
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
