//! Who runs: one process, which takes tasks out of the cluster's queue, one at a time for each of its places.
//!
//! While it runs tasks it gives signs of life. Where none of them has been taken for a lease, it ends what it runs: then
//! another may have taken it over. What it could not write it writes when the cluster is there again, if it is still
//! its own to write.

mod platform;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use futures::StreamExt as _;
use tokio::sync::watch;
use toolshelf_core::digest::to_hex;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::time::iso_time;
use toolshelf_core::task::{TaskEvent, TaskState, TaskView};
use toolshelf_host::task_ports::{Draft, Durability};
use toolshelf_host::{Journal as _, TaskClock as _, TaskHost};
use toolshelf_sandbox::{HostClock, private};

use self::platform::{Lease, WorkerExecutor, WorkerPlatform};
use super::config::ClusterConfig;
use super::connection::{ClusterFault, Connection};
use super::front::ClusterRoot;
use super::journal::{Claimed, NatsJournal};
use super::modules::Arrived;
use super::presence::{Presence, PresentAgent, is_gone};
use super::stored::{Claim, Stored};
use super::view::Note;
use super::{config_of, names, sealer};
use crate::config::Agent;
use crate::machine::agent::Supervisor;
use crate::machine::executor::MachineExecutor;
use crate::machine::roots::MachineRoots;
use crate::machine::sealer::random;
use crate::shelf::Shelf;

/// How long one request for a task stays open.
const OPEN: Duration = Duration::from_secs(20);
/// How long a place waits after the queue could not be asked.
const PAUSE: Duration = Duration::from_millis(500);
/// How often notes of executors are told.
const NOTES: Duration = Duration::from_millis(500);
/// Signs of life in one lease.
const BEATS: u32 = 5;
/// How long an order waits whose task is not there yet, and how often.
const NOT_YET: Duration = Duration::from_millis(200);
const MOST_NOT_YETS: i64 = 50;
/// How long the end of this process waits for the ends of its tasks.
const DRAIN: Duration = Duration::from_secs(6);
const DRAIN_POLL: Duration = Duration::from_millis(20);
/// The folder of the modules that have arrived, in the data folder; each life has one of its own there.
const SHELVES: &str = "cluster";

/// What a worker is made of.
#[derive(Debug)]
pub(crate) struct WorkerOptions {
    /// What people call it.
    pub(crate) name: String,
    /// The folder of modules that arrive.
    pub(crate) data_dir: PathBuf,
    /// The folder that agents work in.
    pub(crate) root: PathBuf,
    /// The agents of `toolshelf.toml`.
    pub(crate) agents: BTreeMap<String, Agent>,
    /// Tasks that it runs at a time.
    pub(crate) slots: usize,
}

/// A worker. Clones share it.
#[derive(Clone)]
pub(crate) struct Worker {
    inner: Rc<Inner>,
}

struct Inner {
    id: String,
    options: WorkerOptions,
    connection: Connection,
    queue: PullConsumer,
    host: TaskHost<WorkerPlatform>,
    shelf: Rc<Shelf>,
    arrived: Arrived,
    running: RefCell<HashMap<String, Running>>,
    /// Keys of the tasks whose orders are looked at.
    taking: RefCell<HashSet<String>>,
    done: Cell<u64>,
    started_ms: u64,
    stopping: watch::Sender<bool>,
}

/// A task that runs here.
struct Running {
    address: String,
    owner: String,
    /// The agent, as the task names it.
    agent: String,
    message: Rc<Message>,
    told: Option<TaskView>,
}

