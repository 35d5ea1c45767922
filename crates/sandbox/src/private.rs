//! Files and folders of the host's own: they belong to it and are closed to others.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use toolshelf_core::digest::to_hex;
use zeroize::Zeroizing;

/// Makes the folder at `path` with those above it, if it is missing, for its owner alone.
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The same, and checks that it is closed to others.
///
/// # Errors
/// When it cannot be made, is a link, belongs to somebody else, or is open to others.
pub fn folder(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    let about = fs::symlink_metadata(path)?;
    check(about.is_dir(), &about, path)
}

/// The key of `N` random bytes in the file at `path`, which is made where it is missing. Of several processes that make
/// it at once, all get the same.
///
/// # Errors
/// As [`secret`]; [`InvalidData`](io::ErrorKind::InvalidData) for one of another length.
pub fn key<const N: usize>(path: &Path) -> io::Result<Zeroizing<[u8; N]>> {
    let random = || {
        let mut key = Zeroizing::new(vec![0; N]);
        fill_random(&mut key)?;
        Ok(key)
    };
    let bytes = secret(path, N, random)?;
    let key = bytes.as_slice().try_into().map_err(|_| unfit(path, &format!("is no key of {N} bytes")))?;
    Ok(Zeroizing::new(key))
}

/// The secret in the file at `path`, of at most `most` bytes. Where it is missing, it is what `make` makes. Of several
/// processes that make it at once, all get the same.
///
/// # Errors
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied) when it is a link or no file, belongs to somebody else or is
/// open to others; [`InvalidData`](io::ErrorKind::InvalidData) when it is longer; and when it cannot be made or read.
pub fn secret(
    path: &Path,
    most: usize,
    make: impl FnOnce() -> io::Result<Zeroizing<Vec<u8>>>,
) -> io::Result<Zeroizing<Vec<u8>>> {
    match read_secret(path, most) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => keep_secret(path, most, make()?),
        read => read,
    }
}

/// Fills `bytes` from the system's source of randomness. Until the system has any, this waits.
///
/// # Errors
/// What the system says.
pub fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
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
    let why = format!("{} must belong to you and be closed to others (chmod go=)", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

fn read_secret(path: &Path, most: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = open_no_follow(path).map_err(|err| match Errno::from_io_error(&err) {
        Some(Errno::LOOP) => {
            io::Error::new(io::ErrorKind::PermissionDenied, format!("{} must not be a link", path.display()))
        }
        _ => err,
    })?;
    let about = file.metadata()?;
    check(about.is_file(), &about, path)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most + 1));
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most { Err(unfit(path, &format!("has more than {most} bytes"))) } else { Ok(bytes) }
}

/// Writes a new secret beside its place and puts it there whole. Where another process was faster, its one is taken.
fn keep_secret(path: &Path, most: usize, made: Zeroizing<Vec<u8>>) -> io::Result<Zeroizing<Vec<u8>>> {
    let parent = path.parent().ok_or_else(|| io::Error::other("a path without a folder"))?;
    make_folder(parent)?;
    let mut name = [0; 8];
    fill_random(&mut name)?;
    let draft = path.with_extension(format!("{}.draft", to_hex(&name)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let linked =
        file.write_all(&made).and_then(|()| file.sync_all()).and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    match linked {
        Ok(()) => {
            // A key that is gone after a loss of power takes along what it has sealed.
            File::open(parent)?.sync_all()?;
            Ok(made)
        }
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => read_secret(path, most),
        Err(err) => Err(err),
    }
}

fn unfit(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn all_who_make_a_key_at_once_get_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/folder/some.key");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| key(&path).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]) && *keys[0] != [0; 32]);
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
        let kind = |path: &Path| key::<64>(path).unwrap_err().kind();
        assert_eq!(kind(&good), io::ErrorKind::InvalidData, "too short");
        assert_eq!(kind(&bad), io::ErrorKind::PermissionDenied);
        assert_eq!(key::<16>(&good).unwrap_err().kind(), io::ErrorKind::InvalidData, "too long");
        assert_eq!(fs::read(&good).unwrap().len(), 32, "what is no key is never replaced");
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&good, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(key::<32>(&good).unwrap_err().kind(), io::ErrorKind::PermissionDenied, "{mode:o}");
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
