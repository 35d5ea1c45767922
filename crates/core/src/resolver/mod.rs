//! The scripted resolver: what a person typed becomes the call of a tool, or a sentence, without a model.
//!
//! | module | idea |
//! |---|---|
//! | `texts` | finding the texts that were meant: fenced, quoted, divided by a line of dashes, or two words |
//! | [`words`] | what is said to the person |
//!
//! It knows the tools by their live declarations, so a page, a companion and a test resolve alike. Where it is not sure
//! it does not guess: it says what it did not understand and how it can be asked.

mod texts;
pub mod words;

use serde_json::{Map, Value};

use crate::refusal::cut;

/// What a text asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Intent {
    /// A call of a tool.
    Call {
        /// The tool's id.
        tool: String,
        /// Its arguments, by their names.
        args: Map<String, Value>,
    },
    /// The tools that there are.
    List,
    /// What can be asked for, and how.
    Help,
    /// Nothing that is understood; the sentence says why, and what would be.
    Unclear(String),
}

/// Words before a command that carry no meaning.
const POLITE: [&str; 13] =
    ["please", "can", "could", "would", "you", "now", "run", "call", "use", "the", "tool", "hey", "/"];
/// Other words for the shipped tools; they hold where a tool of that id is declared.
const SYNONYMS: [(&str, &str); 5] = [
    ("sha256", "hash"),
    ("sha-256", "hash"),
    ("digest", "hash"),
    ("compare", "diff"),
    ("difference", "diff"),
];

/// What `text` asks for, given the declarations of the tools: `{name, description, parameters}`.
#[must_use]
pub fn resolve(text: &str, tools: &[Value]) -> Intent {
    let (mut word, mut rest) = first_word(text);
    while POLITE.contains(&&*word.to_lowercase()) {
        (word, rest) = first_word(rest);
    }
    let lower = word.to_lowercase();
    if let Some(tool) = tools.iter().find(|tool| is_named(tool, &word, &lower)) {
        return call(tool, rest);
    }
    match &*lower {
        "list" | "tools" | "list_extensions" | "extensions" => Intent::List,
        "" | "help" | "?" | "what" | "how" => Intent::Help,
        _ => Intent::Unclear(format!(
            "I did not understand {:?}: its first word is no tool's name. {}",
            cut(text.trim(), 60),
            words::help(tools)
        )),
    }
}

/// The first word without the punctuation that ends it, and what follows it.
fn first_word(text: &str) -> (String, &str) {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let bare = word.trim_end_matches([':', ',', ';', '.', '!']);
    // A question mark alone asks for help.
    let bare = if bare.len() > 1 { bare.trim_end_matches('?') } else { bare };
    (bare.to_owned(), rest)
}

fn is_named(tool: &Value, word: &str, lower: &str) -> bool {
    let Some(name) = tool["name"].as_str() else { return false };
    name == word
        || name.eq_ignore_ascii_case(lower)
        || SYNONYMS.iter().any(|(other, id)| *other == lower && *id == name)
}

fn call(tool: &Value, rest: &str) -> Intent {
    let id = tool["name"].as_str().unwrap_or_default();
    let names: Vec<&str> =
        tool["parameters"]["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let texts = match (arguments(tool, rest), names.len()) {
        (Some(args), _) => return Intent::Call { tool: id.to_owned(), args },
        (None, 1) => texts::one(rest).map(|text| vec![text]),
        (None, 2) => texts::two(rest).map(Vec::from),
        _ => None,
    };
    match texts {
        Some(texts) => {
            let args = names.into_iter().map(str::to_owned).zip(texts.into_iter().map(Value::from)).collect();
            Intent::Call { tool: id.to_owned(), args }
        }
        None => Intent::Unclear(words::needs(id, &names, rest)),
    }
}

