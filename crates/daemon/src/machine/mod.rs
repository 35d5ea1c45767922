//! Tasks on this computer: the engine of `toolshelf-host` over files, locks and processes.
//!
//! | module | idea |
//! |---|---|
//! | [`roots`] | the folders that tasks work in |
//! | [`sealer`] | the key that seals addresses, and the environment's name |
//! | [`life`] | whether another process still runs a task |
//! | [`journal`] | the log in each root's `.audit` folder |
//! | [`executor`] | tools of the shelf, and agents |
//! | [`agent`] | a command of `toolshelf.toml` and all processes that come of it |
//! | [`watch`] | what other processes write, and what executors say |
//! | [`platform`] | all of it as the ports of the task host |
//!
//! Several processes can have the same data folder and the same roots: they see the same tasks, and each runs only what
//! it admitted.

pub(crate) mod agent;
pub(crate) mod executor;
pub(crate) mod journal;
pub(crate) mod life;
mod platform;
pub(crate) mod roots;
pub(crate) mod sealer;
pub(crate) mod watch;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinHandle;
use toolshelf_core::live::{AgentInfo, MachineEnvironment};
use toolshelf_core::placement::Placement;
use toolshelf_core::redact::redact;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::TaskState;
use toolshelf_core::task::listing::{Detail, Filter, Page, Row, title};
use toolshelf_core::task::time::read_time;
use toolshelf_host::task_host::{Batch, Listed};
use toolshelf_host::task_ports::SelectedRoot;
use toolshelf_host::{Caller, Reply, Sealer as _, TaskHost, TaskHostConfig};
use toolshelf_sandbox::HostClock;

use self::agent::Supervisor;
use self::executor::{MachineExecutor, OnCall};
use self::journal::{FileJournal, Writer};
use self::life::ProcessLife;
use self::platform::MachinePlatform;
use self::roots::MachineRoots;
use self::sealer::FileSealer;
use self::watch::{OnUpdate, Watched, look};
use crate::config::Agent;
use crate::shelf::Shelf;

/// The project that the machine's tasks belong to.
const PROJECT: &str = "machine-project";
/// How long the end of this process waits for the ends of its tasks.
const SHUT_DOWN: Duration = Duration::from_secs(6);
const SHUT_DOWN_POLL: Duration = Duration::from_millis(10);
/// Most tasks of one page of a list.
pub(crate) const LIST_MAX: usize = 500;

/// What a machine's tasks need.
#[derive(Clone)]
pub(crate) struct MachineOptions {
    /// The folder of keys and lives.
    pub(crate) data_dir: PathBuf,
    /// The folders that tasks can work in; the first is for tasks that name none.
    pub(crate) roots: Vec<PathBuf>,
    /// The agents of `toolshelf.toml`.
    pub(crate) agents: BTreeMap<String, Agent>,
    /// The shelf.
    pub(crate) shelf: Rc<Shelf>,
    /// Hears of the tools that tasks call.
    pub(crate) on_call: OnCall,
    /// Hears of every change of a task that runs here, and of its progress twice a second at most.
    pub(crate) on_update: OnUpdate,
}

type Host = TaskHost<MachinePlatform>;

/// The tasks of this computer. Clones share them.
#[derive(Clone)]
pub(crate) struct Machine {
    inner: Rc<Inner>,
}

struct Inner {
    host: Host,
    /// Looks after the tasks that run.
    looking: JoinHandle<()>,
}

impl Machine {
    /// Takes the key and begins a life.
    ///
    /// # Errors
    /// [`Code::TaskEnvironmentUnverified`] when key or life cannot be had, [`Code::TaskRootUnavailable`] for a path that
    /// no root can have, and [`Code::ConfigInvalid`] for an agent of the name of a tool.
    pub(crate) async fn open(options: MachineOptions) -> Result<Self, Refusal> {
        Self::open_with(options, Supervisor::this()).await
    }

