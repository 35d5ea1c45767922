//! `toolshelf task`: work that is handed over, watched and cancelled.
//!
//! The companion that runs does it, if it serves the folder; or else this process, in the foreground. Either way the
//! task is in the folder's journal, where every later command finds it.

mod deadline;
mod show;
mod watch;

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolshelf_core::address::Sealed;
use toolshelf_core::digest::to_hex;
use toolshelf_core::live::LIVE_FRAME_MAX_BYTES;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::listing::Page;
use toolshelf_sandbox::private;

pub(crate) use self::deadline::Deadline;

use super::args::{Delegate, Task};
use super::companion::{AnyClient, Companion};
use super::outcome::Outcome;
use super::show::Style;

/// So many tasks are looked through for a short name.
const LOOKED_THROUGH: usize = 1_000;

pub(crate) async fn run(
    shelf: Option<PathBuf>,
    root: Option<PathBuf>,
    command: Task,
    style: Style,
) -> Result<Outcome, Refusal> {
    let root = match (root, &command) {
        (Some(root), _) => root,
        (None, Task::Status { task } | Task::Cancel { task } | Task::Watch { task }) => {
            root_of(task).unwrap_or_else(|| PathBuf::from("."))
        }
        (None, _) => PathBuf::from("."),
    };
    let mut companion = Companion::for_root(shelf, &root).await?;
    let outcome = execute(&mut companion, &root, command, style).await;
    companion.close().await;
    outcome
}

async fn execute(
    companion: &mut Companion,
    root: &Path,
    command: Task,
    style: Style,
) -> Result<Outcome, Refusal> {
    match command {
        Task::Delegate(delegate) => self::delegate(companion, root, delegate, style).await,
        Task::List { filter, limit } => {
            let args = json!({ "filter": filter, "limit": limit });
            let answer = companion.client.ask("list_tasks", &args).await?;
            let text = show::list(&page(&answer)?, style);
            Ok(Outcome::done(answer, text))
        }
        Task::Status { task } => {
            let address = address(&mut companion.client, &task).await?;
            let answer = companion.client.ask("task_status", &json!({ "address": address })).await?;
            let text = show::view(&answer["task"], style);
            Ok(Outcome::done(answer, text))
        }
        Task::Cancel { task } => {
            let address = address(&mut companion.client, &task).await?;
            let answer = companion.client.ask("cancel_task", &json!({ "address": address })).await?;
            let seen = if answer["observed"] == true { "" } else { "; nobody has seen it stop yet" };
            let text = format!("{}{seen}\n", answer["state"].as_str().unwrap_or_default());
            Ok(Outcome::done(answer, text))
        }
        Task::Watch { task } => {
            let address = address(&mut companion.client, &task).await?;
            watch::to_the_end(&mut companion.client, &address, watch::OnInterrupt::Leave, style).await
        }
    }
}

async fn delegate(
    companion: &mut Companion,
    root: &Path,
    delegate: Delegate,
    style: Style,
) -> Result<Outcome, Refusal> {
    if delegate.detach && !companion.outlives_us() {
        let why = "no companion runs that serves this folder, so the task would end with this command";
        return Err(Refusal::new(Code::MachineUnreachable, why));
    }
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut args = json!({
        "agent": delegate.agent,
        "task": task_text(&delegate)?,
        "callId": delegate.call_id.clone().map_or_else(call_name, Ok)?,
    });
    match &delegate.there.environment {
        None => args["root"] = root.to_string_lossy().into(),
        Some(environment) => {
            args["environment"] = environment.as_str().into();
            args["filesRoot"] = root.to_string_lossy().into();
            if let Some(there) = &delegate.there.remote_root {
                args["root"] = there.as_str().into();
            }
        }
    }
    if let Some(deadline) = delegate.deadline {
        args["deadlineMs"] = deadline.0.into();
    }
    let answer = companion.client.ask("delegate_task", &args).await?;
    let address = answer["task"]["address"].as_str().unwrap_or_default().to_owned();
    if delegate.detach {
        return Ok(Outcome::done(answer, format!("{address}\n")));
    }
    watch::to_the_end(&mut companion.client, &address, watch::OnInterrupt::Cancel, style).await
}

/// A name for a call that no other call has.
fn call_name() -> Result<String, Refusal> {
    let mut random = [0; 16];
    private::fill_random(&mut random)
        .map_err(|err| Refusal::new(Code::TaskCallIdRequired, format!("no name can be made: {err}")))?;
    Ok(to_hex(&random))
}

/// The text of a task: as it is given, as an object of arguments, or what is piped in.
fn task_text(delegate: &Delegate) -> Result<String, Refusal> {
    let Delegate { text, args, files, out, .. } = delegate;
    if args.is_empty() && files.is_empty() && out.is_none() {
        return match text {
            Some(text) if text != "-" => Ok(text.clone()),
            _ => standard_input(),
        };
    }
    let mut object = Map::new();
    for (pairs, is_file) in [(args, false), (files, true)] {
        for pair in pairs {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                Refusal::new(Code::InvalidArgument, format!("`{pair}` must be of the form name=value"))
            })?;
            let value = if is_file { json!({ "file": value }) } else { value.into() };
            if object.insert(name.to_owned(), value).is_some() {
                return Err(Refusal::new(Code::InvalidArgument, format!("`{name}` is given twice")));
            }
        }
    }
    if let Some(out) = out {
        object.insert("out".to_owned(), out.as_str().into());
    }
    Ok(Value::Object(object).to_string())
}

fn standard_input() -> Result<String, Refusal> {
    let input = std::io::stdin();
    if input.is_terminal() {
        return Err(Refusal::new(Code::MissingArgument, "give the task's text, or pipe it in"));
    }
    let mut text = String::new();
    let read = input.take(LIVE_FRAME_MAX_BYTES as u64).read_to_string(&mut text);
    read.map_err(|err| Refusal::new(Code::InvalidArgument, format!("the input is no text: {err}")))?;
    Ok(text)
}

/// The folder that an address is of. Only a hint where to look: whoever looks there checks the address's seal.
fn root_of(task: &str) -> Option<PathBuf> {
    let locator = Sealed::split(task).ok()?.locator().ok()?;
    Some(locator.path.strip_prefix("machine:")?.into())
}

/// The address that is meant: an address, or the beginning of a short name that `task list` shows.
async fn address(client: &mut AnyClient, task: &str) -> Result<String, Refusal> {
    if task.starts_with("task_") {
        return Ok(task.to_owned());
    }
    let page = page(&client.ask("list_tasks", &json!({ "limit": LOOKED_THROUGH })).await?)?;
    let fits = |address: &&String| !task.is_empty() && show::name(address).starts_with(task);
    let mut found = page.rows.iter().map(|row| &row.view.address).filter(fits);
    match (found.next(), found.next()) {
        (Some(address), None) => Ok(address.clone()),
        (Some(_), Some(_)) => Err(Refusal::new(
            Code::InvalidArgument,
            format!("more than one task's name begins with {task:?}"),
        )),
        (None, _) => Err(Refusal::new(
            Code::TaskNotFound,
            format!("none of this folder's last {LOOKED_THROUGH} tasks has a name that begins with {task:?}"),
        )),
    }
}

fn page(answer: &Value) -> Result<Page, Refusal> {
    serde_json::from_value(answer.clone())
        .map_err(|err| Refusal::new(Code::InvalidFrame, format!("the list is not understood: {err}")))
}
