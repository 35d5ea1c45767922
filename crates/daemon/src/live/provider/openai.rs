//! OpenAI Realtime, as its provider has published it: JSON events in text messages.
//!
//! A response at a time: what is to be answered while one is being given waits until that one is over, because the
//! provider refuses a second one. A response that called tools is followed by another one when all have answered; only
//! that one's end is the end of the answer. Events of a response that is over or was cancelled come late sometimes, and
//! are passed over by its id.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::settings::LiveSettings;
use super::wire::{Ask, ModelCall, Said, Step, call, decoded, encoded, fault, malformed};
use toolshelf_core::refusal::{Code, Refusal};

/// Silence after a voice has ended, by which the provider knows it, in milliseconds.
const SILENCE_MS: u32 = 800;
/// Faults that come of two sides speaking at once, and mean nothing.
const HARMLESS: [&str; 2] = ["response_cancel_not_active", "input_audio_buffer_commit_empty"];
/// The fault of a response that was asked for while the provider had begun one by itself.
const BUSY: &str = "conversation_already_has_active_response";

/// The state of a connection.
#[derive(Debug)]
pub(super) struct OpenAi {
    audio: bool,
    rate: u32,
    voice: Option<String>,
    instructions: String,
    turn: Turn,
    /// Whether the provider has taken the session's settings.
    ready: bool,
}

/// Where the answer stands.
#[derive(Debug, Default)]
struct Turn {
    /// A response was asked for, and has not begun.
    asked: bool,
    /// The response that is being given.
    active: Option<String>,
    /// Another one is to follow.
    wanted: bool,
    /// Whether what the active response still says is not wanted.
    muted: bool,
    /// Whether its beginning was told.
    told: bool,
    /// Calls that have not been answered.
    open: HashSet<String>,
    /// Calls that were told: the provider names each at least twice.
    known: HashSet<String>,
}

impl OpenAi {
    pub(super) fn new(settings: &LiveSettings) -> Self {
        Self {
            audio: settings.audio,
            rate: settings.protocol.rates().input,
            voice: settings.voice.clone(),
            instructions: settings.instructions.clone(),
            turn: Turn::default(),
            ready: false,
        }
    }

    pub(super) fn opening(&mut self, tools: &[Value]) -> Vec<Value> {
        self.turn = Turn::default();
        self.ready = false;
        let format = json!({ "type": "audio/pcm", "rate": self.rate });
        let mut session = json!({
            "type": "realtime",
            "instructions": self.instructions,
            "output_modalities": [if self.audio { "audio" } else { "text" }],
            "tools": declared(tools),
            "tool_choice": "auto",
        });
        if self.audio {
            let turn_detection =
                json!({ "type": "server_vad", "create_response": true, "interrupt_response": true });
            session["audio"] = json!({
                "input": { "format": format, "turn_detection": turn_detection },
                "output": { "format": format },
            });
            if let Some(voice) = &self.voice {
                session["audio"]["output"]["voice"] = json!(voice);
            }
        }
        vec![json!({ "type": "session.update", "session": session })]
    }

    pub(super) fn ask(&mut self, ask: Ask) -> Step {
        let mut step = Step::default();
        match ask {
            Ask::Text(text) => {
                self.mute(&mut step);
                let content = json!([{ "type": "input_text", "text": text }]);
                let item = json!({ "type": "message", "role": "user", "content": content });
                step.send.push(json!({ "type": "conversation.item.create", "item": item }));
                self.want(&mut step);
            }
            Ask::Audio(pcm) => step.send.push(append(&pcm)),
            Ask::AudioEnd => {
                let bytes = self.rate as usize * 2 * SILENCE_MS as usize / 1_000;
                step.send.push(append(&vec![0; bytes]));
            }
            Ask::Cancel => {
                self.turn.wanted = false;
                self.mute(&mut step);
            }
            Ask::Tools(tools) => {
                let session = json!({ "type": "realtime", "tools": declared(&tools) });
                step.send.push(json!({ "type": "session.update", "session": session }));
            }
            Ask::Answer { call, result, dropped } => {
                if self.turn.open.remove(&call.id) {
                    let output = result.to_string();
                    let item =
                        json!({ "type": "function_call_output", "call_id": call.id, "output": output });
                    step.send.push(json!({ "type": "conversation.item.create", "item": item }));
                    if self.turn.open.is_empty() && !dropped {
                        self.want(&mut step);
                    }
                }
            }
        }
        step
    }

