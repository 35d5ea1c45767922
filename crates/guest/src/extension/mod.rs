//! Extensions: modules that the companion calls with JSON, and that may ask it for facts, secrets and receipts.
//!
//! | part | idea |
//! |---|---|
//! | [`extension!`](crate::extension!) | exports a function as the module's `extension_call` |
//! | [`Request`] | what a call brings, with arguments of a type of one's own |
//! | [`Failure`] | why a call has no result; `?` makes one of any error |
//! | [`facts`] | reading, storing and querying facts |
//! | [`log`] | lines for whoever called, also when the call fails |
//! | [`now_unix_ms`], [`passport`], [`secret`], [`receipt`] | the other things that the host does |
//! | [`ReturnCode`] | why it did not |
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use toolshelf_guest::extension::{Failure, Request, facts, log};
//!
//! #[derive(Deserialize)]
//! struct Args {
//!     entity: String,
//! }
//!
//! #[derive(Serialize)]
//! struct Answer {
//!     words: usize,
//! }
//!
//! toolshelf_guest::extension!(count);
//!
//! fn count(request: Request<Args>) -> Result<Answer, Failure> {
//!     let entity = &request.args.entity;
//!     let note = facts::read(entity, "text")?.ok_or("there is no such note")?;
//!     let words = note.value.split_whitespace().count();
//!     facts::store(entity, "words", &words.to_string())?;
//!     log::info(format_args!("{entity} has {words} words"));
//!     Ok(Answer { words })
//! }
//! # fn main() {}
//! ```
//!
//! # Building
//!
//! Build the extension as a `cdylib` for `wasm32-unknown-unknown`. The toolchain's own layout is the right one: a stack
//! of 1 MiB from address 0 upwards, then data, then the heap.
//!
//! # Layout
//!
//! The host writes the request at address 0 and has the response written behind it, whatever the module keeps there.
//! In a Rust module that is the stack. It is used from its end downwards, so the request is copied out before anything
//! else, and the response is written after everything else: at both times only the uppermost 64 KiB of the stack may
//! be in use. A call in which request and response reach further up than that, or into data or heap, ends in a trap
//! and a line of the log, before anything is believed. Request and response may have 896 KiB together; a host sends
//! far less.
//!
//! # Ends
//!
//! | what happens | what the caller sees |
//! |---|---|
//! | the function returns a value | `{"result": value}` |
//! | it returns a [`Failure`], or the arguments are not of its type | `{"result": {"error": "why"}}`, and a line of the log |
//! | the response is longer than its buffer | the export returns -1, and a line of the log |
//! | a panic | a trap, and a line of the log that says where |
//!
//! On other targets than wasm32 [`answer`] is a call, and there is no host. Host functions answer there what a host answers that has nothing, so
//! that the rest of an extension can have native tests.

mod call;
pub mod facts;
mod failure;
mod host;
mod imports;
pub mod log;
#[cfg(any(target_arch = "wasm32", test))]
mod placed;
mod rc;
mod reply;

#[doc(hidden)]
pub use call::is_tool;
pub use call::{Request, answer};
pub use failure::Failure;
pub use host::{now_unix_ms, passport, receipt, secret};
#[doc(hidden)]
#[cfg(target_arch = "wasm32")]
pub use placed::serve;
pub use rc::{RESERVED_CODES, ReturnCode};
pub use reply::REPLY_MAX_BYTES;

/// What `extension_call` returns when its response does not fit.
pub const RESPONSE_OVERFLOW: i32 = -1;

/// Exports a function as the tool, or all the tools, of an extension: `fn(Request<A>) -> Result<R, Failure>`.
///
/// `A` is what its arguments are read into, `R` what its result is written from. Where there are several tools,
/// [`Request::tool`](crate::extension::Request) says which one is called.
///
/// Where the target is not `wasm32` this only checks the function's type.
#[macro_export]
macro_rules! extension {
    ($tool:path) => {
        const _: () = {
            #[cfg(target_arch = "wasm32")]
            #[unsafe(no_mangle)]
            extern "C" fn extension_call(req_ptr: i32, req_len: i32, resp_ptr: i32, resp_cap: i32) -> i32 {
                // SAFETY: the function has no name outside of this block, so only the host calls it.
                unsafe { $crate::extension::serve($tool, (req_ptr, req_len), (resp_ptr, resp_cap)) }
            }

            #[cfg(not(target_arch = "wasm32"))]
            const _: fn() = || $crate::extension::is_tool($tool);
        };
    };
}
