//! Tasks that one life admits and another one runs.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::json;
use toolshelf_core::refusal::Code;
use toolshelf_core::task::{TaskEvent, TaskRecord, TaskState};
use toolshelf_host::Journal as _;
use toolshelf_host::task_ports::{Draft, Durability};

use crate::world::*;

/// How the adoption of a task has ended, once it has.
type Ended = Rc<RefCell<Option<Result<(), Code>>>>;

/// A task that was admitted and that nobody runs.
fn handed_over(world: &World, call_id: &str) -> TaskRecord {
    world.shared.elsewhere.set(true);
    let address = world.task(call_id);
    world.shared.elsewhere.set(false);
    futures::executor::block_on(world.journal.memory.record(&address)).unwrap().unwrap()
}

fn adopt(world: &World, record: TaskRecord) -> Ended {
    let (host, ended) = (world.other_life("boot_2"), Ended::default());
    let slot = Rc::clone(&ended);
    world.spawn(async move {
        let result = host.adopt(record).await.map_err(|refusal| refusal.code);
        *slot.borrow_mut() = Some(result);
    });
    ended
}

#[test]
fn what_is_admitted_here_runs_where_it_is_adopted() {
    let world = World::new();
    world.script(Script::Answer(Ok("done".into())));
    let record = handed_over(&world, "c1");
    assert_eq!((record.state, world.shared.ran.borrow().len()), (TaskState::Queued, 0));
    // No life of it is known, and it is not taken for abandoned.
    world.shared.elsewhere.set(true);
    assert_eq!(world.state(&record.address), TaskState::Queued);
    let view = serde_json::to_value(world.view(&record.address)).unwrap();
    assert_eq!(view.get("stale"), None);
    world.shared.elsewhere.set(false);
    let ended = adopt(&world, record.clone());
    assert_eq!(*ended.borrow(), Some(Ok(())));
    world.shared.elsewhere.set(true);
    assert_eq!(world.state(&record.address), TaskState::Completed);
    assert_eq!(world.shared.ran.borrow().len(), 1);
    assert_eq!(*adopt(&world, world.record(&record.address)).borrow(), Some(Err(Code::TaskNotRunning)));
}

#[test]
fn a_task_that_runs_already_is_run_from_its_beginning_and_one_that_is_cancelled_is_not() {
    let world = World::new();
    let (running, cancelled) = (handed_over(&world, "c1"), handed_over(&world, "c2"));
    for (record, state) in [(&running, TaskState::Running), (&cancelled, TaskState::Cancelled)] {
        let draft = Draft { at: record.created_at.clone(), event: TaskEvent::to(&*record.address, state) };
        futures::executor::block_on(world.journal.memory.append(&draft, Durability::Strict)).unwrap();
    }
    world.script(Script::Answer(Ok("again".into())));
    assert_eq!(*adopt(&world, world.record(&running.address)).borrow(), Some(Ok(())));
    assert_eq!(world.record(&running.address).answer.as_deref(), Some("again"));
    // Read before it was cancelled.
    assert_eq!(*adopt(&world, cancelled.clone()).borrow(), Some(Ok(())));
    assert_eq!(world.record(&cancelled.address).state, TaskState::Cancelled);
    assert_eq!(world.shared.ran.borrow().len(), 1);
}

#[test]
fn a_task_that_is_handed_over_is_cancelled_through_the_journal() {
    let world = World::new();
    let record = handed_over(&world, "c1");
    world.shared.elsewhere.set(true);
    let args = json!({ "address": record.address });
    let answer = world.call_at(&world.host, "cancel_task", args, toolshelf_host::Caller::new("ann", ""));
    assert_eq!(serde_json::to_value(answer.unwrap()).unwrap()["state"], "cancelled");
    assert_eq!(world.record(&record.address).state, TaskState::Cancelled);
}
