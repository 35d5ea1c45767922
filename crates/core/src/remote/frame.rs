//! The frames of `/channel`: JSON objects in text messages of a WebSocket.
//!
//! The side that asks says [`First::Hello`] with its token, or [`First::Pair`] with a code. It is answered
//! [`Told::Ready`] or [`Told::Paired`], or [`Told::Refused`] and a close with 1008. Then it sends [`Call`]s, and hears
//! an [`Answer`] to each, and [`Told::Task`] of every change of its tasks. A frame has the fields of its kind and no
//! other: what one side does not know it cannot obey.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{CHANNEL_FRAME_MAX_BYTES, CHANNEL_TOOLS, CHANNEL_VERSION, descriptor_id};
use crate::live::MachineEnvironment;
use crate::placement::PlacementBounds;
use crate::refusal::{Code, Refusal, cut};
use crate::remote::scope::Scope;
use crate::task::TaskView;

/// The role that a hello names.
const ROLE: &str = "environment";

/// The first frame of the side that asks.
#[derive(Clone, PartialEq, Eq)]
pub enum First {
    /// `{type: "hello", role: "environment", bearer}`.
    Hello {
        /// The token.
        bearer: String,
    },
    /// `{type: "pair", v, code, name}`.
    Pair {
        /// The code.
        code: String,
        /// What the machine that asks calls itself.
        name: String,
    },
}

/// A call: `{v, callId, tool, descriptorId, args, boundsEcho}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// [`CHANNEL_VERSION`].
    pub v: u32,
    /// The caller's name of the call; of a delegation, the one that makes its repeats the same task.
    pub call_id: String,
    /// One of the [`CHANNEL_TOOLS`].
    pub tool: String,
    /// The name under which the tool was handed out.
    pub descriptor_id: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// The bounds of the environment, as they were handed out.
    pub bounds_echo: PlacementBounds,
}

/// The answer to a call: `{v, callId, ok: true, observed}` or `{v, callId, ok: false, refused, why}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The call that is answered.
    pub call_id: String,
    /// What was observed, or why not.
    pub result: Result<Value, Refusal>,
}

/// A tool of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// The name under which it is called.
    pub id: String,
    /// The tool.
    pub tool: String,
}

/// What a token is good for, as it is handed over with it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Paired {
    /// The token. It is told this once.
    pub bearer: String,
    /// The remote's name of the pairing.
    pub pairing: String,
    /// What it is called on the remote.
    pub name: String,
    /// What it may be used for.
    pub scopes: Vec<Scope>,
    /// When it ends, in milliseconds since 1970 by the remote's clock; without, it does not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    /// The environment that the remote is.
    pub environment: MachineEnvironment,
}

/// What the side that is asked says of itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// The channel can be used.
    Ready {
        /// The environment.
        environment: Box<MachineEnvironment>,
        /// What can be called.
        descriptors: Vec<Descriptor>,
        /// The declarations of its shelf.
        tools: Vec<Value>,
    },
    /// A code was taken.
    Paired(Box<Paired>),
    /// A task of the caller has changed.
    Task(Box<TaskView>),
    /// The connection is refused, and closed after this.
    Refused(Refusal),
    /// A call is answered.
    Answer(Answer),
}

impl First {
    /// Reads the first frame.
    ///
    /// # Errors
    /// [`Code::UnknownField`], and [`Code::ExecutorUnauthenticated`] for anything that is no first frame.
    pub fn read(text: &str) -> Result<Self, Refusal> {
        #[derive(Deserialize)]
        struct Hello {
            role: String,
            bearer: String,
        }
        #[derive(Deserialize)]
        struct Pair {
            v: u32,
            code: String,
            name: String,
        }
        let none = |why: String| Refusal::new(Code::ExecutorUnauthenticated, why);
        let object = object(text).map_err(|refusal| none(refusal.why))?;
        match object.get("type").and_then(Value::as_str) {
            Some("hello") => {
                let Hello { role, bearer } = typed(object, &["type", "role", "bearer"])?;
                if role != ROLE {
                    return Err(none(format!("the role {:?} is not {ROLE:?}", cut(&role, 40))));
                }
                Ok(Self::Hello { bearer })
            }
            Some("pair") => {
                let Pair { v, code, name } = typed(object, &["type", "v", "code", "name"])?;
                check_version(v)?;
                Ok(Self::Pair { code, name })
            }
            _ => Err(none("the first frame must be a hello with a token, or a code".to_owned())),
        }
    }

