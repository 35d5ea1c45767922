//! The only unsafe code of this crate: a few things that have no safe form.

#![expect(unsafe_code, reason = "loading machine code, and three system calls that no safe crate offers")]

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

/// Loads the compiled code of an extension, in this very process.
///
/// # Errors
/// As [`load`].
#[cfg(feature = "wasm-extensions")]
pub(crate) fn load_extension(engine: &Engine, code: &[u8]) -> wasmtime::Result<Module> {
    // SAFETY: `deserialize` asks that the bytes are what `Engine::precompile_module` gave, unchanged. They come from a
    // compile worker that this process started from its own program, over a socket pair whose other end only that
    // worker has; or from `cache`, which has verified that this host wrote them, for this module and this engine.
    //
    // What remains is a compile worker that was taken over by the module that it compiles, through a fault of the
    // compiler. It could answer with any code, which would run here. That is accepted, because the compiler is trusted
    // either way: were the module compiled in this process, the same fault would take over this process at once, and
    // nothing but the sizes of the module would bound what compiling costs. A worker adds the bounds (time, memory, no
    // file, no network) and takes nothing away: one worker compiles one module and has seen no other, and its answer
    // is kept under that module's digest alone, so that no other module's code can be forged by it. What keeps hostile
    // modules away from the compiler is what admits them: the digest, the publisher's signature, the grant.
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

/// Makes a copy of this process, which is a child of this one's parent. Gives the copy's id, and `None` in the copy.
///
/// # Errors
/// When the system has no room for another process.
#[cfg(target_os = "linux")]
pub(crate) fn copy_for_parent() -> std::io::Result<Option<i32>> {
    let flags = libc::CLONE_PARENT | libc::SIGCHLD;
    // SAFETY: without `CLONE_VM` the copy has memory of its own, so nothing is shared but descriptors. What makes
    // copying dangerous is other threads, whose locks would stay locked for ever in the copy: the process that calls
    // this has one thread, and a test looks that it has.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => Ok(None),
        id => Ok(Some(id as i32)),
    }
}
