//! What a platform provides to the engine.

use std::future::Future;

use toolshelf_core::abi::Abi;
use toolshelf_core::call::RunEnd;
use toolshelf_core::limits::{WASM_CALL_DEADLINE_MS, WASM_REAP_MS};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::shelf::{FileFault, Hashed};

/// The place where shelves are kept. A shelf is named by a key that is its folder's.
pub trait ShelfStore {
    /// Keys of all shelves, in the order in which they claim tool ids.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`](toolshelf_core::Code::StorageUnavailable).
    fn shelves(&self) -> impl Future<Output = Result<Vec<String>, Refusal>>;

    /// The name of a shelf whose manifest gives none.
    fn default_name(&self, shelf: &str) -> String {
        shelf.to_owned()
    }

    /// The bytes of a shelf's `manifest.json`.
    ///
    /// # Errors
    /// [`Code::ShelfUnavailable`](toolshelf_core::Code::ShelfUnavailable) when there is none, and what
    /// [`shelves`](Self::shelves) answers when the store itself fails.
    fn manifest(&self, shelf: &str) -> impl Future<Output = Result<Vec<u8>, Refusal>>;

    /// Reads the file at `path` inside a shelf, and hashes what was read. Every call reads again.
    ///
    /// # Errors
    /// A [`FileFault`]; files above the module bound are not read.
    fn module(&self, shelf: &str, path: &str) -> impl Future<Output = Result<Hashed, FileFault>>;
}

/// Runs modules, each call in an isolate of its own that is used once.
pub trait Executor {
    /// How long an isolate that was ended in a loop may go on using a core, in milliseconds. Its place at the gate is
    /// kept for that time.
    const REAP_MS: u32 = WASM_REAP_MS;

    /// Compiled code. It may be kept and used for any number of calls.
    type Compiled: Clone;

    /// Compiles the bounded copy of a module.
    ///
    /// # Errors
    /// A [`CompileFault`].
    fn compile(&self, bounded: Vec<u8>) -> impl Future<Output = Result<Self::Compiled, CompileFault>>;

    /// A fresh isolate that has all that its one run needs, and waits for the word.
    type Prepared;

    /// Gets a fresh isolate and hands it the module and the inputs. No code of the module runs yet.
    fn prepare(
        &self,
        compiled: Self::Compiled,
        abi: Abi,
        inputs: Vec<Vec<u8>>,
    ) -> impl Future<Output = Self::Prepared>;

    /// Runs the ABI's export in the isolate, which is ended `deadline_ms` after it began to run.
    fn run(&self, prepared: Self::Prepared, deadline_ms: u32) -> impl Future<Output = Run>;
}

/// How a run ended and what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The end.
    pub end: RunEnd,
    /// Time until an isolate was ready, in milliseconds.
    pub worker_ms: f64,
    /// Time from there to the end, in milliseconds.
    pub run_ms: f64,
}

/// Why a module was not compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileFault {
    /// The engine calls it invalid and says why.
    Invalid(String),
    /// The deadline passed first.
    DeadlinePassed,
    /// Compiling used up what the host grants for it, and says what.
    TooCostly(String),
    /// What compiles ended without an answer, and says how.
    Silent(String),
}

impl CompileFault {
    /// The refusal that names the fault.
    #[must_use]
    pub fn refusal(self) -> Refusal {
        let (code, why) = match self {
            Self::Invalid(message) => {
                (Code::WasmInvalid, format!("the module does not compile: {}", cut(&message, 140)))
            }
            Self::DeadlinePassed => (
                Code::TimeExceeded,
                format!(
                    "compiling took longer than {WASM_CALL_DEADLINE_MS} ms, which is bounded by the host"
                ),
            ),
            Self::TooCostly(message) => (
                Code::ResourceExceeded,
                format!("compiling used up what the host grants: {}", cut(&message, 140)),
            ),
            Self::Silent(message) => (
                Code::WasmWorkerSilent,
                format!("what compiles ended without an answer: {}", cut(&message, 140)),
            ),
        };
        Refusal::new(code, why)
    }
}

/// Time.
pub trait Clock {
    /// Milliseconds since some fixed moment; never runs backwards.
    fn now_ms(&self) -> f64;

    /// Calls `then` once, `ms` milliseconds from now.
    fn after(&self, ms: u32, then: Box<dyn FnOnce()>);
}
