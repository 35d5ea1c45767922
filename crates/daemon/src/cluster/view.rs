//! What a cluster looks like from here: its workers, their load and tasks; and what changes, as it changes.

use std::collections::HashMap;
use std::rc::Weak;
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use toolshelf_core::placement::PlacementBounds;
use toolshelf_core::refusal::Refusal;
use toolshelf_core::task::task_view;

use super::connection::{ClusterFault, Connection, failed};
use super::presence::Presence;
use super::stored::Stored;
use super::{Cluster, Inner, PLACEMENT};
use crate::machine::watch::OnUpdate;

/// Workers are listed up to so many.
const WORKERS_MAX: u64 = 1_000;
/// How long reading on waits after it has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// A cluster as it is now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterView {
    /// The environment's key.
    pub(crate) key: String,
    /// Addresses of servers, without what logs in there.
    pub(crate) servers: String,
    /// What each task is granted.
    pub(crate) bounds: PlacementBounds,
    /// Tasks that wait.
    pub(crate) waiting: u64,
    /// Tasks that are with workers.
    pub(crate) running: u64,
    /// Most tasks that wait or run.
    pub(crate) queue: i64,
    /// Most tasks that are with workers at a time.
    pub(crate) capacity: i64,
    /// The workers.
    pub(crate) workers: Vec<Presence>,
}

/// What an executor says while it runs, told by its worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Note {
    /// The owner of the task.
    pub(super) owner: String,
    /// What its owner is shown.
    pub(super) view: toolshelf_core::task::TaskView,
}

impl Cluster {
    /// The workers that were heard of lately, in the order of their names. Their agents are known from then on.
    ///
    /// # Errors
    /// A [`ClusterFault`].
    pub(crate) async fn workers(&self) -> Result<Vec<Presence>, ClusterFault> {
        let workers = workers(&self.inner.connection).await?;
        self.inner.takers.agents(workers.iter().flat_map(|worker| worker.agents.clone()));
        Ok(workers)
    }

    /// The cluster as it is now.
    ///
    /// # Errors
    /// [`Code::PlacementUnavailable`](toolshelf_core::Code::PlacementUnavailable).
    pub(crate) async fn view(&self) -> Result<ClusterView, Refusal> {
        let connection = &self.inner.connection;
        let workers = self.workers().await?;
        let mut queue = connection.queue().await?;
        let info = queue.info().await.map_err(failed)?;
        let (waiting, running) = (info.num_pending, info.num_ack_pending as u64);
        Ok(ClusterView {
            key: self.environment().to_owned(),
            servers: connection.config.shown(),
            bounds: PLACEMENT.bounds(),
            waiting,
            running,
            queue: connection.config.queue,
            capacity: info.config.max_ack_pending,
            workers,
        })
    }
}

/// The workers that were heard of lately.
pub(super) async fn workers(connection: &Connection) -> Result<Vec<Presence>, ClusterFault> {
    let stream = &connection.workers.stream;
    let state = stream.get_info().await.map_err(failed)?.state;
    if state.messages == 0 {
        return Ok(Vec::new());
    }
    let config = pull::OrderedConfig {
        deliver_policy: DeliverPolicy::LastPerSubject,
        filter_subject: format!("$KV.{}_workers.>", connection.config.name),
        ..pull::OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(failed)?;
    let mut left = consumer.cached_info().num_pending.min(WORKERS_MAX);
    let mut messages = consumer.messages().await.map_err(failed)?;
    let mut found = HashMap::new();
    while left > 0 {
        let next = tokio::time::timeout(super::ANSWER, messages.next()).await;
        let Some(Ok(message)) = next.map_err(|_| ClusterFault::Slow)? else { break };
        left -= 1;
        if let Ok(presence) = serde_json::from_slice::<Presence>(&message.payload) {
            found.insert(presence.worker.clone(), presence);
        }
    }
    let mut workers: Vec<Presence> = found.into_values().collect();
    workers.sort_by(|a, b| (&a.name, &a.worker).cmp(&(&b.name, &b.worker)));
    Ok(workers)
}

/// Tells of every change of a task that anybody writes, and of what executors say, as long as the cluster is looked at.
pub(super) async fn follow(connection: Connection, inner: Weak<Inner>, on_update: OnUpdate) {
    while inner.strong_count() > 0 {
        tokio::select! {
            fault = follow_tasks(&connection, &on_update) => {
                if let Err(fault) = fault {
                    tracing::debug!(error = fault.to_string(), "changes of the cluster's tasks are not heard now");
                }
            }
            () = follow_notes(&connection, &on_update) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow_tasks(connection: &Connection, on_update: &OnUpdate) -> Result<(), ClusterFault> {
    let config = pull::OrderedConfig { deliver_policy: DeliverPolicy::New, ..pull::OrderedConfig::default() };
    let consumer = connection.tasks.stream.create_consumer(config).await.map_err(failed)?;
    let mut messages = consumer.messages().await.map_err(failed)?;
    while let Some(message) = messages.next().await {
        let message = message.map_err(failed)?;
        if let Ok(stored) = serde_json::from_slice::<Stored>(&message.payload)
            // Who admitted it has told so.
            && !stored.waits()
        {
            on_update(&stored.record.owner, &task_view(&stored.record));
        }
    }
    Ok(())
}

async fn follow_notes(connection: &Connection, on_update: &OnUpdate) {
    let Ok(mut notes) = connection.client.subscribe(connection.notes()).await else { return };
    while let Some(message) = notes.next().await {
        if let Ok(Note { owner, view }) = serde_json::from_slice(&message.payload) {
            on_update(&owner, &view);
        }
    }
}
