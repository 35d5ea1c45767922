//! The log of tasks: for each root an append-only file of JSON lines in the root's `.audit` folder.
//!
//! | part | duty |
//! |---|---|
//! | `file` | one log's file and its lock |
//! | `log` | one log: what is known of it, catching up with other processes, writing |
//! | `index` | positions and calls over all logs |
//!
//! Several processes write the same log. Whoever appends has the lock, reads what others have written, judges the entry
//! against that, writes it, waits until it is on the disk, and reads it back: so a task never gets two ends. Whether an
//! entry was asked to be kept strictly or as it comes, it is kept strictly.
//!
//! Admissions of all roots take turns, also those of other processes, so that a call has one task. A root that cannot be
//! read then cannot be asked.

mod file;
mod index;
mod log;

#[cfg(test)]
pub(crate) mod conformance;
#[cfg(test)]
pub(crate) mod tests;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolshelf_core::RootDescriptor;
use toolshelf_core::address::Sealed;
use toolshelf_core::task::listing::Moment;
use toolshelf_core::task::{ReduceFault, TaskRecord};
use toolshelf_host::Journal;
use toolshelf_host::task_ports::{CallKey, Draft, Durability, JournalFault, Placed};

use self::file::{Access, LogFault, lock};
use self::index::{Index, RootNumber};
use self::log::{Log, TaskKey};

/// The file, in the data folder, whose lock is the turn to admit.
const ADMISSIONS: &str = "admissions.lock";

/// Who writes the logs.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    /// The environment.
    pub(crate) environment: String,
    /// The writer's name in entries and in the names of logs.
    pub(crate) instance: String,
    /// The epoch of the key that seals addresses.
    pub(crate) key_epoch: String,
}

/// The journal. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FileJournal {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    admissions: PathBuf,
    /// Containment strings of the roots, each with its log.
    logs: Vec<(String, Mutex<Log>)>,
    index: Mutex<Index>,
}

impl FileJournal {
    /// The journal of the roots at `paths`. Nothing is opened yet.
    pub(crate) fn new(data_dir: &Path, paths: &[String], writer: &Writer) -> Self {
        let logs = paths.iter().enumerate().map(|(number, path)| {
            let root = RootDescriptor::Machine { path: path.clone(), environment: None }.to_string();
            let log = Log::new(path.into(), number, root.clone(), writer);
            (root, Mutex::new(log))
        });
        let (logs, admissions) = (logs.collect(), data_dir.join(ADMISSIONS));
        Self { shared: Arc::new(Shared { admissions, logs, index: Mutex::default() }) }
    }

    /// Does what waits for the disk or for a lock in a thread for that.
    async fn in_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, JournalFault> + Send + 'static,
    ) -> Result<T, JournalFault> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.unwrap_or_else(|err| Err(JournalFault::Failed(err.to_string())))
    }

    /// Reads what is new in the log of `root`, and says whether it can be believed.
    pub(crate) async fn check(&self, root: &RootDescriptor) -> Result<(), JournalFault> {
        let root = root.to_string();
        self.in_thread(move |shared| {
            let number = shared.logs.iter().position(|(known, _)| *known == root);
            number.map_or(Ok(()), |number| Ok(shared.log(number).catch_up(&shared.index)?))
        })
        .await
    }

    /// How many entries of other processes were found so far; reads what is new. A log that cannot be read has none.
    pub(crate) async fn found(&self) -> u64 {
        let found = self.in_thread(|shared| {
            let found = |number| {
                let mut log = shared.log(number);
                let _ = log.catch_up(&shared.index);
                log.found()
            };
            Ok((0..shared.logs.len()).map(found).sum())
        });
        found.await.unwrap_or_default()
    }

    /// Every change of a task's state, in order.
    pub(crate) async fn moments(&self, address: &str) -> Result<Vec<Moment>, JournalFault> {
        let address = address.to_owned();
        self.in_thread(move |shared| match shared.find(&address) {
            Some((number, key)) => Ok(shared.log(number).moments(key, &shared.index)?),
            None => Ok(Vec::new()),
        })
        .await
    }
}

