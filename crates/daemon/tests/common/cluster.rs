//! A cluster for a test: real NATS servers, a real companion that admits, real workers.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and says where it cannot go on"
)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::server::{Server, toolshelf};

/// Longer than any task of these tests takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// The agents of all workers: one that sleeps as long as the task says, and answers.
const AGENTS: &str = r#"
[agents.sleeper]
command = ["sh", "-c", "read seconds; sleep $seconds; echo slept $seconds"]
"#;

/// What all processes of a cluster are told.
pub(crate) struct Setting {
    folder: TempDir,
}

impl Setting {
    /// For those servers, with more lines for the table `[cluster]`.
    pub(crate) fn new(servers: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("[cluster]\nservers = \"{servers}\"\n{more}\n{AGENTS}");
        std::fs::write(folder.path().join("toolshelf.toml"), text).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("toolshelf.toml")
    }

    /// A companion that admits tasks to the cluster.
    pub(crate) fn serve(&self, shelf: Option<&Path>) -> Server {
        let mut command = toolshelf(shelf);
        command.env("TOOLSHELF_CONFIG", self.path()).env("PATH", std::env::var_os("PATH").unwrap());
        Server::by(command)
    }

    /// A worker.
    pub(crate) fn worker(&self, name: &str, slots: usize) -> Worker {
        self.worker_with(name, slots, &[])
    }

    /// A worker that other servers are named to.
    pub(crate) fn worker_with(&self, name: &str, slots: usize, more: &[&str]) -> Worker {
        let data = tempfile::tempdir().unwrap();
        let mut command = toolshelf(None);
        command.env("TOOLSHELF_CONFIG", self.path()).env("PATH", std::env::var_os("PATH").unwrap());
        command.args(["worker", "--name", name, "--slots", &slots.to_string(), "--log-format", "json"]);
        command.arg("--data").arg(data.path()).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let stderr = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let (mut stderr, mut text) = (stderr, String::new());
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        let id = ready["worker"].as_str().unwrap_or_default().to_owned();
        let mut worker = Worker { child, id, _data: data, log: Some(log) };
        assert!(!worker.id.is_empty(), "{line}{}", worker.kill());
        worker
    }
}

/// A worker. Dropping it kills it.
pub(crate) struct Worker {
    child: Child,
    pub(crate) id: String,
    _data: TempDir,
    log: Option<std::thread::JoinHandle<String>>,
}

impl Worker {
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Kills it, as a crash would, and answers what it has logged.
    pub(crate) fn kill(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.log.take().map(|log| log.join().unwrap()).unwrap_or_default()
    }

    /// Ends it as people do.
    pub(crate) fn end(mut self) -> String {
        self.signal(Signal::TERM);
        assert!(self.child.wait().unwrap().success());
        self.log.take().unwrap().join().unwrap()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Delegates a task to the cluster.
pub(crate) fn delegate(server: &Server, agent: &str, task: &str, call_id: &str) -> Value {
    let body = json!({ "agent": agent, "task": task, "callId": call_id, "environment": "cluster" });
    server.post("/v1/tasks", &body).json()
}

/// The address of a task that was delegated.
pub(crate) fn address(answer: &Value) -> String {
    answer["task"]["address"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

pub(crate) fn status(server: &Server, address: &str) -> Value {
    server.post("/v1/tasks/status", &json!({ "address": address })).json()["task"].clone()
}

/// Waits until the task is in one of the states, and answers it.
pub(crate) fn wait_for(server: &Server, address: &str, states: &[&str]) -> Value {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let task = status(server, address);
        if states.contains(&task["state"].as_str().unwrap_or_default()) {
            return task;
        }
        assert!(Instant::now() < give_up, "still not {states:?}: {task}");
        std::thread::sleep(POLL);
    }
}

pub(crate) const ENDS: [&str; 4] = ["completed", "failed", "cancelled", "interrupted"];
