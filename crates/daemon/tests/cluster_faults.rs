//! Faults of a cluster: three NATS servers and three workers, of which anyone may be killed at any time.
//!
//! After each run a program reads everything that the bucket of tasks has seen: every admitted task has one end, no end
//! changes, nothing was written over anything, and what cannot be run again was run by one worker. Facts are checked
//! for linearizability.
//!
//! A short storm runs with the other tests. The long one: `cargo test -p toolshelf --test cluster_faults -- --ignored
//! --nocapture --test-threads 1`, about four minutes.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that says where it cannot go on, and its figures"
)]

#[path = "common/cluster.rs"]
mod cluster;
mod common;
#[path = "common/facts_history.rs"]
mod facts_history;
#[path = "common/history.rs"]
mod history;
#[path = "common/proxy.rs"]
mod proxy;
#[path = "common/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{ENDS, Setting, Worker, address, delegate, status, wait_for};
use rustix::process::Signal;
use serde_json::json;
use server::Server;
use toolshelf_core::digest::Digest;
use toolshelf_nats::{Cluster, Options, Server as Nats};

const LEASE: &str = "lease-ms = 2000\nreplicas = 3";
/// Threads that admit.
const CALLERS: usize = 6;
/// How long a call is made again under its name until somebody answers.
const CALL_PATIENCE: Duration = Duration::from_secs(90);

/// A storm: how many tasks, and which faults one after the other while they are admitted and run.
struct Storm {
    tasks: usize,
    faults: Vec<Fault>,
    calm: Duration,
    drain: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    KillWorker,
    StopWorker,
    KillLeader,
    KillFollower,
    KillTwo,
    RepeatOrders,
}

/// What was asked, and where it is.
struct Asked {
    agent: &'static str,
    task: String,
    address: String,
}

impl Storm {
    fn run(&self) {
        let mut nats = Cluster::start();
        let urls = nats.urls();
        history::keep_all(&urls, 3);
        let setting = Setting::new(&urls, LEASE);
        let server = Arc::new(setting.serve(None));
        let mut workers: Vec<Worker> = (0..3).map(|n| setting.worker(&format!("w{n}"), 8)).collect();
        // Known before the faults begin.
        wait_for(&server, &address(&delegate(&server, "sleeper", "0", "first")), &ENDS);

        let start = Instant::now();
        let admitted: Arc<Mutex<BTreeMap<String, Asked>>> = Arc::default();
        let callers: Vec<_> = (0..CALLERS).map(|caller| self.caller(caller, &server, &admitted)).collect();
        let mut number = 3;
        for fault in &self.faults {
            thread::sleep(self.calm);
            println!(
                "{:>6.1} s: {fault:?}, {} admitted",
                start.elapsed().as_secs_f64(),
                admitted.lock().unwrap().len()
            );
            match fault {
                Fault::KillWorker => {
                    let mut gone = workers.remove(0);
                    gone.kill();
                    workers.push(setting.worker(&format!("w{number}"), 8));
                    number += 1;
                }
                Fault::StopWorker => {
                    workers[0].signal(Signal::STOP);
                    thread::sleep(Duration::from_secs(6));
                    workers[0].signal(Signal::CONT);
                }
                Fault::KillLeader | Fault::KillFollower => {
                    let leader = history::leader(&urls, "KV_toolshelf_tasks").unwrap();
                    let is_leader = matches!(fault, Fault::KillLeader);
                    let victim = nats.servers.iter().find(|one| (one.name() == leader) == is_leader).unwrap();
                    let name = victim.name().to_owned();
                    nats.named(&name).kill();
                    thread::sleep(Duration::from_secs(3));
                    nats.restart();
                }
                Fault::KillTwo => {
                    nats.servers[..2].iter_mut().for_each(Nats::kill);
                    thread::sleep(Duration::from_secs(4));
                    nats.restart();
                }
                Fault::RepeatOrders => {
                    let addresses: Vec<String> =
                        admitted.lock().unwrap().keys().rev().take(20).cloned().collect();
                    for address in addresses {
                        history::order_again(&urls, &Digest::of(address.as_bytes()).to_string());
                    }
                }
            }
        }
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        let admitted = admitted.lock().unwrap();
        println!(
            "{:>6.1} s: {} of {} admitted, {} in flight",
            start.elapsed().as_secs_f64(),
            admitted.len(),
            self.tasks,
            in_flight(&server)
        );
        assert_eq!(admitted.len(), self.tasks, "every call was answered in the end");
        self.drain(&urls, &server, &admitted, start);
        self.judge(&urls, &server, &admitted);
    }

    fn caller(
        &self,
        caller: usize,
        server: &Arc<Server>,
        admitted: &Arc<Mutex<BTreeMap<String, Asked>>>,
    ) -> thread::JoinHandle<()> {
        let (server, admitted, tasks) = (Arc::clone(server), Arc::clone(admitted), self.tasks);
        thread::spawn(move || {
            for number in (caller..tasks).step_by(CALLERS) {
                let (agent, task) = if number % 10 == 7 {
                    ("sleeper", "0.3".to_owned())
                } else {
                    ("hash", format!("text {number}"))
                };
                let give_up = Instant::now() + CALL_PATIENCE;
                let answer = loop {
                    let answer = delegate(&server, agent, &task, &format!("call-{number}"));
                    if answer["ok"] == true {
                        break answer;
                    }
                    assert!(Instant::now() < give_up, "{answer}");
                    thread::sleep(Duration::from_millis(200));
                };
                let address = address(&answer);
                if number % 40 == 3 {
                    let _ = server.post("/v1/tasks/cancel", &json!({ "address": address }));
                }
                admitted.lock().unwrap().insert(address.clone(), Asked { agent, task, address });
            }
        })
    }

