//! States, records, events and log entries, in their wire forms.
//!
//! Source: the reference facts, B1 and B3. Field names are written in camel case on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::input::{TaskBounds, TaskInput};
use crate::placement::Placement;
use crate::root::RootDescriptor;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Admitted and written down; nothing has run.
    Queued,
    /// Its executor was started.
    Running,
    /// Its executor was asked to stop.
    CancelRequested,
    /// It stopped because it was asked to, or never began. Terminal.
    Cancelled,
    /// Nobody saw it stop in time; it may still end in any way.
    CancelUnconfirmed,
    /// Its executor claims to have done it. Terminal.
    Completed,
    /// It ended in a fault. Terminal.
    Failed,
    /// It was ended, or what ran it is gone. Terminal.
    Interrupted,
}

impl TaskState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::CancelRequested,
        Self::Cancelled,
        Self::CancelUnconfirmed,
        Self::Completed,
        Self::Failed,
        Self::Interrupted,
    ];

    /// The state's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::CancelRequested => "cancel_requested",
            Self::Cancelled => "cancelled",
            Self::CancelUnconfirmed => "cancel_unconfirmed",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether nothing follows.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Cancelled | Self::Completed | Self::Failed | Self::Interrupted)
    }

    /// Whether `next` may follow.
    ///
    /// A queued task becomes cancelled at once: nothing has run that could be asked to stop. The reference system asks
    /// first, which its own reducer then rejects.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Queued => {
                matches!(next, Self::Running | Self::Cancelled | Self::Failed | Self::Interrupted)
            }
            Self::Running => {
                matches!(next, Self::CancelRequested | Self::Completed | Self::Failed | Self::Interrupted)
            }
            Self::CancelRequested => matches!(
                next,
                Self::Cancelled
                    | Self::CancelUnconfirmed
                    | Self::Completed
                    | Self::Failed
                    | Self::Interrupted
            ),
            Self::CancelUnconfirmed => {
                matches!(next, Self::Cancelled | Self::Completed | Self::Failed | Self::Interrupted)
            }
            Self::Cancelled | Self::Completed | Self::Failed | Self::Interrupted => false,
        }
    }

    /// What can be said about how a task ended; `None` while it has not.
    #[must_use]
    pub const fn outcome(self) -> Option<Outcome> {
        Some(match self {
            Self::Completed => Outcome::new(OutcomeClass::ClaimedComplete, OutcomeBasis::ExecutorClaimed),
            Self::Failed => Outcome::new(OutcomeClass::ObservedFailure, OutcomeBasis::HostObserved),
            Self::Interrupted => Outcome::new(OutcomeClass::ObservedInterruption, OutcomeBasis::HostObserved),
            Self::Cancelled => Outcome::new(OutcomeClass::ObservedCancellation, OutcomeBasis::HostObserved),
            Self::Queued | Self::Running | Self::CancelRequested | Self::CancelUnconfirmed => return None,
        })
    }
}

/// How a task ended and who says so. There is no score and no order among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What is known.
    pub class: OutcomeClass,
    /// Whose word it is.
    pub basis: OutcomeBasis,
}

impl Outcome {
    const fn new(class: OutcomeClass, basis: OutcomeBasis) -> Self {
        Self { class, basis }
    }
}

/// What is known of the end of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeClass {
    /// The executor says that it is done.
    ClaimedComplete,
    /// The host saw it fail.
    ObservedFailure,
    /// The host ended it, or saw that what ran it is gone.
    ObservedInterruption,
    /// The host saw it stop when asked, or never let it begin.
    ObservedCancellation,
}

/// Whose word an outcome is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeBasis {
    /// The executor's: a claim.
    ExecutorClaimed,
    /// The host's: an observation.
    HostObserved,
}

/// All that is known of a task. It stays with its host; owners see a [`TaskView`](super::TaskView).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRecord {
    /// The sealed address.
    pub address: String,
    /// The environment that it runs in.
    pub environment: String,
    /// The placement; older records leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Opaque identity of the caller.
    pub owner: String,
    /// The folder that it works in, frozen at admission.
    pub root: RootDescriptor,
    /// The project that it belongs to.
    pub project: String,
    /// The writer of its log entries.
    pub instance: String,
    /// The caller's name of the call that delegated it.
    pub call_id: String,
    /// What was asked.
    pub input: TaskInput,
    /// What the executor promised, frozen at admission.
    pub bounds: TaskBounds,
    /// How it is executed, in the executor's words.
    pub mechanism: String,
    /// The life of the host that admitted it.
    pub boot: String,
    /// That host's process, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Where it stands.
    pub state: TaskState,
    /// When it was admitted.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// Why it ended as it did: a refusal code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The last note of its executor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// What there was of an answer when it ended without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// How it ended and who says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// One change of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEvent {
    /// The task's address.
    pub address: String,
    /// The state that it has from now on.
    pub state: TaskState,
    /// The whole record, in the event that creates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Box<TaskRecord>>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The executor's last note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// What there was of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}

