//! Which machine a command is for: this one, or a remote.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::{Map, Value, json};
use toolshelf_core::address::Sealed;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::task::check_call_id;
use toolshelf_core::task::listing::Page;
use toolshelf_host::{Caller, Dispatcher};

use super::environment::RemoteEnvironment;
use super::files;
use crate::service::{OWNER, Service, Session};

/// The argument that names the environment.
const ENVIRONMENT: &str = "environment";
/// The folder of this machine that files are sent from.
const FILES_ROOT: &str = "filesRoot";

/// The machine, and the arguments for it.
pub(crate) enum Place<'a> {
    /// This one.
    Here(Cow<'a, Map<String, Value>>),
    /// A remote.
    There(RemoteEnvironment, Map<String, Value>),
}

/// Finds the machine that a command is for.
///
/// # Errors
/// [`Code::InvalidArgument`] for an environment that is no text, and [`Code::UnknownEnvironment`] and
/// [`Code::EnvironmentNotPaired`] for one that cannot be asked.
pub(crate) fn place<'a>(
    service: &Service,
    name: &str,
    args: &'a Map<String, Value>,
    session: &Session,
) -> Result<Place<'a>, Refusal> {
    let here = Ok(Place::Here(Cow::Borrowed(args)));
    match name {
        "task_status" | "cancel_task" => {
            // Only a hint: whoever has the task checks the address's seal.
            let address = args.get("address").and_then(Value::as_str).unwrap_or_default();
            let locator = Sealed::split(address).ok().and_then(|sealed| sealed.locator().ok());
            let environments = service.remote().environments();
            match locator.filter(|locator| session.owner == OWNER && environments.has(&locator.environment)) {
                Some(locator) => Ok(Place::There(environments.find(&locator.environment)?, args.clone())),
                None => here,
            }
        }
        "delegate_task" | "list_tasks" | "task_detail" | "environment" => {
            let Some(named) = args.get(ENVIRONMENT) else { return here };
            let named = named.as_str().ok_or_else(|| {
                Refusal::new(Code::InvalidArgument, "`environment` must be the key of an environment")
            })?;
            let mut rest = args.clone();
            rest.remove(ENVIRONMENT);
            if named == service.machine().key() {
                return Ok(Place::Here(Cow::Owned(rest)));
            }
            if session.owner != OWNER {
                let why =
                    format!("a paired token is good for this machine alone, not for {:?}", cut(named, 60));
                return Err(Refusal::new(Code::EnvironmentNotPaired, why));
            }
            Ok(Place::There(service.remote().environments().find(named)?, rest))
        }
        _ => here,
    }
}

/// Has a remote do what `name` asks for.
///
/// # Errors
/// What the remote refuses, and what stands against asking it.
pub(crate) async fn ask(
    service: &Service,
    remote: RemoteEnvironment,
    name: &str,
    mut args: Map<String, Value>,
) -> Result<Value, Refusal> {
    match name {
        "list_tasks" => {
            let page: Page =
                serde_json::from_value(remote.ask(name, &args, None).await?).map_err(not_understood)?;
            Ok(json!({ "ok": true, "rows": page.rows, "next": page.next }))
        }
        "delegate_task" => {
            let call_id = args.remove("callId");
            let call_id = check_call_id(call_id.as_ref().and_then(Value::as_str))?.to_owned();
            let from = args.remove(FILES_ROOT);
            let from = from.as_ref().and_then(Value::as_str);
            if args.contains_key(files::FILES) {
                let why = "files are read from a folder of this machine, and not taken from a caller";
                return Err(Refusal::new(Code::InvalidArgument, why));
            }
            let ready = remote.connect().await?;
            let agent = args.get("agent").and_then(Value::as_str).unwrap_or_default();
            // What an agent is told is its own affair; only a tool's arguments are known to be files.
            if ready.tools.iter().any(|tool| tool["name"] == agent) {
                files::attach(service.machine(), from, &mut args).await?;
            }
            dispatch(remote, name, args, &call_id).await
        }
        "task_status" | "cancel_task" => dispatch(remote, name, args, "").await,
        _ => remote.ask(name, &args, None).await,
    }
}

async fn dispatch(
    remote: RemoteEnvironment,
    name: &str,
    args: Map<String, Value>,
    call_id: &str,
) -> Result<Value, Refusal> {
    let environment = json!({ "key": remote.known().key, "kind": "server", "reach": "paired" });
    let dispatcher = Dispatcher::new().with(Placement::Remote, Rc::new(remote));
    let caller = Caller::new(OWNER, call_id);
    Ok(json!(dispatcher.call(&environment, name, &Value::Object(args), &caller).await?))
}

/// Takes in the files that a paired machine sent along with a delegation.
///
/// # Errors
/// What stands against taking them.
pub(crate) async fn receive(
    machine: &crate::machine::Machine,
    args: &Map<String, Value>,
    session: &Session,
) -> Result<Map<String, Value>, Refusal> {
    let mut args = args.clone();
    // Whoever sits here has no need to send files to the same machine.
    if session.owner != OWNER {
        files::receive(machine, &mut args, &session.owner).await?;
    }
    Ok(args)
}

fn not_understood(err: serde_json::Error) -> Refusal {
    let why = format!("what the remote says is not understood: {}", cut(&err.to_string(), 120));
    Refusal::new(Code::InvalidFrame, why)
}
