//! What others bring to get in: codes, tokens, frames, origins.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;
#[path = "common/pair.rs"]
mod pair;
#[path = "common/server.rs"]
mod server;

use common::eventually;
use pair::{cli, machine};
use serde_json::{Value, json};
use server::{Reply, Server};
use toolshelf_core::remote::descriptor_id;

const PAGE: &str = "https://tools.example";

/// The code of a new offer.
fn code(server: &Server, more: &[&str]) -> String {
    let (done, offer) = cli(server, &[&["pair"], more].concat());
    assert!(done, "{offer}");
    offer["code"].as_str().unwrap().to_owned()
}

fn enter(server: &Server, code: &str, headers: &[(&str, &str)]) -> Reply {
    let headers = [&[("content-type", "application/json")], headers].concat();
    server.bare("POST", "/v1/pair", &headers, &json!({ "code": code, "name": "test" }).to_string())
}

/// A token of that name.
fn token(server: &Server, more: &[&str]) -> String {
    let paired = enter(server, &code(server, more), &[]).json();
    assert_eq!(paired["ok"], true, "{paired}");
    paired["bearer"].as_str().unwrap().to_owned()
}

/// A request with a token.
fn ask(server: &Server, bearer: &str, method: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {bearer}");
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    server.bare(method, path, &headers, &if body.is_null() { String::new() } else { body.to_string() })
}

#[test]
fn codes_cannot_be_guessed() {
    let server = machine(&[]);
    let right = code(&server, &[]);
    let wrong = if right == "00000000" { "11111111" } else { "00000000" };
    for _ in 0..5 {
        assert_eq!(enter(&server, wrong, &[]).refusal(), (403, "pairing-code-refused".into()));
    }
    assert_eq!(
        enter(&server, &right, &[]).refusal(),
        (403, "pairing-code-refused".into()),
        "five tries end it"
    );
    for bad in [json!({}), json!({"code": 12345678}), json!({"code": "1", "more": 1}), json!([])] {
        let reply =
            server.bare("POST", "/v1/pair", &[("content-type", "application/json")], &bad.to_string());
        assert_eq!(reply.status, 400, "{bad}");
    }
    let right = code(&server, &[]);
    for _ in 0..4 {
        assert_eq!(enter(&server, wrong, &[]).status, 403);
    }
    assert_eq!(enter(&server, &right, &[]).refusal(), (429, "rate-limited".into()), "across codes as well");
    let log = server.log();
    assert!(log.contains("a wrong pairing code was tried") && log.contains("pairing-code-refused"));
    assert!(!log.contains(&right), "a code was logged");
}

#[test]
fn a_token_is_good_for_its_scopes_and_never_for_setting_the_machine_up() {
    let server = machine(&[]);
    let (both, tasks) = (token(&server, &["--name", "both"]), token(&server, &["--scope", "tasks"]));
    let delegation = json!({"agent": "hash", "task": "abc", "callId": "one"});
    let first = ask(&server, &both, "POST", "/v1/tasks", &delegation).json();
    assert_eq!(first["task"]["placement"], "remote", "{first}");
    let other = ask(&server, &tasks, "POST", "/v1/tasks", &delegation).json();
    assert_eq!(other["existing"], false, "the other's call id is another one");
    let address = json!({"address": first["task"]["address"]});
    assert_eq!(ask(&server, &both, "POST", "/v1/tasks/status", &address).status, 200);
    for bearer in [&tasks, &server.token] {
        let refused = ask(&server, bearer, "POST", "/v1/tasks/status", &address).refusal();
        assert_eq!(refused, (403, "task-owner-mismatch".into()));
    }
    assert_eq!(
        ask(&server, &tasks, "GET", "/v1/tasks", &Value::Null).json()["rows"].as_array().unwrap().len(),
        1
    );
    let call = json!({"args": {"input": "abc"}});
    assert_eq!(ask(&server, &both, "POST", "/v1/shelf/tools/hash/call", &call).status, 200);
    let outside = (403, "outside-scope".to_owned());
    assert_eq!(ask(&server, &tasks, "POST", "/v1/shelf/tools/hash/call", &call).refusal(), outside);
    assert_eq!(ask(&server, &tasks, "POST", "/v1/commands/hash", &json!({"input": "x"})).refusal(), outside);
    for (method, path) in [
        ("GET", "/v1/pairings"),
        ("POST", "/v1/pairings"),
        ("POST", "/v1/pairings/x/revoke"),
        ("GET", "/v1/environments"),
        ("POST", "/v1/environments"),
        ("GET", "/v1/extensions"),
        ("GET", "/v1/facts"),
        ("GET", "/metrics"),
    ] {
        assert_eq!(ask(&server, &both, method, path, &Value::Null).refusal(), outside, "{method} {path}");
    }
    let chained = json!({"agent": "hash", "task": "x", "callId": "c", "environment": "env_0123456789abcdef"});
    let refused = ask(&server, &both, "POST", "/v1/tasks", &chained).refusal();
    assert_eq!(refused, (403, "environment-not-paired".into()), "it is good for this machine alone");
    let never = format!("tsp_{}", "0".repeat(64));
    assert_eq!(
        ask(&server, &never, "GET", "/v1/tasks", &Value::Null).refusal(),
        (401, "bearer-refused".into())
    );
    cli(&server, &["pairings", "revoke", "both"]);
    assert_eq!(
        ask(&server, &both, "GET", "/v1/tasks", &Value::Null).refusal(),
        (403, "pairing-revoked".into())
    );
}

