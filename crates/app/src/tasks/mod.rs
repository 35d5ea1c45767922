//! The Tasks panel: the tasks on one side, the form that delegates or the task that the address names on the other.
//!
//! | module | idea |
//! |---|---|
//! | `desk` | what is kept while other panels are looked at |
//! | `source` | whose tasks they are |
//! | `places` | what there is where a task can go, and the choice between the places |
//! | `service` | what the page does with its tasks |
//! | `list` | the tasks, the newest first |
//! | `form` | delegating a task |
//! | `fields` | what is given to the agent |
//! | `compose` | the text of a task, from what is in the form |
//! | `detail` | one task |
//! | `words` | states, outcomes, times and answers in words |

mod compose;
mod desk;
mod detail;
mod fields;
mod form;
mod list;
mod places;
pub(crate) mod service;
mod source;
pub(crate) mod words;

use futures::future::LocalBoxFuture;
use leptos::ev::DragEvent;
use leptos::prelude::*;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use serde_json::Value;
use toolshelf_browser::core::refusal::{Code, Refusal};

pub(crate) use self::desk::Desk;
pub(crate) use self::source::TaskSource;
use crate::route::{self, Panel, Place, Route};
use crate::state::State;
use crate::text::counted;
use crate::ui::dom;

/// How long a call waits for the tasks to be opened, in steps of 50 ms.
const OPENING_STEPS: u32 = 200;

/// A call on its way.
pub(crate) type Commanded = LocalBoxFuture<'static, Result<Value, Refusal>>;

/// The panel, fetched when it is first shown.
#[wasm_split(tasks, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn tasks_view(state: State) -> Result<AnyView, SplitLoaderError> {
    let desk = Desk::of(state);
    service::open(state);
    let has_moved = follow_address(state);
    let here = places::place(state);
    state.now.set(js_sys::Date::now());
    // A file that is dropped beside a field would take the place of the page.
    let stay = |event: DragEvent| {
        if dom::has_files(&event) {
            event.prevent_default();
        }
    };
    let stays =
        [window_event_listener(leptos::ev::dragover, stay), window_event_listener(leptos::ev::drop, stay)];
    on_cleanup(move || stays.into_iter().for_each(|listener| listener.remove()));
    let summary = move || {
        let here = here.get();
        let active = match here {
            Place::Browser => state.environment.with(|here| here.as_ref().map_or(0, |here| here.active)),
            Place::Machine => {
                state.machine.environment.with(|known| known.as_ref().map_or(0, |known| known.active))
            }
        };
        match (active as u64, here) {
            (0, _) => String::new(),
            (active, Place::Browser) => [&counted(active, "task", "tasks"), " active in this tab"].concat(),
            (active, Place::Machine) => {
                [&counted(active, "task", "tasks"), " active on ", &state.machine.label()].concat()
            }
        }
    };
    let is_open = Memo::new(move |_| state.route.with(|route| route.task.is_some()));
    let jump = move || {
        let to_form = |_| dom::focus_soon("#agent".to_owned());
        (!is_open.get()).then(|| {
            view! { <button class="btn only-narrow" type="button" on:click=to_form>"Delegate a task"</button> }
        })
    };
    let side = move || match is_open.get() {
        true => detail::detail(state, desk, here.get(), has_moved),
        false => form::form(state, desk, here),
    };
    let panel = view! {
        <main class="page" id="main" tabindex="-1">
            <div class="panel__head">
                <h1 id="panel-h" tabindex="-1">"Tasks"</h1>
                <p class="muted num">{summary}</p>
                {jump}
            </div>
            <div class="panel__cols" data-open=move || is_open.get()>
                {list::list(state, desk, here)}
                {side}
            </div>
        </main>
    };
    Ok(panel.into_any())
}

/// One of the three calls of tasks, for whoever makes it beside the panel. The tasks are opened with the first.
#[wasm_split(tasks, wasm_split_path = leptos::wasm_split, fallible)]
pub(crate) fn command(state: State, name: String, arguments: Value) -> Result<Commanded, SplitLoaderError> {
    let is_closed = state.tasks.with_value(Option::is_none);
    if let Some(owner) = state.owner.get_value().filter(|_| is_closed) {
        owner.with(|| service::open(state));
    }
    Ok(Box::pin(async move {
        for _ in 0..OPENING_STEPS {
            if let Some(tasks) = state.tasks.get_value() {
                return tasks.command(&name, arguments).await;
            }
            toolshelf_browser::clock::pause(50).await;
        }
        Err(Refusal::new(Code::ExecutorUnavailable, "the tasks of this tab are not open yet"))
    }))
}

/// Keeps the title, the task that is looked at and the focus in step with the address. Answers whether a person has
/// gone to another task that is still being read.
fn follow_address(state: State) -> StoredValue<bool> {
    let has_moved = StoredValue::new(false);
    Effect::new(move |before: Option<Route>| {
        let route = state.route.get();
        // Another panel is on its way, and sets its own title.
        if route.panel != Panel::Tasks {
            return before.unwrap_or(route);
        }
        if before.as_ref().is_none_or(|before| before.place != route.place) {
            service::show(state, route.place);
        }
        document().set_title(&match &route.task {
            Some(task) => ["Task ", task, " · Toolshelf"].concat(),
            None => "Tasks · Toolshelf".to_owned(),
        });
        service::read_detail(state);
        // The first address is where the panel begins; only what a person chooses later moves the focus.
        match before.filter(|before| *before != route).map(|before| (before.place, before.task)) {
            // Whoever chooses another place is at that choice.
            Some((place, _)) if place != route.place && route.task.is_none() => {}
            Some(_) if route.task.is_some() => {
                has_moved.set_value(true);
                // The list stays in sight beside the task, and so must the task's head.
                request_animation_frame(|| window().scroll_to_with_x_and_y(0.0, 0.0));
            }
            Some((place, Some(task))) if dom::is_narrow() => {
                dom::focus_soon(["a.task__open[href=\"", &route::to_task(place, &task), "\"]"].concat());
            }
            Some(_) => dom::focus_soon("#agent".to_owned()),
            None => {}
        }
        route
    });
    has_moved
}
