//! The companion as one value: its shelf, its tasks, and what everybody who watches it hears of.
//!
//! | module | idea |
//! |---|---|
//! | `commands` | what callers may ask for by name, the same over HTTP, live sessions, frames and the command line |
//! | `admin` | what only who sits at this computer asks for: extensions, keys, secrets, receipts |
//! | `cluster` | what is asked of the cluster, where there is one |
//! | `latency` | how each tool's calls have gone |
//!
//! It lives on one thread, as the engines do. Whoever serves it from others sends it closures.

mod admin;
mod cluster;
mod commands;
mod latency;

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use serde_json::{Map, Value};
use tokio::sync::broadcast;
use toolshelf_core::call::Answer;
use toolshelf_core::declare::{RESERVED_NAMES, live_tool_declarations};
use toolshelf_core::inventory::inventory;
use toolshelf_core::live::{CallNotice, CallOrigin, ServerFrame};
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::shelf::Tool;
use toolshelf_core::task::TaskView;
use toolshelf_host::Reading;
use toolshelf_sandbox::WorkerProgram;

use self::latency::Latencies;
use crate::cluster::Cluster;
use crate::cluster::config::ClusterConfig;
use crate::config::Config;
use crate::extensions::store::SharedFacts;
use crate::extensions::{ExtError, Extensions, ExtensionsOptions};
use crate::live::LiveSettings;
use crate::machine::watch::OnUpdate;
use crate::machine::{Machine, MachineOptions};
use crate::mcp::desk::Desk;
use crate::remote::Remote;
use crate::settings;
use crate::shelf::Shelf;

/// Who all callers are that hold this computer's token, use its command line or started this program.
pub(crate) const OWNER: &str = "local";
/// So many events wait for a watcher that does not read; then it has missed some, and is told.
const EVENTS_KEPT: usize = 256;

/// The companion. Clones share it.
#[derive(Clone)]
pub(crate) struct Service {
    inner: Rc<Inner>,
}

struct Inner {
    shelf: Rc<Shelf>,
    machine: Machine,
    watchers: Rc<Watchers>,
    data_dir: PathBuf,
    extensions: OnceCell<Extensions>,
    desk: Desk,
    live: Option<LiveSettings>,
    cluster: Option<Cluster>,
    /// Where facts are, where it is not this computer.
    shared_facts: Option<SharedFacts>,
    remote: Remote,
    /// The tasks of paired machines, which are served once one asks for them.
    for_others: tokio::sync::OnceCell<Machine>,
    machine_options: MachineOptions,
}

/// Those who watch, and what is counted of what they hear.
struct Watchers {
    events: broadcast::Sender<Event>,
    latencies: RefCell<Latencies>,
}

/// What a companion is made of, where that is not what the settings say.
#[derive(Debug, Default)]
pub(crate) struct ServiceOptions {
    /// The folder of the shelf.
    pub(crate) shelf: Option<PathBuf>,
    /// The folder of keys.
    pub(crate) data_dir: Option<PathBuf>,
    /// Folders that tasks may work in, before those of `toolshelf.toml`.
    pub(crate) roots: Vec<PathBuf>,
    /// The cluster that tasks are admitted to besides, and that has the facts.
    pub(crate) cluster: Option<ClusterConfig>,
}

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// Opaque identity of the caller.
    pub(crate) owner: String,
    /// By which way.
    pub(crate) from: CallOrigin,
}

/// What watchers hear of.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A tool was called.
    Call(CallNotice),
    /// A task has changed.
    Task {
        /// Whose it is.
        owner: String,
        /// What its owner is shown.
        view: Box<TaskView>,
    },
    /// The shelf has changed; these are its declarations from now on.
    Shelf(Vec<Value>),
}