#[test]
fn a_token_is_another_s_on_another_machine() {
    let (one, other) = (machine(&[]), machine(&[]));
    let bearer = token(&one, &[]);
    assert_eq!(ask(&one, &bearer, "GET", "/v1/environment", &Value::Null).status, 200);
    assert_eq!(ask(&other, &bearer, "GET", "/v1/environment", &Value::Null).refusal().1, "bearer-refused");
}

#[test]
fn pages_of_other_origins_get_in_when_they_are_paired() {
    let server = machine(&[]);
    let preflight = |origin: &str, path: &str| {
        let asked = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,content-type"),
            ("access-control-request-private-network", "true"),
        ];
        server.bare("OPTIONS", path, &asked, "")
    };
    assert_eq!(preflight(PAGE, "/v1/tasks").refusal(), (403, "origin-not-allowed".into()));
    assert_eq!(preflight("null", "/v1/pair").refusal().1, "origin-not-allowed");
    let reply = preflight(PAGE, "/v1/pair");
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, Some(PAGE)));
    assert_eq!(reply.header("access-control-allow-private-network"), Some("true"));

    let paired = enter(&server, &code(&server, &[]), &[("origin", PAGE)]);
    assert_eq!(paired.header("access-control-allow-origin"), Some(PAGE));
    let bearer = format!("Bearer {}", paired.json()["bearer"].as_str().unwrap());
    let reply = preflight(PAGE, "/v1/tasks");
    assert_eq!((reply.status, reply.header("vary")), (204, Some("origin")));
    let get = |origin: &str, bearer: &str| {
        server.bare("GET", "/v1/environment", &[("origin", origin), ("authorization", bearer)], "")
    };
    let reply = get(PAGE, &bearer);
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some(PAGE)));
    assert_eq!(get("https://evil.example", &bearer).refusal().1, "origin-not-allowed");
    let own = format!("Bearer {}", server.token);
    assert_eq!(
        get(PAGE, &own).refusal().1,
        "origin-not-allowed",
        "the owner's token is not for pages of others"
    );
    let (_, pairings) = cli(&server, &["pairings", "list"]);
    assert_eq!(pairings["pairings"][0]["origin"], PAGE);
    cli(&server, &["pairings", "revoke", pairings["pairings"][0]["id"].as_str().unwrap()]);
    assert_eq!(
        get(PAGE, &bearer).refusal().1,
        "origin-not-allowed",
        "nobody of that origin is paired any more"
    );
}