impl TaskEvent {
    /// The bare change of the task at `address` to `state`.
    #[must_use]
    pub fn to(address: impl Into<String>, state: TaskState) -> Self {
        let (created, reason, answer, progress, partial) = (None, None, None, None, None);
        Self { address: address.into(), state, created, reason, answer, progress, partial }
    }
}

/// One entry of a writer's log. On the wire its `kind` is `"task"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Always `"task"`. Entries of other kinds share the log; [`LogEntry::read`] passes over them.
    pub kind: EntryKind,
    /// Position in the writer's log.
    pub seq: u64,
    /// The writer.
    pub instance: String,
    /// The project.
    pub project: String,
    /// Containment string of the root.
    pub root: String,
    /// The call that the task came from.
    pub turn: String,
    /// When.
    pub at: String,
    /// What.
    pub task: TaskEvent,
}

/// The kind of a [`LogEntry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A change of a task.
    #[default]
    Task,
}

impl LogEntry {
    /// The entry at position `seq` that says that `event` happened to the task of `record` at the moment `at`.
    #[must_use]
    pub fn of(record: &TaskRecord, seq: u64, at: String, event: TaskEvent) -> Self {
        Self {
            kind: EntryKind::Task,
            seq,
            instance: record.instance.clone(),
            project: record.project.clone(),
            root: record.root.to_string(),
            turn: record.call_id.clone(),
            at,
            task: event,
        }
    }

    /// Reads one value of a log; `None` for an entry of another kind.
    ///
    /// # Errors
    /// When the value is an entry of a task and not of its form.
    pub fn read(value: Value) -> Result<Option<Self>, serde_json::Error> {
        if value.get("kind").and_then(Value::as_str) != Some("task") {
            return Ok(None);
        }
        serde_json::from_value(value).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_state_is_written_by_its_name() {
        for state in TaskState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
            assert_eq!(state.outcome().is_some(), state.is_terminal());
        }
    }

    #[test]
    fn the_table_of_transitions_is_the_documented_one_and_a_queued_task_may_be_cancelled() {
        let documented = [
            ("queued", "running cancelled failed interrupted"),
            ("running", "cancel_requested completed failed interrupted"),
            ("cancel_requested", "cancelled cancel_unconfirmed completed failed interrupted"),
            ("cancel_unconfirmed", "cancelled completed failed interrupted"),
        ];
        for from in TaskState::ALL {
            let row = documented.iter().find(|(state, _)| *state == from.as_str()).map_or("", |row| row.1);
            for to in TaskState::ALL {
                let allowed = row.split(' ').any(|state| state == to.as_str());
                assert_eq!(from.may_become(to), allowed, "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn a_claim_is_a_claim_and_the_rest_is_observed() {
        let wire = |state: TaskState| serde_json::to_value(state.outcome()).unwrap();
        let claimed = json!({"class": "claimed-complete", "basis": "executor-claimed"});
        assert_eq!(wire(TaskState::Completed), claimed);
        for (state, class) in [
            (TaskState::Failed, "observed-failure"),
            (TaskState::Interrupted, "observed-interruption"),
            (TaskState::Cancelled, "observed-cancellation"),
        ] {
            assert_eq!(wire(state), json!({"class": class, "basis": "host-observed"}));
        }
    }

    #[test]
    fn entries_of_other_kinds_are_passed_over_and_broken_ones_are_not() {
        assert_eq!(LogEntry::read(json!({"kind": "presence", "seq": 1})).unwrap(), None);
        assert_eq!(LogEntry::read(json!(7)).unwrap(), None);
        assert!(LogEntry::read(json!({"kind": "task", "seq": 1})).is_err());
        let entry = json!({
            "kind": "task", "seq": 3, "instance": "i", "project": "p", "root": "opfs:v1", "turn": "c",
            "at": "2026-01-01T00:00:00.000Z", "task": {"address": "task_x", "state": "running"}
        });
        let read = LogEntry::read(entry.clone()).unwrap().unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), entry);
    }
}
