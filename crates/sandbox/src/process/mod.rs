//! Each call in a process of its own, which is started ahead, shut in, used once and ended (DESIGN 3.4).
//!
//! | part | duty |
//! |---|---|
//! | [`ProcessExecutor`] | the engine's port: compiles, prepares and runs in workers |
//! | `compile` | compiling in a worker; `compile_workers` does so for extensions |
//! | `keeper` | the thread that starts and ends the processes |
//! | `lease` | a worker in the hands of one call, seen from outside |
//! | `worker` | the worker seen from inside |
//! | `nursery` | a process that has the engine ready; a worker that is its copy starts in a fraction of the time |
//! | `shut_in` | limits, Landlock and the filter of system calls |
//! | `wire` | what goes over the socket |

mod compile;
#[cfg(feature = "wasm-extensions")]
mod compile_workers;
mod executor;
mod isolation;
mod keeper;
mod lease;
#[cfg(target_os = "linux")]
mod nursery;
mod shut_in;
mod wire;
mod worker;

use toolshelf_core::limits::{WASM_CALL_DEADLINE_MS, WASM_CHILD_WATCHDOG_MS};

#[cfg(feature = "wasm-extensions")]
pub(crate) use compile_workers::CompileWorkers;
pub use executor::{Compiled, Prepared, ProcessExecutor};
pub use isolation::Isolation;
pub use keeper::WorkerProgram;
pub use worker::worker_main;

/// First argument of a program that is started as a worker. The arguments behind it are for [`worker_main`].
pub const WORKER_COMMAND: &str = "__worker";

/// Most bytes of compiled code that a compile worker may hand back. No module within the host's bound that people
/// write comes near it.
pub const COMPILED_MAX_BYTES: usize = 128 * 1024 * 1024;

/// What a worker is for. Each kind has limits of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Compiles one module of a shelf.
    Compile,
    /// Compiles one module for the engine of extensions.
    #[cfg(feature = "wasm-extensions")]
    CompileExtension,
    /// Runs one call.
    Run,
    /// Has the engine ready and makes copies of itself, each of which runs one call.
    Nursery,
}

/// How long an extension may be compiled, in milliseconds. It happens once for a module, mostly when it is installed;
/// a mebibyte of code takes a second or two.
#[cfg(feature = "wasm-extensions")]
const EXTENSION_COMPILE_DEADLINE_MS: u32 = 20_000;

impl Kind {
    /// How long a job may take, in milliseconds.
    fn deadline_ms(self) -> u32 {
        match self {
            #[cfg(feature = "wasm-extensions")]
            Self::CompileExtension => EXTENSION_COMPILE_DEADLINE_MS,
            Self::Compile | Self::Run | Self::Nursery => WASM_CALL_DEADLINE_MS,
        }
    }

    /// When a worker ends itself although nobody asked it to, in seconds.
    fn watchdog_seconds(self) -> u32 {
        (self.deadline_ms() + (WASM_CHILD_WATCHDOG_MS - WASM_CALL_DEADLINE_MS)).div_ceil(1_000)
    }

    const ALL: &[Self] = &[
        Self::Compile,
        #[cfg(feature = "wasm-extensions")]
        Self::CompileExtension,
        Self::Run,
        Self::Nursery,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            #[cfg(feature = "wasm-extensions")]
            Self::CompileExtension => "compile-extension",
            Self::Run => "run",
            Self::Nursery => "nursery",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word)
    }
}
