//! What is said to any provider, and what any says. No connection here: frames in, frames out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use toolshelf_core::refusal::{Code, Refusal, cut};

use super::gemini::Gemini;
use super::openai::OpenAi;
use super::settings::{LiveSettings, Protocol};

/// So much of what a provider says about a fault is passed on, in characters.
const FAULT_MAX_CHARS: usize = 300;
/// Longest name or id in a provider's call, in bytes; a call with a longer one is not understood.
const NAME_MAX_BYTES: usize = 256;

/// What is said to a provider.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ask {
    /// A person's words, to be answered.
    Text(String),
    /// A person's voice: PCM of 16 bits at the provider's rate.
    Audio(Vec<u8>),
    /// The voice has ended.
    AudioEnd,
    /// What is being said is not wanted any more.
    Cancel,
    /// These tools can be called from now on.
    Tools(Vec<Value>),
    /// The answer to a call. Nothing more is expected of one that was dropped.
    Answer { call: ModelCall, result: Value, dropped: bool },
}

/// What a provider says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    /// It listens.
    Ready,
    /// It begins to answer.
    Started,
    /// Some of its words.
    Words(String),
    /// What it has understood of a person's voice.
    Heard(String),
    /// Some of its voice.
    Audio(Vec<u8>),
    /// It calls a tool.
    Call(ModelCall),
    /// It does not wait for these calls any more.
    Dropped(Vec<String>),
    /// It was interrupted.
    Interrupted,
    /// Its answer is over, all calls of it included.
    Ended(Result<(), Refusal>),
    /// Something went wrong; it goes on listening.
    Fault(Refusal),
    /// It goes on with nothing, now or for any other connection like this one.
    Final(Refusal),
    /// It will close this connection soon.
    Leaving,
    /// The tools of a connection cannot be changed: another one is needed.
    Again,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelCall {
    /// The provider's name of the call.
    pub(super) id: String,
    /// The tool or command.
    pub(super) name: String,
    /// Its arguments, or why they are none.
    pub(super) args: Result<Map<String, Value>, String>,
}

/// What follows from a frame: what was said with it, and what has to be said in return.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Step {
    pub(super) said: Vec<Said>,
    pub(super) send: Vec<Value>,
}

/// A protocol in the middle of a connection.
#[derive(Debug)]
pub(super) enum Wire {
    OpenAi(OpenAi),
    Gemini(Gemini),
}

impl Wire {
    pub(super) fn new(settings: &LiveSettings) -> Self {
        match settings.protocol {
            Protocol::OpenAi => Self::OpenAi(OpenAi::new(settings)),
            Protocol::Gemini => Self::Gemini(Gemini::new(settings)),
        }
    }

    /// The first frames of a connection. What belonged to another connection is forgotten.
    pub(super) fn opening(&mut self, tools: &[Value]) -> Vec<Value> {
        match self {
            Self::OpenAi(wire) => wire.opening(tools),
            Self::Gemini(wire) => wire.opening(tools),
        }
    }

    /// What is sent for `ask`.
    pub(super) fn ask(&mut self, ask: Ask) -> Step {
        match self {
            Self::OpenAi(wire) => wire.ask(ask),
            Self::Gemini(wire) => wire.ask(ask),
        }
    }

    /// What a frame says.
    ///
    /// # Errors
    /// When it is no frame of the protocol.
    pub(super) fn read(&mut self, frame: &[u8]) -> Result<Step, Refusal> {
        let frame: Value = serde_json::from_slice(frame).map_err(|err| malformed(&err.to_string()))?;
        if !frame.is_object() {
            return Err(malformed("a frame is no JSON object"));
        }
        match self {
            Self::OpenAi(wire) => wire.read(&frame),
            Self::Gemini(wire) => wire.read(&frame),
        }
    }
}

/// The refusal of a frame that the provider's documentation does not allow.
pub(super) fn malformed(why: &str) -> Refusal {
    Refusal::new(Code::UpstreamFailed, format!("the provider sent what it cannot mean: {}", cut(why, 120)))
}

/// A call; `args` are a text of JSON, or the object itself.
pub(super) fn call(id: &Value, name: &Value, args: &Value) -> Result<ModelCall, Refusal> {
    let text = |value: &Value, what: &str| {
        let text = value.as_str().filter(|text| (1..=NAME_MAX_BYTES).contains(&text.len()));
        text.map(str::to_owned).ok_or_else(|| malformed(&format!("a call has no {what}")))
    };
    let parsed = match args {
        // Some models write nothing where there are no arguments.
        Value::String(text) if text.trim().is_empty() => Ok(Value::Object(Map::new())),
        Value::String(text) => serde_json::from_str(text).map_err(|err| err.to_string()),
        Value::Null => Ok(Value::Object(Map::new())),
        other => Ok(other.clone()),
    };
    let args = match parsed {
        Ok(Value::Object(args)) => Ok(args),
        Ok(_) => Err("the arguments are no JSON object".to_owned()),
        Err(why) => Err(format!("the arguments are no JSON: {}", cut(&why, 120))),
    };
    Ok(ModelCall { id: text(id, "id")?, name: text(name, "name")?, args })
}

/// Sound as protocols carry it.
pub(super) fn encoded(audio: &[u8]) -> String {
    STANDARD.encode(audio)
}

/// Sound out of a frame.
pub(super) fn decoded(text: &Value) -> Result<Vec<u8>, Refusal> {
    let text = text.as_str().ok_or_else(|| malformed("sound that is no text"))?;
    STANDARD.decode(text).map_err(|_| malformed("sound that is no base64"))
}

/// What a provider calls the fault, by one of this program's codes. Its message is passed on as words for a person.
pub(super) fn fault(kind: &str, message: &str) -> Refusal {
    let said = cut(message.trim(), FAULT_MAX_CHARS).replace(char::is_control, " ");
    let code = match kind {
        "invalid_api_key"
        | "authentication_error"
        | "permission_error"
        | "permission_denied"
        | "PERMISSION_DENIED"
        | "UNAUTHENTICATED"
        | "invalid_organization"
        | "model_not_found" => Code::LiveKeyRefused,
        "rate_limit_exceeded" | "insufficient_quota" | "RESOURCE_EXHAUSTED" | "rate_limit_error" => {
            Code::OverBudget
        }
        _ => Code::UpstreamFailed,
    };
    let kind = cut(kind, 60).replace(char::is_control, " ");
    Refusal::new(code, format!("the provider says ({kind}): {said}"))
}
