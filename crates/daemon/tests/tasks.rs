//! `toolshelf task` and `toolshelf ext`, as people and scripts use them.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use common::eventually;
use serde_json::Value;
use tempfile::TempDir;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// A folder that tasks work in, with keys and settings of its own.
struct Place {
    data: TempDir,
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { data: tempfile::tempdir().unwrap(), root: tempfile::tempdir().unwrap() }
    }

    fn with_agent(name: &str, command: &str) -> Self {
        let place = Self::new();
        let config = format!("[agents.{name}]\ncommand = [\"sh\", \"-c\", {command:?}]\n");
        fs::write(place.data.path().join("toolshelf.toml"), config).unwrap();
        place
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolshelf"));
        command
            .args(args)
            .current_dir(self.root.path())
            .env("TOOLSHELF_DATA_DIR", self.data.path())
            .env("TOOLSHELF_CACHE_DIR", self.data.path().join("cache"))
            .env("TOOLSHELF_CONFIG", self.data.path().join("toolshelf.toml"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[&["--json"], args].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The short name that `task list` shows.
fn name(row: &Value) -> String {
    let address = row["view"]["address"].as_str().unwrap();
    address.rsplit('.').next().unwrap()[..8].to_owned()
}

#[test]
fn a_task_answers_on_the_output_and_is_found_by_its_short_name() {
    let place = Place::new();
    let empty = place.run(&["task", "list"]);
    assert!(text(&empty.stdout).contains("no tasks here yet"));
    assert!(!place.root.path().join(".audit").exists(), "looking writes nothing");
    let delegated = place.run(&["task", "delegate", "hash", "abc"]);
    assert_eq!((code(&delegated), text(&delegated.stdout)), (0, format!("{ABC}\n")));
    let mut piped = place
        .command(&["task", "delegate", "hash"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(b"abc").unwrap();
    assert_eq!(text(&piped.wait_with_output().unwrap().stdout), format!("{ABC}\n"));
    let listed = place.json(&["task", "list"]);
    assert_eq!(listed["rows"].as_array().unwrap().len(), 2);
    let status = place.json(&["task", "status", &name(&listed["rows"][1])]);
    assert_eq!(status["task"]["answer"], ABC);
    let ended = place.run(&["task", "cancel", &name(&listed["rows"][1])]);
    assert_eq!(code(&ended), 1);
    assert!(text(&ended.stderr).contains("task-not-running"));
    // From anywhere, an address says which folder it is of.
    let address = listed["rows"][0]["view"]["address"].as_str().unwrap();
    let elsewhere = place.command(&["--json", "task", "status", address]).current_dir("/").output().unwrap();
    assert_eq!(code(&elsewhere), 0, "{}", text(&elsewhere.stdout));
}

#[test]
fn the_same_call_id_is_the_same_task() {
    let place = Place::with_agent("count", "echo x >> runs; cat");
    for _ in 0..2 {
        let output = place.run(&["task", "delegate", "count", "hello", "--call-id", "once"]);
        assert_eq!((code(&output), text(&output.stdout)), (0, "hello\n".to_owned()));
    }
    assert_eq!(fs::read_to_string(place.root.path().join("runs")).unwrap(), "x\n");
    let other = place.run(&["task", "delegate", "count", "bye", "--call-id", "once"]);
    assert!(code(&other) == 1 && text(&other.stderr).contains("task-call-id-conflict"));
}

#[test]
fn a_task_that_another_command_runs_can_be_cancelled() {
    let place = Place::with_agent("slow", "echo working >&2; sleep 1000");
    let child = place
        .command(&["task", "delegate", "slow", "x"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let running = || {
        let listed = place.json(&["task", "list", "--filter", "active"]);
        listed["rows"].as_array().is_some_and(|rows| rows.iter().any(|row| row["view"]["state"] == "running"))
    };
    eventually("it runs", running);
    let listed = place.json(&["task", "list"]);
    assert_eq!(code(&place.run(&["task", "cancel", &name(&listed["rows"][0])])), 0);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 1, "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("cancelled"));
}

#[test]
fn how_a_task_ended_is_in_the_exit_code() {
    let place = Place::with_agent("fails", "echo it broke >&2; exit 7");
    let failed = place.run(&["task", "delegate", "fails", "x"]);
    assert_eq!(code(&failed), 3);
    assert!(text(&failed.stdout).contains("executor-failed") && text(&failed.stdout).contains("it broke"));
    assert_eq!(code(&place.run(&["task", "delegate", "nobody", "x"])), 1);
    let detached = place.run(&["task", "delegate", "hash", "x", "--detach"]);
    assert!(code(&detached) == 4 && text(&detached.stderr).contains("machine-unreachable"));
    assert_eq!(code(&place.run(&["task", "delegate", "hash", "x", "--deadline", "soon"])), 2);
    assert_eq!(code(&place.run(&["task", "list", "--root", "/nowhere"])), 4);
    let late = Place::with_agent("late", "sleep 1000");
    let output = late.run(&["task", "delegate", "late", "x", "--deadline", "100ms"]);
    assert!(code(&output) == 3 && text(&output.stdout).contains("task-deadline"));
}

#[test]
fn extensions_are_listed_and_called() {
    let place = Place::new();
    let listed = place.json(&["ext", "list"]);
    assert_eq!(listed["extensions"][0]["toolDetails"][0]["imports"], 0);
    let called = place.run(&["ext", "call", "hash", "input=abc"]);
    assert_eq!((code(&called), text(&called.stdout)), (0, format!("{ABC}\n")));
    let diff = place.run(&["ext", "call", "diff", "a=x\n", "b=y\n"]);
    assert_eq!(text(&diff.stdout), "-x\n+y\n");
    let wrong = place.run(&["ext", "call", "hash", "text=abc"]);
    assert!(code(&wrong) == 1 && text(&wrong.stderr).contains("it takes input"));
}
