//! Logs in every order: what is believed, what is refused, and what an owner sees of it.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::placement::Placement;
use crate::root::RootDescriptor;

const AT: &str = "2026-01-01T00:00:00.000Z";

fn record(address: &str, instance: &str) -> TaskRecord {
    TaskRecord {
        address: address.into(),
        environment: "env_browser_local".into(),
        placement: Some(Placement::Browser),
        owner: "SECRET-owner".into(),
        root: RootDescriptor::Opfs { path: "v1/tasks".into() },
        project: "browser-project".into(),
        instance: instance.into(),
        call_id: "SECRET-call".into(),
        input: TaskInput { agent: "hash".into(), task: "SECRET-task".into(), context: [] },
        bounds: TaskBounds { deadline_ms: 12_345, max_output_bytes: 54_321 },
        mechanism: "SECRET-mechanism".into(),
        boot: "SECRET-boot".into(),
        pid: Some(987_654),
        state: TaskState::Queued,
        created_at: AT.into(),
        updated_at: AT.into(),
        reason: None,
        answer: None,
        progress: None,
        partial: None,
        outcome: None,
    }
}

fn created(seq: u64, record: &TaskRecord) -> LogEntry {
    let event = TaskEvent {
        created: Some(Box::new(record.clone())),
        ..TaskEvent::to(&*record.address, TaskState::Queued)
    };
    LogEntry::of(record, seq, AT.into(), event)
}

fn change(seq: u64, record: &TaskRecord, state: TaskState) -> LogEntry {
    LogEntry::of(
        record,
        seq,
        format!("2026-01-01T00:00:{seq:02}.000Z"),
        TaskEvent::to(&*record.address, state),
    )
}

fn reduce(entries: &[LogEntry]) -> Result<Option<TaskRecord>, ReduceFault> {
    reduce_task(entries, "task_a")
}

#[test]
fn a_log_becomes_the_record_of_what_happened_last() {
    let task = record("task_a", "w");
    let mut done = change(9, &task, TaskState::Completed);
    done.task.answer = Some(String::new());
    done.task.progress = Some("last note".into());
    // In any order of the file; positions may have gaps.
    let log = [done, created(2, &task), change(5, &task, TaskState::Running)];
    let reduced = reduce(&log).unwrap().unwrap();
    assert_eq!(reduced.state, TaskState::Completed);
    assert_eq!((reduced.answer.as_deref(), reduced.progress.as_deref()), (Some(""), Some("last note")));
    assert_eq!(reduced.updated_at, "2026-01-01T00:00:09.000Z");
    assert_eq!(reduced.created_at, AT);
    assert_eq!(reduced.outcome, TaskState::Completed.outcome());
    assert_eq!(reduce_task(&log, "task_b"), Ok(None));
    assert_eq!(reduce(&[]), Ok(None));
}

#[test]
fn contradictions_are_refused_with_the_documented_texts() {
    let task = record("task_a", "w");
    let start = created(1, &task);
    let mut other_root = change(2, &task, TaskState::Running);
    other_root.root = "opfs:v1".into();
    let mut other_writer = change(2, &task, TaskState::Running);
    other_writer.instance = "x".into();
    let mut of_another = start.clone();
    of_another.task.created = Some(Box::new(record("task_b", "w")));
    let mut begun = start.clone();
    begun.task.state = TaskState::Running;
    let mut begun_inside = start.clone();
    begun_inside.task.created.as_mut().unwrap().state = TaskState::Running;
    let done = change(2, &task, TaskState::Failed);
    let cases = [
        (vec![start.clone(), change(1, &task, TaskState::Running)], "duplicate task event position"),
        (vec![start.clone(), created(2, &task)], "invalid task creation"),
        (vec![of_another], "invalid task creation"),
        (vec![begun], "invalid task creation"),
        (vec![begun_inside], "invalid task creation"),
        (vec![change(1, &task, TaskState::Running)], "task event without a live admission"),
        (vec![change(1, &task, TaskState::Queued)], "task event without a live admission"),
        (
            vec![start.clone(), done.clone(), change(3, &task, TaskState::Completed)],
            "task event without a live admission",
        ),
        (vec![start.clone(), change(2, &task, TaskState::Completed)], "invalid task transition"),
        (vec![start.clone(), change(2, &task, TaskState::CancelRequested)], "invalid task transition"),
        (
            vec![start.clone(), change(2, &task, TaskState::Running), change(3, &task, TaskState::Cancelled)],
            "invalid task transition",
        ),
        (vec![start.clone(), other_root], "task writer or root mismatch"),
        (vec![start, other_writer], "task writer or root mismatch"),
    ];
    for (log, text) in cases {
        assert_eq!(reduce(&log).unwrap_err().to_string(), text, "{log:?}");
    }
}

