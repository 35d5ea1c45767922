//! From the lines of a command's standard error to notes of progress.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, timeout_at};

/// So much of a line is kept; a note is shorter still.
const LINE_MAX_BYTES: usize = 4_096;
/// A note is told that long after the one before at the earliest: a flood of lines costs no more than it must.
const PAUSE: Duration = Duration::from_millis(100);

/// Tells the latest line, not too often and the last one in any case, until `from` ends. Answers whether there was any.
pub(super) async fn tell(mut from: impl AsyncRead + Unpin, note: &dyn Fn(&str)) -> bool {
    let mut lines = Lines::default();
    let mut buffer = vec![0; 8_192];
    let (mut told_at, mut has_spoken) = (None::<Instant>, false);
    loop {
        let due = told_at.map_or_else(Instant::now, |told| told + PAUSE);
        let reading = from.read(&mut buffer);
        let read = if lines.latest.is_some() { timeout_at(due, reading).await } else { Ok(reading.await) };
        let ended = match read {
            Ok(Ok(0) | Err(_)) => {
                lines.end_line();
                true
            }
            Ok(Ok(count)) => {
                lines.take(&buffer[..count]);
                false
            }
            Err(_) => false,
        };
        if (ended || Instant::now() >= due)
            && let Some(line) = lines.latest.take()
        {
            note(&line);
            (told_at, has_spoken) = (Some(Instant::now()), true);
        }
        if ended {
            return has_spoken;
        }
    }
}

/// Lines as they come in; only the latest that is not blank is kept.
#[derive(Default)]
struct Lines {
    unfinished: Vec<u8>,
    latest: Option<String>,
}

impl Lines {
    /// A carriage return ends a line too: programs draw their progress with it.
    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let room = LINE_MAX_BYTES.saturating_sub(self.unfinished.len());
            self.unfinished.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") || part.ends_with(b"\r") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.unfinished);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if !line.is_empty() {
            self.latest = Some(line.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    async fn told(from: impl AsyncRead + Unpin) -> (bool, Vec<String>) {
        let notes: RefCell<Vec<String>> = RefCell::default();
        let spoke = tell(from, &|note: &str| notes.borrow_mut().push(note.to_owned())).await;
        (spoke, notes.into_inner())
    }

    #[tokio::test]
    async fn the_last_line_is_told_however_many_there_are() {
        let many: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
        let (spoke, notes) = told(many.as_bytes()).await;
        assert!(spoke && notes.len() < 1_000);
        assert_eq!(notes.last().unwrap(), "line 99999");
        assert_eq!(told(&b"one\n\n  \r\n"[..]).await, (true, vec!["one".to_owned()]));
        assert_eq!(told(&b"10 %\r20 %\rno end"[..]).await.1.last().unwrap(), "no end");
        assert_eq!(told(&b"\n \n"[..]).await, (false, Vec::new()));
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut_and_what_is_no_text_is_told_as_text() {
        let (_, notes) = told(&vec![b'x'; 1_000_000][..]).await;
        assert_eq!(notes, ["x".repeat(LINE_MAX_BYTES)]);
        let (_, notes) = told(&b"a\xff\n"[..]).await;
        assert_eq!(notes, ["a\u{fffd}"]);
    }
}
