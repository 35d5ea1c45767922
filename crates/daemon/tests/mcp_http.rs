//! The shelf for agents over HTTP: who gets in, extensions, definitions, streams; with the protocol's own client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[path = "common/agent.rs"]
mod agent;
mod common;
#[path = "common/server.rs"]
mod server;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use server::Server;

/// SHA-256 of `abc`.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
/// A module of an extension that logs a line, and answers with two blocks of the protocol.
const BLOCKS: &str = r#"(module (import "crux" "log" (func $log (param i32 i32 i32 i32)))
    (memory (export "memory") 3) (data (i32.const 69000) "infohello from inside")
    (data (i32.const 150000) "{\22result\22:{\22content\22:[{\22type\22:\22text\22,\22text\22:\22one\22},{\22type\22:\22image\22,\22data\22:\22aGk=\22,\22mimeType\22:\22image/png\22}]}}")
    (func (export "extension_call") (param i32 i32 i32 i32) (result i32)
      (call $log (i32.const 69000) (i32.const 4) (i32.const 69004) (i32.const 17))
      (memory.copy (local.get 2) (i32.const 150000) (i32.const 107))
      (i32.const 107)))"#;

fn run(data: &Path, args: &[&str]) -> String {
    let output = agent::program(data).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{args:?}: {text}");
    text
}

