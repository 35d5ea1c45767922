//! What can be called in this tab, offered to the browser's own agent. Fetched only where the browser has one.

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use serde_json::{Value, json};
use toolshelf_browser::core::declare::command_declarations;
use toolshelf_browser::core::live::CallOrigin;
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::webmcp::{Execute, WebMcp};
use wasm_bindgen::JsValue;

use crate::state::{Shelves, State};
use crate::tasks;

/// Offers what there is, where the browser has an agent.
pub(crate) fn start(state: State) {
    let context = js_sys::Reflect::get(&document(), &"modelContext".into()).unwrap_or_default();
    if context.is_object() {
        // Without this part the page works as it does where there is no agent.
        spawn_local(async move { drop(offer(state, context).await) });
    }
}

#[wasm_split(webmcp, wasm_split_path = leptos::wasm_split, fallible)]
fn offer(state: State, context: JsValue) -> Result<(), SplitLoaderError> {
    let execute: Execute = std::rc::Rc::new(move |name, arguments| Box::pin(call(state, name, arguments)));
    let registry = WebMcp::new(context, execute, move |count| state.offered.set(Some(count)));
    let follow = || {
        Effect::new(move || {
            if state.shelves.with(|shelves| matches!(shelves, Shelves::Opening)) {
                return;
            }
            let Some(shelf) = state.service.get_value() else { return };
            let mut declarations = shelf.known_declarations();
            for declaration in &mut declarations {
                // A tool computes; it can change nothing.
                declaration["readOnly"] = json!(true);
            }
            declarations.extend(command_declarations().into_iter().filter(|command| {
                let name = command["name"].as_str().unwrap_or_default();
                name.ends_with("_task") || name == "task_status"
            }));
            let registry = registry.clone();
            spawn_local(async move { registry.offer(declarations).await });
        });
    };
    if let Some(owner) = state.owner.get_value() {
        owner.with(follow);
    }
    Ok(())
}

/// A call of the agent.
async fn call(state: State, name: String, arguments: Value) -> Value {
    let Some(shelf) = state.service.get_value() else { return json!(not_open()) };
    if command_declarations().iter().any(|command| command["name"] == *name) {
        return match command(state, name, arguments).await {
            Ok(answer) => answer,
            Err(refusal) => json!(refusal),
        };
    }
    let call = shelf.call_texts(&name, &arguments, Some(CallOrigin::Agent)).await;
    match call.result {
        Ok(answer) => json!(answer),
        Err(refusal) => json!(refusal),
    }
}

/// One of the three calls of tasks.
async fn command(state: State, name: String, arguments: Value) -> Result<Value, Refusal> {
    tasks::command(state, name, arguments).await.map_err(|_| not_open())?.await
}

fn not_open() -> Refusal {
    Refusal::new(Code::ExecutorUnavailable, "this page is not open yet")
}
