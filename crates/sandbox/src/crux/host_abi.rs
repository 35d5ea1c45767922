//! The eight imports of the module `crux` (the extensions seed, 6.5).
//!
//! Checks come in this order: memory, arguments (-11), grant (-2), adapter (-5), scope (-3), the work itself, the reply
//! (-12), its buffer (-4). The buffer must lie in the module's memory from the beginning (-11): a write whose answer had
//! no place to go would be done in vain. One that is only too small is found out after the write: the fact is stored,
//! and the module must not store it again.
//!
//! | import | without its adapter | needs in the grant |
//! |---|---|---|
//! | `now_unix_ms`, `log`, `current_passport_json` | is always there | nothing |
//! | `read_fact`, `query_facts` | -5 | a prefix to read |
//! | `store_fact` | -5 | a prefix to write |
//! | `get_secret_decrypted` | -6, before any other check | the secret's id |
//! | `emit_receipt` | -6, before any other check | to be there |

use std::sync::Arc;

use toolshelf_core::extension::envelope::{PassportReply, QUERY_TOP_K_MAX, confidence_of};
use toolshelf_core::extension::rc::{PASSPORT_BUFFER_TOO_SMALL, ReturnCode};
use wasmtime::{Caller, Linker};

use super::log::{LOG_ACROSS_BYTES, LOG_LEVEL_MAX_BYTES, LOG_MESSAGE_MAX_BYTES};
use super::memory::{Reply, buffer, shown, text, write, write_json};
use super::ports::{FactAccess, FactQuery, NewFact, NewReceipt};
use super::state::{CallState, host_call, in_time, memory_of};

/// The module that all are imported from.
const MODULE: &str = "crux";

type Guest<'a> = Caller<'a, CallState>;

/// Adds all imports.
///
/// # Errors
/// When one is there already.
pub(super) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "now_unix_ms", now_unix_ms)?;
    linker.func_wrap(MODULE, "log", log)?;
    linker.func_wrap(MODULE, "current_passport_json", |mut guest: Guest<'_>, ptr: i32, cap: i32| {
        host_call(&mut guest, |memory, state| current_passport_json(memory, state, ptr, cap))
    })?;
    linker.func_wrap(
        MODULE,
        "read_fact",
        |mut guest: Guest<'_>, entity: i32, entity_len: i32, key: i32, key_len: i32, resp: i32, cap: i32| {
            let args = [entity, entity_len, key, key_len, resp, cap];
            host_call(&mut guest, |memory, state| read_fact(memory, state, args))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "store_fact",
        |mut guest: Guest<'_>,
         entity: i32,
         entity_len: i32,
         key: i32,
         key_len: i32,
         value: i32,
         value_len: i32,
         thousandths: i32,
         resp: i32,
         cap: i32| {
            let args = [entity, entity_len, key, key_len, value, value_len, thousandths, resp, cap];
            host_call(&mut guest, |memory, state| store_fact(memory, state, args))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "query_facts",
        |mut guest: Guest<'_>,
         prefix: i32,
         prefix_len: i32,
         query: i32,
         query_len: i32,
         top_k: i32,
         resp: i32,
         cap: i32| {
            let args = [prefix, prefix_len, query, query_len, top_k, resp, cap];
            host_call(&mut guest, |memory, state| query_facts(memory, state, args))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "get_secret_decrypted",
        |mut guest: Guest<'_>, id: i32, id_len: i32, resp: i32, cap: i32| {
            if guest.data().ports.secrets.is_none() {
                return in_time(&guest).map(|()| ReturnCode::NotImplemented.as_i32());
            }
            host_call(&mut guest, |memory, state| get_secret(memory, state, [id, id_len, resp, cap]))
        },
    )?;
    linker.func_wrap(
        MODULE,
        "emit_receipt",
        |mut guest: Guest<'_>,
         action: i32,
         action_len: i32,
         payload: i32,
         payload_len: i32,
         resp: i32,
         cap: i32| {
            if guest.data().ports.receipts.is_none() {
                return in_time(&guest).map(|()| ReturnCode::NotImplemented.as_i32());
            }
            let args = [action, action_len, payload, payload_len, resp, cap];
            host_call(&mut guest, |memory, state| emit_receipt(memory, state, args))
        },
    )?;
    Ok(())
}

fn now_unix_ms(guest: Guest<'_>) -> wasmtime::Result<i64> {
    in_time(&guest)?;
    Ok(i64::try_from(guest.data().now_unix_ms()).unwrap_or(i64::MAX))
}

/// A text that cannot be read is logged as an empty one; without a memory nothing is.
fn log(
    mut guest: Guest<'_>,
    level: i32,
    level_len: i32,
    message: i32,
    message_len: i32,
) -> wasmtime::Result<()> {
    in_time(&guest)?;
    if let Some(memory) = memory_of(&mut guest) {
        let (memory, state) = memory.data_and_store_mut(&mut guest);
        let level = shown(memory, level, level_len, LOG_LEVEL_MAX_BYTES + LOG_ACROSS_BYTES);
        let message = shown(memory, message, message_len, LOG_MESSAGE_MAX_BYTES + LOG_ACROSS_BYTES);
        let now = state.now_unix_ms();
        state.log.add(level, message, now);
    }
    Ok(())
}

