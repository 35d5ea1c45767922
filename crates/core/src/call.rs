//! What a call answers, and how a worker's end becomes an answer or a refusal.
//!
//! Source: the reference facts, A2 and A4.

use serde::Serialize;

use crate::abi::Abi;
use crate::digest::{Digest, to_hex};
use crate::limits::{WASM_CALL_DEADLINE_MS, WASM_CHILD_MAX_STDOUT_BYTES, WASM_MEMORY_MAX_BYTES};
use crate::refusal::{Code, Refusal, cut};
use crate::script::{self, Block};

/// The success value of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Always `true`.
    pub ok: bool,
    /// Always `"wasm"`.
    pub action: &'static str,
    /// The tool's id.
    pub tool: String,
    /// What the export returned.
    pub returned: i32,
    /// The output bytes, in lowercase hexadecimal digits.
    pub output: String,
    /// The decoded script of a `buffer-abi/diff` tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Vec<Block>>,
    /// Digest of the bytes that ran: hashed in this very call.
    pub digest: Digest,
    /// Bytes of all inputs together.
    pub input_bytes: usize,
    /// Wall-clock time of the whole call as the caller saw it, in milliseconds.
    pub duration_ms: f64,
    /// Where the time went.
    pub timing: Timing,
}

/// Where the time of a call went, each part in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// Reading, hashing and checking the module.
    pub verify_ms: f64,
    /// Waiting for a permit.
    pub queue_ms: f64,
    /// Waiting for a worker that is ready.
    pub worker_ms: f64,
    /// Instantiating and running the module, the way to the worker and back included.
    pub run_ms: f64,
}

/// How the run of a module in its worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    /// The export returned. `output` is what lies in the output buffer, as long as [`output_bytes`] says.
    Returned {
        /// The export's return value.
        returned: i32,
        /// The bytes of the output.
        output: Vec<u8>,
    },
    /// The instance does not have what the ABI asks for; the text says what.
    Unfit(String),
    /// Instantiation or the call trapped.
    Trapped(String),
    /// The engine had no memory for the instance.
    OutOfMemory(String),
    /// The deadline passed and the worker was ended.
    DeadlinePassed,
    /// The worker could not be started, handed back more than it may, or was ended from outside or by its own limits.
    Exceeded(String),
    /// The worker ended, or never started, without an answer.
    Silent(String),
}

/// Length of the output of a call that returned `returned`, in bytes.
///
/// # Errors
/// [`Code::DiffFailed`] for a negative length, [`Code::ResourceExceeded`] for one beyond the output buffer or beyond
/// what a worker may hand back.
pub fn output_bytes(abi: Abi, returned: i32) -> Result<u32, Refusal> {
    let output = abi.layout().output;
    if output.fixed {
        return Ok(output.max_bytes);
    }
    let length = u32::try_from(returned)
        .map_err(|_| Refusal::new(Code::DiffFailed, format!("the diff export returned {returned}")))?;
    let max = output.max_bytes.min(WASM_CHILD_MAX_STDOUT_BYTES as u32);
    if length > max {
        let why = format!("the module says its output is {length} bytes; the output buffer holds {max}");
        return Err(Refusal::new(Code::ResourceExceeded, why));
    }
    Ok(length)
}

/// A call that ran: what it was, and how long each part took.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// The tool's id.
    pub tool: String,
    /// Its ABI.
    pub abi: Abi,
    /// Digest of the bytes that ran.
    pub digest: Digest,
    /// Bytes of all inputs together.
    pub input_bytes: usize,
    /// Wall-clock time of the whole call, in milliseconds.
    pub duration_ms: f64,
    /// Where the time went.
    pub timing: Timing,
}

impl Ran {
    /// Turns the worker's end into the answer.
    ///
    /// # Errors
    /// The refusal that names any end but a return with a believable length.
    pub fn answer(self, end: RunEnd) -> Result<Answer, Refusal> {
        let (returned, output) = match end {
            RunEnd::Returned { returned, output } => (returned, output),
            other => return Err(other.refusal()),
        };
        let expected = output_bytes(self.abi, returned)? as usize;
        if output.len() != expected {
            let why =
                format!("the worker handed back {} bytes of output where {expected} were due", output.len());
            return Err(Refusal::new(Code::WasmWorkerSilent, why));
        }
        Ok(Answer {
            ok: true,
            action: "wasm",
            tool: self.tool,
            returned,
            output: to_hex(&output),
            blocks: (self.abi == Abi::Diff).then(|| script::decode(&output)),
            digest: self.digest,
            input_bytes: self.input_bytes,
            duration_ms: self.duration_ms,
            timing: self.timing,
        })
    }
}

