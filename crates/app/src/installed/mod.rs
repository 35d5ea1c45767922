//! The extensions of a companion, beside the shelves: what is installed, who may call it, calls and what they leave; and
//! the facts that they read and write.
//!
//! | module | idea |
//! |---|---|
//! | `place` | the part of the address that names an extension or a fact |
//! | `schema` | a form out of a tool's JSON Schema, and arguments out of the form |
//! | `words` | what a manifest asks for and what a grant gives, in plain words |
//! | `draft` | a grant as it is filled in |
//! | `desk` | what is kept while other panels are looked at |
//! | `service` | what the page does with extensions |
//! | `list` | the extensions in the list of shelves |
//! | `install` | installing one, and the question before that |
//! | `detail` | one extension |
//! | `run`, `fields` | calling a tool of it |
//! | `value` | JSON as a tree |
//! | `grants`, `grant_form` | who may call it |
//! | `receipts` | what it has put on record |
//! | `facts`, `fact` | facts by their names, and the versions of one |
//! | `ask` | what is asked before something is lost |
//! | `parts` | small things that all of these draw |
//!
//! Nearly all of it is fetched when it is first shown.

mod ask;
mod desk;
mod detail;
mod draft;
mod fact;
mod facts;
mod fields;
mod grant_form;
mod grants;
mod install;
mod list;
mod parts;
mod place;
mod receipts;
mod run;
mod schema;
mod service;
mod value;
mod words;

use leptos::prelude::*;
use leptos::wasm_split::{SplitLoaderError, wasm_split};

pub(crate) use self::desk::Desk;
use self::place::Named;
pub(crate) use self::place::{FACTS, INSTALLED};
use crate::state::State;
use crate::ui::dom;

/// The extensions in the list of shelves.
#[wasm_split(installed, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn list_view(state: State) -> Result<AnyView, SplitLoaderError> {
    Ok(list::list(state, Desk::of(state)))
}

/// What the address names: an extension, all of them, or facts.
#[wasm_split(installed, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn place_view(state: State) -> Result<AnyView, SplitLoaderError> {
    let desk = Desk::of(state);
    let named = Memo::new(move |before: Option<&Named>| {
        let address = state.route.with(|route| route.installed.clone());
        // Another panel is on its way; what is shown stays until then.
        address.map_or_else(|| before.cloned().unwrap_or_default(), |address| place::parse(&address))
    });
    state.now.set(js_sys::Date::now());
    follow(named);
    let is_fact =
        Memo::new(move |_| named.with(|named| !matches!(named, Named::Nothing | Named::Extension(_))));
    let is_there = Memo::new(move |_| state.machine.is_wanted.get());
    let shown = move || match (is_there.get(), is_fact.get()) {
        (false, is_fact) => parts::without_companion(is_fact),
        (true, true) => facts::facts(state, desk, named),
        (true, false) => detail::extensions(state, desk, named),
    };
    Ok(view! { {shown}{ask::question(desk)} }.into_any())
}

/// Keeps the title and the focus in step with the address.
fn follow(named: Memo<Named>) {
    Effect::new(move |before: Option<Named>| {
        let now = named.get();
        let words = match &now {
            Named::Nothing => "Installed extensions".to_owned(),
            Named::Extension(id) | Named::Entity(id) => words::name(id),
            Named::Below(_) => "Facts".to_owned(),
            Named::Fact(entity, key) => [&words::name(key), " of ", &words::name(entity)].concat(),
        };
        document().set_title(&[&words, " · Toolshelf"].concat());
        // The first address is where this begins; only what a person chooses later moves the focus.
        if before.is_none_or(|before| before != now) {
            request_animation_frame(|| window().scroll_to_with_x_and_y(0.0, 0.0));
            dom::focus_soon("#detail-h".to_owned());
        }
        now
    });
}
