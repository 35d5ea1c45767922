//! The size budget: what a visitor downloads, compressed as a good static host would.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::{build, chunks, offline, single};

/// Brotli's best quality and its usual window: the files are compressed once and served often.
const QUALITY: u32 = 11;
const WINDOW_BITS: u32 = 22;

/// When a file is downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum When {
    /// When the page is opened.
    Opening,
    /// When a part of the page is first used.
    OnDemand,
    /// Once the page is open: the service worker and what an installation needs.
    Later,
}

impl When {
    const ALL: [Self; 3] = [Self::Opening, Self::OnDemand, Self::Later];

    /// The page registers its service worker when the app has started; that one then asks for all files.
    /// Those of the page come from the browser's own cache, or as "not modified", unless the host forbids keeping them.
    /// The manifest and the icons are asked for by it, and by a browser that could install the page, once that is open.
    fn of(name: &str) -> Self {
        let file = name.rsplit('/').next().unwrap_or(name);
        if [offline::WORKER, offline::MANIFEST].contains(&name) || name.starts_with(offline::ICONS) {
            Self::Later
        } else if chunks::is_chunk(file) {
            Self::OnDemand
        } else {
            Self::Opening
        }
    }

    /// So many bytes, after Brotli, may be downloaded then.
    fn budget(self) -> usize {
        match self {
            Self::Opening => 300_000,
            Self::OnDemand => 570_000,
            Self::Later => 10_000,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Opening => "when it is opened",
            Self::OnDemand => "when a part is first used",
            Self::Later => "once it is open",
        }
    }
}

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
    print!("{}", table(&files));
    for when in When::ALL {
        within_budget(&files, when)?;
    }
    single::check()
}

fn within_budget(files: &[Measured], when: When) -> Result<()> {
    let (_, total) = sum(files, when);
    let (budget, words) = (when.budget(), when.words());
    ensure!(total <= budget, "the page loads {total} bytes compressed {words}, over its budget of {budget}");
    Ok(())
}

/// The bytes of the files that are downloaded then, as they are and compressed.
fn sum(files: &[Measured], when: When) -> (usize, usize) {
    let files = files.iter().filter(|file| When::of(&file.name) == when);
    files.fold((0, 0), |sum, file| (sum.0 + file.bytes, sum.1 + file.compressed))
}

/// Every file of the folder counts, for one of the budgets.
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

/// What is downloaded when, each with its sum and what is left of its budget.
fn table(files: &[Measured]) -> String {
    let names = files.iter().map(|file| file.name.as_str()).chain(When::ALL.map(When::words));
    let width = names.map(str::len).max().unwrap_or(0);
    let line = |name: &str, bytes: usize, compressed: usize, more: &str| {
        format!("{name:width$} {bytes:>10} {compressed:>10}{more}\n")
    };
    let mut text = format!("{:width$} {:>10} {:>10}\n", "file", "bytes", "brotli");
    for when in When::ALL {
        for file in files.iter().filter(|file| When::of(&file.name) == when) {
            text += &line(&file.name, file.bytes, file.compressed, "");
        }
        let (bytes, compressed) = sum(files, when);
        let (budget, left) = (when.budget(), when.budget() as i64 - compressed as i64);
        text += &line(when.words(), bytes, compressed, &format!("  of {budget}, {left} left"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, compressed: usize) -> Measured {
        Measured { name: name.into(), bytes: 2 * compressed, compressed }
    }

    #[test]
    fn each_budget_holds_for_the_sum_of_its_files() {
        let budget = When::Opening.budget();
        let files = [file("a", budget - 1), file("b", 1), file("app-1/split_c.wasm", 570_001)];
        assert!(within_budget(&files, When::Opening).is_ok());
        let error = within_budget(&files, When::OnDemand).unwrap_err().to_string();
        assert_eq!(
            error,
            "the page loads 570001 bytes compressed when a part is first used, over its budget of 570000"
        );
    }

    #[test]
    fn the_table_says_what_is_left() {
        let files = [file("app.wasm", 200_000), file("a.css", 5), file("split_c.wasm", 10), file("sw.js", 3)];
        let text = table(&files);
        assert!(text.contains("app.wasm                      400000     200000\n"), "{text}");
        assert!(
            text.contains("when it is opened             400010     200005  of 300000, 99995 left\n"),
            "{text}"
        );
        assert!(text.contains("10  of 570000, 569990 left\n"), "{text}");
        assert!(text.ends_with("3  of 10000, 9997 left\n"), "{text}");
    }

    #[test]
    fn compression_is_real() {
        let length = compressed_len(&[b'a'; 100_000]).unwrap();
        assert!((1..100).contains(&length), "{length}");
    }
}
