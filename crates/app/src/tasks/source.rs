//! Whose tasks are looked at: those of this browser, or those of the companion.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use leptos::prelude::*;
use toolshelf_browser::core::refusal::Refusal;
use toolshelf_browser::core::task::{TaskState, TaskView};
use toolshelf_browser::tasks::{Delegation, Detail, Filter, Page, Tasks};

use crate::route::Place;
use crate::state::State;

/// What the panel asks of whoever has the tasks. An object, so that each host's part of the program is fetched only
/// where that host is there.
pub(crate) trait TaskSource {
    /// Some tasks, the newest first.
    fn list(
        &self,
        filter: Filter,
        before: Option<u64>,
        limit: usize,
    ) -> LocalBoxFuture<'_, Result<Page, Refusal>>;
    /// All that is known of one task.
    fn detail(&self, position: u64) -> LocalBoxFuture<'_, Result<Detail, Refusal>>;
    /// Delegates a task.
    fn delegate(&self, delegation: Delegation) -> LocalBoxFuture<'_, Result<TaskView, Refusal>>;
    /// Asks a task to stop; answers its state, and whether it was seen to end.
    fn cancel<'a>(&'a self, address: &'a str) -> LocalBoxFuture<'a, Result<(TaskState, bool), Refusal>>;
}

impl TaskSource for Tasks {
    fn list(
        &self,
        filter: Filter,
        before: Option<u64>,
        limit: usize,
    ) -> LocalBoxFuture<'_, Result<Page, Refusal>> {
        Box::pin(async move {
            let page = self.list(filter, before, limit).await;
            if let Ok(page) = &page {
                self.tell_progress(&page.rows);
            }
            page
        })
    }

    fn detail(&self, position: u64) -> LocalBoxFuture<'_, Result<Detail, Refusal>> {
        Box::pin(self.detail(position))
    }

    fn delegate(&self, delegation: Delegation) -> LocalBoxFuture<'_, Result<TaskView, Refusal>> {
        Box::pin(self.delegate(delegation))
    }

    fn cancel<'a>(&'a self, address: &'a str) -> LocalBoxFuture<'a, Result<(TaskState, bool), Refusal>> {
        Box::pin(self.cancel(address))
    }
}

/// Whoever has the tasks of a place, once they are there.
pub(super) fn source(state: State, place: Place) -> Option<Rc<dyn TaskSource>> {
    match place {
        Place::Browser => Some(Rc::new(state.tasks.get_value()?)),
        Place::Machine => Some(state.machine.host.get_value()?),
    }
}
