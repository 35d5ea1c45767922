//! What the author of a tool or of an extension depends on.
//!
//! An extension has imports and JSON; the module `extension`, behind the feature of that name, is about them. All else
//! here is about shelf tools.
//!
//! A tool is a WebAssembly module without imports that speaks one of two buffer ABIs: the host writes the input at
//! fixed addresses, calls one export and reads the output at a fixed address ([`layout`] has the numbers). This crate
//! hands the input over as plain slices, so that a tool is a safe function and one line that exports it:
//!
//! ```
//! use toolshelf_guest::{Script, ScriptFull, lines};
//!
//! /// Calls everything different that is not the same.
//! fn all_or_nothing(a: &[u8], b: &[u8], script: &mut Script<'_>) -> Result<(), ScriptFull> {
//!     if a == b {
//!         script.equal(lines(a).count())
//!     } else {
//!         script.delete(lines(a).count())?;
//!         script.insert(lines(b).count())
//!     }
//! }
//!
//! toolshelf_guest::buffer_abi_diff!(all_or_nothing);
//! # fn main() {}
//! ```
//!
//! # Building
//!
//! Build the tool as a `cdylib` for `wasm32-unknown-unknown`, with `panic = "abort"`. The linker does not know of the
//! buffers and has to be told to keep its own things out of their way, in the tool's `.cargo/config.toml`:
//!
//! ```toml
//! [target.wasm32-unknown-unknown]
//! rustflags = [
//!     # `buffer-abi/diff`: the stack below the buffers, where an overflow traps; data and heap above them.
//!     "-Clink-arg=--stack-first",
//!     "-Clink-arg=-zstack-size=65536",
//!     "-Clink-arg=--global-base=458752",
//!     # No more memory than any host grants.
//!     "-Clink-arg=--max-memory=67108864",
//! ]
//! ```
//!
//! Below the buffer of `buffer-abi/1` there is no room for a stack, so there everything goes above it:
//! `--no-stack-first` and `--global-base=10240`.
//!
//! A module that is linked otherwise does not corrupt itself: the export compares the linker's own figures with the
//! buffers on every call, and returns [`refusal::MISLINKED`] without touching them.

#![no_std]

#[cfg(any(test, feature = "extension"))]
extern crate std;

#[doc(hidden)]
#[cfg(target_arch = "wasm32")]
pub mod buffers;
#[cfg(feature = "extension")]
pub mod extension;
pub mod layout;
#[cfg(any(target_arch = "wasm32", all(test, feature = "extension")))]
mod linker;
pub mod refusal;
mod script;

pub use script::{Script, ScriptFull};

/// A tool that speaks `buffer-abi/1`: from an input to an output of fixed size.
pub type HashTool = fn(&[u8]) -> [u8; layout::hash::OUTPUT_BYTES];

/// A tool that speaks `buffer-abi/diff`: from an old and a new text to the script that leads from one to the other.
pub type DiffTool = fn(&[u8], &[u8], &mut Script<'_>) -> Result<(), ScriptFull>;

/// The lines of a text as `buffer-abi/diff` counts them.
///
/// A line is its bytes up to and including the line feed. The last one may lack it, and an empty text has none.
///
/// ```
/// let text = b"one\r\ntwo";
/// assert_eq!(toolshelf_guest::lines(text).collect::<Vec<_>>(), [&b"one\r\n"[..], b"two"]);
/// ```
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

/// Exports a [`HashTool`] as the tool of a module that speaks `buffer-abi/1`.
///
/// Where the target is not `wasm32` this only checks the function's type, so that a tool can have native tests.
#[macro_export]
macro_rules! buffer_abi_1 {
    ($tool:path) => {
        const _: () = {
            const TOOL: $crate::HashTool = $tool;

            #[cfg(target_arch = "wasm32")]
            #[unsafe(no_mangle)]
            extern "C" fn sha256(len: i32) -> i32 {
                // SAFETY: the function has no name outside of this block, so only the host calls it.
                unsafe { $crate::buffers::hash(TOOL, len) }
            }
        };
    };
}

/// Exports a [`DiffTool`] as the tool of a module that speaks `buffer-abi/diff`.
///
/// Where the target is not `wasm32` this only checks the function's type, so that a tool can have native tests.
#[macro_export]
macro_rules! buffer_abi_diff {
    ($tool:path) => {
        const _: () = {
            const TOOL: $crate::DiffTool = $tool;

            #[cfg(target_arch = "wasm32")]
            #[unsafe(no_mangle)]
            extern "C" fn diff(len_a: i32, len_b: i32) -> i32 {
                // SAFETY: the function has no name outside of this block, so only the host calls it.
                unsafe { $crate::buffers::diff(TOOL, len_a, len_b) }
            }
        };
    };
}
