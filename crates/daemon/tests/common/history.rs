//! What a cluster's tasks bucket has seen, read as a whole and judged by a program.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and says where it cannot go on"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::runtime::Builder;

/// Entries of one task that are kept for the history; a task has no longer log.
const KEPT: i64 = 64;

/// How often the bucket is read, how long each may take, and how long to wait in between.
const READS: usize = 20;
const READING: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

/// Every entry of every task, in order; by the tasks' addresses.
pub(crate) type History = BTreeMap<String, Vec<Value>>;

pub(crate) fn now<T>(work: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn context(servers: &str) -> async_nats::jetstream::Context {
    let servers: Vec<&str> = servers.split(',').collect();
    async_nats::jetstream::new(async_nats::connect(servers).await.unwrap())
}

/// Makes the bucket of tasks beforehand, so that it keeps every entry and not only the last.
pub(crate) fn keep_all(servers: &str, replicas: usize) {
    let config = Config {
        name: "KV_toolshelf_tasks".into(),
        subjects: vec!["$KV.toolshelf_tasks.>".into()],
        max_messages_per_subject: KEPT,
        discard: DiscardPolicy::New,
        storage: StorageType::File,
        num_replicas: replicas,
        allow_rollup: true,
        ..Config::default()
    };
    now(async { context(servers).await.create_stream(config).await.unwrap() });
}

/// The name of the server that leads a stream.
pub(crate) fn leader(servers: &str, stream: &str) -> Option<String> {
    now(async {
        let stream = context(servers).await.get_stream(stream).await.ok()?;
        stream.cached_info().cluster.as_ref()?.leader.clone()
    })
}

/// Puts an order into the queue a second time, as a delivery that is repeated.
pub(crate) fn order_again(servers: &str, key: &str) {
    now(async {
        let context = context(servers).await;
        let _ = context.publish("toolshelf.orders", key.to_owned().into()).await.unwrap().await;
    });
}

/// Reads all that the bucket has seen. Servers that elect a leader are asked again.
pub(crate) fn read(servers: &str) -> History {
    for _ in 0..READS {
        let read = now(async { tokio::time::timeout(READING, read_once(servers)).await });
        if let Ok(Some(history)) = read {
            return history;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("the bucket of tasks cannot be read");
}

async fn read_once(servers: &str) -> Option<History> {
    let mut stream = context(servers).await.get_stream("KV_toolshelf_tasks").await.ok()?;
    let end = stream.info().await.ok()?.state.last_sequence;
    let consumer = stream.create_consumer(pull::OrderedConfig::default()).await.ok()?;
    let mut messages = consumer.messages().await.ok()?;
    let mut history = History::new();
    let mut place = 0;
    // Nothing is taken away from this bucket, so that its last entry comes.
    while place < end {
        let message = messages.next().await?.ok()?;
        place = message.info().ok()?.stream_sequence;
        let Ok(entry) = serde_json::from_slice::<Value>(&message.payload) else { continue };
        let address = entry["record"]["address"].as_str()?.to_owned();
        history.entry(address).or_default().push(entry);
    }
    Some(history)
}

/// What is wrong with a history: nothing, or one sentence for each task. `admitted` are the addresses that were
/// acknowledged.
pub(crate) fn problems<'a>(history: &History, admitted: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut problems = Vec::new();
    for address in admitted {
        match history.get(address) {
            None => problems.push(format!("{address} was admitted and is nowhere")),
            Some(entries) => {
                let last = entries.last().unwrap();
                if !is_end(last) {
                    problems.push(format!("{address} has not ended: {}", last["record"]["state"]));
                }
            }
        }
    }
    for (address, entries) in history {
        let ends = entries.iter().filter(|entry| is_end(entry)).count();
        if ends > 1 || ends == 1 && !is_end(entries.last().unwrap()) {
            problems.push(format!("{address} has {ends} ends, or goes on after one: {entries:?}"));
        }
        for pair in entries.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            if after["entries"].as_u64() != before["entries"].as_u64().map(|entries| entries + 1) {
                problems.push(format!("{address}: an entry was written over another: {pair:?}"));
            }
            let (old, new) = (before["claim"]["attempt"].as_u64(), after["claim"]["attempt"].as_u64());
            if new < old || new > old.map_or(Some(1), |old| Some(old + 1)) {
                problems.push(format!("{address}: a claim that does not follow: {pair:?}"));
            }
            if before["claim"] != after["claim"] && old.is_some() && before["work"]["repeatable"] != true {
                problems.push(format!("{address}: taken over although it cannot be run again: {pair:?}"));
            }
        }
        let most = entries.iter().filter_map(|entry| entry["claim"]["attempt"].as_u64()).max();
        if most > Some(2) {
            problems.push(format!("{address} was taken over more than once"));
        }
    }
    problems
}

fn is_end(entry: &Value) -> bool {
    ["completed", "failed", "cancelled", "interrupted"]
        .contains(&entry["record"]["state"].as_str().unwrap_or_default())
}
