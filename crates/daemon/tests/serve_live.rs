//! Live sessions: hello, words and calls, what everybody hears, and how sessions end.

mod common;
#[path = "common/server.rs"]
mod server;

use common::{ANSWERS, one_tool_of_text};
use futures::future::join_all;
use serde_json::{Value, json};
use server::Server;
use tokio_tungstenite::tungstenite::Message;
use toolshelf_core::Digest;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn words_become_calls_that_every_session_hears_of() {
    let server = Server::start();
    let (mut live, state) = server.ready().await;
    assert_eq!(names(&state["tools"]), ["hash", "diff", "diff-loose"]);
    assert_eq!(state["tools"][0]["parameters"]["required"], json!(["input"]));
    let (mut other, _) = server.ready().await;

    live.say(json!({"type": "text", "text": "hash abc"})).await;
    for session in [&mut live, &mut other] {
        let frame = session.frame().await;
        let call = &frame["calls"][0];
        assert_eq!(
            (&frame["type"], &call["name"], &call["ok"]),
            (&json!("tool"), &json!("hash"), &json!(true))
        );
        assert_eq!((&call["output"], &call["from"]), (&json!(ABC), &json!("live")));
        assert!(call["durationMs"].as_f64() >= Some(0.0));
    }
    let told = live.frame().await;
    assert!(told["type"] == "text" && told["text"].as_str().unwrap().contains(ABC), "{told}");

    live.say(json!({"type": "text", "text": "diff these two: \"a\\nb\\n\" and \"a\\nc\\n\""})).await;
    let call = live.frame_of("tool").await["calls"][0].clone();
    assert_eq!(call["output"], "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    live.frame_of("text").await;
    live.say(json!({"type": "text", "text": "jump over the moon"})).await;
    assert!(live.frame().await["text"].as_str().unwrap().contains("did not understand"));
    live.say(json!({"type": "text", "text": "list"})).await;
    assert!(live.frame().await["text"].as_str().unwrap().starts_with("hash: "));
}

#[tokio::test]
async fn commands_are_answered_by_their_names_and_calls_over_http_are_heard_of() {
    let server = Server::start();
    let (mut live, _) = server.ready().await;
    live.say(json!({"type": "call", "callId": "a", "name": "hash", "args": {"input": "abc"}})).await;
    assert_eq!(live.frame().await["calls"][0]["name"], "hash");
    let result = live.frame().await;
    assert_eq!((&result["callId"], &result["result"]["output"]), (&json!("a"), &json!(ABC)));
    live.say(json!({"type": "call", "callId": "b", "name": "list_extensions"})).await;
    assert_eq!(live.frame().await["result"]["extensions"][0]["tools"], json!(["hash"]));
    live.say(json!({"type": "call", "callId": "c", "name": "no_tool"})).await;
    let result = live.frame_of("result").await;
    assert_eq!((&result["callId"], &result["result"]["refused"]), (&json!("c"), &json!("unknown-tool")));

    server.post("/v1/shelf/tools/hash/call", &json!({"args": {"input": "abc"}}));
    let call = live.frame().await["calls"][0].clone();
    assert_eq!((&call["from"], &call["output"]), (&json!("http"), &json!(ABC)));

    // The command line finds the companion in the data folder of the settings.
    let printed = server::toolshelf(None)
        .env("TOOLSHELF_DATA_DIR", server.data.path())
        .args(["call", "hash", "--input", "abc"])
        .output()
        .unwrap();
    assert!(printed.status.success());
    let call = live.frame().await["calls"][0].clone();
    assert_eq!((&call["from"], &call["output"]), (&json!("cli"), &json!(ABC)));

    let refused = server.post("/v1/shelf/tools/hash/call", &json!({"args": {"input": "x".repeat(9_000)}}));
    assert_eq!(refused.status, 429);
    let call = live.frame().await["calls"][0].clone();
    assert_eq!(
        (&call["ok"], &call["refused"], &call["output"]),
        (&json!(false), &json!("over-budget"), &json!(""))
    );
}

#[tokio::test]
async fn tasks_are_delegated_and_told_of() {
    let server = Server::start();
    let (mut live, _) = server.ready().await;
    let args = json!({"agent": "hash", "task": "abc", "callId": "one"});
    live.say(json!({"type": "call", "callId": "d", "name": "delegate_task", "args": args})).await;
    let (mut ended, mut delegated, mut called) = (None, None, None);
    while ended.is_none() || delegated.is_none() || called.is_none() {
        let frame = live.frame().await;
        match frame["type"].as_str().unwrap() {
            "task" if frame["task"]["state"] == "completed" => ended = Some(frame["task"].clone()),
            "result" => delegated = Some(frame["result"].clone()),
            "tool" => called = Some(frame["calls"][0].clone()),
            _ => {}
        }
    }
    let (ended, delegated, called) = (ended.unwrap(), delegated.unwrap(), called.unwrap());
    assert_eq!((&delegated["ok"], &delegated["existing"]), (&json!(true), &json!(false)));
    assert_eq!((&ended["answer"], &ended["address"]), (&json!(ABC), &delegated["task"]["address"]));
    assert_eq!((&called["name"], &called["from"]), (&json!("hash"), &json!("task")));
    // The same call once more, by another way, is the same task.
    let again = server.post("/v1/tasks", &args).json();
    assert_eq!((&again["existing"], &again["task"]["address"]), (&json!(true), &ended["address"]));
}

#[tokio::test]
async fn who_does_not_show_the_token_is_refused() {
    let server = Server::start();
    for (first, code) in [
        (json!({"type": "hello", "bearer": "0123456789abcdef"}), "bearer-refused"),
        (json!({"type": "hello", "bearer": ""}), "bearer-refused"),
        (json!({"type": "hello"}), "executor-unauthenticated"),
        (json!({"type": "text", "text": "hash abc"}), "executor-unauthenticated"),
        (json!(7), "executor-unauthenticated"),
    ] {
        let mut live = server.live().await;
        live.say(first.clone()).await;
        let (last, close, reason) = live.end().await;
        let last = last.unwrap();
        assert_eq!((&last["type"], &last["refused"]), (&json!("refused"), &json!(code)), "{first}");
        assert_eq!((close, &*reason), (1008, code), "{first}");
    }
    // And who says nothing.
    let (last, close, reason) = server.live().await.end().await;
    assert_eq!(last.unwrap()["refused"], "executor-unauthenticated");
    assert_eq!((close, &*reason), (1008, "executor-unauthenticated"));
}

#[tokio::test]
async fn frames_that_are_not_understood_are_answered_and_the_session_goes_on() {
    let server = Server::start();
    let (mut live, _) = server.ready().await;
    for text in ["", "{", "[]", "null", "{}", "{\"type\": \"jump\"}", "{\"type\": \"text\"}"] {
        live.send(Message::text(text)).await;
        let frame = live.frame().await;
        assert_eq!(
            (&frame["type"], &frame["refused"]),
            (&json!("refused"), &json!("invalid-frame")),
            "{text}"
        );
    }
    live.say(json!({"type": "hello", "bearer": server.token})).await;
    assert_eq!(live.frame().await["refused"], "invalid-frame");
    live.say(json!({"type": "call", "callId": "x", "name": "hash", "args": []})).await;
    let frame = live.frame().await;
    assert_eq!((&frame["callId"], &frame["result"]["refused"]), (&json!("x"), &json!("invalid-frame")));
    live.say(json!({"type": "text", "text": "hash abc"})).await;
    assert_eq!(live.frame().await["calls"][0]["output"], ABC);
}

#[tokio::test]
async fn messages_that_no_session_takes_close_it() {
    let server = Server::start();
    let long = || Message::text("x".repeat(1024 * 1024 + 1));
    for (message, code) in [
        (Message::binary(vec![0; 16]), 1003),
        (long(), 1009),
        (Message::text("x".repeat(8 * 1024 * 1024)), 1009),
    ] {
        let (mut live, _) = server.ready().await;
        let length = message.len();
        live.send(message).await;
        let (_, close, _) = live.end().await;
        // A connection that is cut in the middle of a very long frame may lose its last words.
        assert!(close == code || (close == 0 && length > 2 * 1024 * 1024), "{close} for {length} bytes");
    }
    // Before hello as well.
    let mut live = server.live().await;
    live.send(long()).await;
    assert_eq!(live.end().await.1, 1009);
    server.ready().await;
}

#[tokio::test]
async fn of_a_hundred_sessions_sixty_four_are_served() {
    let server = Server::start();
    let sessions = (0..100).map(|_| async {
        let mut live = server.live().await;
        live.say(json!({"type": "hello", "bearer": server.token})).await;
        let first = live.frame().await;
        (live, first)
    });
    let sessions = join_all(sessions).await;
    let (mut served, mut refused) = (Vec::new(), 0);
    for (mut live, first) in sessions {
        if first["type"] == "state" {
            served.push(live);
        } else {
            assert_eq!(first["refused"], "over-budget");
            let (_, close, reason) = live.end().await;
            assert_eq!((close, &*reason), (1008, "over-budget"));
            refused += 1;
        }
    }
    assert_eq!((served.len(), refused), (64, 36));
    assert_eq!(server.get("/v1/events").refusal(), (429, "over-budget".to_owned()));
    // Each of them hears of each call.
    served[0].say(json!({"type": "text", "text": "hash abc"})).await;
    for live in &mut served {
        assert_eq!(live.frame().await["calls"][0]["output"], ABC);
    }
    // A place that is given up can be had.
    served.truncate(10);
    common::eventually("places are free", || server.metric("toolshelf_live_sessions") == Some(10.0));
    server.ready().await;
}

#[tokio::test]
async fn a_shelf_that_changes_on_disk_is_told_to_open_sessions() {
    let folder = one_tool_of_text(ANSWERS);
    let server = Server::over(Some(folder.path()));
    let (mut live, state) = server.ready().await;
    assert_eq!(names(&state["tools"]), ["case", "hash", "diff", "diff-loose"]);

    let module = std::fs::read(folder.path().join("case.wasm")).unwrap();
    let entry = |id: &str, digest: &str| json!({"id": id, "wasm": "case.wasm", "digest": digest, "abi": "buffer-abi/1"});
    let digest = Digest::of(&module).to_string();
    let manifest = json!({"tools": [entry("renamed", &digest)]});
    std::fs::write(folder.path().join("manifest.json"), manifest.to_string()).unwrap();
    let frame = live.frame_of("shelf").await;
    assert_eq!(names(&frame["tools"]), ["renamed", "hash", "diff", "diff-loose"]);
    live.say(json!({"type": "text", "text": "renamed x"})).await;
    assert_eq!(live.frame_of("tool").await["calls"][0]["ok"], true);

    // A module that is not the pinned one any more is no tool any more.
    std::fs::write(folder.path().join("case.wasm"), [module, vec![0, 2, 1, 0]].concat()).unwrap();
    assert_eq!(names(&live.frame_of("shelf").await["tools"]), ["hash", "diff", "diff-loose"]);
    assert_eq!(names(&server.ready().await.1["tools"]), ["hash", "diff", "diff-loose"]);
    // Without a manifest nobody knows which built-in tools the shelf would have replaced: nothing is offered.
    std::fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(live.frame_of("shelf").await["tools"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_is_let_go() {
    let server = Server::start();
    // A window so small that what is not read is soon not sent any more.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let stream = socket.connect(([127, 0, 0, 1], server.port).into()).await.unwrap();
    let mut slow = server.live_on(stream).await;
    slow.say(json!({"type": "hello", "bearer": server.token})).await;
    assert_eq!(slow.frame().await["type"], "state");

    // Each call is told of with 4 KiB of its output.
    let lines = |word: &str| format!("{word}\n").repeat(1_000);
    let body = json!({"args": {"a": lines("old"), "b": lines("new")}});
    let (mut calls, before) = (0, server.metric("process_resident_memory_bytes").unwrap());
    while server.metric("toolshelf_live_sessions") == Some(1.0) && calls < 5_000 {
        for _ in 0..100 {
            assert_eq!(server.post("/v1/shelf/tools/diff/call", &body).status, 200);
            calls += 1;
        }
        if calls >= 1_000 {
            break;
        }
    }
    let after = server.metric("process_resident_memory_bytes").unwrap();
    assert!(after - before < 64e6, "{before} {after}");
    let (last, close, _) = slow.end().await;
    assert!(close == 0 || (close == 1008 && last.unwrap()["refused"] == "over-budget"), "{close}");
    common::eventually("the session is over", || server.metric("toolshelf_live_sessions") == Some(0.0));
    server.ready().await;
}

#[tokio::test]
async fn sessions_are_closed_when_the_companion_ends() {
    let server = Server::start();
    let (mut live, _) = server.ready().await;
    let mut silent = server.live().await;
    server.terminate();
    assert_eq!(live.end().await.1, 1001);
    assert_eq!(silent.end().await.1, 1001);
    let (status, log) = server.stop();
    assert!(status.success() && log.contains("\"stopping\""), "{log}");
}
