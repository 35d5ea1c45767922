//! Gemini Live, as its provider has published it: JSON messages, in text or binary frames.
//!
//! The tools of a connection are fixed when it is set up; other ones need another connection, which can resume the
//! conversation by a handle. There is no message that ends an answer: what comes of one that is not wanted is passed
//! over until the provider says that it is over.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolshelf_core::refusal::Refusal;

use super::settings::LiveSettings;
use super::wire::{Ask, Said, Step, call, decoded, encoded, malformed};

/// Longest handle that is kept, in bytes.
const HANDLE_MAX_BYTES: usize = 8 * 1024;
/// Models of this family take a person's words as they take their voice.
const REALTIME_TEXT: &str = "gemini-3";

/// The state of a connection.
#[derive(Debug)]
pub(super) struct Gemini {
    model: String,
    audio: bool,
    rate: u32,
    voice: Option<String>,
    instructions: String,
    /// By which a conversation goes on over another connection.
    handle: Option<String>,
    /// Whether an answer is being given.
    active: bool,
    /// Whether it is not wanted any more.
    muted: bool,
    /// Calls that have not been answered.
    open: HashSet<String>,
    /// Calls that were told.
    known: HashSet<String>,
}

impl Gemini {
    pub(super) fn new(settings: &LiveSettings) -> Self {
        Self {
            model: settings.model.clone(),
            audio: settings.audio,
            rate: settings.protocol.rates().input,
            voice: settings.voice.clone(),
            instructions: settings.instructions.clone(),
            handle: None,
            active: false,
            muted: false,
            open: HashSet::new(),
            known: HashSet::new(),
        }
    }

    pub(super) fn opening(&mut self, tools: &[Value]) -> Vec<Value> {
        (self.active, self.muted) = (false, false);
        self.open.clear();
        self.known.clear();
        let model =
            if self.model.contains('/') { self.model.clone() } else { format!("models/{}", self.model) };
        let mut generation = json!({ "responseModalities": [if self.audio { "AUDIO" } else { "TEXT" }] });
        if let Some(voice) = self.voice.as_ref().filter(|_| self.audio) {
            generation["speechConfig"] =
                json!({ "voiceConfig": { "prebuiltVoiceConfig": { "voiceName": voice } } });
        }
        let resumption = self.handle.take().map_or_else(|| json!({}), |handle| json!({ "handle": handle }));
        let mut setup = json!({
            "model": model,
            "generationConfig": generation,
            "systemInstruction": { "parts": [{ "text": self.instructions }] },
            "tools": [{ "functionDeclarations": declared(tools) }],
            "sessionResumption": resumption,
        });
        if self.audio {
            // The words of both sides, besides their voices.
            setup["inputAudioTranscription"] = json!({});
            setup["outputAudioTranscription"] = json!({});
        }
        vec![json!({ "setup": setup })]
    }

    pub(super) fn ask(&mut self, ask: Ask) -> Step {
        let mut step = Step::default();
        match ask {
            Ask::Text(text) => {
                self.mute(&mut step);
                step.send.push(if self.model.contains(REALTIME_TEXT) {
                    json!({ "realtimeInput": { "text": text } })
                } else {
                    let turns = json!([{ "role": "user", "parts": [{ "text": text }] }]);
                    json!({ "clientContent": { "turns": turns, "turnComplete": true } })
                });
            }
            Ask::Audio(pcm) => {
                let mime = format!("audio/pcm;rate={}", self.rate);
                let audio = json!({ "data": encoded(&pcm), "mimeType": mime });
                step.send.push(json!({ "realtimeInput": { "audio": audio } }));
            }
            Ask::AudioEnd => step.send.push(json!({ "realtimeInput": { "audioStreamEnd": true } })),
            Ask::Cancel => self.mute(&mut step),
            Ask::Tools(_) => step.said.push(Said::Again),
            Ask::Answer { call, result, .. } => {
                if self.open.remove(&call.id) {
                    let response =
                        json!({ "id": call.id, "name": call.name, "response": { "result": result } });
                    step.send.push(json!({ "toolResponse": { "functionResponses": [response] } }));
                }
            }
        }
        step
    }

