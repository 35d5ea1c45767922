//! What a frame asks for, and the frame that answers it.

use serde_json::{Map, Value, json};
use toolshelf_core::live::{CallOrigin, ServerFrame};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::resolver::{Intent, resolve, words};

use crate::http::handle::Handle;
use crate::http::who::Who;

/// Words are answered with words. A call that they lead to is told of in a `tool` frame, as every call is.
pub(super) async fn text(
    handle: Handle,
    text: String,
    tools: Vec<Value>,
    session: u64,
    who: Who,
) -> ServerFrame {
    let text = match resolve(&text, &tools) {
        Intent::List => words::list(&tools),
        Intent::Help => words::help(&tools),
        Intent::Unclear(why) => why,
        Intent::Call { tool, args } => {
            let id = tool.clone();
            let call = async move |service: crate::service::Service| {
                service.call_tool_in(&id, &args, CallOrigin::Live, Some(session)).await
            };
            let result = match who.may(&tool) {
                Ok(()) => handle.ask(call).await.and_then(|result| result),
                Err(refusal) => Err(refusal),
            };
            match result {
                Ok(answer) => words::answered(&answer),
                Err(refusal) => words::refused(&tool, &refusal),
            }
        }
    };
    ServerFrame::Text { text }
}

/// A command is answered with its value or its refusal.
pub(super) async fn call(
    handle: Handle,
    call_id: String,
    name: String,
    args: Map<String, Value>,
    who: Who,
) -> ServerFrame {
    let result = match who.may(&name) {
        Ok(()) => handle.command(name, args, who.session(CallOrigin::Live)).await,
        Err(refusal) => Err(refusal),
    };
    let result = result.unwrap_or_else(|refusal| json!(refusal));
    ServerFrame::Result { call_id, result }
}

/// The answer to a frame that is not understood: to the call that it names, if it names one.
pub(super) fn not_understood(frame: &str, why: &str) -> ServerFrame {
    let refusal = Refusal::new(Code::InvalidFrame, format!("the frame is not understood: {why}"));
    let frame: Value = serde_json::from_str(frame).unwrap_or_default();
    match frame["callId"].as_str() {
        Some(call_id) => ServerFrame::Result { call_id: call_id.to_owned(), result: json!(refusal) },
        None => ServerFrame::refused(&refusal),
    }
}