impl Worker {
    /// Connects, and gets ready to run tasks.
    ///
    /// # Errors
    /// What the cluster or this computer says.
    pub(crate) async fn open(config: &ClusterConfig, options: WorkerOptions) -> Result<Self, Refusal> {
        let connection = Connection::open(config, &format!("toolshelf worker {}", options.name)).await?;
        let queue = connection.queue().await?;
        let sealer = sealer::open(&connection).await?;
        let (environment, instance) = names(&sealer.host_id());
        let id = to_hex(&random());
        let folder = options.data_dir.join(SHELVES).join(&id);
        for folder in [&options.data_dir, &options.data_dir.join(SHELVES), &options.root] {
            make_folder(folder)?;
        }
        let arrived = Arrived::empty(&folder)?;
        let shelf = Rc::new(crate::shelf::for_many_calls(Some(folder))?);
        let roots = MachineRoots::new(std::slice::from_ref(&options.root), &environment)?;
        let root = roots.choose(None)?.descriptor;
        let agents = options.agents.clone();
        let machine =
            MachineExecutor::new(Rc::clone(&shelf), roots, agents, Supervisor::this(), Rc::new(|_, _, _| {}));
        let lease = watch::Sender::new(Lease::default());
        let platform = WorkerPlatform {
            sealer,
            journal: NatsJournal::of_worker(connection.clone(), id.clone()),
            executor: WorkerExecutor { machine, root, lease },
            clock: HostClock::new(),
            root: ClusterRoot::of(&environment),
            boot: id.clone(),
        };
        let started_ms = platform.clock.unix_ms();
        let host = TaskHost::new(config_of(environment, instance), platform);
        let inner = Inner {
            id,
            options,
            connection,
            queue,
            host,
            shelf,
            arrived,
            running: RefCell::default(),
            taking: RefCell::default(),
            done: Cell::default(),
            started_ms,
            stopping: watch::Sender::new(false),
        };
        // Known before anybody hears that it is there.
        inner.beat(0).await;
        Ok(Self { inner: Rc::new(inner) })
    }

    /// The worker's life.
    pub(crate) fn id(&self) -> &str {
        &self.inner.id
    }

    /// Runs tasks until `end`, then waits a while for those that run.
    pub(crate) async fn run(&self, end: impl Future<Output = ()>) {
        let inner = &self.inner;
        let background = [
            tokio::task::spawn_local(Rc::clone(inner).beats()),
            tokio::task::spawn_local(Rc::clone(inner).notes()),
            tokio::task::spawn_local(Rc::clone(inner).cancels()),
        ];
        for _ in 0..inner.options.slots {
            tokio::task::spawn_local(Rc::clone(inner).place());
        }
        end.await;
        inner.stopping.send_replace(true);
        let drained = async {
            while !inner.running.borrow().is_empty() {
                tokio::time::sleep(DRAIN_POLL).await;
            }
        };
        if tokio::time::timeout(DRAIN, drained).await.is_err() {
            inner.executor().machine.end();
            let written = async {
                while inner.host.unfinished_tasks() > 0 {
                    tokio::time::sleep(DRAIN_POLL).await;
                }
            };
            let _ = tokio::time::timeout(DRAIN, written).await;
        }
        background.iter().for_each(tokio::task::JoinHandle::abort);
        let _ = inner.connection.workers.purge(&inner.id).await;
        let _ = std::fs::remove_dir_all(inner.options.data_dir.join(SHELVES).join(&inner.id));
    }
}

impl Inner {
    fn executor(&self) -> &WorkerExecutor {
        &self.host.platform().executor
    }

    fn journal(&self) -> &NatsJournal {
        &self.host.platform().journal
    }

    fn now(&self) -> u64 {
        self.host.platform().clock.unix_ms()
    }

