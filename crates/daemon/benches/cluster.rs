//! What handing tasks to a cluster costs, beside what its NATS server costs by itself: `cargo xtask bench cluster`.
//!
//! Everything is measured in one run, with one server that waits for the disk with each write. The bare loop makes the
//! same writes for each task as this product does (the call, the task, the order; who has it; its end; the receipt), with
//! the same number of callers and takers, and nothing else. Compare ratios, never times of two runs.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that measures and prints")]

#[path = "../tests/common/cluster.rs"]
mod cluster;
#[path = "../tests/common/server.rs"]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, Stream};
use async_nats::jetstream::{self, Context};
use cluster::{Setting, Worker};
use futures::StreamExt as _;
use futures::future::join_all;
use serde_json::{Value, json};
use server::Server;
use tokio::runtime::Builder;
use toolshelf_nats::{Options, Server as Nats};

/// Those who hand over tasks, and places of each worker.
const CALLERS: usize = 8;
const PLACES: usize = 4;
/// Trivial tasks of one measurement, tasks of 50 ms, and hand-overs.
const TRIVIAL: usize = 400;
const LONG: usize = 120;
const HANDED: usize = 100;
/// About as long as a task's entry is.
const ENTRY_BYTES: usize = 1_400;

fn main() {
    let options = Options { sync_always: true, ..Options::default() };
    let bare = {
        let nats = Nats::with(&options);
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(bare(&nats.url()))
    };
    let embedded = embedded();
    let nats = Nats::with(&options);
    let setting = Setting::new(&nats.url(), "");
    let server = Arc::new(setting.serve(None));
    let one = setting.worker("one", PLACES);
    rate(&server, "hash", "abc", CALLERS * 4, "warm");
    let handed =
        Builder::new_current_thread().enable_all().build().unwrap().block_on(handed(&nats.url(), &server));
    let trivial_one = rate(&server, "hash", "abc", TRIVIAL, "trivial-one");
    let long_one = rate(&server, "sleeper", "0.05", LONG, "long-one");
    let two = setting.worker("two", PLACES);
    let trivial_two = rate(&server, "hash", "abc", TRIVIAL, "trivial-two");
    let long_two = rate(&server, "sleeper", "0.05", LONG, "long-two");
    drop::<[Worker; 2]>([one, two]);

    println!(
        "{CALLERS} callers, {PLACES} places a worker; one NATS server that waits for the disk with each write\n"
    );
    println!("{:<44} {:>10} {:>8}", "trivial tasks", "tasks/s", "of bare");
    for (name, rate) in [
        ("the bare loop: the same writes, nothing else", bare.rate),
        ("embedded: this computer's own journal", embedded),
        ("one worker", trivial_one),
        ("two workers", trivial_two),
    ] {
        println!("{name:<44} {rate:>10.0} {:>7.0}%", 100.0 * rate / bare.rate);
    }
    println!("\n{:<44} {:>10}", "tasks of 50 ms", "tasks/s");
    println!("{:<44} {long_one:>10.1}", "one worker");
    println!("{:<44} {long_two:>10.1} {:>7.2} times one", "two workers", long_two / long_one);
    println!("\n{:<44} {:>10}", "hand-over, median", "ms");
    println!("{:<44} {:>10.3}", "a bare publish and pull", bare.handed);
    println!(
        "{:<44} {handed:>10.3} {:>7.2} times bare",
        "one worker: from the order to who has it",
        handed / bare.handed
    );
}

/// What the server gives a client that does nothing else.
struct Bare {
    rate: f64,
    handed: f64,
}

