//! A folder of this computer, out of which nothing is read or written.
//!
//! A file is opened segment by segment, each inside the one before, and no link is followed on the way: so nothing
//! outside of the folder is ever touched, whoever changes the folder meanwhile. What is no plain file is not read, and a
//! size is checked before anything is.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, fsync, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use toolshelf_core::digest::to_hex;
use toolshelf_core::shelf::FileFault;

use crate::private::fill_random;

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const OPEN_FOLDER: OFlags = OPEN.union(OFlags::DIRECTORY);

/// An open folder. It stays the same one, whatever becomes of its path.
#[derive(Debug)]
pub struct Folder {
    folder: OwnedFd,
}

/// What tells a file or folder from another of the same path: device and inode.
pub type Identity = (u64, u64);

/// Why a file of a folder was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderFault {
    /// Nothing is there.
    #[error("it is not there")]
    Missing,
    /// It is larger than what was asked for: so many bytes.
    #[error("it is {0} bytes")]
    TooLarge(u64),
    /// It is a link, or is reached through one.
    #[error("it, or a folder on the way, is a link, which is not followed")]
    Link,
    /// It is a folder, a pipe, a device or a socket.
    #[error("it is no plain file")]
    NoFile,
    /// The system says no.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<FolderFault> for FileFault {
    fn from(fault: FolderFault) -> Self {
        match fault {
            FolderFault::Missing => Self::Missing,
            FolderFault::TooLarge(bytes) => Self::TooLarge(bytes),
            other => Self::Unreadable(other.to_string()),
        }
    }
}

impl From<Errno> for FolderFault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            // Linux answers "not a directory" for a link where a folder is wanted.
            Errno::LOOP | Errno::MLINK | Errno::NOTDIR => Self::Link,
            other => Self::Io(other.into()),
        }
    }
}

impl Folder {
    /// Opens the folder at `path`, which must not be a link itself.
    ///
    /// # Errors
    /// [`FolderFault::Missing`], [`FolderFault::Link`] for what is no folder, and what the system says.
    pub fn open(path: &Path) -> Result<Self, FolderFault> {
        Ok(Self { folder: openat(CWD, path, OPEN_FOLDER, Mode::empty())? })
    }

    /// What tells it from another folder of the same path.
    ///
    /// # Errors
    /// What the system says.
    pub fn identity(&self) -> Result<Identity, FolderFault> {
        Ok(identity(&fstat(&self.folder)?))
    }

    /// The folder `name` inside this one.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn enter(&self, name: &str) -> Result<Self, FolderFault> {
        Ok(Self { folder: openat(&self.folder, name, OPEN_FOLDER, Mode::empty())? })
    }

    /// The folder `name` inside this one, made with `mode` where it is missing.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn make(&self, name: &str, mode: u32) -> Result<Self, FolderFault> {
        match mkdirat(&self.folder, name, Mode::from_raw_mode(mode as _)) {
            Ok(()) | Err(Errno::EXIST) => self.enter(name),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a plain file inside this folder with `flags` besides those that keep links out; `mode` is for one that is
    /// made.
    ///
    /// # Errors
    /// [`FolderFault::Missing`], [`FolderFault::Link`], [`FolderFault::NoFile`] and what the system says.
    pub fn open_file(&self, name: &str, flags: OFlags, mode: u32) -> Result<(File, Stat), FolderFault> {
        // Opening a pipe or a device must not wait for anybody.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&self.folder, name, flags, Mode::from_raw_mode(mode as _)) {
            // A folder that is opened for writing, and a pipe or a socket that nobody has at its other end.
            Err(Errno::ISDIR | Errno::NXIO) => return Err(FolderFault::NoFile),
            opened => opened?,
        };
        let about = fstat(&file)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(FolderFault::NoFile);
        }
        Ok((file.into(), about))
    }

    /// Reads a file of at most `most` bytes. `path` has only plain segments.
    ///
    /// # Errors
    /// A [`FolderFault`].
    pub fn read(&self, path: &str, most: usize) -> Result<Vec<u8>, FolderFault> {
        let (folders, name) = split(path);
        let within = self.walk(folders, |at, name| at.enter(name))?;
        let (file, about) = within.as_ref().unwrap_or(self).open_file(name, OFlags::RDONLY, 0)?;
        let bytes = u64::try_from(about.st_size).unwrap_or_default();
        if bytes > most as u64 {
            return Err(FolderFault::TooLarge(bytes));
        }
        // A file that grows meanwhile is read no further than one byte beyond the bound.
        let mut content = Vec::with_capacity(bytes as usize + 1);
        let read = file.take(most as u64 + 1).read_to_end(&mut content)?;
        if read > most { Err(FolderFault::TooLarge(read as u64)) } else { Ok(content) }
    }

    /// Writes a file, and the folders above it. The old file stays until the new one is whole and safe on the disk; the
    /// new one has its permissions. `path` has only plain segments.
    ///
    /// # Errors
    /// A [`FolderFault`]; nothing has changed then, except that folders may have been made.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<(), FolderFault> {
        let (folders, name) = split(path);
        let within = self.walk(folders, |at, name| at.make(name, 0o777))?;
        let within = within.as_ref().unwrap_or(self);
        let kept = match statat(&within.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => match FileType::from_raw_mode(about.st_mode) {
                FileType::RegularFile => Some(Mode::from_raw_mode(about.st_mode & 0o777)),
                FileType::Symlink => return Err(FolderFault::Link),
                _ => return Err(FolderFault::NoFile),
            },
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        let mut random = [0; 8];
        fill_random(&mut random)?;
        let draft = format!(".toolshelf-{}.draft", to_hex(&random));
        let (mut file, _) =
            within.open_file(&draft, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, 0o666)?;
        let written = (|| {
            kept.map_or(Ok(()), |mode| fchmod(&file, mode))?;
            file.write_all(bytes)?;
            file.sync_all()?;
            renameat(&within.folder, &*draft, &within.folder, name)?;
            Ok(())
        })();
        if written.is_err() {
            let _ = unlinkat(&within.folder, &*draft, AtFlags::empty());
            return written;
        }
        within.sync()
    }

    /// Waits until what was made in this folder is safe on the disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> Result<(), FolderFault> {
        Ok(fsync(&self.folder)?)
    }

    /// The last of the folders `path`, each inside the one before; `None` for this one.
    fn walk(
        &self,
        path: &str,
        step: impl Fn(&Self, &str) -> Result<Self, FolderFault>,
    ) -> Result<Option<Self>, FolderFault> {
        let mut at = None;
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            at = Some(step(at.as_ref().unwrap_or(self), segment)?);
        }
        Ok(at)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

