//! The imports of the module `crux`, as safe functions over slices. Nothing is decided here.
//!
//! Each returns what the host returns: a count of bytes, or a negative code. A count is not to be believed yet.

#![cfg_attr(
    target_arch = "wasm32",
    expect(unsafe_code, reason = "imports are foreign functions, and take addresses")
)]

#[cfg(target_arch = "wasm32")]
pub(super) use module::*;
#[cfg(not(target_arch = "wasm32"))]
pub(super) use nothing::*;

#[cfg(target_arch = "wasm32")]
mod module {
    use crate::extension::reply::Buffer;

    mod crux {
        #[link(wasm_import_module = "crux")]
        unsafe extern "C" {
            pub(super) safe fn now_unix_ms() -> u64;
            pub(super) fn log(level_ptr: *const u8, level_len: usize, msg_ptr: *const u8, msg_len: usize);
            pub(super) fn current_passport_json(ptr: *mut u8, cap: usize) -> i32;
            pub(super) fn read_fact(
                entity_ptr: *const u8,
                entity_len: usize,
                key_ptr: *const u8,
                key_len: usize,
                resp_ptr: *mut u8,
                resp_cap: usize,
            ) -> i32;
            pub(super) fn store_fact(
                entity_ptr: *const u8,
                entity_len: usize,
                key_ptr: *const u8,
                key_len: usize,
                value_ptr: *const u8,
                value_len: usize,
                confidence_thousandths: i32,
                resp_ptr: *mut u8,
                resp_cap: usize,
            ) -> i32;
            pub(super) fn query_facts(
                prefix_ptr: *const u8,
                prefix_len: usize,
                query_ptr: *const u8,
                query_len: usize,
                top_k: i32,
                resp_ptr: *mut u8,
                resp_cap: usize,
            ) -> i32;
            pub(super) fn get_secret_decrypted(
                id_ptr: *const u8,
                id_len: usize,
                resp_ptr: *mut u8,
                resp_cap: usize,
            ) -> i32;
            pub(super) fn emit_receipt(
                action_ptr: *const u8,
                action_len: usize,
                payload_ptr: *const u8,
                payload_len: usize,
                resp_ptr: *mut u8,
                resp_cap: usize,
            ) -> i32;
        }
    }

    // SAFETY, of every call below: each pointer and length are those of a slice that is borrowed for as long as the
    // call takes, shared where the host reads and exclusively where it writes.

    pub(in super::super) fn now_unix_ms() -> u64 {
        crux::now_unix_ms()
    }

    pub(in super::super) fn log(level: &str, message: &str) {
        // SAFETY: see above.
        unsafe { crux::log(level.as_ptr(), level.len(), message.as_ptr(), message.len()) }
    }

    pub(in super::super) fn current_passport_json(reply: &mut Buffer) -> i32 {
        // SAFETY: see above.
        unsafe { crux::current_passport_json(reply.as_mut_ptr().cast(), reply.len()) }
    }

    pub(in super::super) fn read_fact(entity: &str, key: &str, reply: &mut Buffer) -> i32 {
        // SAFETY: see above.
        unsafe {
            crux::read_fact(
                entity.as_ptr(),
                entity.len(),
                key.as_ptr(),
                key.len(),
                reply.as_mut_ptr().cast(),
                reply.len(),
            )
        }
    }

    pub(in super::super) fn store_fact(
        entity: &str,
        key: &str,
        value: &str,
        thousandths: i32,
        reply: &mut Buffer,
    ) -> i32 {
        // SAFETY: see above.
        unsafe {
            crux::store_fact(
                entity.as_ptr(),
                entity.len(),
                key.as_ptr(),
                key.len(),
                value.as_ptr(),
                value.len(),
                thousandths,
                reply.as_mut_ptr().cast(),
                reply.len(),
            )
        }
    }

    pub(in super::super) fn query_facts(prefix: &str, text: &str, top_k: i32, reply: &mut Buffer) -> i32 {
        // SAFETY: see above.
        unsafe {
            crux::query_facts(
                prefix.as_ptr(),
                prefix.len(),
                text.as_ptr(),
                text.len(),
                top_k,
                reply.as_mut_ptr().cast(),
                reply.len(),
            )
        }
    }

    pub(in super::super) fn get_secret_decrypted(id: &str, reply: &mut Buffer) -> i32 {
        // SAFETY: see above.
        unsafe { crux::get_secret_decrypted(id.as_ptr(), id.len(), reply.as_mut_ptr().cast(), reply.len()) }
    }

    pub(in super::super) fn emit_receipt(action: &str, payload: &str, reply: &mut Buffer) -> i32 {
        // SAFETY: see above.
        unsafe {
            crux::emit_receipt(
                action.as_ptr(),
                action.len(),
                payload.as_ptr(),
                payload.len(),
                reply.as_mut_ptr().cast(),
                reply.len(),
            )
        }
    }
}

/// Where there is no host: what a host answers that has neither a passport nor facts, a vault or receipts.
#[cfg(not(target_arch = "wasm32"))]
mod nothing {
    use crate::extension::ReturnCode::{FactStoreUnavailable, HostInternal, NotImplemented};
    use crate::extension::reply::Buffer;

    pub(in super::super) fn now_unix_ms() -> u64 {
        0
    }

    pub(in super::super) fn log(_level: &str, _message: &str) {}

    pub(in super::super) fn current_passport_json(_reply: &mut Buffer) -> i32 {
        HostInternal.as_i32()
    }

    pub(in super::super) fn read_fact(_entity: &str, _key: &str, _reply: &mut Buffer) -> i32 {
        FactStoreUnavailable.as_i32()
    }

    pub(in super::super) fn store_fact(
        _entity: &str,
        _key: &str,
        _value: &str,
        _thousandths: i32,
        _reply: &mut Buffer,
    ) -> i32 {
        FactStoreUnavailable.as_i32()
    }

    pub(in super::super) fn query_facts(_prefix: &str, _text: &str, _top_k: i32, _reply: &mut Buffer) -> i32 {
        FactStoreUnavailable.as_i32()
    }

    pub(in super::super) fn get_secret_decrypted(_id: &str, _reply: &mut Buffer) -> i32 {
        NotImplemented.as_i32()
    }

    pub(in super::super) fn emit_receipt(_action: &str, _payload: &str, _reply: &mut Buffer) -> i32 {
        NotImplemented.as_i32()
    }
}
