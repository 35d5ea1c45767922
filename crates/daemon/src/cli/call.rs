//! `toolshelf call`: one call of one tool.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use toolshelf_core::abi::{Abi, Input};
use toolshelf_core::call::Answer;
use toolshelf_core::live::{CallNotice, CallOrigin};
use toolshelf_core::refusal::{Code, Refusal};

use super::args::Call;
use super::companion;
use super::outcome::{Exit, Outcome};
use super::script;
use super::show::Style;
use crate::files::{self, Found};
use crate::shelf;

pub(crate) async fn run(folder: Option<PathBuf>, call: Call, style: Style) -> Result<Outcome, Refusal> {
    // A worker starts while the shelf and the inputs are read.
    let shelf = shelf::for_one_call(folder)?;
    let inputs = match shelf.abi(&call.tool).await {
        Ok(abi) => inputs(abi, &call)?,
        // The engine says why there is nothing to call.
        Err(_) => HashMap::new(),
    };
    let start = Instant::now();
    let answer = shelf.call(&call.tool, |name| inputs.get(name).cloned()).await;
    let took = start.elapsed().as_secs_f64() * 1_000.0;
    // Whoever watches the companion's shelf sees this call as well.
    let given = ["input", "a", "b"].into_iter().filter_map(|name| inputs.get(name).cloned()).collect();
    companion::notice(&CallNotice::of(&call.tool, &answer, given, took, CallOrigin::Cli)).await;
    let answer = answer?;
    let text = shown(&answer, &inputs, style);
    Ok(Outcome { json: json!(answer), text, exit: Exit::Done })
}

/// The inputs by the names under which the ABI asks for them.
fn inputs(abi: Abi, call: &Call) -> Result<HashMap<&'static str, Vec<u8>>, Refusal> {
    let wrong = |why: &str| Err(Refusal::new(Code::InvalidArgument, format!("{} {why}", call.tool)));
    match (abi.layout().inputs, &call.a, &call.b) {
        ([input], None, None) => {
            let bytes = match (&call.input, &call.file) {
                (Some(text), _) => text.clone().into_bytes(),
                (None, Some(file)) => read(input, file)?,
                (None, None) => read(input, Path::new("-"))?,
            };
            Ok(HashMap::from([(input.arguments[0], bytes)]))
        }
        ([first, second], Some(a), Some(b)) => {
            if a == Path::new("-") && b == Path::new("-") {
                return wrong("cannot read both texts from the standard input");
            }
            Ok(HashMap::from([
                (first.arguments[0], read(first, a)?),
                (second.arguments[0], read(second, b)?),
            ]))
        }
        ([_], ..) => wrong("takes one input: --input, --file, or what is piped in"),
        _ => wrong("takes two files: --a OLD --b NEW"),
    }
}

/// A file is not read when it is too long for its buffer.
fn read(input: &Input, path: &Path) -> Result<Vec<u8>, Refusal> {
    match files::read(path, input.max_bytes.into())? {
        Found::Whole(bytes) => Ok(bytes),
        Found::TooLong(bytes) => Err(input
            .check_size(bytes)
            .err()
            .unwrap_or_else(|| Refusal::new(Code::OverBudget, format!("{} is too long", path.display())))),
    }
}

/// A digest as a line, a diff as a diff; a person also sees what ran and what it cost.
fn shown(answer: &Answer, inputs: &HashMap<&str, Vec<u8>>, style: Style) -> String {
    let input = |name: &str| inputs.get(name).map(Vec::as_slice).unwrap_or_default();
    let mut text = match &answer.blocks {
        Some(blocks) => script::shown(blocks, input("a"), input("b"), style),
        None => format!("{}\n", answer.output),
    };
    if style.terminal {
        let cost = format!(
            "{} bytes, {:.1} ms (worker {:.1}, run {:.1}), module {}…",
            answer.input_bytes,
            answer.duration_ms,
            answer.timing.worker_ms,
            answer.timing.run_ms,
            answer.digest.prefix()
        );
        text.push_str(&style.dim(&cost));
        text.push('\n');
    }
    text
}