    /// The frame's text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Hello { bearer } => json!({ "type": "hello", "role": ROLE, "bearer": bearer }),
            Self::Pair { code, name } => {
                json!({ "type": "pair", "v": CHANNEL_VERSION, "code": code, "name": name })
            }
        }
        .to_string()
    }
}

impl std::fmt::Debug for First {
    // Token and code stay out of it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hello { .. } => "Hello",
            Self::Pair { .. } => "Pair",
        })
    }
}

impl std::fmt::Debug for Paired {
    // The token stays out of it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paired")
            .field("pairing", &self.pairing)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Call {
    const FIELDS: [&str; 6] = ["v", "callId", "tool", "descriptorId", "args", "boundsEcho"];

    /// Reads a call. What is wrong with one that has a call id can be answered to it.
    ///
    /// # Errors
    /// [`Code::UnknownField`] and [`Code::InvalidFrame`], with the call id where there is one.
    pub fn read(text: &str) -> Result<Self, (Option<String>, Refusal)> {
        let object = object(text).map_err(|refusal| (None, refusal))?;
        let call_id = object.get("callId").and_then(Value::as_str).map(str::to_owned);
        let read = || {
            let bounds = object.get("boundsEcho").and_then(Value::as_object);
            let bounds = bounds.ok_or_else(|| invalid("`boundsEcho` is no object"))?;
            check_fields(
                bounds,
                &["defaultDeadlineMs", "maxDeadlineMs", "maxOutputBytes", "maxActiveTasks"],
            )?;
            let call: Self = typed(object, &Self::FIELDS)?;
            check_version(call.v)?;
            Ok(call)
        };
        read().map_err(|refusal| (call_id, refusal))
    }

    /// Whether the call is one of those that were handed out for `environment`.
    ///
    /// # Errors
    /// [`Code::UnattributedCall`] and [`Code::BoundsMismatch`].
    pub fn check(&self, environment: &str, bounds: &PlacementBounds) -> Result<(), Refusal> {
        let is_known = CHANNEL_TOOLS.contains(&&*self.tool);
        if !is_known || self.descriptor_id != descriptor_id(environment, &self.tool, &self.bounds_echo) {
            let (tool, id) = (cut(&self.tool, 60), cut(&self.descriptor_id, 60));
            let why = format!("no descriptor {id:?} was handed out for the tool {tool:?} with such bounds");
            // With the right name for other bounds, it is the bounds that were changed.
            if is_known && self.descriptor_id == descriptor_id(environment, &self.tool, bounds) {
                return Err(mismatch(&self.bounds_echo, bounds));
            }
            return Err(Refusal::new(Code::UnattributedCall, why));
        }
        if self.bounds_echo == *bounds { Ok(()) } else { Err(mismatch(&self.bounds_echo, bounds)) }
    }
}

fn mismatch(echo: &PlacementBounds, bounds: &PlacementBounds) -> Refusal {
    let why = format!("the call repeats the bounds {}, and they are {}", json!(echo), json!(bounds));
    Refusal::new(Code::BoundsMismatch, why)
}

/// What can be called in `environment`.
#[must_use]
pub fn descriptors(environment: &str, bounds: &PlacementBounds) -> Vec<Descriptor> {
    let descriptor =
        |tool: &str| Descriptor { id: descriptor_id(environment, tool, bounds), tool: tool.to_owned() };
    CHANNEL_TOOLS.into_iter().map(descriptor).collect()
}

impl Told {
    /// Reads what the side that is asked says.
    ///
    /// # Errors
    /// [`Code::UnknownField`] and [`Code::InvalidFrame`].
    pub fn read(text: &str) -> Result<Self, Refusal> {
        #[derive(Deserialize)]
        struct Ready {
            v: u32,
            environment: Box<MachineEnvironment>,
            descriptors: Vec<Descriptor>,
            tools: Vec<Value>,
        }
        #[derive(Deserialize)]
        struct Task {
            v: u32,
            task: Box<TaskView>,
        }
        #[derive(Deserialize)]
        struct Pairing {
            v: u32,
            paired: Box<Paired>,
        }
        let object = object(text)?;
        match object.get("type").map(Value::as_str) {
            None => Answer::of(object).map(Self::Answer),
            Some(Some("ready")) => {
                let Ready { v, environment, descriptors, tools } =
                    typed(object, &["type", "v", "environment", "descriptors", "tools"])?;
                check_version(v)?;
                Ok(Self::Ready { environment, descriptors, tools })
            }
            Some(Some("task")) => {
                let Task { v, task } = typed(object, &["type", "v", "task"])?;
                check_version(v)?;
                Ok(Self::Task(task))
            }
            Some(Some("paired")) => {
                let Pairing { v, paired } = typed(object, &["type", "v", "paired"])?;
                check_version(v)?;
                Ok(Self::Paired(paired))
            }
            Some(Some("refused")) => {
                check_fields(&object, &["type", "refused", "why"])?;
                Ok(Self::Refused(typed(object, &["type", "refused", "why"])?))
            }
            Some(_) => Err(invalid("a frame of a type that is not known")),
        }
    }

