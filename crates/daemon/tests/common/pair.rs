//! Two companions for a test of pairing, and a wire between them that can be held and cut.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and says where it cannot go on"
)]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::server::{Server, toolshelf};

/// A companion whose tasks work in a folder `root` of its data folder, with an agent that takes its time.
pub(crate) fn machine(more: &[&str]) -> Server {
    let data = tempfile::tempdir().unwrap();
    let root = data.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let config = format!(
        "roots = [{root:?}]\n\n[agents.slow]\ncommand = [\"sleep\", \"600\"]\n\n\
         [agents.brief]\ncommand = [\"sh\", \"-c\", \"read prompt; sleep 0.2; echo did $prompt; echo \\\"$prompt\\\" >> ran.log\"]\n"
    );
    std::fs::write(data.path().join("toolshelf.toml"), config).unwrap();
    let usual = ["--listen", "127.0.0.1:0"];
    let more: Vec<&str> = if more.contains(&"--listen") { more.to_vec() } else { [&usual, more].concat() };
    Server::begin(data, None, &more)
}

/// Runs a command with the data folder of `server`; answers whether it went well, and what it printed.
pub(crate) fn cli(server: &Server, args: &[&str]) -> (bool, Value) {
    let output = toolshelf(None)
        .env("TOOLSHELF_DATA_DIR", server.data.path())
        .env("TOOLSHELF_CONFIG", server.data.path().join("toolshelf.toml"))
        .current_dir(server.data.path().join("root"))
        .args(args)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = serde_json::from_str(&printed)
        .unwrap_or_else(|_| panic!("{args:?}: {printed}{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.success(), value)
}

/// The link for a new code.
pub(crate) fn link(remote: &Server, more: &[&str]) -> String {
    let (done, offer) = cli(remote, &[&["pair"], more].concat());
    assert!(done, "{offer}");
    offer["link"].as_str().unwrap().to_owned()
}

/// Pairs `local` with `remote`; answers the environment's key.
pub(crate) fn pair(local: &Server, remote: &Server, more: &[&str]) -> String {
    let added = local.post("/v1/environments", &json!({ "link": link(remote, more) })).json();
    assert_eq!(added["ok"], true, "{added}");
    added["environment"]["key"].as_str().unwrap().to_owned()
}

/// How the environment stands for `local`.
pub(crate) fn standing(local: &Server, key: &str) -> Value {
    let list = local.get("/v1/environments").json();
    let mut known = list["environments"].as_array().unwrap().iter();
    known.find(|known| known["key"] == key).cloned().unwrap_or_default()
}

/// Delegates to the environment; answers the body.
pub(crate) fn delegate(local: &Server, key: &str, agent: &str, task: &str, call_id: &str) -> Value {
    let body = json!({ "environment": key, "agent": agent, "task": task, "callId": call_id });
    local.post("/v1/tasks", &body).json()
}

/// Where the task stands.
pub(crate) fn status(local: &Server, address: &Value) -> Value {
    local.post("/v1/tasks/status", &json!({ "address": address })).json()
}

/// The lines of the journals of that writer in the root of `server`.
pub(crate) fn journal(server: &Server, writer: &str) -> String {
    journal_in(server.data.path(), writer)
}

pub(crate) fn journal_in(data: &Path, writer: &str) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(data.join("root/.audit")).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(writer) {
            text.push_str(&std::fs::read_to_string(entry.path()).unwrap());
        }
    }
    text
}

/// What the wire does with bytes.
const PASS: u8 = 0;
/// What is asked passes, and what is answered is lost.
const LOSE_ANSWERS: u8 = 1;
/// Connections end, and new ones too.
const CUT: u8 = 2;
/// Nothing passes, and nothing ends.
const HOLD: u8 = 3;

/// A wire between two companions: a TCP proxy on another number of this computer, at the remote's port.
pub(crate) struct Wire {
    mode: Arc<AtomicU8>,
}

/// The number that a wire is on.
pub(crate) const WIRE: &str = "127.0.0.2";

impl Wire {
    pub(crate) fn to(port: u16) -> Self {
        let mode = Arc::new(AtomicU8::new(PASS));
        let listener = TcpListener::bind((WIRE, port)).unwrap();
        let at = Arc::clone(&mode);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let remote = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port)));
                let (true, Ok(remote)) = (at.load(Ordering::SeqCst) != CUT, remote) else {
                    let _ = client.shutdown(Shutdown::Both);
                    continue;
                };
                let (from_client, from_remote) = (client.try_clone().unwrap(), remote.try_clone().unwrap());
                let (one, other) = (Arc::clone(&at), Arc::clone(&at));
                std::thread::spawn(move || pump(from_client, remote, &one, false));
                std::thread::spawn(move || pump(from_remote, client, &other, true));
            }
        });
        Self { mode }
    }

    pub(crate) fn pass(&self) {
        self.mode.store(PASS, Ordering::SeqCst);
    }

    pub(crate) fn lose_answers(&self) {
        self.mode.store(LOSE_ANSWERS, Ordering::SeqCst);
    }

    pub(crate) fn hold(&self) {
        self.mode.store(HOLD, Ordering::SeqCst);
    }

    /// Cuts every connection, and leaves the wire cut.
    pub(crate) fn cut(&self) {
        self.mode.store(CUT, Ordering::SeqCst);
        // Longer than a pump waits for bytes.
        std::thread::sleep(Duration::from_millis(120));
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, mode: &AtomicU8, is_answer: bool) {
    from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut bytes = [0; 16 * 1024];
    loop {
        let now = mode.load(Ordering::SeqCst);
        let read = match now {
            CUT => break,
            HOLD => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            _ => from.read(&mut bytes),
        };
        match read {
            Ok(0) => break,
            Ok(_) if is_answer && mode.load(Ordering::SeqCst) == LOSE_ANSWERS => {}
            Ok(read) => {
                if to.write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
            Err(err) if matches!(err.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
