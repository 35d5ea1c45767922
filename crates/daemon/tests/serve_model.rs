//! Live sessions that a model answers: the real program against servers that speak the providers' protocols.

mod common;
#[path = "common/provider.rs"]
mod provider;
#[path = "common/server.rs"]
mod server;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use provider::{KEY, Provider, failure, gemini, kinds, openai, say, turn};
use serde_json::{Value, json};
use server::Server;
use tempfile::NamedTempFile;
use tokio_tungstenite::tungstenite::Message;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

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
            let heard = peer.heard().await;
            let output = heard["item"]["output"].as_str().unwrap_or_else(|| panic!("after m{n}: {heard}"));
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
