//! The only code that touches the fixed buffers. The macros call it; nobody else should.

#![expect(unsafe_code, reason = "the ABI fixes addresses, and there is no safe way to them")]

use core::{ptr, slice};

use crate::linker::Linked;
use crate::{DiffTool, HashTool, Script, ScriptFull, layout, refusal};

/// Serves one call of `buffer-abi/1`.
///
/// # Safety
///
/// Only the host calls this, through the export of a module of its own: never while another call is under way.
pub unsafe fn hash(tool: HashTool, len: i32) -> i32 {
    use layout::hash::{INPUT, INPUT_MAX_BYTES, OUTPUT, OUTPUT_BYTES};

    if !Linked::here().leaves(&(INPUT..OUTPUT + OUTPUT_BYTES)) {
        return refusal::MISLINKED;
    }
    let Some(len) = admitted(len, INPUT_MAX_BYTES) else {
        return refusal::LENGTH;
    };
    // SAFETY: `leaves` has proved that the range is memory that nothing else in this module lives in, `len` stays
    // within the input, and the caller proves that no other call holds it.
    let input = unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(INPUT), len) };
    let digest = tool(input);
    // SAFETY: as above; the output lies behind the input.
    let output = unsafe { slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut(OUTPUT), OUTPUT_BYTES) };
    output.copy_from_slice(&digest);
    returned(OUTPUT_BYTES)
}

/// Serves one call of `buffer-abi/diff`.
///
/// # Safety
///
/// Only the host calls this, through the export of a module of its own: never while another call is under way.
pub unsafe fn diff(tool: DiffTool, len_a: i32, len_b: i32) -> i32 {
    use layout::diff::{INPUT_A, INPUT_B, INPUT_MAX_BYTES, OUTPUT, OUTPUT_MAX_BYTES};

    if !Linked::here().leaves(&(INPUT_A..OUTPUT + OUTPUT_MAX_BYTES)) {
        return refusal::MISLINKED;
    }
    let (Some(len_a), Some(len_b)) = (admitted(len_a, INPUT_MAX_BYTES), admitted(len_b, INPUT_MAX_BYTES))
    else {
        return refusal::LENGTH;
    };
    // SAFETY: `leaves` has proved that the range is memory that nothing else in this module lives in, the lengths
    // stay within the inputs, the three buffers do not overlap, and the caller proves that no other call holds them.
    let (a, b, output) = unsafe {
        (
            slice::from_raw_parts(ptr::with_exposed_provenance(INPUT_A), len_a),
            slice::from_raw_parts(ptr::with_exposed_provenance(INPUT_B), len_b),
            slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut(OUTPUT), OUTPUT_MAX_BYTES),
        )
    };
    let mut script = Script::new(output);
    match tool(a, b, &mut script).and_then(|()| script.finish()) {
        Ok(used) => returned(used),
        Err(ScriptFull) => refusal::SCRIPT_FULL,
    }
}

fn admitted(len: i32, max_bytes: usize) -> Option<usize> {
    usize::try_from(len).ok().filter(|&len| len <= max_bytes)
}

fn returned(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(refusal::SCRIPT_FULL)
}
