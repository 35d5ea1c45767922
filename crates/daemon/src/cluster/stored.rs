//! A task as it stands in its bucket.

use serde::{Deserialize, Serialize};
use toolshelf_core::Digest;
use toolshelf_core::task::listing::Moment;
use toolshelf_core::task::{ReduceFault, Reducer, TaskInput, TaskRecord, TaskState};
use toolshelf_host::task_ports::{CallKey, Draft};

/// The value of a task's key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stored {
    /// The task.
    pub(crate) record: TaskRecord,
    /// How many entries its log has.
    pub(crate) entries: u64,
    /// Where it was admitted, in the order of admissions.
    pub(crate) position: u64,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claim: Option<Claim>,
    /// What runs it, and whether it may be run again.
    pub(crate) work: Work,
    /// Every change of its state.
    pub(crate) moments: Vec<Moment>,
}

/// What is decided at the admission about who may run a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Work {
    /// The tool that was admitted under the agent's name; `None` for an agent of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<ToolPin>,
    /// Whether another worker may run it from the beginning when the first is gone.
    pub(crate) repeatable: bool,
}

/// A tool of the shelf where the task was admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolPin {
    /// SHA-256 of its module.
    pub(crate) digest: String,
    /// Its ABI.
    pub(crate) abi: String,
}

/// Who runs a task. A worker writes to it only while the claim is its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// The worker's life.
    pub(crate) worker: String,
    /// The how manieth this is, from 1 on.
    pub(crate) attempt: u32,
}

/// Says what work a task is, at its admission.
pub(crate) type WorkOf = std::rc::Rc<dyn Fn(&TaskInput) -> Work>;

impl Stored {
    /// A task that is created.
    pub(crate) fn created(draft: &Draft, work: Work) -> Result<Self, ReduceFault> {
        let record = draft.record_after(Reducer::new(&*draft.event.address), 1)?;
        let moments = vec![moment(draft)];
        Ok(Self { record, entries: 1, position: 0, claim: None, work, moments })
    }

    /// The task after `draft`.
    pub(crate) fn after(&self, draft: &Draft) -> Result<Self, ReduceFault> {
        let entries = self.entries + 1;
        let record = draft.record_after(Reducer::resume(self.record.clone(), self.entries), entries)?;
        let mut moments = self.moments.clone();
        moments.push(moment(draft));
        Ok(Self { record, entries, moments, ..self.clone() })
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Nothing in it can fail to be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether nothing follows.
    pub(crate) fn has_ended(&self) -> bool {
        self.record.state.is_terminal()
    }

    /// Whether it waits for a worker.
    pub(crate) fn waits(&self) -> bool {
        self.record.state == TaskState::Queued
    }
}

fn moment(draft: &Draft) -> Moment {
    Moment { at: draft.at.clone(), state: draft.event.state, reason: draft.event.reason.clone() }
}

/// The key of the task at an address. An address is longer than a key may be.
pub(crate) fn task_key(address: &str) -> String {
    Digest::of(address.as_bytes()).to_string()
}

/// The key of a call.
pub(crate) fn call_key(call: &CallKey) -> String {
    Digest::of(call.as_str().as_bytes()).to_string()
}