    pub(super) fn read(&mut self, event: &Value) -> Result<Step, Refusal> {
        let mut step = Step::default();
        let kind = event["type"].as_str().ok_or_else(|| malformed("an event without a type"))?;
        match kind {
            "session.updated" if !self.ready => {
                self.ready = true;
                step.said.push(Said::Ready);
            }
            "response.created" => {
                let id = event["response"]["id"].as_str();
                self.turn.active = Some(id.ok_or_else(|| malformed("a response without an id"))?.to_owned());
                self.turn.asked = false;
                if !self.turn.muted && !self.turn.told {
                    self.turn.told = true;
                    step.said.push(Said::Started);
                }
                if self.turn.muted {
                    step.send.push(json!({ "type": "response.cancel" }));
                }
            }
            "response.output_text.delta" | "response.output_audio_transcript.delta" if self.hears(event) => {
                let words = event["delta"].as_str().ok_or_else(|| malformed("a delta that is no text"))?;
                step.said.push(Said::Words(words.to_owned()));
            }
            "response.output_audio.delta" if self.hears(event) => {
                step.said.push(Said::Audio(decoded(&event["delta"])?));
            }
            "response.output_item.done" if self.hears(event) => self.item(&event["item"], &mut step)?,
            "response.done" => self.done(&event["response"], &mut step)?,
            // The provider ends its response by itself.
            "input_audio_buffer.speech_started" if self.turn.active.is_some() && !self.turn.muted => {
                (self.turn.muted, self.turn.told) = (true, false);
                step.said.push(Said::Interrupted);
            }
            "conversation.item.input_audio_transcription.completed" => {
                if let Some(words) = event["transcript"].as_str() {
                    step.said.push(Said::Heard(words.to_owned()));
                }
            }
            "error" => self.error(&event["error"], &mut step),
            // There are many more, for those who show more.
            _ => {}
        }
        Ok(step)
    }

    /// Whether an event is of the response that is being given, and still wanted.
    fn hears(&self, event: &Value) -> bool {
        !self.turn.muted
            && self.turn.active.is_some()
            && self.turn.active.as_deref() == event["response_id"].as_str()
    }

    /// Asks for a response, now or when the one that is being given is over.
    fn want(&mut self, step: &mut Step) {
        if self.turn.active.is_some() || self.turn.asked {
            self.turn.wanted = true;
        } else {
            self.turn.asked = true;
            self.turn.muted = false;
            step.send.push(json!({ "type": "response.create" }));
        }
    }

    /// What is being said is not wanted any more.
    fn mute(&mut self, step: &mut Step) {
        let (active, asked) = (self.turn.active.is_some(), self.turn.asked);
        if self.turn.muted || !(active || asked || self.turn.told) {
            return;
        }
        if active {
            step.send.push(json!({ "type": "response.cancel" }));
        }
        self.turn.muted = active || asked;
        self.turn.told = false;
        self.turn.known.clear();
        step.said.push(Said::Interrupted);
    }

    fn item(&mut self, item: &Value, step: &mut Step) -> Result<(), Refusal> {
        if item["type"] != "function_call" || item["status"] == "incomplete" {
            return Ok(());
        }
        let call: ModelCall = call(&item["call_id"], &item["name"], &item["arguments"])?;
        if self.turn.known.insert(call.id.clone()) {
            self.turn.open.insert(call.id.clone());
            step.said.push(Said::Call(call));
        }
        Ok(())
    }

    fn done(&mut self, response: &Value, step: &mut Step) -> Result<(), Refusal> {
        if self.turn.active.is_none() || self.turn.active.as_deref() != response["id"].as_str() {
            return Ok(());
        }
        let status = response["status"].as_str().unwrap_or_default();
        let muted = std::mem::take(&mut self.turn.muted);
        // Calls that were not told one by one.
        if !muted && status == "completed" {
            for item in response["output"].as_array().into_iter().flatten() {
                self.item(item, step)?;
            }
        }
        self.turn.active = None;
        // Where calls still run, the answer to the last of them asks.
        if std::mem::take(&mut self.turn.wanted) && (muted || self.turn.open.is_empty()) {
            self.want(step);
            return Ok(());
        }
        if muted || !self.turn.open.is_empty() {
            return Ok(());
        }
        self.turn.told = false;
        self.turn.known.clear();
        step.said.push(match status {
            "failed" => {
                let error = &response["status_details"]["error"];
                Said::Ended(Err(named(error)))
            }
            "incomplete" => {
                let reason = response["status_details"]["reason"].as_str().unwrap_or("it did not say why");
                Said::Ended(Err(fault("incomplete", reason)))
            }
            "cancelled" => Said::Interrupted,
            _ => Said::Ended(Ok(())),
        });
        Ok(())
    }

    fn error(&mut self, error: &Value, step: &mut Step) {
        let code = error["code"].as_str().or(error["type"].as_str()).unwrap_or_default();
        if HARMLESS.contains(&code) {
            return;
        }
        if code == BUSY {
            if std::mem::take(&mut self.turn.asked) {
                self.want(step);
            }
            return;
        }
        let refusal = named(error);
        step.said.push(match code {
            "session_expired" => Said::Leaving,
            _ if refusal.code == Code::LiveKeyRefused || !self.ready => Said::Final(refusal),
            // What was asked for will not come.
            _ if std::mem::take(&mut self.turn.asked) => {
                self.turn.told = false;
                Said::Ended(Err(refusal))
            }
            _ => Said::Fault(refusal),
        });
    }
}

fn declared(tools: &[Value]) -> Vec<Value> {
    let function = |tool: &Value| {
        json!({
            "type": "function",
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["parameters"],
        })
    };
    tools.iter().map(function).collect()
}

fn append(pcm: &[u8]) -> Value {
    json!({ "type": "input_audio_buffer.append", "audio": encoded(pcm) })
}

fn named(error: &Value) -> Refusal {
    let text = |key: &str| error[key].as_str().filter(|text| !text.is_empty());
    fault(text("code").or(text("type")).unwrap_or("error"), text("message").unwrap_or("it did not say why"))
}
