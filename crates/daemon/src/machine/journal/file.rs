//! The file of one log, and its lock.
//!
//! It is opened anew for each operation, folder by folder and following no link, so that whoever replaces it or a folder
//! above it is noticed. The lock is on the file: one writes or several read, in whatever processes they are.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, OFlags, Stat, fstat, statat};
use rustix::io::Errno;
use toolshelf_core::root::AUDIT_FOLDER;
use toolshelf_core::task::ReduceFault;
use toolshelf_host::task_ports::JournalFault;
use toolshelf_sandbox::folder::{Folder, FolderFault, Identity, identity};

/// How long a lock is waited for. Whoever has it writes one line or reads what is new.
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_POLL: Duration = Duration::from_millis(1);

/// Why a log was not read or written.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub(super) enum LogFault {
    #[error("the task's folder cannot be opened: {0}")]
    Root(String),
    #[error("the folder or the file of the log cannot be used: {0}")]
    Place(String),
    #[error("the log belongs to somebody else, or others can write it")]
    NotOwn,
    #[error("another process keeps the log to itself")]
    Busy,
    #[error("the log was removed, replaced or shortened while it was in use")]
    Replaced,
    #[error("the line at byte {0} of the log cannot be believed: {1}")]
    Line(u64, String),
    #[error("the entry is longer than a line of the log may be")]
    TooLong,
    #[error("the log was not written: {0}")]
    Write(String),
    #[error("the log cannot be read: {0}")]
    Read(String),
    #[error("{0}")]
    Rejected(#[from] ReduceFault),
}

impl From<LogFault> for JournalFault {
    fn from(fault: LogFault) -> Self {
        match fault {
            LogFault::Rejected(fault) => Self::Rejected(fault),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// What an operation does with the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads it. Where there is none, none is made.
    Read,
    /// Writes it. Where there is none, none is made.
    Write,
    /// Writes it. It is made, with its folder, where there is none.
    Make,
}

/// Where a log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogPlace {
    /// The root's folder.
    root: PathBuf,
    /// The file's name.
    name: String,
}

/// A log that is open and locked.
#[derive(Debug)]
pub(super) struct LogFile {
    root: Folder,
    audit: Folder,
    name: String,
    file: File,
    pub(super) identity: Identity,
    pub(super) size: u64,
}

/// What stands at a place.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) root_identity: Identity,
    /// `None` where there is no log.
    pub(super) log: Option<LogFile>,
}

impl LogPlace {
    /// The log of `instance` for the root whose containment string is `contained`.
    pub(super) fn new(root: PathBuf, contained: &str, instance: &str) -> Self {
        Self { root, name: format!("{instance}-{:08x}.jsonl", fnv1a(contained.as_bytes())) }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.root.join(AUDIT_FOLDER).join(&self.name)
    }

    /// Opens and locks the log.
    pub(super) fn open(&self, access: Access) -> Result<Opened, LogFault> {
        let of_root = |fault: FolderFault| LogFault::Root(fault.to_string());
        let root = Folder::open(&self.root).map_err(of_root)?;
        let root_identity = root.identity().map_err(of_root)?;
        let opened = match access {
            Access::Make => root.make(AUDIT_FOLDER, 0o700),
            Access::Read | Access::Write => root.enter(AUDIT_FOLDER),
        };
        let opened = opened.and_then(|audit| {
            let (file, about) = audit.open_file(&self.name, flags(access), 0o600)?;
            Ok((audit, file, about))
        });
        let (audit, file, about) = match opened {
            Err(FolderFault::Missing) => return Ok(Opened { root_identity, log: None }),
            opened => opened.map_err(place)?,
        };
        check_own(&about)?;
        lock(&file, access)?;
        // Somebody may have put another in its place while the lock was waited for.
        let now = statat(&audit, &*self.name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| LogFault::Replaced)?;
        if identity(&now) != identity(&about) {
            return Err(LogFault::Replaced);
        }
        let size = u64::try_from(fstat(&file).map_err(|errno| read(errno.into()))?.st_size);
        let size = size.map_err(|_| LogFault::Read("it has no size".to_owned()))?;
        let log = LogFile { root, audit, name: self.name.clone(), file, identity: identity(&about), size };
        Ok(Opened { root_identity, log: Some(log) })
    }
}

