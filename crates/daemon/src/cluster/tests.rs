//! The journal over a real server: the suite of all journals, and what only workers do.

use std::rc::Rc;

use tokio::runtime::Builder;
use tokio::task::LocalSet;
use toolshelf_core::task::{ReduceFault, TaskEvent, TaskState};
use toolshelf_host::Journal as _;
use toolshelf_host::task_ports::{CallKey, Draft, Durability, JournalFault};
use toolshelf_nats::Server;

use super::config::ClusterConfig;
use super::connection::{ClusterFault, Connection};
use super::journal::{Claimed, NatsJournal};
use super::stored::{ToolPin, Work, task_key};
use crate::machine::journal::conformance::Journals;
use crate::machine::journal::tests::creation_at;

const NOW: u64 = 1_767_225_700_000;

fn on_one_thread<T>(work: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, work)
}

fn config(server: &Server) -> ClusterConfig {
    ClusterConfig { servers: server.url(), lease_ms: 1_000, queue: 100, ..ClusterConfig::default() }
}

fn creation(number: u32) -> Draft {
    creation_at("/cluster", number)
}

fn call(number: u32) -> CallKey {
    CallKey::new("env_0123456789abcdef", "epoch", "local", &format!("call-{number}"))
}

/// A tool is repeatable, anything else is not.
fn work_of(agent: &str) -> Work {
    let tool = ToolPin { digest: String::new(), abi: String::new() };
    let repeatable = agent == "hash";
    Work { tool: repeatable.then_some(tool), repeatable }
}

async fn front(server: &Server) -> (Connection, NatsJournal) {
    let connection = Connection::open(&config(server), "test").await.unwrap();
    let journal = NatsJournal::of_front(connection.clone(), Rc::new(|input| work_of(&input.agent)));
    (connection, journal)
}

fn worker(connection: &Connection, name: &str) -> NatsJournal {
    NatsJournal::of_worker(connection.clone(), name.to_owned())
}

async fn end(journal: &NatsJournal, creation: &Draft, state: TaskState) -> Result<(), JournalFault> {
    let event = TaskEvent::to(&*creation.event.address, state);
    journal.append(&Draft { at: creation.at.clone(), event }, Durability::Strict).await.map(drop)
}

#[test]
fn the_journal_keeps_what_every_journal_promises() {
    let server = Server::start();
    on_one_thread(async {
        let ((_, one), (_, other)) = (front(&server).await, front(&server).await);
        Journals { one, other, creation: Rc::new(creation) }.hold().await;
    });
}

#[test]
fn one_worker_has_a_task_and_who_lost_it_is_refused() {
    let server = Server::start();
    on_one_thread(async {
        let (connection, journal) = front(&server).await;
        let (one, other) = (worker(&connection, "one"), worker(&connection, "other"));
        let task = creation(1);
        let key = task_key(&task.event.address);
        assert!(matches!(one.claim(&key, None, NOW).await, Ok(Claimed::Missing)));
        journal.admit(&task, &call(1)).await.unwrap();
        let Claimed::Mine(stored) = one.claim(&key, None, NOW).await.unwrap() else { panic!() };
        assert_eq!(stored.record.state, TaskState::Running);
        let first = stored.claim.unwrap();
        let Claimed::Anothers(stored) = other.claim(&key, None, NOW).await.unwrap() else { panic!() };
        assert_eq!(stored.claim.as_ref(), Some(&first));

        // A tool can be run again, once.
        let Claimed::Mine(stored) = other.claim(&key, Some(&first), NOW).await.unwrap() else { panic!() };
        let second = stored.claim.unwrap();
        assert_eq!((second.attempt, stored.record.state), (2, TaskState::Running));
        let late = end(&one, &task, TaskState::Completed).await;
        assert_eq!(late, Err(JournalFault::Rejected(ReduceFault::NoLiveAdmission)));
        assert_eq!(journal.record(&task.event.address).await.unwrap().unwrap().state, TaskState::Running);
        let third = worker(&connection, "third");
        assert!(matches!(third.claim(&key, Some(&second), NOW).await, Ok(Claimed::Ended)));
        let record = journal.record(&task.event.address).await.unwrap().unwrap();
        assert_eq!(record.state, TaskState::Interrupted);
        assert_eq!(record.reason.as_deref(), Some("environment-ended-outcome-unknown"));
        assert!(end(&other, &task, TaskState::Completed).await.is_err());
    });
}

