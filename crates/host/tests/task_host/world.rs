//! One life of a host and the world around it; time stands still until the test lets it pass.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use futures::channel::oneshot;
use futures::executor::LocalPool;
use futures::task::LocalSpawnExt as _;
use serde_json::{Value, json};
use toolshelf_core::RootDescriptor;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::{TaskRecord, TaskState, TaskView};
use toolshelf_host::task_ports::{RunFault, SelectedRoot, Terms};
use toolshelf_host::{Caller, Journal as _, Reply, TaskHost, TaskHostConfig};

pub(crate) use crate::ports::{FakeJournal, FakeLife, FakeSealer, Platform, Script, Shared};

pub(crate) type Answer = Result<Reply, Refusal>;
pub(crate) type Settle = oneshot::Sender<Result<String, RunFault>>;

/// One life of a host, and the world around it.
pub(crate) struct World {
    pool: RefCell<LocalPool>,
    pub(crate) shared: Rc<Shared>,
    pub(crate) journal: FakeJournal,
    pub(crate) host: TaskHost<Platform>,
}

pub(crate) type Pending = Rc<RefCell<Option<Answer>>>;

pub(crate) fn redact(text: &str) -> String {
    text.replace("sk-secret", "[redacted]")
}

pub(crate) fn browser() -> TaskHostConfig {
    TaskHostConfig::browser(Rc::new(redact))
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(browser())
    }

    pub(crate) fn with(config: TaskHostConfig) -> Self {
        let pool = LocalPool::new();
        let root = RootDescriptor::Opfs { path: "v1/tasks".into() };
        let shared = Rc::new(Shared {
            now: Cell::new(1_000.0),
            unix: Cell::new(1_767_225_600_000),
            timers: RefCell::default(),
            deaf_timers: Cell::default(),
            spawner: pool.spawner(),
            scripts: RefCell::default(),
            ran: RefCell::default(),
            terms: RefCell::new(Ok(Terms {
                mechanism: "webassembly".into(),
                deadline_ms: 30_000,
                max_output_bytes: 65_536,
            })),
            executor_is_there: Cell::new(true),
            elsewhere: Cell::default(),
            root: RefCell::new(Some(SelectedRoot { descriptor: root, identity: None })),
            root_check: RefCell::new(Ok(())),
            over: RefCell::default(),
            nonce: Cell::default(),
            wished: Cell::default(),
            updates: RefCell::default(),
        });
        let journal = FakeJournal::default();
        let host = Self::life(config, "boot_1", b"key of the first", &shared, &journal);
        Self { pool: RefCell::new(pool), shared, journal, host }
    }

    fn life(
        config: TaskHostConfig,
        boot: &str,
        key: &[u8],
        shared: &Rc<Shared>,
        journal: &FakeJournal,
    ) -> TaskHost<Platform> {
        let platform = Platform {
            shared: Rc::clone(shared),
            journal: journal.clone(),
            sealer: FakeSealer::new(key, Rc::clone(shared)),
            life: FakeLife { boot: boot.into(), shared: Rc::clone(shared) },
        };
        TaskHost::new(config, platform)
    }

    /// Another life of the same host: another tab, or the page after a reload.
    pub(crate) fn other_life(&self, boot: &str) -> TaskHost<Platform> {
        Self::life(self.host.config().clone(), boot, b"key of the first", &self.shared, &self.journal)
    }

    /// A host of another key.
    pub(crate) fn other_key(&self) -> TaskHost<Platform> {
        Self::life(self.host.config().clone(), "boot_1", b"another key", &self.shared, &self.journal)
    }

    /// Starts a call and lets everything go on that can without time.
    pub(crate) fn start_at(
        &self,
        host: &TaskHost<Platform>,
        tool: &str,
        args: Value,
        caller: Caller,
    ) -> Pending {
        let (host, tool, answer) = (host.clone(), tool.to_owned(), Pending::default());
        let slot = Rc::clone(&answer);
        self.spawn(async move {
            let answer = host.call(&tool, &args, &caller).await;
            *slot.borrow_mut() = Some(answer);
        });
        answer
    }

    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.shared.spawner.spawn_local(future).unwrap();
        self.settle();
    }

    pub(crate) fn call_at(
        &self,
        host: &TaskHost<Platform>,
        tool: &str,
        args: Value,
        caller: Caller,
    ) -> Answer {
        self.start_at(host, tool, args, caller).take().expect("the call answers without time passing")
    }

    pub(crate) fn delegate_as(&self, owner: &str, call_id: &str, task: &str) -> Answer {
        let args = json!({"agent": "hash", "task": task});
        self.call_at(&self.host, "delegate_task", args, Caller::new(owner, call_id))
    }

    pub(crate) fn delegate(&self, call_id: &str) -> Answer {
        self.delegate_as("ann", call_id, "do it")
    }

    /// Delegates a task and answers its address.
    pub(crate) fn task(&self, call_id: &str) -> String {
        self.delegate(call_id).unwrap().task().unwrap().address.clone()
    }

    /// Delegates a task that is held, and answers its address and what lets it go.
    pub(crate) fn held_task(&self, call_id: &str) -> (String, Settle) {
        let (settle, held) = oneshot::channel();
        self.shared.scripts.borrow_mut().push_back(Script::Held(held));
        (self.task(call_id), settle)
    }

    pub(crate) fn script(&self, script: Script) {
        self.shared.scripts.borrow_mut().push_back(script);
    }

    pub(crate) fn status_at(&self, host: &TaskHost<Platform>, address: &str) -> Answer {
        self.call_at(host, "task_status", json!({"address": address}), Caller::new("ann", ""))
    }

    pub(crate) fn view(&self, address: &str) -> TaskView {
        match self.status_at(&self.host, address).unwrap() {
            Reply::Status { task } => task,
            other => panic!("{other:?}"),
        }
    }

    /// The record as it is written.
    pub(crate) fn record(&self, address: &str) -> TaskRecord {
        futures::executor::block_on(self.journal.memory.record(address)).unwrap().unwrap()
    }

    pub(crate) fn state(&self, address: &str) -> TaskState {
        self.view(address).state
    }

    pub(crate) fn start_cancel(&self, address: &str) -> Pending {
        self.start_at(&self.host, "cancel_task", json!({"address": address}), Caller::new("ann", ""))
    }

    /// Lets everything go on that can without time.
    pub(crate) fn settle(&self) {
        self.pool.borrow_mut().run_until_stalled();
    }

    /// Lets time pass, millisecond for millisecond as far as anybody waits for it.
    pub(crate) fn pass(&self, ms: f64) {
        let until = self.shared.now.get() + ms;
        loop {
            self.settle();
            let next = {
                let mut timers = self.shared.timers.borrow_mut();
                timers.sort_by(|a, b| b.0.total_cmp(&a.0));
                let due =
                    timers.last().is_some_and(|timer| timer.0 <= until) && !self.shared.deaf_timers.get();
                if due { timers.pop() } else { None }
            };
            let Some((due, then)) = next else { break };
            self.shared.now.set(self.shared.now.get().max(due));
            then();
        }
        self.shared.now.set(until);
        self.settle();
    }

    /// Fires every timer now, whatever the clock says.
    pub(crate) fn fire_timers(&self) {
        let timers = self.shared.timers.take();
        timers.into_iter().for_each(|(_, then)| then());
        self.settle();
    }
}

pub(crate) fn code(answer: &Answer) -> Code {
    answer.as_ref().unwrap_err().code
}

pub(crate) fn is_existing(answer: &Answer) -> bool {
    matches!(answer, Ok(Reply::Delegated { existing: true, .. }))
}

pub(crate) fn cancelled(pending: &Pending) -> (TaskState, bool) {
    match pending.take().expect("the cancellation answers").unwrap() {
        Reply::Cancelled { state, observed } => (state, observed),
        other => panic!("{other:?}"),
    }
}

/// Numbers that look random and are the same each time.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
