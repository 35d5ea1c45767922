//! Takes pictures of the built page, wide and narrow, light and dark: `screenshot <folder>`.
#![expect(clippy::print_stdout, reason = "a command line program reports on its standard output")]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::{ColorScheme, Page};

#[tokio::main]
async fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("usage: screenshot <folder>")?);
    let page = Page::start().await?;
    for (width, height) in [(1280, 900), (320, 700)] {
        for (scheme, name) in [(ColorScheme::Light, "light"), (ColorScheme::Dark, "dark")] {
            page.set_viewport(width, height).await?;
            page.set_color_scheme(scheme).await?;
            page.open("").await?;
            // Fonts, transitions and the first calls come to rest.
            tokio::time::sleep(Duration::from_millis(700)).await;
            let path = folder.join(format!("page-{width}-{name}.png"));
            page.screenshot(&path).await?;
            println!("{}", path.display());
        }
    }
    page.quit().await
}
