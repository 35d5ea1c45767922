use std::fs;
use std::path::Path;

use futures::executor::block_on;
use toolshelf_nats::Server;

use super::*;
use crate::rules::id_of;

/// A server of the test, and how many stores it has had.
fn open(server: &Server, bucket: &str) -> NatsStore {
    let options = NatsOptions { servers: server.url(), bucket: bucket.to_owned(), replicas: 1 };
    NatsStore::open(&options, ConnectOptions::new(), PrivacyRule::default()).unwrap()
}

/// Buckets of one server; each case gets its own.
struct Buckets {
    server: Server,
    next: std::sync::atomic::AtomicU64,
}

crate::conformance::suite!(|privacy: PrivacyRule| {
    thread_local! {
        static BUCKETS: Buckets = Buckets { server: Server::start(), next: 0.into() };
    }
    BUCKETS.with(|buckets| {
        let number = buckets.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let bucket = format!("facts{number}");
        let options = NatsOptions { servers: buckets.server.url(), bucket, replicas: 1 };
        (NatsStore::open(&options, ConnectOptions::new(), privacy).unwrap(), ())
    })
});

fn put(store: &NatsStore, entity: &str, key: &str, value: &str) -> Fact {
    block_on(store.store(NewFact::new(entity, key, value), Moment::from_unix_ms(1))).unwrap()
}

fn all(store: &NatsStore) -> Vec<Fact> {
    block_on(store.export(&ExportRequest::default())).unwrap().facts
}

/// How often a text stands in the files below a folder.
fn copies(folder: &Path, text: &str) -> usize {
    let count = |entry: fs::DirEntry| {
        if entry.file_type().unwrap().is_dir() {
            return copies(&entry.path(), text);
        }
        let bytes = fs::read(entry.path()).unwrap_or_default();
        bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
    };
    fs::read_dir(folder).unwrap().map(|entry| count(entry.unwrap())).sum()
}

#[test]
fn stores_of_one_bucket_are_one_store() {
    let server = Server::start();
    let (one, other) = (open(&server, "facts"), open(&server, "facts"));
    let first = put(&one, "e", "k", "1");
    let second = put(&other, "e", "k", "2");
    assert_eq!((second.version, second.supersedes.as_ref()), (2, Some(&first.fact_id)));
    assert_eq!(block_on(one.latest("e", "k")).unwrap(), Some(second.clone()));
    block_on(one.delete(&second.fact_id)).unwrap();
    assert_eq!(block_on(other.latest("e", "k")).unwrap(), None);
    assert_eq!(put(&other, "e", "k", "3").fact_id, id_of(2));
}

#[test]
fn writers_that_meet_lose_nothing_and_number_without_gaps() {
    let server = Server::start();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let store = open(&server, "facts");
            std::thread::spawn(move || {
                for round in 0..25 {
                    put(&store, "e", &format!("k{}", round % 3), &format!("{thread} {round}"));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let store = open(&server, "facts");
    let ids: Vec<String> = all(&store).into_iter().map(|fact| fact.fact_id).collect();
    assert_eq!(ids, (0..100).map(id_of).collect::<Vec<_>>());
    let versions = ["k0", "k1", "k2"].map(|key| block_on(store.history("e", key)).unwrap());
    for history in versions {
        let expected: Vec<u64> = (1..=history.len() as u64).rev().collect();
        assert_eq!(history.iter().map(|fact| fact.version).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_store_that_is_opened_again_is_the_same_and_knows_what_was_deleted() {
    let server = Server::start();
    let store = open(&server, "facts");
    for round in 0..30 {
        put(&store, "e", &format!("k{}", round % 7), &round.to_string());
    }
    let bulk = vec![NewFact::new("b", "k", "1"), NewFact::new("b", "k", "2"), NewFact::new("b", "l", "3")];
    let stored = block_on(store.store_bulk(bulk, Moment::from_unix_ms(9))).unwrap();
    block_on(store.delete(&stored[0].fact_id)).unwrap();
    block_on(store.delete(&stored[2].fact_id)).unwrap();
    let middle = block_on(store.history("e", "k0")).unwrap()[2].fact_id.clone();
    block_on(store.delete(&middle)).unwrap();
    let before = (all(&store), block_on(store.history("e", "k0")).unwrap());
    let again = open(&server, "facts");
    assert_eq!((all(&again), block_on(again.history("e", "k0")).unwrap()), before);
    let next = put(&again, "n", "k", "v");
    assert_eq!((next.fact_id, next.stored_at), (id_of(33), Moment::from_unix_ms(9)));
}

#[test]
fn deleting_leaves_no_readable_copy_on_the_server() {
    let server = Server::start();
    let store = open(&server, "facts");
    for index in 0..40 {
        put(&store, &format!("notes::{index}"), "text", &format!("ordinary {index}"));
    }
    put(&store, "person::SecretName", "SecretKey", "SecretValue first");
    let secret = put(&store, "person::SecretName", "SecretKey", "SecretValue last");
    put(&store, "notes::after", "text", "ordinary");
    assert!(copies(&server.store(), "SecretValue") >= 2);
    assert_eq!(block_on(store.delete(&secret.fact_id)).unwrap().versions, 2);
    for text in ["SecretName", "SecretKey", "SecretValue"] {
        assert_eq!(copies(&server.store(), text), 0, "{text}");
    }
    assert_eq!(all(&store).len(), 41);
}

#[test]
fn what_was_acknowledged_is_there_after_the_server_was_killed() {
    let mut server = Server::start();
    let store = open(&server, "facts");
    let stored: Vec<Fact> = (0..50).map(|index| put(&store, "e", "k", &index.to_string())).collect();
    server.kill();
    let refused = block_on(store.latest("e", "k")).unwrap_err();
    assert!(matches!(refused, FactError::Unavailable(_)), "{refused}");
    server.restart();
    let kept = block_on(open(&server, "facts").history("e", "k")).unwrap();
    assert_eq!(kept.len(), stored.len());
    // The store that has lost its server finds it again.
    assert_eq!(put(&store, "e", "k", "later").version, 51);
}

#[test]
fn a_value_of_any_bytes_and_of_the_largest_size_is_kept_as_it_is() {
    let server = Server::start();
    let store = open(&server, "facts");
    let value = "\u{1}\n".repeat(crate::fact::FACT_VALUE_MAX_BYTES / 2);
    let stored = put(&store, "e", "k", &value);
    assert_eq!(block_on(open(&server, "facts").get(&stored.fact_id)).unwrap(), Some(stored));
}
