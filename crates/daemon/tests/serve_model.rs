//! Live sessions that a model answers: the real program against servers that speak the providers' protocols.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;
#[path = "common/provider.rs"]
mod provider;
#[path = "common/server.rs"]
mod server;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt as _, StreamExt as _};
use provider::Provider;
use serde_json::{Value, json};
use server::{Live, Server};
use tempfile::NamedTempFile;
use tokio_tungstenite::tungstenite::Message;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const KEY: &str = "sk-test-key-0123456789";

/// A companion with that table in its settings.
fn companion(table: &str) -> (Server, NamedTempFile) {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), table).unwrap();
    let server = Server::set_up(None, |command| {
        command.env("TOOLSHELF_CONFIG", file.path());
        command.env("OPENAI_API_KEY", KEY).env("GEMINI_API_KEY", KEY);
    });
    (server, file)
}

async fn openai(more: &str) -> (Provider, Server, NamedTempFile) {
    let provider = Provider::listen().await;
    let (server, file) = companion(&provider.table("openai-realtime", more));
    (provider, server, file)
}

async fn gemini(more: &str) -> (Provider, Server, NamedTempFile) {
    let provider = Provider::listen().await;
    let (server, file) = companion(&provider.table("gemini-live", more));
    (provider, server, file)
}

async fn say(live: &mut Live, text: &str) {
    live.say(json!({"type": "text", "text": text})).await;
}

/// The frames up to the end of a turn, without those of the link.
async fn turn(live: &mut Live) -> Vec<Value> {
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

fn kinds(frames: &[Value]) -> Vec<String> {
    let name = |frame: &Value| match frame["state"].as_str() {
        Some(state) => format!("{} {state}", frame["type"].as_str().unwrap()),
        None => frame["type"].as_str().unwrap().to_owned(),
    };
    frames.iter().map(name).collect()
}

/// The code and the state of a turn that failed.
fn failure(frames: &[Value]) -> (String, String) {
    let fault = frames.iter().find(|frame| frame["type"] == "fault").unwrap_or_else(|| panic!("{frames:?}"));
    let (code, why) = (fault["refused"].as_str().unwrap(), fault["why"].as_str().unwrap());
    assert!(!why.contains("sk-test"), "{why}");
    assert_eq!(frames.last().unwrap(), &json!({"type": "turn", "state": "failed"}));
    (code.to_owned(), why.to_owned())
}

fn call_item(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments, "status": "completed"})
}

