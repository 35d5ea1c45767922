//! How admitted tools are shown to others: extension descriptors and live tool declarations.
//!
//! Source: the reference facts, A5.

use serde_json::{Map, Value, json};

use crate::abi::Abi;
use crate::shelf::Tool;

/// Names of the fixed commands of a live session; a shelf tool cannot take one of them.
pub const RESERVED_NAMES: &[&str] = &[
    "list_extensions",
    "call_extension",
    "propose_extension",
    "write_file",
    "read_file",
    "list_files",
    "delete_file",
    "edit_file",
    "diff_file",
    "grep_files",
    "list_agents",
    "delegate_task",
    "task_status",
    "cancel_task",
    "contact_agent",
    "launch_mini_app",
    "git_status",
    "git_diff",
    "git_log",
    "inspect_environment",
    "undo_last_action",
    "list_tools",
    "search_tools",
    "run_command",
    "open_workspace",
];

/// The extension descriptor of a tool that is admitted and can be called; `None` for any other.
#[must_use]
pub fn descriptor(tool: &Tool) -> Option<Value> {
    let (admitted, abi) = tool.driven()?;
    let id = &tool.id;
    let digest = admitted.digest.to_string();
    let mut wasm = abi.row();
    wasm["path"] = json!(tool.wasm_path);
    wasm["digest"] = json!(digest);
    Some(json!({
        "id": format!("wasm-shelf-{id}"),
        "name": format!("wasm shelf: {id}"),
        "description": pinned_description(tool),
        "source": "catalogue",
        "runsIn": "host",
        "capabilities": [],
        "bounds": {},
        "tools": [{
            "name": id,
            "description": format!("{} — wasm, digest {}…", tool.description, &digest[..12]),
            "primitive": "wasm",
            "params": {},
            "wasm": wasm,
        }],
    }))
}

/// What a live session is told of the shelf: every tool that can be called and whose id is not in `reserved`.
#[must_use]
pub fn live_tool_declarations<'a>(
    tools: impl IntoIterator<Item = &'a Tool>,
    reserved: &[&str],
) -> Vec<Value> {
    let declare = |tool: &'a Tool| {
        let (_, abi) = tool.driven()?;
        (!reserved.contains(&tool.id.as_str())).then(|| {
            json!({ "name": tool.id, "description": pinned_description(tool), "parameters": parameters(abi) })
        })
    };
    tools.into_iter().filter_map(declare).collect()
}

/// The JSON schema of a call's arguments: one required string for each input buffer.
#[must_use]
pub fn parameters(abi: Abi) -> Value {
    let inputs = abi.layout().inputs;
    let property = |input: &crate::abi::Input| {
        (input.arguments[0].to_owned(), json!({ "type": "string", "description": input.description }))
    };
    // Collecting would sort first, which costs the page more code than inserting.
    let mut properties = Map::new();
    properties.extend(inputs.iter().map(property));
    let required: Vec<_> = inputs.iter().map(|input| input.arguments[0]).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The declarations of the commands that a model may use besides the tools: the inventory and the three calls of tasks.
///
/// A delegation's call id is not among its arguments: whoever passes the call on gives it one.
#[must_use]
pub fn command_declarations() -> Vec<Value> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let command = |name: &str, description: &str, parameters: Value| json!({ "name": name, "description": description, "parameters": parameters });
    let address = || {
        let properties = json!({ "address": text("the task's address, as `delegate_task` gave it") });
        json!({ "type": "object", "properties": properties, "required": ["address"] })
    };
    let task = json!({
        "type": "object",
        "properties": {
            "agent": text("who works on it: the name of a tool, or of an agent of this environment"),
            "task": text("what is to be done; for a tool, its input"),
        },
        "required": ["agent", "task"],
    });
    vec![
        command(
            "list_extensions",
            "Lists what can be called here, and how its calls have gone",
            json!({ "type": "object", "properties": {} }),
        ),
        command("delegate_task", "Gives a task to a tool or an agent, which works on it by itself", task),
        command("task_status", "Tells how a task stands, and its answer when it has ended", address()),
        command("cancel_task", "Asks for the end of a task", address()),
    ]
}

fn pinned_description(tool: &Tool) -> String {
    format!("{} (wasm shelf, digest-pinned)", tool.description)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::refusal::{Code, Refusal};
    use crate::shelf::Admitted;

    fn tool(id: &str, abi: Option<Abi>) -> Tool {
        let digest = Digest::of(b"abc");
        Tool {
            id: id.into(),
            digest: Some(digest.to_string()),
            wasm_path: "assets/m.wasm".into(),
            description: "Does it".into(),
            capability: String::new(),
            verdict: Ok(Admitted { digest, abi, bytes: 1, memory_pages: 2, memory_max_pages: 2 }),
        }
    }

    #[test]
    fn a_descriptor_has_the_documented_shape() {
        let shown = descriptor(&tool("hash", Some(Abi::Buffer1))).unwrap();
        assert_eq!(shown["id"], "wasm-shelf-hash");
        assert_eq!(shown["name"], "wasm shelf: hash");
        assert_eq!(shown["description"], "Does it (wasm shelf, digest-pinned)");
        assert_eq!(shown["tools"][0]["description"], "Does it — wasm, digest ba7816bf8f01…");
        let wasm = &shown["tools"][0]["wasm"];
        assert_eq!(wasm["path"], "assets/m.wasm");
        assert_eq!(wasm["abi"], "buffer-abi/1");
        assert_eq!(wasm["input"], json!({"addr": 1024, "maxBytes": 8192}));
        assert_eq!(wasm["call"], json!({"export": "sha256"}));
        assert_eq!(descriptor(&tool("other", None)), None);
    }

    #[test]
    fn only_tools_that_can_be_called_are_declared_and_reserved_names_are_not() {
        let mut refused = tool("refused", Some(Abi::Diff));
        refused.verdict = Err(Refusal::new(Code::DigestMismatch, ""));
        let shelf =
            [tool("hash", Some(Abi::Buffer1)), tool("other", None), refused, tool("diff", Some(Abi::Diff))];
        let names = |reserved: &[&str]| -> Vec<String> {
            let declared = live_tool_declarations(&shelf, reserved);
            declared.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&[]), ["hash", "diff"]);
        assert_eq!(names(&["hash"]), ["diff"]);
        assert_eq!(names(RESERVED_NAMES), ["hash", "diff"]);
    }

    #[test]
    fn commands_are_declared_like_tools_and_under_reserved_names() {
        let commands = command_declarations();
        assert_eq!(commands.len(), 4);
        for command in commands {
            assert!(RESERVED_NAMES.contains(&command["name"].as_str().unwrap()), "{command}");
            assert!(command["description"].is_string() && command["parameters"]["type"] == "object");
        }
    }

    #[test]
    fn schemas_name_the_arguments() {
        assert_eq!(
            parameters(Abi::Diff),
            json!({"type": "object", "required": ["a", "b"], "properties": {
                "a": {"type": "string", "description": "old text"},
                "b": {"type": "string", "description": "new text"}}})
        );
        assert_eq!(
            parameters(Abi::Buffer1),
            json!({"type": "object", "required": ["input"], "properties": {
                "input": {"type": "string", "description": "input text to compute over"}}})
        );
    }
}