    /// The frame's text; an answer that would be longer than a frame may be is refused in its place.
    #[must_use]
    pub fn text(&self) -> String {
        let v = CHANNEL_VERSION;
        let text = match self {
            Self::Ready { environment, descriptors, tools } => json!({
                "type": "ready", "v": v, "environment": environment, "descriptors": descriptors, "tools": tools,
            }),
            Self::Paired(paired) => json!({ "type": "paired", "v": v, "paired": paired }),
            Self::Task(task) => json!({ "type": "task", "v": v, "task": task }),
            Self::Refused(Refusal { code, why }) => {
                json!({ "type": "refused", "refused": code.as_str(), "why": why })
            }
            Self::Answer(Answer { call_id, result }) => match result {
                Ok(observed) => json!({ "v": v, "callId": call_id, "ok": true, "observed": observed }),
                Err(Refusal { code, why }) => json!({
                    "v": v, "callId": call_id, "ok": false, "refused": code.as_str(), "why": why,
                }),
            },
        }
        .to_string();
        match self {
            Self::Answer(Answer { call_id, result: Ok(_) }) if text.len() > CHANNEL_FRAME_MAX_BYTES => {
                let why = format!(
                    "the answer is longer than {CHANNEL_FRAME_MAX_BYTES} bytes; ask for less at a time"
                );
                let result = Err(Refusal::new(Code::OverBudget, why));
                Self::Answer(Answer { call_id: call_id.clone(), result }).text()
            }
            _ => text,
        }
    }
}

impl Answer {
    fn of(object: Map<String, Value>) -> Result<Self, Refusal> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Observed {
            v: u32,
            call_id: String,
            observed: Map<String, Value>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Refused {
            v: u32,
            call_id: String,
            refused: String,
            why: String,
        }
        if object.get("ok") == Some(&Value::Bool(true)) {
            let Observed { v, call_id, observed } = typed(object, &["v", "callId", "ok", "observed"])?;
            check_version(v)?;
            return Ok(Self { call_id, result: Ok(Value::Object(observed)) });
        }
        if object.get("ok") != Some(&Value::Bool(false)) {
            return Err(invalid("an answer without `ok`"));
        }
        let Refused { v, call_id, refused, why } = typed(object, &["v", "callId", "ok", "refused", "why"])?;
        check_version(v)?;
        let refusal = match Code::parse(&refused) {
            Some(code) => Refusal::new(code, cut(&why, 1_000)),
            None => invalid(&format!("the refusal {:?}, which is not known here", cut(&refused, 60))),
        };
        Ok(Self { call_id, result: Err(refusal) })
    }
}

fn object(text: &str) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(invalid("it is no JSON object")),
        Err(err) => Err(invalid(&cut(&err.to_string(), 120))),
    }
}

/// Of the fields `allowed`, all that the type has must be there, and no other.
fn typed<T: DeserializeOwned>(object: Map<String, Value>, allowed: &[&str]) -> Result<T, Refusal> {
    check_fields(&object, allowed)?;
    serde_json::from_value(Value::Object(object)).map_err(|err| invalid(&cut(&err.to_string(), 120)))
}

fn check_fields(object: &Map<String, Value>, allowed: &[&str]) -> Result<(), Refusal> {
    match object.keys().find(|field| !allowed.contains(&&***field)) {
        None => Ok(()),
        Some(field) => {
            let why = format!("the frame has the field `{}`, which it must not have", cut(field, 60));
            Err(Refusal::new(Code::UnknownField, why))
        }
    }
}

fn check_version(v: u32) -> Result<(), Refusal> {
    match v {
        CHANNEL_VERSION => Ok(()),
        other => Err(invalid(&format!("version {other}; version {CHANNEL_VERSION} is understood"))),
    }
}

fn invalid(why: &str) -> Refusal {
    Refusal::new(Code::InvalidFrame, format!("the frame is not understood: {why}"))
}

#[cfg(test)]
mod tests;
