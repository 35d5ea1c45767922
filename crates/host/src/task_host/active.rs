//! A task whose executor has not settled, or whose last entries the journal has not taken.
//!
//! A change is made in memory first and at once, so that nothing comes between the look at a state and its successor:
//! that is what fences late completions. Then it is saved, in order. Where another writer was faster, what is written
//! holds.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use futures::lock::Mutex;
use toolshelf_core::refusal::Code;
use toolshelf_core::task::{LogEntry, Reducer, TaskEvent, TaskRecord, TaskState, TaskView, task_view};

use super::report::Reporter;
use super::signal::CancelSignal;
use crate::task_ports::{Draft, Durability, Journal, JournalFault};

/// A task in this life of the host.
#[derive(Debug)]
pub(super) struct Active {
    record: RefCell<TaskRecord>,
    /// Counts the changes, so that a read that began before one does not undo it.
    changes: Cell<u64>,
    unsaved: RefCell<VecDeque<Draft>>,
    saving: Mutex<()>,
    settled: Cell<bool>,
    pub(super) signal: CancelSignal,
    pub(super) report: Reporter,
}

impl Active {
    /// A task that is being admitted.
    pub(super) fn new(record: TaskRecord, report: Reporter) -> Self {
        Self {
            record: RefCell::new(record),
            changes: Cell::default(),
            unsaved: RefCell::default(),
            saving: Mutex::default(),
            settled: Cell::default(),
            signal: CancelSignal::default(),
            report,
        }
    }

    pub(super) fn state(&self) -> TaskState {
        self.record.borrow().state
    }

    pub(super) fn record(&self) -> TaskRecord {
        self.record.borrow().clone()
    }

    /// What the owner sees: the record, with what the executor has said so far.
    pub(super) fn view(&self) -> TaskView {
        let mut view = task_view(&self.record.borrow());
        if !view.state.is_terminal() {
            let live = self.report.live().borrow();
            view.progress = live.progress.clone().or(view.progress);
            view.partial = live.partial.clone().or(view.partial);
        }
        view
    }

    /// Says that the executor has settled, or will never begin.
    pub(super) fn settle(&self) {
        self.settled.set(true);
    }

    /// Whether nothing more will come of it, and the journal has all.
    pub(super) fn is_done(&self) -> bool {
        self.settled.get() && self.is_saved()
    }

    /// Whether it only waits for the journal.
    pub(super) fn lingers(&self) -> bool {
        self.settled.get() && !self.is_saved()
    }

    fn is_saved(&self) -> bool {
        self.unsaved.borrow().is_empty()
    }

    /// Changes the state, if that state may follow. An end takes along what the executor has said.
    pub(super) fn change(
        &self,
        at: String,
        state: TaskState,
        reason: Option<Code>,
        answer: Option<String>,
    ) -> bool {
        let mut record = self.record.borrow_mut();
        let mut event = TaskEvent::to(record.address.as_str(), state);
        event.reason = reason.map(|code| code.as_str().to_owned());
        event.answer = answer;
        if state.is_terminal() {
            let live = self.report.live().borrow();
            event.progress.clone_from(&live.progress);
            event.partial = live.partial.clone().filter(|_| state != TaskState::Completed);
        }
        let entry = LogEntry::of(&record, 1, at, event);
        let mut reducer = Reducer::resume(record.clone(), 0);
        if reducer.apply(&entry).is_err() {
            return false;
        }
        if let Some(changed) = reducer.into_record() {
            *record = changed;
        }
        drop(record);
        self.changes.set(self.changes.get() + 1);
        self.unsaved.borrow_mut().push_back(Draft { at: entry.at, event: entry.task });
        self.follow_state();
        true
    }

    /// Hands the journal what it does not have yet, in order.
    pub(super) async fn save(
        &self,
        journal: &impl Journal,
        durability: Durability,
    ) -> Result<(), JournalFault> {
        let _one_at_a_time = self.saving.lock().await;
        loop {
            let Some(draft) = self.unsaved.borrow().front().cloned() else { return Ok(()) };
            let written = match journal.append(&draft, durability).await {
                Ok(record) => Some(record),
                // Somebody else wrote first; whether the later entries can still follow, the journal knows.
                Err(JournalFault::Rejected(fault)) => match journal.record(&draft.event.address).await? {
                    Some(record) => Some(record),
                    None => {
                        self.unsaved.borrow_mut().clear();
                        return Err(JournalFault::Rejected(fault));
                    }
                },
                Err(fault) => return Err(fault),
            };
            self.unsaved.borrow_mut().pop_front();
            if let Some(record) = written {
                self.adopt(record);
            }
        }
    }

    /// Takes over what other writers have written meanwhile.
    pub(super) async fn refresh(&self, journal: &impl Journal) -> Result<(), JournalFault> {
        self.save(journal, Durability::Quiet).await?;
        let changes = self.changes.get();
        let address = self.record.borrow().address.clone();
        let written = journal.record(&address).await?;
        if self.changes.get() != changes {
            // It changed while the journal was read. Whoever asks is not told an end that is not written down.
            return self.save(journal, Durability::Quiet).await;
        }
        if let Some(record) = written {
            self.adopt(record);
        }
        Ok(())
    }

    /// What is written holds, unless more is to be written.
    fn adopt(&self, record: TaskRecord) {
        if record.state.is_terminal() {
            self.unsaved.borrow_mut().clear();
        }
        if self.is_saved() {
            *self.record.borrow_mut() = record;
            self.follow_state();
        }
    }

    /// Whoever asked the task to stop, here or elsewhere: its executor is told. After an end nothing more is heard.
    fn follow_state(&self) {
        let state = self.state();
        if !matches!(state, TaskState::Queued | TaskState::Running) {
            self.signal.abort();
        }
        if state.is_terminal() {
            self.report.live().borrow_mut().closed = true;
        }
    }
}
