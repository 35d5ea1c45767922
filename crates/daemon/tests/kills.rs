//! The program is killed while tasks run, again and again. What was acknowledged stays, nothing is run twice, and no
//! process is left.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::time::Duration;

use common::eventually;
use common::stdio::Frames;
use serde_json::{Value, json};

/// How often it is killed.
const KILLS: u32 = 500;
/// Tasks that are delegated in each life.
const TASKS: u32 = 4;
/// The latest moment of a kill after the first request, in microseconds.
const LATEST_US: u64 = 40_000;

/// Random enough, and the same in every run: where a run fails, it fails again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What was told of a task, by its address.
#[derive(Default)]
struct Told {
    /// The call that delegated it.
    calls: HashMap<String, String>,
    /// The end that was told of it.
    ends: HashMap<String, String>,
}

impl Told {
    /// Looks at a view; an end that was told once never changes.
    fn see(&mut self, view: &Value) {
        let address = view["address"].as_str().unwrap().to_owned();
        let state = view["state"].as_str().unwrap().to_owned();
        if view.get("outcome").is_some() {
            let first = self.ends.entry(address).or_insert_with(|| state.clone());
            assert_eq!(*first, state, "an end has changed");
        } else {
            assert!(!self.ends.contains_key(&address), "a task goes on after its end");
        }
    }
}

/// The agents: one that notes what it was asked and lingers with a child of its own, and one that ends at once.
fn configured(data: &Path, marker: &str) {
    let lingers =
        format!("read prompt; echo \"$prompt\" >> ran.log; sleep {marker} & setsid sleep {marker} & wait");
    let config = format!(
        "[agents.lingers]\ncommand = [\"sh\", \"-c\", {lingers:?}]\n\n\
        [agents.ends]\ncommand = [\"sh\", \"-c\", \"read prompt; echo \\\"$prompt\\\" >> ran.log; echo done\"]\n"
    );
    fs::write(data.join("toolshelf.toml"), config).unwrap();
}

/// Processes that an agent has started and that have not ended.
fn left_over(marker: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(marker)).collect()
}

#[test]
fn killed_at_any_moment_it_loses_no_task_repeats_none_and_leaves_no_process() {
    let (data, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let marker = format!("97531.{}", std::process::id());
    configured(data.path(), &marker);
    let (mut random, mut told) = (Random(0x5eed_1e57), Told::default());
    for life in 0..KILLS {
        let mut program = Frames::start(data.path(), root.path());
        // Only once it answers does it have a life of its own.
        assert_eq!(program.ask("environment", &json!({}))["ok"], true);
        let asked = delegate(&mut program, life);
        let pid = program.child.id();
        let moment = Duration::from_micros(random.below(LATEST_US));
        let kill = move || {
            std::thread::sleep(moment);
            common::signal(pid as i32, rustix::process::Signal::KILL);
        };
        // Half of the moments are counted from the first answer: a slow machine may have none before that.
        let mut killers = Vec::new();
        if life % 2 == 0 {
            killers.push(std::thread::spawn(kill));
        }
        while let Some(frame) = program.next() {
            if killers.is_empty() {
                killers.push(std::thread::spawn(kill));
            }
            let task = &frame["task"];
            let Some(address) = task["address"].as_str() else { continue };
            if let Some(call) = frame["id"].as_u64().and_then(|id| asked.get(&id)) {
                told.calls.insert(address.to_owned(), call.clone());
            }
            told.see(task);
            // Until it is killed it is asked for ends: what it says has ended must have ended for good.
            if task.get("outcome").is_none() {
                program.send("task_status", &json!({ "address": address }));
            }
        }
        killers.into_iter().for_each(|killer| killer.join().unwrap());
        drop(program);
        // Looking at everything in each life would take quadratic time.
        if life % 25 == 0 || life + 1 == KILLS {
            look_at_all(data.path(), root.path(), &mut told);
        }
    }
    assert!(told.calls.len() > KILLS as usize / 4, "only {} were acknowledged", told.calls.len());
    eventually("no process of an agent is left", || left_over(&marker).is_empty());
    let ran = fs::read_to_string(root.path().join("ran.log")).unwrap_or_default();
    let mut prompts: Vec<_> = ran.lines().collect();
    let count = prompts.len();
    assert!(count > 0, "no agent ran at all");
    prompts.sort_unstable();
    prompts.dedup();
    assert_eq!(prompts.len(), count, "a prompt was run twice");
}

/// Delegates some tasks without waiting for answers; gives the calls by their requests.
fn delegate(program: &mut Frames, life: u32) -> BTreeMap<u64, String> {
    let agents = ["lingers", "ends", "hash"];
    let ask = |index: u32| {
        let call = format!("life-{life}-{index}");
        let agent = agents[(life + index) as usize % agents.len()];
        let id = program.send("delegate_task", &json!({ "agent": agent, "task": call, "callId": call }));
        (id, call)
    };
    (0..TASKS).map(ask).collect()
}

/// In a new life, every task that was acknowledged is there, has ended, and answers its call again.
fn look_at_all(data: &Path, root: &Path, told: &mut Told) {
    let mut program = Frames::start(data, root);
    let calls = told.calls.clone();
    for (address, call) in &calls {
        let status = program.ask("task_status", &json!({ "address": address }));
        assert_eq!(status["ok"], true, "{call}: {status}");
        let task = &status["task"];
        told.see(task);
        let state = task["state"].as_str().unwrap();
        assert!(["completed", "failed", "interrupted"].contains(&state), "{call} is {task}");
        if state == "interrupted" {
            assert_eq!(task["reason"], "environment-ended-outcome-unknown", "{task}");
        }
    }
    let Some((address, call)) = calls.iter().next() else { return };
    let agent = program.ask("task_status", &json!({ "address": address }))["task"]["agent"].clone();
    let again = program.ask("delegate_task", &json!({ "agent": agent, "task": call, "callId": call }));
    assert_eq!((&again["existing"], &again["task"]["address"]), (&json!(true), &json!(address)), "{again}");
    assert!(program.close().success());
}
