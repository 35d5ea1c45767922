//! The size budget: what a visitor downloads, compressed as a good static host would.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::{build, chunks};

/// What the page loads when it is opened fits into this many bytes after Brotli.
const BUDGET: usize = 300_000;

/// Everything together does: what is loaded when it is opened and what only when it is needed.
const WHOLE_BUDGET: usize = 420_000;

/// Brotli's best quality and its usual window: the files are compressed once and served often.
const QUALITY: u32 = 11;
const WINDOW_BITS: u32 = 22;

/// One file of the page.
#[derive(Debug, PartialEq, Eq)]
struct Measured {
    name: String,
    bytes: usize,
    compressed: usize,
    on_demand: bool,
}

/// Prints the table for the built page and fails when it is over budget.
pub(crate) fn check() -> Result<()> {
    let mut files = measure(&build::existing_dist()?)?;
    files.sort_by_key(|file| (file.on_demand, std::cmp::Reverse(file.compressed)));
    print!("{}", table(&files));
    within_budget(&files)
}

fn within_budget(files: &[Measured]) -> Result<()> {
    let (_, opening) = sum(files.iter().filter(|file| !file.on_demand));
    let (_, whole) = sum(files);
    ensure!(
        opening <= BUDGET,
        "the page loads {opening} bytes compressed when it is opened, over its budget of {BUDGET}"
    );
    ensure!(
        whole <= WHOLE_BUDGET,
        "the page weighs {whole} bytes compressed in all, over its budget of {WHOLE_BUDGET}"
    );
    Ok(())
}

/// The bytes of these files, as they are and compressed.
fn sum<'a>(files: impl IntoIterator<Item = &'a Measured>) -> (usize, usize) {
    files.into_iter().fold((0, 0), |sum, file| (sum.0 + file.bytes, sum.1 + file.compressed))
}

/// Every file counts: there is nothing in the folder that the page does not load, at once or when it is needed.
fn measure(folder: &Path) -> Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for path in files_in(folder)? {
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        let on_demand = path.file_name().is_some_and(|name| chunks::is_chunk(&name.to_string_lossy()));
        measured.push(Measured { name, bytes: bytes.len(), compressed: compressed_len(&bytes)?, on_demand });
    }
    Ok(measured)
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
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

/// What is loaded at once, then what is loaded on demand, each with its sum and what is left of its budget.
fn table(files: &[Measured]) -> String {
    const SUMS: [&str; 2] = ["when it is opened", "in all"];
    let names = files.iter().map(|file| file.name.as_str()).chain(SUMS);
    let width = names.map(str::len).max().unwrap_or(0);
    let line = |name: &str, bytes: usize, compressed: usize, more: &str| {
        format!("{name:width$} {bytes:>10} {compressed:>10}{more}\n")
    };
    let total = |name: &str, (bytes, compressed): (usize, usize), budget: usize| {
        let left = budget as i64 - compressed as i64;
        line(name, bytes, compressed, &format!("  of {budget}, {left} left"))
    };
    let rows = |on_demand: bool, more: &str| {
        let files = files.iter().filter(|file| file.on_demand == on_demand);
        files.map(|file| line(&file.name, file.bytes, file.compressed, more)).collect::<String>()
    };
    [
        format!("{:width$} {:>10} {:>10}\n", "file", "bytes", "brotli"),
        rows(false, ""),
        total(SUMS[0], sum(files.iter().filter(|file| !file.on_demand)), BUDGET),
        rows(true, "  on demand"),
        total(SUMS[1], sum(files), WHOLE_BUDGET),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, compressed: usize) -> Measured {
        Measured { name: name.into(), bytes: 2 * compressed, compressed, on_demand: chunks::is_chunk(name) }
    }

    #[test]
    fn one_budget_is_for_what_is_loaded_at_once_and_one_for_everything() {
        assert!(within_budget(&[file("a", BUDGET - 1), file("b", 1), file("split_c.wasm", 9)]).is_ok());
        let error = within_budget(&[file("a", BUDGET), file("b", 1)]).unwrap_err().to_string();
        assert_eq!(
            error,
            "the page loads 300001 bytes compressed when it is opened, over its budget of 300000"
        );
        let error =
            within_budget(&[file("a", BUDGET), file("split_c.wasm", 120_001)]).unwrap_err().to_string();
        assert_eq!(error, "the page weighs 420001 bytes compressed in all, over its budget of 420000");
    }

    #[test]
    fn the_table_says_what_is_left() {
        let text = table(&[file("app.wasm", 200_000), file("a.css", 5), file("split_c.wasm", 10)]);
        assert!(text.contains("app.wasm              400000     200000\n"), "{text}");
        assert!(text.contains("when it is opened     400010     200005  of 300000, 99995 left\n"), "{text}");
        assert!(text.contains("split_c.wasm              20         10  on demand\n"), "{text}");
        assert!(text.ends_with("200015  of 420000, 219985 left\n"), "{text}");
    }

    #[test]
    fn compression_is_real() {
        let length = compressed_len(&[b'a'; 100_000]).unwrap();
        assert!((1..100).contains(&length), "{length}");
    }
}
