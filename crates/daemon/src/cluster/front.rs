//! Who admits: the ports of a task host whose tasks run on workers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use toolshelf_core::RootDescriptor;
use toolshelf_core::abi::Abi;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::{Source, TaskView, ToolCall};
use toolshelf_host::task_ports::{Check, RunFault, SelectedRoot, Spawner, TaskRun, Terms};
use toolshelf_host::{Life, Roots, TaskExecutor, TaskPlatform};
use toolshelf_sandbox::HostClock;

use super::journal::NatsJournal;
use super::presence::PresentAgent;
use super::stored::{ToolPin, Work};
use crate::machine::sealer::FileSealer;
use crate::machine::watch::OnUpdate;

/// The folder that a cluster's tasks have, in their addresses: none of any machine.
const ROOT: &str = "/cluster";
/// The life that admits tasks. They are of no process.
const BOOT: &str = "cluster";

/// All ports of a cluster's task host.
pub(super) struct FrontPlatform {
    pub(super) sealer: FileSealer,
    pub(super) journal: NatsJournal,
    pub(super) takers: Takers,
    pub(super) clock: HostClock,
    pub(super) root: ClusterRoot,
    pub(super) on_update: OnUpdate,
}

impl TaskPlatform for FrontPlatform {
    type Sealer = FileSealer;
    type Journal = NatsJournal;
    type Executor = Takers;
    type Clock = HostClock;
    type Life = Self;
    type Roots = ClusterRoot;
    type Spawner = Self;

    fn sealer(&self) -> &FileSealer {
        &self.sealer
    }

    fn journal(&self) -> &NatsJournal {
        &self.journal
    }

    fn executor(&self) -> Option<Takers> {
        Some(self.takers.clone())
    }

    fn clock(&self) -> &HostClock {
        &self.clock
    }

    fn life(&self) -> &Self {
        self
    }

    fn roots(&self) -> &ClusterRoot {
        &self.root
    }

    fn spawner(&self) -> &Self {
        self
    }

    fn runs_elsewhere(&self) -> bool {
        true
    }

    fn updated(&self, owner: &str, task: &TaskView) {
        (self.on_update)(owner, task);
    }
}

impl Life for FrontPlatform {
    fn boot(&self) -> &str {
        BOOT
    }

    async fn is_over(&self, _boot: &str, _pid: Option<u32>) -> bool {
        false
    }
}

impl Spawner for FrontPlatform {
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()>>>) {
        tokio::task::spawn_local(future);
    }
}

/// The folder of a cluster's tasks: a name, so that addresses have one.
#[derive(Debug, Clone)]
pub(super) struct ClusterRoot(SelectedRoot);

impl ClusterRoot {
    pub(super) fn of(environment: &str) -> Self {
        let descriptor =
            RootDescriptor::Machine { path: ROOT.to_owned(), environment: Some(environment.to_owned()) };
        Self(SelectedRoot { descriptor, identity: None })
    }
}

impl Roots for ClusterRoot {
    fn selected(&self) -> Option<SelectedRoot> {
        Some(self.0.clone())
    }
}

/// Who takes tasks, as far as is known here: the tools of this shelf, which are sent along, and the agents of workers.
/// Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Takers {
    known: Rc<RefCell<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    tools: BTreeMap<String, ToolPin>,
    agents: BTreeMap<String, PresentAgent>,
}

impl Takers {
    /// The tool of that name is this one now, or none.
    pub(super) fn tool(&self, name: &str, pin: Option<ToolPin>) {
        let tools = &mut self.known.borrow_mut().tools;
        match pin {
            Some(pin) => drop(tools.insert(name.to_owned(), pin)),
            None => drop(tools.remove(name)),
        }
    }

    /// The agents that workers have.
    pub(super) fn agents(&self, agents: impl Iterator<Item = PresentAgent>) {
        self.known.borrow_mut().agents = agents.map(|agent| (agent.name.clone(), agent)).collect();
    }

    pub(super) fn has_agent(&self, name: &str) -> bool {
        self.known.borrow().agents.contains_key(name)
    }

    /// What a task that names `agent` takes. A tool can be run again; what an agent does twice is its own matter.
    pub(super) fn work(&self, agent: &str) -> Work {
        let tool = self.known.borrow().tools.get(agent).cloned();
        Work { repeatable: tool.is_some(), tool }
    }
}

impl TaskExecutor for Takers {
    fn check(&self, check: Check<'_>) -> Result<Terms, Refusal> {
        let (name, bounds) = (&check.input.agent, Placement::Remote.bounds());
        let known = self.known.borrow();
        if let Some(pin) = known.tools.get(name) {
            let abi = Abi::named(&pin.abi)
                .ok_or_else(|| Refusal::new(Code::UnsupportedAbi, "the tool is of no known ABI"))?;
            let call = ToolCall::read(abi, &check.input.task)?;
            let file = call.inputs.iter().any(|source| matches!(source, Source::File(_)));
            if file || call.out.is_some() {
                let why = "a cluster's tasks have no folder; give the text itself, or choose this computer";
                return Err(Refusal::new(Code::TaskRootUnavailable, why));
            }
            return Ok(Terms {
                mechanism: format!(
                    "the shelf's tool {name} in a process of its own, on a worker of the cluster"
                ),
                deadline_ms: check.deadline_ms.unwrap_or(bounds.default_deadline_ms).into(),
                max_output_bytes: bounds.max_output_bytes.into(),
            });
        }
        let agent = known.agents.get(name).ok_or_else(|| {
            let why = format!("{name:?} is no tool of the shelf here and no agent of the cluster's workers");
            Refusal::new(Code::AgentNotConfigured, why)
        })?;
        Ok(Terms {
            mechanism: format!("the agent {name}, a command on a worker of the cluster"),
            deadline_ms: check
                .deadline_ms
                .map_or(agent.deadline_ms, |wish| wish.min(agent.deadline_ms))
                .into(),
            max_output_bytes: agent.max_output_bytes.into(),
        })
    }

    async fn run(&self, _run: TaskRun) -> Result<String, RunFault> {
        // Nothing that is admitted here runs here.
        Err(RunFault::Failed)
    }
}