impl LogFile {
    /// Reads up to `most` bytes from `at` on.
    pub(super) fn read_at(&self, at: u64, most: usize) -> Result<Vec<u8>, LogFault> {
        let mut bytes = vec![0; most];
        let mut filled = 0;
        while filled < most {
            match self.file.read_at(&mut bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) => return Err(read(err)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Takes away what stands behind `end`: the beginning of a line that was never finished, and so never
    /// acknowledged.
    pub(super) fn cut(&mut self, end: u64) -> Result<(), LogFault> {
        self.file.set_len(end).and_then(|()| self.file.sync_all()).map_err(write)?;
        self.size = end;
        Ok(())
    }

    /// Writes a line at the end, and comes back when it is safe on the disk and was read back. If that fails, the log is
    /// as it was before.
    pub(super) fn append(&mut self, line: &[u8]) -> Result<(), LogFault> {
        let before = self.size;
        let written = self.write(line).and_then(|()| self.read_back(before, line));
        match written {
            Ok(()) => self.size = before + line.len() as u64,
            // If even that fails, the line is there and will be found; nobody was told that it is.
            Err(_) => drop(self.cut(before)),
        }
        written
    }

    fn write(&self, line: &[u8]) -> Result<(), LogFault> {
        // One call: what others can see of a line that they do not lock out is its beginning or all of it.
        let count = rustix::io::write(&self.file, line).map_err(|errno| write(errno.into()))?;
        if count != line.len() {
            return Err(LogFault::Write(format!("{count} of {} bytes were taken", line.len())));
        }
        self.file.sync_all().map_err(write)?;
        if self.size == 0 {
            // The first line of a file that may just have been made, as may its folder.
            for folder in [&self.audit, &self.root] {
                folder.sync().map_err(|fault| LogFault::Write(fault.to_string()))?;
            }
        }
        Ok(())
    }

    /// Opens the log once more, as a reader would, and looks whether the line is there.
    fn read_back(&self, at: u64, line: &[u8]) -> Result<(), LogFault> {
        let (file, about) = self.audit.open_file(&self.name, OFlags::RDONLY, 0).map_err(place)?;
        let mut found = Vec::with_capacity(line.len());
        let mut reader = ReadFrom { file: &file, at };
        reader.by_ref().take(line.len() as u64).read_to_end(&mut found).map_err(read)?;
        if identity(&about) != self.identity || found != line {
            return Err(LogFault::Write("what was written is not what stands there".to_owned()));
        }
        Ok(())
    }
}

/// Reads a file from a place on, wherever its own position is.
struct ReadFrom<'a> {
    file: &'a File,
    at: u64,
}

impl io::Read for ReadFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Waits for the lock of `file`; the system gives it back when the file is closed.
pub(super) fn lock(file: &File, access: Access) -> Result<(), LogFault> {
    let operation = match access {
        Access::Read => FlockOperation::NonBlockingLockShared,
        Access::Write | Access::Make => FlockOperation::NonBlockingLockExclusive,
    };
    let start = Instant::now();
    loop {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if start.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_POLL),
            Err(Errno::WOULDBLOCK) => return Err(LogFault::Busy),
            Err(errno) => return Err(read(errno.into())),
        }
    }
}

fn flags(access: Access) -> OFlags {
    match access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::RDWR | OFlags::APPEND,
        Access::Make => OFlags::RDWR | OFlags::APPEND | OFlags::CREATE,
    }
}

/// What others can write is no witness.
fn check_own(about: &Stat) -> Result<(), LogFault> {
    let own = about.st_uid == rustix::process::geteuid().as_raw() && about.st_mode & 0o022 == 0;
    if own { Ok(()) } else { Err(LogFault::NotOwn) }
}

fn place(fault: FolderFault) -> LogFault {
    LogFault::Place(fault.to_string())
}

fn read(err: io::Error) -> LogFault {
    LogFault::Read(err.to_string())
}

fn write(err: io::Error) -> LogFault {
    LogFault::Write(err.to_string())
}

/// The 32-bit FNV-1a hash.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_back_is_taken_away_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = LogPlace::new(dir.path().to_owned(), "machine:/srv/x", "machine-1");
        let mut log = place.open(Access::Make).unwrap().log.unwrap();
        log.append(b"first\n").unwrap();
        // Somebody puts another file in its place, between the opening and the writing.
        let aside = place.path().with_extension("aside");
        std::fs::rename(place.path(), &aside).unwrap();
        std::fs::copy(&aside, place.path()).unwrap();
        assert!(matches!(log.append(b"second\n"), Err(LogFault::Write(_))));
        for path in [aside, place.path()] {
            assert_eq!(std::fs::read(path).unwrap(), b"first\n");
        }
        assert_eq!(log.size, 6);
    }

    #[test]
    fn a_log_has_the_documented_name() {
        // Test vectors of the hash's authors.
        for (text, hash) in [("", 0x811c_9dc5), ("a", 0xe40c_292c), ("foobar", 0xbf9c_f968)] {
            assert_eq!(fnv1a(text.as_bytes()), hash);
        }
        let place = LogPlace::new("/srv/x".into(), "machine:/srv/x", "machine-1");
        assert_eq!(place.path(), PathBuf::from("/srv/x/.audit/machine-1-ea40fc49.jsonl"));
    }
}
