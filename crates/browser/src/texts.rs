//! Calls whose arguments are texts, as models, agents and a person's words give them.

use serde_json::Value;
use toolshelf_core::call::Answer;
use toolshelf_core::live::CallOrigin;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::ToolCall;
use toolshelf_core::task::tool_call::Source;

use crate::Toolshelf;

/// A call that has ended.
#[derive(Debug, Clone)]
pub struct TextCall {
    /// The texts, in the order of the tool's inputs; none where they could not be understood.
    pub inputs: Vec<Vec<u8>>,
    /// How it ended.
    pub result: Result<Answer, Refusal>,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
}

impl Toolshelf {
    /// Calls a tool with the arguments of a JSON object. Dropping the future ends its worker.
    pub async fn call_texts(&self, id: &str, arguments: &Value, from: Option<CallOrigin>) -> TextCall {
        let start = js_sys::Date::now();
        let mut inputs = Vec::new();
        let result = self.call_read(id, arguments, from, &mut inputs).await;
        let duration_ms = match &result {
            Ok(answer) => answer.duration_ms,
            Err(_) => (js_sys::Date::now() - start).max(0.0),
        };
        TextCall { inputs, result, duration_ms }
    }

    async fn call_read(
        &self,
        id: &str,
        arguments: &Value,
        from: Option<CallOrigin>,
        inputs: &mut Vec<Vec<u8>>,
    ) -> Result<Answer, Refusal> {
        let unknown = || Refusal::new(Code::UnknownTool, "there is no such tool that can be called");
        let abi = self.known_abi(id).ok_or_else(unknown)?;
        let call = ToolCall::read(abi, &arguments.to_string())?;
        let mut given = Vec::new();
        for (input, source) in abi.layout().inputs.iter().zip(call.inputs) {
            let Source::Text(text) = source else {
                return Err(Refusal::new(
                    Code::InvalidArgument,
                    "there are no files here; pass the text itself",
                ));
            };
            inputs.push(text.clone().into_bytes());
            given.push((input.arguments[0].to_owned(), text.into_bytes()));
        }
        self.call_from(id, given, from).await
    }

    /// The declarations of the tools that could be called when the shelves were last read.
    #[must_use]
    pub fn known_declarations(&self) -> Vec<Value> {
        let declare = |(id, description, abi)| {
            serde_json::json!({
                "name": id,
                "description": description,
                "parameters": toolshelf_core::declare::parameters(abi),
            })
        };
        self.known_tools().into_iter().map(declare).collect()
    }
}