/// Whatever is wrong with the buffer, the answer is -1, as it always has been.
fn current_passport_json(memory: &mut [u8], state: &mut CallState, ptr: i32, cap: i32) -> Reply {
    let reply = PassportReply { calling_passport_id: &state.identity.passport };
    let written = buffer(memory, ptr, cap).and_then(|place| write_json(memory, place, &reply));
    Ok(written.unwrap_or(PASSPORT_BUFFER_TOO_SMALL))
}

fn read_fact(memory: &mut [u8], state: &mut CallState, args: [i32; 6]) -> Reply {
    let [entity, entity_len, key, key_len, resp, cap] = args;
    let entity = text(memory, entity, entity_len)?;
    let key = text(memory, key, key_len)?;
    let place = buffer(memory, resp, cap)?;
    let grant = state.grant()?;
    let facts = facts(state)?;
    if !grant.may_read(entity) {
        return Err(ReturnCode::ScopeViolation);
    }
    let found = facts.read(&state.identity, entity, key);
    match found.map_err(|fault| state.faulted("read_fact", &fault))? {
        Some(fact) => write_json(memory, place, &fact),
        None => Err(ReturnCode::NotFound),
    }
}

fn store_fact(memory: &mut [u8], state: &mut CallState, args: [i32; 9]) -> Reply {
    let [entity, entity_len, key, key_len, value, value_len, thousandths, resp, cap] = args;
    let entity = text(memory, entity, entity_len)?;
    let key = text(memory, key, key_len)?;
    let value = text(memory, value, value_len)?;
    let place = buffer(memory, resp, cap)?;
    let grant = state.grant()?;
    let facts = facts(state)?;
    if !grant.may_write(entity) {
        return Err(ReturnCode::ScopeViolation);
    }
    let fact = NewFact { entity, key, value, confidence: confidence_of(thousandths) };
    let stored = facts.store(&state.identity, fact);
    let stored = stored.map_err(|fault| state.faulted("store_fact", &fault))?;
    write_json(memory, place, &stored)
}

fn query_facts(memory: &mut [u8], state: &mut CallState, args: [i32; 7]) -> Reply {
    let [prefix, prefix_len, query, query_len, top_k, resp, cap] = args;
    // No length is no prefix, which no grant covers; where it points to does not matter.
    let prefix = if prefix_len <= 0 { "" } else { text(memory, prefix, prefix_len)? };
    let words = if query_len <= 0 { None } else { Some(text(memory, query, query_len)?) };
    let place = buffer(memory, resp, cap)?;
    let grant = state.grant()?;
    let facts = facts(state)?;
    if !grant.may_query(prefix) {
        return Err(ReturnCode::ScopeViolation);
    }
    let top_k = usize::try_from(top_k).unwrap_or(0).clamp(1, QUERY_TOP_K_MAX);
    let mut found = match facts.query(&state.identity, FactQuery { prefix, text: words, top_k }) {
        Ok(found) => found,
        Err(fault) => return Err(state.faulted("query_facts", &fault)),
    };
    // A store may be loose about prefixes and counts; what leaves it here is not.
    found.retain(|fact| fact.entity.starts_with(prefix) && grant.may_read(&fact.entity));
    found.truncate(top_k);
    write_json(memory, place, &found)
}

fn get_secret(memory: &mut [u8], state: &mut CallState, args: [i32; 4]) -> Reply {
    let [id, id_len, resp, cap] = args;
    let id = text(memory, id, id_len)?;
    let place = buffer(memory, resp, cap)?;
    if !state.grant()?.may_read_secret(id) {
        return Err(ReturnCode::ScopeViolation);
    }
    let vault = state.ports.secrets.clone().ok_or(ReturnCode::NotImplemented)?;
    let found = vault.reveal(&state.identity, id);
    match found.map_err(|fault| state.faulted("get_secret_decrypted", &fault))? {
        Some(secret) => {
            // Before the module has it, so that no line can come between.
            state.log.keep_secret(&secret);
            write(memory, place, secret.as_bytes())
        }
        None => Err(ReturnCode::NotFound),
    }
}

fn emit_receipt(memory: &mut [u8], state: &mut CallState, args: [i32; 6]) -> Reply {
    let [action, action_len, payload, payload_len, resp, cap] = args;
    let action = text(memory, action, action_len)?;
    let payload = text(memory, payload, payload_len)?;
    let place = buffer(memory, resp, cap)?;
    state.grant()?;
    let receipts = state.ports.receipts.clone().ok_or(ReturnCode::NotImplemented)?;
    let emitted = receipts.emit(&state.identity, NewReceipt { action, payload });
    let receipt = emitted.map_err(|fault| state.faulted("emit_receipt", &fault))?;
    write(memory, place, receipt.as_bytes())
}

/// The store of facts.
fn facts(state: &CallState) -> Result<Arc<dyn FactAccess>, ReturnCode> {
    state.ports.facts.clone().ok_or(ReturnCode::FactStoreUnavailable)
}
