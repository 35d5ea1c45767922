//! Tasks over a cluster of real processes: a NATS server, a companion that admits, workers that run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[path = "common/cluster.rs"]
mod cluster;
mod common;
#[path = "common/server.rs"]
mod server;

use cluster::{ENDS, Setting, address, delegate, status, wait_for};
use rustix::process::Signal;
use serde_json::json;
use toolshelf_nats::Server as Nats;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// A short lease, so that what is lost is found soon.
const LEASE: &str = "lease-ms = 1500";

#[test]
fn a_task_that_is_admitted_here_runs_on_a_worker() {
    let nats = Nats::start();
    let setting = Setting::new(&nats.url(), LEASE);
    let server = setting.serve(None);
    let refused = delegate(&server, "sleeper", "0", "before");
    assert_eq!(refused["refused"], "agent-not-configured", "no worker has said that it has such an agent");
    let one = setting.worker("one", 2);

    let answer = delegate(&server, "hash", "abc", "call-1");
    assert_eq!((&answer["ok"], &answer["existing"]), (&json!(true), &json!(false)), "{answer}");
    let task = wait_for(&server, &address(&answer), &ENDS);
    assert_eq!((&task["state"], &task["answer"]), (&json!("completed"), &json!(ABC)), "{task}");
    assert_eq!((&task["placement"], task.get("stale")), (&json!("remote"), None));
    let again = delegate(&server, "hash", "abc", "call-1");
    assert_eq!((&again["existing"], &again["task"]["answer"]), (&json!(true), &json!(ABC)));
    let other = delegate(&server, "hash", "abcd", "call-1");
    assert_eq!(other["refused"], "task-call-id-conflict");

    let slept = delegate(&server, "sleeper", "0.1", "call-2");
    let task = wait_for(&server, &address(&slept), &ENDS);
    assert_eq!((&task["state"], &task["answer"]), (&json!("completed"), &json!("slept 0.1\n")), "{task}");

    // Another companion of the cluster sees the same tasks, and facts.
    let second = setting.serve(None);
    assert_eq!(status(&second, &address(&answer))["answer"], ABC);
    let rows = second.get("/v1/tasks?environment=cluster&limit=10").json();
    let titles: Vec<_> = rows["rows"].as_array().unwrap().iter().map(|row| row["title"].clone()).collect();
    assert_eq!(titles, ["0.1", "abc"]);
    let position = rows["rows"][1]["position"].as_u64().unwrap();
    let detail =
        second.post("/v1/commands/task_detail", &json!({"environment": "cluster", "position": position}));
    let states: Vec<_> = detail.json()["detail"]["moments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|moment| moment["state"].clone())
        .collect();
    assert_eq!(states, ["queued", "running", "completed"]);
    let fact = json!({"entity": "notes::a", "key": "k", "value": "shared"});
    assert_eq!(server.send("PUT", "/v1/facts", &fact).status, 201);
    assert_eq!(second.get("/v1/facts?entity=notes::a").json()["facts"][0]["value"], "shared");

    let view = second.get("/v1/cluster").json();
    assert_eq!(view["cluster"]["workers"][0]["name"], "one", "{view}");
    assert_eq!((&view["cluster"]["waiting"], &view["cluster"]["running"]), (&json!(0), &json!(0)));
    let file = json!({"input": {"file": "a.txt"}}).to_string();
    assert_eq!(delegate(&server, "hash", &file, "call-3")["refused"], "task-root-unavailable");
    let log = one.end();
    // However much is logged, messages are not: they have keys and facts in them.
    for log in [log, server.log(), second.log()] {
        assert!(!log.contains("JetStream") && !log.contains("last_by_subj"), "{log}");
    }
    assert_eq!(server.get("/v1/cluster").json()["cluster"]["workers"], json!([]));
}

#[test]
fn a_cancellation_reaches_the_worker_and_a_task_that_waits_never_begins() {
    let nats = Nats::start();
    let setting = Setting::new(&nats.url(), LEASE);
    let server = setting.serve(None);
    let _one = setting.worker("one", 1);
    let runs = address(&delegate(&server, "sleeper", "50", "call-1"));
    wait_for(&server, &runs, &["running"]);
    let waits = address(&delegate(&server, "sleeper", "0", "call-2"));
    let cancelled = server.post("/v1/tasks/cancel", &json!({ "address": waits })).json();
    assert_eq!(
        (&cancelled["state"], &cancelled["observed"]),
        (&json!("cancelled"), &json!(true)),
        "{cancelled}"
    );
    let cancelled = server.post("/v1/tasks/cancel", &json!({ "address": runs })).json();
    assert_eq!(cancelled["ok"], true, "{cancelled}");
    assert_eq!(wait_for(&server, &runs, &ENDS)["state"], "cancelled");
    // The place is free again.
    let next = address(&delegate(&server, "sleeper", "0", "call-3"));
    assert_eq!(wait_for(&server, &next, &ENDS)["state"], "completed");
    assert_eq!(status(&server, &waits)["state"], "cancelled");
}

#[test]
fn tasks_of_a_worker_that_is_killed_are_taken_over_once_or_interrupted() {
    let nats = Nats::start();
    let setting = Setting::new(&nats.url(), LEASE);
    let shelf = common::one_tool_of_text(common::SPINS);
    let server = setting.serve(Some(shelf.path()));
    let mut one = setting.worker("one", 2);
    let (agent, tool) =
        (delegate(&server, "sleeper", "50", "call-1"), delegate(&server, "case", "x", "call-2"));
    for task in [&agent, &tool] {
        wait_for(&server, &address(task), &["running"]);
    }
    let _other = setting.worker("other", 2);
    one.kill();
    let task = wait_for(&server, &address(&agent), &ENDS);
    assert_eq!(
        (&task["state"], &task["reason"]),
        (&json!("interrupted"), &json!("environment-ended-outcome-unknown"))
    );
    // The tool runs again from its beginning, and ends by its own limits.
    let task = wait_for(&server, &address(&tool), &ENDS);
    assert_eq!((&task["state"], &task["reason"]), (&json!("failed"), &json!("time-exceeded")), "{task}");
}

#[test]
fn a_worker_that_comes_back_late_is_refused() {
    let nats = Nats::start();
    let setting = Setting::new(&nats.url(), LEASE);
    let server = setting.serve(None);
    let one = setting.worker("one", 1);
    let task = address(&delegate(&server, "sleeper", "3", "call-1"));
    wait_for(&server, &task, &["running"]);
    one.signal(Signal::STOP);
    let _other = setting.worker("other", 1);
    let ended = wait_for(&server, &task, &ENDS);
    assert_eq!(ended["state"], "interrupted", "{ended}");
    one.signal(Signal::CONT);
    // It goes on to work, and what it has to say of the lost task is refused.
    let next: Vec<_> =
        (0..4).map(|n| address(&delegate(&server, "sleeper", "0.1", &format!("next-{n}")))).collect();
    next.iter().for_each(|task| assert_eq!(wait_for(&server, task, &ENDS)["state"], "completed"));
    assert_eq!(status(&server, &task), ended);
    let log = one.end();
    assert!(log.contains("not heard of for a lease") || log.contains("came late"), "{log}");
    assert_eq!(status(&server, &task), ended);
}

#[test]
fn a_cluster_that_is_lost_is_named_and_found_again() {
    let mut nats = Nats::start();
    let setting = Setting::new(&nats.url(), LEASE);
    let server = setting.serve(None);
    let _one = setting.worker("one", 1);
    let task = address(&delegate(&server, "sleeper", "50", "call-1"));
    wait_for(&server, &task, &["running"]);
    nats.kill();
    let refused = delegate(&server, "hash", "abc", "call-2");
    assert_eq!(refused["refused"], "placement-unavailable", "{refused}");
    let status_refused = server.post("/v1/tasks/status", &json!({ "address": task })).json();
    assert_eq!(status_refused["refused"], "placement-unavailable", "{status_refused}");
    assert_eq!(server.get("/v1/environment").json()["ok"], true, "this computer's own tasks go on");
    // Longer than a lease: the worker ends what it runs, and says so when it can.
    std::thread::sleep(std::time::Duration::from_secs(3));
    nats.restart();
    let ended = wait_for(&server, &task, &ENDS);
    assert_eq!(
        (&ended["state"], &ended["reason"]),
        (&json!("interrupted"), &json!("environment-ended-outcome-unknown"))
    );
    let mut again = delegate(&server, "hash", "abc", "call-2");
    for _ in 0..100 {
        if again["ok"] == true {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        again = delegate(&server, "hash", "abc", "call-2");
    }
    let task = wait_for(&server, &address(&again), &ENDS);
    assert_eq!(task["answer"], ABC, "{task}");
}
