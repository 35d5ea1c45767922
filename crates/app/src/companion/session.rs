//! The connection, and what is heard over it.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use leptos::prelude::*;
use leptos::task::spawn_local;
use toolshelf_browser::companion::{Client, Companion, Connection, Heard, Remotes};
use toolshelf_browser::core::call::Answer;
use toolshelf_browser::core::live::{CallNotice, CallOrigin};
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::core::task::{TaskState, TaskView};
use toolshelf_browser::tasks::{Delegation, Detail, Filter, Page};

use super::{Machine, News};
use crate::actions;
use crate::history::Call;
use crate::route::Place;
use crate::state::{State, tool_key};
use crate::tasks::TaskSource;

/// So long a call of this page may take, in milliseconds, with all that waits before it.
const LONGEST_CALL_MS: f64 = 60_000.0;
/// So long after a call was answered the live session may still tell of it, in milliseconds.
const TOLD_WITHIN_MS: f64 = 2_000.0;

/// The companion, and the page that it tells of everything.
struct Session {
    companion: Companion,
    state: State,
}

/// Connects with a token.
pub(super) fn open(state: State, token: &str) {
    let origin = window().location().origin().unwrap_or_default();
    let companion = Companion::connect(&origin, token, move |heard| hear(state, heard));
    let host: Rc<dyn Machine> = Rc::new(Session { companion, state });
    // The compiler must not know whose object it is: it would write that into what every visitor loads, and all that
    // the object can do would go there with it.
    state.machine.host.set_value(Some(std::hint::black_box(host)));
}

/// Gets a token for a one-time code.
pub(super) async fn take_code(code: String) -> Result<String, Refusal> {
    let origin = window().location().origin().unwrap_or_default();
    // Nobody has a token yet, and none is asked for.
    Client::new(&origin, "").pair(&code).await
}

fn hear(state: State, heard: Heard) {
    let link = state.machine;
    match heard {
        Heard::Connection(now) => {
            tell(state, &now);
            let is_open = now == Connection::Connected;
            link.connection.set(now);
            if is_open && let Some(host) = link.host.get_value() {
                spawn_local(async move {
                    // A page that was paired itself may not ask, and has none.
                    if let Ok(remotes) = host.remotes().list().await {
                        link.remotes.set(remotes);
                    }
                });
            }
        }
        Heard::Environment(Ok(environment)) => {
            link.unreadable.set(None);
            if link.environment.with_untracked(|before| before.as_ref() != Some(&environment)) {
                link.environment.set(Some(environment));
            }
        }
        // That there is no answer is seen by the live session too.
        Heard::Environment(Err(refusal)) => {
            link.unreadable.set(Some(refusal).filter(|refusal| refusal.code != Code::MachineUnreachable));
        }
        Heard::Shelves(Err(refusal))
            if refusal.code == Code::MachineUnreachable && link.shelves.with_untracked(Option::is_some) => {}
        Heard::Shelves(shelves) => link.shelves.set(Some(shelves)),
        Heard::Calls(calls) => calls.into_iter().for_each(|call| note(state, call)),
        Heard::Task(task, is_news) => news(state, News::Task(task, is_news)),
        Heard::ManyTasks => news(state, News::Many),
    }
}

fn news(state: State, news: News) {
    if let Some(on_news) = state.machine.on_news.get_value() {
        on_news(news);
    }
}

/// Tells a screen reader of a connection that comes or goes, and not of each try.
fn tell(state: State, now: &Connection) {
    let before = state.machine.connection.get_untracked();
    let is_lost = matches!(before, Connection::Waiting { .. });
    match now {
        Connection::Connected => state.announce("Connected to the companion"),
        Connection::Refused(refusal) => state.announce(["The companion refused: ", &refusal.why].concat()),
        Connection::Waiting { .. }
            if !is_lost && state.machine.environment.with_untracked(Option::is_some) =>
        {
            state.announce("The connection to the companion is lost; it is tried again");
        }
        Connection::Waiting { .. } | Connection::Connecting | Connection::Off => {}
    }
}

/// Remembers a call that the live session told of. Calls over HTTP of a tool that this page has just called are taken
/// for its own.
fn note(state: State, notice: CallNotice) {
    let CallNotice { name, ok, duration_ms, from, .. } = notice;
    let at_ms = js_sys::Date::now();
    let is_own = from == CallOrigin::Http
        && state.machine.own_calls.try_update_value(|calls| {
            calls.retain(|(_, until)| at_ms < *until);
            let own = calls.iter().position(|(tool, _)| *tool == name);
            own.map(|own| calls.swap_remove(own)).is_some()
        }) == Some(true);
    let from = (!is_own).then_some(from);
    let call = Call { at_ms, duration_ms, ok, timing: None, from };
    actions::note(state, tool_key(Place::Machine, &name), call);
}

impl Session {
    /// Calls a tool. The live session tells of the call about when its answer comes, a little earlier or later.
    async fn call_own(&self, id: &str, arguments: Vec<(String, Vec<u8>)>) -> Result<Answer, Refusal> {
        let own_calls = self.state.machine.own_calls;
        let until = js_sys::Date::now() + LONGEST_CALL_MS;
        own_calls.update_value(|calls| calls.push((id.to_owned(), until)));
        let result = self.companion.call(id, arguments).await;
        let soon = js_sys::Date::now() + TOLD_WITHIN_MS;
        own_calls.update_value(|calls| {
            if let Some(own) = calls.iter_mut().find(|(tool, wait)| tool == id && *wait == until) {
                own.1 = soon;
            }
        });
        // Only the answer says where the time went.
        if let Ok(Answer { timing, .. }) = &result {
            self.state.histories.update(|histories| {
                if let Some(history) = histories.get_mut(&tool_key(Place::Machine, id)) {
                    history.explain(*timing);
                }
            });
        }
        result
    }
}

impl Machine for Session {
    fn call<'a>(
        &'a self,
        id: &'a str,
        arguments: Vec<(String, Vec<u8>)>,
    ) -> LocalBoxFuture<'a, Result<Answer, Refusal>> {
        Box::pin(self.call_own(id, arguments))
    }

    fn retry(&self) {
        self.companion.retry();
    }

    fn client(&self) -> Client {
        self.companion.client().clone()
    }

    fn remotes(&self) -> Remotes {
        self.companion.remotes()
    }

    fn aim(&self, remote: Option<String>) {
        self.companion.tasks().aim(remote);
    }
}

impl TaskSource for Session {
    fn list(
        &self,
        filter: Filter,
        before: Option<u64>,
        limit: usize,
    ) -> LocalBoxFuture<'_, Result<Page, Refusal>> {
        Box::pin(self.companion.tasks().list(filter, before, limit))
    }

    fn detail(&self, position: u64) -> LocalBoxFuture<'_, Result<Detail, Refusal>> {
        Box::pin(self.companion.tasks().detail(position))
    }

    fn delegate(&self, delegation: Delegation) -> LocalBoxFuture<'_, Result<TaskView, Refusal>> {
        Box::pin(self.companion.tasks().delegate(delegation))
    }

    fn cancel<'a>(&'a self, address: &'a str) -> LocalBoxFuture<'a, Result<(TaskState, bool), Refusal>> {
        Box::pin(self.companion.tasks().cancel(address))
    }
}