/// An extension in a folder, with one tool of that name.
fn extension(id: &str, tool: &str, description: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let wasm = wat::parse_str(BLOCKS).unwrap();
    fs::write(dir.path().join("module.wasm"), &wasm).unwrap();
    let manifest = json!({
        "schema": "crux.integration.v1", "id": id, "name": id, "version": "1", "publisher_passport_fpr": "p_test",
        "summary": "A test.", "entry": {"kind": "wasm", "path": "manifest.json"},
        "safety": {"sandbox": "wasm", "max_runtime_ms": 0, "max_output_bytes": 0},
        "wasm_module_path": "module.wasm", "wasm_module_sha256": toolshelf_core::Digest::of(&wasm).to_string(),
        "tools": [{"name": tool, "description": description,
            "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}],
    });
    fs::write(dir.path().join("manifest.json"), manifest.to_string()).unwrap();
    dir
}

/// A companion whose extensions need no signature.
fn companion(data: &Path) -> (agent::Agent, std::process::Child, u16, String) {
    let mut command = agent::program(data);
    command.args(["--json", "serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let port =
        ready["url"].as_str().unwrap().trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let token = fs::read_to_string(ready["tokenFile"].as_str().unwrap()).unwrap().trim().to_owned();
    (agent::Agent::start(data, None), child, port, token)
}

#[test]
fn granted_extensions_are_offered_with_stable_names() {
    let data = tempfile::tempdir().unwrap();
    let (mut agent, mut child, port, token) = companion(data.path());
    assert!(!agent.tools().contains_key("blocks"));
    let first = extension("one.blocks", "blocks", "Answers with blocks");
    run(data.path(), &["ext", "install", first.path().to_str().unwrap()]);
    assert!(!agent.tools().contains_key("blocks"), "what is not granted is not offered");
    run(data.path(), &["ext", "grant", "one.blocks", "--passport", "mcp"]);
    agent.hear("notifications/tools/list_changed");
    assert_eq!(agent.tools()["blocks"]["description"], "Answers with blocks");

    let result = agent.call("blocks", json!({"n": 1}));
    assert_eq!(
        (&result["content"][0]["text"], &result["content"][1]["type"]),
        (&json!("one"), &json!("image")),
        "{result}"
    );
    assert_eq!(agent.hear("notifications/message")["params"]["data"], "hello from inside");
    assert_eq!(agent::refused(&agent.call("blocks", json!({"n": "x"}))), "invalid-argument");

    // Another one of that name gets a longer name, and so does one of a tool of the shelf.
    for (id, tool) in [("two.blocks", "blocks"), ("three", "hash"), ("four", "delegate_task")] {
        let other = extension(id, tool, "Another");
        run(data.path(), &["ext", "install", other.path().to_str().unwrap()]);
        run(data.path(), &["ext", "grant", id, "--passport", "mcp"]);
    }
    let tools = agent.tools();
    for name in
        ["blocks", "two_blocks__blocks", "three__hash", "four__delegate_task", "hash", "delegate_task"]
    {
        assert!(tools.contains_key(name), "{name}: {:?}", tools.keys());
    }
    assert_eq!(agent.call("hash", json!({"input": "abc"}))["structuredContent"]["output"], ABC);

    // The same id with another definition: refused, although it was granted anew.
    run(data.path(), &["ext", "remove", "one.blocks"]);
    assert!(!agent.tools().contains_key("blocks"));
    let changed = extension("one.blocks", "blocks", "Answers with blocks, and more");
    run(data.path(), &["ext", "install", changed.path().to_str().unwrap()]);
    run(data.path(), &["ext", "grant", "one.blocks", "--passport", "mcp"]);
    assert_eq!(agent::refused(&agent.call("blocks", json!({}))), "definition-changed");
    let hidden = extension("five", "hides", "Looks\u{200b} fine");
    run(data.path(), &["ext", "install", hidden.path().to_str().unwrap()]);
    run(data.path(), &["ext", "grant", "five", "--passport", "mcp"]);
    assert!(!agent.tools().contains_key("hides"));

    let ask = |method: &str, path: &str, body: &str| -> Value {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\
            content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{text}"))
    };
    let listed = ask("GET", "/v1/definitions", "");
    let rows = listed["definitions"].as_array().unwrap();
    let state = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["state"].clone();
    assert_eq!(
        (state("blocks"), state("hides"), state("hash")),
        (json!("changed"), json!("refused"), json!("pinned"))
    );
    let stale = ask(
        "POST",
        "/v1/definitions/approve",
        &json!({"names": ["blocks"], "sha256": {"blocks": "0"}}).to_string(),
    );
    assert_eq!(stale["refused"], "definition-changed", "{stale}");
    assert_eq!(
        ask("POST", "/v1/definitions/approve", r#"{"names":["hides"]}"#)["refused"],
        "hidden-characters"
    );
    assert_eq!(ask("POST", "/v1/definitions/approve", r#"{"names":["blocks"]}"#)["ok"], true);
    assert_eq!(agent.call("blocks", json!({}))["isError"], false);
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn only_who_may_gets_in() {
    let server = Server::start();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": agent::REVISION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}).to_string();
    let ask = |headers: &[(&str, &str)]| {
        let accept = ("accept", "application/json, text/event-stream");
        server.request("POST", "/mcp", &[&[accept][..], headers].concat(), &hello)
    };
    assert_eq!(ask(&[]).status, 200);
    for (headers, status, code) in [
        (("authorization", ""), 401, "bearer-refused"),
        (
            (
                "authorization",
                "Bearer tsmcp_0000000000000000000000000000000000000000000000000000000000000000",
            ),
            401,
            "bearer-refused",
        ),
        (("host", "evil.example"), 421, "host-not-allowed"),
        (("origin", "http://evil.example"), 403, "origin-not-allowed"),
    ] {
        assert_eq!(ask(&[headers]).refusal(), (status, code.to_owned()), "{headers:?}");
    }
}

#[tokio::test]
async fn the_protocols_own_client_lists_and_calls() {
    let server = Server::start();
    let config =
        StreamableHttpClientTransportConfig::with_uri(format!("http://127.0.0.1:{}/mcp", server.port));
    let transport = StreamableHttpClientTransport::from_config(config.auth_header(server.token.clone()));
    let client = ().serve(transport).await.unwrap();
    assert!(client.list_all_tools().await.unwrap().iter().any(|tool| tool.name == "diff"));
    let args = json!({"input": "abc"}).as_object().cloned().unwrap();
    let result = client.call_tool(CallToolRequestParams::new("hash").with_arguments(args)).await.unwrap();
    assert_eq!(result.structured_content.unwrap()["output"], ABC);
    let resources = client.list_all_resources().await.unwrap();
    assert!(resources.iter().any(|resource| resource.uri == "toolshelf://receipts"));
    client.cancel().await.unwrap();
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}

#[test]
fn a_stream_ends_with_its_token() {
    let server = Server::start();
    let made: Value =
        serde_json::from_str(&run(server.data.path(), &["--json", "mcp", "token", "add", "desk"])).unwrap();
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let headers = [("authorization", &*bearer), ("accept", "application/json, text/event-stream")];
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": agent::REVISION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}).to_string();
    let begun = server.request("POST", "/mcp", &headers, &hello);
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let mut stream = server.connect();
    write!(
        stream,
        "GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: {bearer}\r\naccept: text/event-stream\r\n\
        mcp-session-id: {session}\r\nconnection: close\r\n\r\n",
        server.port
    )
    .unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    run(server.data.path(), &["mcp", "token", "remove", "desk"]);
    // It ends, which is all that is waited for.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
}
