//! Every bound of the shelf, named once.
//!
//! The names and numbers are those of the tool shelf seed, section 4; the two that it leaves open (fan-out) come from
//! the reference facts, A4. Nothing in a manifest can raise any of them.

/// Wall-clock deadline of one call, in milliseconds. It starts when the worker starts, not while the call waits.
pub const WASM_CALL_DEADLINE_MS: u32 = 5_000;
/// Largest module file that is read and hashed, in bytes.
pub const WASM_MODULE_MAX_BYTES: usize = 16 * 1024 * 1024;
/// Most bytes that a worker may hand back for one call.
pub const WASM_CHILD_MAX_STDOUT_BYTES: usize = 2 * 1024 * 1024;
/// Age at which a worker ends itself although nobody asked it to, in milliseconds.
pub const WASM_CHILD_WATCHDOG_MS: u32 = 6_000;
/// Ceiling of a module's linear memory, in bytes. It is written into the module before it is compiled.
pub const WASM_MEMORY_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Calls that run at the same time.
pub const WASM_MAX_CONCURRENT_WORKERS: usize = 4;
/// Calls that may wait for a permit; one more is refused.
pub const WASM_MAX_QUEUE_DEPTH: usize = 32;
/// Single-use workers that are started ahead, so that a call does not wait for one.
pub const WASM_IDLE_WORKERS: usize = 2;
/// How long an engine may still spend on a loop in a worker that was terminated, in milliseconds.
///
/// Measured in Chromium: the worker is gone at once, its loop uses a core for about two seconds more.
pub const WASM_REAP_MS: u32 = 2_000;

/// Size of a page of linear memory, in bytes.
pub const WASM_PAGE_BYTES: u64 = 65_536;
/// [`WASM_MEMORY_MAX_BYTES`] in pages.
pub const WASM_MEMORY_MAX_PAGES: u64 = WASM_MEMORY_MAX_BYTES / WASM_PAGE_BYTES;
/// Most tables that a module may declare.
pub const WASM_MAX_TABLES: usize = 16;
/// Ceiling of each table, in elements. It is written into the module like the memory's.
pub const WASM_TABLE_MAX_ELEMENTS: u64 = 65_536;

/// Largest `manifest.json` that is read, in bytes.
pub const MANIFEST_MAX_BYTES: usize = 1024 * 1024;
/// Most tools that one manifest may list.
pub const SHELF_MAX_TOOLS: usize = 256;
/// Longest tool id, in characters. Model providers allow no longer function names.
pub const TOOL_ID_MAX_CHARS: usize = 64;
/// Longest name or version of a shelf that is shown, in characters; more is cut.
pub const SHELF_NAME_MAX_CHARS: usize = 120;
/// Longest description of a tool that is shown, in characters; more is cut.
pub const DESCRIPTION_MAX_CHARS: usize = 1_000;
/// Longest path in a manifest, in bytes.
pub const SHELF_PATH_MAX_BYTES: usize = 1_024;
