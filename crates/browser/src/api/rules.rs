//! The pure functions of the package. Arguments are JSON texts, answers plain objects.

use std::rc::Rc;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use serde_json::{Map, Value, json};
use toolshelf_core::RootDescriptor;
use toolshelf_core::address::ADDRESS_MAX_CHARS;
use toolshelf_core::declare::RESERVED_NAMES;
use toolshelf_core::placement::{
    PLACEMENT_BOUNDS, Placement, placement_for_environment, validate_placement_bounds,
};
use toolshelf_core::redact::Redactor;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::input::{AGENT_MAX_CHARS, CALL_ID_MAX_CHARS, TASK_MAX_BYTES};
use toolshelf_core::task::{
    LogEntry, ReduceFault, TaskRecord, TaskState, reduce_task, task_input, task_view,
};
use toolshelf_host::task_host::TASK_TOOLS;
use toolshelf_host::task_host::report::NOTE_MAX_CHARS;
use toolshelf_host::{Caller, Dispatcher, PlacementHost, Reply};
use wasm_bindgen::prelude::*;

use super::value;
use crate::console::{BOUNDS, measured_abi};
use crate::js;

/// All constants of the package in one object.
#[must_use]
#[wasm_bindgen]
pub fn tables() -> JsValue {
    let placements =
        PLACEMENT_BOUNDS.iter().map(|(placement, bounds)| (placement.as_str().to_owned(), json!(bounds)));
    let codes = Code::ALL.iter().map(|code| {
        (code.as_str().to_owned(), json!({ "meaning": code.meaning(), "remedy": code.remedy() }))
    });
    let mut tables = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "placementBounds": placements.collect::<Map<_, _>>(),
        "measuredAbi": measured_abi(),
        "refusalCodes": codes.collect::<Map<_, _>>(),
        "reservedNames": RESERVED_NAMES,
        "taskTools": TASK_TOOLS,
        "taskStates": TaskState::ALL,
        "limits": {
            "TASK_MAX_BYTES": TASK_MAX_BYTES,
            "AGENT_MAX_CHARS": AGENT_MAX_CHARS,
            "CALL_ID_MAX_CHARS": CALL_ID_MAX_CHARS,
            "ADDRESS_MAX_CHARS": ADDRESS_MAX_CHARS,
            "NOTE_MAX_CHARS": NOTE_MAX_CHARS,
        },
    });
    for (name, bound) in BOUNDS {
        tables["limits"][name] = json!(bound);
    }
    js::plain(&tables)
}

/// A refusal, for refusals that `index.js` makes itself.
///
/// # Errors
/// When there is no such code.
#[wasm_bindgen]
pub fn refusal(code: &str, why: &str) -> Result<JsValue, JsError> {
    let code = Code::parse(code).ok_or_else(|| JsError::new("there is no such refusal code"))?;
    Ok(js::plain(&Refusal::new(code, why)))
}

/// `validatePlacementBounds`.
#[must_use]
#[wasm_bindgen(js_name = validatePlacementBounds)]
pub fn validate_bounds(placement: &str, bounds: &str) -> JsValue {
    match validate_placement_bounds(placement, &value(bounds)) {
        Ok(bounds) => js::plain(&json!({ "ok": true, "bounds": bounds })),
        Err(fault) => js::plain(&Refusal::from(fault)),
    }
}

/// `taskBounds`: the bounds when they are within those of the most generous placement.
#[must_use]
#[wasm_bindgen(js_name = taskBounds)]
pub fn task_bounds(bounds: &str) -> JsValue {
    let bounds = validate_placement_bounds(Placement::Machine.as_str(), &value(bounds));
    bounds.map_or(JsValue::NULL, |bounds| js::plain(&bounds))
}

/// `placementForEnvironment`.
#[must_use]
#[wasm_bindgen(js_name = placementForEnvironment)]
pub fn placement(environment: &str) -> JsValue {
    placement_for_environment(&value(environment))
        .map_or(JsValue::NULL, |placement| placement.as_str().into())
}

/// `taskInput`: `{ok: true, value}` or the refusal.
#[must_use]
#[wasm_bindgen(js_name = taskInput)]
pub fn input(args: &str) -> JsValue {
    match task_input(&value(args)) {
        Ok(input) => js::plain(&json!({ "ok": true, "value": input })),
        Err(fault) => js::plain(&Refusal::from(fault)),
    }
}

