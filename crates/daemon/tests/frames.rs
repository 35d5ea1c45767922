//! `toolshelf stdio`: what a parent process sends, and what it gets.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use std::fs;

use common::stdio::Frames;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Place {
    data: TempDir,
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { data: tempfile::tempdir().unwrap(), root: tempfile::tempdir().unwrap() }
    }

    fn start(&self) -> Frames {
        Frames::start(self.data.path(), self.root.path())
    }
}

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn what_can_be_called_is_listed_and_called() {
    let mut program = Place::new().start();
    let listed = program.ask("list_extensions", &json!({}));
    assert_eq!(listed["placement"], "machine");
    let names: Vec<_> =
        listed["extensions"].as_array().unwrap().iter().map(|row| row["tools"][0].clone()).collect();
    assert!(names.contains(&json!("hash")) && names.contains(&json!("diff")), "{names:?}");
    let called = program.ask("call_extension", &json!({ "name": "hash", "input": "abc" }));
    assert_eq!((&called["ok"], &called["output"]), (&json!(true), &json!(ABC)));
    assert_eq!(program.ask("hash", &json!({ "input": "abc" }))["output"], ABC);
    let again = program.ask("list_extensions", &json!({}));
    let rows = again["extensions"].as_array().unwrap();
    let hash = rows.iter().find(|row| row["tools"][0] == "hash").unwrap();
    assert_eq!(hash["toolDetails"][0]["latency"]["calls"], 2);
    let refused = |answer: Value| answer["refused"].as_str().unwrap().to_owned();
    assert_eq!(refused(program.ask("call_extension", &json!({}))), "missing-argument");
    assert_eq!(
        refused(program.ask("call_extension", &json!({ "name": "hash", "input": 7 }))),
        "invalid-argument"
    );
    assert_eq!(refused(program.ask("no_such_tool", &json!({}))), "unknown-tool");
    assert!(program.close().success());
}

#[test]
fn a_task_is_delegated_watched_listed_and_found_again() {
    let place = Place::new();
    fs::write(place.root.path().join("note.txt"), "abc").unwrap();
    let mut program = place.start();
    let task = r#"{"input": {"file": "note.txt"}, "out": "note.sha256"}"#;
    let args = json!({ "agent": "hash", "task": task, "callId": "c1" });
    let delegated = program.ask("delegate_task", &args);
    assert_eq!((&delegated["ok"], &delegated["existing"]), (&json!(true), &json!(false)), "{delegated}");
    assert_eq!(delegated["task"]["placement"], "machine");
    let address = &delegated["task"]["address"];
    let ended = program.ask("watch_task", &json!({ "address": address }));
    assert_eq!(ended["task"]["state"], "completed", "{ended}");
    assert_eq!(fs::read_to_string(place.root.path().join("note.sha256")).unwrap(), ABC);
    assert_eq!(program.ask("delegate_task", &args)["existing"], true);
    let other = json!({ "agent": "hash", "task": "another", "callId": "c1" });
    assert_eq!(program.ask("delegate_task", &other)["refused"], "task-call-id-conflict");
    let listed = program.ask("list_tasks", &json!({}));
    assert_eq!(listed["rows"][0]["view"]["address"], *address);
    let detail = program.ask("task_detail", &json!({ "position": listed["rows"][0]["position"] }));
    let states: Vec<_> =
        detail["detail"]["moments"].as_array().unwrap().iter().map(|m| m["state"].clone()).collect();
    assert_eq!(states, ["queued", "running", "completed"]);
    assert!(program.close().success());
    // Another life of the program finds it.
    let mut program = place.start();
    let status = program.ask("task_status", &json!({ "address": address }));
    assert_eq!(status["task"]["state"], "completed");
    assert_eq!(program.ask("delegate_task", &args)["existing"], true);
}

#[test]
fn frames_that_are_not_frames_are_refused_and_the_next_one_is_answered() {
    let mut program = Place::new().start();
    let long = format!("{{\"id\":1,\"command\":\"{}\"}}\n", "x".repeat(3 * 1024 * 1024));
    let bad: [&[u8]; 8] = [
        b"\n",
        b"nonsense\n",
        b"[1,2]\n",
        b"{\"id\":1}\n",
        b"{\"id\":1,\"command\":7}\n",
        b"{\"id\":1,\"command\":\"hash\",\"args\":[],\"more\":1}\n",
        b"\xff\xfe\x00\n",
        long.as_bytes(),
    ];
    for line in bad {
        program.send_line(line);
        let frame = program.next().unwrap();
        assert_eq!((&frame["id"], &frame["refused"]), (&Value::Null, &json!("invalid-frame")), "{frame}");
    }
    assert_eq!(program.ask("hash", &json!({ "input": "abc" }))["output"], ABC);
    program.send_line(b"{\"id\":9,\"command\":\"ha");
    assert!(program.close().success(), "half a line at the end is no reason to fail");
}

#[test]
fn a_parent_that_is_gone_ends_what_runs() {
    let place = Place::new();
    let config = "[agents.slow]\ncommand = [\"sleep\", \"1000\"]\n";
    fs::write(place.data.path().join("toolshelf.toml"), config).unwrap();
    let mut program = place.start();
    let delegated = program.ask("delegate_task", &json!({ "agent": "slow", "task": "x", "callId": "c" }));
    let address = delegated["task"]["address"].clone();
    assert!(program.close().success());
    let mut program = place.start();
    let status = program.ask("task_status", &json!({ "address": address }));
    assert!(status["task"].get("outcome").is_some(), "{status}");
}
