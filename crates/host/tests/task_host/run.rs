//! One task, from its start to its end: answers, faults, bounds, deadlines, late completions.

use futures::channel::oneshot;
use toolshelf_core::refusal::Code;
use toolshelf_core::task::{TaskState, TaskView};
use toolshelf_host::task_ports::RunFault;

use crate::world::*;

fn ended(answer: Result<String, RunFault>) -> TaskView {
    let world = World::new();
    world.script(Script::Answer(answer));
    let address = world.task("c1");
    assert_eq!(world.host.active_tasks(), 0);
    world.view(&address)
}

fn reason(view: &TaskView) -> Option<&str> {
    view.reason.as_deref()
}

#[test]
fn an_answer_completes_the_task_as_a_claim() {
    let view = ended(Ok(String::new()));
    assert_eq!((view.state, view.answer.as_deref(), reason(&view)), (TaskState::Completed, Some(""), None));
    assert_eq!(view.outcome, TaskState::Completed.outcome());
}

#[test]
fn every_fault_ends_the_task_by_its_name() {
    let cases = [
        (RunFault::Failed, TaskState::Failed, "executor-failed"),
        (RunFault::InvalidResult, TaskState::Failed, "task-invalid-result"),
        (RunFault::Refused(Code::DigestMismatch), TaskState::Failed, "digest-mismatch"),
        (RunFault::Cancelled, TaskState::Failed, "task-cancelled"),
        (RunFault::Interrupted, TaskState::Interrupted, "environment-ended-outcome-unknown"),
    ];
    for (fault, state, text) in cases {
        let view = ended(Err(fault));
        assert_eq!((view.state, reason(&view), view.answer.as_ref()), (state, Some(text), None));
        assert_eq!(view.outcome, state.outcome());
    }
}

#[test]
fn an_executor_that_panics_has_failed_and_holds_no_place() {
    let world = World::new();
    world.script(Script::Panics);
    let address = world.task("c1");
    let view = world.view(&address);
    assert_eq!((view.state, reason(&view)), (TaskState::Failed, Some("executor-failed")));
    assert_eq!(world.host.active_tasks(), 0);
}

#[test]
fn an_answer_of_one_byte_too_many_is_no_answer() {
    let view = ended(Ok("x".repeat(65_536)));
    assert_eq!((view.state, view.answer.unwrap().len()), (TaskState::Completed, 65_536));
    let view = ended(Ok("x".repeat(65_537)));
    assert_eq!((view.state, reason(&view)), (TaskState::Failed, Some("task-output-over-budget")));
    assert_eq!(view.answer, None);
    // Bytes, not characters.
    assert_eq!(ended(Ok("é".repeat(32_769))).state, TaskState::Failed);
}

#[test]
fn what_the_executor_says_is_shown_while_it_runs_and_kept_at_its_end() {
    let world = World::new();
    let (settle, held) = oneshot::channel();
    let notes = vec!["first".to_owned(), " ".to_owned(), "x".repeat(1_000_000)];
    world.script(Script::Says(notes, held));
    let address = world.task("c1");
    let view = world.view(&address);
    assert_eq!(view.progress.as_deref(), Some(&*"x".repeat(300)));
    assert_eq!(view.partial.map(|partial| partial.len()), Some(65_536));
    settle.send(Err(RunFault::Failed)).unwrap();
    world.settle();
    let view = world.view(&address);
    assert_eq!(view.progress.map(|note| note.len()), Some(300));
    assert_eq!(view.partial.map(|partial| partial.len()), Some(65_536));
}

#[test]
fn secrets_are_taken_out_before_anything_is_written() {
    let world = World::new();
    let (settle, held) = oneshot::channel();
    world.script(Script::Says(vec!["note sk-secret".into()], held));
    let address = world.task("c1");
    assert_eq!(world.view(&address).progress.as_deref(), Some("note [redacted]"));
    settle.send(Ok("answer sk-secret".into())).unwrap();
    world.settle();
    let view = world.view(&address);
    assert_eq!(view.answer.as_deref(), Some("answer [redacted]"));
    assert_eq!((view.progress.as_deref(), view.partial), (Some("note [redacted]"), None));
}

