//! The side that answers.

use std::io;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use toolshelf_core::live::{CallNotice, CallOrigin};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::{Line, read_line};
use crate::service::{Event, Service, Session, lagged};

/// Requests that are answered at the same time; the next one is not read before one of them is done.
const MAX_IN_FLIGHT: usize = 64;
/// Frames that wait to be written. Whoever does not read is not written to without end.
const MAX_WAITING: usize = 64;

/// What stands before the name of a command of [`Service::admin`].
pub(crate) const ADMIN: &str = "admin.";

/// A request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    id: Value,
    command: String,
    #[serde(default)]
    args: Map<String, Value>,
}

/// Answers frames until there are no more, and what was asked is answered.
///
/// # Errors
/// When the other side cannot be read from any more.
pub(crate) async fn serve(
    service: &Service,
    session: Session,
    mut reader: impl AsyncBufRead + Unpin,
    writer: impl AsyncWrite + Unpin + 'static,
) -> io::Result<()> {
    let (frames, waiting) = mpsc::channel(MAX_WAITING);
    let writing = tokio::task::spawn_local(write(writer, waiting));
    let places = Rc::new(Semaphore::new(MAX_IN_FLIGHT));
    let (mut answering, mut watching) = (JoinSet::new(), JoinSet::new());
    let end = loop {
        let request = tokio::select! {
            line = read_line(&mut reader) => match line {
                Ok(Line::End) => break Ok(()),
                Ok(line) => request(line),
                Err(err) => break Err(err),
            },
            // Nobody reads the answers any more.
            () = frames.closed() => break Ok(()),
        };
        let asked = Asked { service: service.clone(), session: session.clone(), frames: frames.clone() };
        match request {
            Err(refusal) => asked.answer(&Value::Null, Err(refusal)).await,
            Ok(request) if request.command == "watch" || request.command == "watch_task" => {
                watching.spawn_local(asked.watch(request));
            }
            Ok(request) => {
                // The semaphore is never closed.
                let place = Rc::clone(&places);
                let permit = place.acquire_many(1).await.ok().map(|permit| permit.forget());
                let places = Rc::clone(&places);
                answering.spawn_local(async move {
                    let result = asked.result(&request).await;
                    asked.answer(&request.id, result).await;
                    if permit.is_some() {
                        places.add_permits(1);
                    }
                });
            }
        }
    };
    // What was asked is done and answered, as far as somebody reads.
    while answering.join_next().await.is_some() {}
    watching.shutdown().await;
    drop(frames);
    let _ = writing.await;
    end
}

fn request(line: Line) -> Result<Request, Refusal> {
    let invalid = |why: &str| Refusal::new(Code::InvalidFrame, why);
    match line {
        Line::Whole(line) => serde_json::from_slice(&line)
            .map_err(|err| invalid(&format!("the line is no request: {}", cut(&err.to_string(), 120)))),
        Line::TooLong => Err(invalid("the line is longer than a frame may be")),
        Line::Torn | Line::End => Err(invalid("the last line has no end, so it may be half of one")),
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut frames: mpsc::Receiver<Value>) {
    while let Some(frame) = frames.recv().await {
        let line = format!("{frame}\n");
        if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

/// What one request needs.
struct Asked {
    service: Service,
    session: Session,
    frames: mpsc::Sender<Value>,
}

impl Asked {
    async fn result(&self, request: &Request) -> Result<Value, Refusal> {
        // Only who sits at this computer sets up what others may call.
        if let Some(name) = request.command.strip_prefix(ADMIN)
            && self.session.from == CallOrigin::Cli
        {
            return self.service.admin(name, &request.args).await;
        }
        if request.command != "notice" {
            return self.service.command(&request.command, &request.args, &self.session).await;
        }
        let notice: CallNotice = serde_json::from_value(Value::Object(request.args.clone()))
            .map_err(|err| Refusal::new(Code::InvalidFrame, cut(&err.to_string(), 120)))?;
        self.service.tell(Event::Call(notice.bounded()));
        Ok(json!({ "ok": true }))
    }

    async fn answer(&self, id: &Value, result: Result<Value, Refusal>) {
        let mut frame = result.unwrap_or_else(|refusal| json!(refusal));
        frame["id"] = id.clone();
        // Whoever asked may have gone.
        let _ = self.frames.send(frame).await;
    }

    async fn watch(self, request: Request) {
        let id = request.id.clone();
        let result = if request.command == "watch" {
            Err(self.watch_all(&id).await)
        } else {
            self.watch_task(&id, &request.args).await
        };
        self.answer(&id, result).await;
    }

    /// Hands on every event; ends when it has missed some.
    async fn watch_all(&self, id: &Value) -> Refusal {
        let mut events = self.service.events();
        loop {
            match events.recv().await {
                Ok(event) => self.hand_on(id, event).await,
                Err(RecvError::Lagged(missed)) => return lagged(missed),
                Err(RecvError::Closed) => {
                    return Refusal::new(Code::MachineUnreachable, "the companion ends");
                }
            }
        }
    }

    /// Hands on the events of one task until it has ended.
    async fn watch_task(&self, id: &Value, args: &Map<String, Value>) -> Result<Value, Refusal> {
        let mut events = self.service.events();
        let address = args.get("address").cloned().unwrap_or_default();
        loop {
            // What was missed, and what other programs wrote, is in the status.
            let status = self.service.command("task_status", args, &self.session).await?;
            let ended = status["task"].get("outcome").is_some() || status["task"].get("stale").is_some();
            if ended {
                return Ok(status);
            }
            loop {
                match events.recv().await {
                    Ok(Event::Task { owner, view })
                        if owner == self.session.owner && address == *view.address =>
                    {
                        if view.state.is_terminal() {
                            break;
                        }
                        self.hand_on(id, Event::Task { owner, view }).await;
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => {
                        return Err(Refusal::new(Code::MachineUnreachable, "the companion ends"));
                    }
                }
            }
        }
    }

    /// Hands on what a live session would be told, with `event` for the frame's type.
    async fn hand_on(&self, id: &Value, event: Event) {
        let Some(frame) = event.frame_for(&self.session.owner) else { return };
        let mut frame = json!(frame);
        if let Some(fields) = frame.as_object_mut()
            && let Some(kind) = fields.remove("type")
        {
            fields.insert("event".to_owned(), kind);
        }
        frame["id"] = id.clone();
        let _ = self.frames.send(frame).await;
    }
}
