//! Restarts and other tabs: whose tasks are over, and whose nobody knows.

use futures::channel::oneshot;
use serde_json::json;
use toolshelf_core::refusal::Code;
use toolshelf_core::task::TaskState;
use toolshelf_host::{Caller, Reply};

use crate::world::*;

#[test]
fn a_task_of_a_life_that_may_go_on_is_stale_and_stays_as_it_is() {
    let world = World::new();
    let (address, settle) = world.held_task("c1");
    let tab = world.other_life("boot_2");
    let wire = serde_json::to_value(world.status_at(&tab, &address).unwrap()).unwrap();
    assert_eq!((&wire["task"]["state"], &wire["task"]["stale"]), (&json!("running"), &json!(true)));
    assert_eq!(wire["task"]["staleReason"], "generation-unconfirmed");
    // The life that has it goes on with it.
    assert!(!world.view(&address).stale);
    settle.send(Ok("done".into())).unwrap();
    world.settle();
    assert_eq!(world.state(&address), TaskState::Completed);
    let wire = serde_json::to_value(world.status_at(&tab, &address).unwrap()).unwrap();
    assert!(wire["task"]["state"] == "completed" && wire["task"].get("stale").is_none());
}

#[test]
fn a_task_of_a_life_that_is_over_is_interrupted_with_an_unknown_outcome() {
    let world = World::new();
    let (address, settle) = world.held_task("c1");
    world.shared.over.borrow_mut().insert("boot_1".into());
    let tab = world.other_life("boot_2");
    let Reply::Status { task } = world.status_at(&tab, &address).unwrap() else { panic!() };
    assert_eq!(task.state, TaskState::Interrupted);
    assert_eq!(task.reason.as_deref(), Some("environment-ended-outcome-unknown"));
    assert_eq!((task.outcome, task.stale), (TaskState::Interrupted.outcome(), false));
    assert_eq!(world.shared.ran.borrow().len(), 1, "nothing is run again");
    // Were the life not over after all, its late end would change nothing.
    settle.send(Ok("late".into())).unwrap();
    world.settle();
    assert_eq!(world.state(&address), TaskState::Interrupted);
    assert_eq!(world.host.active_tasks(), 0);
}

#[test]
fn a_life_that_is_over_is_believed_by_cancellations_and_repeats_as_well() {
    let world = World::new();
    let (address, _settle) = world.held_task("c1");
    world.shared.over.borrow_mut().insert("boot_1".into());
    let tab = world.other_life("boot_2");
    let cancel = world.call_at(&tab, "cancel_task", json!({"address": address}), Caller::new("ann", ""));
    assert_eq!(code(&cancel), Code::TaskNotRunning);
    let args = json!({"agent": "hash", "task": "do it"});
    let repeat = world.call_at(&tab, "delegate_task", args, Caller::new("ann", "c1"));
    assert!(is_existing(&repeat));
    assert_eq!(repeat.unwrap().task().unwrap().state, TaskState::Interrupted);
}

#[test]
fn what_cannot_be_written_is_not_claimed() {
    let world = World::new();
    let (address, _settle) = world.held_task("c1");
    world.shared.over.borrow_mut().insert("boot_1".into());
    world.journal.all_fail.set(true);
    let Reply::Status { task } = world.status_at(&world.other_life("boot_2"), &address).unwrap() else {
        panic!()
    };
    assert_eq!((task.state, task.stale), (TaskState::Running, true));
}

#[test]
fn a_delegation_that_was_given_up_after_it_was_written_was_never_confirmed() {
    let world = World::new();
    let (address, _settle) = world.held_task("c1");
    // A host of the same boot that does not have the task: its delegation was dropped before the run was started.
    let same_boot = world.other_life("boot_1");
    let Reply::Status { task } = world.status_at(&same_boot, &address).unwrap() else { panic!() };
    assert_eq!(task.state, TaskState::Interrupted);
    assert_eq!(task.reason.as_deref(), Some("admission-unconfirmed"));
}

#[test]
fn a_delegation_that_is_given_up_gives_its_place_and_its_turn_back() {
    let world = World::new();
    let (_release, held) = oneshot::channel();
    *world.journal.held.borrow_mut() = Some(held);
    let host = world.host.clone();
    let (give_up, given_up) = oneshot::channel::<()>();
    world.spawn(async move {
        let args = json!({"agent": "hash", "task": "do it"});
        let caller = Caller::new("ann", "c1");
        let call = std::pin::pin!(host.call("delegate_task", &args, &caller));
        futures::future::select(call, given_up).await;
    });
    assert_eq!(world.host.active_tasks(), 1);
    give_up.send(()).unwrap();
    world.settle();
    assert_eq!(world.host.active_tasks(), 0);
    assert!(!is_existing(&world.delegate("c1")));
}
