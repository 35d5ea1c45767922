//! What a task asks of a shelf tool: plain text, or a JSON object of arguments, some of which are files of the root.
//!
//! `{"a": {"file": "notes/old.txt"}, "b": "new text", "out": "notes/changes.txt"}` reads one argument from the task's
//! root, takes another as it is, and writes the answer into the root. `{"out": …}` may also stand as the value of an
//! argument of any other name.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::abi::{Abi, Input};
use crate::call::Answer;
use crate::diff::Followed;
use crate::patch::unified;
use crate::refusal::{Code, Refusal, cut};
use crate::root::file_in_root;

/// The argument that names the file for the answer.
pub const OUT: &str = "out";
/// The key of an argument that is read from a file.
const FILE: &str = "file";

/// A call of a shelf tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// For each input buffer of the ABI, what it gets.
    pub inputs: Vec<Source>,
    /// The file in the root that gets the answer, spelled without `.` segments.
    pub out: Option<String>,
}

/// What an input buffer gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// This text.
    Text(String),
    /// The bytes of a file in the task's root, spelled without `.` segments.
    File(String),
}

impl ToolCall {
    /// Reads the text of a task that is given to a tool of `abi`. A text that is a JSON object is a set of arguments;
    /// any other is the one input of a tool that has just one.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for an argument that the tool does not have, lacks, or gets twice, and for a form that
    /// nothing can be read from; [`Code::OverBudget`] for a text that is larger than its buffer; what
    /// [`file_in_root`] says of a path.
    pub fn read(abi: Abi, task: &str) -> Result<Self, Refusal> {
        let inputs = abi.layout().inputs;
        match serde_json::from_slice(task.as_bytes()) {
            Ok(Value::Object(arguments)) => Self::of_arguments(inputs, arguments),
            _ if inputs.len() == 1 => {
                inputs[0].check_size(task.len() as u64)?;
                Ok(Self { inputs: vec![Source::Text(task.to_owned())], out: None })
            }
            _ => Err(invalid(format!("the task must be a JSON object with {}", names(inputs)))),
        }
    }

    fn of_arguments(inputs: &[Input], arguments: Map<String, Value>) -> Result<Self, Refusal> {
        let (mut taken, mut out) = (vec![None; inputs.len()], None);
        for (name, value) in arguments {
            let input = inputs.iter().position(|input| input.arguments.contains(&&*name));
            match (input, destination(&name, &value)) {
                (Some(at), _) if taken[at].is_some() => {
                    return Err(invalid(format!("`{name}` gives the same input a second time")));
                }
                (Some(at), _) => taken[at] = Some(source(&inputs[at], &name, value)?),
                (None, Some(_)) if out.is_some() => {
                    return Err(invalid("the answer can be written to one file only".to_owned()));
                }
                (None, Some(path)) => out = Some(file_in_root(path)?),
                (None, None) => {
                    let (name, names) = (cut(&name, 60), names(inputs));
                    let why = format!("the tool has no argument `{name}`; it takes {names} and `out`");
                    return Err(invalid(why));
                }
            }
        }
        let missing = taken.iter().position(Option::is_none);
        if let Some(at) = missing {
            return Err(invalid(format!("the argument `{}` is missing", inputs[at].arguments[0])));
        }
        Ok(Self { inputs: taken.into_iter().flatten().collect(), out })
    }
}

/// A tool's answer to `inputs` as the text of a task's answer: a diff as a unified patch, or, where its script does not
/// turn one text into the other, its blocks in JSON; any other output in hexadecimal digits.
#[must_use]
pub fn answer_text(answer: &Answer, inputs: Vec<Vec<u8>>) -> String {
    let Some(blocks) = &answer.blocks else { return answer.output.clone() };
    let mut inputs = inputs.into_iter();
    let mut text = || Arc::from(inputs.next().unwrap_or_default());
    let script = Followed::new(text(), text(), blocks);
    if script.faithful { unified(&script) } else { json!({ "blocks": blocks }).to_string() }
}

/// Where an argument sends the answer, if that is what it says.
fn destination<'v>(name: &str, value: &'v Value) -> Option<&'v str> {
    match value {
        Value::String(path) if name == OUT => Some(path),
        _ => only(value, OUT),
    }
}

fn source(input: &Input, name: &str, value: Value) -> Result<Source, Refusal> {
    if let Some(path) = only(&value, FILE) {
        return Ok(Source::File(file_in_root(path)?));
    }
    let Value::String(text) = value else {
        let why = format!("`{}` must be a text or {{\"file\": \"path\"}}", cut(name, 60));
        return Err(invalid(why));
    };
    input.check_size(text.len() as u64)?;
    Ok(Source::Text(text))
}

