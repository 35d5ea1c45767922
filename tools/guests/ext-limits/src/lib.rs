//! An extension for tests: it goes to the limits of a call, and past them.

#![forbid(unsafe_code)]

use std::hint::black_box;

use serde::Deserialize;
use serde_json::{Value, json};
use toolshelf_guest::extension::{Failure, Request, facts};

toolshelf_guest::extension!(limits);

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Args {
    /// Answer with a text of so many bytes.
    Answer(usize),
    /// Use so many KiB of the stack, then say whether the request is still what it was.
    Stack { kib: usize, request: String },
    /// Have a local value that takes most of the stack, then say the same.
    Frame { request: String },
    /// Call oneself without end.
    Recurse,
    /// Panic with those words.
    Panic(String),
    /// Answer with something that JSON does not know.
    NoJson,
    /// Store a fact with a value of so many bytes that JSON escapes.
    Store(usize),
}

fn limits(request: Request<Args>) -> Result<Value, Failure> {
    match request.args {
        Args::Answer(bytes) => Ok("x".repeat(bytes).into()),
        Args::Stack { kib, request } => Ok(json!({ "deep": deep(kib), "request": request })),
        Args::Frame { request } => Ok(json!({ "sum": framed(), "request": request })),
        Args::Recurse => Ok(deep(usize::MAX).into()),
        Args::Panic(words) => panic!("{words}"),
        Args::NoJson => Ok(serde_json::to_value(std::collections::BTreeMap::from([((1, 2), 3)]))?),
        Args::Store(bytes) => {
            let stored = facts::store("limits", "value", &"\u{1}".repeat(bytes))?;
            Ok(stored.map(|fact| fact.value.len()).into())
        }
    }
}

/// Adds up the bytes of a local value.
#[inline(never)]
fn framed() -> u64 {
    black_box([7_u8; 1_000_000]).iter().map(|&byte| u64::from(byte)).sum()
}

/// Calls itself so many times, with a KiB of the stack each.
#[inline(never)]
fn deep(kib: usize) -> usize {
    let used = black_box([1_u8; 1_008]);
    if kib == 0 { 0 } else { deep(kib - 1) + usize::from(used[kib % used.len()]) }
}
