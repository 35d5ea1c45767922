//! Files and folders of the host's own: they belong to it and are closed to others.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use toolshelf_core::digest::to_hex;

/// Makes the folder at `path` with those above it, if it is missing, and checks that it is closed to others.
///
/// # Errors
/// When it cannot be made, is a link, belongs to somebody else, or is open to others.
pub fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let about = fs::symlink_metadata(path)?;
    check(about.is_dir(), &about, path)
}

/// The key of `N` random bytes in the file at `path`, which is made where it is missing. Of several processes that make
/// it at once, all get the same.
///
/// # Errors
/// When it cannot be made or read, is a link, has another length, belongs to somebody else, or is open to others.
pub fn key<const N: usize>(path: &Path) -> io::Result<[u8; N]> {
    if let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    match open_no_follow(path) {
        Ok(file) => read_key(file, path),
        Err(err) if err.kind() == io::ErrorKind::NotFound => make_key(path),
        Err(err) => Err(err),
    }
}

/// Opens a file for reading that is no link. A pipe or a device is not waited for.
///
/// # Errors
/// When it is not there, is a link, or may not be read.
pub fn open_no_follow(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// What others could read or write is not the host's own.
fn check(right_type: bool, about: &fs::Metadata, path: &Path) -> io::Result<()> {
    let own = about.uid() == rustix::process::geteuid().as_raw();
    if right_type && own && about.mode() & 0o077 == 0 {
        return Ok(());
    }
    let why = format!("{} must belong to you and be closed to others", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

fn read_key<const N: usize>(file: File, path: &Path) -> io::Result<[u8; N]> {
    let about = file.metadata()?;
    check(about.is_file(), &about, path)?;
    let mut bytes = Vec::new();
    file.take(N as u64 + 1).read_to_end(&mut bytes)?;
    bytes.try_into().map_err(|_| {
        let why = format!("{} is no key of {N} bytes", path.display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    })
}

/// Writes a new key beside its place and puts it there whole. Where another process was faster, its key is taken.
fn make_key<const N: usize>(path: &Path) -> io::Result<[u8; N]> {
    let mut key = [0; N];
    rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())?;
    let mut name = [0; 8];
    rustix::rand::getrandom(&mut name, rustix::rand::GetRandomFlags::empty())?;
    let draft = path.with_extension(format!("{}.draft", to_hex(&name)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let linked =
        file.write_all(&key).and_then(|()| file.sync_all()).and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    match linked {
        Ok(()) => {
            // A key that is gone after a loss of power takes along what it has sealed.
            if let Some(parent) = path.parent() {
                File::open(parent)?.sync_all()?;
            }
            Ok(key)
        }
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => read_key(open_no_follow(path)?, path),
        Err(err) => Err(err),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn all_who_make_a_key_at_once_get_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/folder/some.key");
        let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| key(&path).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]) && keys[0] != [0; 32]);
        assert_eq!(key::<32>(&path).unwrap(), keys[0]);
        let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!((left, fs::metadata(&path).unwrap().permissions().mode() & 0o777), (1, 0o600));
    }

    #[test]
    fn a_key_that_is_not_the_hosts_own_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (good, bad) = (dir.path().join("good"), dir.path().join("bad"));
        key::<32>(&good).unwrap();
        symlink(&good, &bad).unwrap();
        assert!(key::<32>(&bad).is_err(), "a link");
        assert!(key::<64>(&good).is_err(), "too short");
        assert!(key::<16>(&good).is_err(), "too long");
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&good, fs::Permissions::from_mode(mode)).unwrap();
            assert!(key::<32>(&good).is_err(), "{mode:o}");
        }
        assert!(key::<32>(dir.path()).is_err(), "a folder");
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        folder(&path).unwrap();
        folder(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).unwrap();
        assert!(folder(&path).is_err());
        symlink(&path, dir.path().join("link")).unwrap();
        assert!(folder(&dir.path().join("link")).is_err());
    }
}
