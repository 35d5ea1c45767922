//! Measures the built page in headless Chromium.
//!
//! `bench browser` measures calls of tools, `bench tasks` tasks. The measuring is done by the script of that name in
//! `bench/`, the body of an async function that runs in a page and returns `{ rows: [{ case, subject, value, unit }] }`.
//! Rows of one case are compared: the first subject of a case is the measure of the others.
#![expect(clippy::print_stdout, reason = "a command line program reports on its standard output")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::{Page, Site};
use serde::Deserialize;

/// One measured value.
#[derive(Debug, Deserialize)]
struct Row {
    /// What was measured.
    case: String,
    /// Whose it is.
    subject: String,
    value: f64,
    unit: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let what = std::env::args().nth(1).unwrap_or_default();
    let path = e2e::workspace().join(format!("tests/e2e/bench/{what}.js"));
    let script = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let page = match &*what {
        "tasks" => beside_the_package().await?,
        _ => the_page().await?,
    };
    page.set_script_patience(Duration::from_secs(600)).await?;
    println!("measuring in headless Chromium, up to 10 minutes…");
    let mut result = page.run_async_js(&script, Vec::new()).await?;
    let mut rows: Vec<Row> =
        serde_json::from_value(result["rows"].take()).context("the script returned no table of `rows`")?;
    // What is compared stands together.
    let cases: Vec<_> = rows.iter().map(|row| row.case.clone()).collect();
    rows.sort_by_key(|row| cases.iter().position(|case| *case == row.case));
    print!("{}", table(&rows));
    page.quit().await
}

/// The page itself, with its shelf open.
async fn the_page() -> Result<Page> {
    let page = Page::start().await?;
    page.open("").await?;
    page.wait_until("the shelf to open", "return !!globalThis.toolshelf", Vec::new()).await?;
    Ok(page)
}

/// A blank page on a site that has the page and the package for scripts. It has no policy, so it may hold frames.
async fn beside_the_package() -> Result<Page> {
    let folder = e2e::workspace().join("target/bench-site");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    copy(&e2e::dist(), &folder)?;
    copy(&e2e::workspace().join("target/package"), &folder.join("package"))?;
    // A service worker would answer the second start from its cache.
    std::fs::remove_file(folder.join("sw.js"))?;
    std::fs::write(folder.join("bench.html"), "<!doctype html><title>Bench</title><body>")?;
    let page = Page::at(Site::of(folder, "/").await?).await?;
    page.goto(&page.site().url("bench.html")).await?;
    Ok(page)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let (path, target) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            std::fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// The rows as a table; the ratio is to the first subject of the same case.
fn table(rows: &[Row]) -> String {
    let width = |text: fn(&Row) -> &str, title: &str| {
        rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0).max(title.len())
    };
    let (case, subject) = (width(|row| &row.case, "case"), width(|row| &row.subject, "subject"));
    let mut text =
        format!("{:case$}  {:subject$}  {:>12} {:<6} {:>8}\n", "case", "subject", "value", "unit", "ratio");
    for row in rows {
        let measure = rows.iter().find(|other| other.case == row.case).map_or(row.value, |first| first.value);
        let ratio = row.value / measure;
        let Row { case: name, subject: whose, value, unit } = row;
        text += &format!("{name:case$}  {whose:subject$}  {value:>12.3} {unit:<6} {ratio:>7.2}x\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, subject: &str, value: f64) -> Row {
        Row { case: case.into(), subject: subject.into(), value, unit: "ms".into() }
    }

    #[test]
    fn each_case_has_its_own_measure() {
        let text =
            table(&[row("hash", "toolshelf", 2.0), row("hash", "other", 5.0), row("diff", "toolshelf", 8.0)]);
        let ratios: Vec<_> = text.lines().skip(1).filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(ratios, ["1.00x", "2.50x", "1.00x"]);
    }
}