    /// Waits until all have ended, as far as the history says.
    fn drain(&self, urls: &str, server: &Server, admitted: &BTreeMap<String, Asked>, start: Instant) {
        let give_up = Instant::now() + self.drain;
        while in_flight(server) > 0 && Instant::now() < give_up {
            thread::sleep(Duration::from_millis(200));
        }
        loop {
            let left = history::problems(&history::read(urls), admitted.keys()).len();
            if left == 0 || Instant::now() > give_up {
                println!("{:>6.1} s: {left} left", start.elapsed().as_secs_f64());
                return;
            }
            thread::sleep(Duration::from_secs(1));
        }
    }

    fn judge(&self, urls: &str, server: &Server, admitted: &BTreeMap<String, Asked>) {
        let history = history::read(urls);
        let problems = history::problems(&history, admitted.keys());
        assert!(
            problems.is_empty(),
            "{} problems, such as:\n{}",
            problems.len(),
            problems[..problems.len().min(5)].join("\n")
        );
        let mut counts = BTreeMap::new();
        let mut taken_over = 0;
        for asked in admitted.values() {
            let last = history[&asked.address].last().unwrap();
            let record = &last["record"];
            if record["state"] == "completed" && asked.agent == "hash" {
                assert_eq!(record["answer"], Digest::of(asked.task.as_bytes()).to_string());
            }
            taken_over += usize::from(last["claim"]["attempt"] == 2);
            *counts.entry((asked.agent, record["state"].as_str().unwrap().to_owned())).or_insert(0) += 1;
        }
        println!("ends: {counts:?}; taken over: {taken_over}");
        // What the companion says is what is written.
        for address in admitted.keys().take(20) {
            assert_eq!(status(server, address)["state"], history[address].last().unwrap()["record"]["state"]);
        }
    }
}

fn in_flight(server: &Server) -> u64 {
    let view = server.get("/v1/cluster").json();
    view["cluster"]["waiting"].as_u64().unwrap_or_default()
        + view["cluster"]["running"].as_u64().unwrap_or_default()
}

#[test]
fn a_short_storm_leaves_every_task_with_one_end() {
    let faults = vec![Fault::KillWorker, Fault::RepeatOrders, Fault::KillLeader];
    Storm { tasks: 150, faults, calm: Duration::from_secs(1), drain: Duration::from_secs(60) }.run();
}

#[test]
#[ignore = "takes some minutes"]
fn a_long_storm_of_ten_thousand_tasks_leaves_every_task_with_one_end() {
    use Fault::{KillFollower, KillLeader, KillTwo, KillWorker, RepeatOrders, StopWorker};
    let round = [KillWorker, KillLeader, RepeatOrders, StopWorker, KillFollower, KillTwo];
    let faults = round.iter().cycle().take(12).copied().collect();
    Storm { tasks: 10_000, faults, calm: Duration::from_secs(4), drain: Duration::from_secs(600) }.run();
}

#[test]
fn facts_are_linearizable_while_a_server_is_killed() {
    facts_history::check(3, 60, 1);
}

#[test]
#[ignore = "takes some minutes"]
fn facts_are_linearizable_through_a_long_storm() {
    facts_history::check(6, 400, 8);
}

#[test]
fn a_worker_that_is_cut_off_ends_what_it_runs_and_another_goes_on() {
    let nats = Nats::start();
    let setting = Setting::new(&nats.url(), "lease-ms = 1500");
    let server = setting.serve(None);
    let cut = proxy::Proxy::to(nats.port());
    let one = setting.worker_with("one", 1, &["--cluster", &cut.url()]);
    let task = address(&delegate(&server, "sleeper", "50", "call-1"));
    wait_for(&server, &task, &["running"]);
    cut.hold();
    let _other = setting.worker("other", 1);
    let ended = wait_for(&server, &task, &ENDS);
    assert_eq!(
        (&ended["state"], &ended["reason"]),
        (&json!("interrupted"), &json!("environment-ended-outcome-unknown"))
    );
    let next = address(&delegate(&server, "sleeper", "0.1", "call-2"));
    assert_eq!(wait_for(&server, &next, &ENDS)["state"], "completed");
    cut.release();
    // The one that was cut off works again.
    let more: Vec<_> =
        (0..6).map(|n| address(&delegate(&server, "sleeper", "0.5", &format!("more-{n}")))).collect();
    more.iter().for_each(|task| assert_eq!(wait_for(&server, task, &ENDS)["state"], "completed"));
    assert_eq!(status(&server, &task), ended);
    let log = one.end();
    assert!(log.contains("not heard of for a lease"), "{log}");
}

#[test]
fn a_full_disk_is_named_and_nothing_that_was_admitted_is_lost() {
    let store = tempfile::tempdir().unwrap();
    let options =
        Options { store: Some(store.path().into()), max_bytes: Some(400_000), ..Options::default() };
    let nats = Nats::with(&options);
    history::keep_all(&nats.url(), 1);
    let setting = Setting::new(&nats.url(), "lease-ms = 2000");
    let server = setting.serve(None);
    let mut admitted = Vec::new();
    let text = "x".repeat(8_000);
    let refused = loop {
        let answer = delegate(
            &server,
            "hash",
            &format!("{}{text}", admitted.len()),
            &format!("call-{}", admitted.len()),
        );
        if answer["ok"] != true {
            break answer;
        }
        admitted.push(address(&answer));
        assert!(admitted.len() < 500, "the store has no end");
    };
    assert_eq!(refused["refused"], "placement-unavailable", "{refused}");
    assert!(refused["why"].as_str().unwrap().contains("full"), "{refused}");
    assert!(!admitted.is_empty());
    admitted.iter().for_each(|task| assert_eq!(status(&server, task)["state"], "queued"));
}
