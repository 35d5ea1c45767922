//! What a platform provides to the task host.

use std::future::Future;
use std::pin::Pin;

use futures::channel::oneshot;
use toolshelf_core::RootDescriptor;
use toolshelf_core::address::Locator;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::{
    LogEntry, ReduceFault, Reducer, TaskBounds, TaskEvent, TaskInput, TaskRecord, TaskView,
};

use crate::ports::Clock;
use crate::task_host::report::Reporter;
use crate::task_host::signal::CancelSignal;

/// All ports of one task host.
pub trait TaskPlatform: 'static {
    /// The key.
    type Sealer: Sealer;
    /// The log.
    type Journal: Journal;
    /// What executes tasks.
    type Executor: TaskExecutor;
    /// Time.
    type Clock: TaskClock;
    /// Which lives of the host there are.
    type Life: Life;
    /// The folder that tasks work in.
    type Roots: Roots;
    /// What runs futures on their own.
    type Spawner: Spawner;

    /// The key.
    fn sealer(&self) -> &Self::Sealer;
    /// The log.
    fn journal(&self) -> &Self::Journal;
    /// What executes tasks now; `None` when nothing does.
    fn executor(&self) -> Option<Self::Executor>;
    /// Time.
    fn clock(&self) -> &Self::Clock;
    /// Which lives of the host there are.
    fn life(&self) -> &Self::Life;
    /// The folder that tasks work in.
    fn roots(&self) -> &Self::Roots;
    /// What runs futures on their own.
    fn spawner(&self) -> &Self::Spawner;

    /// Whether the tasks that are admitted here run in other lives, which take them over with
    /// [`TaskHost::adopt`](crate::TaskHost::adopt). The journal hands them over when it writes their creation; who has
    /// them is known to those lives alone, so that no end of this one makes them interrupted.
    fn runs_elsewhere(&self) -> bool {
        false
    }

    /// Hears of each change of state that this life makes, as soon as it is made; `owner` is whose task it is. Notes of
    /// progress are not told.
    fn updated(&self, _owner: &str, _task: &TaskView) {}
}

/// HMAC-SHA256 under a key of at least 32 bytes that never leaves the platform.
pub trait Sealer {
    /// The MAC of `bytes`.
    ///
    /// # Errors
    /// When the platform has no key now.
    fn seal(&self, bytes: &[u8]) -> impl Future<Output = Result<[u8; 32], Refusal>>;

    /// Whether `mac` is the MAC of `bytes`, in a time that does not depend on where they differ.
    fn verify(&self, bytes: &[u8], mac: &[u8; 32]) -> impl Future<Output = bool>;

    /// Which key it is: [`key_epoch`](toolshelf_core::address::key_epoch).
    fn epoch(&self) -> &str;

    /// Random bytes that make an address one of its kind.
    fn nonce(&self) -> [u8; 16];
}

/// How surely an entry must be kept before its writing is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// As surely as the platform can: something depends on it.
    Strict,
    /// As it comes; the host goes on when it fails, and tries again later.
    Quiet,
}

/// What is written of a task: an event, and when it happened. The journal numbers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// When, as ISO 8601.
    pub at: String,
    /// What.
    pub event: TaskEvent,
}

impl Draft {
    /// The entry that this is at position `seq`, after what `task` has taken so far. A journal writes it, and lets
    /// `task` take it.
    ///
    /// # Errors
    /// A [`ReduceFault`] when it cannot follow.
    pub fn entry(&self, task: &Reducer, seq: u64) -> Result<LogEntry, ReduceFault> {
        let record = task.record().or(self.event.created.as_deref()).ok_or(ReduceFault::NoLiveAdmission)?;
        let entry = LogEntry::of(record, seq, self.at.clone(), self.event.clone());
        task.check(&entry)?;
        Ok(entry)
    }

    /// The record that `task` is after this, at position `seq`. For journals that keep records.
    ///
    /// # Errors
    /// A [`ReduceFault`] when it cannot follow.
    pub fn record_after(&self, mut task: Reducer, seq: u64) -> Result<TaskRecord, ReduceFault> {
        let entry = self.entry(&task, seq)?;
        task.apply(&entry)?;
        task.into_record().ok_or(ReduceFault::NoLiveAdmission)
    }
}

/// Names a call for good: environment, key epoch, owner and call id, with NULs between them, so that `("a:b", "c")` and
/// `("a", "b:c")` are two calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(String);

