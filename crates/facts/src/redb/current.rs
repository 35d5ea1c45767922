//! The file that a store has open, and how it is opened again after it has failed.
//!
//! Once reading, writing or syncing its file has failed, `redb` refuses everything until the file is opened again. So a
//! disk that was full for a moment would take all facts away until the program is started again. Here whoever finds
//! that the file has failed says no, and whoever comes next opens it again: what was acknowledged is there then.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, RwLockWriteGuard};

use ::redb::{Database, ReadableDatabase as _, TransactionError, WriteTransaction};

use super::erase::{self, Missing};
use super::snapshot::Snapshot;
use super::{ERASE_PENDING, FORMAT, META, RedbStore, lock};
use crate::port::FactError;

/// The file as it is now. Erasing puts another one in its place; whoever reads goes on with the one he has.
pub(super) struct Current {
    /// Nothing while a file that has failed is not open again.
    database: Option<Arc<Database>>,
    /// What is read. Made by the first read after a write, and shared by all until the next: opening the tables costs
    /// more than reading a fact.
    snapshot: Option<Arc<Snapshot>>,
}

impl Current {
    pub(super) fn of(database: Database) -> Self {
        Self { database: Some(Arc::new(database)), snapshot: None }
    }

    fn database(&self) -> Result<Arc<Database>, FactError> {
        self.database.clone().ok_or_else(|| FactError::Unavailable("its file is not open".to_owned()))
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").field("open", &self.database.is_some()).finish_non_exhaustive()
    }
}

impl RedbStore {
    /// Looks something up in the tables as they are after the last write.
    pub(super) fn read<T>(
        &self,
        look: impl FnOnce(&Snapshot) -> Result<T, FactError>,
    ) -> Result<T, FactError> {
        self.noticing(|| look(&*self.snapshot()?))
    }

    /// Does work on the file; where the file failed, remembers it.
    pub(super) fn noticing<T>(&self, work: impl FnOnce() -> Result<T, FactError>) -> Result<T, FactError> {
        let end = work();
        if matches!(end, Err(FactError::Unavailable(_))) && self.has_failed() {
            self.faulted.store(true, Ordering::Release);
        }
        end
    }

    /// Begins a write.
    pub(super) fn write(&self, writer: &MutexGuard<'_, u64>) -> Result<WriteTransaction, FactError> {
        self.open_again_if_faulted(writer)?;
        let database = self.database()?;
        Ok(database.begin_write()?)
    }

    /// Ends a write. Who reads from now on sees it.
    pub(super) fn commit(&self, transaction: WriteTransaction) -> Result<(), FactError> {
        transaction.commit()?;
        self.current_mut().snapshot = None;
        Ok(())
    }

    /// Puts a file that holds what the tables hold, and nothing else, in the place of this one.
    pub(super) fn replace_file(&self, writer: &MutexGuard<'_, u64>) -> Result<(), FactError> {
        self.open_again_if_faulted(writer)?;
        let tables = self.database()?.begin_read()?;
        match erase::written_afresh(&tables, &self.path) {
            Ok(fresh) => {
                *self.current_mut() = Current::of(fresh);
                Ok(())
            }
            Err(err) => {
                // Which of the two files has the name now is not known, and what is written goes into the one that has.
                self.faulted.store(true, Ordering::Release);
                Err(err)
            }
        }
    }

    /// Erases what was being deleted when the file was open last.
    pub(super) fn finish_erasing(&self) -> Result<(), FactError> {
        let writer = lock(&self.deletions);
        self.finish_erasing_of(&writer)
    }

    fn finish_erasing_of(&self, writer: &MutexGuard<'_, u64>) -> Result<(), FactError> {
        erase::remove_unfinished(&self.path)?;
        let tables = self.database()?.begin_read()?;
        let pending = tables.open_table(META)?.get(ERASE_PENDING)?.is_some();
        if pending { self.replace_file(writer) } else { Ok(()) }
    }

    /// The tables after the last write.
    fn snapshot(&self) -> Result<Arc<Snapshot>, FactError> {
        if self.faulted.load(Ordering::Acquire) {
            self.open_again_if_faulted(&lock(&self.deletions))?;
        }
        if let Some(snapshot) = &self.current.read().unwrap_or_else(PoisonError::into_inner).snapshot {
            return Ok(Arc::clone(snapshot));
        }
        let mut current = self.current_mut();
        let snapshot = match current.snapshot.take() {
            Some(snapshot) => snapshot,
            None => Arc::new(Snapshot::of(current.database()?)?),
        };
        current.snapshot = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    fn open_again_if_faulted(&self, writer: &MutexGuard<'_, u64>) -> Result<(), FactError> {
        if !self.faulted.load(Ordering::Acquire) {
            return Ok(());
        }
        // A file is open once. Who still reads from it keeps it open for a moment, and then the next one opens it.
        *self.current_mut() = Current { database: None, snapshot: None };
        // One that is gone is not made anew: that would take the loss of all facts for an empty store.
        let database = erase::database(&self.path, Missing::Refuse)?;
        let format = super::number(&database.begin_read()?.open_table(META)?, FORMAT.0)?;
        super::check_format(format)?;
        *self.current_mut() = Current::of(database);
        self.faulted.store(false, Ordering::Release);
        // What cannot be erased yet stays pending, and keeps nobody from the rest.
        let _ = self.finish_erasing_of(writer);
        Ok(())
    }

    /// Has reading or writing the file failed, so that it must be opened again?
    fn has_failed(&self) -> bool {
        let Ok(database) = self.database() else { return true };
        // Looks at that first, and waits for nobody.
        matches!(database.try_begin_write(), Err(TransactionError::Storage(_)))
    }

    fn database(&self) -> Result<Arc<Database>, FactError> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).database()
    }

    fn current_mut(&self) -> RwLockWriteGuard<'_, Current> {
        // Either of its halves is whole, whatever ended in a panic.
        self.current.write().unwrap_or_else(PoisonError::into_inner)
    }
}
