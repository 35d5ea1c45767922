//! What executes the machine's tasks: the tools of its shelf, and the agents of `toolshelf.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::{Either, select};
use tokio::sync::watch;
use toolshelf_core::RootDescriptor;
use toolshelf_core::abi::{Abi, Input};
use toolshelf_core::call::Answer;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_host::task_ports::{Check, RunFault, TaskRun, Terms};
use toolshelf_host::tool_task::{check_tool, run_tool};
use toolshelf_host::{TaskExecutor, ToolSite};

use super::agent::{self, Supervisor};
use super::roots::MachineRoots;
use crate::config::Agent;
use crate::shelf::Shelf;

/// Hears of a tool that a task has called: its id, what it answered, and in how many milliseconds.
pub(crate) type OnCall = Rc<dyn Fn(&str, &Result<Answer, Refusal>, f64)>;

/// Executes tasks by their agent. Clones share it.
#[derive(Clone)]
pub(crate) struct MachineExecutor {
    inner: Rc<Inner>,
}

struct Inner {
    shelf: Rc<Shelf>,
    roots: MachineRoots,
    agents: BTreeMap<String, Agent>,
    supervisor: Supervisor,
    on_call: OnCall,
    /// Whether all is to end.
    ending: watch::Sender<bool>,
}

impl MachineExecutor {
    pub(crate) fn new(
        shelf: Rc<Shelf>,
        roots: MachineRoots,
        agents: BTreeMap<String, Agent>,
        supervisor: Supervisor,
        on_call: OnCall,
    ) -> Self {
        let ending = watch::Sender::new(false);
        Self { inner: Rc::new(Inner { shelf, roots, agents, supervisor, on_call, ending }) }
    }

    /// Ends all that runs. Nothing runs any more from now on.
    pub(crate) fn end(&self) {
        self.inner.ending.send_replace(true);
    }

    /// Whether something can still be run.
    pub(crate) fn is_open(&self) -> bool {
        !*self.inner.ending.borrow()
    }

    pub(crate) fn agents(&self) -> &BTreeMap<String, Agent> {
        &self.inner.agents
    }

    pub(crate) fn shelf(&self) -> &Shelf {
        &self.inner.shelf
    }

    /// Ends when the task is to be ended, and says how.
    async fn stopped(&self, run: &TaskRun) -> RunFault {
        let mut ending = self.inner.ending.subscribe();
        let ending = Box::pin(ending.wait_for(|ending| *ending));
        match select(Box::pin(run.signal.aborted()), ending).await {
            Either::Left(_) => RunFault::Cancelled,
            Either::Right(_) => RunFault::Interrupted,
        }
    }
}

impl TaskExecutor for MachineExecutor {
    fn check(&self, check: Check<'_>) -> Result<Terms, Refusal> {
        let (name, bounds) = (&check.input.agent, Placement::Machine.bounds());
        if let Some(agent) = self.inner.agents.get(name) {
            return Ok(Terms {
                mechanism: ["the agent ", name, ", a command on this computer"].concat(),
                deadline_ms: agent.deadline_ms(check.deadline_ms).into(),
                max_output_bytes: agent.max_output_bytes.unwrap_or(bounds.max_output_bytes).into(),
            });
        }
        check_tool(self, check.input)?;
        Ok(Terms {
            mechanism: ["the shelf's tool ", name, " in a process of its own"].concat(),
            deadline_ms: check.deadline_ms.unwrap_or(bounds.default_deadline_ms).into(),
            max_output_bytes: bounds.max_output_bytes.into(),
        })
    }

    async fn run(&self, run: TaskRun) -> Result<String, RunFault> {
        if let Some(agent) = self.inner.agents.get(&run.input.agent) {
            self.inner.roots.folder(&run.root).map_err(|refusal| RunFault::Refused(refusal.code))?;
            return agent::run(agent, &self.inner.supervisor, &run, self.stopped(&run)).await;
        }
        let note = |note: &str| run.report.note(note);
        let work = run_tool(self, &run.input, &run.root, &note).boxed_local();
        // Dropping the work ends the tool's process.
        match select(work, Box::pin(self.stopped(&run))).await {
            Either::Left((result, _)) => result.map_err(|refusal| RunFault::Refused(refusal.code)),
            Either::Right((fault, _)) => Err(fault),
        }
    }
}

impl ToolSite for MachineExecutor {
    fn abi(&self, tool: &str) -> Result<Abi, Refusal> {
        self.inner.shelf.known_abi(tool).map_err(|refusal| match refusal.code {
            Code::UnknownTool => {
                let why = format!("{tool:?} is no tool of the shelf and no agent of toolshelf.toml");
                Refusal::new(Code::AgentNotConfigured, why)
            }
            _ => refusal,
        })
    }

    async fn call(&self, tool: &str, arguments: Vec<(String, Vec<u8>)>) -> Result<Answer, Refusal> {
        let start = Instant::now();
        let mut arguments: BTreeMap<_, _> = arguments.into_iter().collect();
        let result = self.inner.shelf.call(tool, |name| arguments.remove(name)).await;
        (self.inner.on_call)(tool, &result, start.elapsed().as_secs_f64() * 1_000.0);
        result
    }

    async fn read(&self, root: &RootDescriptor, path: &str, input: &Input) -> Result<Vec<u8>, Refusal> {
        self.inner.roots.read(root, path, input).await
    }

    async fn write(&self, root: &RootDescriptor, path: &str, bytes: &[u8]) -> Result<(), Refusal> {
        self.inner.roots.write(root, path, bytes).await
    }
}

impl fmt::Debug for MachineExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineExecutor").field("agents", &self.inner.agents.keys()).finish_non_exhaustive()
    }
}