/// `reduceTask`.
///
/// # Errors
/// The message of the [`ReduceFault`].
#[wasm_bindgen(js_name = reduceTask)]
pub fn reduce(entries: &str, address: &str) -> Result<JsValue, JsError> {
    let Value::Array(entries) = value(entries) else {
        return Err(JsError::new("the entries must be a list"));
    };
    let ours = entries
        .into_iter()
        .filter(|entry| entry["kind"] == "task" && entry["task"]["address"] == address)
        .map(entry);
    let entries = ours.collect::<Result<Vec<_>, _>>()?;
    Ok(reduce_task(&entries, address)?.map_or(JsValue::NULL, |record| js::plain(&record)))
}

/// An entry that cannot be read creates no task and changes none.
fn entry(value: Value) -> Result<LogEntry, ReduceFault> {
    let creates = !value["task"]["created"].is_null();
    let fault = if creates { ReduceFault::InvalidCreation } else { ReduceFault::InvalidTransition };
    LogEntry::read(value).ok().flatten().ok_or(fault)
}

/// `taskView`.
///
/// # Errors
/// When the value is no record of a task.
#[wasm_bindgen(js_name = taskView)]
pub fn view(record: &str) -> Result<JsValue, JsError> {
    let record: TaskRecord = serde_json::from_str(record)
        .map_err(|err| JsError::new(&format!("this is no record of a task: {err}")))?;
    Ok(js::plain(&task_view(&record)))
}

/// `outcomeFor`.
#[must_use]
#[wasm_bindgen(js_name = outcomeFor)]
pub fn outcome(state: &str) -> JsValue {
    let state = TaskState::ALL.into_iter().find(|known| known.as_str() == state);
    state.and_then(TaskState::outcome).map_or(JsValue::NULL, |outcome| js::plain(&outcome))
}

/// `rootContainment`: the containment string, or the refusal; with a placement, whether that one reaches the root.
#[must_use]
#[wasm_bindgen(js_name = rootContainment)]
pub fn containment(root: &str, placement: Option<String>) -> JsValue {
    let contained = || {
        let root = RootDescriptor::read(&value(root))?;
        if let Some(placement) = placement.as_deref().and_then(Placement::named) {
            root.check_reachable(placement)?;
        }
        Ok::<_, Refusal>(root.to_string())
    };
    contained().map_or_else(|refusal| js::plain(&refusal), JsValue::from)
}

/// `redactSecrets`. `variables` are names and values of environment variables, in turn.
#[must_use]
#[wasm_bindgen(js_name = redactSecrets)]
pub fn redact_text(text: &str, variables: Vec<String>) -> String {
    redactor(&variables).redact(text).into_owned()
}

/// `redactObject`.
#[must_use]
#[wasm_bindgen(js_name = redactObject)]
pub fn redact_object(json: &str, variables: Vec<String>) -> JsValue {
    let mut value = value(json);
    redactor(&variables).redact_value(&mut value);
    js::plain(&value)
}

pub(super) fn redactor(variables: &[String]) -> Redactor {
    let pairs = variables.chunks_exact(2).map(|pair| (&pair[0], &pair[1]));
    Redactor::from_variables(pairs)
}

/// The dispatcher's choice: `{ok: true, placement}` or the refusal. `hosts` is an object from placements to environments.
#[must_use]
#[wasm_bindgen]
pub fn dispatch(hosts: &str, environment: &str) -> JsValue {
    let mut dispatcher = Dispatcher::new();
    if let Value::Object(hosts) = value(hosts) {
        for (placement, serves) in hosts {
            if let (Some(placement), Value::String(serves)) = (Placement::named(&placement), serves) {
                dispatcher = dispatcher.with(placement, Rc::new(Serves(serves)));
            }
        }
    }
    match dispatcher.dispatch(&value(environment)) {
        Ok((placement, _)) => {
            js::object(&[("ok", true.into()), ("placement", placement.as_str().into())]).into()
        }
        Err(refusal) => js::plain(&refusal),
    }
}

/// A host of JavaScript as the dispatcher needs it: `index.js` does the calling.
struct Serves(String);

impl PlacementHost for Serves {
    fn environment(&self) -> &str {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _tool: &'a str,
        _args: &'a Value,
        _caller: &'a Caller,
    ) -> LocalBoxFuture<'a, Result<Reply, Refusal>> {
        let why = "this host is called from JavaScript";
        async move { Err(Refusal::new(Code::PlacementUnavailable, why)) }.boxed_local()
    }
}