/// The text in `{key: text}`, when that is all there is.
fn only<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object.get(key)?.as_str()
}

fn names(inputs: &[Input]) -> String {
    let names: Vec<_> = inputs.iter().map(|input| ["`", input.arguments[0], "`"].concat()).collect();
    names.join(" and ")
}

fn invalid(why: String) -> Refusal {
    Refusal::new(Code::InvalidArgument, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Block, Op};

    fn text(text: &str) -> Source {
        Source::Text(text.to_owned())
    }

    fn file(path: &str) -> Source {
        Source::File(path.to_owned())
    }

    fn read(abi: Abi, task: &str) -> Result<(Vec<Source>, Option<String>), Code> {
        ToolCall::read(abi, task).map(|call| (call.inputs, call.out)).map_err(|refusal| refusal.code)
    }

    #[test]
    fn plain_text_is_the_one_input_of_a_tool_that_has_one() {
        for plain in ["abc", " {", "[1]", "7", "\"x\"", "{broken"] {
            assert_eq!(read(Abi::Buffer1, plain), Ok((vec![text(plain)], None)), "{plain}");
        }
        assert_eq!(read(Abi::Diff, "abc"), Err(Code::InvalidArgument));
        assert_eq!(read(Abi::Buffer1, &"x".repeat(8_193)), Err(Code::OverBudget));
    }

    #[test]
    fn arguments_are_texts_or_files_under_any_of_their_names() {
        let task = r#"{"oldText": {"file": "./notes/a.txt"}, "b": "new", "out": "x/y.txt"}"#;
        let expected = (vec![file("notes/a.txt"), text("new")], Some("x/y.txt".to_owned()));
        assert_eq!(read(Abi::Diff, task), Ok(expected));
        let task = r#"{"input": "x", "answer": {"out": "y"}}"#;
        assert_eq!(read(Abi::Buffer1, task), Ok((vec![text("x")], Some("y".to_owned()))));
    }

    #[test]
    fn a_diff_is_answered_as_a_patch_and_a_dishonest_one_as_it_is() {
        let answer = |blocks: Option<Vec<Block>>| Answer {
            ok: true,
            action: "wasm",
            tool: "t".into(),
            returned: 0,
            output: "c0ffee".into(),
            blocks,
            digest: crate::Digest::of(b""),
            input_bytes: 0,
            duration_ms: 0.0,
            timing: crate::call::Timing::default(),
        };
        let texts = || vec![b"a\n".to_vec(), b"a\nb\n".to_vec()];
        let equal = Block { op: Op::Equal, a_line: 0, a_count: 1, b_line: 0, b_count: 1 };
        let insert = Block { op: Op::Insert, a_line: 0, a_count: 0, b_line: 1, b_count: 1 };
        assert_eq!(answer_text(&answer(None), texts()), "c0ffee");
        let patch = answer_text(&answer(Some(vec![equal, insert])), texts());
        assert_eq!(patch, "--- old\n+++ new\n@@ -1,1 +1,2 @@\n a\n+b\n");
        let dishonest = answer_text(&answer(Some(vec![equal])), texts());
        assert!(dishonest.starts_with("{\"blocks\":[{"), "{dishonest}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let cases = [
            (r#"{"a": "x"}"#, Code::InvalidArgument),
            (r#"{"a": "x", "b": "y", "c": "z"}"#, Code::InvalidArgument),
            (r#"{"a": "x", "oldText": "x", "b": "y"}"#, Code::InvalidArgument),
            (r#"{"a": 1, "b": "y"}"#, Code::InvalidArgument),
            (r#"{"a": {"file": "x", "out": "y"}, "b": "y"}"#, Code::InvalidArgument),
            (r#"{"a": {"out": "x"}, "b": "y"}"#, Code::InvalidArgument),
            (r#"{"a": "x", "b": "y", "out": "p", "too": {"out": "q"}}"#, Code::InvalidArgument),
            (r#"{"a": "x", "b": "y", "out": 7}"#, Code::InvalidArgument),
            (r#"{"a": {"file": "../x"}, "b": "y"}"#, Code::OutsideRoot),
            (r#"{"a": "x", "b": "y", "out": "/etc/passwd"}"#, Code::OutsideRoot),
            (r#"{"a": "x", "b": {"file": ".audit/log"}}"#, Code::ProtectedAudit),
        ];
        for (task, code) in cases {
            assert_eq!(read(Abi::Diff, task), Err(code), "{task}");
        }
        let large = format!(r#"{{"a": "{}", "b": ""}}"#, "x".repeat(65_537));
        assert_eq!(read(Abi::Diff, &large), Err(Code::OverBudget));
    }
}
