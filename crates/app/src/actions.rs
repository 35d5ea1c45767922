//! What the page does: reading, running, adding, removing, undoing.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, LocalBoxFuture, abortable};
use leptos::prelude::*;
use leptos::task::spawn_local;
use toolshelf_browser::core::Abi;
use toolshelf_browser::core::abi::Input;
use toolshelf_browser::core::call::Answer;
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::{CallEvent, PickedFile, Toolshelf, pick};

use crate::history::Call;
use crate::route::{self, Place};
use crate::state::{End, Field, Form, Outcome, Running, Shelves, State, Toast, Undo, Verdicts, tool_key};
use crate::{companion, console, text};

/// How long a changed latency is marked.
const FRESH: Duration = Duration::from_millis(900);
/// How often the time of a run moves on.
const BEAT: Duration = Duration::from_millis(100);
/// How long a message stays, unless a person is about to use it.
const TOAST: Duration = Duration::from_secs(20);
/// Most messages at a time.
const MAX_TOASTS: usize = 3;

/// Opens the shelf and keeps the page in step with it.
pub(crate) fn start(state: State) {
    follow_address(state);
    follow_visibility(state);
    state.now.set(js_sys::Date::now());
    set_interval(
        move || {
            // Only ages change with the clock, and without calls there are none.
            if state.histories.with_untracked(|histories| !histories.is_empty()) {
                state.now.set(js_sys::Date::now());
            }
        },
        Duration::from_secs(1),
    );
    spawn_local(async move {
        let shelf = Toolshelf::open().await;
        state.persistent.set(shelf.persistent());
        shelf.on_call(move |event| note_call(state, event));
        shelf.on_change(move || reload(state));
        console::install(shelf.clone());
        state.service.set_value(Some(shelf));
        reload(state);
    });
}

fn follow_address(state: State) {
    let read = move || {
        companion::take_token(state);
        route::parse(&window().location().hash().unwrap_or_default())
    };
    state.route.set(read());
    companion::start(state);
    window_event_listener(leptos::ev::hashchange, move |_| state.route.set(read()));
}

/// Another tab may have changed the shelves while this one was not looked at.
fn follow_visibility(state: State) {
    window_event_listener_untyped("visibilitychange", move |_| {
        if !document().hidden() {
            reload(state);
        }
    });
}

/// Reads the shelves again.
pub(crate) fn reload(state: State) {
    with_shelf(state, async move |shelf| {
        state.shelves.set(match shelf.read().await {
            Ok(readings) => Shelves::Read(readings),
            Err(refusal) => Shelves::Failed(refusal),
        });
    });
}

/// Does something with the shelf, once it is open.
fn with_shelf(state: State, act: impl AsyncFnOnce(Toolshelf) + 'static) {
    if let Some(shelf) = state.service.get_value() {
        spawn_local(async move { act(shelf).await });
    }
}

fn note_call(state: State, event: &CallEvent) {
    let timing = event.result.as_ref().ok().copied();
    let (at_ms, duration_ms) = (event.at_ms, event.duration_ms);
    note(
        state,
        event.tool.clone(),
        Call { at_ms, duration_ms, ok: timing.is_some(), timing, from: event.from },
    );
    // What a call finds out about a stored module holds for the list as well.
    let is_about_module =
        |refusal: &Refusal| matches!(refusal.code, Code::DigestMismatch | Code::WasmUnreadable);
    if event.result.as_ref().is_err_and(is_about_module) {
        reload(state);
    }
}

/// Remembers how a call has ended.
pub(crate) fn note(state: State, key: String, call: Call) {
    state.now.set(js_sys::Date::now());
    state.histories.update(|histories| histories.entry(key.clone()).or_default().push(call));
    state.fresh.set(Some(key));
    set_timeout(move || state.fresh.set(None), FRESH);
}

/// Runs a tool with what is in its form.
pub(crate) fn run(state: State, place: Place, id: &str, abi: Abi, form: &Form) {
    let key = tool_key(place, id);
    let inputs = abi.layout().inputs;
    let given: Option<Vec<_>> = form.fields.iter().map(|field| field.with_untracked(Field::bytes)).collect();
    let Some(given) = given.filter(|_| !state.is_running(&key)) else { return };
    let fits = |(input, bytes): (&Input, &Arc<[u8]>)| input.check_size(bytes.len() as u64).is_ok();
    if !inputs.iter().zip(&given).all(fits) {
        return;
    }

    let arguments =
        inputs.iter().zip(&given).map(|(input, bytes)| (input.arguments[0].to_owned(), bytes.to_vec()));
    let Some(call) = call(state, place, id.to_owned(), arguments.collect()) else { return };
    let (call, stop) = abortable(call);
    let since = begin(state, &key, stop);

    let (id, outcome) = (id.to_owned(), form.outcome.clone());
    spawn_local(async move {
        let end = match call.await {
            Ok(Ok(answer)) => End::Answered(answer),
            Ok(Err(refusal)) => End::Refused(refusal),
            Err(_) => End::Stopped(js_sys::Date::now() - since),
        };
        ended(state, &key);
        state.announce(spoken(&id, &end));
        outcome.set(Some(Arc::new(Outcome { end, inputs: given })));
    });
}

/// Remembers a run that begins, and answers when that is. `stop` ends it.
pub(crate) fn begin(state: State, key: &str, stop: AbortHandle) -> f64 {
    let since = js_sys::Date::now();
    state.running.update(|running| running.push(Running { key: key.to_owned(), since, stop }));
    state.announce("");
    // A clock that runs already serves this run too.
    if state.running.with_untracked(|running| running.len() == 1) {
        beat(state);
    }
    since
}

