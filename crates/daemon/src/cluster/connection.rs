//! The cluster's streams and buckets, and how it says no.
//!
//! | stream | what it holds |
//! |---|---|
//! | `KV_<name>_calls` | the call that a task came from: who admits first has it. Its order is the order of admissions |
//! | `KV_<name>_tasks` | each task as it stands; every change is by compare and set |
//! | `<name>_orders` | tasks that wait for a worker: a work queue, which hands each to one at a time |
//! | `KV_<name>_workers` | the signs of life of workers |
//! | `KV_<name>_meta` | the key that seals addresses |
//! | `OBJ_<name>_modules` | modules by their digests |
//!
//! Everything is read from the leader of its stream, so that what was acknowledged is found.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use async_nats::Client;
use async_nats::connection::State;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::context::{ContextBuilder, PublishError, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, RawMessageError, RawMessageErrorKind, RetentionPolicy, StorageType, Stream,
};
use async_nats::jetstream::{Context, Error as ServerError};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::ANSWER;
use super::config::ClusterConfig;

/// How long a cluster that elects its leaders is tried at the start.
const FIRST_ANSWER: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The consumer of the work queue, which all workers share.
const WORKERS: &str = "workers";
/// Signs of life are forgotten after so many leases.
const FORGOTTEN_AFTER: u32 = 3;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A connection to a cluster.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) context: Context,
    pub(crate) config: ClusterConfig,
    pub(crate) calls: Bucket,
    pub(crate) tasks: Bucket,
    pub(crate) workers: Bucket,
    pub(crate) meta: Bucket,
    pub(crate) orders: Stream,
    pub(crate) modules: ObjectStore,
}

/// A bucket. Its keys are of letters, digits, dots and dashes.
#[derive(Clone)]
pub(crate) struct Bucket {
    context: Context,
    pub(crate) stream: Stream,
    subject: String,
}

/// Why the cluster did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub(crate) enum ClusterFault {
    /// Somebody else wrote first.
    #[error("somebody else wrote first")]
    Stale,
    /// The queue or the store holds as much as it may.
    #[error("the cluster's {what} is full: {why}")]
    Full {
        /// The queue, or the store.
        what: &'static str,
        /// In the server's words.
        why: String,
    },
    /// There is no connection now.
    #[error("there is no connection to the cluster now")]
    Disconnected,
    /// A majority of the servers that keep it is lost.
    #[error("a majority of the cluster's servers is lost, or it elects a leader")]
    NoQuorum,
    /// No answer in time.
    #[error("the cluster's store is slow, or has lost its majority: no answer within {} s", ANSWER.as_secs())]
    Slow,
    /// Anything else.
    #[error("the cluster failed: {0}")]
    Failed(String),
}

impl From<ClusterFault> for Refusal {
    fn from(fault: ClusterFault) -> Self {
        let code = match fault {
            ClusterFault::Full { what: QUEUE, .. } => Code::TaskCapacityExhausted,
            _ => Code::PlacementUnavailable,
        };
        Self::new(code, cut(&fault.to_string(), 300))
    }
}

const QUEUE: &str = "queue";
const STORE: &str = "store";

impl Connection {
    /// Connects, and makes what is missing.
    ///
    /// # Errors
    /// [`Code::ConfigInvalid`], and [`Code::PlacementUnavailable`] when no server answers or one refuses.
    pub(crate) async fn open(config: &ClusterConfig, who: &str) -> Result<Self, Refusal> {
        let servers: Vec<&str> = config.servers.split(',').map(str::trim).collect();
        let options = config.connect_options(who).await?;
        let unreachable = |err: &dyn fmt::Display| {
            let why = format!("the cluster at {} cannot be used: {err}", config.shown());
            Refusal::new(Code::PlacementUnavailable, cut(&why, 300))
        };
        let client = options.connect(servers).await.map_err(|err| unreachable(&err))?;
        let context = ContextBuilder::new().timeout(ANSWER).ack_timeout(ANSWER).build(client.clone());
        let give_up = std::time::Instant::now() + FIRST_ANSWER;
        loop {
            match Self::prepare(config, &client, &context).await {
                Ok(connection) => return Ok(connection),
                Err(err) if std::time::Instant::now() > give_up => return Err(unreachable(&err)),
                Err(_) => tokio::time::sleep(FIRST_PAUSE).await,
            }
        }
    }

    async fn prepare(
        config: &ClusterConfig,
        client: &Client,
        context: &Context,
    ) -> Result<Self, async_nats::Error> {
        let (name, replicas) = (&config.name, config.replicas);
        let keep = DAY * config.keep_days;
        let bucket = |what: &str, max_age| Bucket::open(context, format!("{name}_{what}"), replicas, max_age);
        let orders = context.get_or_create_stream(Config {
            name: format!("{name}_orders"),
            subjects: vec![format!("{name}.orders")],
            retention: RetentionPolicy::WorkQueue,
            discard: DiscardPolicy::New,
            max_messages: config.queue,
            storage: StorageType::File,
            num_replicas: replicas,
            ..Config::default()
        });
        let modules = format!("{name}_modules");
        let modules = match context.get_object_store(&*modules).await {
            Ok(modules) => modules,
            Err(_) => {
                let config =
                    object_store::Config { bucket: modules, num_replicas: replicas, ..Default::default() };
                context.create_object_store(config).await?
            }
        };
        Ok(Self {
            calls: bucket("calls", keep).await?,
            tasks: bucket("tasks", keep).await?,
            workers: bucket("workers", config.lease() * FORGOTTEN_AFTER).await?,
            meta: bucket("meta", Duration::ZERO).await?,
            orders: orders.await?,
            modules,
            client: client.clone(),
            context: context.clone(),
            config: config.clone(),
        })
    }

