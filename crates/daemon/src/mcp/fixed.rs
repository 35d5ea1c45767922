//! The tools that are always there. They are part of this program, and so are their definitions.

use rmcp::model::Tool;
use serde_json::{Map, Value, json};

use super::definition::object;

/// What each fixed tool is called with, and what it is for.
struct Fixed {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    input: fn() -> Value,
    hints: [bool; 4],
}

/// Their names: inventory, call by name, and tasks.
pub(super) const LIST_EXTENSIONS: &str = "list_extensions";
pub(super) const CALL_EXTENSION: &str = "call_extension";
pub(super) const DELEGATE_TASK: &str = "delegate_task";
pub(super) const TASK_STATUS: &str = "task_status";
pub(super) const CANCEL_TASK: &str = "cancel_task";

const FIXED: [Fixed; 5] = [
    Fixed {
        name: LIST_EXTENSIONS,
        title: "List tools",
        description: "Lists every tool of the shelf and every granted extension, with digests, argument schemas, how calls have gone, and what was refused and why.",
        input: || json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        hints: [true, false, true, false],
    },
    Fixed {
        name: CALL_EXTENSION,
        title: "Call a tool by name",
        description: "Calls a tool that list_extensions names. Use it for tools that came after the list of tools was read.",
        input: || {
            json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "the tool's name" },
                    "arguments": { "type": "object", "description": "its arguments" },
                },
                "required": ["name"],
                "additionalProperties": false,
            })
        },
        hints: [false, true, false, true],
    },
    Fixed {
        name: DELEGATE_TASK,
        title: "Delegate a task",
        description: "Hands longer work to an agent or a tool that runs in a folder of this computer. Answers at once with the task's address; task_status tells how it goes.",
        input: || {
            json!({
                "type": "object",
                "properties": {
                    "agent": { "type": "string", "description": "the tool's id, or the configured agent's name" },
                    "task": { "type": "string", "description": "what is to be done; for a tool its input, or JSON that names files" },
                    "callId": { "type": "string", "description": "a name for this delegation: the same name again answers the same task" },
                    "root": { "type": "string", "description": "the folder to work in, one of those that were set up" },
                    "deadlineMs": { "type": "integer", "minimum": 1, "description": "how long it may take" },
                },
                "required": ["agent", "task"],
                "additionalProperties": false,
            })
        },
        hints: [false, true, false, true],
    },
    Fixed {
        name: TASK_STATUS,
        title: "Task status",
        description: "Says where a task stands, and its answer when it has ended.",
        input: address,
        hints: [true, false, true, false],
    },
    Fixed {
        name: CANCEL_TASK,
        title: "Cancel a task",
        description: "Asks a task to stop.",
        input: address,
        hints: [false, true, true, false],
    },
];

fn address() -> Value {
    json!({
        "type": "object",
        "properties": { "address": { "type": "string", "description": "the address that delegate_task gave" } },
        "required": ["address"],
        "additionalProperties": false,
    })
}

/// Whether one of them has that name.
pub(super) fn is_fixed(name: &str) -> bool {
    FIXED.iter().any(|fixed| fixed.name == name)
}

/// As the protocol writes them.
pub(super) fn tools() -> impl Iterator<Item = Tool> {
    FIXED.iter().map(|fixed| {
        let [read_only, destructive, idempotent, open] = fixed.hints;
        let hints = rmcp::model::ToolAnnotations::new()
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open);
        Tool::new(fixed.name, fixed.description, object((fixed.input)()))
            .with_title(fixed.title)
            .with_annotations(hints)
    })
}

/// What the fixed tool `name` takes.
pub(super) fn input(name: &str) -> Map<String, Value> {
    FIXED.iter().find(|fixed| fixed.name == name).map(|fixed| object((fixed.input)())).unwrap_or_default()
}