/// Forgets a run that has ended.
pub(crate) fn ended(state: State, key: &str) {
    state.running.update(|running| running.retain(|run| run.key != key));
}

/// A call, here or at the companion; nothing where that is not there yet.
fn call(
    state: State,
    place: Place,
    id: String,
    arguments: Vec<(String, Vec<u8>)>,
) -> Option<LocalBoxFuture<'static, Result<Answer, Refusal>>> {
    Some(match place {
        Place::Browser => {
            let shelf = state.service.get_value()?;
            Box::pin(async move { shelf.call(&id, arguments).await })
        }
        Place::Machine => {
            let host = state.machine.host.get_value()?;
            Box::pin(async move { host.call(&id, arguments).await })
        }
    })
}

fn spoken(id: &str, end: &End) -> String {
    let (what, detail) = match end {
        End::Answered(Answer { duration_ms, .. }) => (" has answered after ", text::millis(*duration_ms)),
        End::Refused(refusal) => (" was refused: ", refusal.to_string()),
        End::Stopped(_) => (" was stopped", String::new()),
    };
    [id, what, &detail].concat()
}

/// Moves the fast clock on while something runs.
fn beat(state: State) {
    state.beat.set(js_sys::Date::now());
    if state.running.with_untracked(|running| !running.is_empty()) {
        set_timeout(move || beat(state), BEAT);
    }
}

/// Ends a run.
pub(crate) fn stop(state: State, key: &str) {
    state.running.with_untracked(|running| {
        running.iter().filter(|run| run.key == key).for_each(|run| run.stop.abort());
    });
}

/// Puts a file into a field. Its size is checked before anything is read.
pub(crate) fn fill(state: State, field: ArcRwSignal<Field>, input: &Input, file: web_sys::File) {
    let (name, size) = (file.name(), file.size() as u64);
    if input.check_size(size).is_err() {
        field.set(Field::File { name, size, bytes: None });
        return;
    }
    spawn_local(async move {
        match pick::read(&file).await {
            Ok(bytes) => field.set(Field::File { name, size: bytes.len() as u64, bytes: Some(bytes.into()) }),
            Err(refusal) => state.announce(refusal.why),
        }
    });
}

/// Adds the shelf in the files that were picked or dropped.
pub(crate) fn add(state: State, files: Vec<PickedFile>) {
    if files.is_empty() {
        return;
    }
    state.adding.set(true);
    with_shelf(state, async move |shelf| {
        let added = shelf.add(files).await;
        state.adding.set(false);
        match added {
            Ok(added) => {
                if added.stored > 0 {
                    let undo = match &added.replaced {
                        Some(before) => Undo::Restore(before.clone()),
                        None => Undo::Remove(added.key.clone()),
                    };
                    let verb = if added.replaced.is_some() { "Replaced" } else { "Added" };
                    toast(state, verb, added.name.clone(), Some(undo));
                }
                state.verdicts.set(Some(Verdicts::Read(added)));
            }
            Err(refusal) => state.verdicts.set(Some(Verdicts::Refused(refusal))),
        }
    });
}

/// Removes a shelf.
pub(crate) fn remove(state: State, key: String) {
    with_shelf(state, async move |shelf| match shelf.remove(&key).await {
        Ok(removed) => toast(state, "Removed", removed.name.clone(), Some(Undo::Restore(removed))),
        Err(refusal) => failed(state, &refusal),
    });
}

/// Undoes what a message tells of.
pub(crate) fn undo(state: State, id: u64) {
    let undo = state.toasts.with_untracked(|toasts| toasts.iter().find(|toast| toast.id == id)?.undo.clone());
    dismiss(state, id);
    let Some(undo) = undo else { return };
    if let Undo::Call(call) = undo {
        (call.0)();
        return;
    }
    state.verdicts.set(None);
    with_shelf(state, async move |shelf| {
        let undone = match undo {
            Undo::Remove(key) => shelf.remove(&key).await.map(drop),
            Undo::Restore(removed) => shelf.restore(removed).await,
            Undo::Call(_) => return,
        };
        match undone {
            Ok(()) => state.announce("Undone"),
            Err(refusal) => failed(state, &refusal),
        }
    });
}

/// Writes the files of the built-in shelf anew.
pub(crate) fn restore_builtin(state: State) {
    with_shelf(state, async move |shelf| match shelf.reset_builtin().await {
        Ok(()) => toast(state, "Restored", "the built-in tools".to_owned(), None),
        Err(refusal) => failed(state, &refusal),
    });
}

/// Says that something was not done.
pub(crate) fn failed(state: State, refusal: &Refusal) {
    toast(state, "Not done:", refusal.to_string(), None);
}

/// Shows a message at the foot of the page.
pub(crate) fn toast(state: State, verb: &'static str, name: String, undo: Option<Undo>) {
    let id = js_sys::Date::now() as u64;
    state.toasts.update(|toasts| {
        // What was done to a shelf before cannot be undone any more once something else was done to it.
        toasts.retain(|toast| toast.name != name || matches!(toast.undo, Some(Undo::Call(_))));
        toasts.push(Toast { id, verb, name, undo });
        let surplus = toasts.len().saturating_sub(MAX_TOASTS);
        toasts.drain(..surplus);
    });
    expire(state, id);
}

/// Takes a message away when its time is over; one that is pointed at or focused gets more time.
fn expire(state: State, id: u64) {
    set_timeout(
        move || {
            let used =
                document().query_selector(".toasts :is(:hover, :focus-visible)").ok().flatten().is_some();
            if used { expire(state, id) } else { dismiss(state, id) }
        },
        TOAST,
    );
}

/// Takes a message away.
pub(crate) fn dismiss(state: State, id: u64) {
    state.toasts.update(|toasts| toasts.retain(|toast| toast.id != id));
}
