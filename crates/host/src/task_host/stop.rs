//! `cancel_task`.

use std::rc::Rc;

use serde_json::Value;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::task::{TaskEvent, TaskRecord, TaskState};

use super::active::Active;
use super::read::Resolved;
use super::{Inner, Reply, unreadable};
use crate::ports::Clock as _;
use crate::task_ports::{Draft, Durability, Journal as _, JournalFault, TaskPlatform};

/// How often another writer may come first before a cancellation gives up. A task has no longer log than this.
const MAX_ATTEMPTS: usize = 6;
/// A look into the journal costs more than one into memory, so there are as many fewer.
const READING_POLLS: u32 = 4;

impl<P: TaskPlatform> Inner<P> {
    pub(super) async fn cancel(&self, args: &Value, owner: &str) -> Result<Reply, Refusal> {
        let found = self.open(args, owner).await?;
        match self.resolve(found).await? {
            Resolved::Here(task) => self.cancel_here(task).await,
            Resolved::Ended(record) => Err(not_running(record.state)),
            Resolved::Elsewhere(record) | Resolved::HandedOver(record) => {
                self.cancel_elsewhere(*record).await
            }
        }
    }

    /// Tells the executor to stop, and waits a while to see it.
    async fn cancel_here(&self, task: Rc<Active>) -> Result<Reply, Refusal> {
        if task.state().is_terminal() {
            return Err(not_running(task.state()));
        }
        let (clock, journal) = (self.platform.clock(), self.platform.journal());
        let give_up = clock.now_ms() + f64::from(self.config.cancel_grace_ms);
        let nothing_ran = task.state() == TaskState::Queued;
        let next = if nothing_ran { TaskState::Cancelled } else { TaskState::CancelRequested };
        self.change(&task, next, None, None);
        let _ = task.save(journal, Durability::Quiet).await;
        while !task.state().is_terminal() && clock.now_ms() < give_up {
            self.sleep(self.config.cancel_poll_ms).await;
        }
        self.change(&task, TaskState::CancelUnconfirmed, None, None);
        let _ = task.save(journal, Durability::Quiet).await;
        let state = task.state();
        Ok(Reply::Cancelled { state, observed: state.is_terminal() })
    }

    /// Writes down that the task is to stop, and waits a while to see it. The life that has it obeys when it next reads
    /// or writes.
    async fn cancel_elsewhere(&self, mut record: TaskRecord) -> Result<Reply, Refusal> {
        let journal = self.platform.journal();
        for _ in 0..MAX_ATTEMPTS {
            let next = match record.state {
                TaskState::Queued => TaskState::Cancelled,
                TaskState::Running => TaskState::CancelRequested,
                TaskState::CancelRequested => {
                    record = self.watch_elsewhere(record).await?;
                    TaskState::CancelUnconfirmed
                }
                _ => break,
            };
            if record.state.is_terminal() {
                break;
            }
            let draft = Draft { at: self.now(), event: TaskEvent::to(&*record.address, next) };
            record = match journal.append(&draft, Durability::Strict).await {
                Ok(record) => record,
                Err(JournalFault::Rejected(_)) => self.read_elsewhere(&record).await?,
                Err(JournalFault::Refused(refusal)) => return Err(refusal),
                Err(fault) => return Err(cancel_failed(&fault.to_string())),
            };
        }
        match record.state {
            TaskState::Queued | TaskState::Running | TaskState::CancelRequested => {
                Err(cancel_failed("others wrote first each time"))
            }
            state => Ok(Reply::Cancelled { state, observed: state.is_terminal() }),
        }
    }

    /// Reads the task again and again until it has ended or the grace is over.
    async fn watch_elsewhere(&self, mut record: TaskRecord) -> Result<TaskRecord, Refusal> {
        let clock = self.platform.clock();
        let give_up = clock.now_ms() + f64::from(self.config.cancel_grace_ms);
        while !record.state.is_terminal() && clock.now_ms() < give_up {
            self.sleep(READING_POLLS * self.config.cancel_poll_ms).await;
            record = self.read_elsewhere(&record).await?;
        }
        Ok(record)
    }

    async fn read_elsewhere(&self, record: &TaskRecord) -> Result<TaskRecord, Refusal> {
        let written = self.platform.journal().record(&record.address).await.map_err(unreadable)?;
        written.ok_or_else(|| Refusal::new(Code::TaskNotFound, "the task is gone"))
    }
}

fn not_running(state: TaskState) -> Refusal {
    Refusal::new(Code::TaskNotRunning, format!("the task is {} already", state.as_str()))
}

fn cancel_failed(why: &str) -> Refusal {
    Refusal::new(Code::CancelFailed, format!("the request to cancel was not written: {}", cut(why, 120)))
}
