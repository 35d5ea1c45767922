//! Tasks on many machines: what is admitted here is run by workers, over NATS JetStream.
//!
//! | module | idea |
//! |---|---|
//! | [`config`] | how a cluster is reached, and what its environment grants |
//! | [`connection`] | its streams and buckets, and how it says no |
//! | [`stored`] | a task as it stands there |
//! | [`journal`] | the journal of tasks: admissions, claims, changes by compare and set |
//! | [`front`] | who admits, as the ports of the task host |
//! | [`modules`] | modules on their way to workers |
//! | [`presence`] | signs of life of workers |
//! | [`worker`] | who runs: takes tasks out of the queue, one at a time for each of its places |
//! | [`sealer`] | the key of addresses, which all share |
//!
//! What keeps a task from being run twice, or from having two ends:
//! - The queue hands a task to one worker, and to another only when it has not heard of the first for a lease.
//! - A worker has a task when it has written its name into it, at the revision that it has read. Each later word of the
//!   task names the revision before, so that a word of who lost the task is refused.
//! - A worker that has not been heard for a lease ends what it runs, by its own clock. Another one takes over what it
//!   has not heard of for one and a half, by its clock. No clock is compared with another.

pub(crate) mod config;
pub(crate) mod connection;
mod front;
pub(crate) mod journal;
mod modules;
mod presence;
mod sealer;
pub(crate) mod stored;
#[cfg(test)]
mod tests;
mod view;
pub(crate) mod worker;

