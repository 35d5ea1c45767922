//! The shelves with their tools.

use leptos::prelude::*;
use toolshelf_browser::core::refusal::Refusal;
use toolshelf_browser::core::shelf::Shelf;
use toolshelf_browser::{BUILTIN, Reading};

use super::tool_row::ToolRow;
use crate::actions;
use crate::result::refusal::RefusalNote;
use crate::route::Place;
use crate::state::{Removing, Shelves, use_state};
use crate::text::counted;
use crate::ui::icon::Icon;

/// All shelves. One that did not change keeps its elements, and with them the focus.
#[component]
pub(crate) fn ShelfList() -> impl IntoView {
    let state = use_state();
    let readings = move || {
        state.shelves.with(|shelves| match shelves {
            Shelves::Read(readings) => readings.clone(),
            Shelves::Opening | Shelves::Failed(_) => Vec::new(),
        })
    };
    view! {
        <For each=readings key=fingerprint let(reading)>
            {match reading.shelf {
                Ok(shelf) => view! { <ShelfCard key=reading.key shelf=shelf/> }.into_any(),
                Err(refusal) => view! { <BrokenShelf key=reading.key refusal=refusal/> }.into_any(),
            }}
        </For>
    }
}

/// Everything of a shelf that is shown, as one text.
pub(crate) fn fingerprint(reading: &Reading) -> String {
    let mut print = reading.key.clone();
    match &reading.shelf {
        Ok(shelf) => {
            print.extend(["\n", &shelf.name, "\n", &shelf.version]);
            for tool in &shelf.tools {
                let digest = tool.digest.as_deref().unwrap_or_default();
                let why = tool.verdict.as_ref().err().map(|refusal| refusal.why.as_str()).unwrap_or_default();
                let abi = tool.verdict.as_ref().ok().and_then(|admitted| Some(admitted.abi?.layout().name));
                print.extend(["\n", &tool.id, "\n", digest, "\n", &tool.description, "\n", why]);
                print.push_str(abi.unwrap_or_default());
            }
        }
        Err(refusal) => print.extend(["\n!", &refusal.why]),
    }
    print
}

/// One shelf.
#[component]
fn ShelfCard(
    /// Its key.
    key: String,
    /// What was read of it.
    shelf: Shelf,
) -> impl IntoView {
    let state = use_state();
    let own = key != BUILTIN;
    let heading = ["s-", &key].concat();
    let count = shelf.tools.len();
    let tools = counted(count as u64, "tool", "tools");
    let meta = [if own { "added by you · " } else { "built in · " }, &tools].concat();
    let refused = shelf.tools.iter().any(|tool| tool.verdict.is_err());
    let restore = (!own && refused).then(|| view! { <p class="shelf__mend"><Restore/></p> });
    let rows = shelf.tools.into_iter().map(|tool| {
        // An id that another shelf has as well needs its shelf in the address.
        let shelf = tool.verdict.is_err().then(|| key.clone()).filter(|_| own);
        view! { <ToolRow place=Place::Browser tool=tool shelf=shelf/> }
    });
    let rows = rows.collect_view();
    let remove = own.then(|| {
        let label = ["Remove the shelf ", &shelf.name].concat();
        let asked = Removing { key: key.clone(), name: shelf.name.clone(), tools: count };
        view! {
            <button
                class="btn btn--quiet btn--icon"
                type="button"
                aria-label=label
                title="Remove this shelf"
                on:click=move |_| state.removing.set(Some(asked.clone()))
            >
                <Icon name="#i-trash"/>
            </button>
        }
    });
    view! {
        <section class="shelf" aria-labelledby=heading data-shelf=key.clone()>
            <div class="shelf__head">
                <h2 class="shelf__name" id=heading.clone()>
                    {shelf.name}" "<span class="version">"version "{shelf.version}</span>
                </h2>
                <p class="shelf__meta">{meta}</p>
                {remove}
            </div>
            {(count == 0).then(|| view! { <p class="shelf__empty">"Its manifest lists no tools."</p> })}
            <ul role="list">{rows}</ul>
            {restore}
        </section>
    }
}

/// A shelf that could not be read.
#[component]
fn BrokenShelf(
    /// Its key.
    key: String,
    /// Why.
    refusal: Refusal,
) -> impl IntoView {
    let state = use_state();
    let name = key.strip_prefix("own/").unwrap_or(&key).to_owned();
    let heading = ["s-", &key].concat();
    let way_on = if key == BUILTIN {
        view! { <p class="shelf__mend"><Restore/></p> }.into_any()
    } else {
        let asked = Removing { key: key.clone(), name: name.clone(), tools: 0 };
        view! {
            <p class="shelf__mend">
                <button class="btn" type="button" on:click=move |_| state.removing.set(Some(asked.clone()))>
                    <Icon name="#i-trash"/>"Remove this shelf"
                </button>
            </p>
        }
        .into_any()
    };
    view! {
        <section class="shelf" aria-labelledby=heading data-shelf=key>
            <div class="shelf__head">
                <h2 class="shelf__name" id=heading.clone()>{name}</h2>
                <p class="shelf__meta">"could not be read"</p>
            </div>
            <RefusalNote refusal=refusal/>
            {way_on}
        </section>
    }
}

/// A button that writes the built-in tools anew.
#[component]
pub(super) fn Restore() -> impl IntoView {
    let state = use_state();
    view! {
        <button class="btn" type="button" on:click=move |_| actions::restore_builtin(state)>
            "Restore the built-in tools"
        </button>
    }
}
