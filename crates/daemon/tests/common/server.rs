//! A companion for a test: the real program on a free port, with a data folder of its own, and plain clients for it.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and says where it cannot go on"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

/// Longer than any of the companion's own bounds: a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(90);

/// A companion. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) token: String,
    pub(crate) data: TempDir,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

/// The program, with nothing of this computer's settings.
pub(crate) fn toolshelf(shelf: Option<&Path>) -> Command {
    // Compiled code is kept between tests, as it is between starts.
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolshelf"));
    command.env_clear().env("HOME", kept.join("serve-home"));
    command
        .env("TOOLSHELF_DATA_DIR", kept.join("serve-data"))
        .env("TOOLSHELF_CACHE_DIR", kept.join("serve-cache"));
    // The keyring of whoever runs the tests is none of theirs.
    command.env("TOOLSHELF_VAULT_KEY", "file");
    command.env("TOOLSHELF_LOG", "debug").arg("--json");
    if let Some(shelf) = shelf {
        command.arg("--shelf").arg(shelf);
    }
    command
}

impl Server {
    /// A companion with the built-in tools.
    pub(crate) fn start() -> Self {
        Self::over(None)
    }

    /// A companion over the shelf in that folder.
    pub(crate) fn over(shelf: Option<&Path>) -> Self {
        Self::set_up(shelf, |_| {})
    }

    /// The same with variables of its environment.
    pub(crate) fn with(shelf: Option<&Path>, variables: &[(&str, &str)]) -> Self {
        Self::set_up(shelf, |command| _ = command.envs(variables.iter().copied()))
    }

    /// A companion with settings of the test's own.
    pub(crate) fn set_up(shelf: Option<&Path>, set: impl FnOnce(&mut Command)) -> Self {
        let mut command = toolshelf(shelf);
        set(&mut command);
        Self::by(command)
    }

    /// A companion by a command that has all but what it does.
    pub(crate) fn by(command: Command) -> Self {
        Self::run(tempfile::tempdir().unwrap(), command, &["--listen", "127.0.0.1:0"])
    }

    /// A companion with that data folder, and with the `toolshelf.toml` in it.
    pub(crate) fn begin(data: TempDir, shelf: Option<&Path>, more: &[&str]) -> Self {
        let mut command = toolshelf(shelf);
        command.env("TOOLSHELF_CONFIG", data.path().join("toolshelf.toml"));
        Self::run(data, command, more)
    }

    fn run(data: TempDir, mut command: Command, more: &[&str]) -> Self {
        command.args(["serve", "--log-format", "json", "--data"]).arg(data.path()).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, to) = (child.stderr.take().unwrap(), Arc::clone(&log));
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = to.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ready: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}{}", log.lock().unwrap()));
        assert_eq!((&ready["ok"], &ready["pid"]), (&json!(true), &json!(child.id())));
        let token = std::fs::read_to_string(ready["tokenFile"].as_str().unwrap()).unwrap().trim().to_owned();
        let url = ready["url"].as_str().unwrap();
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        Self { child, port, token, data, log, reader: Some(reader) }
    }

    /// Kills it without a word, and gives its data folder to whoever comes next.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.data, tempfile::tempdir().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A request with the token.
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.request("GET", path, &[], "")
    }

    /// A request with the token and a body.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.request("POST", path, &[], &body.to_string())
    }

    /// A request with the token and a body, by any method.
    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.request(method, path, &[("content-type", "application/json")], &body.to_string())
    }

    /// A request with the token, and headers besides.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", &*bearer)];
        if method == "POST" {
            all.push(("content-type", "application/json"));
        }
        // What a test sets itself comes instead.
        all.retain(|(name, _)| !headers.iter().any(|(own, _)| own == name));
        all.extend_from_slice(headers);
        self.bare(method, path, &all, body)
    }

    /// A request with just those headers; one with an empty value is left out.
    pub(crate) fn bare(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            text.push_str(&format!("host: 127.0.0.1:{}\r\n", self.port));
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.raw(text.as_bytes())
    }

    /// Sends bytes, and reads what comes back until the companion closes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        // The companion may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        Reply::read(&mut stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// What was logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Asks the companion to end, and gives how it did and all that it logged.
    pub(crate) fn stop(mut self) -> (ExitStatus, String) {
        self.terminate();
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        (status, self.log())
    }

    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// The value of a metric that has no labels, or just those.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let text = self.get("/metrics").body;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(|value| value.parse().unwrap())
    }

    /// A live session that has not said hello.
    pub(crate) async fn live(&self) -> Live {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        self.live_on(stream).await
    }

    /// A WebSocket at another path that has not said hello.
    pub(crate) async fn at(&self, path: &str) -> Live {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let url = format!("ws://127.0.0.1:{}{path}", self.port);
        Live { socket: tokio_tungstenite::client_async(url, stream).await.unwrap().0 }
    }

    pub(crate) async fn live_on(&self, stream: tokio::net::TcpStream) -> Live {
        let url = format!("ws://127.0.0.1:{}/live", self.port);
        Live { socket: tokio_tungstenite::client_async(url, stream).await.unwrap().0 }
    }

    /// A live session that is ready, and its first frame.
    pub(crate) async fn ready(&self) -> (Live, Value) {
        let mut live = self.live().await;
        live.say(json!({"type": "hello", "bearer": self.token})).await;
        let state = live.frame().await;
        assert_eq!((&state["type"], &state["state"]), (&json!("state"), &json!("ready")), "{state}");
        (live, state)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        // A reset after the answer is an end like any other.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The status and the refusal's code, of an answer that is a "no".
    pub(crate) fn refusal(&self) -> (u16, String) {
        let body = self.json();
        assert_eq!(body["ok"], false, "{body}");
        assert!(!body["why"].as_str().unwrap().is_empty());
        (self.status, body["refused"].as_str().unwrap().to_owned())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Closes the sending half: the other side sees an end.
pub(crate) fn hang_up(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

/// A live session.
pub(crate) struct Live {
    socket: WebSocketStream<tokio::net::TcpStream>,
}

impl Live {
    pub(crate) async fn say(&mut self, frame: Value) {
        self.send(Message::text(frame.to_string())).await;
    }

    /// Sends a message. The companion may have closed meanwhile.
    pub(crate) async fn send(&mut self, message: Message) {
        let _ = self.socket.send(message).await;
    }

    /// The next frame.
    pub(crate) async fn frame(&mut self) -> Value {
        match self.next().await {
            Ok(frame) => frame,
            Err(close) => panic!("closed: {close:?}"),
        }
    }

    /// The next message, whatever it is.
    pub(crate) async fn message(&mut self) -> Message {
        tokio::time::timeout(PATIENCE, self.socket.next()).await.unwrap().unwrap().unwrap()
    }

    /// The next frame of that type; others are passed over.
    pub(crate) async fn frame_of(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.frame().await;
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    /// The next frame, or how the session was closed.
    pub(crate) async fn next(&mut self) -> Result<Value, Option<CloseFrame>> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next()).await.unwrap();
            match message {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(close))) => return Err(close),
                Some(Ok(_)) => {}
                None | Some(Err(_)) => return Err(None),
            }
        }
    }

    /// How the session ends: its last frame, the close code and the reason.
    pub(crate) async fn end(&mut self) -> (Option<Value>, u16, String) {
        let mut last = None;
        loop {
            match self.next().await {
                Ok(frame) => last = Some(frame),
                Err(Some(close)) => return (last, close.code.into(), close.reason.to_string()),
                Err(None) => return (last, 0, String::new()),
            }
        }
    }
}