async fn bare(url: &str) -> Bare {
    let context = jetstream::new(async_nats::connect(url).await.unwrap());
    let bucket = |name: &str, subjects: &str, retention| Config {
        name: name.into(),
        subjects: vec![subjects.into()],
        discard: DiscardPolicy::New,
        max_messages_per_subject: if retention == RetentionPolicy::WorkQueue { -1 } else { 1 },
        retention,
        ..Config::default()
    };
    let limits = RetentionPolicy::Limits;
    context.create_stream(bucket("calls", "calls.>", limits)).await.unwrap();
    let tasks = context.create_stream(bucket("tasks", "tasks.>", limits)).await.unwrap();
    let orders = context.create_stream(bucket("orders", "orders", RetentionPolicy::WorkQueue)).await.unwrap();
    let queue = pull::Config {
        durable_name: Some("w".into()),
        ack_policy: AckPolicy::Explicit,
        ..Default::default()
    };
    let queue = orders.create_consumer(queue).await.unwrap();

    let start = Instant::now();
    let done = Arc::new(AtomicUsize::new(0));
    let takers: Vec<_> = (0..PLACES)
        .map(|_| tokio::spawn(take(context.clone(), tasks.clone(), queue.clone(), Arc::clone(&done))))
        .collect();
    join_all((0..CALLERS).map(|caller| tokio::spawn(admit(context.clone(), caller)))).await;
    while done.load(Ordering::Relaxed) < TRIVIAL {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let rate = TRIVIAL as f64 / start.elapsed().as_secs_f64();
    takers.iter().for_each(tokio::task::JoinHandle::abort);

    let mut times = Vec::new();
    for _ in 0..HANDED {
        // A taker waits, as one does.
        let waiting = queue.batch().max_messages(1).expires(Duration::from_secs(5)).messages();
        let mut waiting = waiting.await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let start = Instant::now();
        let sent = context.publish("orders", "key".into()).await.unwrap();
        let message = waiting.next().await.unwrap().unwrap();
        times.push(start.elapsed());
        sent.await.unwrap();
        message.ack().await.unwrap();
    }
    Bare { rate, handed: median(times) }
}

async fn admit(context: Context, caller: usize) {
    let entry = "x".repeat(ENTRY_BYTES);
    for number in (caller..TRIVIAL).step_by(CALLERS) {
        let first = |subject: String| {
            let message =
                PublishMessage::build().payload(entry.clone().into()).expected_last_subject_sequence(0);
            context.send_publish(subject, message)
        };
        first(format!("calls.{number}")).await.unwrap().await.unwrap();
        let task = async { first(format!("tasks.{number}")).await.unwrap().await.unwrap() };
        let order =
            async { context.publish("orders", number.to_string().into()).await.unwrap().await.unwrap() };
        futures::join!(task, order);
    }
}

async fn take(context: Context, tasks: Stream, queue: PullConsumer, done: Arc<AtomicUsize>) {
    let entry = "x".repeat(ENTRY_BYTES);
    loop {
        let mut batch =
            queue.batch().max_messages(1).expires(Duration::from_secs(5)).messages().await.unwrap();
        let Some(Ok(message)) = batch.next().await else { continue };
        let subject = format!("tasks.{}", String::from_utf8_lossy(&message.payload));
        let mut revision = loop {
            // The order may be there before the task.
            if let Ok(found) = tasks.get_last_raw_message_by_subject(&subject).await {
                break found.sequence;
            }
        };
        for _ in ["who has it", "its end"] {
            let write = PublishMessage::build().payload(entry.clone().into());
            let write = write.expected_last_subject_sequence(revision);
            revision = context.send_publish(subject.clone(), write).await.unwrap().await.unwrap().sequence;
        }
        message.ack().await.unwrap();
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Trivial tasks of this computer's own environment.
fn embedded() -> f64 {
    let server = Arc::new(Server::start());
    let start = Instant::now();
    callers(
        &server,
        TRIVIAL,
        |number| json!({ "agent": "hash", "task": "abc", "callId": format!("call-{number}") }),
    );
    while server.get("/v1/environment").json()["environment"]["active"] != 0 {
        thread::sleep(Duration::from_millis(2));
    }
    TRIVIAL as f64 / start.elapsed().as_secs_f64()
}

/// Tasks a second, from the first call to the last end.
fn rate(server: &Arc<Server>, agent: &str, task: &str, count: usize, name: &str) -> f64 {
    let start = Instant::now();
    callers(
        server,
        count,
        |number| json!({ "agent": agent, "task": task, "callId": format!("{name}-{number}"), "environment": "cluster" }),
    );
    loop {
        let view: Value = server.get("/v1/cluster").json();
        if view["cluster"]["waiting"] == 0 && view["cluster"]["running"] == 0 {
            return count as f64 / start.elapsed().as_secs_f64();
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Hands over `count` tasks by several callers at a time; who is told that there is no room tries again.
fn callers(server: &Arc<Server>, count: usize, body: impl Fn(usize) -> Value + Sync) {
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let body = &body;
            scope.spawn(move || {
                for number in (caller..count).step_by(CALLERS) {
                    let task = body(number);
                    while server.post("/v1/tasks", &task).json()["ok"] != true {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        }
    });
}

/// From the order's way through the server to that of the entry that says who has the task, one task at a time.
async fn handed(url: &str, server: &Arc<Server>) -> f64 {
    let client = async_nats::connect(url).await.unwrap();
    let mut orders = client.subscribe("toolshelf.orders").await.unwrap();
    let mut tasks = client.subscribe("$KV.toolshelf_tasks.>").await.unwrap();
    client.flush().await.unwrap();
    let mut times = Vec::new();
    for number in 0..HANDED {
        let (server, call) = (Arc::clone(server), format!("handed-{number}"));
        let calling = thread::spawn(move || cluster::delegate(&server, "hash", "abc", &call));
        orders.next().await.unwrap();
        let start = Instant::now();
        // The entry that creates it may be on its way.
        loop {
            let entry: Value = serde_json::from_slice(&tasks.next().await.unwrap().payload).unwrap();
            match entry["record"]["state"].as_str() {
                Some("running") => times.push(start.elapsed()),
                Some("completed") => break,
                _ => {}
            }
        }
        assert_eq!(calling.join().unwrap()["ok"], true);
    }
    median(times)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}
