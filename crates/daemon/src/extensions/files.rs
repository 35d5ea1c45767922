//! Files that are there whole or not at all, and keys that are made once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use tempfile::NamedTempFile;
use zeroize::Zeroizing;

/// What the names of files begin with that are not finished yet. One that is left from a crash may be deleted.
pub(super) const DRAFT_PREFIX: &str = ".draft-";
/// Size of every key that this computer keeps in a file, in bytes.
pub(super) const KEY_BYTES: usize = 32;

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

/// The key in the file `path`, which is made where there is none. Of several programs that make it at the same time,
/// one wins and all use its key.
///
/// # Errors
/// What the system says; a file that others can read or that holds no key is an error, too.
pub(super) fn key_file(path: &Path) -> io::Result<Zeroizing<[u8; KEY_BYTES]>> {
    match read_key(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    let folder = folder_of(path)?;
    make_folder(folder)?;
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    fill_random(&mut *key)?;
    let mut draft = draft_in(folder)?;
    draft.write_all(&*key)?;
    draft.as_file().sync_all()?;
    match draft.persist_noclobber(path) {
        Ok(_) => sync_folder(folder).map(|()| key),
        Err(err) if err.error.kind() == io::ErrorKind::AlreadyExists => read_key(path),
        Err(err) => Err(err.error),
    }
}

fn read_key(path: &Path) -> io::Result<Zeroizing<[u8; KEY_BYTES]>> {
    let file = open_plain(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        let why = format!(
            "others can read {}; make it 0600, and the key anew if that was so for long",
            path.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(KEY_BYTES + 1));
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    let key: [u8; KEY_BYTES] = bytes.as_slice().try_into().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} holds no key of {KEY_BYTES} bytes", path.display()),
        )
    })?;
    Ok(Zeroizing::new(key))
}

/// Fills `bytes` from the system's source of randomness.
///
/// # Errors
/// What the system says.
pub(super) fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(())
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

/// Makes a folder, and those above it, for its owner alone.
///
/// # Errors
/// What the system says.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
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
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

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

    #[test]
    fn a_key_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys/a.key");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| key_file(&path).unwrap())).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| **key == *keys[0] && **key != [0; KEY_BYTES]));
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(key_file(&path).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn what_is_no_key_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.key");
        write_whole(&path, b"short").unwrap();
        assert_eq!(key_file(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(fs::read(&path).unwrap(), b"short");
        let link = dir.path().join("b.key");
        symlink(&path, &link).unwrap();
        assert!(key_file(&link).is_err());
    }
}
