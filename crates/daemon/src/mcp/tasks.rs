//! Tasks as the protocol has them (the extension `io.modelcontextprotocol/tasks`), for clients that say they know it:
//! `delegate_task` answers such a task, `tasks/get` and `tasks/cancel` take its id, which is the task's address.

use rmcp::model::{CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus};
use serde_json::{Value, json};
use toolshelf_core::task::{TaskState, TaskView};

use super::definition::object;

/// How often a client may well ask, in milliseconds.
const POLL_MS: u64 = 1_000;

/// The task of what `delegate_task` has answered; `None` where that names none.
pub(super) fn created(answer: &Value) -> Option<CreateTaskResult> {
    Some(CreateTaskResult::new(task(&view(answer)?)))
}

/// The task of what `task_status` has answered.
pub(super) fn detailed(answer: &Value) -> Option<GetTaskResult> {
    let view = view(answer)?;
    Some(GetTaskResult::new(DetailedTask::new(task(&view), payload(&view, answer))))
}

fn view(answer: &Value) -> Option<TaskView> {
    serde_json::from_value(answer["task"].clone()).ok()
}

fn task(view: &TaskView) -> Task {
    let task = Task::new(&*view.address, status(view.state), &*view.created_at, &*view.updated_at);
    let task = if view.state.is_terminal() { task } else { task.with_poll_interval_ms(POLL_MS) };
    match view.progress.as_ref().or(view.reason.as_ref()) {
        Some(message) => task.with_status_message(message),
        None => task,
    }
}

fn status(state: TaskState) -> TaskStatus {
    match state {
        TaskState::Queued
        | TaskState::Running
        | TaskState::CancelRequested
        | TaskState::CancelUnconfirmed => TaskStatus::Working,
        TaskState::Cancelled => TaskStatus::Cancelled,
        TaskState::Completed => TaskStatus::Completed,
        TaskState::Failed | TaskState::Interrupted => TaskStatus::Failed,
    }
}

/// What a task has ended with: the result of the call, as it would have been answered without a task.
fn payload(view: &TaskView, answer: &Value) -> TaskPayload {
    match status(view.state) {
        TaskStatus::Completed => {
            let text = view.answer.as_deref().unwrap_or_default();
            let result = json!({
                "content": [{ "type": "text", "text": text }], "structuredContent": answer, "isError": false,
            });
            TaskPayload::Completed { result: object(result) }
        }
        TaskStatus::Failed => {
            let reason = view.reason.as_deref().unwrap_or("failed");
            let error: JsonObject = object(json!({ "code": -32_000, "message": reason, "data": answer }));
            TaskPayload::Failed { error }
        }
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        _ => TaskPayload::Working,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(state: &str) -> Value {
        json!({"ok": true, "task": {
            "address": "task_a", "environment": "e", "placement": null, "root": {"kind": "machine", "path": "/r"},
            "state": state, "agent": "hash", "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:01.000Z",
            "answer": "done", "reason": "task-deadline",
        }})
    }

    #[test]
    fn every_state_is_one_of_the_protocols() {
        for (state, status) in [
            ("queued", "working"),
            ("running", "working"),
            ("completed", "completed"),
            ("failed", "failed"),
            ("cancelled", "cancelled"),
            ("interrupted", "failed"),
        ] {
            let shown = json!(detailed(&answer(state)).unwrap());
            assert_eq!((&shown["taskId"], &shown["status"]), (&json!("task_a"), &json!(status)), "{shown}");
        }
        let done = json!(detailed(&answer("completed")).unwrap());
        assert_eq!(done["result"]["content"][0]["text"], "done");
        assert_eq!(json!(detailed(&answer("failed")).unwrap())["error"]["message"], "task-deadline");
        assert_eq!(json!(created(&answer("queued")).unwrap())["resultType"], "task");
        assert!(created(&json!({"ok": true})).is_none());
    }
}
