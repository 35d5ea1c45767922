//! The task host: delegates, watches and cancels tasks of one environment, the same in a page and on a machine.
//!
//! | module | idea |
//! |---|---|
//! | `admit` | `delegate_task`: the checks in their order, the place, the address, the first entry |
//! | `run` | one task, from its first entry to its end |
//! | `read` | `task_status`: from an address to a view; tasks of lives that are over |
//! | `stop` | `cancel_task` |
//! | `active` | a task in this life, and what of it the journal does not have yet |
//! | [`config`] | what tells one host from another |
//! | [`reply`] | who calls, and what is answered |
//! | [`report`] | what an executor says while it runs |
//! | [`signal`] | the word to stop |
//! | [`memory`] | a journal that forgets, for where there is no storage |
//!
//! Where the sources leave it open, this host decides:
//! - *The place is taken after the look for a stored call*, in one stretch with the checks of root and executor and
//!   before the first await that follows. So a repeat of a known call answers although all places are taken.
//! - *`running` is written strictly*, before the executor starts. If the journal does not take it, the task fails with
//!   `task-persistence-failed` and nothing runs.
//! - *Later entries that the journal did not take* are kept in memory and tried again, after a while and at each read.
//!   When too many tasks linger like that, nothing new is admitted.
//! - *A task that another life still has* keeps its state and is shown as stale; only a life that is known to be over
//!   makes it interrupted. A request to cancel it is written down, and the life that has it obeys when it next
//!   reads or writes ([`TaskHost::heed`]).
//! - *A queued task is cancelled at once*: nothing has run that could be asked to stop.
//! - *An executor that claims to be cancelled though nobody asked* has failed, with `task-cancelled` as the reason.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use serde_json::Value;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::task::listing::Filter;
use toolshelf_core::task::time::iso_time;
use toolshelf_core::task::{TaskRecord, TaskState, TaskView};

use crate::task_ports::{Journal as _, JournalFault, Placed, TaskClock as _, TaskPlatform};

mod active;
mod admit;
mod capacity;
pub mod config;
mod in_flight;
pub mod memory;
mod read;
pub mod reply;
pub mod report;
mod run;
pub mod signal;
mod stop;

use active::Active;
use admit::SealedAhead;
use capacity::Capacity;
pub use config::{Redact, TaskHostConfig};
use in_flight::InFlight;
pub use memory::MemoryJournal;
use read::{Found, Resolved};
pub use reply::{Batch, Caller, Listed, Reply, Wish};

/// The tools of a task host.
pub const TASK_TOOLS: [&str; 3] = ["delegate_task", "task_status", "cancel_task"];

/// So many tasks are read at a time where a filter passes over some.
const FILTERED_AT_A_TIME: usize = 200;

/// The host. Clones share it.
pub struct TaskHost<P: TaskPlatform> {
    inner: Rc<Inner<P>>,
}

impl<P: TaskPlatform> Clone for TaskHost<P> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner) }
    }
}

struct Inner<P> {
    config: TaskHostConfig,
    platform: P,
    /// Tasks whose executors have not settled or that the journal has not taken, by address.
    tasks: RefCell<BTreeMap<String, Rc<Active>>>,
    capacity: Capacity,
    in_flight: InFlight,
    sealed_ahead: RefCell<Option<SealedAhead>>,
}

impl<P: TaskPlatform> fmt::Debug for TaskHost<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHost")
            .field("config", &self.inner.config)
            .field("active", &self.active_tasks())
            .field("in_memory", &self.inner.tasks.borrow().len())
            .finish_non_exhaustive()
    }
}

impl<P: TaskPlatform> TaskHost<P> {
    /// A host over the platform's ports, with the bounds of its placement.
    pub fn new(config: TaskHostConfig, platform: P) -> Self {
        // Where tasks run elsewhere, those who run them hold their number.
        let here = config.placement.bounds().max_active_tasks;
        let capacity = Capacity::new(if platform.runs_elsewhere() { usize::MAX } else { here });
        let (tasks, in_flight, sealed_ahead) = (RefCell::default(), InFlight::default(), RefCell::default());
        Self { inner: Rc::new(Inner { config, platform, tasks, capacity, in_flight, sealed_ahead }) }
    }

    /// What tells this host from another.
    #[must_use]
    pub fn config(&self) -> &TaskHostConfig {
        &self.inner.config
    }

    /// The ports.
    #[must_use]
    pub fn platform(&self) -> &P {
        &self.inner.platform
    }

    /// Tasks that hold a place: their executors have not settled.
    #[must_use]
    pub fn active_tasks(&self) -> usize {
        self.inner.capacity.taken()
    }

    /// Calls one of the [`TASK_TOOLS`].
    ///
    /// # Errors
    /// The refusal that names what stands against it.
    pub async fn call(&self, tool: &str, args: &Value, caller: &Caller) -> Result<Reply, Refusal> {
        let inner = &self.inner;
        inner.config.check_environment()?;
        let owner = check_owner(caller)?;
        match tool {
            "delegate_task" => inner.delegate(args, owner, caller.call_id.as_deref(), &caller.wish).await,
            "task_status" => inner.status(args, owner).await,
            "cancel_task" => inner.cancel(args, owner).await,
            _ => {
                let why = format!("{:?} is no tool of tasks; there are {TASK_TOOLS:?}", cut(tool, 64));
                Err(Refusal::new(Code::UnknownTool, why))
            }
        }
    }

