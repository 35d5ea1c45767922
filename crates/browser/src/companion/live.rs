//! The live session with the companion: one WebSocket, opened again with growing pauses for as long as it is wanted.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use futures::StreamExt as _;
use futures::channel::{mpsc, oneshot};
use futures::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use toolshelf_core::live::{ClientFrame, LIVE_FRAME_MAX_BYTES, LIVE_HELLO_MS, ServerFrame};
use toolshelf_core::refusal::{Code, Refusal};
use wasm_bindgen::prelude::*;
use web_sys::{MessageEvent, WebSocket};

use super::client::{invalid, unreachable};
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
    hear: impl Fn(ServerFrame),
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

/// How a session ended.
struct End {
    /// Whether it had been ready before.
    was_ready: bool,
    /// Whether the companion does not want one like this.
    is_final: bool,
    refusal: Refusal,
}

/// What the socket says.
enum Said {
    Open,
    Text(String),
    Bytes,
    Closed,
}

async fn session(url: &str, bearer: &str, ready: impl Fn(), hear: &impl Fn(ServerFrame)) -> End {
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
        match serde_json::from_str(&text) {
            Ok(ServerFrame::Refused { refused, why }) => {
                let code = Code::parse(&refused).unwrap_or(Code::BearerRefused);
                return end(was_ready, true, Refusal::new(code, why));
            }
            Ok(ServerFrame::State { .. }) => {
                was_ready = true;
                ready();
            }
            Ok(frame) => hear(frame),
            Err(err) => return end(was_ready, false, invalid(&err.to_string())),
        }
    }
}

/// A socket that is closed when it is dropped.
struct Socket {
    socket: WebSocket,
    said: mpsc::UnboundedReceiver<Said>,
    _on_event: Closure<dyn FnMut(MessageEvent)>,
}

impl Socket {
    fn open(url: &str) -> Result<Self, JsValue> {
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
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let pauses = [1, 2, 3, 5, 6, 16, 17, 40, u32::MAX].map(pause_ms);
        assert_eq!(pauses, [500, 1_000, 2_000, 8_000, 15_000, 15_000, 15_000, 15_000, 15_000]);
    }
}
