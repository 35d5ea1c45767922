//! A way to end what JavaScript does.

use js_sys::{Array, Reflect};
use wasm_bindgen::{JsCast as _, JsValue};

use crate::js;

/// An `AbortController` that aborts when it is dropped.
#[derive(Debug)]
pub(crate) struct Stop(JsValue);

impl Stop {
    pub(crate) fn new() -> Self {
        let class: js_sys::Function = js::global("AbortController").unchecked_into();
        Self(Reflect::construct(&class, &Array::new()).unwrap_or_default())
    }

    pub(crate) fn signal(&self) -> JsValue {
        js::get(&self.0, "signal")
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = js::call(&self.0, "abort", &[]);
    }
}