#[test]
fn what_cannot_be_run_again_is_interrupted() {
    let server = Server::start();
    on_one_thread(async {
        let (connection, journal) = front(&server).await;
        let mut task = creation(1);
        task.event.created.as_mut().unwrap().input.agent = "an-agent".to_owned();
        journal.admit(&task, &call(1)).await.unwrap();
        let key = task_key(&task.event.address);
        let one = worker(&connection, "one");
        let Claimed::Mine(stored) = one.claim(&key, None, NOW).await.unwrap() else { panic!() };
        let taken = worker(&connection, "other").claim(&key, stored.claim.as_ref(), NOW).await;
        assert!(matches!(taken, Ok(Claimed::Ended)));
        let record = journal.record(&task.event.address).await.unwrap().unwrap();
        assert_eq!(record.state, TaskState::Interrupted);
    });
}

#[test]
fn what_an_admission_has_left_undone_is_done_by_who_finds_it() {
    let server = Server::start();
    on_one_thread(async {
        let (connection, journal) = front(&server).await;
        let task = creation(1);
        journal.admit(&task, &call(1)).await.unwrap();
        let key = task_key(&task.event.address);
        // As if who admitted it had ended after its first write.
        connection.tasks.purge(&key).await.unwrap();
        connection.orders.purge().await.unwrap();
        assert_eq!(journal.record(&task.event.address).await, Ok(None));
        let (_, other) = front(&server).await;
        assert_eq!(other.address_of(&call(1)).await, Ok(Some(task.event.address.clone())));
        assert!(matches!(worker(&connection, "one").claim(&key, None, NOW).await, Ok(Claimed::Mine(_))));
    });
}

#[test]
fn clocks_that_are_a_minute_apart_change_nothing_but_what_is_shown() {
    const MINUTE: u64 = 60_000;
    let server = Server::start();
    on_one_thread(async {
        let (connection, journal) = front(&server).await;
        for (number, now) in [(1, NOW - MINUTE), (2, NOW + MINUTE)] {
            let mut task = creation(number);
            task.at = toolshelf_core::task::time::iso_time(NOW);
            journal.admit(&task, &call(number)).await.unwrap();
            let key = task_key(&task.event.address);
            let (one, other) = (worker(&connection, "one"), worker(&connection, "other"));
            let Claimed::Mine(stored) = one.claim(&key, None, now).await.unwrap() else { panic!() };
            // One whose clock is off in the other direction takes nothing over that nobody gave up.
            assert!(matches!(other.claim(&key, None, 2 * NOW - now).await, Ok(Claimed::Anothers(_))));
            assert_eq!(stored.record.updated_at, toolshelf_core::task::time::iso_time(now));
            end(&one, &task, TaskState::Completed).await.unwrap();
            let states: Vec<_> = journal.moments(&task.event.address).await.unwrap();
            let states: Vec<_> = states.into_iter().map(|moment| moment.state).collect();
            assert_eq!(states, [TaskState::Queued, TaskState::Running, TaskState::Completed]);
        }
    });
}

#[test]
fn a_full_queue_is_named_and_leaves_nothing() {
    let server = Server::start();
    on_one_thread(async {
        let config = ClusterConfig { queue: 2, ..config(&server) };
        let connection = Connection::open(&config, "test").await.unwrap();
        let journal = NatsJournal::of_front(connection, Rc::new(|input| work_of(&input.agent)));
        for number in 0..2 {
            journal.admit(&creation(number), &call(number)).await.unwrap();
        }
        let Err(JournalFault::Refused(refusal)) = journal.admit(&creation(2), &call(2)).await else {
            panic!()
        };
        assert_eq!(refusal.code.as_str(), "task-capacity-exhausted", "{refusal}");
        assert_eq!(journal.address_of(&call(2)).await, Ok(None));
        assert_eq!(journal.record(&creation(2).event.address).await, Ok(None));
        assert_eq!(journal.recent(None, 10).await.unwrap().len(), 2);
    });
}

#[test]
fn a_lost_server_is_named_and_found_again() {
    let mut server = Server::start();
    on_one_thread(async {
        let (connection, journal) = front(&server).await;
        journal.admit(&creation(1), &call(1)).await.unwrap();
        server.kill();
        let Err(JournalFault::Refused(refusal)) = journal.admit(&creation(2), &call(2)).await else {
            panic!()
        };
        assert_eq!(refusal.code.as_str(), "placement-unavailable", "{refusal}");
        server.restart();
        let mut again = Err(ClusterFault::Slow);
        for _ in 0..100 {
            again = journal.stored(&task_key(&creation(1).event.address)).await;
            if again.is_ok() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(again.unwrap().unwrap().1.record.state, TaskState::Queued);
        assert!(connection.is_connected());
    });
}
