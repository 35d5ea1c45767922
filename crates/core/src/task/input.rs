//! What may be asked: the agent and the task, and nothing that would carry authority.
//!
//! Source: the reference facts, B2 and B5.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::refusal::{Code, Refusal, cut};

/// Longest task, in bytes of UTF-8.
pub const TASK_MAX_BYTES: usize = 16_384;
/// Longest name of an agent, in characters.
pub const AGENT_MAX_CHARS: usize = 80;
/// Longest call id, in characters.
pub const CALL_ID_MAX_CHARS: usize = 160;
/// The whole numbers that every host language carries exactly end here: 2^53 - 1.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// What is asked of which agent. On the wire `{agent, task, context: []}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskInput {
    /// Name of the agent.
    pub agent: String,
    /// The task, as it was written.
    pub task: String,
    /// Always empty: no placement hands over context yet.
    #[serde(default)]
    pub context: [(); 0],
}

/// What an executor promises to keep to. On the wire `{deadlineMs, maxOutputBytes}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskBounds {
    /// Wall-clock deadline, in milliseconds.
    pub deadline_ms: u32,
    /// Most bytes of the answer.
    pub max_output_bytes: u32,
}

/// Why a task is not taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InputFault {
    /// The whole is no object, or the task is no text.
    #[error("a task is an object with the texts `agent` and `task`; {0}")]
    Invalid(&'static str),
    /// A field that a caller must not set.
    #[error("the field {0:?} is not the caller's to set; a task has `agent`, `task` and `context`")]
    AuthorityField(String),
    /// No agent, or one of a name that no agent has.
    #[error("`agent` must be 1 to {AGENT_MAX_CHARS} letters, digits, `.`, `_` or `-`")]
    AgentRequired,
    /// More than [`TASK_MAX_BYTES`].
    #[error("the task is {0} bytes; a host takes at most {TASK_MAX_BYTES}")]
    OverBudget(usize),
    /// `context` is there and no list.
    #[error("`context` must be a list")]
    InvalidContext,
    /// `context` is not empty.
    #[error("no host hands over context yet; `context` must be empty")]
    ContextUnavailable,
    /// No call id, or one of a form that no call id has.
    #[error("a call id of 1 to {CALL_ID_MAX_CHARS} letters, digits, `.`, `_`, `:` or `-` is required")]
    CallIdRequired,
}

impl From<InputFault> for Refusal {
    fn from(fault: InputFault) -> Self {
        let code = match fault {
            InputFault::Invalid(_) => Code::InvalidTask,
            InputFault::AuthorityField(_) => Code::TaskAuthorityField,
            InputFault::AgentRequired => Code::AgentRequired,
            InputFault::OverBudget(_) => Code::TaskInputOverBudget,
            InputFault::InvalidContext => Code::InvalidTaskContext,
            InputFault::ContextUnavailable => Code::TaskContextUnavailable,
            InputFault::CallIdRequired => Code::TaskCallIdRequired,
        };
        Self::new(code, fault.to_string())
    }
}

/// Reads what a caller asks. The checks stand in the order in which their refusals win.
///
/// # Errors
/// An [`InputFault`].
pub fn task_input(value: &Value) -> Result<TaskInput, InputFault> {
    let Value::Object(object) = value else { return Err(InputFault::Invalid("this is no object")) };
    if let Some(key) = object.keys().find(|key| !["agent", "task", "context"].contains(&key.as_str())) {
        return Err(InputFault::AuthorityField(cut(key, 80)));
    }
    let agent = object.get("agent").and_then(Value::as_str).filter(|agent| is_agent(agent));
    let agent = agent.ok_or(InputFault::AgentRequired)?;
    let task = object.get("task").and_then(Value::as_str).filter(|task| !is_blank(task));
    let task = task.ok_or(InputFault::Invalid("`task` is blank or no text"))?;
    if task.len() > TASK_MAX_BYTES {
        return Err(InputFault::OverBudget(task.len()));
    }
    match object.get("context") {
        None => {}
        Some(Value::Array(context)) if context.is_empty() => {}
        Some(Value::Array(_)) => return Err(InputFault::ContextUnavailable),
        Some(_) => return Err(InputFault::InvalidContext),
    }
    Ok(TaskInput { agent: agent.to_owned(), task: task.to_owned(), context: [] })
}

/// Checks a call id: the name that a caller gives to one call, so that it can be repeated safely.
///
/// # Errors
/// [`InputFault::CallIdRequired`].
pub fn check_call_id(call_id: Option<&str>) -> Result<&str, InputFault> {
    call_id.filter(|id| is_name(id, CALL_ID_MAX_CHARS, b"._:-")).ok_or(InputFault::CallIdRequired)
}

