//! What executes the page's tasks: the tools of its shelf, and the browser's own model.

use futures::FutureExt as _;
use futures::future::{Either, select};
use serde_json::json;
use toolshelf_core::abi::Abi;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::tool_call::answer_text;
use toolshelf_core::task::{Source, TaskInput, ToolCall};
use toolshelf_core::{Digest, RootDescriptor};
use toolshelf_host::TaskExecutor;
use toolshelf_host::task_ports::{Check, RunFault, TaskRun, Terms};

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

    fn abi(&self, agent: &str) -> Result<Abi, Refusal> {
        self.shelf.known_abi(agent).ok_or_else(|| {
            let why = format!("no tool of the shelves that can be called is named {agent:?}");
            Refusal::new(Code::UnknownTool, why)
        })
    }

    /// Whether a tool takes the task; answers how it would be executed.
    pub(crate) fn check_tool(&self, input: &TaskInput) -> Result<String, Refusal> {
        ToolCall::read(self.abi(&input.agent)?, &input.task)?;
        Ok(["the shelf's tool ", &input.agent, " in a worker of its own"].concat())
    }

    /// Runs a tool. Dropping the future ends its worker.
    pub(crate) async fn run_tool(
        &self,
        input: &TaskInput,
        root: &RootDescriptor,
        note: &dyn Fn(&str),
    ) -> Result<String, Refusal> {
        let agent = &input.agent;
        let abi = self.abi(agent)?;
        let call = ToolCall::read(abi, &input.task)?;
        let (mut arguments, mut inputs) = (Vec::new(), Vec::new());
        for (input, source) in abi.layout().inputs.iter().zip(call.inputs) {
            let bytes = match source {
                Source::Text(text) => text.into_bytes(),
                Source::File(path) => {
                    note(&["Reading ", &path].concat());
                    self.folders.read(root, &path, input).await?
                }
            };
            inputs.push(bytes.clone());
            arguments.push((input.arguments[0].to_owned(), bytes));
        }
        note(&["Running ", agent].concat());
        let answer = answer_text(&self.shelf.call(agent, arguments).await?, inputs);
        let Some(out) = call.out else { return Ok(answer) };
        note(&["Writing ", &out].concat());
        self.folders.write(root, &out, answer.as_bytes()).await?;
        let digest = Digest::of(answer.as_bytes()).to_string();
        Ok(json!({ "out": out, "bytes": answer.len(), "sha256": digest }).to_string())
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
