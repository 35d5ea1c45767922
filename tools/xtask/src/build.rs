//! Builds the page: Trunk gathers its files, and its hook [`crate::finish`] adds the program.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::{sh, single};

/// Where the finished page is.
pub(crate) fn dist() -> PathBuf {
    sh::root().join("dist")
}

/// The finished page, or one sentence that says how to get it.
pub(crate) fn existing_dist() -> Result<PathBuf> {
    let dist = dist();
    ensure!(dist.join("index.html").is_file(), "there is no page in dist/ yet: run `cargo xtask build`");
    Ok(dist)
}

/// Builds the page in release mode into `dist/`, and as one file beside it.
pub(crate) fn page() -> Result<()> {
    println!("building the page; the first build takes a few minutes…");
    sh::run(sh::program("trunk").args(["build", "--release"])).context("the page could not be built")?;
    single::write(&dist())
}
