//! Cancellation: observed, unobserved, before the start, twice, too late, and from another life.

use futures::channel::oneshot;
use serde_json::json;
use toolshelf_core::refusal::Code;
use toolshelf_core::task::TaskState;
use toolshelf_host::Caller;
use toolshelf_host::task_ports::RunFault;

use crate::world::*;

#[test]
fn an_executor_that_obeys_is_seen_to_stop() {
    let world = World::new();
    world.script(Script::Obeys);
    let address = world.task("c1");
    let cancel = world.start_cancel(&address);
    world.pass(20.0);
    assert_eq!(cancelled(&cancel), (TaskState::Cancelled, true));
    let view = world.view(&address);
    assert_eq!((view.state, view.outcome), (TaskState::Cancelled, TaskState::Cancelled.outcome()));
    assert_eq!(world.host.active_tasks(), 0);
    let wire = serde_json::to_value(world.status_at(&world.host, &address).unwrap()).unwrap();
    assert_eq!(wire["task"]["outcome"]["class"], "observed-cancellation");
}

#[test]
fn one_that_does_not_is_unconfirmed_after_a_while_and_may_still_end() {
    let world = World::new();
    let (address, settle) = world.held_task("c1");
    let cancel = world.start_cancel(&address);
    assert_eq!(world.state(&address), TaskState::CancelRequested);
    world.pass(1_499.0);
    assert!(cancel.borrow().is_none());
    world.pass(40.0);
    assert_eq!(cancelled(&cancel), (TaskState::CancelUnconfirmed, false));
    let view = world.view(&address);
    assert_eq!((view.state, view.outcome), (TaskState::CancelUnconfirmed, None));
    assert_eq!(world.host.active_tasks(), 1);
    // A second request waits again and changes nothing.
    let again = world.start_cancel(&address);
    world.pass(1_600.0);
    assert_eq!(cancelled(&again), (TaskState::CancelUnconfirmed, false));
    settle.send(Err(RunFault::Cancelled)).unwrap();
    world.settle();
    assert_eq!((world.state(&address), world.host.active_tasks()), (TaskState::Cancelled, 0));
}

#[test]
fn two_requests_at_once_see_the_same_end() {
    let world = World::new();
    let (address, settle) = world.held_task("c1");
    let (first, second) = (world.start_cancel(&address), world.start_cancel(&address));
    world.pass(100.0);
    settle.send(Err(RunFault::Cancelled)).unwrap();
    world.pass(20.0);
    assert_eq!(cancelled(&first), (TaskState::Cancelled, true));
    assert_eq!(cancelled(&second), (TaskState::Cancelled, true));
}

#[test]
fn what_completes_or_fails_while_it_is_asked_to_stop_has_completed_or_failed() {
    for (answer, state) in
        [(Ok("done".to_owned()), TaskState::Completed), (Err(RunFault::Failed), TaskState::Failed)]
    {
        let world = World::new();
        let (address, settle) = world.held_task("c1");
        let cancel = world.start_cancel(&address);
        settle.send(answer).unwrap();
        world.pass(20.0);
        assert_eq!(cancelled(&cancel), (state, true));
        assert_eq!(world.state(&address), state);
    }
}

#[test]
fn the_deadline_holds_for_a_task_that_is_asked_to_stop() {
    let world = World::new();
    let (address, _settle) = world.held_task("c1");
    world.pass(29_000.0);
    let cancel = world.start_cancel(&address);
    world.pass(1_020.0);
    assert_eq!(cancelled(&cancel), (TaskState::Interrupted, true));
}

#[test]
fn a_task_that_has_ended_is_not_running() {
    let world = World::new();
    let address = world.task("c1");
    assert_eq!(code(&world.start_cancel(&address).take().unwrap()), Code::TaskNotRunning);
    let (address, _settle) = world.held_task("c2");
    world.pass(30_000.0);
    assert_eq!(world.host.active_tasks(), 1);
    assert_eq!(code(&world.start_cancel(&address).take().unwrap()), Code::TaskNotRunning);
}

