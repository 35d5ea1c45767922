//! The bucket as a log: connecting, reading on, appending after a known end, overwriting.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::context::{ContextBuilder, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RawMessageErrorKind, StorageType, Stream};
use futures::StreamExt as _;

use super::NatsOptions;
use super::copy::Copy;
use super::entry::Entry;
use crate::port::FactError;

/// How long a server may take for one answer.
const ANSWER: Duration = Duration::from_secs(5);
/// So many entries are asked for one by one; more are worth a reader of their own.
const FEW: u64 = 16;
/// So often an entry must be missing to be known as erased.
const LOOKS_FOR_ERASED: usize = 2;
/// Entries of one key that are kept: a write that was given up leaves one behind until it is erased.
const KEPT_PER_KEY: i64 = 8;
/// Entries that are sent before the first answer is waited for.
const SENT_AHEAD: usize = 256;

/// The log.
pub(super) struct Log {
    context: Context,
    stream: Stream,
    bucket: String,
    writers: AtomicU64,
}

/// Why entries were not appended.
#[derive(Debug)]
pub(super) enum AppendFault {
    /// The log goes on further than was known. Not all entries were written.
    Behind,
    /// They may be written or not.
    Unknown(String),
    /// They are not, and will not be.
    Refused(String),
}

impl Log {
    pub(super) async fn open(options: &NatsOptions, connect: ConnectOptions) -> Result<Self, FactError> {
        let servers: Vec<&str> = options.servers.split(',').map(str::trim).collect();
        let client = connect.connect(servers).await.map_err(unavailable)?;
        let context = ContextBuilder::new().timeout(ANSWER).ack_timeout(ANSWER).build(client);
        let bucket = options.bucket.clone();
        let config = Config {
            name: format!("KV_{bucket}"),
            subjects: vec![format!("$KV.{bucket}.>")],
            max_messages_per_subject: KEPT_PER_KEY,
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: options.replicas,
            allow_rollup: true,
            allow_direct: true,
            ..Config::default()
        };
        let stream = context.get_or_create_stream(config).await.map_err(unavailable)?;
        // Two stores never begin with the same number.
        let first = RandomState::new().build_hasher().finish();
        Ok(Self { context, stream, bucket, writers: AtomicU64::new(first) })
    }

    pub(super) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The name of a write.
    pub(super) fn new_writer(&self) -> u64 {
        self.writers.fetch_add(1, Ordering::Relaxed)
    }

    /// Reads on to where the log ends now. Its leader is asked, not just any server.
    pub(super) async fn follow(&self, copy: &mut Copy) -> Result<(), FactError> {
        let end = self.stream.get_info().await.map_err(unavailable)?.state.last_sequence;
        if end < copy.applied() {
            return Err(FactError::Unavailable("the bucket is another one than before".to_owned()));
        }
        if end - copy.applied() > FEW {
            self.read_on(copy, end).await?;
        }
        // What a reader of many was not given may be missing on its server alone.
        for place in copy.applied() + 1..=end {
            match self.at(place).await? {
                Some(bytes) => take(copy, place, &bytes),
                None => copy.passed(place),
            }
        }
        Ok(())
    }

    /// The entry at `place`; `None` when it was erased. A leader that has just been elected may not have it yet: that one
    /// says so by where its log ends.
    async fn at(&self, place: u64) -> Result<Option<Vec<u8>>, FactError> {
        for _ in 0..LOOKS_FOR_ERASED {
            match self.stream.get_raw_message(place).await {
                Ok(message) => return Ok(Some(message.payload.to_vec())),
                Err(err) if err.kind() == RawMessageErrorKind::NoMessageFound => {}
                Err(err) => return Err(unavailable(err)),
            }
            let end = self.stream.get_info().await.map_err(unavailable)?.state.last_sequence;
            if end < place {
                return Err(FactError::Unavailable(
                    "the bucket's leader does not have all of it yet".to_owned(),
                ));
            }
        }
        Ok(None)
    }

    /// Reads many entries, up to `end` or as far as the server of the reader has them.
    async fn read_on(&self, copy: &mut Copy, end: u64) -> Result<(), FactError> {
        let deliver_policy = DeliverPolicy::ByStartSequence { start_sequence: copy.applied() + 1 };
        let config = pull::OrderedConfig { deliver_policy, ..pull::OrderedConfig::default() };
        let consumer = self.stream.create_consumer(config).await.map_err(unavailable)?;
        let mut left = consumer.cached_info().num_pending;
        let mut messages = consumer.messages().await.map_err(unavailable)?;
        while left > 0 && copy.applied() < end {
            let next = tokio::time::timeout(ANSWER, messages.next()).await;
            let next = next.map_err(|_| FactError::Unavailable("the bucket cannot be read on".to_owned()))?;
            let message = next.ok_or_else(|| FactError::Unavailable("the bucket has ended".to_owned()))?;
            let message = message.map_err(unavailable)?;
            let info = message.info().map_err(|err| FactError::Unavailable(err.to_string()))?;
            let place = info.stream_sequence;
            left = info.pending;
            take(copy, place, &message.payload);
        }
        Ok(())
    }

    /// Writes `entries`, the first one right after the place `after`, and each right after the one before.
    pub(super) async fn append(&self, after: u64, entries: &[Entry], writer: u64) -> Result<(), AppendFault> {
        let mut sent = Vec::with_capacity(entries.len().min(SENT_AHEAD));
        let mut place = after;
        for some in entries.chunks(SENT_AHEAD) {
            for entry in some {
                let message =
                    PublishMessage::build().payload(entry.bytes(writer).into()).expected_last_sequence(place);
                let subject = format!("$KV.{}.{}", self.bucket, entry.key());
                sent.push(self.context.send_publish(subject, message).await.map_err(fault)?);
                place += 1;
            }
            for answer in sent.drain(..) {
                answer.await.map_err(fault)?;
            }
        }
        Ok(())
    }

    /// Has the entry at `place` overwritten. One that is gone already is fine.
    pub(super) async fn erase(&self, place: u64) -> Result<(), String> {
        match self.stream.delete_message(place).await {
            Ok(_) => Ok(()),
            Err(err) => match self.stream.get_raw_message(place).await {
                Err(gone) if gone.kind() == RawMessageErrorKind::NoMessageFound => Ok(()),
                _ => Err(err.to_string()),
            },
        }
    }
}

/// Takes an entry of the log. What no store has written says nothing.
fn take(copy: &mut Copy, place: u64, bytes: &[u8]) {
    match Entry::read(bytes) {
        Some((entry, writer)) => copy.apply(place, entry, writer),
        None => copy.passed(place),
    }
}

fn fault(err: async_nats::jetstream::context::PublishError) -> AppendFault {
    match err.kind() {
        PublishErrorKind::WrongLastSequence => AppendFault::Behind,
        PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe | PublishErrorKind::StreamNotFound => {
            AppendFault::Unknown(err.to_string())
        }
        PublishErrorKind::MaxPayloadExceeded => AppendFault::Refused(err.to_string()),
        // What a server answers: no room, no right, no leader now.
        _ => AppendFault::Unknown(err.to_string()),
    }
}

fn unavailable(err: impl fmt::Display) -> FactError {
    FactError::Unavailable(err.to_string())
}
