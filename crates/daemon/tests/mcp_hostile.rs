//! Clients that mean no good, or know no better: nothing hangs, and nobody else notices.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[path = "common/agent.rs"]
mod agent;
mod common;
#[path = "common/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::io::Write as _;

use agent::{Agent, messages};
use serde_json::{Value, json};
use server::Server;

/// Requests that one client sends without waiting.
const FLOOD: u64 = 10_000;

#[test]
fn what_is_no_message_is_answered_and_the_next_one_is_read() {
    let data = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(data.path(), None);
    for bad in [
        "{",
        "[]",
        "7",
        "\"x\"",
        "{}",
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        "\u{0}",
        r#"{"jsonrpc":"2.0","id":9,"method":"no/such"}"#,
    ] {
        agent.send(format!("{bad}\n").as_bytes());
    }
    agent.send(b"\xff\xfe\n\n");
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}{}}}\n",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    agent.send(deep.as_bytes());
    let long = vec![b'x'; 3 * 1024 * 1024];
    agent.send(&long);
    agent.send(b"\n");
    assert_eq!(agent.ask("ping", json!({}))["result"], json!({}));
    assert!(agent.close().success());
}

#[test]
fn a_flood_is_answered_to_the_last_request() {
    let data = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(data.path(), None);
    let mut waiting = BTreeSet::new();
    let mut lines = Vec::new();
    for id in 1_000_000..1_000_000 + FLOOD {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "hash", "arguments": {"input": "abc"}}});
        writeln!(lines, "{call}").unwrap();
        waiting.insert(id);
    }
    // The client writes everything before it reads anything.
    agent.send(&lines);
    let mut answered = 0;
    while !waiting.is_empty() {
        let message = agent.next().unwrap();
        let Some(id) = message["id"].as_u64() else { continue };
        assert!(waiting.remove(&id), "{message}");
        if message["result"]["isError"] == false {
            answered += 1;
        } else {
            assert_eq!(agent::refused(&message["result"]), "over-budget");
        }
    }
    assert!(answered > 0);
    assert_eq!(agent.ask("ping", json!({}))["result"], json!({}));
}

#[test]
fn a_storm_of_cancellations_harms_nobody() {
    let data = tempfile::tempdir().unwrap();
    let shelf = common::one_tool_of_text(common::SPINS);
    let mut agent = Agent::start(data.path(), Some(shelf.path()));
    for _ in 0..200 {
        let id = agent.request("tools/call", json!({"name": "case", "arguments": {"input": "x"}}));
        for of in [json!(id), json!(id + 1_000), json!("x"), json!(-1)] {
            agent.notify("notifications/cancelled", json!({"requestId": of}));
        }
    }
    assert_eq!(agent.ask("ping", json!({}))["result"], json!({}));
    // No place is lost: as many calls as may run at a time run.
    let ids: Vec<u64> = (0..4)
        .map(|_| agent.request("tools/call", json!({"name": "hash", "arguments": {"input": "abc"}})))
        .collect();
    for id in ids {
        let mut answer = agent.answer(id);
        while answer["result"]["isError"] == true {
            assert_eq!(agent::refused(&answer["result"]), "over-budget");
            answer = agent.ask("tools/call", json!({"name": "hash", "arguments": {"input": "abc"}}));
        }
    }
}

#[test]
fn bad_bodies_over_http_are_refused_and_harm_nobody() {
    let server = Server::start();
    let accept = ("accept", "application/json, text/event-stream");
    let post = |body: &str, headers: &[(&str, &str)]| {
        server.request("POST", "/mcp", &[&[accept][..], headers].concat(), body)
    };
    for body in ["", "{", "[]", "7", "{}", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#] {
        let reply = post(body, &[]);
        assert!((400..500).contains(&reply.status), "{body}: {reply:?}");
    }
    assert_eq!(post(&"x".repeat(3 * 1024 * 1024), &[]).status, 413);
    assert!((400..500).contains(&post("{}", &[("content-type", "text/plain")]).status));
    assert!((400..500).contains(&post("{}", &[("accept", "text/html")]).status));
    assert!(
        (400..500).contains(&server.request("GET", "/mcp", &[("accept", "text/event-stream")], "").status)
    );
    assert_eq!(server.request("PUT", "/mcp", &[], "").status, 405);
    let unknown = post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, &[("mcp-session-id", "made-up")]);
    assert_eq!(unknown.status, 404);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn a_client_that_hangs_up_in_a_call_takes_its_worker_with_it() {
    let shelf = common::one_tool_of_text(common::SPINS);
    let server = Server::over(Some(shelf.path()));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "case", "arguments": {"input": "x"}, "_meta": meta}})
    .to_string();
    let head = |name: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
         mcp-name: {name}\r\ncontent-length: {}\r\n\r\n{call}",
            server.port,
            server.token,
            call.len()
        )
    };
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = server.connect();
        stream.write_all(head("case").as_bytes()).unwrap();
        streams.push(stream);
    }
    common::eventually("the calls run", || server.metric("toolshelf_gate_active") == Some(4.0));
    for stream in &streams {
        server::hang_up(stream);
    }
    common::eventually("their places are free", || server.metric("toolshelf_gate_active") == Some(0.0));
    // None of them came to its deadline.
    let ended = server.get("/metrics").body;
    assert!(!ended.contains("time-exceeded"), "{ended}");
}

