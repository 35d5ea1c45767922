//! What came of a call, as the protocol writes it.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Value, json};
use toolshelf_core::refusal::Refusal;

use super::calls::Called;
use super::definition::object;

/// Where a refusal stands as it does everywhere else: `{ok: false, refused, why}`. It is no structured content, which
/// clients compare with the schema of the tool's answers.
const REFUSAL: &str = "toolshelf/refusal";

/// An answer: as text, and structured.
pub(super) fn answered(called: Called) -> CallToolResult {
    let Called { value, content, .. } = called;
    let blocks = content.is_some();
    let mut result =
        CallToolResult::success(content.unwrap_or_else(|| vec![ContentBlock::text(text(&value))]));
    if !blocks {
        result.structured_content = Some(value);
    }
    result
}

/// A refusal: the code and the sentence.
pub(super) fn refused(refusal: &Refusal) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(refusal.to_string())]);
    result.meta = Some(MetaObject(object(json!({ REFUSAL: refusal }))));
    result
}

/// What a client reads that knows only texts: a text as it is, anything else as JSON.
fn text(value: &Value) -> String {
    let only = value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("result"));
    match only.and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use toolshelf_core::Code;

    use super::*;

    #[test]
    fn an_answer_is_text_and_structure() {
        let shown = json!(answered(json!({"ok": true}).into()));
        assert_eq!(shown["content"][0]["text"], r#"{"ok":true}"#);
        assert_eq!((&shown["structuredContent"], &shown["isError"]), (&json!({"ok": true}), &json!(false)));
        assert_eq!(json!(answered(json!({"result": "hi"}).into()))["content"][0]["text"], "hi");
    }

    #[test]
    fn a_refusal_has_its_code_and_reason() {
        let shown = json!(refused(&Refusal::new(Code::TimeExceeded, "it took too long")));
        assert_eq!(shown["isError"], true);
        assert_eq!(shown["content"][0]["text"], "time-exceeded: it took too long");
        assert_eq!(shown["_meta"][REFUSAL]["refused"], "time-exceeded");
        assert!(shown.get("structuredContent").is_none());
    }
}
