//! Who calls, and what is answered.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use toolshelf_core::task::{TaskRecord, TaskState, TaskView};

use crate::task_ports::SelectedRoot;

/// Who calls. Comes from whoever authenticated the caller, never from the caller's arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Opaque identity of the caller.
    pub owner: Option<String>,
    /// The caller's name of this call.
    pub call_id: Option<String>,
    /// What the caller would like of a task that it delegates.
    pub wish: Wish,
}

/// What a caller would like of a task that it delegates, beside the arguments. The host and the executor decide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// Where it works; `None` for the root that is selected.
    pub root: Option<SelectedRoot>,
    /// Within which time, in milliseconds; `None` for what the executor finds right.
    pub deadline_ms: Option<u32>,
}

impl Caller {
    /// The caller `owner` in the call `call_id`.
    pub fn new(owner: impl Into<String>, call_id: impl Into<String>) -> Self {
        Self { owner: Some(owner.into()), call_id: Some(call_id.into()), wish: Wish::default() }
    }
}

/// What a call answers. On the wire with `ok: true` in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Of `delegate_task`: `{ok, task, existing}`.
    Delegated {
        /// The task.
        task: TaskView,
        /// Whether an earlier call of the same id admitted it.
        existing: bool,
    },
    /// Of `task_status`: `{ok, task}`.
    Status {
        /// The task.
        task: TaskView,
    },
    /// Of `cancel_task`: `{ok, state, observed}`.
    Cancelled {
        /// Where the task stands now.
        state: TaskState,
        /// Whether it was seen to end.
        observed: bool,
    },
}

impl Reply {
    /// The task that the answer shows.
    #[must_use]
    pub fn task(&self) -> Option<&TaskView> {
        match self {
            Self::Delegated { task, .. } | Self::Status { task } => Some(task),
            Self::Cancelled { .. } => None,
        }
    }
}

/// A task of a caller, for the host's own page or command line. The record does not leave the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Where the task was created in the journal.
    pub position: u64,
    /// All that is known of it.
    pub record: TaskRecord,
    /// What its owner is shown.
    pub view: TaskView,
    /// Whether this life of the host has it.
    pub here: bool,
}

/// Some tasks of a caller, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The tasks.
    pub tasks: Vec<Listed>,
    /// Where the next batch begins; `None` when there is none.
    pub next: Option<u64>,
}

impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("ok", &true)?;
        match self {
            Self::Delegated { task, existing } => {
                map.serialize_entry("task", task)?;
                map.serialize_entry("existing", existing)?;
            }
            Self::Status { task } => map.serialize_entry("task", task)?,
            Self::Cancelled { state, observed } => {
                map.serialize_entry("state", state)?;
                map.serialize_entry("observed", observed)?;
            }
        }
        map.end()
    }
}