    pub(super) fn read(&mut self, message: &Value) -> Result<Step, Refusal> {
        let mut step = Step::default();
        if message.get("setupComplete").is_some() {
            step.said.push(Said::Ready);
        }
        if let Some(update) = message.get("sessionResumptionUpdate") {
            let handle = update["newHandle"].as_str().filter(|handle| handle.len() <= HANDLE_MAX_BYTES);
            if let Some(handle) = handle.filter(|_| update["resumable"] == true) {
                self.handle = Some(handle.to_owned());
            }
        }
        if let Some(content) = message.get("serverContent") {
            self.content(content, &mut step)?;
        }
        if let Some(calls) = message.get("toolCall") {
            self.calls(&calls["functionCalls"], &mut step)?;
        }
        if let Some(dropped) = message.get("toolCallCancellation") {
            let ids = dropped["ids"].as_array().ok_or_else(|| malformed("a cancellation without ids"))?;
            let ids = ids.iter().filter_map(Value::as_str).filter(|id| self.open.remove(*id));
            step.said.push(Said::Dropped(ids.map(str::to_owned).collect()));
        }
        if message.get("goAway").is_some() {
            step.said.push(Said::Leaving);
        }
        Ok(step)
    }

    fn content(&mut self, content: &Value, step: &mut Step) -> Result<(), Refusal> {
        if let Some(words) = content["inputTranscription"]["text"].as_str() {
            step.said.push(Said::Heard(words.to_owned()));
        }
        for part in content["modelTurn"]["parts"].as_array().into_iter().flatten() {
            if part["thought"] == true {
                continue;
            }
            if let Some(words) = part["text"].as_str() {
                self.say(Said::Words(words.to_owned()), step);
            }
            if let Some(sound) = part.get("inlineData") {
                let mime = sound["mimeType"].as_str().unwrap_or_default();
                if mime.starts_with("audio/pcm") {
                    self.say(Said::Audio(decoded(&sound["data"])?), step);
                }
            }
        }
        if let Some(words) = content["outputTranscription"]["text"].as_str() {
            self.say(Said::Words(words.to_owned()), step);
        }
        if content["interrupted"] == true {
            if self.active && !self.muted {
                step.said.push(Said::Interrupted);
            }
            (self.active, self.muted) = (false, false);
        }
        if content["turnComplete"] == true && self.open.is_empty() {
            if self.active && !self.muted {
                step.said.push(Said::Ended(Ok(())));
            }
            self.known.clear();
            (self.active, self.muted) = (false, false);
        }
        Ok(())
    }

    fn calls(&mut self, calls: &Value, step: &mut Step) -> Result<(), Refusal> {
        let calls = calls.as_array().ok_or_else(|| malformed("a tool call without calls"))?;
        for function in calls {
            let call = call(&function["id"], &function["name"], &function["args"])?;
            if self.muted || !self.known.insert(call.id.clone()) {
                continue;
            }
            self.open.insert(call.id.clone());
            self.say(Said::Call(call), step);
        }
        Ok(())
    }

    fn say(&mut self, said: Said, step: &mut Step) {
        if self.muted {
            return;
        }
        if !std::mem::replace(&mut self.active, true) {
            step.said.push(Said::Started);
        }
        step.said.push(said);
    }

    fn mute(&mut self, step: &mut Step) {
        if self.active && !std::mem::replace(&mut self.muted, true) {
            step.said.push(Said::Interrupted);
        }
    }
}

fn declared(tools: &[Value]) -> Vec<Value> {
    let function = |tool: &Value| {
        let mut function = json!({ "name": tool["name"], "description": tool["description"] });
        // A function without arguments has no parameters there.
        if tool["parameters"]["properties"].as_object().is_some_and(|properties| !properties.is_empty()) {
            function["parameters"] = tool["parameters"].clone();
        }
        function
    };
    tools.iter().map(function).collect()
}