#[test]
fn past_its_deadline_a_task_is_interrupted_and_its_place_stays_taken() {
    let world = World::new();
    let (address, settle) = world.held_task("c1");
    world.pass(29_999.0);
    assert_eq!(world.state(&address), TaskState::Running);
    assert!(!world.shared.ran.borrow()[0].signal.is_aborted());
    world.pass(1.0);
    let view = world.view(&address);
    assert_eq!((view.state, reason(&view)), (TaskState::Interrupted, Some("task-deadline")));
    assert_eq!(view.outcome, TaskState::Interrupted.outcome());
    assert!(world.shared.ran.borrow()[0].signal.is_aborted());
    assert_eq!(world.host.active_tasks(), 1, "the executor has not settled");

    // Late completions change nothing but the place.
    let before = world.view(&address);
    settle.send(Ok("late".into())).unwrap();
    world.settle();
    assert_eq!(world.view(&address), before);
    assert_eq!(world.host.active_tasks(), 0);
}

#[test]
fn an_executor_that_never_settles_keeps_its_place_for_ever() {
    let world = World::new();
    for call_id in ["c1", "c2", "c3", "c4"] {
        world.script(Script::Never);
        world.delegate(call_id).unwrap();
    }
    world.pass(10_000_000.0);
    assert_eq!(world.host.active_tasks(), 4);
    assert_eq!(code(&world.delegate("c5")), Code::TaskCapacityExhausted);
}

#[test]
fn the_clock_decides_about_the_deadline_not_the_timer() {
    // The timer comes too late: the machine slept.
    let world = World::new();
    world.shared.deaf_timers.set(true);
    let (address, settle) = world.held_task("c1");
    world.pass(40_000.0);
    settle.send(Ok("in my own time".into())).unwrap();
    world.settle();
    let view = world.view(&address);
    assert_eq!((view.state, reason(&view)), (TaskState::Interrupted, Some("task-deadline")));
    assert_eq!(view.answer, None);

    // The timer comes too early.
    let world = World::new();
    let (address, settle) = world.held_task("c1");
    world.pass(10.0);
    world.fire_timers();
    assert_eq!(world.state(&address), TaskState::Running);
    settle.send(Ok("in time".into())).unwrap();
    world.settle();
    assert_eq!(world.state(&address), TaskState::Completed);
}

#[test]
fn a_date_that_jumps_moves_no_deadline() {
    for jump in [0, 1_767_225_600_000 + 86_400_000, u64::MAX] {
        let world = World::new();
        let (address, settle) = world.held_task("c1");
        world.shared.unix.set(jump);
        world.pass(29_000.0);
        assert_eq!(world.state(&address), TaskState::Running);
        settle.send(Ok("in time".into())).unwrap();
        world.settle();
        assert_eq!(world.state(&address), TaskState::Completed);
    }
}

#[test]
fn whoever_listens_hears_of_every_change() {
    let world = World::new();
    world.script(Script::Obeys);
    let address = world.task("c1");
    world.start_cancel(&address);
    world.pass(20.0);
    let updates = world.shared.updates.borrow();
    assert!(updates.iter().all(|(owner, _)| owner == "ann"));
    let states: Vec<_> = updates.iter().map(|(_, state)| *state).collect();
    let expected = [TaskState::Queued, TaskState::Running, TaskState::CancelRequested, TaskState::Cancelled];
    assert_eq!(states, expected);
}

#[test]
fn what_an_executor_runs_is_what_was_admitted() {
    let world = World::new();
    let (release, held) = oneshot::channel();
    *world.journal.held_append.borrow_mut() = Some(held);
    let address = world.task("c1");
    // Everything changes between admission and start.
    *world.shared.root.borrow_mut() = None;
    world.shared.terms.borrow_mut().as_mut().unwrap().deadline_ms = 1;
    release.send(()).unwrap();
    world.settle();
    let ran = world.shared.ran.borrow();
    assert_eq!((ran[0].bounds.deadline_ms, ran[0].root.to_string()), (30_000, "opfs:v1/tasks".into()));
    assert_eq!((ran[0].input.agent.as_str(), ran[0].input.task.as_str()), ("hash", "do it"));
    assert_eq!(world.state(&address), TaskState::Completed);
}

#[test]
fn thousands_of_tasks_leave_no_place_taken_and_none_in_memory() {
    let world = World::new();
    for number in 0..3_000 {
        world.delegate(&format!("c{number}")).unwrap();
    }
    assert_eq!(world.host.active_tasks(), 0);
    let host = format!("{:?}", world.host);
    assert!(host.contains("active: 0, in_memory: 0"), "{host}");
}
