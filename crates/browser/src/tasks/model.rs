//! The browser's own model, through the Prompt API, with the tools of the shelf offered to it.
//!
//! The API is new and differs between browsers, so it is looked for each time and spoken to as the specification says:
//! `LanguageModel.create({tools, signal})`, then `session.prompt(text, {signal})`.

use js_sys::{Array, JSON};
use toolshelf_core::declare::parameters;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::tool_call::answer_text;
use toolshelf_host::task_ports::TaskRun;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::Toolshelf;
use crate::js;
use crate::stop::Stop;
use crate::texts::TextCall;

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
    let text = JSON::stringify(arguments).map(String::from).unwrap_or_default();
    let arguments = serde_json::from_str(&text)
        .map_err(|_| Refusal::new(Code::InvalidArgument, "the arguments are no JSON"))?;
    let TextCall { inputs, result, .. } = shelf.call_texts(id, &arguments, None).await;
    Ok(answer_text(&result?, inputs))
}
