//! The workers that compile extensions, as the sandbox of extensions has them.

use std::fmt;
use std::io;

use toolshelf_host::CompileFault;

use super::Kind;
use super::compile;
use super::keeper::{Keeper, WorkerProgram};

/// Starts processes that compile modules for an engine of this process.
pub(crate) struct CompileWorkers {
    keeper: Keeper,
}

impl CompileWorkers {
    /// Workers that are started from `program`, each when it is needed.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(crate) fn new(program: WorkerProgram) -> io::Result<Self> {
        Ok(Self { keeper: Keeper::new(program, false)? })
    }

    /// Compiles a module for the engine of extensions.
    pub(crate) async fn compile_extension(&self, module: &[u8]) -> Result<Vec<u8>, CompileFault> {
        compile::in_worker(&self.keeper, Kind::CompileExtension, module).await
    }
}

impl fmt::Debug for CompileWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompileWorkers").finish_non_exhaustive()
    }
}
