//! Small bridges to JavaScript values.

use js_sys::{Object, Reflect};
use serde::Serialize;
use wasm_bindgen::JsValue;

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
