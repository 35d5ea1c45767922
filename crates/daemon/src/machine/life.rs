//! The life of this process: a name, and a lock file of that name that is held until the process is gone.
//!
//! Source: DESIGN 3.9. The system gives the lock back with the process, however it ended. So a lock that is free proves
//! that the life is over, whatever process has its number meanwhile.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use toolshelf_core::digest::to_hex;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_host::Life;
use toolshelf_sandbox::private;

use super::sealer::random;

/// The folder of lock files, in the data folder.
const LIVES: &str = "lives";
const PREFIX: &str = "boot_";
const EXTENSION: &str = "lock";
/// Lock files that nobody holds are kept that long, for the tasks that their lives have left.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The life of this process.
#[derive(Debug)]
pub(crate) struct ProcessLife {
    boot: String,
    lives: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl ProcessLife {
    /// Begins a life. It holds its lock when this is done, so that no task can be admitted by a life that others could
    /// take for over.
    ///
    /// # Errors
    /// [`Code::TaskEnvironmentUnverified`] when the lock cannot be had.
    pub(crate) fn begin(data_dir: &Path) -> Result<Self, Refusal> {
        let lives = data_dir.join(LIVES);
        let begin = || {
            private::folder(&lives)?;
            clear(&lives, SystemTime::now());
            let boot = [PREFIX, &to_hex(&random())].concat();
            let path = path(&lives, &boot);
            let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            // Nobody knows the name yet, except whoever clears; that takes a moment.
            flock(&lock, FlockOperation::LockExclusive)?;
            Ok((boot, lock))
        };
        let (boot, lock) = begin().map_err(|err: io::Error| {
            let why = format!("the lock of this life in {} cannot be had: {err}", lives.display());
            Refusal::new(Code::TaskEnvironmentUnverified, why)
        })?;
        Ok(Self { boot, lives, _lock: lock })
    }

    /// Ends a life of which nobody will ask, because all its tasks have ended: its lock file is not needed any more.
    pub(crate) fn end(&self) {
        let _ = fs::remove_file(path(&self.lives, &self.boot));
    }
}

impl Life for ProcessLife {
    fn boot(&self) -> &str {
        &self.boot
    }

    fn pid(&self) -> Option<u32> {
        Some(std::process::id())
    }

    async fn is_over(&self, boot: &str, pid: Option<u32>) -> bool {
        if !is_boot(boot) {
            return false;
        }
        match private::open_no_follow(&path(&self.lives, boot)) {
            Ok(lock) => is_free(&lock),
            Err(err) if err.kind() == io::ErrorKind::NotFound => pid.is_some_and(is_gone),
            Err(_) => false,
        }
    }
}

/// Whether nobody holds the lock. Several can ask at once.
fn is_free(lock: &File) -> bool {
    flock(lock, FlockOperation::NonBlockingLockShared).is_ok()
}

/// Whether there is no process of that number.
fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Removes the lock files that were made long ago and that nobody holds.
fn clear(lives: &Path, now: SystemTime) {
    for entry in fs::read_dir(lives).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_old = || {
            let made = entry.metadata().ok()?.modified().ok()?;
            Some(now.duration_since(made).ok()? > KEPT)
        };
        let is_lock = path.extension().is_some_and(|extension| extension == EXTENSION);
        if is_lock
            && is_old() == Some(true)
            && private::open_no_follow(&path).is_ok_and(|lock| is_free(&lock))
        {
            let _ = fs::remove_file(path);
        }
    }
}

fn path(lives: &Path, boot: &str) -> PathBuf {
    lives.join(boot).with_extension(EXTENSION)
}

/// Only a name of our own form names a file.
fn is_boot(boot: &str) -> bool {
    let digits = boot.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn lock_files(data: &Path) -> usize {
        fs::read_dir(data.join(LIVES)).unwrap().count()
    }

    /// The number of a process that has ended.
    fn ended_process() -> u32 {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[tokio::test]
    async fn a_life_is_over_when_its_lock_is_free_whoever_has_its_number() {
        let data = tempfile::tempdir().unwrap();
        let (one, other) =
            (ProcessLife::begin(data.path()).unwrap(), ProcessLife::begin(data.path()).unwrap());
        assert_ne!(one.boot(), other.boot());
        let boot = one.boot().to_owned();
        // A number that no process has proves nothing while the lock is held.
        assert!(!other.is_over(&boot, Some(ended_process())).await);
        assert!(!one.is_over(&boot, one.pid()).await);
        drop(one);
        // A number that somebody has proves nothing once the lock is free.
        assert!(other.is_over(&boot, Some(std::process::id())).await);
        assert!(other.is_over(&boot, None).await);
    }

    #[tokio::test]
    async fn without_a_lock_file_only_a_number_that_nobody_has_is_proof() {
        let data = tempfile::tempdir().unwrap();
        let life = ProcessLife::begin(data.path()).unwrap();
        let unknown = [PREFIX, &"0".repeat(32)].concat();
        assert!(life.is_over(&unknown, Some(ended_process())).await);
        for pid in [None, Some(std::process::id()), Some(0), Some(u32::MAX)] {
            assert!(!life.is_over(&unknown, pid).await, "{pid:?}");
        }
        for name in ["", "boot_", "../../task", "boot_../../../../../../../../../../x"] {
            assert!(!life.is_over(name, Some(ended_process())).await, "{name}");
        }
    }

    #[test]
    fn old_lock_files_are_cleared_unless_somebody_holds_them() {
        let data = tempfile::tempdir().unwrap();
        let held = ProcessLife::begin(data.path()).unwrap();
        drop(ProcessLife::begin(data.path()).unwrap());
        let lives = data.path().join(LIVES);
        clear(&lives, SystemTime::now());
        assert_eq!(lock_files(data.path()), 2, "what is not old is kept");
        clear(&lives, SystemTime::now() + KEPT + Duration::from_secs(60));
        assert_eq!(lock_files(data.path()), 1);
        held.end();
        assert_eq!(lock_files(data.path()), 0);
    }

    #[test]
    fn without_a_folder_of_its_own_there_is_no_life() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(LIVES), "").unwrap();
        assert_eq!(ProcessLife::begin(data.path()).unwrap_err().code, Code::TaskEnvironmentUnverified);
    }
}
