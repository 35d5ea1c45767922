//! The shelf over this computer's folders and processes.

use std::io;
use std::path::PathBuf;

use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_host::ShelfHost;
use toolshelf_sandbox::{CodeCache, HostClock, ProcessExecutor, Shelves, WorkerProgram};

use crate::settings::{self, ShelfDir};

/// The shelf of this computer.
pub(crate) type Shelf = ShelfHost<Shelves, ProcessExecutor, HostClock>;

/// What is on the shelf: the folder that the caller names, or that the settings do, and the built-in tools.
pub(crate) fn shelves(named: Option<PathBuf>) -> Shelves {
    match settings::shelf_dir(named) {
        Some(ShelfDir { path, .. }) => Shelves::with_folder(&path),
        None => Shelves::builtin(),
    }
}

/// The shelf for a program that makes one call and ends.
///
/// # Errors
/// [`Code::ResourceExceeded`] when not even a thread can be had.
pub(crate) fn for_one_call(named: Option<PathBuf>) -> Result<Shelf, Refusal> {
    let executor =
        WorkerProgram::this().and_then(|program| ProcessExecutor::for_one_call(program, cache().ok()));
    let executor = executor.map_err(|err| no_workers(&err))?;
    Ok(ShelfHost::new(shelves(named), executor, HostClock::new()))
}

/// The shelf for a program that makes many calls: workers are started ahead.
///
/// # Errors
/// [`Code::ResourceExceeded`] when not even a thread can be had.
pub(crate) fn for_many_calls(named: Option<PathBuf>) -> Result<Shelf, Refusal> {
    let executor = WorkerProgram::this().and_then(|program| ProcessExecutor::new(program, cache().ok()));
    Ok(ShelfHost::new(shelves(named), executor.map_err(|err| no_workers(&err))?, HostClock::new()))
}

/// The cache of compiled code. A host without one works all the same.
pub(crate) fn cache() -> io::Result<CodeCache> {
    let place = |dir: Option<PathBuf>| dir.ok_or_else(|| io::Error::other("there is no home folder"));
    let folder = place(settings::cache_dir())?.join("code");
    let key = place(settings::data_dir())?.join("code.key");
    CodeCache::open(&folder, &key)
}

pub(crate) fn no_workers(err: &io::Error) -> Refusal {
    Refusal::new(Code::ResourceExceeded, format!("no worker can be started: {err}"))
}
