//! What programs are answered: as the description says, and as the command line prints it.

mod common;
#[path = "common/server.rs"]
mod server;

use std::io::{BufRead as _, BufReader, Write as _};

use common::{SPINS, eventually, one_tool_of_text, workers_of};
use serde_json::{Value, json};
use server::{Reply, Server, hang_up, toolshelf};

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Holds an answer to what the description says of it.
fn described(document: &Value, method: &str, path: &str, reply: &Reply) -> Value {
    let responses = &document["paths"][path][method]["responses"];
    let response =
        if reply.status == 200 { &responses["200"] } else { &document["components"]["responses"]["Refused"] };
    let mut schema = response["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let body = reply.json();
    let faults: Vec<String> = validator.iter_errors(&body).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{method} {path}: {faults:?} in {body}");
    body
}

#[test]
fn answers_are_what_the_description_says() {
    let server = Server::start();
    let document = server.bare("GET", "/v1/openapi.json", &[], "").json();
    let get = |path: &str| described(&document, "get", path, &server.get(path));
    assert_eq!(get("/healthz")["ok"], true);
    assert_eq!(get("/v1/shelf")["shelves"][0]["tools"].as_array().unwrap().len(), 3);

    let call = |id: &str, args: Value| {
        let reply = server.post(&format!("/v1/shelf/tools/{id}/call"), &json!({"args": args}));
        described(&document, "post", "/v1/shelf/tools/{id}/call", &reply)
    };
    assert_eq!(call("hash", json!({"input": "abc"}))["output"], ABC);
    assert_eq!(call("hash", json!({"input": {"base64": "YWJj"}}))["output"], ABC);
    let diff = call("diff", json!({"a": "alpha\nbeta\n", "b": "alpha\ngamma\nbeta\n"}));
    assert_eq!((&diff["returned"], &diff["blocks"][1]["op"]), (&json!(52), &json!("insert")));
    assert_eq!(call("hash", json!({"input": "x".repeat(8_193)}))["refused"], "over-budget");
    assert_eq!(call("hash", json!({"inputs": "x"}))["refused"], "invalid-argument");
    assert_eq!(call("no-tool", json!({}))["refused"], "unknown-tool");

    let inventory = get("/api/extensions");
    let latency = &inventory["extensions"][0]["toolDetails"][0]["latency"];
    assert!(latency["calls"].as_u64() >= Some(2), "{inventory}");
    let listed = described(
        &document,
        "post",
        "/v1/commands/{name}",
        &server.post("/v1/commands/list_extensions", &json!({})),
    );
    assert_eq!(listed["extensions"][0]["id"], inventory["extensions"][0]["id"]);
    let called = server.post("/v1/commands/call_extension", &json!({"name": "hash", "input": "abc"}));
    assert_eq!(called.json()["output"], ABC);
}

#[test]
fn tasks_are_what_the_description_says() {
    let server = Server::start();
    let document = server.get("/v1/openapi.json").json();
    let get = |path: &str, at: &str| described(&document, "get", path, &server.get(at));
    let post = |path: &str, body: Value| described(&document, "post", path, &server.post(path, &body));
    let environment = get("/v1/environment", "/v1/environment")["environment"].clone();
    assert_eq!(environment["placement"], "machine");
    assert_eq!(environment["roots"].as_array().unwrap().len(), 1, "{environment}");

    let root = environment["roots"][0]["root"]["path"].clone();
    let task = json!({"agent": "hash", "task": "abc", "callId": "one", "root": root, "deadlineMs": 4_000});
    let delegated = post("/v1/tasks", task.clone());
    assert_eq!(delegated["existing"], false, "{delegated}");
    assert_eq!(post("/v1/tasks", task)["existing"], true);
    let address = json!({"address": delegated["task"]["address"]});
    eventually("the task is done", || {
        post("/v1/tasks/status", address.clone())["task"]["state"] == "completed"
    });
    assert_eq!(post("/v1/tasks/status", address.clone())["task"]["answer"], ABC);
    assert_eq!(post("/v1/tasks/cancel", address)["refused"], "task-not-running");

    let rows = get("/v1/tasks", "/v1/tasks?filter=completed&limit=5");
    assert_eq!(rows["rows"].as_array().unwrap().len(), 1);
    assert_eq!(get("/v1/tasks", "/v1/tasks?filter=active")["rows"], json!([]));
    let position = rows["rows"][0]["position"].as_u64().unwrap();
    let detail = get("/v1/tasks/{position}", &format!("/v1/tasks/{position}"));
    assert_eq!(detail["detail"]["task"], "abc");
    assert_eq!(get("/v1/tasks/{position}", "/v1/tasks/9000000")["refused"], "task-not-found");

    assert_eq!(
        post("/v1/tasks", json!({"agent": "hash", "task": "abc"}))["refused"],
        "task-call-id-required"
    );
    let elsewhere = json!({"agent": "hash", "task": "abc", "callId": "two", "root": "/"});
    assert_eq!(post("/v1/tasks", elsewhere)["ok"], false);
    assert_eq!(post("/v1/tasks/status", json!({"address": "task_x.y"}))["ok"], false);
    for state in ["queued", "running", "completed"] {
        let counted = server.metric(&format!("toolshelf_task_states_total{{state=\"{state}\"}}"));
        assert_eq!(counted, Some(1.0), "{state}");
    }
}

#[test]
fn the_shelf_is_the_value_that_the_command_line_prints() {
    let folder = one_tool_of_text(SPINS);
    let manifest = folder.path().join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    // One tool is admitted, one is not.
    let twice = text.replace("[{", "[{\"id\":\"gone\",\"wasm\":\"gone.wasm\",\"digest\":\"\"},{");
    std::fs::write(&manifest, twice).unwrap();
    let server = Server::over(Some(folder.path()));
    let printed = toolshelf(Some(folder.path())).arg("list").output().unwrap();
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed["ok"], false);
    assert_eq!(server.get("/v1/shelf").json(), printed);
}

