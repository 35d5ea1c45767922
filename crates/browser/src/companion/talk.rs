//! A conversation with what answers in the companion's live sessions: a session of its own, so that it is known which
//! calls come of it.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;

use futures::future::{AbortHandle, Either, abortable, select};
use gloo_timers::future::TimeoutFuture;
use serde_json::Value;
use toolshelf_core::live::{CallNotice, ClientFrame, LIVE_HELLO_MS, LinkState, TurnState};
use toolshelf_core::refusal::{Code, Refusal};
use wasm_bindgen_futures::spawn_local;

use super::client::{invalid, unreachable};
use super::live::{Said, Socket};
use super::wire;
use crate::js;

/// What is told in the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// The session is ready; the model that answers, with its provider, where it is no script.
    Ready(Option<(String, String)>),
    /// Words of an answer, all together.
    Text(String),
    /// The next words of an answer that is being given.
    Partial(String),
    /// Where the answer of a model stands.
    Turn(TurnState),
    /// Where the connection to its provider stands.
    Link(LinkState),
    /// Something went wrong; the session goes on.
    Fault(Refusal),
    /// Calls that came of what was said here.
    Calls(Vec<CallNotice>),
    /// The session is over.
    Over(Refusal),
}

/// A conversation. Dropping it ends its session.
pub struct Talk {
    shared: Rc<Shared>,
    task: AbortHandle,
}

struct Shared {
    socket: RefCell<Option<web_sys::WebSocket>>,
    /// What was said before the session was ready.
    waiting: RefCell<Vec<ClientFrame>>,
    is_ready: Cell<bool>,
}

impl Talk {
    /// Opens a session.
    pub fn open(origin: &str, bearer: &str, hear: impl Fn(Told) + 'static) -> Self {
        let url = ["ws", origin.strip_prefix("http").unwrap_or(origin), "/live"].concat();
        let (socket, waiting) = (RefCell::default(), RefCell::default());
        let shared = Rc::new(Shared { socket, waiting, is_ready: Cell::new(false) });
        let (session, bearer) = (Rc::clone(&shared), bearer.to_owned());
        let (work, task) = abortable(async move {
            let why = session.follow(&url, bearer, &hear).await;
            session.socket.replace(None);
            hear(Told::Over(why));
        });
        // It ends with this value.
        spawn_local(async move {
            let _ended = work.await;
        });
        Self { shared, task }
    }

    /// Says something.
    pub fn say(&self, text: &str) {
        self.shared.say(ClientFrame::Text { text: text.to_owned() });
    }

    /// Wants the answer no more.
    pub fn cancel(&self) {
        self.shared.say(ClientFrame::Cancel {});
    }
}

impl Shared {
    fn say(&self, frame: ClientFrame) {
        match (&*self.socket.borrow(), self.is_ready.get()) {
            (Some(socket), true) => send(socket, &frame),
            _ => self.waiting.borrow_mut().push(frame),
        }
    }

    /// Hears all that is told, and answers why there is no more of it.
    async fn follow(&self, url: &str, bearer: String, hear: &impl Fn(Told)) -> Refusal {
        let mut socket = match Socket::open(url) {
            Ok(socket) => socket,
            Err(thrown) => return unreachable(&js::message(&thrown)),
        };
        self.socket.replace(Some(socket.handle()));
        let hello = ClientFrame::Hello { bearer };
        let mut hello_ends = pin!(TimeoutFuture::new(2 * LIVE_HELLO_MS));
        let mut session = None;
        loop {
            let said = match session {
                Some(_) => socket.next().await,
                None => match select(pin!(socket.next()), hello_ends.as_mut()).await {
                    Either::Left((said, _)) => said,
                    Either::Right(_) => return unreachable("it does not open a live session"),
                },
            };
            let text = match said {
                Some(Said::Open) => {
                    send(&socket.handle(), &hello);
                    continue;
                }
                Some(Said::Text(text)) => text,
                // A model's voice, which this page does not play.
                Some(Said::Bytes) => continue,
                Some(Said::Closed) | None => return unreachable("the connection was closed"),
            };
            let Ok(frame) = serde_json::from_str::<Value>(&text) else {
                return invalid("a frame is no JSON");
            };
            if frame["type"] == "state" {
                session = frame["session"].as_u64();
                self.is_ready.set(true);
                let model = wire::text(&frame["provider"], "model").ok();
                hear(Told::Ready(model.zip(wire::text(&frame["provider"], "name").ok())));
                let handle = socket.handle();
                self.waiting.take().iter().for_each(|frame| send(&handle, frame));
            } else if frame["type"] == "refused" && session.is_none() {
                return wire::refusal(&frame).unwrap_or_else(|| invalid("a refusal without a code"));
            } else if let Some(told) = told(&frame, session) {
                hear(told);
            }
        }
    }
}

