//! What callers may ask for by name. A tool's id is a name as well, unless a command has it.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toolshelf_core::abi::Abi;
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::task::listing::Filter;
use toolshelf_host::{Caller, Wish};

use super::{Service, Session};
use crate::machine::Machine;
use crate::remote::route::{self, Place};

/// The key of an argument whose bytes are given in base64.
const BASE64: &str = "base64";

/// Tasks that are listed when nobody says how many, and at most.
pub(super) const LISTED: usize = 100;
pub(super) const LISTED_MAX: usize = 1_000;

/// Which tasks to list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListTasks {
    #[serde(default)]
    filter: Filter,
    before: Option<u64>,
    limit: Option<usize>,
}

/// Which task to tell all of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskDetail {
    position: u64,
}

/// What a caller of `delegate_task` says beside the task itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Beside {
    call_id: Option<String>,
    root: Option<String>,
    deadline_ms: Option<u32>,
}

impl Service {
    /// Does what `name` asks for. A tool's id is a name as well, unless a command has it.
    ///
    /// | command | answer |
    /// |---|---|
    /// | `list_extensions` | the inventory |
    /// | `call_extension {name, …}` | the tool's answer |
    /// | `delegate_task {agent, task, callId, root?, deadlineMs?, environment?}` | `{ok, task, existing}` |
    /// | `task_status {address}` | `{ok, task}` |
    /// | `cancel_task {address}` | `{ok, state, observed}` |
    /// | `list_tasks {filter?, before?, limit?, environment?}` | `{ok, rows, next}` |
    /// | `task_detail {position, environment?}` | `{ok, detail}` |
    /// | `environment {environment?}` | `{ok, environment}` |
    ///
    /// `environment` is the key of a remote that was paired; without it, this computer is meant.
    ///
    /// # Errors
    /// The refusal of what was asked for.
    pub(crate) async fn command(
        &self,
        name: &str,
        args: &Map<String, Value>,
        session: &Session,
    ) -> Result<Value, Refusal> {
        if let Some(answer) = self.ask_cluster(name, args, session).await {
            return answer;
        }
        let args = &match route::place(self, name, args, session)? {
            Place::Here(args) => args,
            Place::There(remote, args) => return route::ask(self, remote, name, args).await,
        };
        match name {
            "list_extensions" => self.inventory().await,
            "call_extension" => {
                let (tool, args) = extension_call(args)?;
                Ok(json!(self.call_tool(&tool, &args, session.from).await?))
            }
            "delegate_task" => {
                let machine = self.tasks_of(session).await?;
                let args = route::receive(machine, args, session).await?;
                let (task, caller) = delegation(machine, &args, session)?;
                Ok(json!(machine.call(name, &task, &caller).await?))
            }
            "task_status" | "cancel_task" => {
                let (args, caller) = (Value::Object(Map::clone(args)), Caller::new(&*session.owner, ""));
                Ok(json!(self.tasks_of(session).await?.call(name, &args, &caller).await?))
            }
            "list_tasks" => {
                let ListTasks { filter, before, limit } = read(args)?;
                let limit = limit.unwrap_or(LISTED).clamp(1, LISTED_MAX);
                let page = self.tasks_of(session).await?.list(&session.owner, filter, before, limit).await?;
                Ok(json!({ "ok": true, "rows": page.rows, "next": page.next }))
            }
            "task_detail" => {
                let TaskDetail { position } = read(args)?;
                let detail = self.tasks_of(session).await?.detail(&session.owner, position).await?;
                Ok(json!({ "ok": true, "detail": detail }))
            }
            "environment" => {
                Ok(json!({ "ok": true, "environment": self.tasks_of(session).await?.environment() }))
            }
            _ => {
                texts_only(args)?;
                Ok(json!(self.call_tool(name, args, session.from).await?))
            }
        }
    }
}

/// The task that is to be delegated, and its caller with what is wished beside it.
fn delegation(
    machine: &Machine,
    args: &Map<String, Value>,
    session: &Session,
) -> Result<(Value, Caller), Refusal> {
    let mut task = args.clone();
    let names = ["callId", "root", "deadlineMs"];
    let beside = names.into_iter().filter_map(|name| Some((name.to_owned(), task.remove(name)?))).collect();
    let Beside { call_id, root, deadline_ms } = read(&beside)?;
    let root = Some(machine.root(root.as_deref())?);
    let caller = Caller { owner: Some(session.owner.clone()), call_id, wish: Wish { root, deadline_ms } };
    Ok((Value::Object(task), caller))
}