#[test]
fn a_stored_record_s_own_claim_of_its_outcome_is_not_believed() {
    let claiming = TaskRecord { outcome: TaskState::Completed.outcome(), ..record("task_a", "w") };
    assert_eq!(reduce(&[created(1, &claiming)]).unwrap().unwrap().outcome, None);
}

#[test]
fn an_empty_reason_is_none_and_an_older_value_stays() {
    let task = record("task_a", "w");
    let mut running = change(2, &task, TaskState::Running);
    running.task.progress = Some("half".into());
    running.task.reason = Some(String::new());
    let reduced = reduce(&[created(1, &task), running, change(3, &task, TaskState::Failed)]);
    let reduced = reduced.unwrap().unwrap();
    assert_eq!((reduced.reason, reduced.progress.as_deref()), (None, Some("half")));
}

#[test]
fn a_view_has_the_documented_fields_in_the_documented_order_and_no_others() {
    let done = TaskRecord {
        state: TaskState::Completed,
        reason: Some("r".into()),
        answer: Some(String::new()),
        progress: Some("p".into()),
        partial: Some("q".into()),
        outcome: TaskState::Completed.outcome(),
        ..record("task_a", "w")
    };
    let expected = concat!(
        r#"{"address":"task_a","environment":"env_browser_local","placement":"browser","#,
        r#""root":{"kind":"opfs","path":"v1/tasks"},"state":"completed","agent":"hash","#,
        r#""createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z","#,
        r#""reason":"r","answer":"","progress":"p","partial":"q","#,
        r#""outcome":{"class":"claimed-complete","basis":"executor-claimed"}}"#,
    );
    assert_eq!(serde_json::to_string(&task_view(&done)).unwrap(), expected);
    let queued = serde_json::to_value(task_view(&record("task_a", "w"))).unwrap();
    assert_eq!(queued.as_object().unwrap().len(), 8, "{queued}");
    let stale = serde_json::to_value(task_view(&record("task_a", "w")).stale()).unwrap();
    assert_eq!((&stale["stale"], &stale["staleReason"]), (&json!(true), &json!("generation-unconfirmed")));
}

