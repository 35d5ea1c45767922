//! The protocols as data: any frame, in any order, is understood or refused, and leaves the protocol usable.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::settings::{LiveSettings, read};
use super::wire::{Ask, Said, Step, Wire};

fn settings(provider: &str) -> LiveSettings {
    let table = format!("provider = '{provider}'\naudio = true");
    read(toml::from_str(&table).unwrap()).unwrap().unwrap()
}

/// Frames of both protocols, whole, damaged, and from other times.
fn frames() -> Vec<Value> {
    let function = json!({"type": "function_call", "call_id": "c", "name": "hash", "arguments": "{}"});
    let mut frames = vec![
        json!({"type": "session.updated"}),
        json!({"type": "response.created", "response": {"id": "a"}}),
        json!({"type": "response.created", "response": {"id": "b"}}),
        json!({"type": "response.output_text.delta", "response_id": "a", "delta": "x"}),
        json!({"type": "response.output_text.delta", "response_id": "a", "delta": 7}),
        json!({"type": "response.output_audio.delta", "response_id": "a", "delta": "AAAA"}),
        json!({"type": "response.output_audio.delta", "response_id": "a", "delta": "*"}),
        json!({"type": "response.output_item.done", "response_id": "a", "item": function}),
        json!({"type": "response.done", "response": {"id": "a", "status": "completed", "output": [function]}}),
        json!({"type": "response.done", "response": {"id": "a", "status": "failed"}}),
        json!({"type": "response.done", "response": {"id": "b", "status": "cancelled", "output": 7}}),
        json!({"type": "input_audio_buffer.speech_started"}),
        json!({"type": "error", "error": {"code": "conversation_already_has_active_response"}}),
        json!({"type": "error", "error": null}),
        json!({"type": "error"}),
        json!({"type": null}),
        json!({"setupComplete": {}}),
        json!({"serverContent": {"modelTurn": {"parts": [{"text": "x"}, {"inlineData": {"mimeType": "audio/pcm", "data": "AAAA"}}]}}}),
        json!({"serverContent": {"interrupted": true}}),
        json!({"serverContent": {"turnComplete": true}}),
        json!({"serverContent": 7, "toolCall": {"functionCalls": [{"id": "c", "name": "hash"}]}}),
        json!({"toolCall": {}}),
        json!({"toolCallCancellation": {"ids": ["c", 7]}}),
        json!({"toolCallCancellation": null}),
        json!({"sessionResumptionUpdate": {"newHandle": "h", "resumable": true}}),
        json!({"goAway": null}),
    ];
    frames.push(json!([]));
    frames
}

/// One thing that may happen.
#[derive(Debug, Clone)]
enum Happens {
    Frame(usize),
    Bytes(Vec<u8>),
    Text,
    Cancel,
    Answer(bool),
    Opened,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (0..frames().len()).prop_map(Happens::Frame),
        1 => vec(any::<u8>(), 0..16).prop_map(Happens::Bytes),
        1 => Just(Happens::Text),
        1 => Just(Happens::Cancel),
        1 => any::<bool>().prop_map(Happens::Answer),
        1 => Just(Happens::Opened),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_answers_begin_before_they_end_and_text_is_asked_about(
        gemini: bool, what in vec(happens(), 0..60)
    ) {
        let name = if gemini { "gemini-live" } else { "openai-realtime" };
        let frames = frames();
        let mut wire = Wire::new(&settings(name));
        wire.opening(&[]);
        let (mut turn, mut calls) = (false, Vec::new());
        for what in what {
            let step = match what {
                Happens::Frame(n) => wire.read(frames[n].to_string().as_bytes()).unwrap_or_default(),
                Happens::Bytes(bytes) => wire.read(&bytes).unwrap_or_default(),
                Happens::Text => wire.ask(Ask::Text("x".into())),
                Happens::Cancel => wire.ask(Ask::Cancel),
                Happens::Answer(dropped) => match calls.pop() {
                    Some(call) => wire.ask(Ask::Answer { call, result: json!({}), dropped }),
                    None => Step::default(),
                },
                Happens::Opened => {
                    wire.opening(&[]);
                    turn = false;
                    Step::default()
                }
            };
            for said in step.said {
                match said {
                    Said::Started => {
                        prop_assert!(!turn, "an answer begins in another one");
                        turn = true;
                    }
                    Said::Words(_) | Said::Audio(_) => prop_assert!(turn, "words before the beginning"),
                    Said::Ended(_) | Said::Interrupted => turn = false,
                    Said::Call(call) => {
                        prop_assert!(turn, "a call before the beginning");
                        calls.push(call);
                    }
                    _ => {}
                }
            }
        }
        // However it came to this, a new connection takes a person's words.
        wire.opening(&[]);
        let ready = if gemini { json!({"setupComplete": {}}) } else { json!({"type": "session.updated"}) };
        prop_assert_eq!(wire.read(ready.to_string().as_bytes()).unwrap().said, [Said::Ready]);
        let sent = wire.ask(Ask::Text("hello".into())).send;
        prop_assert!(sent[0].to_string().contains("hello"));
        prop_assert_eq!(sent.len(), if gemini { 1 } else { 2 });
    }
}

#[test]
fn a_model_is_asked_to_go_on_when_the_last_of_its_calls_is_answered() {
    let mut wire = Wire::new(&settings("openai-realtime"));
    wire.opening(&[]);
    let read = |wire: &mut Wire, frame: Value| wire.read(frame.to_string().as_bytes()).unwrap();
    let item = |id: &str| {
        let item = json!({"type": "function_call", "call_id": id, "name": "hash", "arguments": "{}"});
        json!({"type": "response.output_item.done", "response_id": "a", "item": item})
    };
    let answer = |wire: &mut Wire, step: Step| {
        let Some(Said::Call(call)) = step.said.into_iter().next() else { panic!("no call") };
        wire.ask(Ask::Answer { call, result: json!({}), dropped: false }).send
    };
    read(&mut wire, json!({"type": "session.updated"}));
    read(&mut wire, json!({"type": "response.created", "response": {"id": "a"}}));
    // The first is answered before the model has told of the second.
    let first = read(&mut wire, item("c1"));
    assert_eq!(answer(&mut wire, first).len(), 1);
    let second = read(&mut wire, item("c2"));
    let done = json!({"type": "response.done", "response": {"id": "a", "status": "completed", "output": []}});
    assert_eq!(read(&mut wire, done).send, [] as [Value; 0], "the second still runs");
    let sent = answer(&mut wire, second);
    assert_eq!(sent[1], json!({"type": "response.create"}));
}

#[test]
fn declarations_have_the_form_of_each_provider() {
    let tools = toolshelf_core::declare::command_declarations();
    let opened = |provider: &str| Wire::new(&settings(provider)).opening(&tools).remove(0);
    let openai = opened("openai-realtime");
    assert_eq!(openai["session"]["tools"][0]["type"], "function");
    assert_eq!(openai["session"]["tools"][1]["parameters"]["required"], json!(["agent", "task"]));
    let gemini = opened("gemini-live");
    let functions = &gemini["setup"]["tools"][0]["functionDeclarations"];
    // A function without arguments has no parameters there.
    assert_eq!(functions[0].get("parameters"), None);
    assert_eq!(functions[2]["parameters"]["required"], json!(["address"]));
    assert_eq!(gemini["setup"]["generationConfig"]["responseModalities"], json!(["AUDIO"]));
}