impl RunEnd {
    fn refusal(self) -> Refusal {
        match self {
            Self::Returned { returned, .. } => {
                Refusal::new(Code::WasmWorkerSilent, format!("returned {returned} without an answer"))
            }
            Self::Unfit(what) => Refusal::new(Code::UnsupportedAbi, cut(&what, 300)),
            Self::Trapped(message) => {
                Refusal::new(Code::WasmTrapped, format!("the module trapped: {}", cut(&message, 140)))
            }
            Self::OutOfMemory(message) => Refusal::new(
                Code::ResourceExceeded,
                format!(
                    "no memory for the instance (ceiling {WASM_MEMORY_MAX_BYTES} bytes): {}",
                    cut(&message, 140)
                ),
            ),
            Self::DeadlinePassed => Refusal::new(
                Code::TimeExceeded,
                format!(
                    "the call ran longer than {WASM_CALL_DEADLINE_MS} ms, which is bounded by the host; its worker was ended"
                ),
            ),
            Self::Exceeded(message) => Refusal::new(
                Code::ResourceExceeded,
                format!("the call used up what the host grants: {}", cut(&message, 140)),
            ),
            Self::Silent(message) => Refusal::new(
                Code::WasmWorkerSilent,
                format!("the worker ended without an answer: {}", cut(&message, 140)),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(abi: Abi) -> Ran {
        let (tool, digest) = ("t".to_owned(), Digest::of(b""));
        Ran { tool, abi, digest, input_bytes: 3, duration_ms: 1.5, timing: Timing::default() }
    }

    fn end(abi: Abi, returned: i32, bytes: usize) -> Result<Answer, Code> {
        let end = RunEnd::Returned { returned, output: vec![0xab; bytes] };
        ran(abi).answer(end).map_err(|refusal| refusal.code)
    }

    #[test]
    fn a_hash_answer_is_the_32_bytes_whatever_was_returned() {
        for returned in [32, 0, -1, i32::MAX] {
            let answer = end(Abi::Buffer1, returned, 32).unwrap();
            assert_eq!((answer.output.len(), answer.returned, answer.blocks), (64, returned, None));
        }
    }

    #[test]
    fn a_length_is_checked_before_it_is_believed() {
        assert_eq!(end(Abi::Diff, -1, 0), Err(Code::DiffFailed));
        assert_eq!(end(Abi::Diff, i32::MIN, 0), Err(Code::DiffFailed));
        assert_eq!(end(Abi::Diff, 262_145, 0), Err(Code::ResourceExceeded));
        assert_eq!(end(Abi::Diff, i32::MAX, 0), Err(Code::ResourceExceeded));
        assert_eq!(end(Abi::Diff, 52, 51), Err(Code::WasmWorkerSilent));
        assert!(end(Abi::Diff, 262_144, 262_144).is_ok());
        assert_eq!(end(Abi::Diff, 0, 0).unwrap().blocks, Some(vec![]));
    }

    #[test]
    fn every_end_has_its_name() {
        let code = |end| ran(Abi::Diff).answer(end).unwrap_err().code;
        assert_eq!(code(RunEnd::Unfit(String::new())), Code::UnsupportedAbi);
        assert_eq!(code(RunEnd::Trapped("unreachable".into())), Code::WasmTrapped);
        assert_eq!(code(RunEnd::OutOfMemory(String::new())), Code::ResourceExceeded);
        assert_eq!(code(RunEnd::DeadlinePassed), Code::TimeExceeded);
        assert_eq!(code(RunEnd::Exceeded(String::new())), Code::ResourceExceeded);
        assert_eq!(code(RunEnd::Silent(String::new())), Code::WasmWorkerSilent);
    }

    #[test]
    fn the_success_value_has_the_documented_fields() {
        let json = serde_json::to_value(end(Abi::Buffer1, 32, 32).unwrap()).unwrap();
        let mut keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let documented =
            ["action", "digest", "durationMs", "inputBytes", "ok", "output", "returned", "timing", "tool"];
        assert_eq!(keys, documented);
    }
}
