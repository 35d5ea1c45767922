//! A person's voice as text, and text as a voice, where the browser has that.
//!
//! Recognition may send what it hears to a service of the browser's maker; nothing here does that by itself, and nothing
//! is heard before a person asks for it.

use std::rc::Rc;

use js_sys::{Array, Reflect};
use wasm_bindgen::prelude::*;

use crate::js;

/// Longest text that is read aloud, in characters.
const ALOUD_MAX_CHARS: usize = 600;

/// What recognition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// What was understood so far.
    SoFar(String),
    /// What was understood, for good.
    Said(String),
    /// It has ended, because of that if there is a reason.
    Ended(Option<String>),
}

/// Someone who listens. Dropping it ends that.
pub struct Listening {
    recognition: JsValue,
    _on_event: Closure<dyn FnMut(JsValue)>,
}

fn recognition() -> Option<js_sys::Function> {
    let names = ["SpeechRecognition", "webkitSpeechRecognition"];
    names.into_iter().find_map(|name| js::global(name).dyn_into().ok())
}

/// Whether this browser recognises speech.
#[must_use]
pub fn can_listen() -> bool {
    recognition().is_some()
}

/// Whether this browser reads aloud.
#[must_use]
pub fn can_speak() -> bool {
    js::get(&js::global("speechSynthesis"), "speak").is_function()
        && js::global("SpeechSynthesisUtterance").is_function()
}

impl Listening {
    /// Listens, and tells what is heard.
    ///
    /// # Errors
    /// What the browser says when it does not.
    pub fn start(hear: impl Fn(Heard) + 'static) -> Result<Self, String> {
        let failed = |thrown: JsValue| js::message(&thrown);
        let class = recognition().ok_or("this browser recognises no speech")?;
        let recognition = Reflect::construct(&class, &Array::new()).map_err(failed)?;
        let fault = Rc::new(std::cell::RefCell::new(None));
        let on_event = Closure::<dyn FnMut(JsValue)>::new(move |event: JsValue| {
            match js::get(&event, "type").as_string().as_deref() {
                Some("result") => hear(understood(&js::get(&event, "results"))),
                Some("error") => {
                    let error = js::get(&event, "error").as_string().unwrap_or_default();
                    fault.replace(Some(error).filter(|error| !["aborted", "no-speech"].contains(&&**error)));
                }
                _ => hear(Heard::Ended(fault.take())),
            }
        });
        let set = |name: &str, value: JsValue| Reflect::set(&recognition, &name.into(), &value);
        for name in ["onresult", "onerror", "onend"] {
            let _ = set(name, on_event.as_ref().clone());
        }
        let _ = set("interimResults", true.into());
        let language = js::get(&js::global("navigator"), "language");
        let _ = set("lang", language);
        js::call(&recognition, "start", &[]).map_err(failed)?;
        Ok(Self { recognition, _on_event: on_event })
    }

    /// Listens no more; what was heard until now is still told.
    pub fn stop(&self) {
        let _ = js::call(&self.recognition, "stop", &[]);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        for name in ["onresult", "onerror", "onend"] {
            let _ = Reflect::set(&self.recognition, &name.into(), &JsValue::NULL);
        }
        let _ = js::call(&self.recognition, "abort", &[]);
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listening")
    }
}

fn understood(results: &JsValue) -> Heard {
    let (mut text, mut is_final) = (String::new(), true);
    for result in Array::from(results).iter() {
        text.push_str(&js::get(&js::get(&result, "0"), "transcript").as_string().unwrap_or_default());
        is_final &= js::get(&result, "isFinal").is_truthy();
    }
    if is_final { Heard::Said(text) } else { Heard::SoFar(text) }
}

/// Reads a text aloud, and stops what was being read.
pub fn speak(text: &str) {
    hush();
    let text: String = text.chars().take(ALOUD_MAX_CHARS).collect();
    if let Ok(class) = js::global("SpeechSynthesisUtterance").dyn_into::<js_sys::Function>()
        && let Ok(utterance) = Reflect::construct(&class, &Array::of1(&text.into()))
    {
        let _ = js::call(&js::global("speechSynthesis"), "speak", &[utterance]);
    }
}

/// Stops what is being read.
pub fn hush() {
    let _ = js::call(&js::global("speechSynthesis"), "cancel", &[]);
}
