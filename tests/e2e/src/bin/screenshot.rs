//! Takes pictures of the built page's screens, wide and narrow, light and dark: `screenshot <folder>`.
#![expect(clippy::print_stdout, reason = "a command line program reports on its standard output")]

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::{ColorScheme, Page};
use serde_json::json;

/// A screen: its name, the page to open, what goes into its fields, and what shows when it is there.
struct Screen {
    name: &'static str,
    page: &'static str,
    texts: &'static [&'static str],
    shown: &'static str,
}

const OLD: &str = "# Release 7\n\nA shelf is a directory with a manifest.\nTools import nothing.\n\n## Limits\n\ntime: 5 s\nmemory: 32 MiB\noutput: 2 MiB\ncalls: 4\n";
const NEW: &str = "# Release 8\n\nA shelf is a folder with a manifest.\nEvery entry pins the SHA-256 of its module.\nTools import nothing.\n\n## Limits\n\ntime: 5 s\nmemory: 64 MiB\noutput: 2 MiB\ncalls: 4\n";

const SCREENS: [Screen; 4] = [
    Screen { name: "start", page: "", texts: &[], shown: ".tool__open" },
    Screen { name: "hash", page: "#/extensions/hash", texts: &["abc"], shown: ".result__digest" },
    Screen { name: "diff", page: "#/extensions/diff", texts: &[OLD, NEW], shown: ".diff" },
    Screen { name: "same", page: "#/extensions/diff", texts: &[OLD, OLD], shown: ".note--ok" },
];

#[tokio::main]
async fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("usage: screenshot <folder>")?);
    for (width, height) in [(1280, 900), (320, 700)] {
        for (scheme, scheme_name) in [(ColorScheme::Light, "light"), (ColorScheme::Dark, "dark")] {
            for screen in &SCREENS {
                let page = Page::start().await?;
                page.set_viewport(width, height).await?;
                page.set_color_scheme(scheme).await?;
                show(&page, screen).await?;
                let path = folder.join(format!("{}-{width}-{scheme_name}.png", screen.name));
                page.screenshot(&path).await?;
                println!("{}", path.display());
                page.quit().await?;
            }
        }
    }
    Ok(())
}

async fn show(page: &Page, screen: &Screen) -> Result<()> {
    page.open(screen.page).await?;
    page.wait_for(".tool__open").await?;
    for (index, text) in screen.texts.iter().enumerate() {
        let fill = "const field = document.querySelectorAll('.run textarea')[arguments[0]];
            field.value = arguments[1];
            field.dispatchEvent(new Event('input', { bubbles: true }))";
        page.wait_for(".run textarea").await?;
        page.run_js(fill, vec![json!(index), json!(text)]).await?;
    }
    // Several times, so that the history has something to show.
    for _ in 0..if screen.texts.is_empty() { 0 } else { 5 } {
        page.wait_for(".run button[type=submit]").await?.click().await?;
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    page.wait_for(screen.shown).await?;
    // Fonts, transitions and flashes come to rest.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    Ok(())
}