/// Reads the arguments of a command.
pub(super) fn read<T: DeserializeOwned>(args: &Map<String, Value>) -> Result<T, Refusal> {
    serde_json::from_value(Value::Object(args.clone()))
        .map_err(|err| Refusal::new(Code::InvalidArgument, cut(&err.to_string(), 120)))
}

/// The tool that `call_extension` names, and the arguments for it.
fn extension_call(args: &Map<String, Value>) -> Result<(String, Map<String, Value>), Refusal> {
    let mut args = args.clone();
    let name = args.remove("name").filter(|name| !name.is_null());
    let name =
        name.ok_or_else(|| Refusal::new(Code::MissingArgument, "`name` is needed: the tool to call"))?;
    let Value::String(name) = name else {
        return Err(Refusal::new(Code::InvalidArgument, "`name` must be a text"));
    };
    texts_only(&args)?;
    Ok((name, args))
}

fn texts_only(args: &Map<String, Value>) -> Result<(), Refusal> {
    match args.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(()),
        Some((name, _)) => {
            Err(Refusal::new(Code::InvalidArgument, format!("`{}` must be a text", cut(name, 60))))
        }
    }
}

/// The bytes of each input, by the first of its names. An input that is not given is empty (reference facts, A3).
pub(super) fn arguments(
    abi: Abi,
    args: &Map<String, Value>,
) -> Result<HashMap<&'static str, Vec<u8>>, Refusal> {
    let inputs = abi.layout().inputs;
    let mut given = HashMap::new();
    for (name, value) in args {
        let input = inputs.iter().find(|input| input.arguments.contains(&&**name)).ok_or_else(|| {
            let takes: Vec<_> = inputs.iter().map(|input| input.arguments[0]).collect();
            let why =
                format!("the tool has no argument `{}`; it takes {}", cut(name, 60), takes.join(" and "));
            Refusal::new(Code::InvalidArgument, why)
        })?;
        if given.insert(input.arguments[0], bytes(name, value)?).is_some() {
            let why = format!("`{}` gives the same input a second time", cut(name, 60));
            return Err(Refusal::new(Code::InvalidArgument, why));
        }
    }
    for input in inputs {
        given.entry(input.arguments[0]).or_default();
    }
    Ok(given)
}

fn bytes(name: &str, value: &Value) -> Result<Vec<u8>, Refusal> {
    let invalid =
        |what: &str| Refusal::new(Code::InvalidArgument, format!("`{}` must be {what}", cut(name, 60)));
    if let Value::String(text) = value {
        return Ok(text.clone().into_bytes());
    }
    let only = value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get(BASE64));
    let encoded = only.and_then(Value::as_str).ok_or_else(|| invalid("a text or {\"base64\": \"…\"}"))?;
    STANDARD.decode(encoded).map_err(|_| invalid("base64 of the standard alphabet, with padding"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn arguments_are_texts_or_bytes_under_any_of_their_names() {
        let given = arguments(Abi::Diff, &args(json!({"oldText": "x", "b": {"base64": "/w=="}}))).unwrap();
        assert_eq!((&given["a"][..], &given["b"][..]), (&b"x"[..], &[0xff][..]));
        assert_eq!(arguments(Abi::Buffer1, &args(json!({}))).unwrap()["input"], b"");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for bad in [
            json!({"input": 7}),
            json!({"input": null}),
            json!({"input": {"base64": "*"}}),
            json!({"input": {"base64": "YQ==", "x": 1}}),
            json!({"text": "x"}),
        ] {
            assert_eq!(arguments(Abi::Buffer1, &args(bad)).unwrap_err().code, Code::InvalidArgument);
        }
        let twice = json!({"a": "x", "oldText": "y", "b": ""});
        assert_eq!(arguments(Abi::Diff, &args(twice)).unwrap_err().code, Code::InvalidArgument);
        let code = |value: Value| extension_call(&args(value)).unwrap_err().code;
        assert_eq!(code(json!({"input": "x"})), Code::MissingArgument);
        assert_eq!(code(json!({"name": null})), Code::MissingArgument);
        assert_eq!(code(json!({"name": 7})), Code::InvalidArgument);
        assert_eq!(code(json!({"name": "hash", "input": 7})), Code::InvalidArgument);
    }
}