impl Shared {
    fn log(&self, number: RootNumber) -> MutexGuard<'_, Log> {
        self.logs[number].1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which log an address belongs to. What it says was checked by whoever checked its MAC.
    fn find(&self, address: &str) -> Option<(RootNumber, TaskKey)> {
        let root = Sealed::split(address).ok()?.locator().ok()?.path;
        let number = self.logs.iter().position(|(known, _)| *known == root)?;
        Some((number, TaskKey::of(address)?))
    }

    fn admit(&self, draft: &Draft, call: &CallKey) -> Result<(), JournalFault> {
        let (number, _) = self.find(&draft.event.address).ok_or(ReduceFault::InvalidCreation)?;
        let _turn = self.turn().map_err(|err| JournalFault::Failed(err.to_string()))?;
        if let Some(address) = self.address_of(call)? {
            return Err(JournalFault::CallTaken(address));
        }
        self.log(number).append(draft, &self.index)?;
        Ok(())
    }

    /// Waits for the turn to admit. Dropping it gives it back.
    fn turn(&self) -> Result<File, LogFault> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let opened = options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(&self.admissions);
        let file = opened.map_err(|err| LogFault::Place(err.to_string()))?;
        lock(&file, Access::Write)?;
        Ok(file)
    }

    /// The address of the task that has `call`, by all logs that can be read.
    fn address_of(&self, call: &CallKey) -> Result<Option<String>, JournalFault> {
        for number in 0..self.logs.len() {
            let _ = self.log(number).catch_up(&self.index);
        }
        let found = self.index().task_of(call);
        let Some((number, key)) = found else { return Ok(None) };
        let record = self.log(number).record(key, &self.index)?;
        Ok(record.map(|record| record.address))
    }

    fn recent(&self, before: Option<u64>, limit: usize) -> Result<Vec<Placed>, JournalFault> {
        let caught_up: Vec<Result<(), LogFault>> =
            (0..self.logs.len()).map(|number| self.log(number).catch_up(&self.index)).collect();
        // One folder that is gone, or one log that is damaged, does not hide the tasks of the others.
        if let Some(Err(fault)) = caught_up.first()
            && caught_up.iter().all(Result::is_err)
        {
            return Err(fault.clone().into());
        }
        let tasks: Vec<_> = {
            let index = self.index();
            index.below(before).filter(|(_, number, _)| caught_up[*number].is_ok()).take(limit).collect()
        };
        let mut placed = Vec::with_capacity(tasks.len());
        for (position, number, key) in tasks {
            let record = self.log(number).record(key, &self.index)?;
            placed.extend(record.map(|record| Placed { position, record }));
        }
        Ok(placed)
    }
}

impl Journal for FileJournal {
    async fn admit(&self, draft: &Draft, call: &CallKey) -> Result<(), JournalFault> {
        let (draft, call) = (draft.clone(), call.clone());
        self.in_thread(move |shared| shared.admit(&draft, &call)).await
    }

    async fn append(&self, draft: &Draft, _durability: Durability) -> Result<TaskRecord, JournalFault> {
        let draft = draft.clone();
        self.in_thread(move |shared| {
            let (number, _) = shared.find(&draft.event.address).ok_or(ReduceFault::NoLiveAdmission)?;
            Ok(shared.log(number).append(&draft, &shared.index)?)
        })
        .await
    }

    async fn record(&self, address: &str) -> Result<Option<TaskRecord>, JournalFault> {
        let address = address.to_owned();
        self.in_thread(move |shared| match shared.find(&address) {
            Some((number, key)) => {
                let record = shared.log(number).record(key, &shared.index)?;
                Ok(record.filter(|record| record.address == address))
            }
            None => Ok(None),
        })
        .await
    }

    async fn address_of(&self, call: &CallKey) -> Result<Option<String>, JournalFault> {
        let call = call.clone();
        self.in_thread(move |shared| shared.address_of(&call)).await
    }

    async fn recent(&self, before: Option<u64>, limit: usize) -> Result<Vec<Placed>, JournalFault> {
        self.in_thread(move |shared| shared.recent(before, limit)).await
    }
}
