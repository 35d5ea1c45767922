//! One session: hello, then frames both ways, then an end with a reason.
//!
//! Nothing is queued for a client. While it does not read, nothing is taken from the events, and when too many of those
//! have passed it is told so and let go.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::tungstenite;
use toolshelf_core::live::{
    ClientFrame, LIVE_AUDIO_MAX_BYTES, LIVE_FRAME_MAX_BYTES, LIVE_HELLO_MS, ServerFrame,
};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::asked;
use super::provider::bridge::{Bridge, Out};
use super::provider::settings::LiveSettings;
use crate::http::App;
use crate::http::who::Who;
use crate::service::{Event, lagged};

/// Frames that are being answered in one session; while there are so many, no more are read.
const ASKED_MAX: usize = 16;
/// A client that does not take a frame within this time is let go.
const SEND_TIME: Duration = Duration::from_secs(20);
/// How long the other side may take to answer a close.
const CLOSE_TIME: Duration = Duration::from_secs(2);
/// Time between two pings, by which both sides know that the other is there.
const PING: Duration = Duration::from_secs(30);

/// Sessions are counted, so that each knows its own calls.
static SESSIONS: AtomicU64 = AtomicU64::new(1);

/// How a session ends.
enum End {
    /// The client is gone, or does not read.
    Gone,
    /// The client is told why, and closed with 1008 and the code.
    Refused(Refusal),
    /// Closed with that code and reason.
    Closed(u16, &'static str),
}

/// A session that is ready.
struct Session {
    app: App,
    who: Who,
    events: broadcast::Receiver<Event>,
    /// The declarations that hold in this session.
    tools: Vec<Value>,
    answers: FuturesUnordered<BoxFuture<'static, ServerFrame>>,
    /// Its number.
    number: u64,
    /// The model that answers, where one is set.
    provider: Option<LiveSettings>,
    /// The way to it, once something was said.
    bridge: Option<Bridge>,
    _place: OwnedSemaphorePermit,
}

/// Serves a connection to its end.
pub(super) async fn serve(app: App, mut socket: WebSocket, origin: Option<String>) {
    let end = match greeted(&app, &mut socket, origin.as_deref()).await {
        Ok(mut session) => session.talk(&mut socket).await,
        Err(end) => end,
    };
    finish(socket, end).await;
}

/// Waits for hello, and says that the session is ready.
async fn greeted(app: &App, socket: &mut WebSocket, origin: Option<&str>) -> Result<Session, End> {
    let greeting = app.places().greet().map_err(End::Refused)?;
    let mut stopping = app.stopping();
    let hello = tokio::select! {
        hello = timeout(Duration::from_millis(LIVE_HELLO_MS.into()), hello(socket)) => hello,
        () = stopping.wait() => return Err(END_OF_COMPANION),
    };
    let bearer = hello.unwrap_or_else(|_| {
        let why = format!("no hello was said within {LIVE_HELLO_MS} ms");
        Err(End::Refused(Refusal::new(Code::ExecutorUnauthenticated, why)))
    })?;
    let who = Who::of(app, &bearer, origin).map_err(End::Refused)?;
    let place = app.places().watch().map_err(End::Refused)?;
    drop(greeting);
    // What happens while the declarations are read is told after them.
    let events = app.handle().events();
    let known =
        app.handle().ask(async |service| Ok((service.declarations().await?, service.live().cloned())));
    let (tools, provider) = known.await.and_then(|known| known).map_err(End::Refused)?;
    let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
    let ready = ServerFrame::State {
        state: "ready".to_owned(),
        tools: tools.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session: number,
        provider: provider.as_ref().map(LiveSettings::told),
    };
    send(socket, &ready).await?;
    let answers = FuturesUnordered::new();
    Ok(Session {
        app: app.clone(),
        who,
        events,
        tools,
        answers,
        number,
        provider,
        bridge: None,
        _place: place,
    })
}

const END_OF_COMPANION: End = End::Closed(close_code::AWAY, "the companion stops");

/// The token of the first frame.
async fn hello(socket: &mut WebSocket) -> Result<String, End> {
    loop {
        let text = match said(socket.recv().await)? {
            Said::Text(text) => text,
            Said::Audio(_) => return Err(NO_SOUND),
            Said::Nothing => continue,
        };
        return match serde_json::from_str(&text) {
            Ok(ClientFrame::Hello { bearer }) => Ok(bearer),
            _ => {
                let why = "the first frame must be {\"type\": \"hello\", \"bearer\": \"…\"}";
                Err(End::Refused(Refusal::new(Code::ExecutorUnauthenticated, why)))
            }
        };
    }
}

impl Session {
    async fn talk(&mut self, socket: &mut WebSocket) -> End {
        let mut stopping = self.app.stopping();
        let (who, pairings) = (self.who.clone(), self.app.pairings().clone());
        let mut over = pin!(who.ended(&pairings));
        let mut pings = interval(PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let done = tokio::select! {
                // In this order: a call is told of before its answer, because it was told of first.
                biased;
                () = stopping.wait() => Err(END_OF_COMPANION),
                refusal = over.as_mut() => Err(End::Refused(refusal)),
                event = self.events.recv() => self.tell(event, socket).await,
                Some(frame) = self.answers.next() => send(socket, &frame).await,
                out = next_of(&mut self.bridge) => match out {
                    Out::Frame(frame) => send(socket, &frame).await,
                    Out::Audio(pcm) => put(socket, Message::Binary(pcm.into())).await,
                },
                message = socket.recv(), if self.answers.len() < ASKED_MAX => self.take(message, socket).await,
                _ = pings.tick() => put(socket, Message::Ping(Default::default())).await,
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    async fn tell(
        &mut self,
        event: Result<Event, broadcast::error::RecvError>,
        socket: &mut WebSocket,
    ) -> Result<(), End> {
        let event = event.map_err(|err| match err {
            broadcast::error::RecvError::Lagged(missed) => End::Refused(lagged(missed)),
            broadcast::error::RecvError::Closed => END_OF_COMPANION,
        })?;
        if let Event::Shelf(tools) = &event {
            self.tools.clone_from(tools);
            if let Some(bridge) = &self.bridge {
                bridge.tools(tools);
            }
        }
        match event.frame_for(&self.who.owner()) {
            Some(frame) => send(socket, &frame).await,
            None => Ok(()),
        }
    }

    async fn take(
        &mut self,
        message: Option<Result<Message, axum::Error>>,
        socket: &mut WebSocket,
    ) -> Result<(), End> {
        let text = match said(message)? {
            Said::Text(text) => text,
            Said::Audio(_) if self.provider.as_ref().is_none_or(|model| model.told().audio.is_none()) => {
                return Err(NO_SOUND);
            }
            Said::Audio(pcm) => return self.pass(socket, |bridge| bridge.audio(pcm)).await,
            Said::Nothing => return Ok(()),
        };
        match serde_json::from_str(&text) {
            Ok(ClientFrame::Text { text }) if self.provider.is_some() => {
                self.pass(socket, |bridge| bridge.text(text)).await
            }
            Ok(ClientFrame::Text { text }) => {
                let (handle, tools) = (self.app.handle().clone(), self.tools.clone());
                self.answers.push(Box::pin(asked::text(handle, text, tools, self.number, self.who.clone())));
                Ok(())
            }
            Ok(ClientFrame::Call { call_id, name, args }) => {
                self.answers.push(Box::pin(asked::call(
                    self.app.handle().clone(),
                    call_id,
                    name,
                    args,
                    self.who.clone(),
                )));
                Ok(())
            }
            // A script has answered before it can be cancelled.
            Ok(ClientFrame::Cancel {} | ClientFrame::AudioEnd {}) if self.bridge.is_none() => Ok(()),
            Ok(ClientFrame::Cancel {}) => self.pass(socket, Bridge::cancel).await,
            Ok(ClientFrame::AudioEnd {}) => self.pass(socket, Bridge::audio_end).await,
            Ok(ClientFrame::Hello { .. }) => {
                send(socket, &asked::not_understood(&text, "hello was said")).await
            }
            Err(err) => send(socket, &asked::not_understood(&text, &cut(&err.to_string(), 120))).await,
        }
    }

    /// Passes something on to the model.
    async fn pass(
        &mut self,
        socket: &mut WebSocket,
        say: impl FnOnce(&Bridge) -> Result<(), Refusal>,
    ) -> Result<(), End> {
        let Some(provider) = &self.provider else { return Ok(()) };
        let bridge = self.bridge.get_or_insert_with(|| {
            Bridge::start(self.app.handle().clone(), provider.clone(), &self.tools, self.number)
        });
        match say(bridge) {
            Ok(()) => Ok(()),
            Err(refusal) => send(socket, &ServerFrame::fault(&refusal)).await,
        }
    }
}

/// What comes from the model; nothing while there is no way to it.
async fn next_of(bridge: &mut Option<Bridge>) -> Out {
    match bridge {
        Some(bridge) => bridge.next().await,
        None => std::future::pending().await,
    }
}

/// What a message says.
enum Said {
    Text(String),
    /// Sound.
    Audio(Vec<u8>),
    /// It only keeps the connection up.
    Nothing,
}

fn said(message: Option<Result<Message, axum::Error>>) -> Result<Said, End> {
    match message {
        None | Some(Ok(Message::Close(_))) => Err(End::Gone),
        Some(Ok(Message::Text(text))) if text.len() > LIVE_FRAME_MAX_BYTES => Err(TOO_LONG),
        Some(Ok(Message::Text(text))) => Ok(Said::Text(text.as_str().to_owned())),
        Some(Ok(Message::Binary(pcm))) if pcm.len() > LIVE_AUDIO_MAX_BYTES => Err(TOO_LONG),
        Some(Ok(Message::Binary(pcm))) => Ok(Said::Audio(pcm.to_vec())),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(Said::Nothing),
        Some(Err(err)) => Err(fault(err)),
    }
}

const NO_SOUND: End = End::Closed(close_code::UNSUPPORTED, "frames are texts of JSON");
const TOO_LONG: End = End::Closed(close_code::SIZE, "the frame is too long");

fn fault(err: axum::Error) -> End {
    match err.into_inner().downcast_ref() {
        Some(tungstenite::Error::Capacity(_)) => TOO_LONG,
        Some(tungstenite::Error::Utf8(_)) => End::Closed(close_code::INVALID, "the text is not UTF-8"),
        Some(tungstenite::Error::Protocol(_)) => {
            End::Closed(close_code::PROTOCOL, "this is no WebSocket frame")
        }
        _ => End::Gone,
    }
}

async fn send(socket: &mut WebSocket, frame: &ServerFrame) -> Result<(), End> {
    // Frames are JSON by construction.
    let text = serde_json::to_string(frame).map_err(|_| End::Gone)?;
    put(socket, Message::Text(text.into())).await
}

async fn put(socket: &mut WebSocket, message: Message) -> Result<(), End> {
    match timeout(SEND_TIME, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(End::Gone),
    }
}

/// Says why, closes, and waits a little for the other side to close as well, so that what was said is read.
async fn finish(mut socket: WebSocket, end: End) {
    let (code, reason) = match end {
        End::Gone => return rest(&mut socket).await,
        End::Refused(refusal) => {
            tracing::info!(refused = refusal.code.as_str(), "a live session was refused");
            if send(&mut socket, &ServerFrame::refused(&refusal)).await.is_err() {
                return;
            }
            (close_code::POLICY, refusal.code.as_str())
        }
        End::Closed(code, reason) => (code, reason),
    };
    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    if put(&mut socket, close).await.is_ok() {
        rest(&mut socket).await;
    }
}

/// Reads to the end, which also answers a close of the other side.
async fn rest(socket: &mut WebSocket) {
    let end = async { while let Some(Ok(_)) = socket.recv().await {} };
    // Whether that comes or not, the connection ends here.
    let _ = timeout(CLOSE_TIME, end).await;
}
