//! Tasks on this computer, with the real program as worker and as supervisor, real folders and real processes.

mod agents;
mod lives;
mod tools;
mod trees;

use std::cell::RefCell;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::{TaskState, TaskView};
use toolshelf_host::{Caller, Reply, ShelfHost};
use toolshelf_sandbox::{HostClock, ProcessExecutor, Shelves, WorkerProgram};

use super::agent::Supervisor;
use super::{Machine, MachineOptions};
use crate::config::Config;

const OWNER: &str = "local";

/// Runs `work` as the program does: on one thread.
fn on_one_thread<T>(work: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, work)
}

/// The program, which is built with its tests.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("toolshelf");
    assert!(program.is_file(), "{} is missing; `cargo build -p toolshelf` makes it", program.display());
    program
}

/// A computer: a data folder, and two folders for tasks.
struct World {
    _dir: TempDir,
    data: PathBuf,
    root: PathBuf,
    other_root: PathBuf,
}

/// One process on it, and what it was told.
struct Life {
    machine: Machine,
    calls: Rc<RefCell<Vec<(String, bool)>>>,
    updates: Rc<RefCell<Vec<TaskView>>>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        let (data, root, other_root) = (path.join("data"), path.join("root"), path.join("other"));
        for folder in [&data, &root, &other_root] {
            fs::create_dir(folder).unwrap();
        }
        Self { _dir: dir, data, root, other_root }
    }

    async fn try_begin(&self, config: &str) -> Result<Life, Refusal> {
        let file = self.data.join("toolshelf.toml");
        fs::write(&file, config).unwrap();
        let executor = ProcessExecutor::cold(WorkerProgram::at(program()), None).unwrap();
        let (calls, updates) = (Rc::<RefCell<Vec<_>>>::default(), Rc::<RefCell<Vec<_>>>::default());
        let (told_calls, told_updates) = (Rc::clone(&calls), Rc::clone(&updates));
        let options = MachineOptions {
            data_dir: self.data.clone(),
            roots: vec![self.root.clone(), self.other_root.clone()],
            agents: Config::read(&file)?.agents,
            shelf: Rc::new(ShelfHost::new(Shelves::builtin(), executor, HostClock::new())),
            on_call: Rc::new(move |tool, result, ms| {
                assert!(ms >= 0.0);
                told_calls.borrow_mut().push((tool.to_owned(), result.is_ok()));
            }),
            on_update: Rc::new(move |owner, view| {
                assert_eq!(owner, OWNER);
                told_updates.borrow_mut().push(view.clone());
            }),
        };
        let machine = Machine::open_with(options, Supervisor::at(program())).await?;
        Ok(Life { machine, calls, updates })
    }

    /// A process whose agents are shell scripts, by their names.
    async fn begin(&self, agents: &[(&str, &str)]) -> Life {
        let config: String = agents
            .iter()
            .map(|(name, script)| {
                let command = json!(["/bin/sh", "-c", script]);
                format!("[agents.{name}]\ncommand = {command}\n")
            })
            .collect();
        self.try_begin(&config).await.unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.root.join(name), text).unwrap();
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root.join(name)).ok()
    }
}

impl Life {
    async fn delegate(&self, agent: &str, task: &str) -> Result<TaskView, Refusal> {
        let call_id = format!("call-{}", toolshelf_core::digest::to_hex(&super::sealer::random()));
        self.delegate_as(agent, task, Caller::new(OWNER, call_id)).await
    }

    async fn delegate_as(&self, agent: &str, task: &str, caller: Caller) -> Result<TaskView, Refusal> {
        let args = json!({ "agent": agent, "task": task });
        match self.machine.call("delegate_task", &args, &caller).await? {
            Reply::Delegated { task, .. } => Ok(task),
            other => panic!("{other:?}"),
        }
    }

    async fn status(&self, address: &str) -> Result<TaskView, Refusal> {
        let caller = Caller::new(OWNER, "");
        match self.machine.call("task_status", &json!({ "address": address }), &caller).await? {
            Reply::Status { task } => Ok(task),
            other => panic!("{other:?}"),
        }
    }

    async fn cancel(&self, address: &str) -> Result<(TaskState, bool), Refusal> {
        let caller = Caller::new(OWNER, "");
        match self.machine.call("cancel_task", &json!({ "address": address }), &caller).await? {
            Reply::Cancelled { state, observed } => Ok((state, observed)),
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the task is as it is wanted.
    async fn until(&self, address: &str, wanted: impl Fn(&TaskView) -> bool) -> TaskView {
        let mut view = self.status(address).await.unwrap();
        for _ in 0..1_500 {
            if wanted(&view) {
                return view;
            }
            pause(20).await;
            view = self.status(address).await.unwrap();
        }
        panic!("thirty seconds passed, and the task is {view:?}");
    }

    /// Waits until the task has ended and its place is free.
    async fn ended(&self, address: &str) -> TaskView {
        let view = self.until(address, |view| view.state.is_terminal()).await;
        eventually("its place is free", || self.machine.environment().active == 0).await;
        eventually("its end is written", || self.machine.host().unfinished_tasks() == 0).await;
        view
    }

    /// The states that were told, without the notes between them.
    fn told(&self) -> Vec<TaskState> {
        let mut states: Vec<_> = self.updates.borrow().iter().map(|view| view.state).collect();
        states.dedup();
        states
    }

    /// Delegates and waits for the end.
    async fn run(&self, agent: &str, task: &str) -> TaskView {
        let view = self.delegate(agent, task).await.unwrap();
        self.ended(&view.address).await
    }
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Waits until `holds`.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1_500 {
        if holds() {
            return;
        }
        pause(20).await;
    }
    panic!("thirty seconds passed, and still not: {what}");
}

fn code<T>(result: Result<T, Refusal>) -> Option<Code> {
    result.err().map(|refusal| refusal.code)
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Whether a process is gone, or only waits to be taken note of.
fn gone(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    state.map_or(true, |stat| stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

/// The number that a script has written into a file.
fn pid_in(folder: &Path, name: &str) -> Option<i32> {
    fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
}