/// What a frame tells in the session of that number; nothing of what belongs to others.
fn told(frame: &Value, session: Option<u64>) -> Option<Told> {
    let text = || wire::text(frame, "text").ok();
    let state = frame["state"].as_str();
    match frame["type"].as_str()? {
        "text" => text().map(Told::Text),
        "partial" => text().map(Told::Partial),
        "turn" => Some(Told::Turn(match state? {
            "started" => TurnState::Started,
            "ended" => TurnState::Ended,
            "interrupted" => TurnState::Interrupted,
            _ => TurnState::Failed,
        })),
        "link" => Some(Told::Link(match state? {
            "connecting" => LinkState::Connecting,
            "ready" => LinkState::Ready,
            _ => LinkState::Closed,
        })),
        "fault" | "refused" => {
            let unknown =
                || Refusal::new(Code::UpstreamFailed, "the companion told of a fault without a name");
            Some(Told::Fault(wire::refusal(frame).unwrap_or_else(unknown)))
        }
        "tool" => {
            let calls = wire::list(frame, "calls", wire::notice).ok()?;
            let own: Vec<_> = calls.into_iter().filter(|call| call.session == session).collect();
            (!own.is_empty()).then_some(Told::Calls(own))
        }
        _ => None,
    }
}

fn send(socket: &web_sys::WebSocket, frame: &ClientFrame) {
    if let Ok(text) = serde_json::to_string(frame) {
        // A socket that is closing tells so by itself.
        let _ = socket.send_with_str(&text);
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(socket) = self.shared.socket.take() {
            let _ = socket.close();
        }
    }
}

impl std::fmt::Debug for Talk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Talk").field("is_ready", &self.shared.is_ready.get()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolshelf_core::live::{CallOrigin, ServerFrame};

    use super::*;

    #[test]
    fn every_frame_of_a_conversation_is_heard_and_calls_of_others_are_not() {
        let call = CallNotice {
            name: "hash".into(),
            ok: true,
            output: "00".into(),
            duration_ms: 1.0,
            from: CallOrigin::Live,
            digest: None,
            refused: None,
            why: None,
            session: Some(7),
        };
        let other = CallNotice { session: Some(8), ..call.clone() };
        let none = CallNotice { session: None, ..call.clone() };
        let refusal = Refusal::new(Code::LiveKeyMissing, "no key");
        for (frame, heard) in [
            (ServerFrame::Text { text: "a".into() }, Some(Told::Text("a".into()))),
            (ServerFrame::Partial { text: "a".into() }, Some(Told::Partial("a".into()))),
            (ServerFrame::Turn { state: TurnState::Interrupted }, Some(Told::Turn(TurnState::Interrupted))),
            (ServerFrame::Link { state: LinkState::Ready }, Some(Told::Link(LinkState::Ready))),
            (ServerFrame::fault(&refusal), Some(Told::Fault(refusal.clone()))),
            (ServerFrame::Tool { calls: vec![other.clone(), call.clone()] }, Some(Told::Calls(vec![call]))),
            (ServerFrame::Tool { calls: vec![other] }, None),
            (ServerFrame::Tool { calls: vec![none] }, None),
            (ServerFrame::Shelf { tools: vec![] }, None),
        ] {
            assert_eq!(told(&json!(frame), Some(7)), heard);
        }
    }
}
