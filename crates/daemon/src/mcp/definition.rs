//! What an agent sees of a tool, and the hash of that.

use std::sync::Arc;

use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolshelf_core::Digest;
use toolshelf_core::abi::Abi;
use toolshelf_core::declare::parameters;
use toolshelf_core::hidden::check_visible;
use toolshelf_core::refusal::Refusal;

/// All that an agent is told of a tool, and what runs when it is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Definition {
    /// The name that agents call.
    pub(crate) name: String,
    /// A name for people.
    pub(crate) title: String,
    /// What it does.
    pub(crate) description: String,
    /// JSON Schema of its arguments.
    pub(crate) input_schema: Map<String, Value>,
    /// JSON Schema of what it answers, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<Map<String, Value>>,
    /// Hints for clients.
    pub(crate) annotations: Map<String, Value>,
    /// SHA-256 of the module that runs, or the address of the service that is asked.
    pub(crate) digest: String,
}

impl Definition {
    /// SHA-256 of the definition, written in one way only: without white space, keys in the order of their bytes.
    pub(crate) fn hash(&self) -> Digest {
        let mut text = String::new();
        canonical(&json!(self), &mut text);
        Digest::of(text.as_bytes())
    }

    /// The lines that a person compares.
    pub(crate) fn shown(&self) -> String {
        let mut text = serde_json::to_string_pretty(&sorted(&json!(self))).unwrap_or_default();
        text.push('\n');
        text
    }

    /// # Errors
    /// [`Code::HiddenCharacters`](toolshelf_core::Code::HiddenCharacters) when anything in it is not seen by a person.
    pub(crate) fn check_visible(&self) -> Result<(), Refusal> {
        check_visible("description", &self.description)?;
        check_visible("title", &self.title)?;
        let schemas = self.output_schema.iter().chain([&self.input_schema]);
        schemas.flat_map(Map::iter).try_for_each(|(key, value)| {
            check_visible("schema", key)?;
            visible(value)
        })
    }

    /// As the protocol writes it. The digest stands beside the protocol's own fields.
    pub(crate) fn tool(&self) -> Tool {
        let mut tool =
            Tool::new(self.name.clone(), self.description.clone(), Arc::new(self.input_schema.clone()))
                .with_title(self.title.clone())
                .with_annotations(self.annotations());
        if let Some(schema) = &self.output_schema {
            tool = tool.with_raw_output_schema(Arc::new(schema.clone()));
        }
        tool.with_meta(MetaObject(object(json!({ "toolshelf/digest": self.digest }))))
    }

    fn annotations(&self) -> ToolAnnotations {
        serde_json::from_value(Value::Object(self.annotations.clone())).unwrap_or_default()
    }
}

/// The schema of a shelf tool's arguments.
pub(super) fn shelf_input(abi: Abi) -> Map<String, Value> {
    let mut schema = object(parameters(abi));
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// The schema of a shelf tool's answer.
pub(super) fn shelf_output(abi: Abi) -> Map<String, Value> {
    let count = || json!({ "type": "integer", "minimum": 0 });
    let ms = || json!({ "type": "number", "minimum": 0 });
    let mut schema = json!({
        "type": "object",
        "properties": {
            "ok": { "const": true },
            "action": { "type": "string" },
            "tool": { "type": "string" },
            "returned": { "type": "integer" },
            "output": { "type": "string", "description": "the output bytes, in hexadecimal digits", "pattern": "^[0-9a-f]*$" },
            "digest": { "type": "string", "description": "SHA-256 of the module that ran" },
            "inputBytes": count(),
            "durationMs": ms(),
            "timing": {
                "type": "object",
                "properties": { "verifyMs": ms(), "queueMs": ms(), "workerMs": ms(), "runMs": ms() },
            },
        },
        "required": ["ok", "tool", "returned", "output", "digest", "inputBytes", "durationMs"],
    });
    if abi == Abi::Diff {
        schema["properties"]["blocks"] = json!({
            "type": "array",
            "description": "the steps from the old text to the new one, in lines",
            "items": {
                "type": "object",
                "properties": {
                    "op": {}, "aLine": count(), "aCount": count(), "bLine": count(), "bCount": count(),
                },
            },
        });
    }
    object(schema)
}

/// A tool that computes: it changes nothing, and answers the same each time.
pub(super) fn pure() -> Map<String, Value> {
    object(json!({
        "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
    }))
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn visible(value: &Value) -> Result<(), Refusal> {
    match value {
        Value::String(text) => check_visible("schema", text),
        Value::Array(items) => items.iter().try_for_each(visible),
        Value::Object(object) => object.iter().try_for_each(|(key, value)| {
            check_visible("schema", key)?;
            visible(value)
        }),
        _ => Ok(()),
    }
}

/// The value with the keys of every object in the order of their bytes.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        other => other.clone(),
    }
}

fn canonical(value: &Value, text: &mut String) {
    text.push_str(&sorted(value).to_string());
}

#[cfg(test)]
pub(super) mod tests {
    use toolshelf_core::Code;

    use super::*;

    pub(crate) fn definition(name: &str, description: &str) -> Definition {
        Definition {
            name: name.to_owned(),
            title: name.to_owned(),
            description: description.to_owned(),
            input_schema: shelf_input(Abi::Buffer1),
            output_schema: Some(shelf_output(Abi::Buffer1)),
            annotations: pure(),
            digest: Digest::of(b"module").to_string(),
        }
    }

    #[test]
    fn every_part_counts_for_the_hash_and_the_order_of_keys_does_not() {
        let known = definition("hash", "Hashes");
        let mut others = vec![definition("hash", "Hashes "), definition("hush", "Hashes")];
        others.push(Definition { digest: Digest::of(b"other").to_string(), ..known.clone() });
        others.push(Definition { output_schema: None, ..known.clone() });
        others.push(Definition { input_schema: shelf_input(Abi::Diff), ..known.clone() });
        others.push(Definition { annotations: Map::new(), ..known.clone() });
        for other in others {
            assert_ne!(other.hash(), known.hash(), "{other:?}");
        }
        let text = known.shown();
        let again: Definition = serde_json::from_str(&text).unwrap();
        assert_eq!(again.hash(), known.hash());
        let (one, other) = (json!({"a": 1, "b": {"c": 2, "d": 3}}), json!({"b": {"d": 3, "c": 2}, "a": 1}));
        assert_eq!(sorted(&one).to_string(), sorted(&other).to_string());
    }

    #[test]
    fn what_is_hidden_anywhere_is_found() {
        let seen = definition("hash", "Hashes");
        assert_eq!(seen.check_visible(), Ok(()));
        let code = |definition: Definition| definition.check_visible().unwrap_err().code;
        assert_eq!(code(definition("hash", "a\u{200b}b")), Code::HiddenCharacters);
        let mut schema = seen.input_schema.clone();
        schema.insert("deep".to_owned(), json!([{"x": "\u{202e}"}]));
        assert_eq!(code(Definition { input_schema: schema, ..seen }), Code::HiddenCharacters);
    }

    #[test]
    fn an_agent_is_shown_all_of_it() {
        let shown = json!(definition("hash", "Hashes").tool());
        assert_eq!((&shown["name"], &shown["description"]), (&json!("hash"), &json!("Hashes")));
        assert_eq!(shown["annotations"]["readOnlyHint"], true);
        assert_eq!(shown["inputSchema"]["required"], json!(["input"]));
        assert_eq!(shown["outputSchema"]["type"], "object");
        assert_eq!(shown["_meta"]["toolshelf/digest"], Digest::of(b"module").to_string());
    }
}
