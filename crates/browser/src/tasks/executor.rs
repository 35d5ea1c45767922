//! What executes the page's tasks: the tools of its shelf, and the browser's own model.

use futures::FutureExt as _;
use futures::future::{Either, select};
use toolshelf_core::RootDescriptor;
use toolshelf_core::abi::{Abi, Input};
use toolshelf_core::call::Answer;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::TaskInput;
use toolshelf_host::task_ports::{Check, RunFault, TaskRun, Terms};
use toolshelf_host::tool_task::{check_tool, run_tool};
use toolshelf_host::{TaskExecutor, ToolSite};

use super::MODEL_AGENT;
use super::folders::Folders;
use super::model::{self, Model};
use crate::Toolshelf;

/// Executes tasks by their agent.
#[derive(Debug, Clone)]
pub struct PageExecutor {
    shelf: Toolshelf,
    folders: Folders,
    model: Model,
}

impl PageExecutor {
    /// An executor over the tools of `shelf`, the files of `folders` and the browser's `model`.
    #[must_use]
    pub fn new(shelf: Toolshelf, folders: Folders, model: Model) -> Self {
        Self { shelf, folders, model }
    }

    /// Whether a tool takes the task; answers how it would be executed.
    pub(crate) fn check_tool(&self, input: &TaskInput) -> Result<String, Refusal> {
        check_tool(self, input)?;
        Ok(["the shelf's tool ", &input.agent, " in a worker of its own"].concat())
    }

    /// Runs a tool. Dropping the future ends its worker.
    pub(crate) async fn run_tool(
        &self,
        input: &TaskInput,
        root: &RootDescriptor,
        note: &dyn Fn(&str),
    ) -> Result<String, Refusal> {
        run_tool(self, input, root, note).await
    }
}

impl ToolSite for PageExecutor {
    fn abi(&self, tool: &str) -> Result<Abi, Refusal> {
        self.shelf.known_abi(tool).ok_or_else(|| {
            let why = format!("no tool of the shelves that can be called is named {tool:?}");
            Refusal::new(Code::UnknownTool, why)
        })
    }

    async fn call(&self, tool: &str, arguments: Vec<(String, Vec<u8>)>) -> Result<Answer, Refusal> {
        self.shelf.call(tool, arguments).await
    }

    async fn read(&self, root: &RootDescriptor, path: &str, input: &Input) -> Result<Vec<u8>, Refusal> {
        self.folders.read(root, path, input).await
    }

    async fn write(&self, root: &RootDescriptor, path: &str, bytes: &[u8]) -> Result<(), Refusal> {
        self.folders.write(root, path, bytes).await
    }
}

impl TaskExecutor for PageExecutor {
    fn check(&self, check: Check<'_>) -> Result<Terms, Refusal> {
        let agent = &check.input.agent;
        let mechanism = if agent == MODEL_AGENT {
            self.model.check()?;
            "the browser's own model, with the tools of the shelf".to_owned()
        } else {
            self.check_tool(check.input)?
        };
        let bounds = Placement::Browser.bounds();
        Ok(Terms {
            mechanism,
            deadline_ms: check.deadline_ms.unwrap_or(bounds.default_deadline_ms).into(),
            max_output_bytes: bounds.max_output_bytes.into(),
        })
    }

    async fn run(&self, run: TaskRun) -> Result<String, RunFault> {
        let note = |note: &str| run.report.note(note);
        let work = if run.input.agent == MODEL_AGENT {
            model::run(&self.shelf, &run).boxed_local()
        } else {
            self.run_tool(&run.input, &run.root, &note).boxed_local()
        };
        // Dropping the work ends the tool's worker.
        match select(work, Box::pin(run.signal.aborted())).await {
            Either::Left((result, _)) => result.map_err(|refusal| RunFault::Refused(refusal.code)),
            Either::Right(_) => Err(RunFault::Cancelled),
        }
    }
}