#[test]
fn what_happens_is_streamed() {
    let server = Server::start();
    let mut stream = server.connect();
    let request = format!(
        "GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\n\r\n",
        server.port, server.token
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.eq_ignore_ascii_case("content-type: text/event-stream")));
    // The head is there, so the stream is: nothing that follows is missed.
    assert!(lines.any(|line| line.is_empty()));
    server.post("/v1/shelf/tools/hash/call", &json!({"args": {"input": "abc"}}));
    assert!(lines.any(|line| line == "event: tool"));
    let data = lines.next().unwrap();
    let frame: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    let call = &frame["calls"][0];
    assert_eq!(
        (&call["name"], &call["output"], &call["from"]),
        (&json!("hash"), &json!(ABC), &json!("http"))
    );
    assert_eq!(server.metric("toolshelf_live_sessions"), Some(1.0));
    server.terminate();
    // The stream ends in order when the companion does.
    assert_eq!(lines.last().unwrap(), "");
}

#[test]
fn counts_can_be_read_and_made_up_names_make_no_labels() {
    let server = Server::start();
    for id in ["hash", "made-up-1", "made-up-2"] {
        server.post(&format!("/v1/shelf/tools/{id}/call"), &json!({"args": {"input": "abc"}}));
    }
    let reply = server.get("/metrics");
    assert!(reply.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    for line in reply.body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok() && name.starts_with(['t', 'p']), "{line}");
    }
    assert!(reply.body.ends_with("# EOF\n") && !reply.body.contains("made-up"), "{}", reply.body);
    let counted = |labels: &str| server.metric(&format!("toolshelf_calls_total{{{labels}}}"));
    assert_eq!(counted("tool=\"hash\",outcome=\"ok\",from=\"http\""), Some(1.0));
    assert_eq!(counted("tool=\"(unknown)\",outcome=\"unknown-tool\",from=\"http\""), Some(2.0));
    assert_eq!(server.metric("toolshelf_http_refusals_total{code=\"unknown-tool\"}"), Some(2.0));
    assert!(server.metric("process_resident_memory_bytes") > Some(1e6));
    assert!(server.metric("process_open_fds") > Some(3.0));
}

#[test]
fn a_call_whose_client_is_gone_is_ended() {
    let folder = one_tool_of_text(SPINS);
    let server = Server::over(Some(folder.path()));
    let body = json!({"args": {}}).to_string();
    let request = format!(
        "POST /v1/shelf/tools/case/call HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.port,
        server.token,
        body.len()
    );
    for _ in 0..20 {
        let streams: Vec<_> = (0..8).map(|_| server.connect()).collect();
        for mut stream in &streams {
            stream.write_all(request.as_bytes()).unwrap();
        }
        eventually("a call runs", || server.metric("toolshelf_gate_active") > Some(0.0));
        streams.iter().for_each(hang_up);
        // Not one of them waits for its deadline: a call that answers finds its place at once.
        let answer = server.post("/v1/shelf/tools/hash/call", &json!({"args": {"input": "abc"}}));
        assert_eq!(answer.json()["output"], ABC);
        eventually("nothing runs", || server.metric("toolshelf_gate_active") == Some(0.0));
    }
    // What stands ready is all that is left.
    eventually("workers have ended", || workers_of(server.pid()).len() <= 8);
    let (status, log) = server.stop();
    assert!(status.success() && !log.contains("panicked"), "{log}");
}

#[test]
fn the_log_tells_of_requests_and_of_no_secret() {
    let server = Server::start();
    let token = server.token.clone();
    server.get(&format!("/healthz?token={token}"));
    server.get(&format!("/{token}"));
    server.request("GET", "/v1/shelf", &[("authorization", "Bearer wrong-but-secret-1234")], "");
    server.post("/v1/shelf/tools/hash/call", &json!({"args": {"input": "a body that nobody logs"}}));
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0));
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let requests: Vec<_> = lines.iter().filter(|line| line["message"] == "request").collect();
    assert!(requests.iter().any(|line| line["path"] == "/healthz" && line["status"] == 200), "{log}");
    let refused = |line: &&&Value| line["refused"] == "bearer-refused" && line["status"] == 401;
    assert_eq!(requests.iter().filter(refused).count(), 1, "{log}");
    for secret in [&*token, "wrong-but-secret", "nobody logs"] {
        assert!(!log.contains(secret), "{log}");
    }
}
