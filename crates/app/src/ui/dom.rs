//! Plain DOM: moving the focus, and elements that are built by the thousand.

use std::time::Duration;

use leptos::prelude::*;
use wasm_bindgen::JsCast as _;
use web_sys::{Blob, DragEvent, Element, HtmlElement, Url};

const SVG: &str = "http://www.w3.org/2000/svg";

/// The place in which scripts measure "narrow": below it the panel has one column, in CSS pixels.
const ONE_COLUMN: f64 = 900.0;

/// Whether the panel's two columns are one below the other.
pub(crate) fn is_narrow() -> bool {
    window().inner_width().ok().and_then(|width| width.as_f64()).is_some_and(|width| width < ONE_COLUMN)
}

/// The name of the key that makes Enter send a form.
pub(crate) fn control_key() -> &'static str {
    let agent = window().navigator().user_agent().unwrap_or_default();
    if agent.contains("Mac") { "⌘" } else { "Ctrl" }
}

/// Whether files are dragged, and not a text or a link.
pub(crate) fn has_files(event: &DragEvent) -> bool {
    event.data_transfer().is_some_and(|transfer| transfer.types().iter().any(|kind| kind == "Files"))
}

/// Hands a file to the person as a download.
pub(crate) fn save(file: &Blob, name: &str) {
    let Ok(address) = Url::create_object_url_with_blob(file) else { return };
    let link = element("a", "");
    set(&link, "href", &address);
    set(&link, "download", name);
    if let Some(link) = link.dyn_ref::<HtmlElement>() {
        link.click();
    }
    // The download has its own hold on the file by then.
    set_timeout(move || drop(Url::revoke_object_url(&address)), Duration::from_secs(60));
}

/// Moves the focus to the first element that `selector` finds, once what is being drawn is there.
pub(crate) fn focus_soon(selector: String) {
    request_animation_frame(move || {
        if let Ok(Some(found)) = document().query_selector(&selector) {
            focus(&found);
        }
    });
}

/// Moves the focus.
pub(crate) fn focus(element: &Element) {
    if let Some(element) = element.dyn_ref::<HtmlElement>() {
        let _ = element.focus();
    }
}

/// A new element with a class.
pub(crate) fn element(tag: &str, class: &str) -> Element {
    #[expect(clippy::expect_used, reason = "the tags are constants of this program")]
    let element = document().create_element(tag).expect("a tag that HTML has");
    if !class.is_empty() {
        element.set_class_name(class);
    }
    element
}

/// A new element with a class and a text, put at the end of `parent`.
pub(crate) fn child(parent: &Element, tag: &str, class: &str, text: &str) -> Element {
    let element = element(tag, class);
    if !text.is_empty() {
        element.set_text_content(Some(text));
    }
    let _ = parent.append_child(&element);
    element
}

/// Sets an attribute.
pub(crate) fn set(element: &Element, name: &str, value: &str) {
    let _ = element.set_attribute(name, value);
}

/// Puts an icon of the page's sprite at the end of `parent`.
pub(crate) fn icon(parent: &Element, href: &str) {
    let create = |tag: &str| document().create_element_ns(Some(SVG), tag).ok();
    if let (Some(svg), Some(shape)) = (create("svg"), create("use")) {
        set(&svg, "class", "icon");
        set(&svg, "aria-hidden", "true");
        set(&shape, "href", href);
        let _ = svg.append_child(&shape);
        let _ = parent.append_child(&svg);
    }
}
