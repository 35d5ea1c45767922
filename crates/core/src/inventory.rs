//! The inventory of what can be called: what `list_extensions` answers.
//!
//! Source: the reference facts, A7. A shelf's tools are in it by themselves, without a proposal; those that are refused
//! stand among the failed loads, with the reason.

use serde::Serialize;
use serde_json::{Value, json};

use crate::declare::{descriptor, parameters};
use crate::placement::Placement;
use crate::shelf::Tool;

/// What an extension of a shelf cannot have, whatever it declares: the capabilities that there are.
const CAPABILITIES: [&str; 7] = ["read", "write", "delete", "network", "exec", "eval", "import"];

/// How a tool's calls have gone in the life of a host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// How many calls have ended.
    pub calls: u64,
    /// Whether the last one answered.
    pub last_ok: bool,
    /// What the last one took, in milliseconds.
    pub last_ms: f64,
    /// What half of the last calls took at most, in milliseconds.
    pub median_ms: f64,
}

/// The inventory of `tools`. `latency` says how a tool's calls have gone, if any have.
#[must_use]
pub fn inventory<'a>(
    placement: Placement,
    tools: impl IntoIterator<Item = &'a Tool>,
    latency: impl Fn(&str) -> Option<Latency>,
) -> Value {
    let (mut extensions, mut failed) = (Vec::new(), Vec::new());
    for tool in tools {
        match &tool.verdict {
            Ok(_) => extensions.extend(row(tool, latency(&tool.id))),
            Err(refusal) => failed.push(json!({
                "id": tool.id, "digest": tool.digest, "refused": refusal.code.as_str(), "why": refusal.why,
            })),
        }
    }
    json!({
        "ok": true,
        "placement": placement,
        "catalogueCount": extensions.len(),
        "extensions": extensions,
        "proposals": [],
        "present": [],
        "failedLoads": failed,
    })
}

/// The row of a tool that can be called.
fn row(tool: &Tool, latency: Option<Latency>) -> Option<Value> {
    let (admitted, abi) = tool.driven()?;
    let descriptor = descriptor(tool)?;
    Some(json!({
        "id": descriptor["id"],
        "name": descriptor["name"],
        "description": descriptor["description"],
        "source": "wasm-shelf",
        "runsIn": descriptor["runsIn"],
        "declared": [],
        "enforced": {},
        "bounds": {},
        "tools": [tool.id],
        "toolDetails": [{
            "name": tool.id,
            "description": tool.description,
            "primitive": "wasm",
            "arguments": parameters(abi),
            "digest": admitted.digest,
            "abi": abi.layout().name,
            "imports": 0,
            "latency": latency,
        }],
        "gets": ["the inputs of one call, and nothing else; the digest binds the module's bytes, not what they do"],
        "cannotHave": CAPABILITIES,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Abi;
    use crate::digest::Digest;
    use crate::refusal::{Code, Refusal};
    use crate::shelf::Admitted;

    #[test]
    fn a_tool_that_can_be_called_is_listed_with_its_latency_and_a_refused_one_with_its_reason() {
        let digest = Digest::of(b"abc");
        let admitted =
            Admitted { digest, abi: Some(Abi::Diff), bytes: 1, memory_pages: 2, memory_max_pages: 2 };
        let good = Tool {
            id: "diff".into(),
            digest: Some(digest.to_string()),
            wasm_path: "secret/place.wasm".into(),
            description: "Compares".into(),
            capability: String::new(),
            verdict: Ok(admitted),
        };
        let mut bad = good.clone();
        bad.id = "bad".into();
        bad.verdict = Err(Refusal::new(Code::DigestMismatch, "they differ"));
        let latency = Latency { calls: 2, last_ok: true, last_ms: 1.5, median_ms: 1.0 };
        let shown = inventory(Placement::Machine, [&good, &bad], |id| (id == "diff").then_some(latency));
        assert_eq!(shown["placement"], "machine");
        let row = &shown["extensions"][0];
        assert_eq!((&row["id"], &row["source"]), (&json!("wasm-shelf-diff"), &json!("wasm-shelf")));
        let detail = &row["toolDetails"][0];
        assert_eq!(detail["digest"], digest.to_string());
        assert_eq!((&detail["abi"], &detail["imports"]), (&json!("buffer-abi/diff"), &json!(0)));
        assert_eq!(detail["latency"]["medianMs"], 1.0);
        assert_eq!(shown["failedLoads"][0]["refused"], "digest-mismatch");
        assert!(!shown.to_string().contains("place.wasm"), "where files are is nobody's business");
    }
}
