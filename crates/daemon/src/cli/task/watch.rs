//! A task that is watched until it has ended.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tokio::time::interval;
use toolshelf_core::refusal::Refusal;

use super::show;
use crate::cli::companion::AnyClient;
use crate::cli::outcome::{Exit, Outcome};
use crate::cli::show::Style;
use crate::frames::client::answer;

/// How often the line of progress counts on.
const BEAT: Duration = Duration::from_millis(200);

/// What Ctrl-C does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnInterrupt {
    /// It asks the task to stop; a second one leaves.
    Cancel,
    /// It leaves; the task goes on.
    Leave,
}

/// Watches the task, with a line of progress for a person, and answers how it ended.
pub(super) async fn to_the_end(
    client: &mut AnyClient,
    address: &str,
    mut on_interrupt: OnInterrupt,
    style: Style,
) -> Result<Outcome, Refusal> {
    let args = json!({ "address": address });
    let watching = client.send("watch_task", &args).await?;
    let bar = progress_bar();
    let (start, mut beat) = (Instant::now(), interval(BEAT));
    let mut task = Value::Null;
    loop {
        tokio::select! {
            frame = client.next() => {
                let mut frame = frame?;
                if frame["id"] != watching {
                    continue;
                }
                if frame.get("event").is_none() {
                    bar.finish_and_clear();
                    return Ok(ended(answer(frame)?, style));
                }
                task = frame["task"].take();
            }
            _ = beat.tick() => {}
            pressed = tokio::signal::ctrl_c() => {
                if on_interrupt == OnInterrupt::Leave || pressed.is_err() {
                    bar.finish_and_clear();
                    let left = json!({ "ok": true, "task": task });
                    return Ok(Outcome { exit: Exit::Refused, ..Outcome::done(left, format!("{address}\n")) });
                }
                on_interrupt = OnInterrupt::Leave;
                client.send("cancel_task", &args).await?;
            }
        }
        bar.set_message(show::line(&task, start.elapsed().as_secs()));
    }
}

/// A line on the terminal's error output; nothing where nobody looks.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(BEAT);
    bar
}

fn ended(status: Value, style: Style) -> Outcome {
    let task = &status["task"];
    let exit = match task["state"].as_str() {
        Some("completed") => Exit::Done,
        Some("failed" | "interrupted") => Exit::Failed,
        _ => Exit::Refused,
    };
    // What a script reads is the answer alone; how the task ended is in the exit code, and told to a person.
    let text = match (exit, task["answer"].as_str()) {
        (Exit::Done, Some(answer)) if style.terminal => format!("{}\n", show::printable_lines(answer)),
        (Exit::Done, Some(answer)) => format!("{answer}\n"),
        _ => show::view(task, style),
    };
    Outcome { exit, ..Outcome::done(status, text) }
}
