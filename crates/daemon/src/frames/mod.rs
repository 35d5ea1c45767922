//! Frames: JSON objects, one a line, from a parent process or from this computer's command line.
//!
//! | module | idea |
//! |---|---|
//! | [`session`] | the side that answers: over standard input and output, or a socket |
//! | [`client`] | the side that asks |
//! | [`socket`] | the Unix socket of a running companion, in its data folder |
//!
//! A request is `{"id", "command", "args"?}`. It is answered by `{"id", "ok": true, …}` or
//! `{"id", "ok": false, "refused", "why"}`, as soon as its answer is there: answers come in any order. The commands are
//! those of [`Service::command`](crate::service::Service::command), and these:
//!
//! | command | answer |
//! |---|---|
//! | `watch` | every event from now on, as frames with `"event"` in place of `"ok"` |
//! | `watch_task {address}` | the task's events, then its answer when it has ended |
//! | `admin.…` | extensions, keys, secrets and receipts, as [`Service::admin`](crate::service::Service::admin) lists them |
//! | `notice {…}` | tells watchers of a call that another program has made |

pub(crate) mod client;
pub(crate) mod session;
pub(crate) mod socket;

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use toolshelf_core::live::LIVE_FRAME_MAX_BYTES;

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// A line that is longer than a frame may be. What was too much has been read and dropped.
    TooLong,
    /// Bytes without an end of line, and then the end of everything.
    Torn,
    /// The end.
    End,
}

/// Reads the next line. Never holds more than a frame.
pub(crate) async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Line> {
    let mut line = Vec::new();
    let most = LIVE_FRAME_MAX_BYTES as u64 + 1;
    reader.take(most).read_until(b'\n', &mut line).await?;
    match line.last() {
        None => Ok(Line::End),
        Some(b'\n') => {
            line.pop();
            Ok(Line::Whole(line))
        }
        Some(_) if line.len() as u64 == most => drop_rest(reader).await,
        Some(_) => Ok(Line::Torn),
    }
}

async fn drop_rest(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Line> {
    loop {
        let buffer = reader.fill_buf().await?;
        let (used, ended) = match buffer.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        reader.consume(used);
        if ended {
            return Ok(Line::TooLong);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded_and_what_follows_a_long_one_is_read() {
        let long = "x".repeat(LIVE_FRAME_MAX_BYTES);
        let text = format!("{long}\n\n{long}xyz\nnext\ntorn");
        let mut reader = text.as_bytes();
        assert_eq!(read_line(&mut reader).await.unwrap(), Line::Whole(long.into_bytes()));
        assert_eq!(read_line(&mut reader).await.unwrap(), Line::Whole(Vec::new()));
        assert_eq!(read_line(&mut reader).await.unwrap(), Line::TooLong);
        assert_eq!(read_line(&mut reader).await.unwrap(), Line::Whole(b"next".to_vec()));
        assert_eq!(read_line(&mut reader).await.unwrap(), Line::Torn);
        assert_eq!(read_line(&mut reader).await.unwrap(), Line::End);
    }
}
