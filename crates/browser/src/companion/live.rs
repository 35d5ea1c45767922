//! The live session with the companion: one WebSocket, opened again with growing pauses for as long as it is wanted.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use futures::StreamExt as _;
use futures::channel::{mpsc, oneshot};
use futures::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use serde_json::Value;
use toolshelf_core::live::{CallNotice, ClientFrame, LIVE_FRAME_MAX_BYTES, LIVE_HELLO_MS};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::task::TaskView;
use wasm_bindgen::prelude::*;
use web_sys::{MessageEvent, WebSocket};

use super::client::{invalid, known, unreachable};
use super::wire;
use crate::js;

/// The first pause after a session was lost, in milliseconds. Each further one is twice as long.
const FIRST_PAUSE_MS: u32 = 500;
/// The longest pause, in milliseconds.
const LONGEST_PAUSE_MS: u32 = 15_000;

/// How the live session stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Connection {
    /// There is none, and none is wanted.
    Off,
    /// One is being opened.
    Connecting,
    /// It is open.
    Connected,
    /// It was lost, and is opened again.
    Waiting {
        /// When, in milliseconds since 1970.
        until_ms: f64,
        /// Why it was lost.
        why: Refusal,
    },
    /// It was refused. It is not opened again unless somebody asks for that.
    Refused(Refusal),
}

/// What the page takes of a [`ServerFrame`](toolshelf_core::live::ServerFrame).
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    /// The session is ready.
    Ready,
    /// Tools were called.
    Calls(Vec<CallNotice>),
    /// The shelf has changed.
    Shelf,
    /// A task has changed.
    Task(Box<TaskView>),
    /// The connection is refused.
    Refused(Refusal),
    /// Words, and answers to what the page does not ask.
    Other,
}

impl Frame {
    fn read(text: &str) -> Result<Self, Refusal> {
        let frame: Value =
            serde_json::from_slice(text.as_bytes()).map_err(|err| invalid(&err.to_string()))?;
        known(match &*known(wire::text(&frame, "type"))? {
            "state" => Ok(Self::Ready),
            "tool" => wire::list(&frame, "calls", wire::notice).map(Self::Calls),
            "shelf" => Ok(Self::Shelf),
            "task" => wire::field(&frame, "task").and_then(wire::view).map(Box::new).map(Self::Task),
            "refused" => wire::refusal(&frame).map(Self::Refused).ok_or("refused"),
            _ => Ok(Self::Other),
        })
    }
}

/// Ends a pause before its time.
#[derive(Clone, Default)]
pub(super) struct Wake(Rc<RefCell<Option<oneshot::Sender<()>>>>);

impl Wake {
    pub(super) fn now(&self) {
        if let Some(sender) = self.0.take() {
            // Whoever waited may be gone.
            let _ = sender.send(());
        }
    }

    async fn come(&self) {
        let (sender, receiver) = oneshot::channel();
        self.0.replace(Some(sender));
        let _ = receiver.await;
    }
}

/// Keeps a session open, and tells how it stands and what is said in it. It never ends by itself.
pub(super) async fn follow(
    origin: &str,
    bearer: &str,
    wake: &Wake,
    tell: impl Fn(Connection),
    hear: impl Fn(Frame),
) {
    // `http:` becomes `ws:`, and `https:` `wss:`.
    let url = ["ws", origin.strip_prefix("http").unwrap_or(origin), "/live"].concat();
    let mut lost = 0;
    loop {
        tell(Connection::Connecting);
        let ready = || {
            tell(Connection::Connected);
        };
        let end = session(&url, bearer, ready, &hear).await;
        lost = if end.was_ready { 1 } else { lost + 1 };
        match end.refusal {
            refusal if end.is_final => {
                tell(Connection::Refused(refusal));
                wake.come().await;
                lost = 0;
            }
            why => {
                let pause = pause_ms(lost);
                tell(Connection::Waiting { until_ms: js_sys::Date::now() + f64::from(pause), why });
                select(pin!(wake.come()), TimeoutFuture::new(pause)).await;
            }
        }
    }
}

/// How long to wait after so many sessions were lost one after the other, in milliseconds.
fn pause_ms(lost: u32) -> u32 {
    let doubled = FIRST_PAUSE_MS.checked_shl(lost.saturating_sub(1)).unwrap_or(LONGEST_PAUSE_MS);
    if lost > 16 { LONGEST_PAUSE_MS } else { doubled.min(LONGEST_PAUSE_MS) }
}

/// Whether another try would be refused in the same way. Whoever came too late or did not keep up may come again.
fn is_final(code: Code) -> bool {
    matches!(code, Code::BearerRefused | Code::HostNotAllowed | Code::OriginNotAllowed)
}

/// How a session ended.
struct End {
    /// Whether it had been ready before.
    was_ready: bool,
    /// Whether the companion does not want another one like this.
    is_final: bool,
    refusal: Refusal,
}

/// What the socket says.
pub(super) enum Said {
    Open,
    Text(String),
    Bytes,
    Closed,
}

