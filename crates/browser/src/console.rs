//! The same shelf for scripts: `globalThis.toolshelf`.
//!
//! Everything in and out is a plain object, every function returns a promise, and a "no" is a value, never an exception.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use js_sys::{Array, ArrayBuffer, Function, JsString, Object, Promise, Reflect, Uint8Array};
use serde_json::{Value, json};
use toolshelf_core::abi::Abi;
use toolshelf_core::declare::{descriptor, live_tool_declarations};
use toolshelf_core::limits;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::shelf::Tool;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;
use web_sys::{Blob, File, FileList};

use crate::js;
use crate::pick::{self, PickedFile};
use crate::toolshelf::Toolshelf;

/// Largest argument that is turned into bytes at all; every ABI's buffers are far smaller.
const ARGUMENT_MAX_BYTES: f64 = 1_048_576.0;

/// What a function of the API is doing.
type Answering = LocalBoxFuture<'static, Result<JsValue, Refusal>>;

/// The functions of the API.
const FUNCTIONS: [&str; 6] =
    ["readShelf", "callWasmTool", "liveToolDeclarations", "descriptors", "addShelf", "removeShelf"];

/// Gets the API itself.
type Load = Rc<dyn Fn() -> LocalBoxFuture<'static, Result<Object, Refusal>>>;

/// Puts `globalThis.toolshelf` there: its constants at once, its functions in such a way that the first call gets them
/// with `load`. Whoever never calls one does not load them.
pub fn install(load: impl Fn() -> LocalBoxFuture<'static, Result<Object, Refusal>> + 'static) {
    let load: Load = Rc::new(load);
    let api = constants();
    for name in FUNCTIONS {
        let load = Rc::clone(&load);
        let closure = Closure::<dyn Fn(JsValue, JsValue) -> Promise>::new(move |first, second| {
            let load = load();
            future_to_promise(async move {
                match load.await {
                    Ok(api) => js::call_async(&api, name, &[first, second]).await,
                    Err(refusal) => Ok(js::plain(&refusal)),
                }
            })
        });
        // The API lives as long as the page.
        let _ = Reflect::set(&api, &name.into(), &closure.into_js_value());
    }
    // A global that cannot be set (a frozen one) is the embedder's wish.
    let _ = Reflect::set(&js_sys::global(), &"toolshelf".into(), &Object::freeze(&api));
}

fn constants() -> Object {
    let constants = js::object(&[("MEASURED_ABI", js::plain(&measured_abi()))]);
    for (name, bound) in BOUNDS {
        let _ = Reflect::set(&constants, &(*name).into(), &JsValue::from_f64(*bound));
    }
    constants
}

impl Toolshelf {
    /// The object itself.
    #[must_use]
    pub fn console_api(&self) -> Object {
        let api = constants();
        let functions = [
            (
                "readShelf",
                self.function(|shelf, key, _| Box::pin(async move { shelf.read_shelf(&key).await })),
            ),
            (
                "callWasmTool",
                self.function(|shelf, id, args| {
                    Box::pin(async move { shelf.call_from_js(&id, &args).await })
                }),
            ),
            (
                "liveToolDeclarations",
                self.function(|shelf, reserved, _| {
                    Box::pin(async move { shelf.declarations(&reserved).await })
                }),
            ),
            ("descriptors", self.function(|shelf, _, _| Box::pin(async move { shelf.descriptors().await }))),
            (
                "addShelf",
                self.function(|shelf, files, _| Box::pin(async move { shelf.add_from_js(&files).await })),
            ),
            (
                "removeShelf",
                self.function(|shelf, key, _| Box::pin(async move { shelf.remove_from_js(&key).await })),
            ),
        ];
        for (name, function) in functions {
            let _ = Reflect::set(&api, &name.into(), &function);
        }
        Object::freeze(&api)
    }

    /// A function of two arguments that answers with a promise of a plain object. The futures are boxed, so that the
    /// machinery of a promise is in the page once.
    fn function(&self, body: fn(Self, JsValue, JsValue) -> Answering) -> JsValue {
        let shelf = self.clone();
        let closure = Closure::<dyn Fn(JsValue, JsValue) -> Promise>::new(move |first, second| {
            let answer = body(shelf.clone(), first, second);
            future_to_promise(async move { Ok(answer.await.unwrap_or_else(|refusal| js::plain(&refusal))) })
        });
        // The API lives as long as the page.
        closure.into_js_value()
    }

