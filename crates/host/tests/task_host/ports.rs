//! The ports of a platform that does what a test says.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::future::{Future, pending};
use std::pin::Pin;
use std::rc::Rc;

use futures::channel::oneshot;
use futures::executor::LocalSpawner;
use futures::task::LocalSpawnExt as _;
use toolshelf_core::Digest;
use toolshelf_core::address::{key_epoch, key_epoch_input};
use toolshelf_core::refusal::Refusal;
use toolshelf_core::task::{ReduceFault, TaskRecord, TaskState, TaskView};
use toolshelf_host::ports::Clock;
use toolshelf_host::task_ports::{
    CallKey, Check, Draft, Durability, JournalFault, Placed, RunFault, SelectedRoot, TaskRun, Terms,
};
use toolshelf_host::{
    Journal, Life, MemoryJournal, Roots, Sealer, Spawner, TaskClock, TaskExecutor, TaskPlatform,
};

/// What the executor does with the next task.
pub(crate) enum Script {
    /// Answers at once.
    Answer(Result<String, RunFault>),
    /// Answers what the test says when it says it, and heeds no signal.
    Held(oneshot::Receiver<Result<String, RunFault>>),
    /// Stops when it is asked to.
    Obeys,
    /// Never settles.
    Never,
    /// Panics.
    Panics,
    /// Says notes and partial answers, then is held.
    Says(Vec<String>, oneshot::Receiver<Result<String, RunFault>>),
}

#[derive(Clone)]
pub(crate) struct Executor(pub(crate) Rc<Shared>);

#[derive(Clone)]
pub(crate) struct Platform {
    pub(crate) shared: Rc<Shared>,
    pub(crate) journal: FakeJournal,
    pub(crate) sealer: FakeSealer,
    pub(crate) life: FakeLife,
}

/// When it fires, and what it does.
pub(crate) type Timer = (f64, Box<dyn FnOnce()>);

/// What all lives of the host share: the world around them.
pub(crate) struct Shared {
    pub(crate) now: Cell<f64>,
    pub(crate) unix: Cell<u64>,
    pub(crate) timers: RefCell<Vec<Timer>>,
    pub(crate) deaf_timers: Cell<bool>,
    pub(crate) spawner: LocalSpawner,
    pub(crate) scripts: RefCell<VecDeque<Script>>,
    pub(crate) ran: RefCell<Vec<TaskRun>>,
    pub(crate) terms: RefCell<Result<Terms, Refusal>>,
    pub(crate) executor_is_there: Cell<bool>,
    /// Whether what is admitted runs in other lives.
    pub(crate) elsewhere: Cell<bool>,
    pub(crate) root: RefCell<Option<SelectedRoot>>,
    pub(crate) root_check: RefCell<Result<(), Refusal>>,
    pub(crate) over: RefCell<HashSet<String>>,
    pub(crate) nonce: Cell<u64>,
    pub(crate) wished: Cell<Option<u32>>,
    pub(crate) updates: RefCell<Vec<(String, TaskState)>>,
}

/// The memory journal, but its writes and reads fail as the test says.
#[derive(Clone, Default)]
pub(crate) struct FakeJournal {
    pub(crate) memory: MemoryJournal,
    pub(crate) writes: Rc<RefCell<Vec<(TaskState, Durability)>>>,
    /// Which of the next writes fail.
    pub(crate) failing: Rc<RefCell<VecDeque<bool>>>,
    pub(crate) all_fail: Rc<Cell<bool>>,
    pub(crate) reads_fail: Rc<Cell<bool>>,
    /// The next admission waits for this.
    pub(crate) held: Rc<RefCell<Option<oneshot::Receiver<()>>>>,
    /// The next later write waits for this.
    pub(crate) held_append: Rc<RefCell<Option<oneshot::Receiver<()>>>>,
}

impl FakeJournal {
    fn write(&self, draft: &Draft, durability: Durability) -> Result<(), JournalFault> {
        let fails = self.failing.borrow_mut().pop_front().unwrap_or(false) || self.all_fail.get();
        if fails {
            return Err(JournalFault::Failed("disk full".into()));
        }
        self.writes.borrow_mut().push((draft.event.state, durability));
        Ok(())
    }

    fn read(&self) -> Result<(), JournalFault> {
        if self.reads_fail.get() { Err(JournalFault::Rejected(ReduceFault::WriterMismatch)) } else { Ok(()) }
    }
}

impl Journal for FakeJournal {
    async fn admit(&self, draft: &Draft, call: &CallKey) -> Result<(), JournalFault> {
        let held = self.held.take();
        if let Some(held) = held {
            let _ = held.await;
        }
        // Whether the call has a task is part of this step.
        self.read()?;
        self.write(draft, Durability::Strict)?;
        self.memory.admit(draft, call).await
    }

    async fn append(&self, draft: &Draft, durability: Durability) -> Result<TaskRecord, JournalFault> {
        let held = self.held_append.take();
        if let Some(held) = held {
            let _ = held.await;
        }
        self.write(draft, durability)?;
        self.memory.append(draft, durability).await
    }

    async fn record(&self, address: &str) -> Result<Option<TaskRecord>, JournalFault> {
        self.read()?;
        self.memory.record(address).await
    }

