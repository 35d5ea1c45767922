//! The Toolshelf page: one panel, in which tools are looked at, run and added.
//!
//! | module | idea |
//! |---|---|
//! | `state` | what the page knows, as signals |
//! | `actions` | what the page does: reading, running, adding, removing, undoing |
//! | `route` | the part of the address that names a tool |
//! | `history` | how fast a tool has been |
//! | `text` | numbers, times and untrusted bytes as text |
//! | `extensions` | the panel |
//! | `result` | what a call came back with |
//! | `ui` | the small parts that every panel uses |
//!
//! The parts that compute (`route`, `history`, `text` and the rows of a diff) know no browser and are tested natively.

#![expect(
    unreachable_pub,
    reason = "the items that the component macro writes are more public than their component"
)]

mod actions;
mod extensions;
mod history;
mod result;
mod route;
mod state;
mod text;
mod ui;

use leptos::prelude::*;

use crate::extensions::Extensions;
use crate::state::State;
use crate::ui::header::Header;
use crate::ui::toast::Toasts;

/// Starts the page.
pub fn start() {
    ui::fatal::install();
    mount_to_body(App);
}

/// The whole page.
#[component]
fn App() -> impl IntoView {
    let state = State::new();
    provide_context(state);
    actions::start(state);
    view! {
        <Header/>
        <Extensions/>
        <Toasts/>
        <p class="vh" role="status" data-announcement="">{move || state.announcement.get()}</p>
    }
}
