//! A journal that fails: at which write, and what then holds.

use futures::channel::oneshot;
use toolshelf_core::refusal::Code;
use toolshelf_core::task::TaskState;
use toolshelf_host::task_ports::RunFault;

use crate::world::*;

/// Lets the write after `good` good ones fail.
fn fail_after(world: &World, good: usize) {
    let mut failing = world.journal.failing.borrow_mut();
    failing.extend(std::iter::repeat_n(false, good));
    failing.push_back(true);
}

#[test]
fn an_admission_that_is_not_written_runs_nothing_and_takes_no_place() {
    let world = World::new();
    fail_after(&world, 0);
    let refusal = world.delegate("c1").unwrap_err();
    assert_eq!(refusal.code, Code::TaskPersistenceFailed);
    assert!(refusal.why.contains("disk full") && refusal.why.contains("nothing has run"), "{}", refusal.why);
    assert!(world.shared.ran.borrow().is_empty());
    assert_eq!(world.host.active_tasks(), 0);
    // The same call may be tried again.
    assert!(!is_existing(&world.delegate("c1")));
    assert_eq!(world.shared.ran.borrow().len(), 1);
}

#[test]
fn a_start_that_is_not_written_does_not_happen() {
    let world = World::new();
    fail_after(&world, 1);
    let address = world.task("c1");
    let view = world.view(&address);
    assert_eq!((view.state, view.reason.as_deref()), (TaskState::Failed, Some("task-persistence-failed")));
    assert!(world.shared.ran.borrow().is_empty());
    assert_eq!(world.host.active_tasks(), 0);
}

#[test]
fn an_end_that_is_not_written_is_answered_all_the_same_and_written_at_the_next_look() {
    let world = World::new();
    let (address, settle) = world.held_task("c1");
    world.journal.all_fail.set(true);
    settle.send(Ok("done".into())).unwrap();
    world.settle();
    assert_eq!(world.host.active_tasks(), 0);
    let view = world.view(&address);
    assert_eq!((view.state, view.answer.as_deref()), (TaskState::Completed, Some("done")));
    // Another life still sees what is written.
    let tab = world.other_life("boot_2");
    let seen = world.status_at(&tab, &address).unwrap();
    assert_eq!(seen.task().unwrap().state, TaskState::Running);

    world.journal.all_fail.set(false);
    assert_eq!(world.state(&address), TaskState::Completed);
    assert_eq!(world.status_at(&tab, &address).unwrap().task().unwrap().state, TaskState::Completed);
}

#[test]
fn an_end_that_is_not_written_is_written_later_though_nobody_asks() {
    let world = World::new();
    let (address, settle) = world.held_task("c1");
    world.journal.all_fail.set(true);
    settle.send(Ok("done".into())).unwrap();
    world.pass(500_000.0);
    world.journal.all_fail.set(false);
    world.pass(60_000.0);
    let seen = world.status_at(&world.other_life("boot_2"), &address).unwrap();
    assert_eq!(seen.task().unwrap().state, TaskState::Completed);
    let host = format!("{:?}", world.host);
    assert!(host.contains("in_memory: 0"), "{host}");
}

#[test]
fn a_request_to_cancel_that_is_not_written_is_still_a_request() {
    let world = World::new();
    world.script(Script::Obeys);
    let address = world.task("c1");
    world.journal.all_fail.set(true);
    let cancel = world.start_cancel(&address);
    world.pass(20.0);
    assert_eq!(cancelled(&cancel), (TaskState::Cancelled, true));
    assert_eq!(world.host.active_tasks(), 0);
    world.journal.all_fail.set(false);
    world.view(&address);
    let writes: Vec<_> = world.journal.writes.borrow().iter().map(|(state, _)| *state).collect();
    let expected = [TaskState::Queued, TaskState::Running, TaskState::CancelRequested, TaskState::Cancelled];
    assert_eq!(writes, expected);
}

#[test]
fn a_deadline_that_is_not_written_holds_all_the_same() {
    let world = World::new();
    let (address, settle) = world.held_task("c1");
    world.journal.all_fail.set(true);
    world.pass(30_000.0);
    assert_eq!(world.state(&address), TaskState::Interrupted);
    settle.send(Ok("late".into())).unwrap();
    world.settle();
    assert_eq!((world.state(&address), world.host.active_tasks()), (TaskState::Interrupted, 0));
}

#[test]
fn every_write_may_fail_once_and_no_place_is_lost() {
    for good in 0..6 {
        for obeys in [true, false] {
            let world = World::new();
            fail_after(&world, good);
            let (settle, held) = oneshot::channel();
            world.script(if obeys { Script::Obeys } else { Script::Held(held) });
            if let Ok(reply) = world.delegate("c1") {
                let address = &reply.task().unwrap().address;
                let cancel = world.start_cancel(address);
                world.pass(2_000.0);
                let _ = settle.send(Err(RunFault::Cancelled));
                world.settle();
                assert!(cancel.borrow().is_some());
                assert!(world.state(address).is_terminal(), "write {good}");
            }
            assert_eq!(world.host.active_tasks(), 0, "write {good}");
        }
    }
}

#[test]
fn while_too_many_ends_wait_to_be_written_nothing_new_is_admitted() {
    let world = World::new();
    let mut addresses = Vec::new();
    for number in 0..64 {
        fail_after(&world, 2);
        addresses.push(world.task(&format!("c{number}")));
    }
    assert_eq!(code(&world.delegate("one more")), Code::TaskCallIdRequired);
    assert_eq!(code(&world.delegate("c64")), Code::TaskPersistenceFailed);
    for address in addresses {
        assert_eq!(world.state(&address), TaskState::Completed);
    }
    world.delegate("c64").unwrap();
}

#[test]
fn a_journal_that_cannot_be_read_admits_nothing_and_shows_nothing() {
    let world = World::new();
    let address = world.task("c1");
    world.journal.reads_fail.set(true);
    assert_eq!(code(&world.delegate("c2")), Code::TaskAuditUnavailable);
    assert_eq!(code(&world.status_at(&world.host, &address)), Code::TaskAuditUnavailable);
    assert_eq!(world.shared.ran.borrow().len(), 1);
    // What runs here is known without it.
    world.journal.reads_fail.set(false);
    let (address, _settle) = world.held_task("c3");
    world.journal.reads_fail.set(true);
    assert_eq!(world.state(&address), TaskState::Running);
}