async fn session(url: &str, bearer: &str, ready: impl Fn(), hear: &impl Fn(Frame)) -> End {
    let mut was_ready = false;
    let end = |was_ready, is_final, refusal| End { was_ready, is_final, refusal };
    let mut socket = match Socket::open(url) {
        Ok(socket) => socket,
        Err(thrown) => return end(false, false, unreachable(&js::message(&thrown))),
    };
    let mut hello_ends = pin!(TimeoutFuture::new(2 * LIVE_HELLO_MS));
    loop {
        let said = if was_ready {
            socket.said.next().await
        } else {
            match select(pin!(socket.said.next()), hello_ends.as_mut()).await {
                Either::Left((said, _)) => said,
                Either::Right(_) => return end(false, false, unreachable("it does not open a live session")),
            }
        };
        let text = match said {
            Some(Said::Open) => {
                socket.say(&ClientFrame::Hello { bearer: bearer.to_owned() });
                continue;
            }
            Some(Said::Text(text)) if text.len() <= LIVE_FRAME_MAX_BYTES => text,
            Some(Said::Text(_)) => return end(was_ready, false, invalid("a frame is too long")),
            Some(Said::Bytes) => return end(was_ready, false, invalid("a frame is no text")),
            Some(Said::Closed) | None => {
                return end(was_ready, false, unreachable("the connection was closed"));
            }
        };
        match Frame::read(&text) {
            Ok(Frame::Refused(refusal)) => return end(was_ready, is_final(refusal.code), refusal),
            Ok(Frame::Ready) => {
                was_ready = true;
                ready();
            }
            Ok(frame) => hear(frame),
            Err(refusal) => return end(was_ready, false, refusal),
        }
    }
}

/// A socket that is closed when it is dropped.
pub(super) struct Socket {
    socket: WebSocket,
    said: mpsc::UnboundedReceiver<Said>,
    _on_event: Closure<dyn FnMut(MessageEvent)>,
}

impl Socket {
    pub(super) fn open(url: &str) -> Result<Self, JsValue> {
        let socket = WebSocket::new(url)?;
        let (sender, said) = mpsc::unbounded();
        // One listener for all: an event that is no message has no data.
        let on_event = Closure::new(move |event: MessageEvent| {
            let said = match &*event.type_() {
                "open" => Said::Open,
                "message" => event.data().as_string().map_or(Said::Bytes, Said::Text),
                _ => Said::Closed,
            };
            // Whoever listened may be gone.
            let _ = sender.unbounded_send(said);
        });
        let listener = Some(on_event.as_ref().unchecked_ref());
        socket.set_onopen(listener);
        socket.set_onmessage(listener);
        socket.set_onclose(listener);
        Ok(Self { socket, said, _on_event: on_event })
    }

    /// What the socket says next.
    pub(super) async fn next(&mut self) -> Option<Said> {
        self.said.next().await
    }

    /// The socket itself, for whoever speaks while another listens.
    pub(super) fn handle(&self) -> WebSocket {
        self.socket.clone()
    }

    fn say(&self, frame: &ClientFrame) {
        if let Ok(text) = serde_json::to_string(frame) {
            // A socket that is closing tells so by itself.
            let _ = self.socket.send_with_str(&text);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        let _ = self.socket.close();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolshelf_core::RootDescriptor;
    use toolshelf_core::live::{CallOrigin, ServerFrame};
    use toolshelf_core::placement::Placement;
    use toolshelf_core::task::TaskState;

    use super::*;

    #[test]
    fn every_frame_of_a_companion_is_read() {
        let call = CallNotice {
            name: "hash".into(),
            ok: false,
            output: String::new(),
            duration_ms: 1.5,
            from: CallOrigin::Cli,
            digest: None,
            refused: Some("time-exceeded".into()),
            why: Some("too long".into()),
            session: None,
        };
        let task = Box::new(TaskView {
            address: "a".into(),
            environment: "env_1".into(),
            placement: Some(Placement::Machine),
            root: RootDescriptor::Machine { path: "/r".into(), environment: None },
            state: TaskState::Running,
            agent: "hash".into(),
            created_at: "2026-01-01T00:00:00.000Z".into(),
            updated_at: "2026-01-01T00:00:00.000Z".into(),
            reason: None,
            answer: None,
            progress: Some("half".into()),
            partial: None,
            outcome: None,
            stale: false,
            stale_reason: None,
        });
        let refusal = Refusal::new(Code::ExecutorUnauthenticated, "late");
        let (state, version) = ("ready".into(), "0.1.0".into());
        let frames = [
            (
                ServerFrame::State { state, tools: vec![json!({})], version, session: 1, provider: None },
                Frame::Ready,
            ),
            (ServerFrame::Text { text: "hello".into() }, Frame::Other),
            (ServerFrame::Tool { calls: vec![call.clone()] }, Frame::Calls(vec![call])),
            (ServerFrame::Shelf { tools: vec![] }, Frame::Shelf),
            (ServerFrame::Task { task: task.clone() }, Frame::Task(task)),
            (ServerFrame::Result { call_id: "1".into(), result: json!({"ok": true}) }, Frame::Other),
            (ServerFrame::refused(&refusal), Frame::Refused(refusal)),
        ];
        for (told, heard) in frames {
            assert_eq!(Frame::read(&serde_json::to_string(&told).unwrap()), Ok(heard));
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for text in ["", "[]", "{}", r#"{"type":7}"#, r#"{"type":"tool"}"#, r#"{"type":"task","task":{}}"#] {
            assert_eq!(Frame::read(text).unwrap_err().code, Code::InvalidFrame, "{text}");
        }
        assert_eq!(Frame::read(r#"{"type":"of a later version"}"#), Ok(Frame::Other));
    }

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let pauses = [1, 2, 3, 5, 6, 16, 17, 40, u32::MAX].map(pause_ms);
        assert_eq!(pauses, [500, 1_000, 2_000, 8_000, 15_000, 15_000, 15_000, 15_000, 15_000]);
    }
}
