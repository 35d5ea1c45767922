//! From the entries of a log to the record of a task.
//!
//! Source: the reference facts, B3, with one decision of our own: a queued task may be cancelled at once
//! ([`TaskState::may_become`]).
//!
//! [`reduce_task`] answers from a whole log; a [`Reducer`] takes one entry after the other, so that nobody has to read
//! a log again to write into it. A refused entry changes nothing.

use super::record::{LogEntry, TaskRecord, TaskState};
use crate::refusal::{Code, Refusal};

/// Why an entry does not belong where it stands. A log with such an entry is not believed.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum ReduceFault {
    /// Two entries at one position, or one behind its successor.
    #[error("duplicate task event position")]
    DuplicatePosition,
    /// A creation that is not the first event, or does not create a queued task of this address.
    #[error("invalid task creation")]
    InvalidCreation,
    /// An event of a task that was never created or has ended.
    #[error("task event without a live admission")]
    NoLiveAdmission,
    /// A state that cannot follow.
    #[error("invalid task transition")]
    InvalidTransition,
    /// An entry of another writer, or of another root.
    #[error("task writer or root mismatch")]
    WriterMismatch,
}

impl From<ReduceFault> for Refusal {
    fn from(fault: ReduceFault) -> Self {
        Self::new(Code::TaskAuditUnavailable, format!("the journal contradicts itself: {fault}"))
    }
}

/// The record of the task at `address`; `None` when the log does not know it.
///
/// # Errors
/// A [`ReduceFault`] when the task's entries contradict each other.
pub fn reduce_task(entries: &[LogEntry], address: &str) -> Result<Option<TaskRecord>, ReduceFault> {
    let mut entries: Vec<_> = entries.iter().filter(|entry| is_of(&entry.task.address, address)).collect();
    entries.sort_by_key(|entry| entry.seq);
    let mut reducer = Reducer::new(address);
    for entry in entries {
        reducer.apply(entry)?;
    }
    Ok(reducer.into_record())
}

/// Whether two addresses are the same. Addresses of one host begin alike and end in their MACs, so the end is looked at
/// first: a long log is passed over without reading all of each address.
fn is_of(one: &str, other: &str) -> bool {
    const END: usize = 16;
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one.len() == other.len() && one.last_chunk::<END>() == other.last_chunk::<END>() && one == other
}

/// The record of one task, entry by entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reducer {
    address: String,
    last_seq: Option<u64>,
    record: Option<TaskRecord>,
}

impl Reducer {
    /// Knows nothing of the task at `address` yet.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), last_seq: None, record: None }
    }

    /// Goes on from a `record` whose last entry stood at `last_seq`.
    #[must_use]
    pub fn resume(record: TaskRecord, last_seq: u64) -> Self {
        Self { address: record.address.clone(), last_seq: Some(last_seq), record: Some(record) }
    }

    /// The record so far.
    #[must_use]
    pub fn record(&self) -> Option<&TaskRecord> {
        self.record.as_ref()
    }

    /// The record.
    #[must_use]
    pub fn into_record(self) -> Option<TaskRecord> {
        self.record
    }

    /// Whether `entry` may come next. Allocates nothing.
    ///
    /// # Errors
    /// A [`ReduceFault`].
    pub fn check(&self, entry: &LogEntry) -> Result<(), ReduceFault> {
        let event = &entry.task;
        if self.last_seq.is_some_and(|last| entry.seq <= last) {
            return Err(ReduceFault::DuplicatePosition);
        }
        let record = match (&event.created, &self.record) {
            (Some(created), None) => {
                let queued = event.state == TaskState::Queued && created.state == TaskState::Queued;
                if !queued || created.address != self.address || event.address != self.address {
                    return Err(ReduceFault::InvalidCreation);
                }
                created
            }
            (Some(_), Some(_)) => return Err(ReduceFault::InvalidCreation),
            (None, Some(record)) if !record.state.is_terminal() && event.address == self.address => {
                if !record.state.may_become(event.state) {
                    return Err(ReduceFault::InvalidTransition);
                }
                record
            }
            (None, _) => return Err(ReduceFault::NoLiveAdmission),
        };
        if record.instance != entry.instance || !record.root.is_contained_in(&entry.root) {
            return Err(ReduceFault::WriterMismatch);
        }
        Ok(())
    }

    /// Takes `entry`. The record is copied once, when it is created; later texts go where the earlier ones were.
    ///
    /// # Errors
    /// A [`ReduceFault`]; nothing has changed then.
    pub fn apply(&mut self, entry: &LogEntry) -> Result<(), ReduceFault> {
        self.check(entry)?;
        self.last_seq = Some(entry.seq);
        let event = &entry.task;
        let record = match (&mut self.record, &event.created) {
            (Some(record), _) => {
                record.updated_at.clone_from(&entry.at);
                record
            }
            (empty, Some(created)) => empty.insert((**created).clone()),
            // `check` has refused it.
            (None, None) => return Err(ReduceFault::NoLiveAdmission),
        };
        record.state = event.state;
        // What a stored record claims about its end is not believed: the state says it.
        record.outcome = event.state.outcome();
        if event.reason.as_ref().is_some_and(|reason| !reason.is_empty()) {
            record.reason.clone_from(&event.reason);
        }
        replace(&mut record.answer, &event.answer);
        replace(&mut record.progress, &event.progress);
        replace(&mut record.partial, &event.partial);
        Ok(())
    }
}

fn replace(field: &mut Option<String>, value: &Option<String>) {
    if value.is_some() {
        field.clone_from(value);
    }
}