use std::fmt;
use std::rc::{Rc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;
use toolshelf_core::address::Sealed;
use toolshelf_core::placement::Placement;
use toolshelf_core::redact::redact;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::TaskState;
use toolshelf_core::task::listing::{Detail, Filter, Page};
use toolshelf_core::task::time::read_time;
use toolshelf_host::{Caller, Reply, TaskClock as _, TaskHost, TaskHostConfig};
use toolshelf_sandbox::HostClock;

use self::config::ClusterConfig;
use self::connection::Connection;
use self::front::{ClusterRoot, FrontPlatform, Takers};
use self::journal::NatsJournal;
use self::modules::Publisher;
use crate::machine::watch::OnUpdate;
use crate::machine::{LIST_MAX, row};
use crate::shelf::Shelf;

/// How long the cluster may take for one answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
/// How callers name the environment where they do not know its key.
pub(crate) const CLUSTER: &str = "cluster";
/// The project that a cluster's tasks belong to.
const PROJECT: &str = "cluster-project";
/// A task that waits for longer may have lost its order, in milliseconds; and is looked after when somebody asks.
const LONG_WAIT_MS: u64 = 5_000;

type Host = TaskHost<FrontPlatform>;

/// The tasks of a cluster, as one who admits sees them. Clones share it.
#[derive(Clone)]
pub(crate) struct Cluster {
    inner: Rc<Inner>,
}

struct Inner {
    host: Host,
    connection: Connection,
    shelf: Rc<Shelf>,
    publisher: Publisher,
    takers: Takers,
    looking: JoinHandle<()>,
}

impl Cluster {
    /// Connects, and takes the cluster's key.
    ///
    /// # Errors
    /// [`Code::PlacementUnavailable`], [`Code::ConfigInvalid`], [`Code::TaskEnvironmentUnverified`].
    pub(crate) async fn open(
        config: &ClusterConfig,
        shelf: Rc<Shelf>,
        on_update: OnUpdate,
    ) -> Result<Self, Refusal> {
        let connection = Connection::open(config, "toolshelf serve").await?;
        // The queue's bounds are set by who comes first.
        connection.queue().await?;
        let sealer = sealer::open(&connection).await?;
        let (environment, instance) = names(&sealer.host_id());
        let takers = Takers::default();
        let known = takers.clone();
        let journal =
            NatsJournal::of_front(connection.clone(), Rc::new(move |input| known.work(&input.agent)));
        let platform = FrontPlatform {
            sealer,
            journal,
            takers: takers.clone(),
            clock: HostClock::new(),
            root: ClusterRoot::of(&environment),
            on_update: Rc::clone(&on_update),
        };
        let host = TaskHost::new(config_of(environment, instance), platform);
        let watched = connection.clone();
        let inner = Rc::new_cyclic(|inner: &Weak<Inner>| {
            let looking = tokio::task::spawn_local(view::follow(watched, inner.clone(), on_update));
            Inner { host, connection, shelf, publisher: Publisher::default(), takers, looking }
        });
        Ok(Self { inner })
    }

    /// The environment's key.
    pub(crate) fn environment(&self) -> &str {
        &self.inner.host.config().environment
    }

    /// Whether a caller that names `environment` means this one.
    pub(crate) fn is_meant(&self, environment: &str) -> bool {
        environment == CLUSTER || environment == self.environment()
    }

    /// Whether an address is of this environment. Its MAC is checked by who reads the task.
    pub(crate) fn has(&self, address: &str) -> bool {
        let locator = Sealed::split(address).ok().and_then(|sealed| sealed.locator().ok());
        locator.is_some_and(|locator| locator.environment == self.environment())
    }

    /// Calls one of the [`TASK_TOOLS`](toolshelf_host::task_host::TASK_TOOLS).
    ///
    /// # Errors
    /// The refusal that names what stands against it.
    pub(crate) async fn call(&self, tool: &str, args: &Value, caller: &Caller) -> Result<Reply, Refusal> {
        if tool == "delegate_task" {
            self.prepare(args.get("agent").and_then(Value::as_str).unwrap_or_default()).await?;
        }
        let reply = self.inner.host.call(tool, args, caller).await?;
        if let Some(task) = reply.task().filter(|task| task.state == TaskState::Queued) {
            self.look_after(&task.address, &task.created_at).await;
        }
        Ok(reply)
    }

    /// Gets ready what a task for `agent` takes: the module of a tool, or what workers say of their agents.
    async fn prepare(&self, agent: &str) -> Result<(), Refusal> {
        let inner = &self.inner;
        let pin = inner.publisher.publish(&inner.connection, &inner.shelf, agent).await?;
        let is_tool = pin.is_some();
        inner.takers.tool(agent, pin);
        if !is_tool && !inner.takers.has_agent(agent) {
            // What is not known yet may be there by now; where the cluster does not answer, the admission says so.
            let _ = self.workers().await;
        }
        Ok(())
    }

    /// A task that waits for long, although nothing is before it, has lost its order: it gets another.
    async fn look_after(&self, address: &str, created_at: &str) {
        let now = self.inner.host.platform().clock.unix_ms();
        let waited = read_time(created_at).map_or(0, |created| now.saturating_sub(created));
        if waited > LONG_WAIT_MS
            && let Ok(info) = self.inner.connection.orders.get_info().await
            && info.state.messages == 0
        {
            let _ = self.inner.host.platform().journal.order_again(address).await;
        }
    }

    /// Some tasks, the newest first, from `before` on downwards.
    ///
    /// # Errors
    /// [`Code::PlacementUnavailable`].
    pub(crate) async fn list(
        &self,
        owner: &str,
        filter: Filter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page, Refusal> {
        let limit = limit.clamp(1, LIST_MAX);
        let batch = self.inner.host.list(&Caller::new(owner, ""), filter, before, limit).await?;
        Ok(Page { rows: batch.tasks.into_iter().map(row).collect(), next: batch.next })
    }

    /// All that is known of one task.
    ///
    /// # Errors
    /// [`Code::TaskNotFound`] and [`Code::PlacementUnavailable`].
    pub(crate) async fn detail(&self, owner: &str, position: u64) -> Result<Detail, Refusal> {
        let above = Some(position.saturating_add(1));
        let batch = self.inner.host.recent(&Caller::new(owner, ""), above, 1).await?;
        let listed = batch.tasks.into_iter().find(|listed| listed.position == position);
        let listed =
            listed.ok_or_else(|| Refusal::new(Code::TaskNotFound, "there is no task at that position"))?;
        let moments = self.inner.host.platform().journal.moments(&listed.record.address).await?;
        let record = &listed.record;
        let (task, mechanism) = (record.input.task.clone(), record.mechanism.clone());
        let call_id = record.call_id.clone();
        Ok(Detail { row: row(listed), task, mechanism, call_id, moments })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

/// The environment and the writer of a cluster's key.
fn names(id: &str) -> (String, String) {
    (format!("env_{id}"), format!("cluster-{id}"))
}

fn config_of(environment: String, instance: String) -> TaskHostConfig {
    let scrub = Rc::new(|text: &str| redact(text).into_owned());
    TaskHostConfig::remote(environment, instance, PROJECT.to_owned(), scrub)
}

/// The placement of a cluster's environment.
pub(crate) const PLACEMENT: Placement = Placement::Remote;

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("connection", &self.inner.connection).finish_non_exhaustive()
    }
}