    /// The work queue as workers see it: at most `capacity` tasks are with all of them together, and one that is not
    /// heard of for a lease is handed out again.
    ///
    /// # Errors
    /// A [`ClusterFault`].
    pub(crate) async fn queue(&self) -> Result<PullConsumer, ClusterFault> {
        let config = pull::Config {
            durable_name: Some(WORKERS.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.config.lease(),
            max_ack_pending: self.config.capacity,
            max_deliver: -1,
            ..pull::Config::default()
        };
        self.orders.get_or_create_consumer(WORKERS, config).await.map_err(failed)
    }

    /// Puts a task into the queue. The same one a second time, within minutes, is not put there again.
    ///
    /// # Errors
    /// A [`ClusterFault`].
    pub(crate) async fn order(&self, task: &str) -> Result<(), ClusterFault> {
        let message = PublishMessage::build().payload(task.to_owned().into()).message_id(task);
        let sent = self.context.send_publish(format!("{}.orders", self.config.name), message);
        match sent.await.map_err(fault)?.await.map_err(fault) {
            Ok(_) => Ok(()),
            Err(ClusterFault::Full { why, .. }) => Err(ClusterFault::Full { what: QUEUE, why }),
            Err(fault) => Err(fault),
        }
    }

    /// The subject on which cancellations are told to all workers.
    pub(crate) fn cancels(&self) -> String {
        format!("{}.cancels", self.config.name)
    }

    /// The subject on which workers tell what executors say.
    pub(crate) fn notes(&self) -> String {
        format!("{}.notes", self.config.name)
    }

    /// Whether there is a connection now.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Bucket {
    async fn open(
        context: &Context,
        bucket: String,
        replicas: usize,
        max_age: Duration,
    ) -> Result<Self, async_nats::Error> {
        let subject = format!("$KV.{bucket}.");
        let config = Config {
            name: format!("KV_{bucket}"),
            subjects: vec![format!("{subject}>")],
            max_messages_per_subject: 1,
            max_age,
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: replicas,
            allow_rollup: true,
            ..Config::default()
        };
        let stream = context.get_or_create_stream(config).await?;
        Ok(Self { context: context.clone(), stream, subject })
    }

    /// The value of `key` and its revision.
    ///
    /// # Errors
    /// A [`ClusterFault`], as with all that follow.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<StreamMessage>, ClusterFault> {
        let subject = format!("{}{key}", self.subject);
        read(self.stream.get_last_raw_message_by_subject(&subject).await)
    }

    /// The value at a revision.
    pub(crate) async fn at(&self, revision: u64) -> Result<Option<StreamMessage>, ClusterFault> {
        read(self.stream.get_raw_message(revision).await)
    }

    /// Writes the first value of `key`; [`ClusterFault::Stale`] where there is one. Answers its revision.
    pub(crate) async fn create(&self, key: &str, value: Vec<u8>) -> Result<u64, ClusterFault> {
        self.update(key, value, 0).await
    }

    /// Writes a value over the one of `revision`; [`ClusterFault::Stale`] where there is another.
    pub(crate) async fn update(&self, key: &str, value: Vec<u8>, revision: u64) -> Result<u64, ClusterFault> {
        self.publish(
            key,
            PublishMessage::build().payload(value.into()).expected_last_subject_sequence(revision),
        )
        .await
    }

    /// Writes a value, whatever there is.
    pub(crate) async fn put(&self, key: &str, value: Vec<u8>) -> Result<u64, ClusterFault> {
        self.publish(key, PublishMessage::build().payload(value.into())).await
    }

    async fn publish(&self, key: &str, message: PublishMessage) -> Result<u64, ClusterFault> {
        let sent =
            self.context.send_publish(format!("{}{key}", self.subject), message).await.map_err(fault)?;
        Ok(sent.await.map_err(fault)?.sequence)
    }

    /// Takes the key away, with what it had.
    pub(crate) async fn purge(&self, key: &str) -> Result<(), ClusterFault> {
        let purge = self.stream.purge().filter(format!("{}{key}", self.subject)).await;
        purge.map(drop).map_err(failed)
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bucket").field(&self.subject).finish()
    }
}

fn read(message: Result<StreamMessage, RawMessageError>) -> Result<Option<StreamMessage>, ClusterFault> {
    match message {
        Ok(message) => Ok(Some(message)),
        Err(err) if err.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(err) => Err(failed(err)),
    }
}

fn fault(err: PublishError) -> ClusterFault {
    match err.kind() {
        PublishErrorKind::WrongLastSequence | PublishErrorKind::WrongLastMessageId => ClusterFault::Stale,
        PublishErrorKind::TimedOut => ClusterFault::Slow,
        PublishErrorKind::BrokenPipe => ClusterFault::Disconnected,
        // Nobody answers for the stream.
        PublishErrorKind::StreamNotFound => ClusterFault::NoQuorum,
        _ => {
            let server = err.source().and_then(|source| source.downcast_ref::<ServerError>());
            let why = server.map_or_else(|| err.to_string(), ToString::to_string);
            if why.contains("exceeded") || why.contains("insufficient") || why.contains("no space") {
                ClusterFault::Full { what: STORE, why }
            } else {
                ClusterFault::Failed(why)
            }
        }
    }
}

/// What other requests answer; their faults have no kinds that would be worth telling apart.
pub(crate) fn failed(err: impl fmt::Display) -> ClusterFault {
    let why = err.to_string();
    if why.contains("timed out") {
        ClusterFault::Slow
    } else if why.contains("no responders") {
        ClusterFault::NoQuorum
    } else {
        ClusterFault::Failed(why)
    }
}
