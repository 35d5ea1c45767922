//! The only unsafe code of this crate: three things that have no safe form.

#![expect(unsafe_code, reason = "loading machine code, and two system calls that no safe crate offers")]

use wasmtime::{Engine, Module};

/// Loads compiled code, in a worker process.
///
/// # Errors
/// What the engine says of code that it does not take, such as that of another version.
pub(crate) fn load(engine: &Engine, code: &[u8]) -> wasmtime::Result<Module> {
    // SAFETY: `deserialize` asks that the bytes are what `Engine::precompile_module` gave, unchanged. A worker reads
    // them from the socket that it was born with, whose other end only the process that started it has. That process
    // sends what a compile worker of this same program handed it, or what `cache` has authenticated with the host's
    // key. Were a compile worker taken over by the module that it compiles, the false code would run here: in a
    // process that holds nothing but this one call's inputs, and that the system has shut in before it read them.
    unsafe { Module::deserialize(engine, code) }
}

/// Closes every descriptor above the standard three: whatever the caller's caller has left open.
///
/// Only for the first lines of a worker process, when nothing has opened a descriptor yet.
#[cfg(target_os = "linux")]
pub(crate) fn close_inherited() -> bool {
    // SAFETY: the call takes no pointers. No value of this process owns a descriptor above 2 at that time.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) == 0 }
}

/// Ends this process by a signal, `seconds` from now, whatever it is doing then.
pub(crate) fn end_in(seconds: u32) {
    // SAFETY: the call takes no pointers, and the signal's default action, to end the process, is what is wanted.
    unsafe {
        libc::alarm(seconds);
    }
}
