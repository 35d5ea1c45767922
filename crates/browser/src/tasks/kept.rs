//! Where a page's tasks are kept: in IndexedDB, or in memory where there is none. Whoever listens hears of every write.

use std::fmt;
use std::rc::Rc;

use toolshelf_core::task::TaskRecord;
use toolshelf_host::MemoryJournal;
use toolshelf_host::task_ports::{CallKey, Draft, Durability, Journal, JournalFault, Placed};

use super::journal::IdbJournal;
use super::store::TaskStore;
#[cfg(feature = "api")]
use crate::api::area::AreaJournal;

/// The journal of a page.
#[derive(Clone)]
pub struct PageJournal {
    kept: Kept,
    written: Rc<dyn Fn(&str)>,
}

#[derive(Debug, Clone)]
enum Kept {
    Database(IdbJournal),
    Memory(MemoryJournal),
    #[cfg(feature = "api")]
    Area(AreaJournal),
}

impl PageJournal {
    /// A journal in `store`, or in memory where there is none. `written` is told the address of each task of which something was written.
    pub fn new(store: Option<Rc<TaskStore>>, written: Rc<dyn Fn(&str)>) -> Self {
        let database = store.map(|store| Kept::Database(IdbJournal::new(store)));
        let kept = database.unwrap_or_else(|| Kept::Memory(MemoryJournal::default()));
        Self { kept, written }
    }

    /// The journal in IndexedDB, if it is there.
    #[must_use]
    pub fn database(&self) -> Option<&IdbJournal> {
        match &self.kept {
            Kept::Database(journal) => Some(journal),
            _ => None,
        }
    }
}

#[cfg(feature = "api")]
impl PageJournal {
    /// A journal in that memory, which others may share.
    pub(crate) fn of_memory(memory: MemoryJournal) -> Self {
        Self { kept: Kept::Memory(memory), written: Rc::new(|_| ()) }
    }

    /// A journal in a storage like `localStorage`.
    pub(crate) fn of_area(area: AreaJournal) -> Self {
        Self { kept: Kept::Area(area), written: Rc::new(|_| ()) }
    }
}

impl Journal for PageJournal {
    async fn admit(&self, draft: &Draft, call: &CallKey) -> Result<(), JournalFault> {
        match &self.kept {
            Kept::Database(journal) => journal.admit(draft, call).await?,
            Kept::Memory(journal) => journal.admit(draft, call).await?,
            #[cfg(feature = "api")]
            Kept::Area(journal) => journal.admit(draft, call).await?,
        }
        (self.written)(&draft.event.address);
        Ok(())
    }

    async fn append(&self, draft: &Draft, durability: Durability) -> Result<TaskRecord, JournalFault> {
        let record = match &self.kept {
            Kept::Database(journal) => journal.append(draft, durability).await?,
            Kept::Memory(journal) => journal.append(draft, durability).await?,
            #[cfg(feature = "api")]
            Kept::Area(journal) => journal.append(draft, durability).await?,
        };
        (self.written)(&draft.event.address);
        Ok(record)
    }

    async fn record(&self, address: &str) -> Result<Option<TaskRecord>, JournalFault> {
        match &self.kept {
            Kept::Database(journal) => journal.record(address).await,
            Kept::Memory(journal) => journal.record(address).await,
            #[cfg(feature = "api")]
            Kept::Area(journal) => journal.record(address).await,
        }
    }

    async fn address_of(&self, call: &CallKey) -> Result<Option<String>, JournalFault> {
        match &self.kept {
            Kept::Database(journal) => journal.address_of(call).await,
            Kept::Memory(journal) => journal.address_of(call).await,
            #[cfg(feature = "api")]
            Kept::Area(journal) => journal.address_of(call).await,
        }
    }

    async fn recent(&self, before: Option<u64>, limit: usize) -> Result<Vec<Placed>, JournalFault> {
        match &self.kept {
            Kept::Database(journal) => journal.recent(before, limit).await,
            Kept::Memory(journal) => journal.recent(before, limit).await,
            #[cfg(feature = "api")]
            Kept::Area(journal) => journal.recent(before, limit).await,
        }
    }
}

impl fmt::Debug for PageJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageJournal").field("kept", &self.kept).finish_non_exhaustive()
    }
}
