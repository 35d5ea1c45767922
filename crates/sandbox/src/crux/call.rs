//! One call: a fresh store and a fresh instance, which are gone at its end.

use std::time::{Duration, Instant};

use serde_json::Value;
use toolshelf_core::extension::envelope::{HostLogEntry, ToolRequest, ToolResponse, WasmDispatchOutcome};
use toolshelf_core::extension::layout::CallLayout;
use toolshelf_core::grant::Grant;
use toolshelf_core::limits::WASM_PAGE_BYTES;
use wasmtime::{Instance, Memory, Store};

use super::extensions::{Extension, Extensions};
use super::limits::{Limiter, Limits};
use super::log::CallLog;
use super::ports::{CallIdentity, Ports};
use super::state::CallState;
use super::traps::CallFault;

/// What a call is given.
#[derive(Debug, Clone)]
pub struct Call {
    /// Who calls which tool, and the id of the request.
    pub identity: CallIdentity,
    /// The arguments.
    pub args: Value,
    /// What the caller may reach; without one the fact functions answer -2.
    pub grant: Option<Grant>,
    /// What the imports work on.
    pub ports: Ports,
    /// What the call may use.
    pub limits: Limits,
}

/// A call without a result. What it has used and what it has logged is told all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct FailedCall {
    /// Why there is no result.
    #[source]
    pub fault: CallFault,
    /// How long the call took, in milliseconds.
    pub elapsed_ms: u64,
    /// How much fuel it used.
    pub fuel_consumed: u64,
    /// What it logged.
    pub log: Vec<HostLogEntry>,
    /// Id of the request.
    pub request_id: String,
}

impl FailedCall {
    /// A call that was over before any code of the module ran.
    #[must_use]
    pub fn before_it_began(fault: CallFault, request_id: String) -> Self {
        Self { fault, elapsed_ms: 0, fuel_consumed: 0, log: Vec::new(), request_id }
    }
}

impl Extensions {
    /// Calls an extension, on a thread that may block.
    ///
    /// # Errors
    /// A [`FailedCall`].
    pub fn call(&self, extension: &Extension, call: Call) -> Result<WasmDispatchOutcome, FailedCall> {
        let wall = Duration::from_millis(call.limits.wall_ms);
        let Some(_slot) = self.slots.take(wall) else {
            return Err(FailedCall::before_it_began(CallFault::Busy, call.identity.request_id));
        };
        // The clock starts here: the code is compiled, and the place is had.
        let start = Instant::now();
        let (limits, args) = (call.limits, call.args);
        let mut store = Store::new(
            self.engine.engine(),
            CallState {
                identity: call.identity,
                grant: call.grant,
                ports: call.ports,
                log: CallLog::default(),
                limiter: Limiter::new(&limits, extension.declared),
                // A time beyond what a clock counts is no limit at all.
                ends: start.checked_add(wall),
                memory: None,
            },
        );
        store.limiter(|state| &mut state.limiter);
        store.set_epoch_deadline(self.engine.ticks(limits.wall_ms));
        let end = store
            .set_fuel(limits.fuel)
            .map_err(|err| CallFault::of_run(&err, false))
            .and_then(|()| run(&mut store, extension, &args, &limits));
        // Fuel is counted wherever the call ended.
        let fuel_consumed = limits.fuel.saturating_sub(store.get_fuel().unwrap_or(0));
        let elapsed_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let CallState { identity, log, .. } = store.into_data();
        let (log, request_id) = (log.finish(), identity.request_id);
        match end {
            Ok(result) => Ok(WasmDispatchOutcome { result, elapsed_ms, fuel_consumed, log, request_id }),
            Err(fault) => Err(FailedCall { fault, elapsed_ms, fuel_consumed, log, request_id }),
        }
    }
}

/// The call itself, from the instance to the result.
fn run(
    store: &mut Store<CallState>,
    extension: &Extension,
    args: &Value,
    limits: &Limits,
) -> Result<Value, CallFault> {
    let request = request(store.data(), args)?;
    let instance = extension
        .pre
        .instantiate(&mut *store)
        .map_err(|err| CallFault::of_instantiation(&err, store.data().limiter.denied_growth()))?;
    let memory = instance.get_memory(&mut *store, "memory").ok_or(CallFault::MissingExport("memory"))?;
    store.data_mut().memory = Some(memory);
    initialize(store, &instance)?;
    let called = instance
        .get_typed_func::<(i32, i32, i32, i32), i32>(&mut *store, "extension_call")
        .map_err(|_| CallFault::MissingExport("extension_call"))?;
    let layout = place(store, memory, &request, limits)?;
    let buffers = [0, layout.request_len, layout.response_ptr, layout.response_cap];
    let [request_ptr, request_len, response_ptr, response_cap] = buffers.map(u32::cast_signed);
    let returned = called
        .call(&mut *store, (request_ptr, request_len, response_ptr, response_cap))
        .map_err(|err| faulted(store, &err))?;
    response(store, memory, &layout, returned)
}

fn request(state: &CallState, args: &Value) -> Result<Vec<u8>, CallFault> {
    let CallIdentity { tool, passport, request_id, .. } = &state.identity;
    let request = ToolRequest { tool, args, calling_passport_id: passport, request_id };
    // Arguments that were read as JSON can be written as JSON.
    request.to_json().map_err(|err| CallFault::Trap(format!("the request cannot be written: {err}")))
}

/// Runs `_initialize` where it is there with its type. It is a part of the call: the same fuel, the same deadline.
fn initialize(store: &mut Store<CallState>, instance: &Instance) -> Result<(), CallFault> {
    match instance.get_typed_func::<(), ()>(&mut *store, "_initialize") {
        Ok(initialize) => initialize.call(&mut *store, ()).map_err(|err| faulted(store, &err)),
        Err(_) => Ok(()),
    }
}

/// Writes the request at 0 and finds the place for the response; the memory grows where it has to.
fn place(
    store: &mut Store<CallState>,
    memory: Memory,
    request: &[u8],
    limits: &Limits,
) -> Result<CallLayout, CallFault> {
    let size = memory.data_size(&*store) as u64;
    let layout = CallLayout::of(request.len(), size, limits.memory_bytes as u64)?;
    let missing = (layout.memory_bytes - size) / WASM_PAGE_BYTES;
    if missing > 0 {
        memory.grow(&mut *store, missing).map_err(|_| CallFault::OutOfMemory)?;
    }
    memory.write(&mut *store, 0, request).map_err(|_| CallFault::OutOfMemory)?;
    Ok(layout)
}

/// Reads the answer, once its length is known to be within the buffer.
fn response(
    store: &Store<CallState>,
    memory: Memory,
    layout: &CallLayout,
    returned: i32,
) -> Result<Value, CallFault> {
    // A module may have no other way to say that it got no memory.
    if returned < 0 && store.data().limiter.denied_growth() {
        return Err(CallFault::OutOfMemory);
    }
    let length = layout.returned(returned)?;
    let from = layout.response_ptr as usize;
    let bytes = memory.data(store).get(from..from + length as usize).unwrap_or_default();
    Ok(ToolResponse::read(bytes)?.result)
}

fn faulted(store: &Store<CallState>, err: &wasmtime::Error) -> CallFault {
    CallFault::of_run(err, store.data().limiter.denied_growth())
}
