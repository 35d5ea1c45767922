//! Two companions that are paired, each the real program, over real TLS.

mod common;
#[path = "common/pair.rs"]
mod pair;
#[path = "common/server.rs"]
mod server;

use std::fs;

use common::eventually;
use pair::{Wire, cli, delegate, journal, journal_in, link, machine, standing, status};
use serde_json::{Value, json};

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[tokio::test]
async fn a_task_runs_on_the_other_machine_and_is_told_of_here() {
    let (local, remote) = (machine(&[]), machine(&["--tls"]));
    let link = link(&remote, &["--name", "ann's laptop"]);
    assert!(link.starts_with("https://127.0.0.1:") && link.contains("&fp="), "{link}");
    let (added, answer) = cli(&local, &["environments", "add", &link]);
    assert!(added, "{answer}");
    let key = answer["environment"]["key"].as_str().unwrap();
    eventually("it is connected", || standing(&local, key)["state"] == "connected");

    let (mut live, _) = local.ready().await;
    let first = delegate(&local, key, "hash", "abc", "one");
    assert_eq!((&first["ok"], &first["existing"]), (&json!(true), &json!(false)), "{first}");
    let task = &first["task"];
    assert_eq!((&task["placement"], &task["environment"]), (&json!("remote"), &json!(key)));
    let ended = loop {
        let told = live.frame_of("task").await["task"].clone();
        assert_eq!(told["address"], task["address"]);
        if told["state"] == "completed" {
            break told;
        }
    };
    assert_eq!(ended["answer"], ABC);
    assert_eq!(status(&local, &task["address"])["task"]["answer"], ABC);
    let again = delegate(&local, key, "hash", "abc", "one");
    assert_eq!((&again["existing"], &again["task"]["address"]), (&json!(true), &task["address"]));
    assert_eq!(delegate(&local, key, "hash", "abd", "one")["refused"], "task-call-id-conflict");
    let late =
        json!({ "environment": key, "agent": "hash", "task": "x", "callId": "l", "deadlineMs": 3_600_001 });
    assert_eq!(local.post("/v1/tasks", &late).refusal().1, "unbounded-executor");
    let rows = local.get(&format!("/v1/tasks?environment={key}")).json()["rows"].clone();
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["view"]["address"]), (1, &task["address"]));
    let position = &rows[0]["position"];
    let detail = local.get(&format!("/v1/tasks/{position}?environment={key}")).json();
    assert_eq!(detail["detail"]["task"], "abc", "{detail}");

    // It is in the other machine's journal, as another's than its owner's, and in none of this one's.
    let kept = journal(&remote, "remote-");
    assert!(kept.contains("\"owner\":\"paired:") && journal(&local, "").is_empty(), "{kept}");
    let (_, own) = cli(&remote, &["task", "list"]);
    assert_eq!(own["rows"], json!([]));
    let (_, pairings) = cli(&remote, &["pairings", "list"]);
    assert_eq!(
        (&pairings["pairings"][0]["name"], &pairings["pairings"][0]["state"]),
        (&json!("ann's laptop"), &json!("active"))
    );
    for text in
        [fs::read_to_string(local.data.path().join("environments.json")).unwrap(), local.log(), remote.log()]
    {
        let token = serde_json::from_str::<Value>(&text)
            .ok()
            .and_then(|kept| kept["entries"][0]["bearer"].as_str().map(str::to_owned));
        let shown = token.unwrap_or_else(|| "tsp_".to_owned());
        assert!(!remote.log().contains(&shown) && !local.log().contains(&shown), "a token was logged");
    }
}

#[test]
fn files_are_sent_along_and_the_command_line_waits_for_the_answer() {
    let (local, remote) = (machine(&[]), machine(&["--tls"]));
    let key = pair::pair(&local, &remote, &[]);
    let root = local.data.path().join("root");
    fs::write(root.join("old.txt"), "a\nb\n").unwrap();
    fs::write(root.join("new.txt"), "a\nc\n").unwrap();
    let diff = [
        "task",
        "delegate",
        "--environment",
        &key,
        "--call-id",
        "d",
        "diff",
        "--file",
        "a=old.txt",
        "--file",
        "b=new.txt",
        "--out",
        "c.patch",
    ];
    let (done, ended) = cli(&local, &diff);
    assert!(done, "{ended}");
    let patch = "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
    let there = remote.data.path().join("root");
    assert_eq!(fs::read_to_string(there.join("c.patch")).unwrap(), patch);
    let sent: Vec<_> = fs::read_dir(there.join("sent")).unwrap().flatten().collect();
    assert_eq!(fs::read_to_string(sent[0].path().join("old.txt")).unwrap(), "a\nb\n");
    // The same call with other files is another call.
    fs::write(root.join("new.txt"), "a\nd\n").unwrap();
    assert_eq!(cli(&local, &diff).1["refused"], "task-call-id-conflict");
    fs::remove_file(root.join("old.txt")).unwrap();
    assert_eq!(cli(&local, &diff).1["refused"], "file-unavailable");
    let outside = r#"{"a": {"file": "../toolshelf.toml"}, "b": "x"}"#;
    assert_eq!(delegate(&local, &key, "diff", outside, "o")["refused"], "outside-root");
    let (done, ended) = cli(&local, &["task", "delegate", "--environment", &key, "brief", "that"]);
    assert!(
        done && ended["task"]["answer"] == "did that\n" || ended["task"]["answer"] == "did that",
        "{ended}"
    );
    assert_eq!(delegate(&local, "env_0123456789abcdef", "hash", "x", "u")["refused"], "unknown-environment");
}

