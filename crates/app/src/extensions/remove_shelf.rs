//! Asking before a shelf is removed.

use leptos::prelude::*;

use crate::actions;
use crate::state::use_state;
use crate::text::counted;
use crate::ui::dom;

/// The dialog. It opens when there is a shelf to ask about.
#[component]
pub(super) fn RemoveShelf() -> impl IntoView {
    let state = use_state();
    let dialog = NodeRef::<leptos::html::Dialog>::new();
    Effect::new(move || {
        if let Some(dialog) =
            dialog.get().filter(|dialog| state.removing.with(Option::is_some) && !dialog.open())
        {
            let _ = dialog.show_modal();
        }
    });
    let closed = move |_| {
        let Some(dialog) = dialog.get() else { return };
        let answer = dialog.return_value();
        dialog.set_return_value("");
        let asked = state.removing.get_untracked();
        state.removing.set(None);
        if let Some(asked) = asked.filter(|_| answer == "remove") {
            actions::remove(state, asked.key);
            // The button that opened the dialog leaves with its shelf.
            dom::focus_soon("#panel-h".to_owned());
        }
    };
    let name = move || state.removing.with(|asked| asked.as_ref().map(|asked| asked.name.clone()));
    let words = move || {
        state.removing.with(|asked| {
            let tools = asked.as_ref().map_or(0, |asked| asked.tools) as u64;
            let what = counted(tools, "tool leaves", "tools leave");
            ["Its ", &what, " this page. The folder on your disk stays as it is."].concat()
        })
    };
    view! {
        <dialog class="dialog" id="remove" aria-labelledby="remove-h" node_ref=dialog on:close=closed>
            <form method="dialog">
                <h2 id="remove-h">"Remove the shelf “"{name}"”?"</h2>
                <p>{words}</p>
                <div class="dialog__actions">
                    <button class="btn" value="keep" autofocus>"Keep it"</button>
                    <button class="btn btn--danger" value="remove">"Remove"</button>
                </div>
            </form>
        </dialog>
    }
}