#[tokio::test]
async fn a_model_of_openai_calls_tools_and_answers() {
    let (provider, server, _file) = openai("model = \"gpt-test\"").await;
    let (mut live, state) = server.ready().await;
    assert_eq!(state["provider"], json!({"name": "openai-realtime", "model": "gpt-test"}));
    assert!(provider.is_left_alone().await, "nothing is opened before something is said");
    let (mut other, _) = server.ready().await;

    say(&mut live, "What is the digest of abc?").await;
    let (mut peer, session) = provider.openai().await;
    assert_eq!(peer.authorization, format!("Bearer {KEY}"));
    assert_eq!(peer.target, "/live-api?model=gpt-test");
    assert_eq!((&session["type"], &session["output_modalities"]), (&json!("realtime"), &json!(["text"])));
    let names: Vec<_> =
        session["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let declared =
        ["list_extensions", "delegate_task", "task_status", "cancel_task", "hash", "diff", "diff-loose"];
    assert_eq!(names, declared);
    assert_eq!(session["tools"][4]["parameters"]["required"], json!(["input"]));
    assert_eq!(peer.openai_text().await, "What is the digest of abc?");

    // What is malformed, unknown, or of another response is passed over.
    peer.send(Message::text("{")).await;
    peer.send(Message::text("[]")).await;
    peer.say(json!({"type": "rate_limits.updated", "rate_limits": []})).await;
    peer.say(json!({"type": "response.created", "response": {"id": "r1"}})).await;
    peer.say(json!({"type": "response.output_text.delta", "response_id": "r0", "delta": "of long ago"}))
        .await;
    // The call is named three times and made once.
    let item = call_item("c1", "hash", "{\"input\":\"abc\"}");
    for _ in 0..2 {
        peer.say(json!({"type": "response.output_item.done", "response_id": "r1", "item": item})).await;
    }
    peer.openai_done("r1", "completed", json!([item])).await;
    let output = peer.heard().await["item"].clone();
    assert_eq!((&output["type"], &output["call_id"]), (&json!("function_call_output"), &json!("c1")));
    let result: Value = serde_json::from_str(output["output"].as_str().unwrap()).unwrap();
    assert_eq!((&result["ok"], &result["output"]), (&json!(true), &json!(ABC)));
    assert_eq!(peer.heard().await, json!({"type": "response.create"}));
    peer.openai_words("r2", &["It is ", ABC]).await;

    let frames = turn(&mut live).await;
    assert_eq!(kinds(&frames), ["turn started", "tool", "partial", "partial", "text", "turn ended"]);
    let call = &frames[1]["calls"][0];
    assert_eq!(
        (&call["name"], &call["output"], &call["from"]),
        (&json!("hash"), &json!(ABC), &json!("live"))
    );
    assert!(call["durationMs"].as_f64() > Some(0.0));
    assert_eq!(call["session"], state["session"]);
    assert_eq!(frames[4]["text"], format!("It is {ABC}"));
    // The other session hears of the call and of nothing else.
    let heard = other.frame().await;
    assert_eq!((&heard["type"], &heard["calls"][0]["session"]), (&json!("tool"), &state["session"]));
    say(&mut other, "hello").await;
    let (mut second, _) = provider.openai().await;
    second.openai_text().await;
    second.openai_words("r1", &["hi"]).await;
    assert_eq!(kinds(&turn(&mut other).await), ["turn started", "partial", "text", "turn ended"]);

    // Who leaves takes the connection along.
    drop(live);
    assert_eq!(peer.heard_or_end().await, None);
    drop(other);
    let (_, log) = server.stop();
    assert!(!log.contains("sk-test") && !log.contains("digest of abc"), "{log}");
}

#[tokio::test]
async fn calls_that_cannot_be_made_are_told_to_the_model_and_to_the_person() {
    let (provider, server, _file) = openai("").await;
    let (mut live, _) = server.ready().await;
    say(&mut live, "try").await;
    let (mut peer, _) = provider.openai().await;
    peer.openai_text().await;
    peer.say(json!({"type": "response.created", "response": {"id": "r1"}})).await;
    let task = r#"{"agent":"hash","task":"abc"}"#;
    let calls = [
        call_item("c1", "no_tool", "{}"),
        call_item("c2", "hash", "{\"input\":"),
        call_item("c3", "hash", "[1]"),
        call_item("c4", "hash", "{\"input\":7}"),
        call_item("c5", "list_extensions", ""),
        call_item("c6", "delegate_task", task),
        json!({"type": "function_call", "call_id": "", "name": "hash", "arguments": "{}"}),
    ];
    for item in &calls {
        peer.say(json!({"type": "response.output_item.done", "response_id": "r1", "item": item})).await;
    }
    peer.openai_done("r1", "completed", json!([])).await;
    let mut results = std::collections::BTreeMap::new();
    for _ in 0..6 {
        let item = peer.heard().await["item"].clone();
        let result: Value = serde_json::from_str(item["output"].as_str().unwrap()).unwrap();
        results.insert(item["call_id"].as_str().unwrap().to_owned(), result);
    }
    assert_eq!(peer.heard().await, json!({"type": "response.create"}));
    let code = |id: &str| results[id]["refused"].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        [code("c1"), code("c2"), code("c3"), code("c4")],
        ["unknown-tool", "invalid-argument", "invalid-argument", "invalid-argument"]
    );
    assert_eq!(results["c5"]["extensions"][0]["tools"], json!(["hash"]));
    assert_eq!((&results["c6"]["ok"], &results["c6"]["existing"]), (&json!(true), &json!(false)));
    peer.openai_words("r2", &["done"]).await;
    let frames = turn(&mut live).await;
    let told = frames.iter().filter(|frame| frame["type"] == "tool").map(|frame| &frame["calls"][0]);
    // The task's own call may be told of as well.
    let told: Vec<_> = told.filter(|call| call["from"] == "live").collect();
    assert_eq!(told.len(), 6, "{told:?}");
    assert!(told.iter().all(|call| call["durationMs"].as_f64() >= Some(0.0)));
    // A model that calls without an end is told that it is enough.
    say(&mut live, "more").await;
    peer.openai_text().await;
    let mut refused = 0;
    for n in 0..9 {
        peer.say(json!({"type": "response.created", "response": {"id": format!("m{n}")}})).await;
        for k in 0..8 {
            let item = call_item(&format!("m{n}-{k}"), "hash", "{\"input\":\"x\"}");
            peer.say(
                json!({"type": "response.output_item.done", "response_id": format!("m{n}"), "item": item}),
            )
            .await;
        }
        peer.openai_done(&format!("m{n}"), "completed", json!([])).await;
        for _ in 0..8 {
            let output = peer.heard().await["item"]["output"].as_str().unwrap().to_owned();
            refused += usize::from(output.contains("over-budget"));
        }
        assert_eq!(peer.heard().await["type"], "response.create");
    }
    assert_eq!(refused, 8);
}