#[test]
fn a_certificate_that_was_not_pinned_is_refused_before_the_code_is_shown() {
    let (local, remote) = (machine(&[]), machine(&["--tls"]));
    let link = link(&remote, &[]);
    let (base, fingerprint) = link.split_once("&fp=").unwrap();
    let other: String = fingerprint.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    let add = |link: &str| local.post("/v1/environments", &json!({ "link": link }));
    assert_eq!(add(&format!("{base}&fp={other}")).refusal(), (502, "machine-untrusted".into()));
    assert_eq!(add(base).refusal().1, "machine-untrusted", "no authority vouches for it");
    assert_eq!(add(&link.replace("https", "http")).json()["ok"], false, "not over plain HTTP");
    assert_eq!(
        add(&link.replace("env_", "env_0").replacen("&fp", "x&fp", 1)).refusal().1,
        "invalid-argument"
    );
    let mut wrong = link.clone();
    let at = wrong.find("env_").unwrap() + 4;
    wrong.replace_range(at..at + 16, "0123456789abcdef");
    assert_eq!(add(&link).json()["ok"], true, "the code was not used up");
    assert_eq!(add(&wrong).refusal(), (403, "pairing-code-refused".into()));
    assert!(remote.log().contains("a wrong pairing code") || remote.log().contains("pairing-code-refused"));
}

#[test]
fn a_machine_that_is_killed_keeps_its_tasks_and_says_what_became_of_them() {
    let (local, remote) = (machine(&[]), machine(&["--tls"]));
    let key = pair::pair(&local, &remote, &[]);
    let slow = delegate(&local, &key, "slow", "x", "slow");
    let done = delegate(&local, &key, "hash", "abc", "done");
    let (slow, done) = (&slow["task"]["address"], &done["task"]["address"]);
    eventually("one ends and one runs", || {
        let state = |address| status(&local, address)["task"]["state"].clone();
        (state(slow), state(done)) == (json!("running"), json!("completed"))
    });
    let port = remote.port.to_string();
    let data = remote.kill();
    eventually("it is missed", || standing(&local, &key)["state"] == "unreachable");
    for (path, address) in
        [("/v1/tasks/status", slow), ("/v1/tasks/cancel", slow), ("/v1/tasks/status", done)]
    {
        let refusal = local.post(path, &json!({ "address": address })).refusal();
        assert_eq!(refusal, (503, "machine-unreachable".into()), "{path}");
    }
    assert_eq!(delegate(&local, &key, "hash", "x", "new")["refused"], "machine-unreachable");
    let remote = server::Server::begin(data, None, &["--tls", "--listen", &format!("127.0.0.1:{port}")]);
    eventually("it is back", || standing(&local, &key)["state"] == "connected");
    let interrupted = status(&local, slow)["task"].clone();
    assert_eq!(
        (&interrupted["state"], &interrupted["reason"]),
        (&json!("interrupted"), &json!("environment-ended-outcome-unknown"))
    );
    assert_eq!(status(&local, done)["task"]["answer"], ABC);
    // The same call finds what became of it, and runs nothing.
    let again = delegate(&local, &key, "slow", "x", "slow");
    assert_eq!((&again["existing"], &again["task"]["state"]), (&json!(true), &json!("interrupted")));
    let kept = journal(&remote, "remote-");
    assert_eq!(kept.lines().filter(|line| line.contains("\"created\"")).count(), 2, "{kept}");
}

