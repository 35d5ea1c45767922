//! Prints how many events a second the reducer takes: `cargo run --release -p toolshelf-core --example reduce_speed`.

#![expect(clippy::print_stdout, reason = "the figure is what it is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use toolshelf_core::task::{
    LogEntry, ReduceFault, Reducer, TaskBounds, TaskEvent, TaskInput, TaskRecord, TaskState, reduce_task,
};
use toolshelf_core::{Placement, RootDescriptor};

const TASKS: usize = 200;
const ROUNDS: usize = 2_000;
const STATES: [TaskState; 4] =
    [TaskState::Running, TaskState::CancelRequested, TaskState::CancelUnconfirmed, TaskState::Completed];

fn main() -> Result<(), ReduceFault> {
    let logs: Vec<Vec<LogEntry>> = (0..TASKS).map(log).collect();
    let events = TASKS * (STATES.len() + 1) * ROUNDS;

    let mut one_by_one = Duration::ZERO;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for log in &logs {
            let mut reducer = Reducer::new(log[0].task.address.as_str());
            for entry in log {
                reducer.apply(entry)?;
            }
            black_box(reducer.record());
        }
        one_by_one += start.elapsed();
    }
    report("entry by entry", events, one_by_one);

    let address = logs[TASKS / 2][0].task.address.clone();
    let whole: Vec<LogEntry> = logs.into_iter().flatten().collect();
    let mut out_of_a_log = Duration::ZERO;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(reduce_task(&whole, &address)?);
        out_of_a_log += start.elapsed();
    }
    report("one task out of a long log", events, out_of_a_log);
    Ok(())
}

fn report(what: &str, events: usize, took: Duration) {
    println!("{what}: {:.1} million events a second", events as f64 / took.as_secs_f64() / 1e6);
}

/// The longest log that a task can have, with an address and texts of usual lengths.
fn log(number: usize) -> Vec<LogEntry> {
    let at = || "2026-01-01T00:00:00.000Z".to_owned();
    let record = TaskRecord {
        address: format!("task_{}{number:08}.{}", "x".repeat(260), "0".repeat(64)),
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