    /// Takes one task after the other.
    async fn place(self: Rc<Self>) {
        let mut stopping = self.stopping.subscribe();
        while !*stopping.borrow() {
            let taken = tokio::select! {
                taken = self.next() => taken,
                _ = stopping.changed() => return,
            };
            match taken {
                Some(message) => self.handle(Rc::new(message)).await,
                None => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// The next order; `None` when the queue could not be asked.
    async fn next(&self) -> Option<Message> {
        loop {
            let mut batch = self.queue.batch().max_messages(1).expires(OPEN).messages().await.ok()?;
            match batch.next().await {
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) => return None,
                None if self.connection.is_connected() => {}
                None => return None,
            }
        }
    }

    /// Does what an order asks for. Whatever goes wrong, the order comes again.
    async fn handle(&self, message: Rc<Message>) {
        let key = String::from_utf8_lossy(&message.payload).into_owned();
        if self.running.borrow().contains_key(&key) || !self.taking.borrow_mut().insert(key.clone()) {
            // The same order a second time; who has it keeps it.
            return;
        }
        let _taking = Taking { inner: self, key: key.clone() };
        // Who is not heard of has no right to begin.
        let _ = self.executor().lease.subscribe().wait_for(|lease| !lease.is_lost).await;
        match self.take(&key, &message).await {
            Ok(Some(stored)) => self.run(key, *stored, message).await,
            Ok(None) => {}
            Err(fault) => {
                tracing::warn!(task = key, error = fault.to_string(), "a task could not be taken");
                let _ = message.ack_with(AckKind::Nak(Some(PAUSE))).await;
            }
        }
    }

    /// Takes the task of an order, if it is to be run here.
    async fn take(&self, key: &str, message: &Message) -> Result<Option<Box<Stored>>, ClusterFault> {
        let mut gone: Option<Claim> = None;
        loop {
            match self.journal().claim(key, gone.as_ref(), self.now()).await? {
                Claimed::Mine(stored) => return Ok(Some(stored)),
                Claimed::Ended => {
                    let _ = message.ack().await;
                    return Ok(None);
                }
                Claimed::Missing => {
                    let tried = message.info().map_or(0, |info| info.delivered);
                    let answer =
                        if tried > MOST_NOT_YETS { AckKind::Term } else { AckKind::Nak(Some(NOT_YET)) };
                    let _ = message.ack_with(answer).await;
                    return Ok(None);
                }
                Claimed::Anothers(stored) => {
                    let Some(claim) = stored.claim else { return Ok(None) };
                    let _ = message.ack_with(AckKind::Progress).await;
                    if !is_gone(&self.connection, &claim.worker, key).await? {
                        let _ = message.ack_with(AckKind::Nak(Some(self.connection.config.lease()))).await;
                        return Ok(None);
                    }
                    tracing::info!(task = key, worker = claim.worker, "the worker of a task is gone");
                    gone = Some(claim);
                }
            }
        }
    }

    /// Runs a task that is this worker's, to its end.
    async fn run(&self, key: String, stored: Stored, message: Rc<Message>) {
        let mut record = stored.record;
        let running = Running {
            address: record.address.clone(),
            owner: record.owner.clone(),
            agent: record.input.agent.clone(),
            message: Rc::clone(&message),
            told: None,
        };
        self.running.borrow_mut().insert(key.clone(), running);
        let ready = match &stored.work.tool {
            Some(pin) => {
                self.arrived.fetch(&self.connection, &self.shelf, &record.input.agent, pin).await.map(Some)
            }
            None => Ok(None),
        };
        let address = record.address.clone();
        let result = match ready {
            Ok(local) => {
                record.input.agent = local.unwrap_or(record.input.agent);
                self.host.adopt(record).await
            }
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = result {
            self.fail(&address, &refusal).await;
        }
        self.running.borrow_mut().remove(&key);
        self.journal().let_go(&key);
        self.done.set(self.done.get() + 1);
        // Where the word is lost, the order comes again and finds that the task has ended.
        let _ = message.ack().await;
    }

    /// Ends a task that cannot be run here.
    async fn fail(&self, address: &str, refusal: &Refusal) {
        tracing::warn!(code = refusal.code.as_str(), why = refusal.why, "a task cannot be run here");
        let mut event = TaskEvent::to(address, TaskState::Failed);
        event.reason = Some(refusal.code.as_str().to_owned());
        let draft = Draft { at: iso_time(self.now()), event };
        if let Err(fault) = self.journal().append(&draft, Durability::Strict).await {
            tracing::warn!(error = fault.to_string(), "the end of a task was not written");
        }
    }

    /// Gives signs of life, and says so when none is taken.
    async fn beats(self: Rc<Self>) {
        let lease = self.connection.config.lease();
        let mut last = Instant::now();
        for beat in 1.. {
            tokio::time::sleep(lease / BEATS).await;
            // Looked at before the next sign: who was stopped for a while finds out here.
            let is_overdue = last.elapsed() >= lease;
            if is_overdue && !self.executor().lease.borrow().is_lost {
                let running = self.running.borrow().len();
                tracing::warn!(running, "the cluster was not heard of for a lease; what runs here is ended");
                self.executor().lease.send_modify(Lease::lose);
            }
            let sent = Instant::now();
            if tokio::time::timeout(lease / BEATS, self.beat(beat)).await == Ok(true) {
                last = sent;
                self.executor().lease.send_modify(|lease| lease.is_lost = false);
                self.hold_orders().await;
            }
        }
    }

    /// Gives one sign of life. Answers whether it was taken.
    async fn beat(&self, beat: u64) -> bool {
        let agent = |(name, agent): (&String, &Agent)| PresentAgent {
            name: name.clone(),
            description: agent.description.clone(),
            deadline_ms: agent.deadline_ms(None),
            max_output_bytes: agent.max_output_bytes.unwrap_or(Placement::Remote.bounds().max_output_bytes),
        };
        let taking = self.taking.borrow().clone();
        let presence = Presence {
            worker: self.id.clone(),
            name: self.options.name.clone(),
            beat,
            slots: self.options.slots,
            tasks: self
                .running
                .borrow()
                .keys()
                .chain(taking.iter())
                .cloned()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            done: self.done.get(),
            agents: self.options.agents.iter().map(agent).collect(),
            started_ms: self.started_ms,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let value = serde_json::to_vec(&presence).unwrap_or_default();
        self.connection.workers.put(&self.id, value).await.is_ok()
    }

    /// Keeps the queue from handing out again what runs here, and hears of cancellations that were told to nobody.
    async fn hold_orders(&self) {
        let held: Vec<_> = {
            let running = self.running.borrow();
            running.values().map(|task| (Rc::clone(&task.message), task.address.clone())).collect()
        };
        for (message, address) in held {
            let _ = message.ack_with(AckKind::Progress).await;
            let host = self.host.clone();
            tokio::task::spawn_local(async move { host.heed(&address).await });
        }
    }

    /// Hears of cancellations.
    async fn cancels(self: Rc<Self>) {
        loop {
            if let Ok(mut cancels) = self.connection.client.subscribe(self.connection.cancels()).await {
                while let Some(message) = cancels.next().await {
                    self.host.heed(&String::from_utf8_lossy(&message.payload)).await;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Tells what executors say.
    async fn notes(self: Rc<Self>) {
        loop {
            tokio::time::sleep(NOTES).await;
            for note in self.news() {
                let bytes = serde_json::to_vec(&note).unwrap_or_default();
                let _ = self.connection.client.publish(self.connection.notes(), bytes.into()).await;
            }
        }
    }

    fn news(&self) -> Vec<Note> {
        let mut running = self.running.borrow_mut();
        let news = running.values_mut().filter_map(|task| {
            let mut view = self.host.view(&task.address)?;
            view.agent.clone_from(&task.agent);
            let said = view.progress.is_some() || view.partial.is_some();
            if !said || task.told.as_ref() == Some(&view) {
                return None;
            }
            task.told = Some(view.clone());
            Some(Note { owner: task.owner.clone(), view })
        });
        news.collect()
    }
}

/// One order of a task is looked at at a time.
struct Taking<'a> {
    inner: &'a Inner,
    key: String,
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        self.inner.taking.borrow_mut().remove(&self.key);
    }
}

fn make_folder(folder: &Path) -> Result<(), Refusal> {
    private::make_folder(folder).map_err(|err| {
        Refusal::new(Code::StorageUnavailable, format!("{} cannot be used: {err}", folder.display()))
    })
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("id", &self.inner.id).finish_non_exhaustive()
    }
}
