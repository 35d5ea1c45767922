//! What is said to the person: sentences about calls, the list of tools, and how things are asked for.

use serde_json::Value;

use crate::call::Answer;
use crate::refusal::{Refusal, cut};
use crate::script::Op;

/// Most tools that a sentence names.
const NAMED: usize = 12;

/// What can be asked for, and how.
#[must_use]
pub fn help(tools: &[Value]) -> String {
    let names = names(tools);
    let takes = |count: usize| {
        let tool = tools.iter().find(|tool| required(tool) == count);
        tool.and_then(|tool| tool["name"].as_str())
    };
    let mut ways = Vec::new();
    if let Some(one) = takes(1) {
        ways.push(format!("`{one} hello` or `{one} \"two words\"`"));
    }
    if let Some(two) = takes(2) {
        ways.push(format!("`{two} \"old\" \"new\"`, or `{two} these two` with the texts in fences or with a line `---` between them"));
    }
    if let Some(any) = takes(1).or_else(|| takes(2)) {
        ways.push(format!("`{any}` with a JSON object of arguments"));
    }
    ways.push("`list`".to_owned());
    format!("You can say {}. Tools: {names}.", ways.join("; "))
}

/// The tools that there are, one on a line.
#[must_use]
pub fn list(tools: &[Value]) -> String {
    if tools.is_empty() {
        return "No tool can be called: the shelf is empty, or none of its tools is admitted.".to_owned();
    }
    let line = |tool: &Value| {
        let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("name"), text("description"))
    };
    tools.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What a call that answered has given.
#[must_use]
pub fn answered(answer: &Answer) -> String {
    let Answer { tool, input_bytes, duration_ms, .. } = answer;
    let what = match &answer.blocks {
        Some(blocks) => {
            let lines = |op: Op| -> u64 {
                let of = blocks.iter().filter(|block| block.op == op);
                of.map(|block| u64::from(block.a_count.max(block.b_count))).sum()
            };
            let (added, removed, same) = (lines(Op::Insert), lines(Op::Delete), lines(Op::Equal));
            format!("{} added, {removed} removed, {same} the same", counted(added, "line"))
        }
        None => answer.output.clone(),
    };
    format!(
        "{tool} of {}: {what} ({duration_ms:.1} ms, module {}…)",
        counted(*input_bytes as u64, "byte"),
        answer.digest.prefix()
    )
}

/// Why a call did not answer, and what can be done.
#[must_use]
pub fn refused(tool: &str, refusal: &Refusal) -> String {
    format!(
        "{} was refused, {}: {} {}",
        cut(tool, 80),
        refusal.code,
        sentence(&refusal.why),
        refusal.code.remedy()
    )
}

/// What a tool needs that was not found in what was typed.
pub(super) fn needs(id: &str, names: &[&str], rest: &str) -> String {
    let rest = cut(rest.trim(), 60);
    match names {
        [_] => format!("{id} needs a text: `{id} hello`."),
        [a, b] => {
            let found = if rest.is_empty() {
                String::new()
            } else {
                format!(", and I could not find just two in {rest:?}")
            };
            format!(
                "{id} needs two texts, {a} and {b}{found}. Say `{id} \"old\" \"new\"`, put each into a fence of three \
                 backticks, or put a line `---` between them."
            )
        }
        _ => format!("{id} needs a JSON object with {}.", names.join(", ")),
    }
}

fn names(tools: &[Value]) -> String {
    let mut names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut text = names.join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

fn required(tool: &Value) -> usize {
    tool["parameters"]["required"].as_array().map_or(0, Vec::len)
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A refusal's sentence has no full stop of its own.
fn sentence(why: &str) -> String {
    if why.ends_with(['.', '!', '?']) { why.to_owned() } else { format!("{why}.") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Abi;
    use crate::call::Timing;
    use crate::declare::parameters;
    use crate::digest::Digest;
    use crate::refusal::Code;
    use crate::script::Block;
    use serde_json::json;

    #[test]
    fn help_and_list_name_the_tools_and_only_ways_that_there_are() {
        let hash = json!({"name": "hash", "description": "SHA-256", "parameters": parameters(Abi::Buffer1)});
        let diff = json!({"name": "diff", "description": "Lines", "parameters": parameters(Abi::Diff)});
        let both = [hash.clone(), diff];
        assert!(help(&both).contains("`diff these two`") && help(&both).ends_with("Tools: hash, diff."));
        assert!(!help(&[hash]).contains("these two"));
        assert!(help(&[]).ends_with("Tools: none."));
        assert_eq!(list(&both), "hash: SHA-256\ndiff: Lines");
        let many: Vec<Value> = (0..20).map(|n| json!({"name": format!("t{n}")})).collect();
        assert!(help(&many).ends_with("t11 and 8 more."));
    }

    #[test]
    fn an_answer_is_told_with_its_numbers_and_a_refusal_with_its_remedy() {
        let block = |op, a_count, b_count| Block { op, a_line: 0, a_count, b_line: 0, b_count };
        let mut answer = Answer {
            ok: true,
            action: "wasm",
            tool: "diff".into(),
            returned: 0,
            output: "c0ffee".into(),
            blocks: Some(vec![block(Op::Equal, 2, 2), block(Op::Insert, 0, 1), block(Op::Delete, 3, 0)]),
            digest: Digest::of(b"abc"),
            input_bytes: 1,
            duration_ms: 2.04,
            timing: Timing::default(),
        };
        let told = answered(&answer);
        assert!(
            told.starts_with("diff of 1 byte: 1 line added, 3 removed, 2 the same (2.0 ms, module ba78"),
            "{told}"
        );
        answer.blocks = None;
        assert!(answered(&answer).contains(": c0ffee ("));
        let told = refused("x", &Refusal::new(Code::UnknownTool, "there is no x"));
        assert_eq!(
            told,
            "x was refused, unknown-tool: there is no x. List the tools to see which there are."
        );
    }
}
