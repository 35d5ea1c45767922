//! The npm package: what `index.js` in `crates/browser/package/` calls. Only built with the feature `api`.
//!
//! | module | idea |
//! |---|---|
//! | [`rules`] | the pure functions: bounds, inputs, the reducer, redaction, the dispatcher's choice |
//! | [`host`] | `createBrowserTaskHost`: a task host over what a caller of JavaScript gives |
//! | [`executor`] | executors and roots that are JavaScript values |
//! | [`area`] | the journal in a storage like `localStorage` |
//! | [`shelf`] | the shelf, and its tools as an executor |
//! | [`platform`] | what `platform.js` does for this crate: workers in Node, calls that cannot throw |
//!
//! Values that a person's code hands over come as JSON text: `index.js` writes it, so that no getter and no proxy runs
//! in the middle of a function of this crate. Answers are plain objects.

pub mod area;
pub mod executor;
pub mod host;
pub mod platform;
pub mod rules;
pub mod shelf;

use serde_json::Value;

/// The value in a JSON text; `null` for what is no JSON.
fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}
