//! What an executor says while it runs: a note, and what there is of an answer. Only the latest of each is kept.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use super::config::Redact;

/// Longest note that is kept, in characters.
pub const NOTE_MAX_CHARS: usize = 300;
/// So much of a note is looked at. A secret that begins in the part that is kept is redacted by its beginning.
const NOTE_READ_CHARS: usize = 4_096;
/// So much of a partial answer is looked at beyond what is kept, so that no secret is cut before it is found.
const REDACT_AHEAD_BYTES: usize = 4_096;

/// Takes an executor's reports. What is said after the task has ended is not heard.
#[derive(Clone)]
pub struct Reporter {
    live: Rc<RefCell<Live>>,
    redact: Redact,
    max_partial_bytes: usize,
}

/// The latest reports of one task.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) progress: Option<String>,
    pub(super) partial: Option<String>,
    pub(super) closed: bool,
}

impl Reporter {
    pub(super) fn new(redact: Redact, max_partial_bytes: u32) -> Self {
        Self { live: Rc::default(), redact, max_partial_bytes: max_partial_bytes as usize }
    }

    /// Says how far it is. A blank note says nothing; a long one is cut to [`NOTE_MAX_CHARS`].
    pub fn note(&self, note: &str) {
        if self.live.borrow().closed || note.trim().is_empty() {
            return;
        }
        let note = (self.redact)(first_chars(note, NOTE_READ_CHARS));
        self.live.borrow_mut().progress = Some(first_chars(&note, NOTE_MAX_CHARS).to_owned());
    }

    /// Says what there is of an answer, as far as the bounds of the answer go. It takes the place of the earlier one.
    pub fn partial(&self, partial: &str) {
        if self.live.borrow().closed {
            return;
        }
        let partial = (self.redact)(first_bytes(partial, self.max_partial_bytes + REDACT_AHEAD_BYTES));
        self.live.borrow_mut().partial = Some(first_bytes(&partial, self.max_partial_bytes).to_owned());
    }

    pub(super) fn live(&self) -> &RefCell<Live> {
        &self.live
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").field("live", &self.live).finish_non_exhaustive()
    }
}

fn first_chars(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

fn first_bytes(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reporter() -> Reporter {
        Reporter::new(Rc::new(|text: &str| text.replace("sk-secret", "[redacted]")), 10)
    }

    fn progress(reporter: &Reporter) -> Option<String> {
        reporter.live.borrow().progress.clone()
    }

    #[test]
    fn the_latest_note_is_kept_short_and_without_secrets() {
        let reporter = reporter();
        reporter.note(" \n");
        assert_eq!(progress(&reporter), None);
        reporter.note("first");
        reporter.note(&"é".repeat(1_000_000));
        assert_eq!(progress(&reporter), Some("é".repeat(300)));
        // Redaction sees the note before it is cut: half a secret is a secret.
        reporter.note(&format!("{}sk-secret", "x".repeat(295)));
        assert_eq!(progress(&reporter), Some(format!("{}[reda", "x".repeat(295))));
        reporter.live.borrow_mut().closed = true;
        reporter.note("late");
        assert_ne!(progress(&reporter).as_deref(), Some("late"));
    }

    #[test]
    fn a_partial_answer_stays_in_the_bounds_of_an_answer() {
        let reporter = reporter();
        reporter.partial("a");
        reporter.partial(&"é".repeat(6));
        assert_eq!(reporter.live.borrow().partial.as_deref(), Some("ééééé"));
        reporter.partial(" sk-secret");
        assert_eq!(reporter.live.borrow().partial.as_deref(), Some(" [redacted"));
    }
}