impl Service {
    /// The companion over this computer's shelf and folders.
    ///
    /// # Errors
    /// When no worker can be started, `toolshelf.toml` cannot be read, or tasks cannot be sealed here.
    pub(crate) async fn open(options: ServiceOptions) -> Result<Self, Refusal> {
        let ServiceOptions { shelf, data_dir, mut roots, cluster } = options;
        let shelf = Rc::new(crate::shelf::for_many_calls(shelf)?);
        let data_dir = data_dir.or_else(settings::data_dir).ok_or_else(|| {
            let why = "there is no home folder for keys; set TOOLSHELF_DATA_DIR";
            Refusal::new(Code::TaskEnvironmentUnverified, why)
        })?;
        let config = Config::load()?;
        let live = config.live;
        roots.extend(config.roots);
        let watchers =
            Rc::new(Watchers { events: broadcast::Sender::new(EVENTS_KEPT), latencies: RefCell::default() });
        let (calls, updates) = (Rc::clone(&watchers), Rc::clone(&watchers));
        let on_update: OnUpdate = Rc::new(move |owner, view| {
            updates.tell(Event::Task { owner: owner.to_owned(), view: Box::new(view.clone()) });
        });
        let machine_options = MachineOptions {
            data_dir: data_dir.clone(),
            roots,
            agents: config.agents,
            shelf: Rc::clone(&shelf),
            on_call: Rc::new(move |tool, result, took_ms| {
                // A task's inputs are its own; what comes of them is told without them.
                calls.tell(Event::Call(CallNotice::of(tool, result, Vec::new(), took_ms, CallOrigin::Task)));
            }),
            on_update: Rc::clone(&on_update),
        };
        let machine = Machine::open(machine_options.clone()).await?;
        let told = Rc::clone(&watchers);
        let remote = Remote::open(&data_dir, Rc::new(move |event| told.tell(event)));
        let (cluster, shared_facts) = match cluster {
            None => (None, None),
            Some(config) => {
                let connect = config.connect_options("toolshelf facts").await?;
                let shared = SharedFacts { options: config.facts(), connect };
                (Some(Cluster::open(&config, Rc::clone(&shelf), on_update).await?), Some(shared))
            }
        };
        let inner = Inner {
            desk: Desk::new(&data_dir),
            shelf,
            machine,
            watchers,
            data_dir,
            extensions: OnceCell::new(),
            live,
            cluster,
            shared_facts,
            remote,
            for_others: tokio::sync::OnceCell::new(),
            machine_options,
        };
        Ok(Self { inner: Rc::new(inner) })
    }

    /// Other machines.
    pub(crate) fn remote(&self) -> &Remote {
        &self.inner.remote
    }

    /// The tasks that `session` delegates and sees: those of this computer, or those that other machines gave to it.
    ///
    /// # Errors
    /// When the tasks of others cannot be served.
    pub(crate) async fn tasks_of(&self, session: &Session) -> Result<&Machine, Refusal> {
        if session.owner == OWNER {
            return Ok(&self.inner.machine);
        }
        let open = || Machine::open_for_others(self.inner.machine_options.clone());
        self.inner.for_others.get_or_try_init(open).await
    }

    /// The tasks of this computer.
    pub(crate) fn machine(&self) -> &Machine {
        &self.inner.machine
    }

    /// The extension host. It is opened when it is first asked for: facts are held by one program at a time.
    ///
    /// # Errors
    /// An [`ExtError`] when it cannot be opened now.
    pub(crate) fn extensions(&self) -> Result<Extensions, ExtError> {
        if let Some(extensions) = self.inner.extensions.get() {
            return Ok(extensions.clone());
        }
        let program = WorkerProgram::this().map_err(|err| ExtError::Io { path: "toolshelf".into(), err })?;
        let cache = crate::shelf::cache().ok();
        let mut options = ExtensionsOptions::of_process(self.inner.data_dir.clone(), program, cache);
        options.shared_facts.clone_from(&self.inner.shared_facts);
        let extensions = Extensions::open(options)?;
        if let Some(why) = extensions.engine_fault() {
            tracing::warn!(why, "modules of extensions cannot be called");
        }
        Ok(self.inner.extensions.get_or_init(|| extensions).clone())
    }

    /// Whether the extension host is open, or its facts are elsewhere than in the data folder.
    pub(crate) fn may_have_extensions(&self) -> bool {
        self.inner.extensions.get().is_some() || self.inner.shared_facts.is_some()
    }

    /// What is kept for agents.
    pub(crate) fn desk(&self) -> &Desk {
        &self.inner.desk
    }

    /// The model that answers in live sessions, where one is set.
    pub(crate) fn live(&self) -> Option<&LiveSettings> {
        self.inner.live.as_ref()
    }

    /// Ends all that runs, and waits until that is written.
    pub(crate) async fn shut_down(&self) {
        if let Some(for_others) = self.inner.for_others.get() {
            for_others.shut_down().await;
        }
        self.inner.machine.shut_down().await;
    }

    /// The shelf.
    pub(crate) fn shelf(&self) -> &Shelf {
        &self.inner.shelf
    }

    /// Every shelf, read again.
    ///
    /// # Errors
    /// When the shelves cannot even be listed.
    pub(crate) async fn readings(&self) -> Result<Vec<Reading>, Refusal> {
        self.inner.shelf.read().await
    }

    /// What a live session is told of the shelf.
    ///
    /// # Errors
    /// As [`readings`](Self::readings).
    pub(crate) async fn declarations(&self) -> Result<Vec<Value>, Refusal> {
        let readings = self.readings().await?;
        Ok(live_tool_declarations(tools(&readings), RESERVED_NAMES))
    }

