//! The browser's own model, through the Prompt API, with the tools of the shelf offered to it.
//!
//! The API is new and differs between browsers, so it is looked for each time and spoken to as the specification says:
//! `LanguageModel.create({tools, signal})`, then `session.prompt(text, {signal})`.

use js_sys::{Array, JSON, Reflect};
use toolshelf_core::declare::parameters;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::ToolCall;
use toolshelf_core::task::tool_call::{Source, answer_text};
use toolshelf_host::task_ports::TaskRun;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::Toolshelf;
use crate::js;

/// The global that the Prompt API puts there.
const API: &str = "LanguageModel";

/// The browser's model, as it was found when the page began.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    is_there: bool,
}

impl Model {
    /// Looks for it. The API may be there and say that this machine can run no model.
    pub async fn find() -> Self {
        let api = js::global(API);
        if !js::get(&api, "create").is_function() {
            return Self { is_there: false };
        }
        let said = js::call_async(&api, "availability", &[]).await.unwrap_or_default().as_string();
        Self { is_there: said.is_some_and(|said| said != "unavailable") }
    }

    /// Whether pages can ask it.
    #[must_use]
    pub fn is_there(self) -> bool {
        self.is_there
    }

    /// Refuses where the browser has no such model.
    pub(super) fn check(self) -> Result<(), Refusal> {
        if self.is_there {
            return Ok(());
        }
        let why =
            "this browser has no model of its own that pages can ask (the Prompt API), or cannot run it here";
        Err(Refusal::new(Code::ExecutorUnavailable, why))
    }
}

/// Asks the model. Dropping this future ends its session.
pub(super) async fn run(shelf: &Toolshelf, run: &TaskRun) -> Result<String, Refusal> {
    let stop = Stop::new();
    let tools = Array::new();
    // Kept until the model has answered: it may call them at any time.
    let mut closures = Vec::new();
    for (id, description, abi) in shelf.known_tools() {
        let (shelf, report, name) = (shelf.clone(), run.report.clone(), id.clone());
        let execute: Closure<dyn Fn(JsValue) -> js_sys::Promise> = Closure::new(move |arguments: JsValue| {
            report.note(&["The model calls ", &name].concat());
            let (shelf, name) = (shelf.clone(), name.clone());
            future_to_promise(async move { Ok(call(&shelf, &name, &arguments).await.into()) })
        });
        tools.push(&js::object(&[
            ("name", id.into()),
            ("description", description.into()),
            ("inputSchema", js::plain(&parameters(abi))),
            ("execute", execute.as_ref().clone()),
        ]));
        closures.push(execute);
    }
    let options = js::object(&[("tools", tools.into()), ("signal", stop.signal())]);
    run.report.note("Waiting for the browser's model");
    let failed = |thrown: JsValue| {
        let why = format!("the browser's model answers: {}", js::message(&thrown));
        Refusal::new(Code::ExecutorFailed, why)
    };
    let session = js::call_async(&js::global(API), "create", &[options.into()]).await.map_err(failed)?;
    let options = js::object(&[("signal", stop.signal())]);
    let asked = [run.input.task.as_str().into(), options.into()];
    let answer = js::call_async(&session, "prompt", &asked).await;
    let _ = js::call(&session, "destroy", &[]);
    drop(closures);
    let answer = answer.map_err(failed)?;
    answer.as_string().ok_or_else(|| Refusal::new(Code::TaskInvalidResult, "the model answered no text"))
}

/// A call that the model makes. It is told of a refusal as of an answer, in JSON.
async fn call(shelf: &Toolshelf, id: &str, arguments: &JsValue) -> String {
    match answer(shelf, id, arguments).await {
        Ok(text) => text,
        Err(refusal) => serde_json::to_string(&refusal).unwrap_or_default(),
    }
}

async fn answer(shelf: &Toolshelf, id: &str, arguments: &JsValue) -> Result<String, Refusal> {
    let abi = shelf.known_abi(id).ok_or_else(|| Refusal::new(Code::UnknownTool, "the tool is gone"))?;
    let text = JSON::stringify(arguments).map(String::from).unwrap_or_default();
    let call = ToolCall::read(abi, &text)?;
    let (mut arguments, mut inputs) = (Vec::new(), Vec::new());
    for (input, source) in abi.layout().inputs.iter().zip(call.inputs) {
        let Source::Text(text) = source else {
            return Err(Refusal::new(Code::InvalidArgument, "the model has no files; pass the text itself"));
        };
        inputs.push(text.clone().into_bytes());
        arguments.push((input.arguments[0].to_owned(), text.into_bytes()));
    }
    Ok(answer_text(&shelf.call(id, arguments).await?, inputs))
}

/// An `AbortController` that aborts when it is dropped.
struct Stop(JsValue);

impl Stop {
    fn new() -> Self {
        let class: js_sys::Function = js::global("AbortController").unchecked_into();
        Self(Reflect::construct(&class, &Array::new()).unwrap_or_default())
    }

    fn signal(&self) -> JsValue {
        js::get(&self.0, "signal")
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = js::call(&self.0, "abort", &[]);
    }
}
