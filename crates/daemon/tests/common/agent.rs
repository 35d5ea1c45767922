//! Agents of a test: raw JSON-RPC over the standard input and output of the real program, and over HTTP.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and says where it cannot go on"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than any of the companion's own bounds: a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(90);

/// The revision that tests speak where they do not say otherwise.
pub(crate) const REVISION: &str = "2025-11-25";

/// `toolshelf mcp`. Dropping it kills it.
pub(crate) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Messages that came while something else was waited for.
    pub(crate) heard: Vec<Value>,
    last_id: u64,
}

/// The program on a data folder of its own.
pub(crate) fn program(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolshelf"));
    // Compiled code is kept between tests, as it is between starts; it is found again with the key of the folder alone.
    command
        .env("TOOLSHELF_DATA_DIR", data)
        .env("TOOLSHELF_CACHE_DIR", data.join("cache"))
        .env("TOOLSHELF_CONFIG", data.join("toolshelf.toml"))
        .env("TOOLSHELF_EXTENSIONS_ALLOW_UNSIGNED", "true")
        .env_remove("TOOLSHELF_SHELF_DIR");
    command
}

impl Agent {
    /// An agent that has said hello, over the shelf in that folder or the built-in one.
    pub(crate) fn start(data: &Path, shelf: Option<&Path>) -> Self {
        let mut agent = Self::silent(data, shelf);
        let hello = agent.hello(REVISION);
        assert_eq!(hello["result"]["serverInfo"]["name"], "toolshelf", "{hello}");
        agent
    }

    /// An agent that has said nothing yet.
    pub(crate) fn silent(data: &Path, shelf: Option<&Path>) -> Self {
        let mut command = program(data);
        if let Some(shelf) = shelf {
            command.arg("--shelf").arg(shelf);
        }
        Self::of(command.arg("mcp"))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take(), child, lines, heard: Vec::new(), last_id: 0 }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn hello(&mut self, revision: &str) -> Value {
        let hello = self.ask("initialize", json!({
            "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        }));
        self.notify("notifications/initialized", json!({}));
        hello
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        // The program may have ended meanwhile.
        let _ = input.write_all(bytes).and_then(|()| input.flush());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(
            format!("{}\n", json!({ "jsonrpc": "2.0", "method": method, "params": params })).as_bytes(),
        );
    }

    /// Sends a request, and gives its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.send(format!("{line}\n").as_bytes());
        self.last_id
    }

    /// The next message of the program; `None` when there will be none any more.
    pub(crate) fn next(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("nothing came"),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
        }
    }

    /// The answer to the request `id`; what comes before it is kept.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        if let Some(at) = self.heard.iter().position(|message| message["id"] == id) {
            return self.heard.remove(at);
        }
        loop {
            let message = self.next().expect("the program ended");
            if message["id"] == id {
                return message;
            }
            self.heard.push(message);
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Calls a tool, and gives the result.
    pub(crate) fn call(&mut self, name: &str, args: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": name, "arguments": args }));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The tools by their names.
    pub(crate) fn tools(&mut self) -> std::collections::BTreeMap<String, Value> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        tools.iter().map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool.clone())).collect()
    }

    /// Waits for a notification.
    pub(crate) fn hear(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.heard.iter().position(|message| message["method"] == method) {
                return self.heard.remove(at);
            }
            let message = self.next().expect("the program ended");
            self.heard.push(message);
        }
    }

    /// Closes the standard input, and waits for the end.
    pub(crate) fn close(mut self) -> ExitStatus {
        self.input = None;
        while self.next().is_some() {}
        self.child.wait().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The code of a result that is a refusal.
pub(crate) fn refused(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    let code = result["_meta"]["toolshelf/refusal"]["refused"].as_str().unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("{code}: ")), "{text}");
    code
}

/// The messages in the body of an answer over HTTP, be it JSON or a stream of events.
pub(crate) fn messages(body: &str) -> Vec<Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let events: Vec<Value> = lines.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect();
    if events.is_empty() { serde_json::from_str(body).into_iter().collect() } else { events }
}
