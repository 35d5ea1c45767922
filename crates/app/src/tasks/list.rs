//! The tasks, the newest first.

use leptos::prelude::*;
use toolshelf_browser::core::task::TaskState;
use toolshelf_browser::tasks::{Filter, Row};

use super::desk::Desk;
use super::{places, service, words};
use crate::result::refusal::RefusalNote;
use crate::route::{self, ENVIRONMENTS, Place};
use crate::state::State;
use crate::ui::arriving::arriving;
use crate::ui::icon::Icon;
use crate::{companion, text};

const FILTERS: [(Filter, &str); 4] = [
    (Filter::All, "All"),
    (Filter::Active, "Active"),
    (Filter::Completed, "Completed"),
    (Filter::Unsuccessful, "Unsuccessful"),
];

/// The list, its filter, and what can be done with all of it.
pub(super) fn list(state: State, desk: Desk, here: Memo<Place>) -> AnyView {
    let filter = |(filter, name): (Filter, &'static str)| {
        let choose = move |_| {
            desk.filter.set(filter);
            service::read_rows(state, 1);
        };
        view! {
            <label class="seg__item">
                <input
                    type="radio"
                    name="tasks-filter"
                    prop:checked=move || desk.filter.get() == filter
                    on:change=choose
                />
                <span>{name}</span>
            </label>
        }
    };
    let positions = move || {
        desk.rows.with(|rows| rows.rows.iter().map(|row| (rows.place, row.position)).collect::<Vec<_>>())
    };
    let has_older = Memo::new(move |_| desk.rows.with(|rows| rows.older.is_some()));
    let has_ended =
        Memo::new(move |_| desk.rows.with(|rows| rows.rows.iter().any(|row| row.view.state.is_terminal())));
    let foot = move || {
        (has_older.get() || (has_ended.get() && here.get() == Place::Browser)).then(|| {
            let older = has_older.get().then(|| {
                view! {
                    <button class="btn btn--quiet" type="button" on:click=move |_| service::read_older(state)>
                        "Show older"
                    </button>
                }
            });
            // The companion keeps what its tasks have left.
            let can_clear = has_ended.get() && here.get() == Place::Browser;
            let clear = can_clear.then(|| {
                let title = "Takes all ended tasks of this filter out of the list; it can be undone";
                view! {
                    <button class="btn btn--quiet" type="button" title=title on:click=move |_| service::clear(state)>
                        <Icon name="#i-trash"/>"Clear ended"
                    </button>
                }
            });
            view! { <div class="tasks__foot">{older}<span class="grow"></span>{clear}</div> }
        })
    };
    let lost = move || match (here.get(), state.machine.is_wanted.get()) {
        (Place::Browser, _) => ().into_any(),
        (Place::Machine, true) => arriving(move || companion::lost_view(state)),
        (Place::Machine, false) => view! {
            <div class="note">
                <Icon name="#i-alert"/>
                <h4>"No companion is connected"</h4>
                <p>"Its tasks are listed here once it is. "<a href=ENVIRONMENTS>"Connect to it"</a></p>
            </div>
        }
        .into_any(),
    };
    view! {
        <div class="panel__list">
            {places::switch(state, here)}
            {lost}
            <section class="tasks" aria-label="Your tasks">
                <div class="tasks__bar">
                    <fieldset class="seg">
                        <legend class="vh">"Which tasks are listed"</legend>
                        {FILTERS.map(filter).collect_view()}
                    </fieldset>
                </div>
                {none(desk)}
                <ul role="list">
                    <For each=positions key=|key| *key let((place, position))>{row(state, desk, place, position)}</For>
                </ul>
                {foot}
            </section>
        </div>
    }
    .into_any()
}

/// What stands in the place of tasks where there are none.
fn none(desk: Desk) -> impl IntoView {
    let what =
        Memo::new(move |_| desk.rows.with(|rows| (rows.filter, rows.rows.is_empty(), rows.refusal.clone())));
    move || match what.get() {
        (_, _, Some(refusal)) => view! { <RefusalNote refusal=refusal/> }.into_any(),
        (None, ..) => view! { <p class="tasks__none" role="status">"Opening the tasks…"</p> }.into_any(),
        (Some(filter), true, None) => {
            let (title, words) = match filter {
                Filter::All => (
                    "No tasks yet",
                    "A task is work that you hand over: it runs beside the page under a deadline, can be \
                     cancelled, and stays here with its answer and its history.",
                ),
                Filter::Active => (
                    "Nothing is at work",
                    "Tasks that wait or run are listed here, with what is left of their deadline.",
                ),
                Filter::Completed => (
                    "No task is completed",
                    "Completed means that the agent says so; its answer is kept with the task.",
                ),
                Filter::Unsuccessful => (
                    "No task has come to a bad end",
                    "Tasks that failed, were interrupted or were cancelled are listed here, each with its reason.",
                ),
            };
            view! { <div class="tasks__none"><p><b>{title}</b></p><p>{words}</p></div> }.into_any()
        }
        (Some(_), false, None) => ().into_any(),
    }
}

