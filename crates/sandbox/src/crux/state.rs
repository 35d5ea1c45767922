//! What one call has while it runs. It is made for the call and gone with it, so no call can see another's.

use std::time::Instant;

use toolshelf_core::extension::rc::ReturnCode;
use toolshelf_core::grant::Grant;
use wasmtime::{Caller, Extern, Memory, Trap};

use super::limits::Limiter;
use super::log::{CallLog, LOG_HOST_LEVEL};
use super::memory::Reply;
use super::ports::{CallIdentity, PortFault, Ports};

/// The data of a call's store.
pub(super) struct CallState {
    pub(super) identity: CallIdentity,
    pub(super) grant: Option<Grant>,
    pub(super) ports: Ports,
    pub(super) log: CallLog,
    pub(super) limiter: Limiter,
    /// When the call's time is over; `None` where it is longer than a clock counts.
    pub(super) ends: Option<Instant>,
    /// The exported memory, once it was looked up.
    pub(super) memory: Option<Memory>,
}

impl CallState {
    pub(super) fn now_unix_ms(&self) -> u64 {
        self.ports.clock.now_unix_ms()
    }

    /// The grant that is bound to the call.
    pub(super) fn grant(&self) -> Result<&Grant, ReturnCode> {
        self.grant.as_ref().ok_or(ReturnCode::NoGrant)
    }

    /// What the module gets to see of an adapter's fault. The log says the rest.
    pub(super) fn faulted(&mut self, function: &str, fault: &PortFault) -> ReturnCode {
        let now = self.now_unix_ms();
        self.log.add(LOG_HOST_LEVEL, &format!("{function}: {fault}"), now);
        match fault {
            PortFault::Refused(_) => ReturnCode::BadInput,
            PortFault::OutOfScope(_) => ReturnCode::ScopeViolation,
            PortFault::Failed(_) => ReturnCode::HostInternal,
        }
    }
}

/// The way of every host function: time, memory, then its own work.
///
/// Epochs are only looked at in loops and at the beginning of functions of the module; a long row of imports has
/// neither, so each of them looks at the clock.
///
/// # Errors
/// The trap of a call whose time is over.
pub(super) fn host_call(
    caller: &mut Caller<'_, CallState>,
    work: impl FnOnce(&mut [u8], &mut CallState) -> Reply,
) -> wasmtime::Result<i32> {
    in_time(caller)?;
    let Some(memory) = memory_of(caller) else { return Ok(ReturnCode::HostInternal.as_i32()) };
    let (bytes, state) = memory.data_and_store_mut(&mut *caller);
    Ok(work(bytes, state).unwrap_or_else(ReturnCode::as_i32))
}

/// # Errors
/// As [`host_call`].
pub(super) fn in_time(caller: &Caller<'_, CallState>) -> wasmtime::Result<()> {
    match caller.data().ends {
        Some(ends) if Instant::now() >= ends => Err(Trap::Interrupt.into()),
        _ => Ok(()),
    }
}

/// The memory that the module exports.
pub(super) fn memory_of(caller: &mut Caller<'_, CallState>) -> Option<Memory> {
    if caller.data().memory.is_none() {
        let memory = caller.get_export("memory").and_then(Extern::into_memory);
        caller.data_mut().memory = memory;
    }
    caller.data().memory
}