#[tokio::test]
async fn whoever_speaks_or_cancels_interrupts_the_model() {
    let (provider, server, _file) = openai("").await;
    let (mut live, _) = server.ready().await;
    say(&mut live, "first").await;
    let (mut peer, _) = provider.openai().await;
    peer.openai_text().await;
    let delta = |id: &str, text: &str| json!({"type": "response.output_text.delta", "response_id": id, "delta": text});
    peer.say(json!({"type": "response.created", "response": {"id": "r1"}})).await;
    peer.say(delta("r1", "A long ")).await;
    live.frame_of("partial").await;

    say(&mut live, "second").await;
    assert_eq!(peer.heard().await, json!({"type": "response.cancel"}));
    assert_eq!(peer.heard().await["item"]["content"][0]["text"], "second");
    // What the first one still says is late, and the second one waits for its end.
    peer.say(delta("r1", "story")).await;
    peer.say(json!({"type": "error", "error": {"type": "invalid_request_error", "code": "response_cancel_not_active", "message": "x"}})).await;
    peer.openai_done("r1", "cancelled", json!([])).await;
    assert_eq!(peer.heard().await, json!({"type": "response.create"}));
    peer.say(delta("r1", "!")).await;
    peer.openai_words("r2", &["Short."]).await;
    assert_eq!(kinds(&turn(&mut live).await), ["turn interrupted"]);
    let frames = turn(&mut live).await;
    assert_eq!(kinds(&frames), ["turn started", "partial", "text", "turn ended"]);
    assert_eq!(frames[2]["text"], "Short.");

    say(&mut live, "third").await;
    peer.openai_text().await;
    live.say(json!({"type": "cancel"})).await;
    assert_eq!(kinds(&turn(&mut live).await), ["turn interrupted"]);
    peer.say(json!({"type": "response.created", "response": {"id": "r3"}})).await;
    assert_eq!(peer.heard().await, json!({"type": "response.cancel"}));
    peer.openai_done("r3", "cancelled", json!([])).await;
    say(&mut live, "fourth").await;
    assert_eq!(peer.openai_text().await, "fourth");
    peer.openai_words("r4", &["Here."]).await;
    assert_eq!(turn(&mut live).await[2]["text"], "Here.");
}

