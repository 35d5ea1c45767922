//! Files that are there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use tempfile::NamedTempFile;
use toolshelf_sandbox::private::{make_folder, open_no_follow};

/// What the names of files begin with that are not finished yet. One that is left from a crash may be deleted.
pub(super) const DRAFT_PREFIX: &str = ".draft-";

/// Writes `bytes` so that `path` has its old content or the new one, whenever power fails. Only the owner can read it.
///
/// # Errors
/// What the system says; then `path` is as it was.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path)?;
    make_folder(folder)?;
    let mut draft = draft_in(folder)?;
    draft.write_all(bytes)?;
    draft.as_file().sync_all()?;
    draft.persist(path).map_err(|err| err.error)?;
    sync_folder(folder)
}

/// Reads a file of at most `most` bytes; nothing where there is none. No link is followed.
///
/// # Errors
/// What the system says, or that the file is larger.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open_plain(path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err),
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(Some(bytes))
}

/// Holds every other program off that asks for the same lock, until it is dropped. The file stays.
///
/// # Errors
/// What the system says.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    make_folder(folder_of(path)?)?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

/// Deletes what unfinished writes have left in `folder`. Whoever calls must know that none goes on.
///
/// # Errors
/// What the system says.
pub(super) fn clear_drafts(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(DRAFT_PREFIX.as_bytes())
            && entry.file_type()?.is_file()
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Makes sure that names in `folder` outlive a loss of power.
///
/// # Errors
/// What the system says.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn draft_in(folder: &Path) -> io::Result<NamedTempFile> {
    // 0600, as the library makes them.
    tempfile::Builder::new().prefix(DRAFT_PREFIX).tempfile_in(folder)
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("a path without a folder"))
}

/// Opens a plain file without following a link, and without waiting for whoever has the other end of a pipe.
fn open_plain(path: &Path) -> io::Result<File> {
    let file = open_no_follow(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_written_is_whole_private_and_leaves_no_draft() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/file");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(read_bounded(&path, 3).unwrap().unwrap(), b"new");
        assert_eq!(read_bounded(&path, 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_bounded(&dir.path().join("other"), 2).unwrap(), None);
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn drafts_of_a_crash_are_deleted_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".draft-x", "kept", "a.draft-x"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        clear_drafts(dir.path()).unwrap();
        clear_drafts(&dir.path().join("not there")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
