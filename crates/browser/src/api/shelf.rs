//! The shelf for `index.js`, and its tools as an executor.

use futures::FutureExt as _;
use futures::channel::oneshot;
use futures::future::{Either, pending, select};
use js_sys::{Function, Object};
use serde_json::json;
use toolshelf_core::RootDescriptor;
use toolshelf_core::placement::Placement;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::{Source, TaskInput, ToolCall, task_input};
use wasm_bindgen::prelude::*;

use crate::tasks::executor::PageExecutor;
use crate::tasks::folders::{Folders, Stored};
use crate::tasks::model::Model;
use crate::{Toolshelf, js};

/// The shelf, open.
#[wasm_bindgen]
#[derive(Debug)]
pub struct OpenShelf {
    shelf: Toolshelf,
    executor: PageExecutor,
    /// Whether files of a root can be had here.
    has_files: bool,
}

/// Opens the shelf of this page, or one in memory.
#[wasm_bindgen(js_name = openShelf)]
pub async fn open_shelf() -> OpenShelf {
    let shelf = Toolshelf::open().await;
    let folders = Folders::open(None).await;
    let stored = folders.list().await.unwrap_or_default();
    let has_files = stored.first().is_some_and(|own| own.stored == Stored::Private);
    let executor = PageExecutor::new(shelf.clone(), folders, Model::find().await);
    // What stands against reading it shows when the shelf is read or called.
    let _ = shelf.read().await;
    let changed = shelf.clone();
    shelf.on_change(move || {
        let shelf = changed.clone();
        wasm_bindgen_futures::spawn_local(async move {
            let _ = shelf.read().await;
        });
    });
    OpenShelf { shelf, executor, has_files }
}

#[wasm_bindgen]
impl OpenShelf {
    /// Its functions.
    #[must_use]
    pub fn api(&self) -> Object {
        self.shelf.console_api()
    }

    /// The executor's `check` for an input in JSON.
    #[must_use]
    pub fn check(&self, input: &str) -> JsValue {
        match self.terms(input) {
            Ok(mechanism) => {
                let bounds = Placement::Browser.bounds();
                js::plain(&json!({
                    "ok": true,
                    "mechanism": mechanism,
                    "bounds": { "deadlineMs": bounds.default_deadline_ms, "maxOutputBytes": bounds.max_output_bytes },
                }))
            }
            Err(refusal) => js::plain(&refusal),
        }
    }

    /// The executor's `run` for an input and a root in JSON. Answers `{ok: true, answer}` or the refusal.
    pub async fn run(&self, input: String, root: String, report: JsValue, signal: JsValue) -> JsValue {
        let note = move |text: &str| {
            if let Some(report) = report.dyn_ref::<Function>() {
                // An executor need not be heard.
                let _ = report.call1(&JsValue::UNDEFINED, &text.into());
            }
        };
        let work = async {
            let input = task_input(&super::value(&input))?;
            let root = RootDescriptor::read(&super::value(&root))?;
            self.executor.run_tool(&input, &root, &note).await
        };
        let stopped = aborted(signal).boxed_local();
        // Dropping the work ends the tool's worker.
        let result = match select(work.boxed_local(), stopped).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(Refusal::new(Code::TaskCancelled, "the tool was told to stop")),
        };
        match result {
            Ok(answer) => js::plain(&json!({ "ok": true, "answer": answer })),
            Err(refusal) => js::plain(&refusal),
        }
    }
}

impl OpenShelf {
    fn terms(&self, input: &str) -> Result<String, Refusal> {
        let input = task_input(&super::value(input))?;
        let mechanism = self.executor.check_tool(&input)?;
        if !self.has_files && self.wants_files(&input) {
            let why = "a task's files are in the browser's private file system, which is not there";
            return Err(Refusal::new(Code::FileUnavailable, why));
        }
        Ok(mechanism)
    }

    fn wants_files(&self, input: &TaskInput) -> bool {
        let abi = self.shelf.known_abi(&input.agent);
        let call = abi.and_then(|abi| ToolCall::read(abi, &input.task).ok());
        call.is_some_and(|call| {
            call.out.is_some() || call.inputs.iter().any(|source| matches!(source, Source::File(_)))
        })
    }
}

/// Ends when an `AbortSignal` is aborted; never for anything else.
async fn aborted(signal: JsValue) {
    if js::get(&signal, "aborted").is_truthy() {
        return;
    }
    let (sender, heard) = oneshot::channel();
    let listener = Closure::once_into_js(move |_event: JsValue| {
        let _ = sender.send(());
    });
    let once = js::object(&[("once", true.into())]);
    if js::call(&signal, "addEventListener", &["abort".into(), listener, once.into()]).is_err() {
        return pending().await;
    }
    if heard.await.is_err() {
        pending().await
    }
}