#[test]
fn a_queued_task_is_cancelled_at_once_and_never_runs() {
    let world = World::new();
    let (release, held) = oneshot::channel();
    *world.journal.held.borrow_mut() = Some(held);
    let host = world.host.clone();
    let answer = Pending::default();
    let slot = std::rc::Rc::clone(&answer);
    // Delegates and cancels without giving the run a chance in between.
    world.spawn(async move {
        let args = json!({"agent": "hash", "task": "do it"});
        let delegated = host.call("delegate_task", &args, &Caller::new("ann", "c1")).await.unwrap();
        let args = json!({"address": delegated.task().unwrap().address});
        *slot.borrow_mut() = Some(host.call("cancel_task", &args, &Caller::new("ann", "")).await);
    });
    release.send(()).unwrap();
    world.settle();
    assert_eq!(cancelled(&answer), (TaskState::Cancelled, true));
    assert!(world.shared.ran.borrow().is_empty());
    assert_eq!(world.host.active_tasks(), 0);
}

#[test]
fn a_task_that_is_cancelled_while_its_start_is_written_never_runs() {
    let world = World::new();
    let (release, held) = oneshot::channel();
    *world.journal.held_append.borrow_mut() = Some(held);
    let address = world.task("c1");
    let cancel = world.start_cancel(&address);
    release.send(()).unwrap();
    world.pass(20.0);
    assert_eq!(cancelled(&cancel), (TaskState::Cancelled, true));
    assert!(world.shared.ran.borrow().is_empty());
    assert_eq!(world.host.active_tasks(), 0);
}

#[test]
fn another_tab_s_request_is_written_down_and_obeyed() {
    let world = World::new();
    let tab = world.other_life("boot_2");
    world.script(Script::Obeys);
    let address = world.task("c1");
    let args = json!({"address": address});
    let cancel = world.start_at(&tab, "cancel_task", args.clone(), Caller::new("ann", ""));
    assert!(!world.shared.ran.borrow()[0].signal.is_aborted());
    // The tab that has it hears of it when it next looks.
    let (host, of_the_task) = (world.host.clone(), address.clone());
    world.spawn(async move { host.heed(&of_the_task).await });
    assert!(world.shared.ran.borrow()[0].signal.is_aborted());
    let told: Vec<_> = world.shared.updates.borrow().iter().map(|(_, state)| *state).collect();
    assert!(told.contains(&TaskState::CancelRequested), "it tells what it has heard");
    world.pass(200.0);
    assert_eq!(cancelled(&cancel), (TaskState::Cancelled, true));
    assert_eq!(world.state(&address), TaskState::Cancelled);
    let again = world.call_at(&tab, "cancel_task", args, Caller::new("ann", ""));
    assert_eq!(code(&again), Code::TaskNotRunning);
}

#[test]
fn another_tab_that_does_not_look_leaves_the_request_unconfirmed() {
    let world = World::new();
    let tab = world.other_life("boot_2");
    let (address, settle) = world.held_task("c1");
    let cancel = world.start_at(&tab, "cancel_task", json!({"address": address}), Caller::new("ann", ""));
    world.pass(5_000.0);
    assert_eq!(cancelled(&cancel), (TaskState::CancelUnconfirmed, false));
    // It may still end in every way.
    settle.send(Ok("done".into())).unwrap();
    world.settle();
    assert_eq!(world.state(&address), TaskState::Completed);
}

#[test]
fn another_tab_cancels_what_is_still_queued_before_it_starts() {
    let world = World::new();
    let tab = world.other_life("boot_2");
    let (release, held) = oneshot::channel();
    *world.journal.held_append.borrow_mut() = Some(held);
    let address = world.task("c1");
    let cancel = world.start_at(&tab, "cancel_task", json!({"address": address}), Caller::new("ann", ""));
    assert_eq!(cancelled(&cancel), (TaskState::Cancelled, true));
    release.send(()).unwrap();
    world.settle();
    assert!(world.shared.ran.borrow().is_empty());
    assert_eq!((world.state(&address), world.host.active_tasks()), (TaskState::Cancelled, 0));
}

#[test]
fn a_request_that_cannot_be_written_for_another_life_has_failed() {
    let world = World::new();
    let tab = world.other_life("boot_2");
    let (address, _settle) = world.held_task("c1");
    world.journal.all_fail.set(true);
    let cancel = world.call_at(&tab, "cancel_task", json!({"address": address}), Caller::new("ann", ""));
    assert_eq!(code(&cancel), Code::CancelFailed);
}
