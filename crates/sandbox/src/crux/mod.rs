//! Extensions: modules that run in this process, in a sandbox of wasmtime, with imports that reach what a grant allows.
//!
//! A call has a store of its own, with fuel, a deadline and a ceiling of memory, and leaves nothing behind. Nothing here
//! knows HTTP, manifests or where modules are kept: who calls has read and hashed the bytes in this call
//! ([`ModuleBytes`]), has compared the digest with the pinned one, and has looked up the grant.
//!
//! | part | idea |
//! |---|---|
//! | [`extensions`] | [`Extensions`]: from hashed bytes to code that can be called |
//! | [`call`] | one call, from the request to the result |
//! | [`traps`] | why there is no result |
//! | [`limits`] | what a call may use |
//! | [`ports`] | facts, secrets, receipts and time, as the imports need them |
//! | `host_abi` | the imports; `memory` and `state` are what they share |
//! | [`log`] | the lines of a call, bounded and redacted |
//! | [`engine`] | the engine and its pool; `ticker` counts its epochs |
//! | `codes` | compiled code in memory |
//! | `slots` | places for calls |

pub mod call;
mod codes;
pub mod engine;
pub mod extensions;
mod host_abi;
pub mod limits;
pub mod log;
mod memory;
pub mod ports;
mod slots;
mod state;
mod ticker;
pub mod traps;

pub use call::{Call, FailedCall};
pub use extensions::{Extension, Extensions, ModuleBytes, StartFault};
pub use limits::Limits;
pub use ports::{CallIdentity, Ports};
pub use traps::CallFault;
