//! `shelf.lock`: what a person has admitted.
//!
//! It is in the data folder and not beside the shelf: whoever can change a tool can write to the shelf's folder, and would
//! change its lock as well. Each tool has the definition that was admitted, whole, so that a change can be shown; and its
//! hash, so that a file that was changed by hand is found. A tool that goes away keeps its entry, so that it cannot come
//! back as another.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolshelf_core::Digest;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_sandbox::private;

use super::definition::Definition;
use crate::files::{self, Found};

/// The file, in the data folder.
const NAME: &str = "shelf.lock";
/// Held by whoever writes it.
const WRITER: &str = "shelf.lock.writer";
/// The only form that is read.
const VERSION: u32 = 1;
/// Largest file that is read, in bytes.
const FILE_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Most tools that are kept. A shelf has 256 and extensions have a few each.
const PINS_MAX: usize = 10_000;

/// How a definition came to be admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    /// The tool is part of the program.
    Shipped,
    /// The person had it on the shelf.
    Shelf,
    /// The person granted it.
    Grant,
    /// The person looked at it, and approved it.
    Approval,
}

/// A definition that was admitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pin {
    /// Hash of the definition.
    pub(crate) sha256: Digest,
    /// How it came to be admitted.
    pub(crate) by: By,
    /// When, in milliseconds since the beginning of 1970.
    pub(crate) at_unix_ms: u64,
    /// What was admitted.
    pub(crate) definition: Definition,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    tools: BTreeMap<String, Pin>,
}

/// What tells one state of the file from another: inode, size and time of its last change.
pub(super) type Stamp = Option<(u64, u64, i64, i64)>;

/// The lock of a data folder.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    writer: PathBuf,
}

impl Lock {
    pub(super) fn in_folder(data: &Path) -> Self {
        Self { path: data.join(NAME), writer: data.join(WRITER) }
    }

    pub(super) fn stamp(&self) -> Stamp {
        let about = fs::symlink_metadata(&self.path).ok()?;
        Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
    }

    /// What was admitted, by the tools' keys. Where there is no file, nothing was.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`] for a file that is not as it was written: nothing is taken for admitted then.
    pub(super) fn read(&self) -> Result<BTreeMap<String, Pin>, Refusal> {
        let bytes = match files::read(&self.path, FILE_MAX_BYTES) {
            Ok(Found::Whole(bytes)) => bytes,
            Ok(Found::TooLong(_)) => return Err(self.damaged("it is too long")),
            Err(_) if !self.path.exists() => return Ok(BTreeMap::new()),
            Err(refusal) => return Err(refusal),
        };
        let written: Written =
            serde_json::from_slice(&bytes).map_err(|err| self.damaged(&cut(&err.to_string(), 120)))?;
        if written.version != VERSION {
            return Err(self.damaged(&format!("its version is {}, not {VERSION}", written.version)));
        }
        match written.tools.iter().find(|(_, pin)| pin.definition.hash() != pin.sha256) {
            Some((key, _)) => {
                Err(self.damaged(&format!("the definition of {:?} was changed by hand", cut(key, 100))))
            }
            None => Ok(written.tools),
        }
    }

    /// Changes what was admitted, as no other process does at the same time, and answers what holds then.
    ///
    /// # Errors
    /// As [`read`](Self::read), and when it cannot be written.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Pin>),
    ) -> Result<BTreeMap<String, Pin>, Refusal> {
        let _held = self.hold().map_err(|err| {
            Refusal::new(Code::StorageUnavailable, format!("{} cannot be used: {err}", self.writer.display()))
        })?;
        let before = self.read()?;
        let mut tools = before.clone();
        change(&mut tools);
        if tools.len() > PINS_MAX {
            return Err(Refusal::new(
                Code::OverBudget,
                format!("{NAME} would hold more than {PINS_MAX} tools"),
            ));
        }
        if tools != before {
            let written = Written { version: VERSION, tools };
            let mut text = serde_json::to_vec_pretty(&written).unwrap_or_default();
            text.push(b'\n');
            files::replace(&self.path, &text)?;
            return Ok(written.tools);
        }
        Ok(tools)
    }

    fn hold(&self) -> io::Result<File> {
        if let Some(folder) = self.writer.parent() {
            private::make_folder(folder)?;
        }
        let file = File::options().create(true).truncate(false).write(true).open(&self.writer)?;
        file.lock()?;
        Ok(file)
    }

    fn damaged(&self, why: &str) -> Refusal {
        let why = format!(
            "{} is not as it was written: {why}; put it back from a copy, or remove it to admit every tool anew",
            self.path.display()
        );
        Refusal::new(Code::ConfigInvalid, why)
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition::tests::definition;
    use super::*;

    fn pin(definition: Definition) -> Pin {
        Pin { sha256: definition.hash(), by: By::Shelf, at_unix_ms: 1, definition }
    }

    #[test]
    fn what_was_admitted_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::in_folder(dir.path());
        assert_eq!((lock.read().unwrap().len(), lock.stamp()), (0, None));
        let kept = pin(definition("hash", "Hashes"));
        lock.change(|tools| drop(tools.insert("shelf:hash".into(), kept.clone()))).unwrap();
        let stamp = lock.stamp();
        assert!(stamp.is_some());
        lock.change(|_| {}).unwrap();
        assert_eq!(lock.stamp(), stamp, "what does not change is not written");
        assert_eq!(lock.read().unwrap()["shelf:hash"], kept);
    }

    #[test]
    fn a_file_that_was_changed_by_hand_admits_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::in_folder(dir.path());
        lock.change(|tools| drop(tools.insert("shelf:hash".into(), pin(definition("hash", "Hashes")))))
            .unwrap();
        let path = dir.path().join(NAME);
        let text = fs::read_to_string(&path).unwrap();
        for changed in [
            text.replace("Hashes", "Sends"),
            text.replace("\"version\": 1", "\"version\": 2"),
            "{".into(),
            String::new(),
        ] {
            fs::write(&path, changed).unwrap();
            assert_eq!(lock.read().unwrap_err().code, Code::ConfigInvalid);
            assert!(lock.change(BTreeMap::clear).is_err(), "and is not written over");
        }
    }
}