/// What tells a file or folder from another of the same path.
#[must_use]
#[allow(clippy::unnecessary_cast, reason = "the types differ from system to system")]
pub fn identity(about: &Stat) -> Identity {
    (about.st_dev as u64, about.st_ino as u64)
}

/// The folders and the name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/tool.wasm"), b"bytes").unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        (dir, folder)
    }

    /// A folder outside, and ways to it: a link to a file, one to a folder, and one that stays inside.
    fn links(dir: &Path) -> tempfile::TempDir {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("tool.wasm"), b"other").unwrap();
        symlink(outside.path().join("tool.wasm"), dir.join("file")).unwrap();
        symlink(outside.path(), dir.join("folder")).unwrap();
        symlink("a/b/tool.wasm", dir.join("inside")).unwrap();
        outside
    }

    #[test]
    fn a_file_in_folders_is_read_and_one_that_is_not_there_is_missing() {
        let (_dir, folder) = folder();
        assert_eq!(folder.read("a/b/tool.wasm", 5).unwrap(), b"bytes");
        assert!(matches!(folder.read("a/b/other.wasm", 5), Err(FolderFault::Missing)));
        assert!(matches!(folder.read("a/c/tool.wasm", 5), Err(FolderFault::Missing)));
    }

    #[test]
    fn one_byte_above_the_bound_is_not_read() {
        let (_dir, folder) = folder();
        assert!(matches!(folder.read("a/b/tool.wasm", 4), Err(FolderFault::TooLarge(5))));
    }

    #[test]
    fn no_link_is_followed_wherever_it_leads() {
        let (dir, folder) = folder();
        let outside = links(dir.path());
        for path in ["file", "folder/tool.wasm", "inside"] {
            assert!(matches!(folder.read(path, 100), Err(FolderFault::Link)), "{path}");
            assert!(matches!(folder.write(path, b"new"), Err(FolderFault::Link)), "{path}");
        }
        assert!(matches!(folder.write("folder/new/x", b"new"), Err(FolderFault::Link)));
        assert_eq!(fs::read(outside.path().join("tool.wasm")).unwrap(), b"other");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        let whole = outside.path().join("shelf");
        symlink(dir.path(), &whole).unwrap();
        assert!(matches!(Folder::open(&whole), Err(FolderFault::Link)));
    }

    #[test]
    fn what_is_no_plain_file_is_refused_at_once() {
        let (dir, folder) = folder();
        rustix::fs::mknodat(CWD, dir.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        for path in ["pipe", "a"] {
            assert!(matches!(folder.read(path, 100), Err(FolderFault::NoFile)), "{path}");
            assert!(matches!(folder.write(path, b"new"), Err(FolderFault::NoFile)), "{path}");
        }
    }

    #[test]
    fn a_file_is_written_whole_into_folders_that_are_made_and_keeps_its_permissions() {
        let (dir, folder) = folder();
        folder.write("new/one/x.txt", b"first").unwrap();
        let path = dir.path().join("new/one/x.txt");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        folder.write("new/one/x.txt", b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft is left");
        assert!(matches!(folder.write("a/b/tool.wasm/x", b""), Err(FolderFault::Link)));
        let long = "n".repeat(300);
        assert!(matches!(folder.write(&long, b""), Err(FolderFault::Io(_))));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_open_folder_stays_the_same_one() {
        let (dir, folder) = folder();
        let a = folder.enter("a").unwrap();
        let before = a.identity().unwrap();
        fs::rename(dir.path().join("a"), dir.path().join("moved")).unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        assert_eq!(a.read("b/tool.wasm", 5).unwrap(), b"bytes");
        assert_ne!(folder.enter("a").unwrap().identity().unwrap(), before);
    }
}
