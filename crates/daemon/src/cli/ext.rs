//! `toolshelf ext`: what can be called, as agents see it.

use std::path::PathBuf;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use toolshelf_core::abi::{Abi, Input};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::script::Block;

use super::companion;
use super::outcome::Outcome;
use super::script;
use super::show::{Style, printable, table};

/// Lists what can be called.
pub(crate) async fn list(shelf: Option<PathBuf>, style: Style) -> Result<Outcome, Refusal> {
    let answer = companion::ask(shelf, "list_extensions", &json!({})).await?;
    let text = shown(&answer, style);
    Ok(Outcome::done(answer, text))
}

/// Calls a tool of the shelf with `name=text` pairs.
pub(crate) async fn call(
    shelf: Option<PathBuf>,
    name: String,
    pairs: &[String],
    style: Style,
) -> Result<Outcome, Refusal> {
    let inputs = arguments(pairs)?;
    let mut call = inputs.clone();
    call.insert("name".to_owned(), name.into());
    let answer = companion::ask(shelf, "call_extension", &Value::Object(call)).await?;
    let text = answered(&answer, &inputs, style);
    Ok(Outcome::done(answer, text))
}

/// `name=text` pairs.
fn arguments(pairs: &[String]) -> Result<Map<String, Value>, Refusal> {
    let mut args = Map::new();
    for pair in pairs {
        let (name, text) = pair.split_once('=').ok_or_else(|| {
            Refusal::new(Code::InvalidArgument, format!("`{}` must be of the form name=text", cut(pair, 60)))
        })?;
        args.insert(name.to_owned(), text.into());
    }
    Ok(args)
}

/// A diff as a diff, any other output as it is.
fn answered(answer: &Value, inputs: &Map<String, Value>, style: Style) -> String {
    let blocks = answer.get("blocks").and_then(|blocks| Vec::<Block>::deserialize(blocks).ok());
    let Some(blocks) = blocks else {
        return format!("{}\n", answer["output"].as_str().unwrap_or_default());
    };
    let input = |input: &Input| {
        let given = input.arguments.iter().find_map(|name| inputs.get(*name)?.as_str());
        given.unwrap_or_default().as_bytes().to_vec()
    };
    let [a, b] = [0, 1].map(|at| Abi::Diff.layout().inputs.get(at).map(input).unwrap_or_default());
    script::shown(&blocks, &a, &b, style)
}

fn shown(inventory: &Value, style: Style) -> String {
    let mut rows = vec![
        ["TOOL", "ABI", "DIGEST", "IMPORTS", "CALLS", "LAST", "MEDIAN", "DESCRIPTION"]
            .map(String::from)
            .to_vec(),
    ];
    for extension in inventory["extensions"].as_array().into_iter().flatten() {
        for tool in extension["toolDetails"].as_array().into_iter().flatten() {
            let text = |name: &str| printable(tool[name].as_str().unwrap_or("-"));
            let latency = &tool["latency"];
            let ms = |name: &str| {
                latency[name].as_f64().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"))
            };
            rows.push(vec![
                text("name"),
                text("abi"),
                cut(&text("digest"), 12),
                tool["imports"].to_string(),
                latency["calls"].as_u64().unwrap_or(0).to_string(),
                ms("lastMs"),
                ms("medianMs"),
                cut(&text("description"), 60),
            ]);
        }
    }
    let mut text = table(&rows, style);
    for failed in inventory["failedLoads"].as_array().into_iter().flatten() {
        let part = |name: &str| printable(failed[name].as_str().unwrap_or("-"));
        text.push_str(&format!("  {}: {}: {}\n", part("id"), style.bad(&part("refused")), part("why")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_pairs_and_a_text_may_have_equal_signs() {
        let args = arguments(&["a=x=y".to_owned(), "b=".to_owned()]).unwrap();
        assert_eq!((&args["a"], &args["b"]), (&json!("x=y"), &json!("")));
        assert_eq!(arguments(&["a".to_owned()]).unwrap_err().code, Code::InvalidArgument);
    }
}
