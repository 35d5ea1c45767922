//! Erasing: the file is written afresh from what its tables hold, and takes the place of the old one.
//!
//! What `redb` does with the pages of what is deleted: they are freed two commits later, and then lie in the file as they
//! were until something else needs their room; so do the older copies of every page that was ever written anew, with
//! whatever lay beside. `compact` moves pages to the front and cuts the file's end off, and leaves the free pages
//! between as they are. So there is no telling where copies are, and only a file into which they were never written is
//! known to have none. It costs as much as the store holds; reading goes on meanwhile, writing waits.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use ::redb::backends::FileBackend;
use ::redb::{
    Builder, CursorError, Database, Key, ReadTransaction, ReadableTable as _, TableDefinition, Value,
    WriteTransaction,
};

use super::{CACHE_BYTES, ERASE_PENDING, HISTORY, IDS, LATEST, META};
use crate::port::FactError;

/// What the name of a file that is not finished ends with.
const UNFINISHED: &str = ".erasing";

/// What is done where there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// An empty one is made.
    Make,
    /// It is an error.
    Refuse,
}

/// Opens the database at `path`, or makes one that only its owner can read.
pub(super) fn database(path: &Path, missing: Missing) -> Result<Database, FactError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(missing == Missing::Make).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let backend = FileBackend::new(options.open(path)?)?;
    #[cfg(test)]
    let backend = super::faults::Faulty::over(backend, path);
    Ok(Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(backend)?)
}

/// Removes the file that an erasing has left behind which did not come to its end. Only whoever has the store's own file
/// may do so.
pub(super) fn remove_unfinished(path: &Path) -> Result<(), FactError> {
    match std::fs::remove_file(unfinished(path)) {
        Err(err) if err.kind() != ErrorKind::NotFound => Err(err.into()),
        _ => Ok(()),
    }
}

/// Writes what the tables hold into a file of its own, and puts it in the place of the one at `path`. Nobody may write
/// meanwhile.
pub(super) fn written_afresh(tables: &ReadTransaction, path: &Path) -> Result<Database, FactError> {
    remove_unfinished(path)?;
    let unfinished = unfinished(path);
    let fresh = database(&unfinished, Missing::Make)?;
    let transaction = fresh.begin_write()?;
    copy(tables, &transaction, LATEST)?;
    copy(tables, &transaction, HISTORY)?;
    copy(tables, &transaction, IDS)?;
    copy(tables, &transaction, META)?;
    transaction.open_table(META)?.remove(ERASE_PENDING)?;
    transaction.commit()?;
    // All of it is on the disk now, and so is its name after the second line: at no moment is there no whole store.
    std::fs::rename(&unfinished, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(fresh)
}

/// Copies a table, in the order of its keys.
fn copy<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(), FactError> {
    let from = from.open_table(table)?;
    let mut to = to.open_table(table)?;
    let mut end = to.upper_bound_mut(Bound::<K::SelfType<'_>>::Unbounded)?;
    for entry in from.iter()? {
        let (key, value) = entry?;
        end.insert_before(key.value(), value.value())?;
    }
    Ok(end.close()?)
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(UNFINISHED);
    name.into()
}

impl From<CursorError> for FactError {
    fn from(fault: CursorError) -> Self {
        Self::Unavailable(fault.to_string())
    }
}
