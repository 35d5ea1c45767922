//! The Toolshelf page: a panel in which tools are looked at, run and added, one of tasks, one of live conversations, and
//! one of the places where tasks run.
//!
//! | module | idea |
//! |---|---|
//! | `state` | what the page knows, as signals |
//! | `actions` | what the page does: reading, running, adding, removing, undoing |
//! | `console` | the same for scripts |
//! | `companion` | the companion that may serve the page: its tools, its tasks, the connection to it |
//! | `route` | the part of the address that names a panel, a tool or a task |
//! | `history` | how fast a tool has been |
//! | `text` | numbers, times and untrusted bytes as text |
//! | `extensions` | the panel of tools |
//! | `installed` | the extensions of a companion, and its facts |
//! | `tasks` | the panel of tasks, and what the page does with them |
//! | `live` | the panel in which a person types or speaks and tools are called |
//! | `webmcp` | what can be called, offered to the browser's own agent |
//! | `environments` | the panel of environments, folders and a person's data |
//! | `result` | what a call came back with |
//! | `ui` | the small parts that every panel uses |
//!
//! The parts that compute (`route`, `history`, `text` and the rows of a diff) know no browser and are tested natively.

#![expect(
    unreachable_pub,
    reason = "the items that the component macro writes are more public than their component"
)]

mod actions;
mod companion;
mod console;
mod environments;
mod extensions;
mod history;
mod installed;
mod live;
mod result;
mod route;
mod state;
mod tasks;
mod text;
mod ui;
mod webmcp;

use futures::future::LocalBoxFuture;
use leptos::prelude::*;
use leptos::wasm_split::SplitLoaderError;

use crate::environments::environments_view;
use crate::extensions::Extensions;
use crate::live::live_view;
use crate::route::Panel;
use crate::state::State;
use crate::tasks::tasks_view;
use crate::ui::arriving::arriving;
use crate::ui::dom;
use crate::ui::header::Header;
use crate::ui::toast::Toasts;

/// A panel on its way.
type Arriving = LocalBoxFuture<'static, Result<AnyView, SplitLoaderError>>;

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
    webmcp::start(state);
    let panel = Memo::new(move |_| state.route.with(|route| route.panel));
    // The first panel is where the page begins; only what a person chooses later moves the focus.
    let has_moved = StoredValue::new(false);
    let shown = move || {
        let moves = has_moved.get_value();
        has_moved.set_value(true);
        match panel.get() {
            Panel::Extensions => {
                focus_head(moves);
                view! { <Extensions/> }.into_any()
            }
            // One way for all of them: each future of its own would be in the page three times.
            panel => arriving(move || focused(fetched(state, panel), moves)),
        }
    };
    view! {
        <Header/>
        {shown}
        <Toasts/>
        <p class="vh" role="status" data-announcement="">{move || state.announcement.get()}</p>
    }
}

/// A panel that is fetched when it is first shown.
fn fetched(state: State, panel: Panel) -> Arriving {
    match panel {
        Panel::Tasks => Box::pin(tasks_view(state)),
        Panel::Live => Box::pin(live_view(state)),
        Panel::Extensions | Panel::Environments => Box::pin(environments_view(state)),
    }
}

/// A panel that arrives, and its head in focus once it is there.
async fn focused(panel: Arriving, moves: bool) -> Result<AnyView, SplitLoaderError> {
    let panel = panel.await?;
    focus_head(moves);
    Ok(panel)
}

fn focus_head(moves: bool) {
    if moves {
        dom::focus_soon("#panel-h".to_owned());
    }
}
