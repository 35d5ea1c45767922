//! The shelf's ports on a person's own computer: folders as shelves, and each call in a process of its own.
//!
//! A module is compiled in one process, which sees nothing but the module, and run in another, which sees nothing but
//! the compiled code and the inputs. This process, which has the files and the caller, neither compiles nor loads any
//! code that comes from a module.
//!
//! | module | idea |
//! |---|---|
//! | [`engine`] | wasmtime: how modules are compiled and how one call runs, as plain functions |
//! | [`process`] | the single-use worker process: starting, shutting in, handing over, ending; the [`Executor`] |
//! | [`cache`] | compiled code on disk, authenticated |
//! | [`folder`] | a folder out of which nothing is read or written |
//! | [`private`] | files and folders of the host's own |
//! | [`store`] | shelves in folders, and the built-in one |
//! | [`clock`] | the time of this computer |
//!
//! [`Executor`]: toolshelf_host::Executor

#[cfg(not(unix))]
compile_error!("worker processes are started, shut in and ended by Unix means");

pub mod cache;
pub mod clock;
pub mod engine;
pub mod folder;
mod native;
pub mod private;
pub mod process;
pub mod store;

pub use cache::CodeCache;
pub use clock::HostClock;
pub use process::{Isolation, ProcessExecutor, WorkerProgram, worker_main};
pub use store::{BUILTIN, Shelves};
