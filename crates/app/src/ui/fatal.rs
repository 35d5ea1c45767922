//! What is seen after the page itself has failed.

use std::panic::PanicHookInfo;

use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::Element;

use super::dom::{child, element, icon, set};

const WORDS: &str = "Something went wrong in the page itself, so nothing on it would work. Reload to go on; the \
                     shelves you added are kept.";

/// Shows a panic as a page with a way on, and logs it.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|panic| {
        // Where even this fails, the console still has the words.
        show(&details(panic));
    }));
}

fn details(panic: &PanicHookInfo<'_>) -> String {
    let text = panic.to_string().replace(":\n", ": ");
    let stack = js_sys::Reflect::get(&js_sys::Error::new(""), &"stack".into()).ok();
    web_sys::console::error_2(&JsValue::from_str(&text), &stack.unwrap_or_default());
    text
}

/// The page is built by hand: nothing of what drew it before is to be trusted any more.
fn show(details: &str) {
    let Some(body) = document().body() else { return };
    if document().query_selector("main.fatal").is_ok_and(|shown| shown.is_some()) {
        return;
    }
    // The sprite of the icons stays.
    while let Some(last) = body.last_element_child().filter(|last| last.id() != "boot") {
        last.remove();
    }
    let main = element("main", "fatal");
    set(&main, "id", "main");
    // The sign that was shown while the page began is still there.
    let mark = document().query_selector("#boot .brand__mark").ok().flatten();
    if let Some(mark) = mark.and_then(|mark| mark.clone_node_with_deep(true).ok()) {
        let _ = main.append_child(&mark);
    }
    child(&main, "h1", "", "Toolshelf stopped");
    child(&main, "p", "", WORDS);
    let pre = child(&main, "pre", "", "");
    set(&pre, "tabindex", "0");
    child(&pre, "code", "", details);
    let row = child(&main, "div", "row", "");
    let reload = button(&row, "btn btn--primary", || drop(window().location().reload()));
    reload.set_text_content(Some("Reload"));
    let text = details.to_owned();
    let copy =
        button(&row, "btn btn--quiet", move || drop(window().navigator().clipboard().write_text(&text)));
    icon(&copy, "#i-copy");
    let _ = copy.append_child(&document().create_text_node("Copy the details"));
    let _ = body.append_child(&main);
    super::dom::focus(&reload);
}

fn button(parent: &Element, class: &str, act: impl FnMut() + 'static) -> Element {
    let button = child(parent, "button", class, "");
    set(&button, "type", "button");
    let listener = Closure::<dyn FnMut()>::new(act).into_js_value();
    let _ = button.add_event_listener_with_callback("click", listener.unchecked_ref());
    button
}