#[test]
fn nothing_of_one_client_reaches_another() {
    let server = Server::start();
    let token = |name: &str, tools: &str| -> String {
        let mut add = agent::program(server.data.path());
        add.args(["--json", "mcp", "token", "add", name]);
        if !tools.is_empty() {
            add.args(["--tools", tools]);
        }
        let made: Value = serde_json::from_slice(&add.output().unwrap().stdout).unwrap();
        made["token"].as_str().unwrap().to_owned()
    };
    let (ann, ben) = (token("ann", ""), token("ben", "hash,task_status,delegate_task"));
    let ann = Http::begin(&server, &ann);
    let ben = Http::begin(&server, &ben);

    let names = |client: &Http| -> Vec<String> {
        let listed = client.ask("tools/list", json!({}));
        listed["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(names(&ann).contains(&"diff".to_owned()));
    let mut bens = names(&ben);
    bens.sort();
    assert_eq!(bens, ["delegate_task", "hash", "task_status"]);
    let call = |client: &Http, name: &str, args: Value| {
        client.ask("tools/call", json!({"name": name, "arguments": args}))
    };
    assert_eq!(call(&ben, "diff", json!({"a": "x", "b": "y"}))["error"]["code"], -32602);
    assert_eq!(call(&ben, "hash", json!({"input": "x"}))["result"]["isError"], false);
    let other = call(&ben, "delegate_task", json!({"agent": "diff", "task": "x"}));
    assert_eq!(agent::refused(&other["result"]), "unknown-tool");
    let task = call(&ann, "delegate_task", json!({"agent": "hash", "task": "abc"}));
    let address = task["result"]["structuredContent"]["task"]["address"]
        .as_str()
        .unwrap_or_else(|| panic!("{task}"))
        .to_owned();
    let status = |client: &Http| call(client, "task_status", json!({"address": address}))["result"].clone();
    assert_eq!(status(&ann)["isError"], false);
    assert_eq!(agent::refused(&status(&ben)), "task-owner-mismatch");
    let uri = json!({"uri": format!("toolshelf://tasks/{address}")});
    assert!(ann.ask("resources/read", uri.clone()).get("result").is_some());
    assert!(ben.ask("resources/read", uri).get("error").is_some());

    // A session is its owner's, also for who knows its name.
    let stolen = Http { session: ann.session.clone(), token: ben.token.clone(), server: &server };
    assert_eq!(stolen.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).status, 404);
    assert!(
        server.get("/v1/shelf").status == 200 && stolen.get_v1() == 401,
        "an agent's token opens nothing else"
    );
    let removed =
        agent::program(server.data.path()).args(["mcp", "token", "remove", "ben"]).output().unwrap();
    assert!(removed.status.success());
    assert_eq!(ben.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).status, 401);
    assert!(!server.log().contains(&ann.token), "tokens are in no log");
}

/// A session over HTTP.
struct Http<'s> {
    server: &'s Server,
    token: String,
    session: String,
}

impl<'s> Http<'s> {
    fn begin(server: &'s Server, token: &str) -> Self {
        let mut client = Self { server, token: token.to_owned(), session: String::new() };
        let reply = client.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": agent::REVISION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}));
        assert_eq!(reply.status, 200, "{reply:?}");
        client.session = reply.header("mcp-session-id").unwrap().to_owned();
        assert_eq!(
            client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status,
            202
        );
        client
    }

    fn post(&self, message: &Value) -> server::Reply {
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("authorization", &*bearer),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", &*self.session),
        ];
        self.server.request("POST", "/mcp", &headers, &message.to_string())
    }

    fn get_v1(&self) -> u16 {
        self.server
            .request("GET", "/v1/shelf", &[("authorization", &*format!("Bearer {}", self.token))], "")
            .status
    }

    fn ask(&self, method: &str, params: Value) -> Value {
        let reply = self.post(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        let found = messages(&reply.body).into_iter().find(|message| message["id"] == 7);
        found.unwrap_or_else(|| panic!("{reply:?}"))
    }
}
