//! What a host lists of its tasks for a page or a command line, in the wire forms that the page, the companion and its
//! clients share. Lists are for the tasks' owner alone.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::input::TaskBounds;
use super::record::TaskState;
use super::tool_call::OUT;
use super::view::TaskView;
use crate::refusal::cut;

/// Longest title, in characters.
const TITLE_MAX_CHARS: usize = 120;

/// One task in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its place in the journal; later tasks have greater ones. At most 2^53 - 1.
    pub position: u64,
    /// What its owner is shown.
    pub view: TaskView,
    /// The beginning of what was asked, on one line.
    pub title: String,
    /// What it is granted.
    pub bounds: TaskBounds,
    /// Milliseconds since 1970 at which its deadline passes, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at_ms: Option<f64>,
    /// Whether the very life of the host that lists it runs it.
    pub here: bool,
}

/// Some tasks, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// The tasks.
    pub rows: Vec<Row>,
    /// Where the next page begins; `None` after the last.
    #[serde(default)]
    pub next: Option<u64>,
}

/// All that is known of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// When, as ISO 8601.
    pub at: String,
    /// What it became.
    pub state: TaskState,
    /// Why: a refusal code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Which tasks are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

/// What a task is about, on one line: the beginning of its text, or its arguments and where the answer goes.
#[must_use]
pub fn title(task: &str) -> String {
    let mut title = String::new();
    match serde_json::from_slice(task.as_bytes()) {
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
