//! The extensions of this process: the engine, the imports, and the code of the modules that were called.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::sync::Semaphore;
use toolshelf_core::Digest;
use toolshelf_core::limits::WASM_MODULE_MAX_BYTES;
use wasmtime::{Engine, InstancePre, Linker, Module};

use super::codes::{CODES_MAX, CODES_MAX_BYTES, Codes};
use super::engine::{EXTENSION_INSTANCES, ExtensionEngine};
use super::host_abi;
use super::slots::Slots;
use super::state::CallState;
use super::traps::CallFault;
use crate::cache::CodeCache;
use crate::native;
use crate::process::{CompileWorkers, WorkerProgram};

/// Modules that are compiled at the same time. Each is granted a gibibyte of memory.
const COMPILE_TURNS: usize = 2;

/// Runs extensions in this process. It is made once, and shared by all calls.
pub struct Extensions {
    pub(super) engine: ExtensionEngine,
    pub(super) slots: Slots,
    linker: Linker<CallState>,
    codes: Codes<Result<Extension, CallFault>>,
    disk: Option<CodeCache>,
    workers: CompileWorkers,
    turns: Semaphore,
}

/// The bytes of a module, and their digest, which was taken of these very bytes.
#[derive(Debug, Clone)]
pub struct ModuleBytes {
    bytes: Vec<u8>,
    digest: Digest,
}

impl ModuleBytes {
    /// Hashes what was read, for this call.
    #[must_use]
    pub fn hash(bytes: Vec<u8>) -> Self {
        let digest = Digest::of(&bytes);
        Self { bytes, digest }
    }

    /// Their digest, to be compared with the pinned one.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// A module that is ready to be called any number of times. Clones share its code.
#[derive(Clone)]
pub struct Extension {
    pub(super) pre: InstancePre<CallState>,
    /// Memories and tables that it declares.
    pub(super) declared: u32,
}

/// Why there are no extensions in this process.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The engine cannot be had here.
    #[error("wasm engine init failed: {0:#}")]
    Engine(wasmtime::Error),
    /// What compiles cannot be started.
    #[error("no thread for the workers that compile: {0}")]
    Workers(io::Error),
}

impl Extensions {
    /// Starts the engine, with epochs that are `tick` long. Modules are compiled by workers that are started from
    /// `program`, and their code is kept in `cache` beside that of shelves.
    ///
    /// # Errors
    /// A [`StartFault`].
    pub fn start(
        program: WorkerProgram,
        cache: Option<&CodeCache>,
        tick: Duration,
    ) -> Result<Self, StartFault> {
        let engine = ExtensionEngine::start(tick).map_err(StartFault::Engine)?;
        let mut linker = Linker::new(engine.engine());
        host_abi::link(&mut linker).map_err(StartFault::Engine)?;
        Ok(Self {
            engine,
            slots: Slots::new(EXTENSION_INSTANCES),
            linker,
            codes: Codes::new(CODES_MAX, CODES_MAX_BYTES),
            // A cache that cannot be used only costs time.
            disk: cache.and_then(|cache| cache.for_extensions().ok()),
            workers: CompileWorkers::new(program).map_err(StartFault::Workers)?,
            turns: Semaphore::new(COMPILE_TURNS),
        })
    }

    /// The module, if its code is in memory.
    #[must_use]
    pub fn known(&self, module: &ModuleBytes) -> Option<Extension> {
        self.codes.get(module.digest)?.ok()
    }

    /// The module, ready to be called: its code is taken from memory or disk, or compiled in a worker that is ended
    /// after 20 seconds or at a gibibyte of memory. It needs a Tokio runtime.
    ///
    /// # Errors
    /// [`CallFault::Compile`] for what is no module, [`CallFault::CompileBudget`] and [`CallFault::CompileSilent`] for
    /// a worker that did not end well, and [`CallFault::Instantiate`] for imports that are not there and for a module
    /// that is larger than a slot.
    pub async fn prepare(&self, module: &ModuleBytes) -> Result<Extension, CallFault> {
        if let Some(known) = self.codes.get(module.digest) {
            return known;
        }
        // Nobody closes it, so nothing is lost where it says that it is closed.
        let _turn = self.turns.acquire().await;
        // Whoever had the turn before may have been at the same module.
        if let Some(known) = self.codes.get(module.digest) {
            return known;
        }
        let (prepared, bytes) = match self.load(module).await {
            Ok((loaded, bytes)) => (self.link(&loaded), bytes),
            // The same bytes will always be refused so, and need not be compiled to say it again.
            Err(fault @ (CallFault::Compile(_) | CallFault::Instantiate(_))) => (Err(fault), 0),
            Err(fault) => return Err(fault),
        };
        self.codes.put(module.digest, prepared.clone(), bytes);
        prepared
    }

    /// The code, loaded, and how many bytes it has.
    async fn load(&self, module: &ModuleBytes) -> Result<(Module, usize), CallFault> {
        let (digest, engine) = (module.digest, self.engine.engine().clone());
        if let Some(disk) = self.disk.clone() {
            let engine = engine.clone();
            let kept = blocking(move || disk.load(digest).map(|code| load(&engine, &code)));
            if let Some(loaded) = kept.await? {
                return loaded;
            }
        }
        if module.bytes.len() > WASM_MODULE_MAX_BYTES {
            let why = format!("the module is {} bytes, above {WASM_MODULE_MAX_BYTES}", module.bytes.len());
            return Err(CallFault::CompileBudget(why));
        }
        let code = self.workers.compile_extension(&module.bytes).await?;
        let disk = self.disk.clone();
        let loading = blocking(move || {
            if let Some(disk) = disk {
                disk.store(digest, &code);
            }
            load(&engine, &code)
        });
        loading.await?
    }

    fn link(&self, module: &Module) -> Result<Extension, CallFault> {
        let resources = module.resources_required();
        let pre = self.linker.instantiate_pre(module);
        let pre = pre.map_err(|err| CallFault::of_instantiation(&err, false))?;
        Ok(Extension { pre, declared: resources.num_memories + resources.num_tables })
    }
}

fn load(engine: &Engine, code: &[u8]) -> Result<(Module, usize), CallFault> {
    let module = native::load_extension(engine, code);
    let module = module.map_err(|err| CallFault::of_instantiation(&err, false))?;
    Ok((module, code.len()))
}

/// Reading, verifying and loading a large module's code takes milliseconds, for which no other call should wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, CallFault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|err| CallFault::CompileSilent(err.to_string()))
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extension").field("declared", &self.declared).finish_non_exhaustive()
    }
}
