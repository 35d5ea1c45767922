//! Small bridges to JavaScript values.

use js_sys::{Array, Function, Object, Promise, Reflect};
use serde::Serialize;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;

/// A plain object with `fields`.
pub(crate) fn object(fields: &[(&str, JsValue)]) -> Object {
    let object = Object::new();
    for (key, value) in fields {
        // Setting a property of a fresh plain object cannot fail.
        let _ = Reflect::set(&object, &JsValue::from_str(key), value);
    }
    object
}

/// The property `key` of `value`; `undefined` when there is none.
pub(crate) fn get(value: &JsValue, key: &str) -> JsValue {
    Reflect::get(value, &JsValue::from_str(key)).unwrap_or_default()
}

/// Calls the method `name` of `value`.
pub(crate) fn call(value: &JsValue, name: &str, arguments: &[JsValue]) -> Result<JsValue, JsValue> {
    let method: Function = get(value, name).dyn_into()?;
    method.apply(value, &arguments.iter().collect::<Array>())
}

/// Calls the method `name` of `value` and waits for the promise that it returns.
pub(crate) async fn call_async(
    value: &JsValue,
    name: &str,
    arguments: &[JsValue],
) -> Result<JsValue, JsValue> {
    JsFuture::from(Promise::resolve(&call(value, name, arguments)?)).await
}

/// The property `key` of the global object.
pub(crate) fn global(key: &str) -> JsValue {
    get(&js_sys::global(), key)
}

/// The page's `localStorage`; `None` where the browser gives none, and in a worker.
pub(crate) fn local_storage() -> Option<web_sys::Storage> {
    web_sys::window()?.local_storage().ok()?
}

/// The name of a thrown error, for example `NotFoundError`.
pub(crate) fn error_name(thrown: &JsValue) -> String {
    get(thrown, "name").as_string().unwrap_or_default()
}

/// What a thrown value says.
pub(crate) fn message(thrown: &JsValue) -> String {
    let said = get(thrown, "message").as_string().or_else(|| thrown.as_string());
    said.filter(|said| !said.is_empty()).unwrap_or_else(|| format!("{thrown:?}"))
}

/// `value` as a plain object: maps as objects, missing values as `null`.
pub(crate) fn plain(value: &impl Serialize) -> JsValue {
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    // The wire types hold nothing that a plain object cannot.
    value.serialize(&serializer).unwrap_or_default()
}
