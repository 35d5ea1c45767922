//! The size budget: what a visitor downloads, compressed as a good static host would.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::{build, offline, single};

/// Everything the page loads fits into this many bytes after Brotli.
const BUDGET: usize = 300_000;
/// What follows once the page is open fits into this many: the service worker and what an installation needs.
const LATER_BUDGET: usize = 10_000;

/// Brotli's best quality and its usual window: the files are compressed once and served often.
const QUALITY: u32 = 11;
const WINDOW_BITS: u32 = 22;

/// One file of the page.
#[derive(Debug, PartialEq, Eq)]
struct Measured {
    name: String,
    bytes: usize,
    compressed: usize,
}

/// Prints the table for the built page and fails when it is over budget.
pub(crate) fn check() -> Result<()> {
    let mut files = measure(&build::existing_dist()?)?;
    files.sort_by_key(|file| std::cmp::Reverse(file.compressed));
    let (later, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| comes_later(&file.name));
    print!("{}\n{}", table(&files, BUDGET), table(&later, LATER_BUDGET));
    within_budget(&files, BUDGET)?;
    within_budget(&later, LATER_BUDGET)?;
    single::check()
}

/// The page registers its service worker when the app has started; that one then asks for all files.
/// Those of the page come from the browser's own cache, or as "not modified", unless the host forbids keeping them.
/// The manifest and the icons are asked for by it, and by a browser that could install the page, once that is open.
fn comes_later(name: &str) -> bool {
    [offline::WORKER, offline::MANIFEST].contains(&name) || name.starts_with(offline::ICONS)
}

fn within_budget(files: &[Measured], budget: usize) -> Result<()> {
    let total: usize = files.iter().map(|file| file.compressed).sum();
    ensure!(total <= budget, "the page weighs {total} bytes compressed, over its budget of {budget}");
    Ok(())
}

/// Every file of the folder counts, for the one budget or the other.
fn measure(folder: &Path) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for path in files_in(folder)? {
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        measured.push(Measured { name, bytes: bytes.len(), compressed: compressed_len(&bytes)? });
    }
    Ok(measured)
}

/// All files below a folder.
pub(crate) fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_in(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

fn compressed_len(bytes: &[u8]) -> Result<usize> {
    let mut compressed = Vec::new();
    let mut writer = brotli::CompressorWriter::new(&mut compressed, 1 << 16, QUALITY, WINDOW_BITS);
    writer.write_all(bytes)?;
    drop(writer);
    Ok(compressed.len())
}

fn table(files: &[Measured], budget: usize) -> String {
    let width = files.iter().map(|file| file.name.len()).max().unwrap_or(0).max("total".len());
    let line =
        |name: &str, bytes: usize, compressed: usize| format!("{name:width$} {bytes:>10} {compressed:>10}\n");
    let mut text = format!("{:width$} {:>10} {:>10}\n", "file", "bytes", "brotli");
    for file in files {
        text += &line(&file.name, file.bytes, file.compressed);
    }
    let (bytes, compressed) =
        files.iter().fold((0, 0), |sum, file| (sum.0 + file.bytes, sum.1 + file.compressed));
    text += &line("total", bytes, compressed);
    text + &format!("budget {budget} bytes after Brotli, {} left\n", budget as i64 - compressed as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, compressed: usize) -> Measured {
        Measured { name: name.into(), bytes: 2 * compressed, compressed }
    }

    #[test]
    fn the_budget_holds_for_the_sum_of_all_files() {
        assert!(within_budget(&[file("a", BUDGET - 1), file("b", 1)], BUDGET).is_ok());
        let error = within_budget(&[file("a", BUDGET), file("b", 1)], BUDGET).unwrap_err().to_string();
        assert_eq!(error, "the page weighs 300001 bytes compressed, over its budget of 300000");
    }

    #[test]
    fn the_table_says_what_is_left() {
        let text = table(&[file("app.wasm", 200_000), file("a.css", 5)], BUDGET);
        assert!(text.contains("app.wasm     400000     200000\n"), "{text}");
        assert!(text.contains("total        400010     200005\n"), "{text}");
        assert!(text.ends_with("99995 left\n"), "{text}");
    }

    #[test]
    fn compression_is_real() {
        let length = compressed_len(&[b'a'; 100_000]).unwrap();
        assert!((1..100).contains(&length), "{length}");
    }
}
