//! Writing the files that are not what they should be, or only telling which they are.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::sh;

/// Files as they are settled, one after the other.
pub(super) struct Settling {
    check: bool,
    differing: Vec<String>,
}

impl Settling {
    /// With `check`, nothing is written.
    pub(super) fn new(check: bool) -> Self {
        Self { check, differing: Vec::new() }
    }

    /// Sees to it that a file has those bytes. Its path is from the repository's root.
    pub(super) fn settle(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        let file = sh::root().join(path);
        if fs::read(&file).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if self.check {
            self.differing.push(path.to_owned());
            return Ok(());
        }
        println!("writing {path}, {} bytes", bytes.len());
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Fails if a file differs that was not to be written.
    pub(super) fn end(self) -> Result<()> {
        if !self.differing.is_empty() {
            bail!("not what the sources say: {}; run `cargo xtask build-wasm`", self.differing.join(", "));
        }
        Ok(())
    }
}