#[test]
fn a_view_without_a_stored_placement_derives_it() {
    let derived = |environment: &str| {
        let record = TaskRecord { placement: None, environment: environment.into(), ..record("task_a", "w") };
        task_view(&record).placement
    };
    assert_eq!(derived("remote_x"), Some(Placement::Remote));
    assert_eq!(derived("env_browser_local"), None);
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    let written = serde_json::to_string(&record("task_a", "w")).unwrap();
    let keys = r#"{"address":"task_a","environment":"env_browser_local","placement":"browser","owner":"#;
    assert!(written.starts_with(keys), "{written}");
    assert!(written.contains(r#""callId":"#) && written.contains(r#""maxOutputBytes":54321"#), "{written}");
    assert_eq!(serde_json::from_str::<TaskRecord>(&written).unwrap(), record("task_a", "w"));
}

fn any_state() -> impl Strategy<Value = TaskState> {
    prop::sample::select(TaskState::ALL.to_vec())
}

/// A log of one task that its reducer takes: of any states, those that may follow.
fn history(address: &'static str, instance: &'static str) -> impl Strategy<Value = Vec<LogEntry>> {
    prop::collection::vec(any_state(), 0..12).prop_map(move |states| {
        let task = record(address, instance);
        let mut reducer = Reducer::new(address);
        let mut log = vec![created(1, &task)];
        reducer.apply(&log[0]).unwrap();
        for state in states {
            let next = change(log.len() as u64 + 1, &task, state);
            if reducer.apply(&next).is_ok() {
                log.push(next);
            }
        }
        log
    })
}

proptest! {
    #[test]
    fn no_sequence_of_events_leaves_a_terminal_state(states in prop::collection::vec(any_state(), 0..40)) {
        let task = record("task_a", "w");
        let mut reducer = Reducer::new("task_a");
        reducer.apply(&created(1, &task)).unwrap();
        for (index, state) in states.into_iter().enumerate() {
            let before = reducer.record().unwrap().clone();
            let outcome = reducer.apply(&change(index as u64 + 2, &task, state));
            let after = reducer.record().unwrap();
            if before.state.is_terminal() {
                prop_assert_eq!(outcome, Err(ReduceFault::NoLiveAdmission));
            }
            if outcome.is_err() {
                prop_assert_eq!(after, &before);
            }
            prop_assert_eq!(after.outcome.is_some(), after.state.is_terminal());
        }
    }

    #[test]
    fn two_writers_logs_give_each_task_what_its_own_log_gives(
        a in history("task_a", "w1"),
        b in history("task_b", "w2"),
        picks in prop::collection::vec(any::<bool>(), 24),
    ) {
        let (mut left, mut right) = (a.iter().cloned(), b.iter().cloned());
        let mut merged: Vec<_> =
            picks.iter().filter_map(|&pick| if pick { left.next() } else { right.next() }).collect();
        merged.extend(left.chain(right));
        prop_assert_eq!(reduce_task(&merged, "task_a"), reduce_task(&a, "task_a"));
        prop_assert_eq!(reduce_task(&merged, "task_b"), reduce_task(&b, "task_b"));
    }

    #[test]
    fn a_second_writer_s_entries_in_a_task_s_log_are_refused(
        log in history("task_a", "w1"),
        state in any_state(),
        at in any::<prop::sample::Index>(),
    ) {
        let seq = at.index(log.len()) as u64 + 2;
        let mut forged = change(seq, &record("task_a", "w2"), state);
        forged.seq = seq;
        // The second writer counts for itself, so that its position may be one that is taken.
        let mut mixed = log;
        mixed.push(forged);
        prop_assert!(reduce_task(&mixed, "task_a").is_err());
    }

    #[test]
    fn a_view_never_shows_what_is_the_host_s(log in history("task_a", "w")) {
        let record = reduce_task(&log, "task_a").unwrap().unwrap();
        let view = serde_json::to_string(&task_view(&record)).unwrap();
        for hidden in ["SECRET", "987654", "12345", "54321", "callId", "owner", "bounds", "boot", "pid", "input"] {
            prop_assert!(!view.contains(hidden), "{hidden} in {view}");
        }
    }

    #[test]
    fn reading_a_log_anew_and_going_on_from_a_record_are_the_same(
        log in history("task_a", "w"),
        at in any::<prop::sample::Index>(),
    ) {
        let cut = at.index(log.len()) + 1;
        let (head, tail) = log.split_at(cut.min(log.len()));
        let snapshot = reduce_task(head, "task_a").unwrap().unwrap();
        let mut reducer = Reducer::resume(snapshot, head.len() as u64);
        for entry in tail {
            reducer.apply(entry).unwrap();
        }
        prop_assert_eq!(reducer.into_record(), reduce_task(&log, "task_a").unwrap());
    }
}