    /// Tasks of which more may come: their executors have not settled, or the journal has not taken their ends.
    #[must_use]
    pub fn unfinished_tasks(&self) -> usize {
        self.inner.tasks.borrow().len()
    }

    /// What the owner of a task that runs here is shown, without a look into the journal.
    #[must_use]
    pub fn view(&self, address: &str) -> Option<TaskView> {
        self.inner.active(address).map(|task| task.view())
    }

    /// Runs a task that another life has admitted, and that nobody else runs. Ends when its executor has settled and the
    /// journal has what came of it. A task that runs already, of a life that is over, goes on from its beginning.
    ///
    /// # Errors
    /// [`Code::TaskCapacityExhausted`], [`Code::ExecutorUnavailable`], and [`Code::TaskNotRunning`] for a task that has
    /// ended or runs here.
    pub async fn adopt(&self, record: TaskRecord) -> Result<(), Refusal> {
        Rc::clone(&self.inner).adopt(record).await
    }

    /// Reads again what is written about a task that runs here, such as another life's request to cancel it, and tells
    /// the platform when that has changed its state. For platforms that hear when another life has written.
    pub async fn heed(&self, address: &str) {
        let inner = &self.inner;
        if let Some(task) = inner.active(address) {
            let before = task.state();
            let _ = task.refresh(inner.platform.journal()).await;
            if task.state() != before {
                inner.platform.updated(&task.record().owner, &task.view());
            }
            inner.forget_if_done(&task);
        }
    }

    /// The caller's tasks among the next `limit` of the journal, the newest first, from `before` on downwards.
    ///
    /// # Errors
    /// [`Code::TaskOwnerUnverified`], and [`Code::TaskAuditUnavailable`] when the journal cannot be read.
    pub async fn recent(&self, caller: &Caller, before: Option<u64>, limit: usize) -> Result<Batch, Refusal> {
        let owner = check_owner(caller)?;
        let inner = &self.inner;
        let placed = inner.platform.journal().recent(before, limit).await.map_err(unreadable)?;
        let next = placed.last().filter(|_| placed.len() == limit).map(|last| last.position);
        let mut tasks = Vec::new();
        for Placed { position, record } in placed {
            if record.owner == owner {
                tasks.push(inner.listed(position, record).await?);
            }
        }
        Ok(Batch { tasks, next })
    }

    /// Up to `limit` of the caller's tasks that `filter` admits, the newest first, from `before` on downwards.
    ///
    /// # Errors
    /// As [`recent`](Self::recent).
    pub async fn list(
        &self,
        caller: &Caller,
        filter: Filter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Batch, Refusal> {
        let mut listed = Batch { tasks: Vec::new(), next: before };
        loop {
            let wanted = limit - listed.tasks.len();
            // What is not filtered is read in one go.
            let batch = if filter == Filter::All { wanted } else { FILTERED_AT_A_TIME };
            let Batch { tasks, next } = self.recent(caller, listed.next, batch).await?;
            for task in tasks.into_iter().filter(|task| filter.admits(task.view.state)) {
                listed.next = Some(task.position);
                listed.tasks.push(task);
                if listed.tasks.len() == limit {
                    return Ok(listed);
                }
            }
            listed.next = next;
            if next.is_none() {
                return Ok(listed);
            }
        }
    }
}

impl<P: TaskPlatform> Inner<P> {
    /// This moment, as it is written.
    fn now(&self) -> String {
        iso_time(self.platform.clock().unix_ms())
    }

    /// Changes a task now, if the state may follow, and says so.
    fn change(&self, task: &Active, state: TaskState, reason: Option<Code>, answer: Option<String>) -> bool {
        let changed = task.change(self.now(), state, reason, answer);
        if changed {
            self.platform.updated(&task.record().owner, &task.view());
        }
        changed
    }

    async fn sleep(&self, ms: u32) {
        self.platform.clock().sleep(ms).await;
    }

    /// A task as its host lists it.
    async fn listed(&self, position: u64, record: TaskRecord) -> Result<Listed, Refusal> {
        let found = match self.active(&record.address) {
            Some(task) => Found::Here(task),
            None => Found::Stored(Box::new(record)),
        };
        let resolved = self.resolve_fresh(found).await?;
        let here = matches!(resolved, Resolved::Here(_));
        Ok(Listed { position, view: resolved.view(), record: resolved.into_record(), here })
    }

    fn active(&self, address: &str) -> Option<Rc<Active>> {
        self.tasks.borrow().get(address).map(Rc::clone)
    }

    /// Forgets a task of which nothing more will come.
    fn forget_if_done(&self, task: &Active) {
        if task.is_done() {
            self.tasks.borrow_mut().remove(&task.record().address);
        }
    }
}

fn check_owner(caller: &Caller) -> Result<&str, Refusal> {
    let owner = caller.owner.as_deref().filter(|owner| !owner.trim().is_empty());
    owner.ok_or_else(|| Refusal::new(Code::TaskOwnerUnverified, "nobody has said who calls"))
}

fn unreadable(fault: JournalFault) -> Refusal {
    if let JournalFault::Refused(refusal) = fault {
        return refusal;
    }
    let why = format!("the journal cannot be read: {}", cut(&fault.to_string(), 120));
    Refusal::new(Code::TaskAuditUnavailable, why)
}