/// A JSON object of arguments. One that names none of the tool's arguments is a text like any other, for a tool that
/// takes one text.
fn arguments(tool: &Value, rest: &str) -> Option<Map<String, Value>> {
    let Ok(Value::Object(args)) = serde_json::from_str(rest) else { return None };
    let known = tool["parameters"]["properties"].as_object()?;
    (known.len() != 1 || args.keys().all(|name| known.contains_key(name))).then_some(args)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::abi::Abi;
    use crate::declare::parameters;

    fn tools() -> Vec<Value> {
        let tool = |name: &str, abi| json!({"name": name, "description": "", "parameters": parameters(abi)});
        vec![tool("hash", Abi::Buffer1), tool("diff", Abi::Diff), tool("Other-1", Abi::Buffer1)]
    }

    /// The tool and its arguments, or the kind of what else it is.
    fn resolved(text: &str) -> (String, Value) {
        match resolve(text, &tools()) {
            Intent::Call { tool, args } => (tool, Value::Object(args)),
            Intent::List => ("list".into(), Value::Null),
            Intent::Help => ("help".into(), Value::Null),
            Intent::Unclear(why) => ("unclear".into(), json!(why)),
        }
    }

    #[test]
    fn one_text_is_what_follows_the_tools_name() {
        for (text, input) in [
            ("hash hello", "hello"),
            ("  Hash:  two words ", "two words"),
            ("hash \"two words\"", "two words"),
            ("please hash 'it's'", "it's"),
            ("hash “typed well”", "typed well"),
            ("hash \"\"", ""),
            ("hash say \"x\"", "say \"x\""),
            ("hash ```\nfenced\n  text\n```", "fenced\n  text"),
            ("sha256 abc", "abc"),
            ("hash {\"input\": \"abc\"}", "abc"),
            ("hash {\"other\": 1}", "{\"other\": 1}"),
            ("hash {broken", "{broken"),
        ] {
            assert_eq!(resolved(text), ("hash".into(), json!({"input": input})), "{text}");
        }
        assert_eq!(resolved("other-1 x"), ("Other-1".into(), json!({"input": "x"})));
        let bytes = json!({"input": {"base64": "YQ=="}});
        assert_eq!(resolved(&format!("hash {bytes}")), ("hash".into(), bytes));
    }

    #[test]
    fn two_texts_are_found_in_every_way_of_writing_them() {
        for (text, a, b) in [
            ("diff A B", "A", "B"),
            ("diff A with B", "A", "B"),
            ("compare A and B", "A", "B"),
            ("diff between A and B", "A", "B"),
            ("diff \"a b\" \"c d\"", "a b", "c d"),
            ("can you diff these two: \"a\\nb\" and \"a\\nc\"", "a\nb", "a\nc"),
            ("diff these two\n```\nx\n```\nand\n```text\ny\nz\n```", "x\n", "y\nz\n"),
            ("diff these two\nalpha\nbeta\n---\nalpha\ngamma\n", "alpha\nbeta\n", "alpha\ngamma\n"),
            ("diff these two:\n\n---\nnew", "", "new\n"),
            ("diff one\n-----\ntwo", "one\n", "two\n"),
            ("diff {\"a\": \"x\", \"b\": \"y\"}", "x", "y"),
        ] {
            assert_eq!(resolved(text), ("diff".into(), json!({"a": a, "b": b})), "{text}");
        }
        let other_names = json!({"oldText": "x", "newText": "y"});
        assert_eq!(resolved(&format!("diff {other_names}")), ("diff".into(), other_names));
    }

    #[test]
    fn what_is_not_sure_is_not_guessed() {
        for text in [
            "hash",
            "hash   ",
            "diff",
            "diff these two",
            "diff A",
            "diff A B C",
            "diff \"a\" \"b\" \"c\"",
            "diff x\n---\ny\n---\nz",
            "diff \"a\" then B",
            "jump",
            "fetch https://example.org",
        ] {
            let (kind, why) = resolved(text);
            assert_eq!(kind, "unclear", "{text}");
            let why = why.as_str().unwrap();
            assert!(why.contains("hash") || why.contains("diff"), "{why}");
        }
    }

    #[test]
    fn lists_and_help_are_asked_for_in_words() {
        for (text, kind) in
            [("list", "list"), ("List tools", "list"), ("", "help"), ("help!", "help"), ("?", "help")]
        {
            assert_eq!(resolved(text).0, kind, "{text}");
        }
        // A tool's name comes before a command's word.
        let tool = json!({"name": "list", "parameters": parameters(Abi::Buffer1)});
        assert!(matches!(resolve("list x", &[tool]), Intent::Call { .. }));
    }

    #[test]
    fn nothing_that_is_typed_makes_it_panic() {
        let long = "\"".repeat(10_000);
        for text in
            ["hash \"", "diff \"\\", "diff ```", "diff '''", "hash “", "diff ```\n```\n```", "\u{0}", &long]
        {
            for command in ["", "hash ", "diff ", "diff these two "] {
                let _ = resolve(&format!("{command}{text}"), &tools());
                let _ = resolve(&format!("{command}{text}"), &[json!({}), json!({"name": 7}), json!(null)]);
            }
        }
    }
}
