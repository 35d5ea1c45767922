//! Who calls, and what is answered.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use toolshelf_core::task::{TaskState, TaskView};

/// Who calls. Comes from whoever authenticated the caller, never from the caller's arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Opaque identity of the caller.
    pub owner: Option<String>,
    /// The caller's name of this call.
    pub call_id: Option<String>,
}

impl Caller {
    /// The caller `owner` in the call `call_id`.
    pub fn new(owner: impl Into<String>, call_id: impl Into<String>) -> Self {
        Self { owner: Some(owner.into()), call_id: Some(call_id.into()) }
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
