//! WebMCP: what can be called here, offered to the browser's own agent through `document.modelContext`.
//!
//! As Chromium 156 has it: `registerTool({name, description, inputSchema, annotations, execute}, {signal})` answers with
//! a promise, and the tool is there until the signal aborts; `execute(input, {signal})` is called for each call, and the
//! signal aborts when the agent does not want its answer any more; `getTools()` lists the tools; `toolchange` tells of
//! changes. Where the browser has none of this, nothing is offered.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use futures::future::{AbortHandle, Abortable, LocalBoxFuture};
use js_sys::{JSON, Promise};
use serde_json::{Value, json};
use toolshelf_core::refusal::{Code, Refusal, cut};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{future_to_promise, spawn_local};

use crate::js;
use crate::stop::Stop;

/// Longest arguments of a call, in characters of JSON.
const ARGUMENTS_MAX_CHARS: u32 = 1_048_576;
/// Longest description that is handed to an agent, in characters.
const DESCRIPTION_MAX_CHARS: usize = 1_000;

/// Makes a call: its name and its arguments.
pub type Execute = Rc<dyn Fn(String, Value) -> LocalBoxFuture<'static, Value>>;

/// The browser's registry, and what this page has in it. Clones share it.
#[derive(Clone)]
pub struct WebMcp {
    inner: Rc<Inner>,
}

struct Inner {
    context: JsValue,
    execute: Execute,
    offered: RefCell<HashMap<String, Offered>>,
    wanted: RefCell<Vec<Value>>,
    is_offering: Cell<bool>,
    on_change: RefCell<Option<Closure<dyn FnMut()>>>,
}

/// A tool that is registered. Dropping it takes it back.
struct Offered {
    declaration: Value,
    _stop: Stop,
    _execute: Closure<dyn Fn(JsValue, JsValue) -> Promise>,
}

/// The registry of this document, where the browser has one.
#[must_use]
pub fn context() -> Option<JsValue> {
    let context = js::get(&js::global("document"), "modelContext");
    js::get(&context, "registerTool").is_function().then_some(context)
}

impl WebMcp {
    /// Offers nothing yet. `changed` hears how many of this page's tools the browser lists, each time that changes.
    #[must_use]
    pub fn new(context: JsValue, execute: Execute, changed: impl Fn(usize) + 'static) -> Self {
        let this = Self {
            inner: Rc::new(Inner {
                context,
                execute,
                offered: RefCell::default(),
                wanted: RefCell::default(),
                is_offering: Cell::new(false),
                on_change: RefCell::default(),
            }),
        };
        let weak = Rc::downgrade(&this.inner);
        let changed = Rc::new(changed);
        let on_change = Closure::<dyn FnMut()>::new(move || {
            let Some(inner) = weak.upgrade() else { return };
            let changed = Rc::clone(&changed);
            spawn_local(async move { changed(Self { inner }.look().await) });
        });
        let listener = on_change.as_ref().clone();
        let _ = js::call(&this.inner.context, "addEventListener", &["toolchange".into(), listener]);
        this.inner.on_change.replace(Some(on_change));
        this
    }

    /// Offers just these tools: `{name, description, parameters}` each, with `readOnly` where a call changes nothing.
    /// What is registered as it is stays.
    pub async fn offer(&self, declarations: Vec<Value>) {
        self.inner.wanted.replace(declarations.clone());
        self.inner.is_offering.set(true);
        let is_wanted = |name: &String, offered: &mut Offered| {
            declarations.iter().any(|wanted| wanted["name"] == **name && *wanted == offered.declaration)
        };
        self.inner.offered.borrow_mut().retain(is_wanted);
        for declaration in declarations {
            let name = declaration["name"].as_str().unwrap_or_default().to_owned();
            if !self.inner.offered.borrow().contains_key(&name) {
                self.register(name, declaration).await;
            }
        }
        self.inner.is_offering.set(false);
    }

