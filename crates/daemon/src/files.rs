//! Reading what the caller names, and writing a file whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;
use toolshelf_core::refusal::{Code, Refusal};

/// What a read found: the bytes, or that there are more than the bound; then their number where it is known.
pub(crate) enum Found {
    /// All bytes.
    Whole(Vec<u8>),
    /// More than the bound. Of a pipe nobody knows how many.
    TooLong(u64),
}

/// Reads a file, or the standard input for `-`, of at most `most` bytes. A plain file's size is looked at before.
///
/// # Errors
/// [`Code::FileUnavailable`].
pub(crate) fn read(path: &Path, most: u64) -> Result<Found, Refusal> {
    if path == Path::new("-") {
        return take(io::stdin().lock(), most).map_err(|err| unavailable(path, &err));
    }
    let read = || {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if about.is_file() && about.len() > most {
            return Ok(Found::TooLong(about.len()));
        }
        take(file, most)
    };
    read().map_err(|err| unavailable(path, &err))
}

fn take(from: impl Read, most: u64) -> io::Result<Found> {
    let mut bytes = Vec::new();
    let read = from.take(most + 1).read_to_end(&mut bytes)? as u64;
    Ok(if read > most { Found::TooLong(read) } else { Found::Whole(bytes) })
}

/// Puts a file in its place whole, so that a reader sees the old one or the new one. It keeps its permissions.
///
/// # Errors
/// [`Code::FileUnavailable`].
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Refusal> {
    let write = || {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut draft = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        draft.write_all(bytes)?;
        let kept = fs::metadata(path).map(|about| about.permissions());
        draft.as_file().set_permissions(kept.unwrap_or_else(|_| readable()))?;
        draft.as_file().sync_all()?;
        draft.persist(path).map_err(|err| err.error).map(drop)
    };
    write().map_err(|err| unavailable(path, &err))
}

/// What a new file gets: everybody may read it, as modules and manifests are no secrets.
fn readable() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

pub(crate) fn unavailable(path: &Path, err: &io::Error) -> Refusal {
    Refusal::new(Code::FileUnavailable, format!("{}: {err}", path.display()))
}
