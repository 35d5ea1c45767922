//! The lines that a module logs during one call.
//!
//! A module chooses their number and their length, so both are bounded here. What looks like a secret is taken out, and
//! so is every secret that the module was given in this call.

use toolshelf_core::extension::envelope::HostLogEntry;
use toolshelf_core::redact::Redactor;

/// Most lines of one call.
pub const LOG_MAX_ENTRIES: usize = 256;
/// Most bytes of all lines of one call.
pub const LOG_MAX_BYTES: usize = 64 * 1024;
/// Most bytes of one line; more is cut.
pub const LOG_MESSAGE_MAX_BYTES: usize = 8 * 1024;
/// Most bytes of a line's level; more is cut.
pub const LOG_LEVEL_MAX_BYTES: usize = 64;
/// Level of the lines that the host adds. A module may use it as well: levels are free text.
pub const LOG_HOST_LEVEL: &str = "host";
/// How far beyond a bound a text is looked at, so that a secret that lies across it is seen as one.
pub(super) const LOG_ACROSS_BYTES: usize = 1024;

/// The lines so far.
#[derive(Default)]
pub(super) struct CallLog {
    entries: Vec<HostLogEntry>,
    bytes: usize,
    /// Lines that found no room, and when the first of them came.
    dropped: Option<(usize, u64)>,
    secrets: Vec<String>,
    redactor: Redactor,
}

impl CallLog {
    /// Adds a line, or counts it where the log is full.
    pub(super) fn add(&mut self, level: &str, message: &str, at_unix_ms: u64) {
        if let Some((lines, _)) = &mut self.dropped {
            *lines += 1;
            return;
        }
        let level = self.readable(level, LOG_LEVEL_MAX_BYTES);
        let message = self.readable(message, LOG_MESSAGE_MAX_BYTES);
        let bytes = self.bytes + level.len() + message.len();
        if self.entries.len() == LOG_MAX_ENTRIES || bytes > LOG_MAX_BYTES {
            self.dropped = Some((1, at_unix_ms));
            return;
        }
        self.bytes = bytes;
        self.entries.push(HostLogEntry { level, message, at_unix_ms });
    }

    /// From now on this value is taken out of every line.
    pub(super) fn keep_secret(&mut self, value: &str) {
        if self.secrets.iter().any(|known| known == value) {
            return;
        }
        self.secrets.push(value.to_owned());
        self.redactor = Redactor::from_variables(self.secrets.iter().map(|value| ("SECRET", value)));
    }

    /// All lines, and one more that says how many are missing.
    pub(super) fn finish(self) -> Vec<HostLogEntry> {
        let mut entries = self.entries;
        if let Some((lines, at_unix_ms)) = self.dropped {
            let message = format!("the log is full; lines that are not in it: {lines}");
            entries.push(HostLogEntry { level: LOG_HOST_LEVEL.to_owned(), message, at_unix_ms });
        }
        entries
    }

    fn readable(&self, text: &str, most: usize) -> String {
        let redacted = self.redactor.redact(front(text, most + LOG_ACROSS_BYTES));
        front(&redacted, most).to_owned()
    }
}

/// At most the first `most` bytes, cut between characters.
fn front(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_bound_are_counted() {
        let mut log = CallLog::default();
        (0..LOG_MAX_ENTRIES + 5).for_each(|at| log.add("info", "line", at as u64));
        let entries = log.finish();
        assert_eq!(entries.len(), LOG_MAX_ENTRIES + 1);
        let last = entries.last().unwrap();
        assert_eq!(last.level, LOG_HOST_LEVEL);
        assert_eq!(last.message, "the log is full; lines that are not in it: 5");
        assert_eq!(last.at_unix_ms, LOG_MAX_ENTRIES as u64);
    }

    #[test]
    fn long_lines_are_cut_and_fill_the_log() {
        let mut log = CallLog::default();
        let long = "é".repeat(LOG_MESSAGE_MAX_BYTES);
        (0..20).for_each(|_| log.add(&long, &long, 0));
        let entries = log.finish();
        let (last, lines) = entries.split_last().unwrap();
        assert!(lines.iter().all(|line| line.message.len() == LOG_MESSAGE_MAX_BYTES));
        assert!(
            lines.iter().map(|line| line.message.len() + line.level.len()).sum::<usize>() <= LOG_MAX_BYTES
        );
        assert_eq!(last.message, format!("the log is full; lines that are not in it: {}", 20 - lines.len()));
    }

    #[test]
    fn secrets_are_taken_out_also_across_the_bound() {
        let mut log = CallLog::default();
        log.keep_secret("opensesame-7");
        log.add("opensesame-7", "the word is opensesame-7", 0);
        let padding = ".".repeat(LOG_MESSAGE_MAX_BYTES - 4);
        log.add("info", &format!("{padding}opensesame-7"), 0);
        log.add("info", "Authorization: Bearer abcdefghijklmnop", 0);
        let text = serde_json::to_string(&log.finish()).unwrap();
        assert!(!text.contains("open") && !text.contains("abcdefghijklmnop"), "{text}");
    }
}
