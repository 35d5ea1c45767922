//! The engine of the shelf: the path of one call, over small ports that a platform implements.
//!
//! The engine knows when to read, hash, wait, run and refuse; it knows no browser, no process, no file and no clock of
//! its own. No future here needs to be `Send`: a browser's never is.
//!
//! | module | idea |
//! |---|---|
//! | [`ports`] | what a platform provides: a store, an executor, a clock |
//! | [`gate`] | first come, first served: four calls run, thirty-two wait, the rest are refused |
//! | [`shelf_host`] | admission over a store, and the call path |

pub mod gate;
pub mod ports;
pub mod shelf_host;

pub use gate::Gate;
pub use ports::{Clock, CompileFault, Executor, Run, ShelfStore};
pub use shelf_host::{Reading, ShelfHost, admit_all};
