//! The shelf in a browser tab: the engine of `toolshelf-host` over workers, IndexedDB and the page's clock.
//!
//! No server stands behind it and nothing leaves the tab. No SharedArrayBuffer is used, so the page needs no special
//! headers.
//!
//! | module | idea |
//! |---|---|
//! | [`isolate`] | single-use workers, a few of them started ahead |
//! | [`executor`] | a call in an isolate, ended at its deadline |
//! | [`storage`] | shelves in IndexedDB, small modules in `localStorage`; or all in memory where there is neither |
//! | [`builtin`] | the shelf that comes with the page |
//! | [`pick`] | files that a person picked or dropped |
//! | [`companion`] | a program on the person's own computer that serves this page: its shelf, its tasks, its live session |
//! | [`texts`] | calls whose arguments are texts |
//! | [`webmcp`] | what can be called here, offered to the browser's own agent |
//! | [`live_model`] | the browser's own model in a conversation |
//! | [`speech`] | a person's voice as text, and text as a voice |
//! | [`tasks`] | tasks of this tab: their journal, key, folders and executors |
//! | [`toolshelf`] | all of it together, as the page uses it |
//! | [`console`] | the same for scripts: `globalThis.toolshelf` |
//! | `api` | the npm package, behind the feature `api` |

#[cfg(feature = "api")]
pub mod api;
pub mod builtin;
pub mod clock;
pub mod companion;
pub mod console;
mod database;
pub mod executor;
pub mod isolate;
mod js;
mod listeners;
pub mod live_model;
pub mod pick;
mod small;
pub mod speech;
mod stop;
pub mod storage;
pub mod tasks;
pub mod texts;
pub mod toolshelf;
pub mod webmcp;

pub use builtin::BUILTIN;
pub use pick::PickedFile;
pub use toolshelf::{Added, CallEvent, Removed, Toolshelf};
pub use toolshelf_core as core;
pub use toolshelf_host::Reading;