#[tokio::test]
async fn a_lost_connection_is_opened_again_and_given_up_after_some_tries() {
    let (provider, server, _file) = openai("").await;
    let (mut live, _) = server.ready().await;
    say(&mut live, "one").await;
    let (mut peer, _) = provider.openai().await;
    peer.openai_text().await;
    peer.say(json!({"type": "response.created", "response": {"id": "r1"}})).await;
    peer.say(json!({"type": "response.output_text.delta", "response_id": "r1", "delta": "I th"})).await;
    drop(peer);
    assert_eq!(failure(&turn(&mut live).await).0, "upstream-failed");
    let (mut peer, _) = provider.openai().await;
    say(&mut live, "two").await;
    assert_eq!(peer.openai_text().await, "two");
    peer.openai_words("r1", &["Yes."]).await;
    assert_eq!(turn(&mut live).await[2]["text"], "Yes.");
    // What is said while there is no connection waits for one.
    drop(peer);
    live.frame_of("link").await;
    say(&mut live, "three").await;
    drop(provider.tcp().await);
    drop(provider.accept().await);
    let (mut peer, _) = provider.openai().await;
    assert_eq!(peer.openai_text().await, "three");
    peer.openai_words("r1", &["Three."]).await;
    assert_eq!(turn(&mut live).await[2]["text"], "Three.");
    // Nobody listens any more.
    drop((peer, provider));
    say(&mut live, "four").await;
    assert_eq!(failure(&turn(&mut live).await).0, "upstream-failed");
    live.say(json!({"type": "call", "callId": "a", "name": "hash", "args": {"input": "abc"}})).await;
    assert_eq!(live.frame_of("result").await["result"]["output"], ABC);
}

#[tokio::test]
async fn refusals_of_a_provider_have_names_and_are_not_tried_again() {
    let (provider, server, _file) = openai("").await;
    let (mut live, _) = server.ready().await;
    for (status, code) in [(401, "live-key-refused"), (429, "over-budget")] {
        say(&mut live, "hello").await;
        provider.refuse(status).await;
        let (named, why) = failure(&turn(&mut live).await);
        assert!(named == code && why.contains(&status.to_string()), "{named}: {why}");
        assert!(provider.is_left_alone().await);
    }
    // By an event, with the key in it.
    say(&mut live, "hello").await;
    let mut peer = provider.accept().await;
    let message = format!("Incorrect API key provided: {KEY}");
    let error = json!({"type": "invalid_request_error", "code": "invalid_api_key", "message": message});
    peer.say(json!({"type": "error", "error": error})).await;
    assert_eq!(failure(&turn(&mut live).await).0, "live-key-refused");
    assert!(provider.is_left_alone().await);
    // A response that failed is told; the connection goes on.
    say(&mut live, "hello").await;
    let (mut peer, _) = provider.openai().await;
    peer.openai_text().await;
    peer.say(json!({"type": "response.created", "response": {"id": "r1"}})).await;
    let details =
        json!({"error": {"type": "server_error", "code": "insufficient_quota", "message": "no more"}});
    peer.say(json!({"type": "response.done", "response": {"id": "r1", "status": "failed", "status_details": details}})).await;
    assert_eq!(failure(&turn(&mut live).await).0, "over-budget");
    say(&mut live, "again").await;
    peer.openai_text().await;
    peer.openai_words("r2", &["Now."]).await;
    assert_eq!(turn(&mut live).await[2]["text"], "Now.");
    let (_, log) = server.stop();
    assert!(!log.contains("sk-test"), "{log}");
}

#[tokio::test]
async fn without_a_key_the_place_for_one_is_named_and_the_vault_is_one() {
    let provider = Provider::listen().await;
    let (server, _file) = companion(&provider.table("openai-realtime", "key-env = \"NO_SUCH_KEY\""));
    let (mut live, _) = server.ready().await;
    say(&mut live, "hello").await;
    let (code, why) = failure(&turn(&mut live).await);
    assert!(code == "live-key-missing" && why.contains("NO_SUCH_KEY"), "{why}");

    let (server, _file) = companion(&provider.table("openai-realtime", "key-secret = \"model\""));
    let (mut live, _) = server.ready().await;
    say(&mut live, "hello").await;
    assert_eq!(failure(&turn(&mut live).await).0, "secret-unknown");
    let mut set = server::toolshelf(None);
    set.env("TOOLSHELF_DATA_DIR", server.data.path()).args(["secret", "set", "model"]);
    let mut set =
        set.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut set.stdin.take().unwrap(), b"sk-test-of-the-vault\n").unwrap();
    assert!(set.wait().unwrap().success());
    say(&mut live, "hello").await;
    let (mut peer, _) = provider.openai().await;
    assert_eq!(peer.authorization, "Bearer sk-test-of-the-vault");
    peer.openai_text().await;
    peer.openai_words("r1", &["Hi."]).await;
    assert_eq!(turn(&mut live).await[2]["text"], "Hi.");
}

