//! Copying to the clipboard.

use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast as _;
use wasm_bindgen_futures::JsFuture;
use web_sys::{HtmlDocument, HtmlTextAreaElement};

use super::dom;
use super::icon::Icon;
use crate::state::use_state;

/// How long the tick is shown.
const DONE: Duration = Duration::from_millis(1_600);

/// A button that copies a text and shows a tick when it has.
#[component]
pub(crate) fn CopyButton(
    /// What is copied; computed when the button is pressed.
    #[prop(into)]
    text: Signal<String>,
    /// What the button says. With no words it is only an icon and needs a label.
    #[prop(optional)]
    words: &'static str,
    /// What it is called where it has no words.
    #[prop(optional)]
    label: Option<&'static str>,
    /// Its class.
    #[prop(default = "btn btn--quiet btn--icon copy")]
    class: &'static str,
) -> impl IntoView {
    let state = use_state();
    let done = RwSignal::new(false);
    let copy = move |_| {
        let text = text.get_untracked();
        spawn_local(async move {
            if !write(&text).await {
                state.announce("The browser did not allow copying");
                return;
            }
            state.announce("Copied");
            let _ = done.try_set(true);
            let untick = move || {
                let _ = done.try_set(false);
            };
            set_timeout(untick, DONE);
        });
    };
    view! {
        <button class=class type="button" aria-label=label title=label data-done=move || done.get() on:click=copy>
            <span class="copy__icons">
                <Icon name="#i-copy"/>
                <Icon name="#i-check" class="icon is-done"/>
            </span>
            {words}
        </button>
    }
}

/// Writes to the clipboard, by the older way where the newer one is not allowed.
async fn write(text: &str) -> bool {
    let navigator = window().navigator();
    // Pages that are not in a secure context have no clipboard object at all.
    let modern =
        js_sys::Reflect::get(&navigator, &"clipboard".into()).is_ok_and(|clipboard| clipboard.is_object());
    if modern && JsFuture::from(navigator.clipboard().write_text(text)).await.is_ok() {
        return true;
    }
    write_selected(text).unwrap_or(false)
}

fn write_selected(text: &str) -> Option<bool> {
    let document = document();
    let focused = document.active_element();
    // An open dialog lets nothing outside of it be selected.
    let parent =
        document.query_selector("dialog[open]").ok().flatten().or_else(|| Some(document.body()?.into()))?;
    let field = dom::child(&parent, "textarea", "vh", "");
    let field: HtmlTextAreaElement = field.dyn_into().ok()?;
    field.set_value(text);
    field.select();
    let copied = document.unchecked_ref::<HtmlDocument>().exec_command("copy").ok();
    field.remove();
    if let Some(focused) = focused {
        dom::focus(&focused);
    }
    copied
}
