//! What `core` writes is what is read here, field by field.

use serde::Serialize;
use serde_json::json;

use super::*;

fn same<T: Serialize + PartialEq + std::fmt::Debug>(read: fn(&Value) -> Read<T>, told: T) {
    let value = serde_json::to_value(&told).unwrap();
    assert_eq!(read(&value), Ok(told));
}

/// Each field that is taken away is named, unless it is one that may be missing.
fn every_field_counts<T: std::fmt::Debug>(read: fn(&Value) -> Read<T>, told: &Value, optional: &[&str]) {
    for key in told.as_object().unwrap().keys() {
        let mut less = told.clone();
        less.as_object_mut().unwrap().remove(key);
        match read(&less) {
            Ok(_) => assert!(optional.contains(&key.as_str()), "{key} is not missed"),
            Err(missed) => assert_eq!(missed, key),
        }
    }
}

fn machine_root() -> RootDescriptor {
    RootDescriptor::Machine { path: "/r".into(), environment: Some("env_1".into()) }
}

fn task(state: TaskState) -> TaskView {
    TaskView {
        address: "a".into(),
        environment: "env_1".into(),
        placement: Some(Placement::Machine),
        root: machine_root(),
        state,
        agent: "hash".into(),
        created_at: "2026-01-01T00:00:00.000Z".into(),
        updated_at: "2026-01-01T00:00:01.000Z".into(),
        reason: Some("task-deadline".into()),
        answer: Some(String::new()),
        progress: Some("half".into()),
        partial: Some("some".into()),
        outcome: state.outcome(),
        stale: false,
        stale_reason: None,
    }
}

fn listed(state: TaskState) -> Row {
    Row {
        position: 7,
        view: task(state),
        title: "abc".into(),
        bounds: TaskBounds { deadline_ms: 60_000, max_output_bytes: 65_536 },
        ends_at_ms: Some(1.5e12),
        here: true,
    }
}

#[test]
fn a_companions_description_is_read() {
    let told = MachineEnvironment {
        key: "env_0011".into(),
        placement: Placement::Machine,
        label: "desk".into(),
        bounds: Placement::Machine.bounds(),
        active: 2,
        roots: vec![MachineRoot { root: machine_root(), available: false }],
        agents: vec![AgentInfo { name: "a".into(), description: String::new(), deadline_ms: 5 }],
        version: "1".into(),
    };
    every_field_counts(environment, &json!(told), &[]);
    same(environment, told);
}

#[test]
fn tasks_are_read_in_every_state() {
    for state in TaskState::ALL {
        same(view, task(state));
        same(view, task(state).stale());
        same(row, listed(state));
    }
    let optional = ["placement", "reason", "answer", "progress", "partial", "outcome"];
    every_field_counts(view, &json!(task(TaskState::Failed)), &optional);
    every_field_counts(row, &json!(listed(TaskState::Running)), &["endsAtMs"]);
    same(page, Page { rows: vec![listed(TaskState::Queued)], next: Some(7) });
    same(page, Page::default());
    let moment = Moment { at: "t".into(), state: TaskState::Failed, reason: Some("r".into()) };
    let bare = Moment { reason: None, ..moment.clone() };
    let (task, mechanism, call_id) = ("abc".into(), "m".into(), "c".into());
    let told =
        Detail { row: listed(TaskState::Failed), task, mechanism, call_id, moments: vec![moment, bare] };
    every_field_counts(detail, &json!(told), &[]);
    same(detail, told);
}

#[test]
fn answers_and_notices_are_read() {
    let ops = [Op::Equal, Op::Delete, Op::Insert, Op::Unknown(9)];
    let block = |op| Block { op, a_line: 1, a_count: 2, b_line: 3, b_count: 4 };
    let told = Answer {
        ok: true,
        action: "wasm",
        tool: "diff".into(),
        returned: -1,
        output: "00ff".into(),
        blocks: Some(ops.map(block).to_vec()),
        digest: Digest::of(b"m"),
        input_bytes: 3,
        duration_ms: 1.25,
        timing: Timing { verify_ms: 0.1, queue_ms: 0.2, worker_ms: 0.3, run_ms: 0.4 },
    };
    every_field_counts(answer, &json!(told), &["ok", "action", "blocks"]);
    same(answer, Answer { blocks: None, ..told.clone() });
    same(answer, told);
    for from in [
        CallOrigin::Live,
        CallOrigin::Http,
        CallOrigin::Cli,
        CallOrigin::Task,
        CallOrigin::Mcp,
        CallOrigin::Agent,
    ] {
        let told = CallNotice {
            name: "hash".into(),
            ok: false,
            output: String::new(),
            duration_ms: 1.5,
            from,
            digest: Some("d".into()),
            refused: Some("time-exceeded".into()),
            why: Some("too long".into()),
            session: Some(7),
        };
        every_field_counts(notice, &json!(told), &["digest", "refused", "why", "session"]);
        same(notice, told);
    }
}

#[test]
fn a_shelf_that_cannot_be_read_stands_among_those_that_can() {
    let entry = |id: &str, verdict| Tool {
        id: id.into(),
        digest: Some(Digest::of(b"m").to_string()),
        wasm_path: "m.wasm".into(),
        description: "what it does".into(),
        capability: "hash".into(),
        verdict,
    };
    let admitted = |abi| {
        Ok(Admitted { digest: Digest::of(b"m"), abi, bytes: 312, memory_pages: 2, memory_max_pages: 1_024 })
    };
    let told = Shelf {
        dir: "/s".into(),
        name: "mine".into(),
        version: "1".into(),
        tools: vec![
            entry("hash", admitted(Some(Abi::Buffer1))),
            entry("diff", admitted(Some(Abi::Diff))),
            entry("shown", admitted(None)),
            entry("bad", Err(Refusal::new(Code::DigestMismatch, "they differ"))),
            Tool { digest: None, ..entry("(unnamed)", Err(Refusal::new(Code::UnderDeclared, "no id"))) },
        ],
    };
    let expected = Ok(Reading { key: "/s".into(), shelf: Ok(told.clone()) }).map(|reading| reading.shelf);
    assert_eq!(reading(&json!(told)).map(|reading| reading.shelf), expected);

    let mut broken = json!(Refusal::new(Code::ShelfUnreadable, "no JSON"));
    (broken["dir"], broken["key"]) = (json!("/t"), json!("folder"));
    let read = reading(&broken).unwrap();
    assert_eq!((read.key.as_str(), read.shelf.unwrap_err().code), ("folder", Code::ShelfUnreadable));

    let mut unpinned = json!(told.tools[0]);
    unpinned["digest"] = json!("0F");
    assert_eq!(tool(&unpinned), Err("digest"));
    let mut unknown = json!(told.tools[3]);
    unknown["refused"] = json!("made-up");
    assert_eq!(tool(&unknown), Err("refused"));
}

#[test]
fn what_is_no_folder_of_a_machine_is_no_root() {
    same(root, machine_root());
    assert_eq!(root(&json!({"kind": "opfs", "path": ""})), Err("kind"));
    assert_eq!(root(&json!("/r")), Err("kind"));
}