#[tokio::test]
async fn a_provider_that_is_silent_or_says_too_much_is_given_up() {
    let (provider, server, _file) = openai("patience-seconds = 1").await;
    let (mut live, _) = server.ready().await;
    // It takes connections and answers none.
    say(&mut live, "hello").await;
    let mut silent = Vec::new();
    for _ in 0..5 {
        silent.push(provider.tcp().await);
    }
    let (code, why) = failure(&turn(&mut live).await);
    assert!(code == "upstream-failed" && why.contains("1 s"), "{why}");
    drop(silent);
    // It listens and does not answer.
    say(&mut live, "hello").await;
    let (mut peer, _) = provider.openai().await;
    peer.openai_text().await;
    assert_eq!(failure(&turn(&mut live).await).0, "upstream-failed");
    // It sends a message that no session takes.
    let (mut peer, _) = provider.openai().await;
    say(&mut live, "hello").await;
    peer.openai_text().await;
    peer.send(Message::text("x".repeat(5 * 1024 * 1024))).await;
    let (code, why) = failure(&turn(&mut live).await);
    assert!(code == "upstream-failed" && why.contains("too long"), "{why}");
    // It sends nothing but what cannot be meant.
    let (mut peer, _) = provider.openai().await;
    say(&mut live, "hello").await;
    peer.openai_text().await;
    for _ in 0..20 {
        peer.send(Message::binary(vec![0xff])).await;
    }
    assert_eq!(failure(&turn(&mut live).await).0, "upstream-failed");
}

#[tokio::test]
async fn voices_go_both_ways_as_they_are() {
    let (provider, server, _file) = openai("audio = true\nvoice = \"marin\"").await;
    let (mut live, state) = server.ready().await;
    assert_eq!(state["provider"]["audio"], json!({"input": 24_000, "output": 24_000}));
    let pcm: Vec<u8> = (0..4_800).map(|n| n as u8).collect();
    live.send(Message::binary(pcm.clone())).await;
    let (mut peer, session) = provider.openai().await;
    assert_eq!(session["output_modalities"], json!(["audio"]));
    assert_eq!(session["audio"]["output"]["voice"], "marin");
    assert_eq!(session["audio"]["input"]["format"], json!({"type": "audio/pcm", "rate": 24_000}));
    let append = peer.heard().await;
    assert_eq!(append["type"], "input_audio_buffer.append");
    assert_eq!(STANDARD.decode(append["audio"].as_str().unwrap()).unwrap(), pcm);
    live.say(json!({"type": "audio-end"})).await;
    let silence = STANDARD.decode(peer.heard().await["audio"].as_str().unwrap()).unwrap();
    assert!(silence.len() == 38_400 && silence.iter().all(|byte| *byte == 0));

    peer.say(
        json!({"type": "conversation.item.input_audio_transcription.completed", "transcript": "hash abc"}),
    )
    .await;
    peer.say(json!({"type": "response.created", "response": {"id": "r1"}})).await;
    let voice: Vec<u8> = (0..150_000).map(|n| (n / 7) as u8).collect();
    let audio = |bytes: &[u8]| json!({"type": "response.output_audio.delta", "response_id": "r1", "delta": STANDARD.encode(bytes)});
    peer.say(json!({"type": "response.output_audio_transcript.delta", "response_id": "r1", "delta": "Hm."}))
        .await;
    peer.say(audio(&voice)).await;
    let (mut heard, mut words) = (Vec::new(), None);
    assert_eq!(live.frame_of("heard").await["text"], "hash abc");
    while heard.len() < voice.len() {
        match live.message().await {
            Message::Binary(bytes) => heard.extend_from_slice(&bytes),
            Message::Text(text) => words = Some(text.to_string()),
            _ => {}
        }
    }
    assert!(heard == voice && words.unwrap().contains("Hm."));
    // Speaking interrupts; the provider tells of it, and what it still sends is not passed on.
    peer.say(json!({"type": "input_audio_buffer.speech_started"})).await;
    peer.say(audio(b"late")).await;
    peer.openai_done("r1", "cancelled", json!([])).await;
    peer.openai_words("r2", &["Yes?"]).await;
    assert_eq!(kinds(&turn(&mut live).await), ["turn interrupted"]);
    assert_eq!(kinds(&turn(&mut live).await), ["turn started", "partial", "text", "turn ended"]);
    // A message of sound has a bound.
    live.send(Message::binary(vec![0; 64 * 1024 + 1])).await;
    assert_eq!(live.end().await.1, 1009);
}