    /// The tasks that other machines give to this one: the same folders, agents and tools, in places and a journal of
    /// their own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) async fn open_for_others(options: MachineOptions) -> Result<Self, Refusal> {
        Self::open_as(Placement::Remote, options, Supervisor::this()).await
    }

    /// The same, where another program than this one looks after agents.
    async fn open_with(options: MachineOptions, supervisor: Supervisor) -> Result<Self, Refusal> {
        Self::open_as(Placement::Machine, options, supervisor).await
    }

    async fn open_as(
        placement: Placement,
        options: MachineOptions,
        supervisor: Supervisor,
    ) -> Result<Self, Refusal> {
        let MachineOptions { data_dir, roots, agents, shelf, on_call, on_update } = options;
        // A shelf that cannot be read has no tools; that shows where it is listed.
        for reading in shelf.read().await.unwrap_or_default() {
            for tool in reading.shelf.iter().flat_map(|shelf| &shelf.tools) {
                agents.get(&tool.id).map_or(Ok(()), |agent| Err(agent.collides(&tool.id)))?;
            }
        }
        let sealer = FileSealer::open(&data_dir)?;
        let id = sealer.host_id();
        let (environment, instance) = (format!("env_{id}"), format!("{placement}-{id}"));
        let life = ProcessLife::begin(&data_dir)?;
        let roots = MachineRoots::new(&roots, &environment)?;
        let key_epoch = sealer.epoch().to_owned();
        let writer = Writer { environment: environment.clone(), instance: instance.clone(), key_epoch };
        let journal = FileJournal::new(&data_dir, roots.paths(), &writer);
        let executor = MachineExecutor::new(shelf, roots.clone(), agents, supervisor, on_call);
        let (clock, watched) = (HostClock::new(), Rc::new(Watched::new(on_update)));
        let looked_after = Rc::clone(&watched);
        let platform = MachinePlatform { sealer, journal, executor, clock, life, roots, watched };
        let scrub = Rc::new(|text: &str| redact(text).into_owned());
        let machine = TaskHostConfig::machine(environment, instance, PROJECT.to_owned(), scrub);
        let config = TaskHostConfig { placement, ..machine };
        let host = TaskHost::new(config, platform);
        let inner = Rc::new_cyclic(|inner| {
            let looking = tokio::task::spawn_local(look(looked_after, Weak::clone(inner)));
            Inner { host, looking }
        });
        Ok(Self { inner })
    }

    /// The environment that this computer is.
    pub(crate) fn environment(&self) -> MachineEnvironment {
        let agent = |(name, agent): (&String, &Agent)| AgentInfo {
            name: name.clone(),
            description: agent.description.clone(),
            deadline_ms: agent.deadline_ms(None),
        };
        MachineEnvironment {
            key: self.host().config().environment.clone(),
            placement: self.host().config().placement,
            label: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            bounds: self.host().config().placement.bounds(),
            active: self.host().active_tasks(),
            roots: self.platform().roots.listed(),
            agents: self.platform().executor.agents().iter().map(agent).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// The environment's key.
    pub(crate) fn key(&self) -> &str {
        &self.host().config().environment
    }

    /// The folders that tasks can work in.
    pub(crate) fn roots(&self) -> &MachineRoots {
        &self.platform().roots
    }

    /// Calls one of the [`TASK_TOOLS`](toolshelf_host::task_host::TASK_TOOLS).
    ///
    /// # Errors
    /// The refusal that names what stands against it.
    pub(crate) async fn call(&self, tool: &str, args: &Value, caller: &Caller) -> Result<Reply, Refusal> {
        if tool != "delegate_task" {
            return self.host().call(tool, args, caller).await;
        }
        self.read_shelf_for(args).await;
        let mut caller = caller.clone();
        // The host answers what was delegated before, whatever stands against a new task; so it is asked all the same.
        let no_root = match caller.wish.root {
            Some(_) => None,
            None => self.platform().roots.choose(None).map(|root| caller.wish.root = Some(root)).err(),
        };
        let result = self.host().call(tool, args, &caller).await;
        match result {
            Err(refusal) => Err(self.named(refusal, no_root, caller.wish.root).await),
            answered => answered,
        }
    }

    /// A tool that is not known may be on the shelf by now.
    async fn read_shelf_for(&self, args: &Value) {
        let executor = &self.platform().executor;
        let agent = args.get("agent").and_then(Value::as_str).unwrap_or_default();
        if !executor.agents().contains_key(agent) && executor.shelf().known_abi(agent).is_err() {
            let _ = executor.shelf().read().await;
        }
    }

    /// The refusal of a delegation with its reason, where this side knows more of it than the host does.
    async fn named(&self, refusal: Refusal, no_root: Option<Refusal>, root: Option<SelectedRoot>) -> Refusal {
        match refusal.code {
            Code::TaskRootUnavailable => no_root.unwrap_or(refusal),
            // A log that cannot be believed is another matter than one that cannot be written.
            Code::TaskPersistenceFailed => match root {
                Some(root) => match self.inner.journal().check(&root.descriptor).await {
                    Err(fault) => Refusal::new(Code::TaskAuditUnavailable, fault.to_string()),
                    Ok(()) => refusal,
                },
                None => refusal,
            },
            _ => refusal,
        }
    }

    /// The root at `path`, or the first, for the wish of a caller.
    ///
    /// # Errors
    /// [`Code::TaskRootUnavailable`] and [`Code::TaskRootReplaced`].
    pub(crate) fn root(&self, path: Option<&str>) -> Result<SelectedRoot, Refusal> {
        self.platform().roots.choose(path)
    }

    /// Some tasks of all roots, the newest first, from `before` on downwards: up to `limit`, and 500 at most.
    ///
    /// # Errors
    /// [`Code::TaskAuditUnavailable`] when no journal can be read.
    pub(crate) async fn list(
        &self,
        owner: &str,
        filter: Filter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page, Refusal> {
        let limit = limit.clamp(1, LIST_MAX);
        let Batch { tasks, next } = self.host().list(&Caller::new(owner, ""), filter, before, limit).await?;
        Ok(Page { rows: tasks.into_iter().map(row).collect(), next })
    }

    /// All that is known of one task.
    ///
    /// # Errors
    /// [`Code::TaskNotFound`] and [`Code::TaskAuditUnavailable`].
    pub(crate) async fn detail(&self, owner: &str, position: u64) -> Result<Detail, Refusal> {
        let above = Some(position.saturating_add(1));
        let batch = self.host().recent(&Caller::new(owner, ""), above, 1).await?;
        let listed = batch.tasks.into_iter().find(|listed| listed.position == position);
        let not_found = || Refusal::new(Code::TaskNotFound, "the journal has no task at that position");
        let listed = listed.ok_or_else(not_found)?;
        let record = &listed.record;
        let moments = self.inner.journal().moments(&record.address).await;
        let moments = moments.map_err(|fault| Refusal::new(Code::TaskAuditUnavailable, fault.to_string()))?;
        let (task, mechanism) = (record.input.task.clone(), record.mechanism.clone());
        let call_id = record.call_id.clone();
        Ok(Detail { row: row(listed), task, mechanism, call_id, moments })
    }

    /// Ends all that runs here, with all processes of agents, and waits until that is written, some seconds at most.
    /// Nothing can be delegated any more.
    pub(crate) async fn shut_down(&self) {
        self.platform().executor.end();
        let give_up = Instant::now() + SHUT_DOWN;
        while self.host().unfinished_tasks() > 0 {
            if Instant::now() > give_up {
                return;
            }
            tokio::time::sleep(SHUT_DOWN_POLL).await;
        }
        self.platform().life.end();
    }

    fn host(&self) -> &Host {
        &self.inner.host
    }

    fn platform(&self) -> &MachinePlatform {
        self.inner.host.platform()
    }
}

impl Inner {
    fn journal(&self) -> &FileJournal {
        &self.host.platform().journal
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

/// A task as lists show it.
pub(crate) fn row(listed: Listed) -> Row {
    let Listed { position, record, view, here } = listed;
    let began = (view.state == TaskState::Running).then(|| read_time(&record.updated_at)).flatten();
    Row {
        position,
        view,
        title: title(&record.input.task),
        bounds: record.bounds,
        ends_at_ms: began.map(|began| began as f64 + f64::from(record.bounds.deadline_ms)),
        here,
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("host", self.host()).finish()
    }
}
