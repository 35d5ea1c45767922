//! A journal in memory: for plain Node, for pages without storage, and for tests. It ends with the life of the host, and
//! whoever uses it says so to the user.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

use toolshelf_core::task::{ReduceFault, Reducer, TaskRecord};

use crate::task_ports::{CallKey, Draft, Durability, Journal, JournalFault, Placed};

/// Tasks that are kept. The oldest that has ended makes room for a new one.
const RECORDS_KEPT: usize = 1_000;

/// The journal. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    kept: Rc<RefCell<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    last_seq: u64,
    tasks: BTreeMap<String, Task>,
    calls: BTreeMap<CallKey, String>,
}

#[derive(Debug)]
struct Task {
    created: u64,
    reducer: Reducer,
}

impl Kept {
    fn write(&mut self, draft: &Draft) -> Result<TaskRecord, ReduceFault> {
        let address = &draft.event.address;
        let task = self.tasks.get(address);
        let mut reducer = task.map_or_else(|| Reducer::new(&**address), |task| task.reducer.clone());
        let seq = self.last_seq + 1;
        reducer.apply(&draft.entry(&reducer, seq)?)?;
        let record = reducer.record().cloned().ok_or(ReduceFault::NoLiveAdmission)?;
        self.last_seq = seq;
        let created = task.map_or(seq, |task| task.created);
        self.tasks.insert(address.clone(), Task { created, reducer });
        Ok(record)
    }

    fn make_room(&mut self) {
        let ended = self
            .tasks
            .iter()
            .filter(|(_, task)| task.reducer.record().is_some_and(|record| record.state.is_terminal()));
        if self.tasks.len() >= RECORDS_KEPT
            && let Some((oldest, _)) = ended.min_by_key(|(_, task)| task.created)
        {
            let oldest = oldest.clone();
            self.tasks.remove(&oldest);
            self.calls.retain(|_, address| *address != oldest);
        }
    }
}

impl Journal for MemoryJournal {
    async fn admit(&self, draft: &Draft, call: &CallKey) -> Result<(), JournalFault> {
        let mut kept = self.kept.borrow_mut();
        if let Some(address) = kept.calls.get(call) {
            return Err(JournalFault::CallTaken(address.clone()));
        }
        kept.make_room();
        kept.write(draft)?;
        kept.calls.insert(call.clone(), draft.event.address.clone());
        Ok(())
    }

    async fn append(&self, draft: &Draft, _durability: Durability) -> Result<TaskRecord, JournalFault> {
        Ok(self.kept.borrow_mut().write(draft)?)
    }

    async fn record(&self, address: &str) -> Result<Option<TaskRecord>, JournalFault> {
        Ok(self.kept.borrow().tasks.get(address).and_then(|task| task.reducer.record().cloned()))
    }

    async fn address_of(&self, call: &CallKey) -> Result<Option<String>, JournalFault> {
        Ok(self.kept.borrow().calls.get(call).cloned())
    }

    async fn recent(&self, before: Option<u64>, limit: usize) -> Result<Vec<Placed>, JournalFault> {
        let kept = self.kept.borrow();
        let below = |task: &&Task| before.is_none_or(|before| task.created < before);
        let mut tasks = BTreeMap::new();
        tasks.extend(kept.tasks.values().filter(below).map(|task| (Reverse(task.created), task)));
        let placed =
            |task: &Task| Some(Placed { position: task.created, record: task.reducer.record()?.clone() });
        Ok(tasks.into_values().take(limit).filter_map(placed).collect())
    }
}
