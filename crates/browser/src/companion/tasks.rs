//! The tasks of the companion, with the methods that the page knows from the tasks of its own tab.

use std::cell::RefCell;
use std::rc::Rc;

use gloo_timers::future::TimeoutFuture;
use serde_json::{Map, Value, json};
use toolshelf_core::RootDescriptor;
use toolshelf_core::digest::to_hex;
use toolshelf_core::live::MachineEnvironment;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::{TaskState, TaskView};

use super::client::{Client, known};
use super::wire;
use crate::tasks::sealer::random_bytes;
use crate::tasks::{Delegation, Detail, Filter, Page};

/// Most tasks that are asked for in one request.
const BATCH: usize = 100;
/// Pauses before a delegation whose answer was lost is sent again, in milliseconds.
const RETRIES_MS: [u32; 3] = [300, 1_000, 3_000];

/// A delegation whose answer was lost, and its call id.
type Unanswered = RefCell<Option<(Delegation, String)>>;

/// The tasks of the companion. Clones share them.
#[derive(Debug, Clone)]
pub struct MachineTasks {
    client: Client,
    environment: Rc<RefCell<Option<MachineEnvironment>>>,
    unanswered: Rc<Unanswered>,
    /// The key of the remote whose tasks are meant; nothing for the companion's own.
    aim: Rc<RefCell<Option<String>>>,
}

impl MachineTasks {
    pub(super) fn new(client: Client) -> Self {
        Self { client, environment: Rc::default(), unanswered: Rc::default(), aim: Rc::default() }
    }

    /// The environment that the companion is, once it has said so.
    #[must_use]
    pub fn environment(&self) -> Option<MachineEnvironment> {
        self.environment.borrow().clone()
    }

    /// From now on the tasks of that remote are meant, or the companion's own.
    pub fn aim(&self, remote: Option<String>) {
        self.aim.replace(remote);
        self.unanswered.take();
    }

    fn aimed(&self) -> Option<String> {
        self.aim.borrow().clone()
    }

    pub(super) async fn read_environment(&self) -> Result<MachineEnvironment, Refusal> {
        let answer = self.client.get("/v1/environment").await?;
        let environment = known(wire::field(&answer, "environment").and_then(wire::environment))?;
        self.environment.replace(Some(environment.clone()));
        Ok(environment)
    }

