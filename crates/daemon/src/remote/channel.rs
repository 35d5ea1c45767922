//! `/channel`: a WebSocket of another machine that was paired, or is about to be (reference facts, B8).
//!
//! As in a live session nothing is queued for a client. A token that is revoked, or whose time is over, ends its
//! connections at once, whatever they wait for.

use std::pin::pin;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::ORIGIN;
use axum::response::Response;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::{MissedTickBehavior, interval, timeout};
use toolshelf_core::live::{CallOrigin, MachineEnvironment};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::remote::frame::{Answer, Call, First, Paired, Told, descriptors};
use toolshelf_core::remote::scope::Scope;
use toolshelf_core::remote::{CHANNEL_FRAME_MAX_BYTES, CHANNEL_HELLO_MS};
use toolshelf_core::task::check_call_id;

use super::pairings::{Granted, Issued};
use crate::http::App;
use crate::http::answer::Fault;
use crate::service::{Event, Session, lagged};

/// What is read of a frame that is too long, so that its sender can still be told.
const READ_MAX_BYTES: usize = 2 * CHANNEL_FRAME_MAX_BYTES;
/// Calls that are answered at the same time in one channel; while there are so many, no more are read.
const ASKED_MAX: usize = 16;
/// A client that does not take a frame within this time is let go.
const SEND_TIME: Duration = Duration::from_secs(20);
/// How long the other side may take to answer a close.
const CLOSE_TIME: Duration = Duration::from_secs(2);
/// Time between two pings.
const PING: Duration = Duration::from_secs(30);

