//! What the page shows of its tasks and its environment.

use serde_json::Value;
use toolshelf_core::RootDescriptor;
use toolshelf_core::placement::{Placement, PlacementBounds};
use toolshelf_core::refusal::{Refusal, cut};
use toolshelf_core::task::tool_call::OUT;
use toolshelf_core::task::{TaskBounds, TaskState, TaskView};

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

/// One task in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its place in the journal; later tasks have greater ones.
    pub position: u64,
    /// What its owner is shown.
    pub view: TaskView,
    /// The beginning of what was asked, on one line.
    pub title: String,
    /// What it is granted.
    pub bounds: TaskBounds,
    /// Milliseconds since 1970 at which its deadline passes, while it runs.
    pub ends_at_ms: Option<f64>,
    /// Whether this very tab runs it.
    pub here: bool,
}

/// Some tasks, the newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The tasks.
    pub rows: Vec<Row>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<u64>,
}

/// Which tasks are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filter {
    /// All of them.
    #[default]
    All,
    /// Those that have not ended.
    Active,
    /// Those that were completed.
    Completed,
    /// Those that ended in another way.
    Unsuccessful,
}

impl Filter {
    /// Whether a task in `state` is listed.
    #[must_use]
    pub fn admits(self, state: TaskState) -> bool {
        match self {
            Self::All => true,
            Self::Active => !state.is_terminal(),
            Self::Completed => state == TaskState::Completed,
            Self::Unsuccessful => state.is_terminal() && state != TaskState::Completed,
        }
    }
}

/// All that the page knows of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    /// The task in the list.
    pub row: Row,
    /// What was asked, whole.
    pub task: String,
    /// How it is executed, in the executor's words.
    pub mechanism: String,
    /// The caller's name of the call that delegated it.
    pub call_id: String,
    /// Every change of its state, in order.
    pub moments: Vec<Moment>,
}

/// One change of a task's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When, as ISO 8601.
    pub at: String,
    /// What it became.
    pub state: TaskState,
    /// Why: a refusal code.
    pub reason: Option<String>,
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

/// Longest title, in characters.
const TITLE_MAX_CHARS: usize = 120;

/// What a task is about, on one line: the beginning of its text, or its arguments and where the answer goes.
pub(super) fn title(task: &str) -> String {
    let mut title = String::new();
    match serde_json::from_str(task) {
        Ok(Value::Object(arguments)) => {
            for (name, value) in &arguments {
                let text = value.as_str().or_else(|| value.as_object()?.values().next()?.as_str());
                let arrow = if name == OUT || value.get(OUT).is_some() { "\u{2192}" } else { "" };
                add_words(&mut title, arrow);
                add_words(&mut title, text.unwrap_or_default());
            }
        }
        _ => add_words(&mut title, task),
    }
    cut(&title, TITLE_MAX_CHARS)
}

fn add_words(title: &mut String, text: &str) {
    for word in text.split_whitespace() {
        if title.len() > TITLE_MAX_CHARS {
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
    }
}
