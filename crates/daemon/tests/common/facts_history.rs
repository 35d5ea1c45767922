//! Facts under faults: several stores write and read a few facts while servers are killed, and a checker of
//! linearizability looks at what each of them was told, and when.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that says where it cannot go on, and its figures"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::ConnectOptions;
use futures::executor::block_on;
use porcupine_rs::{CheckResult, Model, Operation, check_operations_timeout};
use toolshelf_facts::{FactStore as _, Moment, NatsOptions, NatsStore, NewFact, PrivacyRule};
use toolshelf_nats::{Cluster, Server};

const KEYS: [&str; 3] = ["a", "b", "c"];
/// How long the checker may think.
const THINKING: Duration = Duration::from_secs(120);

/// One fact: its version and its value.
type State = Option<(u64, String)>;

#[derive(Debug, Clone)]
enum Op {
    /// A write, and the version that it was told; `None` where nobody said what came of it.
    Store { key: &'static str, value: String, version: Option<u64> },
    /// A read, and what it was told.
    Latest { key: &'static str, found: State },
}

#[derive(Debug, Clone)]
struct Fact;

impl Model for Fact {
    type State = State;
    type Op = Op;
    type Metadata = ();

    fn partition_operations(history: &[Operation<Self>]) -> Vec<Vec<Operation<Self>>> {
        let mut by_key: BTreeMap<&str, Vec<Operation<Self>>> = BTreeMap::new();
        for operation in history {
            let (Op::Store { key, .. } | Op::Latest { key, .. }) = &operation.op;
            by_key.entry(key).or_default().push(operation.clone());
        }
        by_key.into_values().collect()
    }

    fn init() -> State {
        None
    }

    fn step(state: &State, op: &Op) -> (bool, State) {
        match op {
            Op::Latest { found, .. } => (found == state, state.clone()),
            Op::Store { value, version, .. } => {
                let next = state.as_ref().map_or(1, |(version, _)| version + 1);
                (version.is_none_or(|version| version == next), Some((next, value.clone())))
            }
        }
    }
}

/// Runs `clients` stores that make `operations` each, while servers are killed `kills` times, and checks.
pub(crate) fn check(clients: usize, operations: usize, kills: usize) {
    let mut nats = Cluster::start();
    let options = NatsOptions { servers: nats.urls(), bucket: "facts".into(), replicas: 3 };
    let history: Arc<Mutex<Vec<Operation<Fact>>>> = Arc::default();
    let (start, done) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let threads: Vec<_> = (0..clients)
        .map(|client| {
            let store = NatsStore::open(&options, ConnectOptions::new(), PrivacyRule::default()).unwrap();
            let (history, done) = (Arc::clone(&history), Arc::clone(&done));
            thread::spawn(move || {
                for number in 0..operations {
                    let operation = operate(&store, client, number, start);
                    history.lock().unwrap().extend(operation);
                    done.fetch_add(1, Ordering::Relaxed);
                    // Long enough for the faults to fall into the middle.
                    thread::sleep(Duration::from_millis(10));
                }
            })
        })
        .collect();
    let all = clients * operations;
    for kill in 1..=kills {
        while done.load(Ordering::Relaxed) < all * kill / (kills + 1) {
            thread::sleep(Duration::from_millis(20));
        }
        let victims = if kill % 4 == 0 { 2 } else { 1 };
        println!("{:>6.1} s: {victims} of 3 servers killed", start.elapsed().as_secs_f64());
        (0..victims).for_each(|victim| nats.servers[(kill + victim) % 3].kill());
        thread::sleep(Duration::from_secs(2));
        nats.restart();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let history = history.lock().unwrap().clone();
    let unknown = history.iter().filter(|one| matches!(one.op, Op::Store { version: None, .. })).count();
    println!(
        "{} operations, {unknown} of unknown outcome, in {:.1} s",
        history.len(),
        start.elapsed().as_secs_f64()
    );
    assert!(history.len() - unknown > all / 2, "most operations were answered");
    assert_eq!(check_operations_timeout(&history, THINKING), CheckResult::Ok);
    last_versions_are_there(&options, &history);
    assert!(nats.servers.iter().all(Server::runs));
}

fn operate(store: &NatsStore, client: usize, number: usize, start: Instant) -> Option<Operation<Fact>> {
    let key = KEYS[(client + number * 7) % KEYS.len()];
    let call_time = nanos(start);
    let op = if number.is_multiple_of(3) {
        // A read that failed says nothing.
        let found = block_on(store.latest("e", key)).ok()?;
        Op::Latest { key, found: found.map(|fact| (fact.version, fact.value)) }
    } else {
        let value = format!("{client} {number}");
        let stored = block_on(store.store(NewFact::new("e", key, &*value), Moment::from_unix_ms(1)));
        Op::Store { key, value, version: stored.ok().map(|fact| fact.version) }
    };
    // What nobody knows the outcome of may take effect at any later time.
    let unknown = matches!(op, Op::Store { version: None, .. });
    let return_time = if unknown { i64::MAX } else { nanos(start) };
    Some(Operation { client_id: Some(client as u32), call_time, return_time, op, metadata: None })
}

/// No fact that was acknowledged is lost.
fn last_versions_are_there(options: &NatsOptions, history: &[Operation<Fact>]) {
    let store = NatsStore::open(options, ConnectOptions::new(), PrivacyRule::default()).unwrap();
    for key in KEYS {
        let kept = block_on(store.history("e", key)).unwrap();
        for operation in history {
            if let Op::Store { key: of, value, version: Some(version) } = &operation.op
                && *of == key
            {
                let fact = kept.iter().find(|fact| fact.version == *version);
                assert_eq!(fact.map(|fact| &fact.value), Some(value), "{key} {version}");
            }
        }
    }
}

fn nanos(start: Instant) -> i64 {
    start.elapsed().as_nanos().try_into().unwrap()
}
