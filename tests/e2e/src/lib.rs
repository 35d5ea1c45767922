//! The real page driven in a real browser.
//!
//! A test starts a [`Page`]: the built page served under a sub-path, as any static host would, and a headless Chromium
//! with a fresh profile.
//! Everything is stopped when the page is dropped, also when the test panics.
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! let page = e2e::Page::start().await?;
//! page.open("").await?;
//! page.wait_for("main").await?;
//! page.assert_clean().await
//! # }
//! ```
//!
//! The page under test is `dist/`, or the folder that `TOOLSHELF_DIST` names.

use std::path::{Path, PathBuf};

mod axe;
mod browser;
mod chromedriver;
mod companion;
mod page;
mod site;

pub use axe::Finding;
pub use browser::{Browser, ColorScheme};
pub use companion::Companion;
pub use page::Page;
pub use site::Site;
pub use thirtyfour;

/// The top folder of the workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// The folder of the page under test.
#[must_use]
pub fn dist() -> PathBuf {
    std::env::var_os("TOOLSHELF_DIST").map_or_else(|| workspace().join("dist"), PathBuf::from)
}
