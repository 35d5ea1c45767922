//! What the page does with its tasks: opening, reading, delegating, cancelling, clearing.

use std::rc::Rc;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::core::task::TaskState;
use toolshelf_browser::tasks::{Delegation, Filter, Row, Tasks};

use super::desk::Desk;
use super::source::{TaskSource, source};
use crate::actions;
use crate::companion::News;
use crate::route::{self, Panel, Place};
use crate::state::{Call, Shelves, State, Undo};
use crate::text::counted;

/// Tasks that are read at a time.
pub(super) const PAGE: usize = 50;
/// How long a new row is marked.
const FRESH: Duration = Duration::from_millis(1_600);
/// How often ages, deadlines and notes move on.
const BEAT: Duration = Duration::from_secs(1);

/// Opens the tasks, once the shelf is open, and keeps the page in step with them.
pub(crate) fn open(state: State) {
    let desk = Desk::of(state);
    state.machine.on_news.set_value(Some(Rc::new(move |news| heard(state, news))));
    Effect::new(move || {
        // When the shelves were read, the shelf itself is there.
        let is_waiting = state.shelves.with(|shelves| matches!(shelves, Shelves::Opening));
        let Some(shelf) = state.service.get_value().filter(|_| !is_waiting) else { return };
        if desk.opened.get_value() {
            refresh(state);
            return;
        }
        desk.opened.set_value(true);
        spawn_local(async move {
            let tasks = Tasks::open(&shelf).await;
            tasks.on_change(move |address| changed(state, address));
            tasks.folders().on_change(move || {
                desk.folders_changed.update(|count| *count = count.wrapping_add(1));
                read_folders(state);
            });
            let here = tasks.environment();
            state.tasks.set_value(Some(tasks));
            // Whoever sees the environment finds the tasks open.
            state.environment.set(Some(here));
            set_interval(move || beat(state), BEAT);
            refresh(state);
        });
    });
}

/// Moves the clock on where ages are shown. The notes of what runs are told only by reading, and other tabs hear of
/// them from here, so they are read while anything runs, whichever panel is looked at.
fn beat(state: State) {
    let desk = Desk::of(state);
    let panel = state.route.with_untracked(|route| route.panel);
    if panel == Panel::Tasks {
        state.now.set(js_sys::Date::now());
    }
    let is_active = |row: &Row| !row.view.state.is_terminal();
    let runs_here =
        state.environment.with_untracked(|here| here.as_ref().is_some_and(|here| here.active > 0));
    if desk.place.get_value() == Place::Machine {
        // The companion tells of its tasks by itself; the other tabs still want to hear of this one's.
        if let Some(here) = source(state, Place::Browser).filter(|_| runs_here) {
            spawn_local(async move { drop(here.list(Filter::All, None, PAGE).await) });
        }
        return;
    }
    let last = desk.rows.with_untracked(|rows| {
        let newest = rows.rows.len().min(2 * PAGE);
        rows.rows[..newest].iter().rposition(is_active)
    });
    if runs_here || (last.is_some() && panel == Panel::Tasks) {
        read_rows(state, last.map_or(1, |last| last + 1));
    }
    let is_working = desk.detail.with_untracked(|shown| {
        shown.as_ref().is_some_and(|(_, found)| found.as_ref().is_ok_and(|found| is_active(&found.row)))
    });
    if is_working && panel == Panel::Tasks {
        read_detail(state);
    }
}

/// Does something with the tasks of this browser, once they are open.
pub(crate) fn with_tasks(state: State, act: impl AsyncFnOnce(Tasks) + 'static) {
    if let Some(tasks) = state.tasks.get_value() {
        spawn_local(async move { act(tasks).await });
    }
}

/// Reads everything that is shown.
fn refresh(state: State) {
    changed(state, None);
    read_folders(state);
}

/// Hears of the companion's tasks.
fn heard(state: State, news: News) {
    let desk = Desk::of(state);
    if desk.place.get_value() != Place::Machine {
        return;
    }
    let News::Task(view, is_news) = news else { return read_shown(state, None) };
    let is_known =
        desk.rows.with_untracked(|rows| rows.rows.iter().any(|row| row.view.address == view.address));
    if is_known {
        desk.rows.update(|rows| {
            let found = rows.rows.iter_mut().find(|row| row.view.address == view.address);
            found.into_iter().for_each(|row| row.view = (*view).clone());
        });
    }
    desk.detail.maybe_update(|shown| match shown {
        Some((_, Ok(detail))) if detail.row.view.address == view.address => {
            detail.row.view = (*view).clone();
            true
        }
        _ => false,
    });
    // A change has more to it than the view: a moment, an end of the time, a place in the list.
    if is_news || !is_known {
        read_shown(state, Some(&view.address));
    }
}