#[tokio::test]
async fn a_model_of_gemini_calls_tools_answers_and_moves_on() {
    let (provider, server, _file) = gemini("model = \"gemini-test\"").await;
    let (mut live, _) = server.ready().await;
    say(&mut live, "What is the digest of abc?").await;
    let (mut peer, setup) = provider.gemini().await;
    assert_eq!(peer.target, format!("/live-api?key={KEY}"));
    assert_eq!((&setup["model"], &setup["sessionResumption"]), (&json!("models/gemini-test"), &json!({})));
    let functions = setup["tools"][0]["functionDeclarations"].as_array().unwrap();
    assert_eq!((functions.len(), &functions[4]["name"]), (7, &json!("hash")));
    let text = |text: &str| json!({"clientContent": {"turns": [{"role": "user", "parts": [{"text": text}]}], "turnComplete": true}});
    assert_eq!(peer.heard().await, text("What is the digest of abc?"));

    let call = |id: &str, input: &str| json!({"id": id, "name": "hash", "args": {"input": input}});
    peer.bytes(json!({"toolCall": {"functionCalls": [call("f1", "abc"), call("f1", "abc")]}})).await;
    let response = peer.heard().await["toolResponse"]["functionResponses"][0].clone();
    assert_eq!((&response["id"], &response["response"]["result"]["output"]), (&json!("f1"), &json!(ABC)));
    peer.bytes(json!({"toolCallCancellation": {"ids": ["f1", "f9"]}})).await;
    peer.send(Message::binary(b"\xff{".to_vec())).await;
    let part = |text: &str| json!({"serverContent": {"modelTurn": {"parts": [{"text": text}, {"text": "hm", "thought": true}]}}});
    peer.bytes(part("It is ")).await;
    peer.say(part(ABC)).await;
    peer.bytes(json!({"sessionResumptionUpdate": {"newHandle": "h-1", "resumable": true}})).await;
    peer.bytes(json!({"serverContent": {"generationComplete": true}})).await;
    peer.bytes(json!({"serverContent": {"turnComplete": true}, "usageMetadata": {"totalTokenCount": 9}}))
        .await;
    let frames = turn(&mut live).await;
    assert_eq!(kinds(&frames), ["turn started", "tool", "partial", "partial", "text", "turn ended"]);
    assert_eq!(frames[4]["text"], format!("It is {ABC}"));

    // The provider is about to leave; the conversation goes on over another connection.
    peer.bytes(json!({"goAway": {"timeLeft": "10s"}})).await;
    assert_eq!(peer.heard_or_end().await, None);
    let (mut peer, setup) = provider.gemini().await;
    assert_eq!(setup["sessionResumption"], json!({"handle": "h-1"}));
    say(&mut live, "Go on").await;
    assert_eq!(peer.heard().await, text("Go on"));
    peer.bytes(part("A long ")).await;
    live.frame_of("partial").await;
    live.say(json!({"type": "cancel"})).await;
    assert_eq!(kinds(&turn(&mut live).await), ["turn interrupted"]);
    peer.bytes(part("story")).await;
    peer.bytes(json!({"serverContent": {"interrupted": true}})).await;
    say(&mut live, "Short").await;
    peer.heard().await;
    peer.bytes(part("Ok.")).await;
    peer.bytes(json!({"serverContent": {"turnComplete": true}})).await;
    let frames = turn(&mut live).await;
    assert_eq!(
        (kinds(&frames), &frames[2]["text"]),
        (["turn started", "partial", "text", "turn ended"].map(str::to_owned).into(), &json!("Ok."))
    );
    // It refuses the key by closing.
    let close = tokio_tungstenite::tungstenite::protocol::CloseFrame {
        code: 1008.into(),
        reason: format!("API key not valid: {KEY}").into(),
    };
    say(&mut live, "Still there?").await;
    peer.heard().await;
    peer.send(Message::Close(Some(close))).await;
    assert_eq!(failure(&turn(&mut live).await).0, "live-key-refused");
    let (_, log) = server.stop();
    assert!(!log.contains("sk-test"), "{log}");
}

