//! Messages at the foot of the page, with an undo.

use leptos::prelude::*;

use super::icon::Icon;
use crate::actions;
use crate::state::use_state;

/// The messages. Escape takes the last one away.
#[component]
pub(crate) fn Toasts() -> impl IntoView {
    let state = use_state();
    let escape = window_event_listener(leptos::ev::keydown, move |event| {
        let busy = event.default_prevented() || event.key() != "Escape" || is_something_open();
        if let Some(id) = state.toasts.with_untracked(|toasts| Some(toasts.last()?.id)).filter(|_| !busy) {
            actions::dismiss(state, id);
        }
    });
    on_cleanup(move || escape.remove());
    let shown = move || {
        state.toasts.with(|toasts| {
            let shown =
                toasts.iter().map(|toast| (toast.id, toast.verb, toast.name.clone(), toast.undo.is_some()));
            shown.collect::<Vec<_>>()
        })
    };
    view! {
        <div class="toasts" role="status">
            <For each=shown key=|toast| toast.0 let((id, verb, name, can_undo))>
                <div class="toast">
                    <p>{verb}" "<b>{name}</b></p>
                    {can_undo.then(|| view! {
                        <button class="btn btn--quiet" type="button" on:click=move |_| actions::undo(state, id)>"Undo"</button>
                    })}
                    <button
                        class="btn btn--quiet btn--icon"
                        type="button"
                        aria-label="Dismiss"
                        on:click=move |_| actions::dismiss(state, id)
                    >
                        <Icon name="#i-cross"/>
                    </button>
                </div>
            </For>
        </div>
    }
}

fn is_something_open() -> bool {
    document().query_selector("dialog[open], :popover-open").ok().flatten().is_some()
}
