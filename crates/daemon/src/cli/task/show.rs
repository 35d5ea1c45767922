//! Tasks as people read them.

use std::fmt::Write as _;

use serde_json::Value;
use toolshelf_core::refusal::{Code, cut};
use toolshelf_core::task::listing::Page;

use crate::cli::show::{Style, printable, table};

/// Length of a task's short name, in characters.
const NAME_CHARS: usize = 8;

/// A task's short name: the first digits of its address's seal, which no two tasks are likely to share.
pub(super) fn name(address: &str) -> &str {
    let seal = address.rsplit('.').next().unwrap_or_default();
    seal.get(..NAME_CHARS).unwrap_or(seal)
}

pub(super) fn list(page: &Page, style: Style) -> String {
    if page.rows.is_empty() {
        return "no tasks here yet; delegate one, for example: toolshelf task delegate hash abc\n".to_owned();
    }
    let mut rows = vec![["TASK", "STATE", "AGENT", "SINCE", "ABOUT"].map(String::from).to_vec()];
    for row in &page.rows {
        let view = &row.view;
        let state =
            if view.stale { format!("{}?", view.state.as_str()) } else { view.state.as_str().to_owned() };
        let about = cut(&row.title, 60);
        rows.push(
            [name(&view.address), &state, &view.agent, &view.updated_at, &about].map(printable).to_vec(),
        );
    }
    let mut text = table(&rows, style);
    if page.next.is_some() {
        text.push_str(&style.dim("  older tasks are there as well: --limit\n"));
    }
    text
}

/// One task: where it stands, why, and its answer.
pub(super) fn view(task: &Value, style: Style) -> String {
    let part = |name: &str| task[name].as_str().map(printable);
    let state = part("state").unwrap_or_default();
    let mut text = match state.as_str() {
        "completed" => style.good(&state),
        "failed" | "interrupted" => style.bad(&state),
        _ => state,
    };
    let _ = writeln!(text, "  {}", part("agent").unwrap_or_default());
    if let Some(reason) = part("reason") {
        let remedy = Code::parse(&reason).map(Code::remedy).unwrap_or_default();
        let _ = writeln!(text, "{reason}: {}", style.dim(remedy));
    }
    if task["stale"] == true {
        text.push_str("another program has the task, and nobody knows whether that program goes on\n");
    }
    for name in ["progress", "answer"] {
        if let Some(part) = task[name].as_str() {
            let _ = writeln!(text, "{}", printable_lines(part));
        }
    }
    text
}

/// A text of many lines, none of which can steer the terminal.
pub(super) fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

/// Where a task stands, on one line.
pub(super) fn line(task: &Value, seconds: u64) -> String {
    let part = |name: &str| printable(task[name].as_str().unwrap_or_default());
    format!("{} {}  {seconds} s  {}", part("agent"), part("state").replace('_', " "), part("progress"))
}
