//! What is asked before something is lost.

use leptos::prelude::*;

use super::desk::Desk;
use crate::ui::dom;

/// The dialog. It opens when there is a question.
pub(super) fn question(desk: Desk) -> AnyView {
    let dialog = NodeRef::<leptos::html::Dialog>::new();
    let reason = RwSignal::new(String::new());
    Effect::new(move || {
        let is_asked = desk.question.with(Option::is_some);
        if let Some(dialog) = dialog.get().filter(|dialog| is_asked && !dialog.open()) {
            reason.set(String::new());
            let _ = dialog.show_modal();
        }
    });
    let closed = move |_| {
        let Some(dialog) = dialog.get() else { return };
        let answer = dialog.return_value();
        dialog.set_return_value("");
        let asked = desk.question.get_untracked();
        desk.question.set(None);
        if let Some(asked) = asked.filter(|_| answer == "do") {
            (asked.act)(reason.get_untracked());
            // What opened the dialog may leave with what it was about.
            dom::focus_soon("#detail-h".to_owned());
        }
    };
    let about = move || {
        desk.question.with(|asked| {
            let asked = asked.as_ref()?;
            let class = if asked.is_danger { "btn btn--danger" } else { "btn btn--primary" };
            let why = asked.reason.map(|is_needed| {
                let words = if is_needed { "Why" } else { "Why (may be left out)" };
                view! {
                    <div class="opt">
                        <label for="ask-why">{words}</label>
                        <input
                            class="field"
                            id="ask-why"
                            maxlength="500"
                            autocomplete="off"
                            required=is_needed
                            prop:value=move || reason.get()
                            on:input=move |event| reason.set(event_target_value(&event))
                        />
                    </div>
                }
            });
            Some(view! {
                <h2 id="ask-h">{asked.title.clone()}</h2>
                <p>{asked.words.clone()}</p>
                {why}
                <div class="dialog__actions">
                    <button class="btn" value="keep" formnovalidate autofocus>"Keep it as it is"</button>
                    <button class=class value="do">{asked.verb}</button>
                </div>
            })
        })
    };
    view! {
        <dialog class="dialog" id="ask" aria-labelledby="ask-h" node_ref=dialog on:close=closed>
            <form method="dialog">{about}</form>
        </dialog>
    }
    .into_any()
}