impl CallKey {
    /// The key of a call. Only the owner is free text, and it stands between texts without NULs.
    #[must_use]
    pub fn new(environment: &str, key_epoch: &str, owner: &str, call_id: &str) -> Self {
        Self([environment, key_epoch, owner, call_id].join("\0"))
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why the journal did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum JournalFault {
    /// It failed and says why. Nothing was written.
    #[error("{0}")]
    Failed(String),
    /// The entry does not follow what is written; somebody else wrote first.
    #[error("{0}")]
    Rejected(#[from] ReduceFault),
    /// It cannot take or give anything now, for a reason that has a name. Nothing was written.
    #[error("{0}")]
    Refused(Refusal),
    /// The call was admitted already, under this address.
    #[error("the call has a task already")]
    CallTaken(String),
}

/// The append-only log of one writer's tasks. What is appended is written in the name of that writer, for the root and
/// the call of the task's record.
///
/// Each method is one step that no other writer can come between (a transaction, a lock): a journal judges a draft with
/// [`Draft::entry`] against what is written *then*. So two tabs, or two processes, never write
/// two ends of one task.
pub trait Journal {
    /// Writes the creation of a task, as surely as the platform can, and remembers its address under `call`.
    ///
    /// # Errors
    /// [`JournalFault::CallTaken`] when the call has a task; nothing is written then.
    fn admit(&self, draft: &Draft, call: &CallKey) -> impl Future<Output = Result<(), JournalFault>>;

    /// Writes a later event. Answers the record as it is from now on.
    ///
    /// # Errors
    /// [`JournalFault::Rejected`] when the event cannot follow; nothing is written then.
    fn append(
        &self,
        draft: &Draft,
        durability: Durability,
    ) -> impl Future<Output = Result<TaskRecord, JournalFault>>;

    /// The record of the task at `address`.
    ///
    /// # Errors
    /// [`JournalFault::Failed`] and [`JournalFault::Rejected`] when the log cannot be read or contradicts itself.
    fn record(&self, address: &str) -> impl Future<Output = Result<Option<TaskRecord>, JournalFault>>;

    /// The address of the task that `call` delegated.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn address_of(&self, call: &CallKey) -> impl Future<Output = Result<Option<String>, JournalFault>>;

    /// Up to `limit` records, the newest first, of those whose position is below `before`; of all when that is `None`.
    /// Costs what it answers, however many there are.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn recent(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Placed>, JournalFault>>;
}

/// A record, and where its task was created in the journal. Later tasks have greater positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The position.
    pub position: u64,
    /// The record.
    pub record: TaskRecord,
}

/// What an executor is asked before a task is admitted.
#[derive(Debug, Clone, Copy)]
pub struct Check<'a> {
    /// What is to be done.
    pub input: &'a TaskInput,
    /// Where.
    pub root: &'a RootDescriptor,
    /// In which environment.
    pub environment: &'a str,
    /// In which placement.
    pub placement: Placement,
    /// The deadline that the caller would like, in milliseconds.
    pub deadline_ms: Option<u32>,
}

/// What an executor promises. The numbers are its own words; the host checks them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// How it executes, in a few words; never empty.
    pub mechanism: String,
    /// Wall-clock deadline, in milliseconds.
    pub deadline_ms: u64,
    /// Most bytes of the answer.
    pub max_output_bytes: u64,
}

/// A task to be run, frozen at its admission.
#[derive(Debug)]
pub struct TaskRun {
    /// What is to be done.
    pub input: TaskInput,
    /// Within which bounds.
    pub bounds: TaskBounds,
    /// Where.
    pub root: RootDescriptor,
    /// Says when to stop.
    pub signal: CancelSignal,
    /// Takes notes of progress and what there is of an answer.
    pub report: Reporter,
}

/// How a run ends without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFault {
    /// It stopped because it was asked to. An adapter answers this for what its platform throws on an abort.
    Cancelled,
    /// It was interrupted from outside, and nobody knows what it has done.
    Interrupted,
    /// It answered something that is no text.
    InvalidResult,
    /// It refused for a reason that has a name.
    Refused(Code),
    /// Anything else.
    Failed,
}

/// Executes tasks. It is a claimant: what it answers is recorded as claimed, not as true.
pub trait TaskExecutor: 'static {
    /// Whether it takes the task, and what it promises. Answers at once: an answer that has to be waited for promises
    /// nothing, so that an adapter refuses it as [`Code::UnboundedExecutor`], and so it does with one that cannot check
    /// or run at all.
    ///
    /// # Errors
    /// The executor's own refusal; without a code of its own, [`Code::UnboundedExecutor`].
    fn check(&self, check: Check<'_>) -> Result<Terms, Refusal>;

    /// Runs the task. The host counts the task as active until this future ends, whatever the task's state.
    fn run(&self, run: TaskRun) -> impl Future<Output = Result<String, RunFault>>;
}

/// Time, and the date.
pub trait TaskClock: Clock {
    /// Milliseconds since the beginning of 1970, as the platform believes. May jump in both directions; no deadline
    /// depends on it.
    fn unix_ms(&self) -> u64;

    /// Ends after `ms` milliseconds. A platform whose timers can be taken back does so when this is dropped: a deadline
    /// that is met must not keep a process alive.
    fn sleep(&self, ms: u32) -> impl Future<Output = ()> {
        let (sender, woken) = oneshot::channel();
        let wake = move || {
            let _ = sender.send(());
        };
        self.after(ms, Box::new(wake));
        async {
            let _ = woken.await;
        }
    }
}

/// The lives of the host: page lives, processes. One life has one host for each environment; two would each take the
/// other's tasks for given up.
pub trait Life {
    /// Name of this life.
    fn boot(&self) -> &str;

    /// Number of this life's process, where there is one.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// Whether the life `boot` is known to be over. Not to know is `false`.
    fn is_over(&self, boot: &str, pid: Option<u32>) -> impl Future<Output = bool>;
}

/// The root that is selected, and what tells it from another of the same path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedRoot {
    /// The root.
    pub descriptor: RootDescriptor,
    /// Device and inode, on a machine.
    pub identity: Option<(u64, u64)>,
}

/// The folder that tasks work in.
pub trait Roots {
    /// The root that new tasks get; `None` when none is selected.
    fn selected(&self) -> Option<SelectedRoot>;

    /// Whether the root of an address is still the one of its admission.
    ///
    /// # Errors
    /// [`Code::TaskRootUnavailable`] and [`Code::TaskRootReplaced`].
    fn check_unchanged(&self, _locator: &Locator) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Runs futures on their own.
pub trait Spawner {
    /// Runs `future` to its end. It is not polled before this returns.
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()>>>);
}
