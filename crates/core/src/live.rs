//! What a companion tells of itself, and the frames of its live session.
//!
//! Source: the reference facts, A7. Frames are JSON objects with a `type`, in text messages of a WebSocket at `/live`.
//! A client says [`hello`](ClientFrame::Hello) first; the server answers [`state`](ServerFrame::State) or
//! [`refused`](ServerFrame::Refused), after which it closes with 1008. Later a frame that is not understood is answered
//! with `refused` as well, and the session goes on.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::Answer;
use crate::digest::Digest;
use crate::placement::{Placement, PlacementBounds};
use crate::refusal::{Code, Refusal, cut};
use crate::root::RootDescriptor;
use crate::task::TaskView;
use crate::task::tool_call::answer_text;

/// Longest frame, in bytes: two inputs of 64 KiB in which every byte is escaped, and some room.
pub const LIVE_FRAME_MAX_BYTES: usize = 1024 * 1024;
/// Longest message of sound, in bytes: about a second of it.
pub const LIVE_AUDIO_MAX_BYTES: usize = 64 * 1024;
/// How long a connection may take to say hello, in milliseconds.
pub const LIVE_HELLO_MS: u32 = 5_000;
/// So much of a tool's output stands in a [`CallNotice`], in bytes; the full output goes to whoever called.
pub const NOTICE_OUTPUT_MAX_BYTES: usize = 4_096;
/// So much of a tool's name stands in a [`CallNotice`], in characters: a caller may have made it up.
const NOTICE_NAME_MAX_CHARS: usize = 80;
/// So much of a refusal's sentence stands in a [`CallNotice`], in characters.
const NOTICE_WHY_MAX_CHARS: usize = 1_000;

/// What a client sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum ClientFrame {
    /// Who it is. The first frame.
    Hello {
        /// The companion's token.
        bearer: String,
    },
    /// What a person said.
    Text {
        /// The words.
        text: String,
    },
    /// A command: `list_extensions`, `call_extension`, `delegate_task`, `task_status`, `cancel_task`, or a tool's id.
    #[serde(rename_all = "camelCase")]
    Call {
        /// The client's name of the call; the answer repeats it.
        call_id: String,
        /// The command.
        name: String,
        /// Its arguments.
        #[serde(default)]
        args: Map<String, Value>,
    },
    /// The answer that is being given is not wanted any more.
    Cancel {},
    /// What the person says into a microphone has ended; what was said before came in binary messages.
    #[serde(rename = "audio-end")]
    AudioEnd {},
}

/// What a server sends.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ServerFrame {
    /// The session is ready, and these tools can be called in it.
    State {
        /// Always `"ready"`.
        state: String,
        /// The declarations of the shelf: `{name, description, parameters}`.
        tools: Vec<Value>,
        /// The companion's version.
        version: String,
        /// The session's number, which stands in the notices of the calls that it leads to.
        session: u64,
        /// The model that answers what a person says; without one a script does.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<LiveProvider>,
    },
    /// Words for the person; a model's words all together, at the end of its answer.
    Text {
        /// The words.
        text: String,
    },
    /// The next of the words that a model is just saying.
    Partial {
        /// The words.
        text: String,
    },
    /// What a model has understood of what was said into the microphone.
    Heard {
        /// The words.
        text: String,
    },
    /// Where the answer of a model stands.
    Turn {
        /// Whether it has begun or is over.
        state: TurnState,
    },
    /// Something went wrong on the way to a model or at its provider. The session goes on.
    Fault {
        /// The refusal's code.
        refused: String,
        /// Its sentence.
        why: String,
    },
    /// Where the connection to the provider of a model stands.
    Link {
        /// Whether there is one.
        state: LinkState,
    },
    /// Tools were called: in this session, in another one, over HTTP, by a task or from the command line.
    Tool {
        /// The calls.
        calls: Vec<CallNotice>,
    },
    /// The shelf has changed on disk. The declarations of this session are these from now on.
    Shelf {
        /// As in [`State`](Self::State).
        tools: Vec<Value>,
    },
    /// A task of this client's owner has changed.
    Task {
        /// What its owner is shown.
        task: Box<TaskView>,
    },
    /// The answer to a [`Call`](ClientFrame::Call): `{ok: true, ...}` or a refusal.
    #[serde(rename_all = "camelCase")]
    Result {
        /// The client's name of the call.
        call_id: String,
        /// The answer.
        result: Value,
    },
    /// The connection is refused, and closed after this; or, in a session that is ready, a frame was not understood.
    Refused {
        /// The refusal's code.
        refused: String,
        /// Its sentence.
        why: String,
    },
}

impl ServerFrame {
    /// The frame that refuses a connection.
    #[must_use]
    pub fn refused(refusal: &Refusal) -> Self {
        Self::Refused { refused: refusal.code.as_str().to_owned(), why: refusal.why.clone() }
    }

    /// The frame that tells of a fault on the way to a model.
    #[must_use]
    pub fn fault(refusal: &Refusal) -> Self {
        Self::Fault { refused: refusal.code.as_str().to_owned(), why: refusal.why.clone() }
    }
}

/// Where the answer of a model stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnState {
    /// It has begun.
    Started,
    /// It is whole.
    Ended,
    /// The person has spoken meanwhile, or did not want it any more. What was not said yet will not be.
    Interrupted,
    /// It ended in a fault, which a `fault` frame has told.
    Failed,
}