/// How a channel ends.
enum End {
    /// The client is gone, or does not read.
    Gone,
    /// The client is told why, and closed with 1008 and the code.
    Refused(Refusal),
    /// Closed with that code and reason.
    Closed(u16, &'static str),
}

const END_OF_COMPANION: End = End::Closed(close_code::AWAY, "the companion stops");
const TOO_LONG: End = End::Closed(close_code::SIZE, "the frame is too long");

/// Takes a WebSocket.
pub(crate) async fn upgrade(
    State(app): State<App>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Fault> {
    let upgrade = upgrade.map_err(|err| {
        let why = format!("`/channel` is a WebSocket: {}", err.body_text());
        Fault::with_status(StatusCode::UPGRADE_REQUIRED, Code::InvalidFrame, why)
    })?;
    if headers.contains_key(ORIGIN) {
        // Pages have live sessions; what comes here shows that it is none by naming no origin.
        return Err(Refusal::new(Code::OriginNotAllowed, "`/channel` is for machines, not for pages").into());
    }
    let upgrade = upgrade.max_message_size(READ_MAX_BYTES).max_frame_size(READ_MAX_BYTES);
    Ok(upgrade.on_upgrade(move |socket| serve(app, socket)))
}

async fn serve(app: App, mut socket: WebSocket) {
    let end = match greeted(&app, &mut socket).await {
        Ok(mut channel) => channel.talk(&mut socket).await,
        Err(end) => end,
    };
    finish(socket, end).await;
}

/// A channel that is ready.
struct Channel {
    app: App,
    granted: Granted,
    environment: MachineEnvironment,
    events: broadcast::Receiver<Event>,
    answers: FuturesUnordered<BoxFuture<'static, Answer>>,
    _place: OwnedSemaphorePermit,
}

async fn greeted(app: &App, socket: &mut WebSocket) -> Result<Channel, End> {
    let greeting = app.places().greet().map_err(End::Refused)?;
    let mut stopping = app.stopping();
    let first = tokio::select! {
        first = timeout(Duration::from_millis(CHANNEL_HELLO_MS.into()), first(socket)) => first,
        () = stopping.wait() => return Err(END_OF_COMPANION),
    };
    let first = first.unwrap_or_else(|_| {
        let why = format!("no hello was said within {CHANNEL_HELLO_MS} ms");
        Err(End::Refused(Refusal::new(Code::ExecutorUnauthenticated, why)))
    })?;
    let bearer = match first {
        First::Hello { bearer } => bearer,
        First::Pair { code, name } => return Err(pair(app, socket, &code, &name).await),
    };
    let granted = app.pairings().check(&bearer, None).map_err(End::Refused)?;
    let place = app.places().watch().map_err(End::Refused)?;
    drop(greeting);
    // What happens while the rest is read is told after it.
    let events = app.handle().events();
    let environment = environment(app, &granted).await.map_err(End::Refused)?;
    let tools = match granted.scopes.contains(&Scope::Tasks) || granted.scopes.contains(&Scope::Shelf) {
        true => app.handle().ask(async |service| service.declarations().await).await.and_then(|tools| tools),
        false => Ok(Vec::new()),
    };
    let ready = Told::Ready {
        descriptors: descriptors(&environment.key, &environment.bounds),
        environment: Box::new(environment.clone()),
        tools: tools.map_err(End::Refused)?,
    };
    send(socket, &ready).await?;
    let (app, answers) = (app.clone(), FuturesUnordered::new());
    Ok(Channel { app, granted, environment, events, answers, _place: place })
}

/// Answers a code with a token, and ends: the token is said hello with on a connection of its own.
async fn pair(app: &App, socket: &mut WebSocket, code: &str, name: &str) -> End {
    let paired = match paired(app, code, name, None).await {
        Ok(paired) => paired,
        Err(refusal) => return End::Refused(refusal),
    };
    match send(socket, &Told::Paired(Box::new(paired))).await {
        Ok(()) => End::Closed(close_code::NORMAL, "paired"),
        Err(end) => end,
    }
}

/// A token for a code, with what it is good for; bound to the foreign page that sent the code, if one did.
///
/// # Errors
/// What [`Pairings::pair`](super::pairings::Pairings::pair) says, and when this machine cannot be described.
pub(crate) async fn paired(
    app: &App,
    code: &str,
    calls_itself: &str,
    origin: Option<&str>,
) -> Result<Paired, Refusal> {
    let Issued { bearer, pairing } = app.pairings().pair(code, calls_itself, origin)?;
    let granted = Granted { id: pairing.id.clone(), scopes: pairing.scopes.clone() };
    Ok(Paired {
        bearer: bearer.to_string(),
        environment: environment(app, &granted).await?,
        pairing: pairing.id,
        name: pairing.name,
        scopes: pairing.scopes,
        expires_at_ms: pairing.expires_at_ms,
    })
}

/// What this machine is for whoever has that token.
async fn environment(app: &App, granted: &Granted) -> Result<MachineEnvironment, Refusal> {
    let session = Session { owner: granted.owner(), from: CallOrigin::Http };
    let mut answer = app.handle().command("environment".to_owned(), serde_json::Map::new(), session).await?;
    serde_json::from_value(answer["environment"].take())
        .map_err(|err| Refusal::new(Code::InvalidFrame, cut(&err.to_string(), 120)))
}

async fn first(socket: &mut WebSocket) -> Result<First, End> {
    loop {
        if let Some(text) = text(socket.recv().await)? {
            return First::read(&text).map_err(End::Refused);
        }
    }
}

impl Channel {
    async fn talk(&mut self, socket: &mut WebSocket) -> End {
        let (mut stopping, pairings) = (self.app.stopping(), self.app.pairings().clone());
        let id = self.granted.id.clone();
        let mut over = pin!(pairings.ended(&id));
        let mut pings = interval(PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let done = tokio::select! {
                biased;
                () = stopping.wait() => Err(END_OF_COMPANION),
                refusal = over.as_mut() => Err(End::Refused(refusal)),
                event = self.events.recv() => self.tell(event, socket).await,
                Some(answer) = self.answers.next() => send(socket, &Told::Answer(answer)).await,
                message = socket.recv(), if self.answers.len() < ASKED_MAX => self.take(message),
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
        match event {
            Ok(Event::Task { owner, view }) if owner == self.granted.owner() => {
                send(socket, &Told::Task(view)).await
            }
            Ok(_) => Ok(()),
            Err(broadcast::error::RecvError::Lagged(missed)) => Err(End::Refused(lagged(missed))),
            Err(broadcast::error::RecvError::Closed) => Err(END_OF_COMPANION),
        }
    }

    fn take(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        let Some(text) = text(message)? else { return Ok(()) };
        let call = Call::read(&text).and_then(|call| match self.check(&call) {
            Ok(()) => Ok(call),
            Err(refusal) => Err((Some(call.call_id), refusal)),
        });
        match call {
            Ok(call) => {
                let (app, granted) = (self.app.clone(), self.granted.clone());
                self.answers.push(Box::pin(answer(app, granted, call)));
                Ok(())
            }
            Err((Some(call_id), refusal)) => {
                tracing::warn!(
                    pairing = self.granted.id,
                    refused = refusal.code.as_str(),
                    why = refusal.why,
                    "a call of another machine was refused"
                );
                let refused = Answer { call_id, result: Err(refusal) };
                self.answers.push(Box::pin(async move { refused }));
                Ok(())
            }
            // Nobody could be told which call that was.
            Err((None, refusal)) => Err(End::Refused(refusal)),
        }
    }

    fn check(&self, call: &Call) -> Result<(), Refusal> {
        let MachineEnvironment { key, bounds, .. } = &self.environment;
        call.check(key, bounds)?;
        check_scope(&self.granted, &call.tool)
    }
}

/// # Errors
/// [`Code::OutsideScope`] for a command that the token is not good for.
pub(crate) fn check_scope(granted: &Granted, command: &str) -> Result<(), Refusal> {
    match Scope::of_command(command) {
        Some(scope) if !granted.scopes.contains(&scope) => {
            let why = format!(
                "{:?} needs the scope {:?}, which the token does not have",
                cut(command, 60),
                scope.as_str()
            );
            Err(Refusal::new(Code::OutsideScope, why))
        }
        _ => Ok(()),
    }
}

async fn answer(app: App, granted: Granted, call: Call) -> Answer {
    let Call { call_id, tool, mut args, .. } = call;
    let session = Session { owner: granted.owner(), from: CallOrigin::Http };
    let result = async {
        match &*tool {
            "revoke_pairing" => {
                app.pairings().revoke(&granted.id)?;
                return Ok(json!({ "ok": true }));
            }
            "delegate_task" => {
                check_call_id(Some(&call_id))?;
                if args.insert("callId".to_owned(), Value::from(&*call_id)).is_some() {
                    let why = "the call id stands in the call, not in its arguments";
                    return Err(Refusal::new(Code::InvalidArgument, why));
                }
            }
            _ => {}
        }
        app.handle().command(tool.clone(), args, session).await
    };
    let result = result.await;
    Answer { call_id, result }
}

/// The text of a message; `None` for one that only keeps the connection up.
fn text(message: Option<Result<Message, axum::Error>>) -> Result<Option<String>, End> {
    match message {
        None | Some(Ok(Message::Close(_)) | Err(_)) => Err(End::Gone),
        Some(Ok(Message::Text(text))) if text.len() > CHANNEL_FRAME_MAX_BYTES => Err(TOO_LONG),
        Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
        Some(Ok(Message::Binary(_))) => Err(End::Closed(close_code::UNSUPPORTED, "frames are texts of JSON")),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(None),
    }
}

async fn send(socket: &mut WebSocket, told: &Told) -> Result<(), End> {
    put(socket, Message::Text(told.text().into())).await
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
        End::Gone => (close_code::NORMAL, ""),
        End::Refused(refusal) => {
            tracing::warn!(refused = refusal.code.as_str(), why = refusal.why, "a channel was refused");
            let code = refusal.code;
            if send(&mut socket, &Told::Refused(refusal)).await.is_err() {
                return;
            }
            (close_code::POLICY, code.as_str())
        }
        End::Closed(code, reason) => (code, reason),
    };
    if put(&mut socket, Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await.is_ok() {
        let end = async { while let Some(Ok(_)) = socket.recv().await {} };
        // Whether that comes or not, the connection ends here.
        let _ = timeout(CLOSE_TIME, end).await;
    }
}