/// Means the tasks of another remote from now on, or the machine's own. What was read of others is not theirs.
pub(crate) fn aim(state: State, remote: Option<String>) {
    if state.machine.aim.get_untracked() == remote {
        return;
    }
    if let Some(host) = state.machine.host.get_value() {
        host.aim(remote.clone());
    }
    state.machine.aim.set(remote);
    let desk = Desk::of(state);
    desk.kept.update_value(|kept| {
        if kept.place == Place::Machine {
            *kept = super::desk::Rows::default();
        }
    });
    if desk.place.get_value() == Place::Machine {
        desk.rows.set(super::desk::Rows { place: Place::Machine, ..Default::default() });
        desk.detail.set(None);
        read_shown(state, None);
    }
}

/// A task of this browser has changed, or many have.
fn changed(state: State, address: Option<&str>) {
    read_environment(state);
    if Desk::of(state).place.get_value() == Place::Browser {
        read_shown(state, address);
    }
}

/// Reads the list again, and the task that is shown if it is the one at that address.
fn read_shown(state: State, address: Option<&str>) {
    // Nobody looks at the list, and it is read again when somebody does.
    if state.route.with_untracked(|route| route.panel != Panel::Tasks) {
        return;
    }
    let desk = Desk::of(state);
    read_rows(state, desk.shown());
    let is_shown = desk.detail.with_untracked(|shown| match shown {
        Some((_, Ok(detail))) => address.is_none_or(|address| address == detail.row.view.address),
        Some((_, Err(_))) | None => true,
    });
    if is_shown {
        read_detail(state);
    }
}

fn read_environment(state: State) {
    let here = state.tasks.with_value(|tasks| tasks.as_ref().map(Tasks::environment));
    if state.environment.with_untracked(|before| *before != here) {
        state.environment.set(here);
    }
}

/// Reads the folders again.
pub(crate) fn read_folders(state: State) {
    with_tasks(state, async move |tasks| {
        Desk::of(state).folders.set(Some(tasks.folders().list().await));
    });
}

/// Lists the tasks of a place from now on.
pub(super) fn show(state: State, place: Place) {
    let desk = Desk::of(state);
    desk.show(place);
    read_rows(state, desk.shown());
}

/// Reads at least the newest `count` tasks again. While that goes on, further calls become one more reading.
pub(super) fn read_rows(state: State, count: usize) {
    let desk = Desk::of(state);
    let place = desk.place.get_value();
    let count = count.max(1).next_multiple_of(PAGE);
    let reading = desk.reading[place as usize];
    let (is_reading, more) = reading.get_value();
    let Some(source) = source(state, place).filter(|_| !is_reading) else {
        reading.set_value((is_reading, more.max(count)));
        return;
    };
    reading.set_value((true, 0));
    spawn_local(async move {
        let mut count = count;
        while count > 0 {
            let filter = desk.filter.get_untracked();
            let page = source.list(filter, None, count).await;
            if (place, filter) == (desk.place.get_value(), desk.filter.get_untracked()) {
                let now = desk.rows.with_untracked(|rows| match page {
                    Ok(page) => rows.after(place, filter, page),
                    Err(refusal) => rows.failed(place, filter, refusal),
                });
                // Most readings find what was known.
                if desk.rows.with_untracked(|before| *before != now) {
                    desk.rows.set(now);
                }
            }
            count = reading.get_value().1;
            reading.set_value((count > 0, 0));
        }
    });
}

/// Does something with whoever has the tasks that are listed.
fn with_source(state: State, act: impl AsyncFnOnce(Rc<dyn TaskSource>) + 'static) {
    if let Some(source) = source(state, Desk::of(state).place.get_value()) {
        spawn_local(async move { act(source).await });
    }
}

