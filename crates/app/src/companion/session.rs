//! The connection, and what is heard over it.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use leptos::prelude::*;
use toolshelf_browser::companion::{Companion, Connection, Heard};
use toolshelf_browser::core::call::Answer;
use toolshelf_browser::core::live::{CallNotice, CallOrigin};
use toolshelf_browser::core::refusal::{Code, Refusal};
use toolshelf_browser::core::task::{TaskState, TaskView};
use toolshelf_browser::tasks::{Delegation, Detail, Filter, Page};

use super::{Machine, News, OwnCall};
use crate::actions;
use crate::history::Call;
use crate::route::Place;
use crate::state::{State, tool_key};
use crate::tasks::TaskSource;

/// Most of the page's own calls that the live session may still tell of.
const MAX_OWN_CALLS: usize = 32;

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

fn hear(state: State, heard: Heard) {
    let link = state.machine;
    match heard {
        Heard::Connection(now) => {
            tell(state, &now);
            link.connection.set(now);
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
        Connection::Waiting { .. } if !is_lost && state.machine.environment.with_untracked(Option::is_some) => {
            state.announce("The connection to the companion is lost; it is tried again");
        }
        Connection::Waiting { .. } | Connection::Connecting | Connection::Off => {}
    }
}

/// Remembers a call that the live session told of.
fn note(state: State, notice: CallNotice) {
    let CallNotice { name, ok, duration_ms, from, why, .. } = notice;
    let is_it = |own: &OwnCall| {
        own.tool == name
            && match &own.end {
                Ok(ms) => ok && *ms == duration_ms,
                Err(said) => !ok && why.as_ref() == Some(said),
            }
    };
    let own = state.machine.own_calls.try_update_value(|calls| {
        let at = calls.iter().position(is_it)?;
        Some(calls.remove(at))
    });
    let own = own.flatten();
    let call = Call {
        at_ms: js_sys::Date::now(),
        duration_ms,
        ok,
        timing: own.as_ref().and_then(|own| own.timing),
        from: own.is_none().then_some(from),
    };
    actions::note(state, tool_key(Place::Machine, &name), call);
}

/// Marks a call that this page made as its own. The live session may have told of it already, or tells of it soon.
fn mark(state: State, id: &str, result: &Result<Answer, Refusal>) {
    let own = match result {
        // Nobody else has seen this one.
        Err(refusal) if refusal.code == Code::MachineUnreachable => return,
        Err(refusal) => OwnCall { tool: id.to_owned(), end: Err(refusal.why.clone()), timing: None },
        Ok(Answer { duration_ms, timing, .. }) => {
            OwnCall { tool: id.to_owned(), end: Ok(*duration_ms), timing: Some(*timing) }
        }
    };
    let is_it = |call: &Call| {
        call.from == Some(CallOrigin::Http)
            && match own.end {
                Ok(ms) => call.ok && call.duration_ms == ms,
                Err(_) => !call.ok,
            }
    };
    let key = tool_key(Place::Machine, id);
    let is_told = state.histories.try_update(|histories| {
        histories.get_mut(&key).is_some_and(|history| history.own(own.timing, is_it))
    });
    if is_told != Some(true) {
        state.machine.own_calls.update_value(|calls| {
            let surplus = (calls.len() + 1).saturating_sub(MAX_OWN_CALLS);
            calls.drain(..surplus);
            calls.push(own);
        });
    }
}

impl Machine for Session {
    fn call<'a>(
        &'a self,
        id: &'a str,
        arguments: Vec<(String, Vec<u8>)>,
    ) -> LocalBoxFuture<'a, Result<Answer, Refusal>> {
        Box::pin(async move {
            let result = self.companion.call(id, arguments).await;
            mark(self.state, id, &result);
            result
        })
    }

    fn retry(&self) {
        self.companion.retry();
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
