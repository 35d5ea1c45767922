//! Facts: values under an entity and a key, read and written as far as the grant of the call reaches.

use std::string::String;
use std::vec::Vec;

use serde::Deserialize;

use super::{ReturnCode, imports, reply};

/// The confidence of a fact that is certain, in thousandths.
pub const CERTAIN: i32 = 1_000;

/// One version of a fact.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Fact {
    /// Id of this version.
    pub fact_id: String,
    /// What it is about.
    pub entity: String,
    /// Which of the entity's facts it is.
    pub key: String,
    /// What it says.
    pub value: String,
    /// How sure its writer was, from 0 to 1.
    pub confidence: f64,
    /// When it was stored, in milliseconds since 1970.
    pub stored_at_unix_ms: u64,
}

/// The newest version of a fact; `None` where there is none.
///
/// # Errors
/// The host's code. [`ReturnCode::HostInternal`] where it answers with something that is no fact.
pub fn read(entity: &str, key: &str) -> Result<Option<Fact>, ReturnCode> {
    match reply::ask(TOO_SMALL, |reply| imports::read_fact(entity, key, reply)) {
        Ok(fact) => parsed(&fact).map(Some),
        Err(ReturnCode::NotFound) => Ok(None),
        Err(code) => Err(code),
    }
}

/// Stores a fact that is certain. See [`store_with_confidence`].
///
/// # Errors
/// The host's code; then nothing is stored.
pub fn store(entity: &str, key: &str, value: &str) -> Result<Option<Fact>, ReturnCode> {
    store_with_confidence(entity, key, value, CERTAIN)
}

/// Stores a fact, and gives it back as it is stored. The confidence is in thousandths, 0 to [`CERTAIN`]; the host
/// takes anything else for the nearer of the two.
///
/// `Ok(None)` means that the fact is stored and that the host's copy did not arrive: it did not fit, or was no fact.
/// It is not stored again to find out, for that would make another version.
///
/// # Errors
/// The host's code; then nothing is stored.
pub fn store_with_confidence(
    entity: &str,
    key: &str,
    value: &str,
    thousandths: i32,
) -> Result<Option<Fact>, ReturnCode> {
    let texts = [entity, key, value];
    let stored = reply::tell(&texts, |reply| imports::store_fact(entity, key, value, thousandths, reply))?;
    Ok(stored.and_then(|fact| parsed(&fact).ok()))
}

/// The newest versions of facts whose entities begin with `prefix`, the best first, at most `top_k` of them (the host
/// gives 1 to 256). With a `text`, only those in which one of its words occurs.
///
/// # Errors
/// The host's code. [`ReturnCode::HostInternal`] where it answers with something that is no list of facts, and
/// [`ReturnCode::BufferTooSmall`] where the facts are more than [`REPLY_MAX_BYTES`](super::REPLY_MAX_BYTES): ask for
/// fewer.
pub fn query(prefix: &str, text: &str, top_k: usize) -> Result<Vec<Fact>, ReturnCode> {
    let top_k = i32::try_from(top_k).unwrap_or(i32::MAX);
    parsed(&reply::ask(TOO_SMALL, |reply| imports::query_facts(prefix, text, top_k, reply))?)
}

const TOO_SMALL: i32 = ReturnCode::BufferTooSmall.as_i32();

fn parsed<'de, T: Deserialize<'de>>(reply: &'de str) -> Result<T, ReturnCode> {
    serde_json::from_str(reply).map_err(|_| ReturnCode::HostInternal)
}
