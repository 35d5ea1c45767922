//! How a command ended.

use std::process::ExitCode;

use serde_json::Value;
use toolshelf_core::refusal::Code;

/// What a command has to say.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// For programs; null when there is nothing to print.
    pub(crate) json: Value,
    /// For people; whole lines.
    pub(crate) text: String,
    /// For scripts.
    pub(crate) exit: Exit,
}

impl Outcome {
    pub(crate) fn done(json: Value, text: String) -> Self {
        Self { json, text, exit: Exit::Done }
    }

    /// The end of a command that has said all that it had to say.
    pub(crate) fn silent() -> Self {
        Self::done(Value::Null, String::new())
    }
}

/// The program's exit codes. They are part of its contract; `--help` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The host said no.
    Refused,
    /// The module ran and failed, or used up what the host grants.
    Failed,
    /// A file or a folder is not there, or cannot be read or written.
    Outside,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        // 2 is for command lines that are not understood.
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Failed => 3,
            Exit::Outside => 4,
        })
    }
}

impl From<Code> for Exit {
    fn from(code: Code) -> Self {
        match code {
            Code::WasmTrapped
            | Code::DiffFailed
            | Code::TimeExceeded
            | Code::ResourceExceeded
            | Code::WasmWorkerSilent => Self::Failed,
            Code::ShelfUnavailable
            | Code::ShelfUnreadable
            | Code::FileUnavailable
            | Code::StorageUnavailable
            | Code::TaskRootUnavailable
            | Code::TaskAuditUnavailable
            | Code::ConfigInvalid
            | Code::ListenFailed
            | Code::MachineUnreachable
            | Code::MachineTimeout
            | Code::MachineClosed => Self::Outside,
            _ => Self::Refused,
        }
    }
}