#[tokio::test]
async fn a_call_that_gemini_takes_back_ends_its_worker() {
    // A module that never ends by itself would run into its deadline of seconds.
    let folder = common::one_tool_of_text(common::SPINS);
    let provider = Provider::listen().await;
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), provider.table("gemini-live", "")).unwrap();
    let server = Server::set_up(Some(folder.path()), |command| {
        command.env("TOOLSHELF_CONFIG", file.path()).env("GEMINI_API_KEY", KEY);
    });
    let (mut live, _) = server.ready().await;
    say(&mut live, "loop").await;
    let (mut peer, _) = provider.gemini().await;
    peer.heard().await;
    peer.bytes(
        json!({"toolCall": {"functionCalls": [{"id": "f1", "name": "case", "args": {"input": "x"}}]}}),
    )
    .await;
    live.frame_of("turn").await;
    common::eventually("the call runs", || server.metric("toolshelf_gate_active") == Some(1.0));
    peer.bytes(json!({"toolCallCancellation": {"ids": ["f1"]}})).await;
    peer.bytes(
        json!({"serverContent": {"modelTurn": {"parts": [{"text": "Never mind."}]}, "turnComplete": true}}),
    )
    .await;
    let frames = turn(&mut live).await;
    assert_eq!(kinds(&frames), ["partial", "text", "turn ended"]);
    common::eventually("the worker is gone", || server.metric("toolshelf_gate_active") == Some(0.0));
}

/// Answers one connection as Gemini does, over TLS. Who does not trust it ends it.
async fn answer_safely(acceptor: tokio_rustls::TlsAcceptor, tcp: tokio::net::TcpStream) {
    let Ok(stream) = acceptor.accept(tcp).await else { return };
    let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let frame: Value = serde_json::from_str(&text).unwrap();
        let answer = if frame.get("setup").is_some() {
            json!({"setupComplete": {}})
        } else {
            json!({"serverContent": {"modelTurn": {"parts": [{"text": "safe"}]}, "turnComplete": true}})
        };
        socket.send(Message::text(answer.to_string())).await.unwrap();
    }
}

#[tokio::test]
async fn an_encrypted_provider_must_show_a_certificate_of_the_authority_that_is_set() {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let authority = NamedTempFile::new().unwrap();
    std::fs::write(authority.path(), issued.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(issued.signing_key.serialize_der().into());
    let tls = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(tls));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            tokio::spawn(answer_safely(acceptor.clone(), tcp));
        }
    });
    let table = |more: &str| {
        format!("[live]\nprovider = \"gemini-live\"\nurl = \"wss://localhost:{port}/\"\n{more}\n")
    };
    let (server, _file) = companion(&table(&format!("ca-file = {:?}", authority.path())));
    let (mut live, _) = server.ready().await;
    say(&mut live, "hello").await;
    assert_eq!(turn(&mut live).await[2]["text"], "safe");
    let (server, _file) = companion(&table(""));
    let (mut live, _) = server.ready().await;
    say(&mut live, "hello").await;
    let (code, why) = tokio::time::timeout(Duration::from_secs(60), turn(&mut live))
        .await
        .map(|frames| failure(&frames))
        .unwrap();
    assert!(code == "upstream-failed" && why.contains("certificate"), "{why}");
}
