//! What the owner of a task is shown: never the owner, the input, the call id, the bounds, the boot or the process.

use serde::{Deserialize, Serialize};

use super::record::{Outcome, TaskRecord, TaskState};
use crate::placement::{Placement, placement_of_name};
use crate::root::RootDescriptor;

/// A task as its owner sees it. The fields stand in the documented order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// The sealed address.
    pub address: String,
    /// The environment that it runs in.
    pub environment: String,
    /// The placement, as it was stored or as the environment's name says.
    pub placement: Option<Placement>,
    /// The folder that it works in.
    pub root: RootDescriptor,
    /// Where it stands.
    pub state: TaskState,
    /// The agent that it was given to.
    pub agent: String,
    /// When it was admitted.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// Why it ended as it did: a refusal code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer; it may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The last note of its executor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// What there is of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// How it ended and who says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// `true` when another life of the host has the task, and nobody knows whether that life goes on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stale: bool,
    /// Why it is stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_reason: Option<StaleReason>,
}

/// Why a view may be behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StaleReason {
    /// The life that runs the task is not known to be over.
    GenerationUnconfirmed,
}

/// The view of `record`.
#[must_use]
pub fn task_view(record: &TaskRecord) -> TaskView {
    TaskView {
        address: record.address.clone(),
        environment: record.environment.clone(),
        placement: record.placement.or_else(|| placement_of_name(&record.environment)),
        root: record.root.clone(),
        state: record.state,
        agent: record.input.agent.clone(),
        created_at: record.created_at.clone(),
        updated_at: record.updated_at.clone(),
        reason: record.reason.clone().filter(|reason| !reason.is_empty()),
        answer: record.answer.clone(),
        progress: record.progress.clone(),
        partial: record.partial.clone(),
        outcome: record.outcome,
        stale: false,
        stale_reason: None,
    }
}

impl TaskView {
    /// Says that another life of the host has the task.
    #[must_use]
    pub fn stale(self) -> Self {
        Self { stale: true, stale_reason: Some(StaleReason::GenerationUnconfirmed), ..self }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
