//! Whatever has come of a command is ended with it.

#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::machine::agent::supervisor::AGENT_COMMAND;

/// Processes that do what they can to stay: they ignore signals, begin sessions of their own, and leave their parents.
const TREE: &str = r#"
trap '' TERM HUP INT
setsid sh -c 'trap "" TERM HUP; echo $$ > session; exec sleep 1000' &
( setsid sh -c '( trap "" TERM HUP; sh -c "echo \$\$ > fork; exec sleep 1000" & ) ; exit 0' & ) &
sh -c 'sh -c "sh -c \"echo \\\$\\\$ > deep; exec sleep 1000\" & wait" & echo $$ > middle; wait' &
echo $$ > top
echo ready >&2
"#;
const NAMES: [&str; 5] = ["session", "fork", "deep", "middle", "top"];

fn tree(then: &str) -> String {
    format!("{TREE}\n{then}")
}

/// The numbers of the tree's processes, once all are there.
async fn grown(world: &World) -> Vec<i32> {
    let pids = || -> Option<Vec<i32>> { NAMES.iter().map(|name| pid_in(&world.root, name)).collect() };
    eventually("the tree has grown", || pids().is_some()).await;
    pids().unwrap()
}

async fn assert_gone(pids: &[i32]) {
    let left: Vec<_> = pids.iter().filter(|pid| !gone(**pid)).collect();
    assert!(left.is_empty(), "{left:?} of {pids:?} are left");
}

#[test]
fn a_tree_is_ended_when_its_task_is_cancelled() {
    on_one_thread(async {
        let world = World::new();
        let life = world.begin(&[("tree", &tree("while :; do sleep 1000; done"))]).await;
        let view = life.delegate("tree", "x").await.unwrap();
        let pids = grown(&world).await;
        assert!(pids.iter().all(|pid| !gone(*pid)));
        assert_eq!(life.cancel(&view.address).await, Ok((TaskState::Cancelled, true)));
        // The place is given back when all are gone, so they are gone now.
        assert_gone(&pids).await;
        assert_eq!(life.machine.environment().active, 0);
    });
}

#[test]
fn a_tree_is_ended_at_the_deadline() {
    on_one_thread(async {
        let world = World::new();
        let life = world.begin(&[("tree", &tree("while :; do sleep 1000; done"))]).await;
        let mut caller = Caller::new(OWNER, "call-1");
        caller.wish.deadline_ms = Some(5_000);
        let view = life.delegate_as("tree", "x", caller).await.unwrap();
        let pids = grown(&world).await;
        let view = life.ended(&view.address).await;
        assert_eq!((view.state, view.reason.as_deref()), (TaskState::Interrupted, Some("task-deadline")));
        assert_gone(&pids).await;
    });
}

#[test]
fn what_a_command_leaves_behind_is_ended_with_it() {
    on_one_thread(async {
        let world = World::new();
        let then =
            "while [ ! -e deep ] || [ ! -e fork ] || [ ! -e session ]; do sleep 0.02; done; printf done";
        let life = world.begin(&[("tree", &tree(then))]).await;
        let view = life.run("tree", "x").await;
        assert_eq!((view.state, view.answer.as_deref()), (TaskState::Completed, Some("done")));
        assert_gone(&grown(&world).await).await;
    });
}

#[test]
fn a_tree_is_ended_when_it_answers_too_much() {
    on_one_thread(async {
        let world = World::new();
        let then = "while [ ! -e deep ] || [ ! -e fork ] || [ ! -e session ]; do sleep 0.02; done; exec yes";
        let life = world.begin(&[("tree", &tree(then))]).await;
        let view = life.run("tree", "x").await;
        assert_eq!(view.reason.as_deref(), Some("task-output-over-budget"));
        assert_gone(&grown(&world).await).await;
    });
}

#[test]
fn a_tree_is_ended_although_its_supervisor_was_stopped() {
    on_one_thread(async {
        let world = World::new();
        let life =
            world.begin(&[("tree", &tree("echo $PPID > supervisor; while :; do sleep 1000; done"))]).await;
        let view = life.delegate("tree", "x").await.unwrap();
        let pids = grown(&world).await;
        eventually("it says who its parent is", || pid_in(&world.root, "supervisor").is_some()).await;
        let supervisor = pid_in(&world.root, "supervisor").unwrap();
        kill_process(Pid::from_raw(supervisor).unwrap(), Signal::STOP).unwrap();
        let _ = life.cancel(&view.address).await.unwrap();
        life.ended(&view.address).await;
        assert_gone(&pids).await;
        assert_gone(&[supervisor]).await;
    });
}

#[test]
fn a_tree_is_ended_when_this_program_ends_in_good_order() {
    on_one_thread(async {
        let world = World::new();
        let life = world.begin(&[("tree", &tree("while :; do sleep 1000; done"))]).await;
        let view = life.delegate("tree", "x").await.unwrap();
        let pids = grown(&world).await;
        life.machine.shut_down().await;
        assert_gone(&pids).await;
        let view = life.status(&view.address).await.unwrap();
        let reason = Some("environment-ended-outcome-unknown");
        assert_eq!((view.state, view.reason.as_deref()), (TaskState::Interrupted, reason));
        assert_eq!(code(life.delegate("tree", "x").await), Some(Code::ExecutorUnavailable));
        assert_eq!(fs::read_dir(world.data.join("lives")).unwrap().count(), 0);
    });
}

#[test]
fn a_tree_is_ended_when_the_program_is_killed_or_its_supervisor_asked_to_end() {
    on_one_thread(async {
        for how in [Signal::KILL, Signal::TERM] {
            let world = World::new();
            // Holds the supervisor's input open, as the program does, and hands over a task of one byte.
            let mut holder = Command::new("/bin/sh")
                .args(["-c", r"printf '\001\000\000\000x'; exec sleep 1000"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut supervisor = Command::new(program())
                .args([AGENT_COMMAND, "/bin/sh", "-c", &tree("cat > task; while :; do sleep 1000; done")])
                .current_dir(&world.root)
                .stdin(holder.stdout.take().unwrap())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let pids = grown(&world).await;
            eventually("the task is handed over", || world.text("task").as_deref() == Some("x")).await;
            if how == Signal::KILL {
                holder.kill().unwrap();
            } else {
                kill_process(Pid::from_child(&supervisor), how).unwrap();
            }
            supervisor.wait().unwrap();
            assert_gone(&pids).await;
            let _ = holder.kill();
            holder.wait().unwrap();
        }
    });
}

#[test]
fn a_command_that_forks_without_end_is_ended() {
    on_one_thread(async {
        let world = World::new();
        // Each process begins the next and ends: no number stays.
        let script =
            "echo 'echo $$ > at; sh ./again & exit 0' > again; sh ./again; echo ready >&2; sleep 1000";
        let life = world.begin(&[("rolls", script)]).await;
        let view = life.delegate("rolls", "x").await.unwrap();
        life.until(&view.address, |view| view.progress.is_some()).await;
        let _ = life.cancel(&view.address).await.unwrap();
        let view = life.ended(&view.address).await;
        assert_eq!(view.state, TaskState::Cancelled);
        let last = pid_in(&world.root, "at");
        pause(200).await;
        assert_eq!(pid_in(&world.root, "at"), last, "nobody writes any more");
    });
}
