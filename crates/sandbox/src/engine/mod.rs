//! wasmtime, as plain functions: compiling a module to machine code, and running one call of it.
//!
//! Neither function knows a process or a limit of time. Who calls them is a worker process that is ended from outside;
//! that bounds what no engine bounds from inside, such as the time of compiling or of a host call. So neither fuel nor
//! epochs are counted here, and the module runs as fast as it can.

mod run;

use std::hash::{Hash as _, Hasher};

use toolshelf_core::digest::Digest;
use wasmtime::{Collector, Config, Engine};

pub use run::{Instance, Start, run};

/// Most stack that a module may use, in bytes. Browsers grant about as much.
const WASM_STACK_BYTES: usize = 1024 * 1024;

/// What both sides must agree on: code that was compiled under one configuration only loads under the same.
fn config() -> Config {
    let mut config = Config::new();
    config
        .collector(Collector::Null)
        .max_wasm_stack(WASM_STACK_BYTES)
        // An instance is made once in a process: pages shared with an image would never be shared with anybody.
        .memory_init_cow(false)
        // A refusal says what trapped, not where.
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .native_unwind_info(false);
    config
}

/// The engine of a process that compiles.
///
/// # Errors
/// When this computer's processor is none that wasmtime compiles for.
pub fn compiling() -> wasmtime::Result<Engine> {
    Engine::new(&config())
}

/// The engine of a process that runs what was compiled. It starts faster, since it has no compiler.
///
/// # Errors
/// As [`compiling`].
pub fn running() -> wasmtime::Result<Engine> {
    Engine::new(config().enable_compiler(false))
}

/// Compiles the bounded copy of a module to code that [`Instance::new`] takes.
///
/// # Errors
/// What the engine says of an invalid module.
pub fn compile(engine: &Engine, bounded: &[u8]) -> wasmtime::Result<Vec<u8>> {
    engine.precompile_module(bounded)
}

/// Names all that compiled code depends on besides the module: wasmtime's version, its configuration, the processor.
#[must_use]
pub fn fingerprint(engine: &Engine) -> Digest {
    struct Bytes(Vec<u8>);
    impl Hasher for Bytes {
        fn write(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut bytes = Bytes(Vec::new());
    engine.precompile_compatibility_hash().hash(&mut bytes);
    Digest::of(&bytes.0)
}
