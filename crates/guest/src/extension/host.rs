//! What else a host does: the time, the passport, secrets and receipts.

use std::string::String;

use serde::{Deserialize, Serialize};

use super::{ReturnCode, imports, reply};

/// What `current_passport_json` says of a buffer that is too small; it has a number of its own.
const PASSPORT_TOO_SMALL: i32 = -1;

/// Milliseconds since 1970, by the host's clock.
#[must_use]
pub fn now_unix_ms() -> u64 {
    imports::now_unix_ms()
}

/// The passport that the call is bound to: on whose behalf it is.
///
/// # Errors
/// The host's code. [`ReturnCode::HostInternal`] where it answers with something that is no passport.
pub fn passport() -> Result<String, ReturnCode> {
    #[derive(Deserialize)]
    struct Passport {
        calling_passport_id: String,
    }
    let reply = reply::ask(PASSPORT_TOO_SMALL, imports::current_passport_json)?;
    let passport: Passport = serde_json::from_str(&reply).map_err(|_| ReturnCode::HostInternal)?;
    Ok(passport.calling_passport_id)
}

/// A secret that the grant names; `None` where there is none of that id. Keep it out of results and of the log.
///
/// # Errors
/// The host's code.
pub fn secret(id: &str) -> Result<Option<String>, ReturnCode> {
    let too_small = ReturnCode::BufferTooSmall.as_i32();
    match reply::ask(too_small, |reply| imports::get_secret_decrypted(id, reply)) {
        Ok(secret) => Ok(Some(secret)),
        Err(ReturnCode::NotFound) => Ok(None),
        Err(code) => Err(code),
    }
}

/// Puts on record that something was done, with what belongs to it, and gives the host's receipt as JSON.
///
/// `Ok(None)` means that it is on record and that the receipt did not arrive. It is not put on record again.
///
/// # Errors
/// The host's code; then nothing is on record. [`ReturnCode::BadInput`] where the payload cannot be written as JSON.
pub fn receipt(action: &str, payload: &impl Serialize) -> Result<Option<String>, ReturnCode> {
    let payload = serde_json::to_string(payload).map_err(|_| ReturnCode::BadInput)?;
    reply::tell(&[action, &payload], |reply| imports::emit_receipt(action, &payload, reply))
}