impl TaskBounds {
    /// The two numbers of bounds in their wire form, if both are whole numbers that are not negative.
    pub(crate) fn numbers(value: &Value) -> Option<(u64, u64)> {
        Some((whole_number(value.get("deadlineMs")?)?, whole_number(value.get("maxOutputBytes")?)?))
    }
}

fn is_agent(agent: &str) -> bool {
    is_name(agent, AGENT_MAX_CHARS, b"._-")
}

fn is_name(text: &str, max: usize, besides: &[u8]) -> bool {
    (1..=max).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || besides.contains(&byte))
}

/// Blank as the host languages of a caller see it: a byte-order mark is white space there.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|char| char.is_whitespace() || char == '\u{feff}')
}

/// A whole number, also when it was written with a fraction of zero.
fn whole_number(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0)?;
        (float <= MAX_SAFE_INTEGER as f64).then_some(float as u64)
    });
    number.filter(|&number| number <= MAX_SAFE_INTEGER)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(value: &Value) -> Code {
        Refusal::from(task_input(value).unwrap_err()).code
    }

    #[test]
    fn a_task_is_taken_as_it_was_written() {
        let input = task_input(&json!({"agent": "hash", "task": "  a b\n", "context": []})).unwrap();
        assert_eq!((input.agent.as_str(), input.task.as_str()), ("hash", "  a b\n"));
        let wire = json!({"agent": "hash", "task": "  a b\n", "context": []});
        assert_eq!(serde_json::to_value(&input).unwrap(), wire);
        assert_eq!(serde_json::from_value::<TaskInput>(wire).unwrap(), input);
        assert_eq!(task_input(&json!({"agent": "hash", "task": "  a b\n"})).unwrap(), input);
    }

    #[test]
    fn each_rule_has_its_refusal() {
        for value in [json!(null), json!("x"), json!([]), json!(7)] {
            assert_eq!(code(&value), Code::InvalidTask, "{value}");
        }
        for key in ["owner", "bounds", "root", "environment", "boot", "Agent"] {
            let refusal = Refusal::from(task_input(&json!({ (key): 1 })).unwrap_err());
            assert_eq!(refusal.code, Code::TaskAuthorityField);
            assert!(refusal.why.contains(key), "{}", refusal.why);
        }
        for agent in [json!(null), json!(""), json!("a b"), json!("ä"), json!("a".repeat(81)), json!(7)] {
            assert_eq!(code(&json!({"agent": agent, "task": "t"})), Code::AgentRequired, "{agent}");
        }
        for task in [json!(null), json!(""), json!(" \n\u{feff}\u{3000}"), json!(["t"])] {
            assert_eq!(code(&json!({"agent": "a", "task": task})), Code::InvalidTask, "{task}");
        }
        let with_context = |context: Value| code(&json!({"agent": "a", "task": "t", "context": context}));
        assert_eq!(with_context(json!(null)), Code::InvalidTaskContext);
        assert_eq!(with_context(json!({})), Code::InvalidTaskContext);
        assert_eq!(with_context(json!([1])), Code::TaskContextUnavailable);
    }

    #[test]
    fn a_task_is_bounded_in_bytes_not_in_characters() {
        let with_task = |task: String| task_input(&json!({"agent": "a", "task": task}));
        assert!(with_task("é".repeat(8_192)).is_ok());
        assert_eq!(with_task(format!("{}x", "é".repeat(8_192))), Err(InputFault::OverBudget(16_385)));
    }

    #[test]
    fn the_first_rule_that_is_broken_wins() {
        let long = "x".repeat(16_385);
        let order = [
            (json!({"x": 1, "agent": "", "task": "", "context": 1}), Code::TaskAuthorityField),
            (json!({"agent": "", "task": "", "context": 1}), Code::AgentRequired),
            (json!({"agent": "a", "task": "", "context": 1}), Code::InvalidTask),
            (json!({"agent": "a", "task": long, "context": 1}), Code::TaskInputOverBudget),
            (json!({"agent": "a", "task": "t", "context": 1}), Code::InvalidTaskContext),
        ];
        for (value, wanted) in order {
            assert_eq!(code(&value), wanted);
        }
    }

    #[test]
    fn call_ids_are_names() {
        assert_eq!(check_call_id(Some("turn:1.a_b-c")), Ok("turn:1.a_b-c"));
        for bad in [None, Some(""), Some("a b"), Some("a\0b"), Some(&*"a".repeat(161))] {
            assert_eq!(check_call_id(bad), Err(InputFault::CallIdRequired), "{bad:?}");
        }
    }
}