/// Where the connection to the provider of a model stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    /// It is being made, for the first time or again.
    Connecting,
    /// The model listens.
    Ready,
    /// There is none. The next words make one.
    Closed,
}

/// A model that answers in a live session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveProvider {
    /// The protocol: `openai-realtime` or `gemini-live`.
    pub name: String,
    /// The model.
    pub model: String,
    /// How sound is passed, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<AudioRates>,
}

/// Samples in a second of sound, which is PCM of 16 bits, little-endian, one channel, in binary messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AudioRates {
    /// Of what the model hears.
    pub input: u32,
    /// Of what the model says.
    pub output: u32,
}

/// Where a call came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallOrigin {
    /// A live session.
    Live,
    /// The HTTP API.
    Http,
    /// The command line.
    Cli,
    /// A task.
    Task,
    /// An agent over MCP.
    Mcp,
    /// The agent of a browser, in a page.
    Agent,
}

/// A tool call that has ended, as everybody who watches the companion hears of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallNotice {
    /// The tool's id.
    pub name: String,
    /// Whether it answered.
    pub ok: bool,
    /// The beginning of its output as text, at most [`NOTICE_OUTPUT_MAX_BYTES`]; empty when it was refused.
    pub output: String,
    /// Wall-clock time of the whole call, in milliseconds; never negative.
    pub duration_ms: f64,
    /// Where it came from.
    pub from: CallOrigin,
    /// Digest of the module that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The refusal's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The refusal's sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The live session in which something a person said led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
}

/// The environment that a companion is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineEnvironment {
    /// Its key: `env_` and 16 hexadecimal digits.
    pub key: String,
    /// Its placement: `machine`.
    pub placement: Placement,
    /// What it is called: the machine's name.
    pub label: String,
    /// What that placement grants.
    pub bounds: PlacementBounds,
    /// How many tasks hold a place now.
    pub active: usize,
    /// The folders that tasks can work in; new tasks get the first unless they name another.
    pub roots: Vec<MachineRoot>,
    /// The agents that tasks can be given to, besides the shelf's tools.
    pub agents: Vec<AgentInfo>,
    /// The companion's version.
    pub version: String,
}

/// A folder that tasks can work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRoot {
    /// The root, of the kind `machine`.
    pub root: RootDescriptor,
    /// Whether it can be used now.
    pub available: bool,
}

/// An agent of `toolshelf.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Its name.
    pub name: String,
    /// What it does, in its owner's words; may be empty.
    pub description: String,
    /// The deadline that its tasks get when they name none, in milliseconds.
    pub deadline_ms: u32,
}

impl CallNotice {
    /// The notice of a call of `name` that took `duration_ms`; `inputs` are those of the call.
    #[must_use]
    pub fn of(
        name: &str,
        result: &Result<Answer, Refusal>,
        inputs: Vec<Vec<u8>>,
        duration_ms: f64,
        from: CallOrigin,
    ) -> Self {
        let (answer, refusal) = (result.as_ref().ok(), result.as_ref().err());
        let notice = Self {
            name: name.to_owned(),
            ok: answer.is_some(),
            output: answer.map(|answer| answer_text(answer, inputs)).unwrap_or_default(),
            duration_ms,
            from,
            digest: answer.map(|answer| answer.digest.to_string()),
            refused: refusal.map(|refusal| refusal.code.as_str().to_owned()),
            why: refusal.map(|refusal| refusal.why.clone()),
            session: None,
        };
        notice.bounded()
    }

    /// The notice with every part cut to its bound: some come from other programs.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.name = cut(&self.name, NOTICE_NAME_MAX_CHARS);
        self.output.truncate(self.output.floor_char_boundary(NOTICE_OUTPUT_MAX_BYTES));
        self.duration_ms = self.duration_ms.max(0.0);
        self.digest = self.digest.filter(|digest| Digest::parse(digest).is_some());
        self.refused = self.refused.filter(|code| Code::parse(code).is_some());
        self.why = self.why.map(|why| cut(&why, NOTICE_WHY_MAX_CHARS));
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_notice_of_a_refused_call_has_its_reason_and_no_output() {
        let refused = Err(Refusal::new(Code::UnknownTool, "no such tool"));
        let notice = CallNotice::of(&"x".repeat(1_000), &refused, Vec::new(), -1.0, CallOrigin::Cli);
        assert_eq!((notice.ok, notice.duration_ms, &*notice.output), (false, 0.0, ""));
        assert_eq!(notice.refused.as_deref(), Some("unknown-tool"));
        assert!(notice.name.len() < 100);
    }

    #[test]
    fn frames_have_their_documented_form() {
        let hello: ClientFrame = serde_json::from_value(json!({"type": "hello", "bearer": "t"})).unwrap();
        assert_eq!(hello, ClientFrame::Hello { bearer: "t".into() });
        let call = json!({"type": "call", "callId": "1", "name": "list_extensions"});
        assert!(
            matches!(serde_json::from_value(call).unwrap(), ClientFrame::Call { args, .. } if args.is_empty())
        );
        for bad in
            [json!({"type": "hello"}), json!({"type": "hello", "bearer": "t", "x": 1}), json!({}), json!([])]
        {
            assert!(serde_json::from_value::<ClientFrame>(bad).is_err());
        }
        let result = ServerFrame::Result { call_id: "1".into(), result: json!({"ok": true}) };
        let wire = json!({"type": "result", "callId": "1", "result": {"ok": true}});
        assert_eq!(serde_json::to_value(result).unwrap(), wire);
    }
}