    async fn read_shelf(&self, key: &JsValue) -> Result<JsValue, Refusal> {
        let readings = self.read().await?;
        if let Some(key) = key.as_string() {
            let reading = readings
                .into_iter()
                .find(|reading| reading.key == key)
                .ok_or_else(|| Refusal::new(Code::ShelfUnavailable, format!("there is no shelf {key:?}")))?;
            return Ok(js::plain(&reading.shelf?));
        }
        let mut tools = Vec::new();
        let mut shelves = Vec::new();
        for reading in &readings {
            match &reading.shelf {
                Ok(shelf) => {
                    shelves.push(json!({ "ok": true, "key": reading.key, "name": shelf.name, "version": shelf.version }));
                    for tool in &shelf.tools {
                        let mut tool = serde_json::to_value(tool).unwrap_or_default();
                        tool["shelf"] = Value::from(reading.key.clone());
                        tools.push(tool);
                    }
                }
                Err(refusal) => {
                    let Refusal { code, why } = refusal;
                    shelves.push(
                        json!({ "ok": false, "key": reading.key, "refused": code.as_str(), "why": why }),
                    );
                }
            }
        }
        let (name, version) = ("toolshelf", env!("CARGO_PKG_VERSION"));
        let dir = if self.persistent() { "indexeddb:toolshelf" } else { "memory:toolshelf" };
        Ok(js::plain(&json!({
            "ok": true, "dir": dir, "name": name, "version": version, "tools": tools, "shelves": shelves,
        })))
    }

    async fn call_from_js(&self, id: &JsValue, args: &JsValue) -> Result<JsValue, Refusal> {
        let id = id.as_string().ok_or_else(|| invalid("the tool's id must be a string"))?;
        let arguments = arguments(args).await?;
        Ok(js::plain(&self.call(&id, arguments).await?))
    }

    async fn declarations(&self, reserved: &JsValue) -> Result<JsValue, Refusal> {
        let reserved: Vec<String> = match reserved.dyn_ref::<Array>() {
            Some(names) => names.iter().filter_map(|name| name.as_string()).collect(),
            None => Vec::new(),
        };
        let reserved: Vec<_> = reserved.iter().map(String::as_str).collect();
        let tools = self.tools().await;
        Ok(js::plain(&live_tool_declarations(&tools, &reserved)))
    }

    async fn descriptors(&self) -> Result<JsValue, Refusal> {
        let tools = self.tools().await;
        Ok(js::plain(&tools.iter().filter_map(descriptor).collect::<Vec<_>>()))
    }

    /// All tools of all shelves that can be read; none when none can.
    async fn tools(&self) -> Vec<Tool> {
        let readings = self.read().await.unwrap_or_default();
        readings.into_iter().filter_map(|reading| reading.shelf.ok()).flat_map(|shelf| shelf.tools).collect()
    }

    async fn add_from_js(&self, files: &JsValue) -> Result<JsValue, Refusal> {
        let added = self.add(files_of(files)?).await?;
        Ok(js::plain(&json!({
            "ok": true, "dir": added.key, "name": added.name, "version": added.version,
            "tools": added.tools, "stored": added.stored, "replaced": added.replaced.is_some(),
        })))
    }

    async fn remove_from_js(&self, key: &JsValue) -> Result<JsValue, Refusal> {
        let key = key.as_string().ok_or_else(|| invalid("the shelf's key must be a string"))?;
        let removed = self.remove(&key).await?;
        Ok(js::plain(&json!({ "ok": true, "dir": key, "name": removed.name })))
    }
}

/// The well-known tools with the rows of their ABIs.
pub(crate) fn measured_abi() -> Value {
    json!({ "hash": Abi::Buffer1.row(), "diff": Abi::Diff.row() })
}

/// The bounds, as constants of the API.
pub(crate) const BOUNDS: &[(&str, f64)] = &[
    ("WASM_CALL_DEADLINE_MS", limits::WASM_CALL_DEADLINE_MS as f64),
    ("WASM_MODULE_MAX_BYTES", limits::WASM_MODULE_MAX_BYTES as f64),
    ("WASM_CHILD_MAX_STDOUT_BYTES", limits::WASM_CHILD_MAX_STDOUT_BYTES as f64),
    ("WASM_CHILD_WATCHDOG_MS", limits::WASM_CHILD_WATCHDOG_MS as f64),
    ("WASM_MEMORY_MAX_BYTES", limits::WASM_MEMORY_MAX_BYTES as f64),
    ("WASM_MAX_CONCURRENT_WORKERS", limits::WASM_MAX_CONCURRENT_WORKERS as f64),
    ("WASM_MAX_QUEUE_DEPTH", limits::WASM_MAX_QUEUE_DEPTH as f64),
    ("MANIFEST_MAX_BYTES", limits::MANIFEST_MAX_BYTES as f64),
    ("SHELF_MAX_TOOLS", limits::SHELF_MAX_TOOLS as f64),
];

fn invalid(why: impl Into<String>) -> Refusal {
    Refusal::new(Code::InvalidArgument, why)
}

