//! Prints how many events a second the reducer takes: `cargo run --release -p toolshelf-core --example reduce_speed`.

#![expect(clippy::print_stdout, reason = "the figure is what it is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use toolshelf_core::task::{
    LogEntry, ReduceFault, Reducer, TaskBounds, TaskEvent, TaskInput, TaskRecord, TaskState, reduce_task,
};
use toolshelf_core::{Placement, RootDescriptor};

/// Together 1,000,000 events, more than any cache holds.
const TASKS: usize = 200_000;
/// Each figure is the best of so many rounds.
const ROUNDS: usize = 5;
const STATES: [TaskState; 4] =
    [TaskState::Running, TaskState::CancelRequested, TaskState::CancelUnconfirmed, TaskState::Completed];

fn main() -> Result<(), ReduceFault> {
    let log: Vec<LogEntry> = (0..TASKS).flat_map(log).collect();
    let events = log.len();
    let each = STATES.len() + 1;

    let address = log[events / 2].task.address.clone();
    report("one task out of the whole log", events, || {
        black_box(reduce_task(&log, &address)?);
        Ok(())
    })?;
    report("every task of the log, entry by entry", events, || {
        for log in log.chunks_exact(each) {
            let mut reducer = Reducer::new(log[0].task.address.as_str());
            for entry in log {
                reducer.apply(entry)?;
            }
            black_box(reducer.record());
        }
        Ok(())
    })?;
    // As many events of few tasks: what the rules cost without the way to the memory.
    let few = &log[..1_000];
    report("the same few tasks again and again", events, || {
        for log in (0..events / few.len()).flat_map(|_| few.chunks_exact(each)) {
            let mut reducer = Reducer::new(log[0].task.address.as_str());
            for entry in log {
                reducer.apply(entry)?;
            }
            black_box(reducer.record());
        }
        Ok(())
    })
}

fn report(
    what: &str,
    events: usize,
    mut reduce: impl FnMut() -> Result<(), ReduceFault>,
) -> Result<(), ReduceFault> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        reduce()?;
        best = best.min(start.elapsed());
    }
    let rate = events as f64 / best.as_secs_f64() / 1e6;
    println!("reduce {events} events, {what}: {rate:.1} million events a second");
    Ok(())
}

/// The longest log that a task can have, with an address and texts of usual lengths.
fn log(number: usize) -> Vec<LogEntry> {
    let at = || "2026-01-01T00:00:00.000Z".to_owned();
    let record = TaskRecord {
        address: format!("task_{}{number:08}.{}{number:08}", "x".repeat(260), "0".repeat(56)),
        environment: "env_browser_local".into(),
        placement: Some(Placement::Browser),
        owner: "owner".into(),
        root: RootDescriptor::Opfs { path: "v1/tasks".into() },
        project: "browser-project".into(),
        instance: "browser-tab".into(),
        call_id: format!("call-{number}"),
        input: TaskInput { agent: "hash".into(), task: "x".repeat(200), context: [] },
        bounds: TaskBounds { deadline_ms: 30_000, max_output_bytes: 65_536 },
        mechanism: "webassembly".into(),
        boot: "boot_1".into(),
        pid: None,
        state: TaskState::Queued,
        created_at: at(),
        updated_at: at(),
        reason: None,
        answer: None,
        progress: None,
        partial: None,
        outcome: None,
    };
    let created = TaskEvent {
        created: Some(Box::new(record.clone())),
        ..TaskEvent::to(record.address.as_str(), TaskState::Queued)
    };
    let mut log = vec![LogEntry::of(&record, 1, at(), created)];
    for state in STATES {
        let mut event = TaskEvent::to(record.address.as_str(), state);
        event.progress = Some("half of it is done".into());
        event.answer = (state == TaskState::Completed).then(|| "x".repeat(500));
        log.push(LogEntry::of(&record, log.len() as u64 + 1, at(), event));
    }
    log
}