    async fn address_of(&self, call: &CallKey) -> Result<Option<String>, JournalFault> {
        self.read()?;
        self.memory.address_of(call).await
    }

    async fn recent(&self, before: Option<u64>, limit: usize) -> Result<Vec<Placed>, JournalFault> {
        self.read()?;
        self.memory.recent(before, limit).await
    }
}

/// A keyed hash; what a real key would do is not the host's matter.
#[derive(Clone)]
pub(crate) struct FakeSealer {
    key: Vec<u8>,
    epoch: String,
    shared: Rc<Shared>,
}

impl FakeSealer {
    pub(crate) fn new(key: &[u8], shared: Rc<Shared>) -> Self {
        Self { key: key.to_vec(), epoch: key_epoch(&Digest::of(&key_epoch_input(key))), shared }
    }

    fn mac(&self, bytes: &[u8]) -> [u8; 32] {
        let hex = Digest::of(&[&self.key, bytes].concat()).to_string();
        std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
    }
}

impl Sealer for FakeSealer {
    async fn seal(&self, bytes: &[u8]) -> Result<[u8; 32], Refusal> {
        Ok(self.mac(bytes))
    }

    async fn verify(&self, bytes: &[u8], mac: &[u8; 32]) -> bool {
        self.mac(bytes) == *mac
    }

    fn epoch(&self) -> &str {
        &self.epoch
    }

    fn nonce(&self) -> [u8; 16] {
        self.shared.nonce.set(self.shared.nonce.get() + 1);
        u128::from(self.shared.nonce.get()).to_be_bytes()
    }
}

#[derive(Clone)]
pub(crate) struct FakeLife {
    pub(crate) boot: String,
    pub(crate) shared: Rc<Shared>,
}

impl Life for FakeLife {
    fn boot(&self) -> &str {
        &self.boot
    }

    fn pid(&self) -> Option<u32> {
        Some(4_242)
    }

    async fn is_over(&self, boot: &str, pid: Option<u32>) -> bool {
        assert_eq!(pid, Some(4_242));
        self.shared.over.borrow().contains(boot)
    }
}

impl Clock for Shared {
    fn now_ms(&self) -> f64 {
        self.now.get()
    }

    fn after(&self, ms: u32, then: Box<dyn FnOnce()>) {
        self.timers.borrow_mut().push((self.now.get() + f64::from(ms), then));
    }
}

impl TaskClock for Shared {
    fn unix_ms(&self) -> u64 {
        self.unix.get()
    }
}

impl Roots for Shared {
    fn selected(&self) -> Option<SelectedRoot> {
        self.root.borrow().clone()
    }

    fn check_unchanged(&self, _: &toolshelf_core::address::Locator) -> Result<(), Refusal> {
        self.root_check.borrow().clone()
    }
}

impl Spawner for Shared {
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()>>>) {
        self.spawner.spawn_local(future).unwrap();
    }
}

impl TaskExecutor for Executor {
    fn check(&self, check: Check<'_>) -> Result<Terms, Refusal> {
        assert!(!check.input.task.is_empty() && !check.environment.is_empty());
        self.0.wished.set(check.deadline_ms);
        self.0.terms.borrow().clone()
    }

    async fn run(&self, run: TaskRun) -> Result<String, RunFault> {
        let (signal, report) = (run.signal.clone(), run.report.clone());
        self.0.ran.borrow_mut().push(run);
        let script = self.0.scripts.borrow_mut().pop_front();
        match script.unwrap_or_else(|| Script::Answer(Ok("done".into()))) {
            Script::Answer(answer) => answer,
            Script::Held(held) => held.await.unwrap_or(Err(RunFault::Failed)),
            Script::Obeys => {
                signal.aborted().await;
                Err(RunFault::Cancelled)
            }
            Script::Never => pending().await,
            Script::Panics => panic!("the executor panics, as this test wants"),
            Script::Says(notes, held) => {
                for note in notes {
                    report.note(&note);
                    report.partial(&note);
                }
                held.await.unwrap_or(Err(RunFault::Failed))
            }
        }
    }
}

impl TaskPlatform for Platform {
    type Sealer = FakeSealer;
    type Journal = FakeJournal;
    type Executor = Executor;
    type Clock = Shared;
    type Life = FakeLife;
    type Roots = Shared;
    type Spawner = Shared;

    fn sealer(&self) -> &FakeSealer {
        &self.sealer
    }
    fn journal(&self) -> &FakeJournal {
        &self.journal
    }
    fn executor(&self) -> Option<Executor> {
        self.shared.executor_is_there.get().then(|| Executor(Rc::clone(&self.shared)))
    }
    fn clock(&self) -> &Shared {
        &self.shared
    }
    fn life(&self) -> &FakeLife {
        &self.life
    }
    fn roots(&self) -> &Shared {
        &self.shared
    }
    fn spawner(&self) -> &Shared {
        &self.shared
    }
    fn runs_elsewhere(&self) -> bool {
        self.shared.elsewhere.get()
    }

    fn updated(&self, owner: &str, task: &TaskView) {
        self.shared.updates.borrow_mut().push((owner.to_owned(), task.state));
    }
}