/// One task. The whole row is a link; the button that cancels lies above it.
fn row(state: State, desk: Desk, place: Place, position: u64) -> AnyView {
    let row = Memo::new(move |before: Option<&Option<Row>>| {
        let now = desk.rows.with(|rows| rows.at(position).filter(|_| rows.place == place).cloned());
        // A row that is about to go keeps what it shows.
        now.or_else(|| before.cloned().flatten())
    });
    let Some(first) = row.get_untracked() else { return ().into_any() };
    let address = first.view.address;
    let is_fresh = {
        let address = address.clone();
        Memo::new(move |_| desk.fresh.with(|fresh| fresh.as_ref() == Some(&address)))
    };
    let is_current = Memo::new(move |_| {
        let key = position.to_string();
        state.route.with(|route| route.place == place && route.task.as_ref() == Some(&key))
    });
    let created = words::moment(&first.view.created_at);
    let standing =
        Memo::new(move |_| row.with(|row| row.as_ref().map_or(TaskState::Queued, |row| row.view.state)));
    let age = move || text::age(state.now.get() - created);
    let line = move || row.with(|row| row.as_ref().map(|row| line(state, place, row)));
    let note = move || {
        let note = row.with(|row| {
            let row = row.as_ref().filter(|row| !row.view.state.is_terminal())?;
            row.view.progress.as_ref().map(|note| text::visible(note.as_bytes()))
        })?;
        Some(view! { <p class="task__note">{note}</p> })
    };
    let is_active = Memo::new(move |_| !standing.get().is_terminal());
    let cancel = ["Cancel ", &first.title].concat();
    let stop = move || {
        let address = address.clone();
        is_active.get().then(|| {
            view! {
                <button
                    class="btn btn--quiet task__stop"
                    type="button"
                    aria-label=cancel.clone()
                    on:click=move |_| service::cancel(state, address.clone())
                >
                    "Cancel"
                </button>
            }
        })
    };
    let ends_at = Memo::new(move |_| row.with(|row| row.as_ref()?.ends_at_ms));
    let bar = move || {
        let ends_at = ends_at.get()?;
        let left = move || (ends_at - state.now.get()).max(0.0);
        let max = first.bounds.deadline_ms.to_string();
        Some(view! { <progress class="task__bar" max=max prop:value=left aria-hidden="true"></progress> })
    };
    view! {
        <li class="task" data-task=move || standing.get().as_str() data-fresh=move || is_fresh.get()>
            <svg class="icon task__icon" aria-hidden="true">
                <use href=move || words::of_state(standing.get()).0></use>
            </svg>
            <a
                class="task__open"
                href=route::to_task(place, &position.to_string())
                title=first.title.clone()
                aria-current=move || is_current.get().then_some("true")
            >
                {first.title.clone()}
            </a>
            <span class="task__age">{age}</span>
            <p class="task__state">{line}</p>
            {note}
            {stop}
            {bar}
        </li>
    }
    .into_any()
}

/// `Running · hash · 21 s left`.
fn line(state: State, place: Place, row: &Row) -> AnyView {
    let view = &row.view;
    let ends_at = row.ends_at_ms;
    let left = ends_at.map(|ends_at| move || [" · ", &words::left(ends_at - state.now.get())].concat());
    let outcome = view.outcome.map(|outcome| [" · ", words::of_outcome(outcome)].concat());
    let reason = view.reason.clone().map(|reason| view! { " · "{words::reason(reason)} });
    let elsewhere = (!row.here && !view.state.is_terminal()).then_some(match place {
        Place::Browser => " · in another tab",
        Place::Machine => " · of an earlier start",
    });
    let stale = view.stale.then_some(" · not confirmed");
    let word = words::of_state(view.state).1;
    view! { <b>{word}</b>" · "{view.agent.clone()}{left}{outcome}{reason}{elsewhere}{stale} }.into_any()
}
