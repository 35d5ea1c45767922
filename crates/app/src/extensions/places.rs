//! Where a tool runs, when it is on more than one shelf.

use leptos::prelude::*;
use toolshelf_browser::core::shelf::Tool;

use crate::route::{self, Place};
use crate::state::State;

/// The choice between the browser's tool and the companion's of the same id; nothing where there is none.
pub(super) fn places(state: State, here: Place, id: String) -> AnyView {
    let there = if here == Place::Browser { Place::Machine } else { Place::Browser };
    let is_both = {
        let id = id.clone();
        let is_it = move |tool: &Tool| tool.id == id && tool.driven().is_some();
        Memo::new(move |_| {
            state.with_readings(there, |readings| {
                readings
                    .iter()
                    .filter_map(|reading| reading.shelf.as_ref().ok())
                    .flat_map(|shelf| &shelf.tools)
                    .any(&is_it)
            })
        })
    };
    let way = move |place: Place| {
        let address = route::to_tool(place, &id, None);
        let name = move || match place {
            Place::Browser => "In this browser".to_owned(),
            Place::Machine => ["On ", &state.machine.label()].concat(),
        };
        view! {
            <label class="seg__item">
                <input
                    type="radio"
                    name="tool-place"
                    prop:checked=place == here
                    on:change=move |_| drop(window().location().set_hash(&address))
                />
                <span>{name}</span>
            </label>
        }
    };
    let shown = move || {
        is_both.get().then(|| {
            view! {
                <fieldset class="seg places">
                    <legend class="vh">"Where it runs"</legend>
                    {[Place::Browser, Place::Machine].map(&way).collect_view()}
                </fieldset>
            }
        })
    };
    shown.into_any()
}
