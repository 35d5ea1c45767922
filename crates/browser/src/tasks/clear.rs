//! Taking ended tasks out of the journal, and putting them back.

use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::TaskState;

use super::journal::Removed;
use super::listing::Filter;
use super::{BATCH, Tasks, unreadable};

/// Tasks that were cleared, and can be put back.
#[derive(Clone, Debug)]
pub struct Cleared {
    removed: Vec<Removed>,
}

impl Cleared {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.removed.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty()
    }
}

impl Tasks {
    /// Takes all ended tasks that `filter` admits out of the journal.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`]; nothing is removed then.
    pub async fn clear(&self, filter: Filter) -> Result<Cleared, Refusal> {
        let Some(journal) = self.inner.journal.database() else {
            let why = "without a database tasks are forgotten with the page";
            return Err(Refusal::new(Code::StorageUnavailable, why));
        };
        let ended = |state: TaskState| state.is_terminal() && filter.admits(state);
        let (mut rows, mut before) = (Vec::new(), None);
        loop {
            let batch = journal.rows(before, BATCH).await.map_err(unreadable)?;
            let Some(last) = batch.last() else { break };
            before = Some(last.position as u64);
            rows.extend(batch.into_iter().filter(|kept| ended(kept.record.state)));
        }
        let removed = journal.remove(&rows).await.map_err(unreadable)?;
        self.many_changed();
        Ok(Cleared { removed })
    }

    /// Puts them back.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`].
    pub async fn restore(&self, cleared: Cleared) -> Result<(), Refusal> {
        if let Some(journal) = self.inner.journal.database() {
            journal.restore(cleared.removed).await.map_err(unreadable)?;
        }
        self.many_changed();
        Ok(())
    }
}