    async fn register(&self, name: String, declaration: Value) {
        let (stop, execute) = (Stop::new(), self.closure(name.clone()));
        let description = declaration["description"].as_str().filter(|text| !text.trim().is_empty());
        let annotations =
            json!({ "readOnlyHint": declaration["readOnly"] == true, "untrustedContentHint": true });
        let tool = js::object(&[
            ("name", (&*name).into()),
            ("description", cut(description.unwrap_or(&name), DESCRIPTION_MAX_CHARS).into()),
            ("inputSchema", js::plain(&declaration["parameters"])),
            ("annotations", js::plain(&annotations)),
            ("execute", execute.as_ref().clone()),
        ]);
        let options = js::object(&[("signal", stop.signal())]);
        // A name that another script has taken stays that script's until it gives it up.
        if js::call_async(&self.inner.context, "registerTool", &[tool.into(), options.into()]).await.is_ok() {
            let offered = Offered { declaration, _stop: stop, _execute: execute };
            self.inner.offered.borrow_mut().insert(name, offered);
        }
    }

    /// What the browser calls for each call of the tool `name`.
    fn closure(&self, name: String) -> Closure<dyn Fn(JsValue, JsValue) -> Promise> {
        let execute = Rc::clone(&self.inner.execute);
        Closure::new(move |input: JsValue, options: JsValue| {
            let (execute, name) = (Rc::clone(&execute), name.clone());
            future_to_promise(async move {
                let value = match arguments(&input) {
                    Ok(arguments) => {
                        cancellable(&js::get(&options, "signal"), execute(name, arguments)).await
                    }
                    Err(refusal) => json!(refusal),
                };
                Ok(js::plain(&value))
            })
        })
    }

    /// Counts this page's tools in the browser's list, and registers those whose names another script has given up.
    async fn look(&self) -> usize {
        // What is registered after this is not missing from the list.
        let offered: Vec<_> = self.inner.offered.borrow().keys().cloned().collect();
        let listed = js::call_async(&self.inner.context, "getTools", &[]).await.unwrap_or_default();
        let names: Vec<_> = js_sys::Array::from(&listed)
            .iter()
            .filter_map(|tool| js::get(&tool, "name").as_string())
            .collect();
        let wanted = self.inner.wanted.borrow().clone();
        let is_free = |wanted: &Value| {
            let name = wanted["name"].as_str().unwrap_or_default();
            !self.inner.offered.borrow().contains_key(name) && !names.iter().any(|listed| listed == name)
        };
        if !self.inner.is_offering.get() && wanted.iter().any(is_free) {
            self.offer(wanted).await;
        }
        offered.iter().filter(|name| names.contains(name)).count()
    }
}

impl std::fmt::Debug for WebMcp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebMcp").field("offered", &self.inner.offered.borrow().len()).finish_non_exhaustive()
    }
}

/// Awaits `work`, and drops it when the signal aborts: its worker ends.
async fn cancellable(signal: &JsValue, work: LocalBoxFuture<'static, Value>) -> Value {
    let cancelled =
        || json!(Refusal::new(Code::TaskCancelled, "the agent does not want the answer any more"));
    if js::get(signal, "aborted").is_truthy() {
        return cancelled();
    }
    let (end, ends) = AbortHandle::new_pair();
    let on_abort = Closure::<dyn FnMut()>::new(move || end.abort());
    let listener = on_abort.as_ref().clone();
    let _ = js::call(signal, "addEventListener", &["abort".into(), listener.clone()]);
    let answer = Abortable::new(work, ends).await;
    let _ = js::call(signal, "removeEventListener", &["abort".into(), listener]);
    answer.unwrap_or_else(|_| cancelled())
}

/// What an agent gives, as JSON.
fn arguments(input: &JsValue) -> Result<Value, Refusal> {
    let invalid = |why: &str| Refusal::new(Code::InvalidArgument, why);
    let text = JSON::stringify(input).ok().filter(|text| text.is_string());
    let text = text.ok_or_else(|| invalid("the arguments are no JSON"))?;
    if text.length() > ARGUMENTS_MAX_CHARS {
        return Err(Refusal::new(Code::OverBudget, "the arguments are too long"));
    }
    serde_json::from_str(&String::from(text)).map_err(|_| invalid("the arguments are no JSON"))
}
