//! The side that asks.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::{Line, read_line};

/// Frames that wait to be looked at.
const MAX_WAITING: usize = 16;

/// Asks over a connection. Lives within a `LocalSet`.
#[derive(Debug)]
pub(crate) struct Client<W> {
    frames: mpsc::Receiver<Result<Value, Refusal>>,
    writer: W,
    last_id: u64,
}

impl<W: AsyncWrite + Unpin> Client<W> {
    /// A client over both directions of a connection.
    pub(crate) fn new(reader: impl AsyncBufRead + Unpin + 'static, writer: W) -> Self {
        let (sender, frames) = mpsc::channel(MAX_WAITING);
        tokio::task::spawn_local(read(reader, sender));
        Self { frames, writer, last_id: 0 }
    }

    /// Sends a request; answers the id that its frames will have.
    ///
    /// # Errors
    /// [`Code::MachineUnreachable`].
    pub(crate) async fn send(&mut self, command: &str, args: &Value) -> Result<u64, Refusal> {
        self.last_id += 1;
        let line = format!("{}\n", json!({ "id": self.last_id, "command": command, "args": args }));
        self.writer.write_all(line.as_bytes()).await.map_err(|err| lost(&err))?;
        self.writer.flush().await.map_err(|err| lost(&err))?;
        Ok(self.last_id)
    }

    /// The next frame, whatever it answers. Nothing is lost when this future is dropped.
    ///
    /// # Errors
    /// [`Code::MachineUnreachable`] and [`Code::InvalidFrame`].
    pub(crate) async fn next(&mut self) -> Result<Value, Refusal> {
        self.frames.recv().await.unwrap_or_else(|| Err(lost(&io::ErrorKind::UnexpectedEof.into())))
    }

    /// Asks, and waits for the answer. Frames of other requests that come before it are passed over.
    ///
    /// # Errors
    /// What was refused, and as [`next`](Self::next).
    pub(crate) async fn ask(&mut self, command: &str, args: &Value) -> Result<Value, Refusal> {
        let id = self.send(command, args).await?;
        loop {
            let frame = self.next().await?;
            if frame["id"] == id && frame.get("event").is_none() {
                return answer(frame);
            }
        }
    }
}

async fn read(mut reader: impl AsyncBufRead + Unpin, frames: mpsc::Sender<Result<Value, Refusal>>) {
    loop {
        let frame = match read_line(&mut reader).await {
            Ok(Line::Whole(line)) => serde_json::from_slice(&line)
                .map_err(|err| Refusal::new(Code::InvalidFrame, cut(&err.to_string(), 120))),
            Ok(Line::TooLong) => Err(Refusal::new(Code::InvalidFrame, "the answer is too long")),
            Ok(Line::Torn | Line::End) => return,
            Err(err) => Err(lost(&err)),
        };
        let failed = frame.is_err();
        if frames.send(frame).await.is_err() || failed {
            return;
        }
    }
}

/// The answer in a frame that is no event.
///
/// # Errors
/// The refusal that it is.
pub(crate) fn answer(mut frame: Value) -> Result<Value, Refusal> {
    if frame["ok"] == true {
        if let Some(frame) = frame.as_object_mut() {
            frame.remove("id");
        }
        return Ok(frame);
    }
    Err(serde_json::from_value(frame).unwrap_or_else(|err| {
        let why = format!("the answer is not understood: {}", cut(&err.to_string(), 120));
        Refusal::new(Code::InvalidFrame, why)
    }))
}

fn lost(err: &io::Error) -> Refusal {
    Refusal::new(Code::MachineUnreachable, format!("the companion does not answer: {err}"))
}
