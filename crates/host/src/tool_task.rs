//! A task that is given to a tool of the shelf: the same steps in a page and on a machine.

use std::future::Future;

use serde_json::json;
use toolshelf_core::abi::{Abi, Input};
use toolshelf_core::call::Answer;
use toolshelf_core::refusal::Refusal;
use toolshelf_core::task::tool_call::answer_text;
use toolshelf_core::task::{Source, TaskInput, ToolCall};
use toolshelf_core::{Digest, RootDescriptor};

/// Where such a task runs: a shelf, and the files of its root.
pub trait ToolSite {
    /// The ABI of a tool that can be called. Answers at once.
    ///
    /// # Errors
    /// The refusal that says why there is nothing to call.
    fn abi(&self, tool: &str) -> Result<Abi, Refusal>;

    /// Calls a tool with arguments by their names. Dropping the future ends its isolate.
    ///
    /// # Errors
    /// The refusal that names what ended the call.
    fn call(
        &self,
        tool: &str,
        arguments: Vec<(String, Vec<u8>)>,
    ) -> impl Future<Output = Result<Answer, Refusal>>;

    /// The bytes of a file of `root` for a tool's `input`. One that is larger than that buffer is not read.
    ///
    /// # Errors
    /// The refusal that names what stands against it.
    fn read(
        &self,
        root: &RootDescriptor,
        path: &str,
        input: &Input,
    ) -> impl Future<Output = Result<Vec<u8>, Refusal>>;

    /// Writes a file of `root`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn write(
        &self,
        root: &RootDescriptor,
        path: &str,
        bytes: &[u8],
    ) -> impl Future<Output = Result<(), Refusal>>;
}

/// Checks that the tool is there and takes the task.
///
/// # Errors
/// What [`ToolSite::abi`] and [`ToolCall::read`] say.
pub fn check_tool(site: &impl ToolSite, input: &TaskInput) -> Result<(), Refusal> {
    ToolCall::read(site.abi(&input.agent)?, &input.task).map(drop)
}

/// Runs the tool: reads the files that the task names, calls, and answers, or writes the answer to the file that the
/// task names. `note` hears how far it is. Dropping the future ends it.
///
/// # Errors
/// The refusal that names what ended it.
pub async fn run_tool(
    site: &impl ToolSite,
    input: &TaskInput,
    root: &RootDescriptor,
    note: &dyn Fn(&str),
) -> Result<String, Refusal> {
    let tool = &input.agent;
    let abi = site.abi(tool)?;
    let call = ToolCall::read(abi, &input.task)?;
    let (mut arguments, mut inputs) = (Vec::new(), Vec::new());
    for (input, source) in abi.layout().inputs.iter().zip(call.inputs) {
        let bytes = match source {
            Source::Text(text) => text.into_bytes(),
            Source::File(path) => {
                note(&["Reading ", &path].concat());
                site.read(root, &path, input).await?
            }
        };
        inputs.push(bytes.clone());
        arguments.push((input.arguments[0].to_owned(), bytes));
    }
    note(&["Running ", tool].concat());
    let answer = answer_text(&site.call(tool, arguments).await?, inputs);
    let Some(out) = call.out else { return Ok(answer) };
    note(&["Writing ", &out].concat());
    site.write(root, &out, answer.as_bytes()).await?;
    let digest = Digest::of(answer.as_bytes()).to_string();
    Ok(json!({ "out": out, "bytes": answer.len(), "sha256": digest }).to_string())
}