    /// What can be called, and how its calls have gone.
    ///
    /// # Errors
    /// As [`readings`](Self::readings).
    pub(crate) async fn inventory(&self) -> Result<Value, Refusal> {
        let readings = self.readings().await?;
        let latencies = self.inner.watchers.latencies.borrow();
        Ok(inventory(Placement::Machine, tools(&readings), |id| latencies.of(id)))
    }

    /// Reads the shelf again because it has changed, says so, and answers what was read.
    ///
    /// # Errors
    /// As [`readings`](Self::readings).
    pub(crate) async fn shelf_changed(&self) -> Result<Vec<Reading>, Refusal> {
        self.inner.shelf.forget();
        self.desk().forget();
        let readings = self.readings().await?;
        self.tell(Event::Shelf(live_tool_declarations(tools(&readings), RESERVED_NAMES)));
        Ok(readings)
    }

    /// Calls the tool `id` with arguments that are texts, or `{"base64": "…"}`. Whoever watches hears of it.
    ///
    /// # Errors
    /// The refusal that names what ended the call.
    pub(crate) async fn call_tool(
        &self,
        id: &str,
        args: &Map<String, Value>,
        from: CallOrigin,
    ) -> Result<Answer, Refusal> {
        self.call_tool_in(id, args, from, None).await
    }

    /// [`call_tool`](Self::call_tool) because of something that was said in that live session.
    ///
    /// # Errors
    /// As there.
    pub(crate) async fn call_tool_in(
        &self,
        id: &str,
        args: &Map<String, Value>,
        from: CallOrigin,
        session: Option<u64>,
    ) -> Result<Answer, Refusal> {
        let start = Instant::now();
        let mut inputs = Vec::new();
        let result = self.call(id, args, &mut inputs).await;
        let took = start.elapsed().as_secs_f64() * 1_000.0;
        let notice = CallNotice::of(id, &result, inputs, took, from);
        self.tell(Event::Call(CallNotice { session, ..notice }));
        result
    }

    async fn call(
        &self,
        id: &str,
        args: &Map<String, Value>,
        inputs: &mut Vec<Vec<u8>>,
    ) -> Result<Answer, Refusal> {
        let abi = self.inner.shelf.abi(id).await?;
        let mut given = commands::arguments(abi, args)?;
        let argument = |name: &str| {
            let bytes = given.remove(name)?;
            inputs.push(bytes.clone());
            Some(bytes)
        };
        self.inner.shelf.call(id, argument).await
    }

    /// What watchers hear from now on.
    pub(crate) fn events(&self) -> broadcast::Receiver<Event> {
        self.inner.watchers.events.subscribe()
    }

    /// Tells watchers. A call counts as one of its tool.
    pub(crate) fn tell(&self, event: Event) {
        self.inner.watchers.tell(event);
    }
}

impl Event {
    /// The frame in which `owner` hears of it; `None` for what is not theirs.
    pub(crate) fn frame_for(self, owner: &str) -> Option<ServerFrame> {
        match self {
            // What one caller gives to a tool is no business of another; whoever sits here sees all.
            Self::Call(notice) if owner == OWNER => Some(ServerFrame::Tool { calls: vec![notice] }),
            Self::Call(_) => None,
            Self::Task { owner: whose, view } if whose == owner => Some(ServerFrame::Task { task: view }),
            Self::Task { .. } => None,
            Self::Shelf(tools) => Some(ServerFrame::Shelf { tools }),
        }
    }
}

/// Why a watcher that reads too slowly hears no more.
pub(crate) fn lagged(missed: u64) -> Refusal {
    Refusal::new(Code::OverBudget, format!("what happens was not read fast enough; {missed} frames are lost"))
}

impl Watchers {
    fn tell(&self, event: Event) {
        if let Event::Call(notice) = &event {
            self.latencies.borrow_mut().note(notice);
        }
        // Nobody may be watching.
        let _ = self.events.send(event);
    }
}

/// The tools of all shelves that could be read.
fn tools(readings: &[Reading]) -> impl Iterator<Item = &Tool> {
    readings.iter().filter_map(|reading| reading.shelf.as_ref().ok()).flat_map(|shelf| &shelf.tools)
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("gate", &self.inner.shelf.stats()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_told_to_its_owner_alone() {
        let view = r#"{"address":"a","environment":"e","placement":null,"root":{"kind":"machine","path":"/r"},
            "state":"running","agent":"hash","createdAt":"","updatedAt":""}"#;
        let view = serde_json::from_str(view).unwrap();
        let event = Event::Task { owner: "ann".into(), view };
        assert!(matches!(event.clone().frame_for("ann"), Some(ServerFrame::Task { .. })));
        assert_eq!(event.frame_for("ben"), None);
    }
}