#[tokio::test]
async fn frames_are_strict_and_what_is_wrong_closes_with_1008() {
    let server = machine(&[]);
    let bearer = token(&server, &[]);
    let refused = async |first: Value| {
        let mut channel = server.at("/channel").await;
        channel.say(first).await;
        let (last, code, reason) = channel.end().await;
        assert_eq!((&last.unwrap()["refused"], code), (&json!(reason), 1008));
        reason
    };
    let hello = |bearer: &str| json!({"type": "hello", "role": "environment", "bearer": bearer});
    assert_eq!(refused(hello("x")).await, "bearer-refused");
    assert_eq!(refused(hello(&server.token)).await, "bearer-refused", "the owner's token is for no machine");
    assert_eq!(
        refused(json!({"type": "hello", "role": "page", "bearer": bearer})).await,
        "executor-unauthenticated"
    );
    assert_eq!(
        refused(json!({"type": "pair", "v": 1, "code": "1", "name": "x"})).await,
        "pairing-code-refused"
    );
    let mut more = hello(&bearer);
    more["more"] = json!(1);
    assert_eq!(refused(more).await, "unknown-field");

    let mut channel = server.at("/channel").await;
    channel.say(hello(&bearer)).await;
    let ready = channel.frame().await;
    let environment = &ready["environment"];
    assert_eq!((&ready["type"], &environment["placement"]), (&json!("ready"), &json!("remote")));
    let key = environment["key"].as_str().unwrap();
    let bounds: toolshelf_core::placement::PlacementBounds =
        serde_json::from_value(environment["bounds"].clone()).unwrap();
    let call = |call_id: &str, tool: &str, args: Value| {
        json!({
            "v": 1, "callId": call_id, "tool": tool, "descriptorId": descriptor_id(key, tool, &bounds),
            "args": args, "boundsEcho": bounds,
        })
    };
    let mut bad = Vec::new();
    for (field, value, code) in [
        ("owner", json!("local"), "unknown-field"),
        ("descriptorId", json!("tool_0"), "unattributed-call"),
        (
            "boundsEcho",
            json!({"defaultDeadlineMs": 1, "maxDeadlineMs": 1, "maxOutputBytes": 1, "maxActiveTasks": 1}),
            "bounds-mismatch",
        ),
    ] {
        let mut frame = call(field, "environment", json!({}));
        frame[field] = value;
        bad.push((frame, code));
    }
    bad.push((call("a b", "delegate_task", json!({"agent": "hash", "task": "x"})), "task-call-id-required"));
    bad.push((
        call("twice", "delegate_task", json!({"agent": "hash", "task": "x", "callId": "y"})),
        "invalid-argument",
    ));
    let file = json!({"path": "x", "bytes": 1, "sha256": "0".repeat(64), "content": "eA=="});
    let sent = json!({"agent": "hash", "task": "{\"input\": {\"file\": \"x\"}}", "files": [file]});
    bad.push((call("file", "delegate_task", sent), "file-mismatch"));
    for (frame, code) in bad {
        channel.say(frame.clone()).await;
        let answer = channel.frame().await;
        assert_eq!((&answer["ok"], &answer["refused"]), (&json!(false), &json!(code)), "{answer}");
        assert_eq!(answer["callId"], frame["callId"]);
    }
    channel.say(call("d", "delegate_task", json!({"agent": "hash", "task": "abc"}))).await;
    let (mut answered, mut ended) = (false, false);
    while !answered || !ended {
        let frame = channel.frame().await;
        answered |= frame["callId"] == "d" && frame["observed"]["ok"] == true;
        ended |= frame["type"] == "task" && frame["task"]["state"] == "completed";
    }
    channel.say(json!({"nonsense": 1})).await;
    assert_eq!(channel.end().await.1, 1008);
}

#[tokio::test]
async fn a_token_whose_time_is_over_ends_its_sessions() {
    let server = machine(&[]);
    let bearer = token(&server, &["--expires", "2s"]);
    let mut live = server.live().await;
    live.say(json!({"type": "hello", "bearer": bearer})).await;
    assert_eq!(live.frame().await["state"], "ready");
    let (last, code, reason) = live.end().await;
    assert_eq!(
        (&last.unwrap()["refused"], code, &*reason),
        (&json!("pairing-expired"), 1008, "pairing-expired")
    );
    let again = ask(&server, &bearer, "GET", "/v1/tasks", &Value::Null).refusal();
    assert_eq!(again, (403, "pairing-expired".into()));
    eventually("it is logged", || server.log().contains("pairing-expired"));
}

#[tokio::test]
async fn what_one_caller_gives_to_a_tool_is_told_to_no_other_machine() {
    let server = machine(&[]);
    let bearer = token(&server, &[]);
    let mut other = server.live().await;
    other.say(json!({"type": "hello", "bearer": bearer})).await;
    assert_eq!(other.frame().await["state"], "ready");
    let (mut own, _) = server.ready().await;
    server.post("/v1/shelf/tools/hash/call", &json!({"args": {"input": "abc"}}));
    assert_eq!(own.frame().await["type"], "tool");
    other.say(json!({"type": "call", "callId": "c", "name": "hash", "args": {"input": "x"}})).await;
    assert_eq!(other.frame().await["type"], "result", "its own answer is the first that it hears");
    assert_eq!(own.frame().await["calls"][0]["name"], "hash", "who sits at the machine hears of every call");
}