/// Reads older tasks than those that are shown.
pub(super) fn read_older(state: State) {
    let desk = Desk::of(state);
    let (place, filter) = (desk.place.get_value(), desk.filter.get_untracked());
    let Some(before) = desk.rows.with_untracked(|rows| rows.older) else { return };
    with_source(state, async move |source| match source.list(filter, Some(before), PAGE).await {
        Ok(page) => desk.rows.update(|rows| {
            // Other tasks were chosen, or the same page was asked for twice.
            if (rows.place, rows.filter, rows.older) == (place, Some(filter), Some(before)) {
                rows.rows.extend(page.rows);
                rows.older = page.next;
            }
        }),
        Err(refusal) => actions::failed(state, &refusal),
    });
}

/// Reads the task that the address names.
pub(super) fn read_detail(state: State) {
    let desk = Desk::of(state);
    let named =
        move || state.route.with_untracked(|route| Some(route::to_task(route.place, route.task.as_ref()?)));
    let Some(address) = named() else {
        desk.detail.set(None);
        return;
    };
    let position = address.rsplit('/').next().and_then(|task| task.parse().ok());
    with_source(state, async move |source| {
        let found = match position {
            Some(position) => source.detail(position).await,
            None => Err(Refusal::new(Code::TaskNotFound, "a task's address on this page ends in its number")),
        };
        let is_shown =
            desk.detail.with_untracked(|shown| matches!(shown, Some((shown, Ok(_))) if *shown == address));
        // What was read of it before stays where only nobody answers.
        if is_shown && found.as_ref().is_err_and(|refusal| refusal.code == Code::MachineUnreachable) {
            return;
        }
        let now = Some((address, found));
        let is_news = desk.detail.with_untracked(|before| *before != now);
        if is_news && named() == now.as_ref().map(|(address, _)| address.clone()) {
            desk.detail.set(now);
        }
    });
}

/// Delegates a task to the place whose tasks are listed.
pub(super) fn delegate(state: State, delegation: Delegation) {
    let desk = Desk::of(state);
    let Some(source) = source(state, desk.place.get_value()) else { return };
    desk.form.sending.set(true);
    desk.form.refusal.set(None);
    // The same words are told again only after others.
    state.announce("");
    spawn_local(async move {
        let agent = delegation.agent.clone();
        let delegated = source.delegate(delegation).await;
        desk.form.sending.set(false);
        match delegated {
            Ok(view) => {
                // A new task is seen, whatever was looked at before.
                if !desk.filter.get_untracked().admits(view.state) {
                    desk.filter.set(Filter::All);
                }
                desk.fresh.set(Some(view.address));
                set_timeout(move || desk.fresh.set(None), FRESH);
                state.announce(["Delegated to ", &agent].concat());
                read_environment(state);
                read_rows(state, 1);
            }
            Err(refusal) => {
                state.announce(["Not delegated: ", &refusal.why].concat());
                desk.form.refusal.set(Some(refusal));
            }
        }
    });
}

/// Asks a task to stop.
pub(super) fn cancel(state: State, address: String) {
    with_source(state, async move |source| {
        match source.cancel(&address).await {
            Ok((TaskState::Cancelled, _)) => state.announce("Cancelled"),
            Ok((_, true)) => state.announce("It had ended before it was asked to stop"),
            Ok((_, false)) => state.announce("It was asked to stop, and was not seen to"),
            Err(refusal) => actions::failed(state, &refusal),
        }
        read_environment(state);
        read_shown(state, Some(&address));
    });
}

/// Takes the ended tasks that the filter admits out of the journal, with a way back.
pub(super) fn clear(state: State) {
    let filter = Desk::of(state).filter.get_untracked();
    with_tasks(state, async move |tasks| match tasks.clear(filter).await {
        Ok(cleared) if cleared.is_empty() => state.announce("No task of these has ended"),
        Ok(cleared) => {
            let count = counted(cleared.len() as u64, "ended task", "ended tasks");
            let back = move || {
                let cleared = cleared.clone();
                with_tasks(state, async move |tasks| {
                    match tasks.restore(cleared).await {
                        Ok(()) => state.announce("Undone"),
                        Err(refusal) => actions::failed(state, &refusal),
                    }
                    changed(state, None);
                });
            };
            actions::toast(state, "Cleared", count, Some(Undo::Call(Call(Rc::new(back)))));
            changed(state, None);
        }
        Err(refusal) => actions::failed(state, &refusal),
    });
}
