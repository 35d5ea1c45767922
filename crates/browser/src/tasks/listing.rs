//! What the page shows of its tasks and its environment.

use toolshelf_core::RootDescriptor;
use toolshelf_core::placement::{Placement, PlacementBounds};
use toolshelf_core::refusal::Refusal;
pub use toolshelf_core::task::listing::{Detail, Filter, Moment, Page, Row, title};

/// A task that is to be delegated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// Id of the tool, or [`MODEL_AGENT`](super::MODEL_AGENT).
    pub agent: String,
    /// Plain text, or a JSON object of arguments.
    pub task: String,
    /// The deadline that is asked for, in milliseconds; `None` for the placement's default.
    pub deadline_ms: Option<u32>,
    /// The folder that it works in; `None` for the selected one.
    pub root: Option<RootDescriptor>,
}

/// An environment as the page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Its key.
    pub key: String,
    /// Its placement.
    pub placement: Placement,
    /// What that placement grants.
    pub bounds: PlacementBounds,
    /// How many tasks run in this tab.
    pub active: usize,
    /// Whether tasks are there after a reload.
    pub persistent: bool,
    /// Whether the browser's own model can be asked.
    pub model: bool,
    /// How many damaged records were set aside.
    pub damaged: Vec<String>,
    /// Why nothing can be delegated here, if so.
    pub unavailable: Option<Refusal>,
}
