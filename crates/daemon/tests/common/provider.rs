//! A provider of models for a test: a real WebSocket server that says what the test has it say.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::result_large_err,
    reason = "each test binary uses a part of it, says where it cannot go on, and answers as the library wants it"
)]

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use crate::server::{Live, Server};

/// Longer than any bound of the companion in these tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// The key that the companion has.
pub(crate) const KEY: &str = "sk-test-key-0123456789";

/// A companion with that table in its settings.
pub(crate) fn companion(table: &str) -> (Server, NamedTempFile) {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), table).unwrap();
    let server = Server::set_up(None, |command| {
        command.env("TOOLSHELF_CONFIG", file.path());
        command.env("OPENAI_API_KEY", KEY).env("GEMINI_API_KEY", KEY);
    });
    (server, file)
}

pub(crate) async fn openai(more: &str) -> (Provider, Server, NamedTempFile) {
    let provider = Provider::listen().await;
    let (server, file) = companion(&provider.table("openai-realtime", more));
    (provider, server, file)
}

pub(crate) async fn gemini(more: &str) -> (Provider, Server, NamedTempFile) {
    let provider = Provider::listen().await;
    let (server, file) = companion(&provider.table("gemini-live", more));
    (provider, server, file)
}

pub(crate) async fn say(live: &mut Live, text: &str) {
    live.say(json!({"type": "text", "text": text})).await;
}

/// The frames up to the end of a turn, without those of the link.
pub(crate) async fn turn(live: &mut Live) -> Vec<Value> {
    let mut frames = Vec::new();
    loop {
        let frame = live.frame().await;
        let over = frame["type"] == "turn" && frame["state"] != "started";
        if frame["type"] != "link" {
            frames.push(frame);
        }
        if over {
            return frames;
        }
    }
}

pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let name = |frame: &Value| match frame["state"].as_str() {
        Some(state) => format!("{} {state}", frame["type"].as_str().unwrap()),
        None => frame["type"].as_str().unwrap().to_owned(),
    };
    frames.iter().map(name).collect()
}

/// The code and the state of a turn that failed.
pub(crate) fn failure(frames: &[Value]) -> (String, String) {
    let fault = frames.iter().find(|frame| frame["type"] == "fault").unwrap_or_else(|| panic!("{frames:?}"));
    let (code, why) = (fault["refused"].as_str().unwrap(), fault["why"].as_str().unwrap());
    assert!(!why.contains("sk-test"), "{why}");
    assert_eq!(frames.last().unwrap(), &json!({"type": "turn", "state": "failed"}));
    (code.to_owned(), why.to_owned())
}

/// A provider that listens.
pub(crate) struct Provider {
    listener: TcpListener,
    pub(crate) port: u16,
}

impl Provider {
    pub(crate) async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { listener, port }
    }

    /// The table of `toolshelf.toml` for it.
    pub(crate) fn table(&self, protocol: &str, more: &str) -> String {
        format!(
            "[live]\nprovider = \"{protocol}\"\nurl = \"ws://127.0.0.1:{}/live-api\"\n{more}\n",
            self.port
        )
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        timeout(PATIENCE, self.listener.accept()).await.expect("a connection comes").unwrap().0
    }

    /// The next connection, opened.
    pub(crate) async fn accept(&self) -> Peer {
        let tcp = self.tcp().await;
        let mut target = String::new();
        let mut authorization = String::new();
        let look = |request: &Request, response: Response| {
            target = request.uri().to_string();
            let header = request.headers().get("authorization");
            authorization = header.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
            Ok(response)
        };
        let socket = tokio_tungstenite::accept_hdr_async(tcp, look).await.unwrap();
        Peer { socket, target, authorization }
    }

    /// The next connection, refused with that status.
    pub(crate) async fn refuse(&self, status: u16) {
        let tcp = self.tcp().await;
        let refuse = |_: &Request, _: Response| {
            let mut response = ErrorResponse::new(Some("Incorrect API key provided: sk-test-key".to_owned()));
            *response.status_mut() = status.try_into().unwrap();
            Err(response)
        };
        let _ = tokio_tungstenite::accept_hdr_async(tcp, refuse).await;
    }

    /// Whether nobody connects for a while.
    pub(crate) async fn is_left_alone(&self) -> bool {
        timeout(Duration::from_millis(800), self.listener.accept()).await.is_err()
    }

    /// The next connection, set up as OpenAI does, and the session that was asked for.
    pub(crate) async fn openai(&self) -> (Peer, Value) {
        let mut peer = self.accept().await;
        peer.say(json!({"type": "session.created", "event_id": "e1", "session": {"type": "realtime"}})).await;
        let update = peer.heard().await;
        assert_eq!(update["type"], "session.update", "{update}");
        peer.say(json!({"type": "session.updated", "session": update["session"]})).await;
        (peer, update["session"].clone())
    }

    /// The next connection, set up as Gemini does, and the set-up that was asked for.
    pub(crate) async fn gemini(&self) -> (Peer, Value) {
        let mut peer = self.accept().await;
        let setup = peer.heard().await["setup"].clone();
        assert!(setup.is_object());
        peer.bytes(json!({"setupComplete": {}})).await;
        (peer, setup)
    }
}

/// A connection, seen from the provider.
pub(crate) struct Peer {
    socket: WebSocketStream<TcpStream>,
    pub(crate) target: String,
    pub(crate) authorization: String,
}

impl Peer {
    pub(crate) async fn say(&mut self, event: Value) {
        self.send(Message::text(event.to_string())).await;
    }

    /// Says it in a binary message, as one of the providers does.
    pub(crate) async fn bytes(&mut self, event: Value) {
        self.send(Message::binary(event.to_string().into_bytes())).await;
    }

    pub(crate) async fn send(&mut self, message: Message) {
        let _ = self.socket.send(message).await;
    }

    /// What is said next.
    pub(crate) async fn heard(&mut self) -> Value {
        self.heard_or_end().await.expect("the connection is open")
    }

    /// What is said next; `None` when the connection ends instead.
    pub(crate) async fn heard_or_end(&mut self) -> Option<Value> {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("something is said") {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Hears a person's words as OpenAI does, up to the request for a response.
    pub(crate) async fn openai_text(&mut self) -> String {
        let item = self.heard().await;
        assert_eq!(item["type"], "conversation.item.create", "{item}");
        assert_eq!(self.heard().await, json!({"type": "response.create"}));
        item["item"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Answers with words as OpenAI does.
    pub(crate) async fn openai_words(&mut self, response: &str, words: &[&str]) {
        self.say(json!({"type": "response.created", "response": {"id": response}})).await;
        for delta in words {
            self.say(json!({"type": "response.output_text.delta", "response_id": response, "delta": delta}))
                .await;
        }
        self.openai_done(response, "completed", json!([])).await;
    }

    pub(crate) async fn openai_done(&mut self, response: &str, status: &str, output: Value) {
        let response = json!({"id": response, "status": status, "output": output});
        self.say(json!({"type": "response.done", "response": response})).await;
    }
}