/// The arguments of a call: the own properties of a plain object. A missing or null one is left out.
async fn arguments(args: &JsValue) -> Result<Vec<(String, Vec<u8>)>, Refusal> {
    if args.is_undefined() || args.is_null() {
        return Ok(Vec::new());
    }
    let object = args.dyn_ref::<Object>().filter(|_| !Array::is_array(args) && !args.is_function());
    let object = object.ok_or_else(|| invalid("the arguments must be an object"))?;
    let mut arguments = Vec::new();
    for key in Object::keys(object).iter().filter_map(|key| key.as_string()) {
        let value = Reflect::get(object, &JsValue::from_str(&key));
        let value = value.map_err(|_| invalid(format!("argument `{key}` cannot be read")))?;
        if !value.is_undefined() && !value.is_null() {
            let bytes = argument_bytes(&key, &value).await?;
            arguments.push((key, bytes));
        }
    }
    Ok(arguments)
}

/// Bytes as they are, files as their content, anything else as JavaScript writes it, in UTF-8.
async fn argument_bytes(key: &str, value: &JsValue) -> Result<Vec<u8>, Refusal> {
    let fits = |bytes: f64| {
        if bytes <= ARGUMENT_MAX_BYTES {
            return Ok(());
        }
        Err(Refusal::new(
            Code::OverBudget,
            format!("argument `{key}` is at least {bytes} bytes; no buffer holds more than 65536"),
        ))
    };
    if let Some(blob) = value.dyn_ref::<Blob>() {
        fits(blob.size())?;
        return pick::read(blob).await;
    }
    if let Some(bytes) = bytes_of(value) {
        fits(bytes.length().into())?;
        return Ok(bytes.to_vec());
    }
    let text = match value.dyn_ref::<JsString>() {
        Some(text) => text.clone(),
        // A symbol, or an object whose `toString` throws, is written by nobody.
        None => {
            stringify(value).ok_or_else(|| invalid(format!("argument `{key}` cannot be turned into text")))?
        }
    };
    fits(text.length().into())?;
    Ok(String::from(text).into_bytes())
}

fn stringify(value: &JsValue) -> Option<JsString> {
    let string: Function = Reflect::get(&js_sys::global(), &"String".into()).ok()?.dyn_into().ok()?;
    string.call1(&JsValue::UNDEFINED, value).ok()?.dyn_into().ok()
}

fn bytes_of(value: &JsValue) -> Option<Uint8Array> {
    if let Some(buffer) = value.dyn_ref::<ArrayBuffer>() {
        return Some(Uint8Array::new(buffer));
    }
    if !ArrayBuffer::is_view(value) {
        return None;
    }
    let number = |key: &str| js::get(value, key).as_f64().map(|number| number as u32);
    let buffer = js::get(value, "buffer");
    Some(Uint8Array::new_with_byte_offset_and_length(&buffer, number("byteOffset")?, number("byteLength")?))
}

/// The files of `addShelf`: a `FileList`, an array of `File` or `{path, content}`, or an object from path to content.
/// A content is text, bytes or a `Blob`.
fn files_of(files: &JsValue) -> Result<Vec<PickedFile>, Refusal> {
    if let Some(list) = files.dyn_ref::<FileList>() {
        return Ok((0..list.length()).filter_map(|index| list.item(index)).map(pick::picked).collect());
    }
    if let Some(list) = files.dyn_ref::<Array>() {
        return list.iter().map(|item| file_of(&item)).collect();
    }
    let object = files.dyn_ref::<Object>().filter(|_| !files.is_function());
    let object = object.ok_or_else(|| {
        invalid("the files must be a FileList, an array, or an object from path to content")
    })?;
    let keys = Object::keys(object).iter().filter_map(|key| key.as_string()).collect::<Vec<_>>();
    keys.into_iter().map(|path| named(&js::get(object, &path), path)).collect()
}

fn file_of(item: &JsValue) -> Result<PickedFile, Refusal> {
    if let Some(file) = item.dyn_ref::<File>() {
        return Ok(pick::picked(file.clone()));
    }
    let path = js::get(item, "path")
        .as_string()
        .ok_or_else(|| invalid("each file must be a File or {path, content}"))?;
    named(&js::get(item, "content"), path)
}

fn named(content: &JsValue, path: String) -> Result<PickedFile, Refusal> {
    let part = if content.is_string() || content.is_instance_of::<Blob>() {
        content.clone()
    } else {
        let bytes = bytes_of(content);
        bytes.ok_or_else(|| invalid(format!("the content of {path:?} must be text, bytes or a Blob")))?.into()
    };
    match File::new_with_blob_sequence(&Array::of1(&part), &path) {
        Ok(file) => Ok(PickedFile { path, file }),
        Err(thrown) => Err(invalid(format!("no file can be made of {path:?}: {}", js::message(&thrown)))),
    }
}