#[test]
fn a_lost_connection_neither_loses_nor_repeats_a_task() {
    let (local, remote) = (machine(&[]), machine(&["--tls", "--host", pair::WIRE]));
    let wire = Wire::to(remote.port);
    let key = pair::pair(&local, &remote, &[]);
    eventually("it is connected", || standing(&local, &key)["state"] == "connected");

    // The delegation arrives, and its answer does not.
    wire.lose_answers();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| delegate(&local, &key, "brief", "once", "once"));
        eventually("it is written down there", || journal(&remote, "remote-").contains("\"once\""));
        wire.cut();
        wire.pass();
        let answer = asked.join().unwrap();
        assert_eq!((&answer["ok"], &answer["existing"]), (&json!(true), &json!(true)), "{answer}");
        let address = &answer["task"]["address"];
        eventually("it ends", || status(&local, address)["task"]["state"] == "completed");
    });
    let ran = fs::read_to_string(remote.data.path().join("root/ran.log")).unwrap();
    assert_eq!(ran, "once\n", "it ran once");

    // A cancellation arrives, and nobody hears of it any more.
    let slow = delegate(&local, &key, "slow", "x", "slow")["task"]["address"].clone();
    eventually("it runs", || status(&local, &slow)["task"]["state"] == "running");
    wire.lose_answers();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| local.post("/v1/tasks/cancel", &json!({ "address": slow })).json());
        eventually("it is obeyed there", || journal(&remote, "remote-").contains("\"cancelled\""));
        wire.cut();
        let answer = asked.join().unwrap();
        assert_eq!(
            (&answer["state"], &answer["observed"]),
            (&json!("cancel_unconfirmed"), &json!(false)),
            "{answer}"
        );
    });
    assert_eq!(
        local.post("/v1/tasks/status", &json!({ "address": slow })).refusal().1,
        "machine-unreachable"
    );
    wire.pass();
    eventually("what became of it is known again", || status(&local, &slow)["task"]["state"] == "cancelled");
}

#[test]
fn a_task_s_end_that_nobody_was_connected_for_is_told_afterwards() {
    let (local, remote) = (machine(&[]), machine(&["--tls", "--host", pair::WIRE]));
    let wire = Wire::to(remote.port);
    let key = pair::pair(&local, &remote, &[]);
    let delegate =
        || cli(&local, &["task", "delegate", "--environment", &key, "--call-id", "w", "brief", "far"]);
    let (_, mut watched) = std::thread::scope(|scope| {
        // The command line waits for the end by watching.
        let watching = scope.spawn(delegate);
        eventually("it is written down there", || journal(&remote, "remote-").contains("\"running\""));
        wire.cut();
        eventually("it ends there", || journal(&remote, "remote-").contains("\"completed\""));
        wire.pass();
        watching.join().unwrap()
    });
    if watched["refused"] == "machine-unreachable" {
        // The connection was gone before the delegation was answered. The same call finds the task again.
        (_, watched) = delegate();
    }
    assert_eq!(watched["task"]["state"], "completed", "{watched}");
}

#[test]
fn a_revoked_token_ends_its_connections_and_is_refused_by_name_on_both_sides() {
    let (local, remote) = (machine(&[]), machine(&["--tls"]));
    let key = pair::pair(&local, &remote, &["--name", "one"]);
    let slow = delegate(&local, &key, "slow", "x", "slow");
    assert_eq!(slow["ok"], true, "{slow}");
    let (revoked, answer) = cli(&remote, &["pairings", "revoke", "one"]);
    assert!(revoked, "{answer}");
    eventually("it is let go", || standing(&local, &key)["state"] == "revoked");
    assert_eq!(standing(&local, &key)["refused"], "pairing-revoked");
    assert_eq!(delegate(&local, &key, "hash", "x", "y")["refused"], "pairing-revoked");
    assert!(remote.log().contains("pairing-revoked"), "{}", remote.log());
    // Pairing again gives a new token to the same environment; its tasks are another's.
    assert_eq!(pair::pair(&local, &remote, &["--name", "two"]), key);
    assert_eq!(status(&local, &slow["task"]["address"])["refused"], "task-owner-mismatch");
    let (removed, answer) = cli(&local, &["environments", "revoke", &key]);
    assert!(removed, "{answer}");
    let (_, pairings) = cli(&remote, &["pairings", "list"]);
    let states: Vec<_> =
        pairings["pairings"].as_array().unwrap().iter().map(|known| &known["state"]).collect();
    assert_eq!(states, ["revoked", "revoked"]);
    assert_eq!(delegate(&local, &key, "hash", "x", "z")["refused"], "environment-not-paired");
    assert_eq!(local.get("/v1/environments").json()["environments"], json!([]));
    assert!(journal_in(local.data.path(), "").is_empty());
}