    /// Delegates a task. While no answer comes, the same call is made again: the companion knows it by its id.
    ///
    /// # Errors
    /// Each refusal of `delegate_task`, and [`Code::MachineUnreachable`]. The same delegation may be made again after
    /// that; it then becomes the same task.
    pub async fn delegate(&self, delegation: Delegation) -> Result<TaskView, Refusal> {
        let before = self.unanswered.take().filter(|(before, _)| *before == delegation);
        let call_id = before.map_or_else(|| to_hex(&random_bytes()), |(_, call_id)| call_id);
        let body = call(&delegation, &call_id, self.aimed());
        let mut pauses = RETRIES_MS.into_iter();
        loop {
            match self.client.post("/v1/tasks", &body).await {
                Ok(answer) => return known(wire::field(&answer, "task").and_then(wire::view)),
                Err(refusal) if refusal.code == Code::MachineUnreachable => match pauses.next() {
                    Some(pause) => TimeoutFuture::new(pause).await,
                    None => {
                        self.unanswered.replace(Some((delegation, call_id)));
                        return Err(refusal);
                    }
                },
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Asks a task to stop; answers its state, and whether it was seen to end.
    ///
    /// # Errors
    /// Each refusal of `cancel_task`, and [`Code::MachineUnreachable`].
    pub async fn cancel(&self, address: &str) -> Result<(TaskState, bool), Refusal> {
        let answer = self.client.post("/v1/tasks/cancel", &json!({ "address": address })).await?;
        Ok((known(wire::state(&answer))?, known(wire::flag(&answer, "observed"))?))
    }

    /// Some tasks, the newest first, from `before` on downwards.
    ///
    /// # Errors
    /// [`Code::TaskAuditUnavailable`] when the journal cannot be read, and [`Code::MachineUnreachable`].
    pub async fn list(&self, filter: Filter, before: Option<u64>, limit: usize) -> Result<Page, Refusal> {
        let aim = self.aimed();
        let mut page = Page { rows: Vec::new(), next: before };
        while page.rows.len() < limit {
            let limit = (limit - page.rows.len()).min(BATCH);
            let path = list_path(filter, page.next, limit, aim.as_deref());
            let more = known(wire::page(&self.client.get(&path).await?))?;
            page.rows.extend(more.rows);
            // A list that does not go down would have no end.
            let goes_on = more.next.filter(|next| page.next.is_none_or(|before| *next < before));
            page.next = goes_on;
            if goes_on.is_none() {
                break;
            }
        }
        Ok(page)
    }

    /// All that is known of one task.
    ///
    /// # Errors
    /// [`Code::TaskNotFound`], [`Code::TaskAuditUnavailable`] and [`Code::MachineUnreachable`].
    pub async fn detail(&self, position: u64) -> Result<Detail, Refusal> {
        let mut path = ["/v1/tasks/", &position.to_string()].concat();
        if let Some(aim) = self.aimed() {
            path.extend(["?environment=", &aim]);
        }
        let answer = self.client.get(&path).await?;
        known(wire::field(&answer, "detail").and_then(wire::detail))
    }
}

/// The body of a delegation.
fn call(delegation: &Delegation, call_id: &str, aim: Option<String>) -> Value {
    let mut body = Map::new();
    body.insert("agent".to_owned(), delegation.agent.clone().into());
    body.insert("task".to_owned(), delegation.task.clone().into());
    body.insert("callId".to_owned(), call_id.into());
    if let Some(RootDescriptor::Machine { path, .. }) = &delegation.root {
        body.insert("root".to_owned(), path.clone().into());
    }
    if let Some(deadline_ms) = delegation.deadline_ms {
        body.insert("deadlineMs".to_owned(), deadline_ms.into());
    }
    if let Some(aim) = aim {
        body.insert("environment".to_owned(), aim.into());
    }
    body.into()
}

fn list_path(filter: Filter, before: Option<u64>, limit: usize, aim: Option<&str>) -> String {
    let filter = match filter {
        Filter::All => "all",
        Filter::Active => "active",
        Filter::Completed => "completed",
        Filter::Unsuccessful => "unsuccessful",
    };
    let mut path = ["/v1/tasks?filter=", filter, "&limit=", &limit.to_string()].concat();
    if let Some(before) = before {
        path.extend(["&before=", &before.to_string()]);
    }
    if let Some(aim) = aim {
        path.extend(["&environment=", aim]);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delegation_names_what_it_wishes_for_and_nothing_else() {
        let root = RootDescriptor::Machine { path: "/r".into(), environment: Some("env_1".into()) };
        let mut delegation = Delegation {
            agent: "hash".into(),
            task: "abc".into(),
            deadline_ms: Some(5_000),
            root: Some(root),
        };
        let full = json!({"agent": "hash", "task": "abc", "callId": "c", "root": "/r", "deadlineMs": 5_000});
        assert_eq!(call(&delegation, "c", None), full);
        (delegation.deadline_ms, delegation.root) = (None, None);
        let there = json!({"agent": "hash", "task": "abc", "callId": "c", "environment": "env_1"});
        assert_eq!(call(&delegation, "c", Some("env_1".into())), there);
    }

    #[test]
    fn filters_have_the_names_that_the_wire_has() {
        for filter in [Filter::All, Filter::Active, Filter::Completed, Filter::Unsuccessful] {
            let name = serde_json::to_value(filter).unwrap();
            let path = list_path(filter, Some(7), 50, None);
            assert_eq!(path, format!("/v1/tasks?filter={}&limit=50&before=7", name.as_str().unwrap()));
        }
        let path = list_path(Filter::All, None, 1, Some("env_1"));
        assert_eq!(path, "/v1/tasks?filter=all&limit=1&environment=env_1");
    }
}
