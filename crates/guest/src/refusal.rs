//! What an export returns instead of a number of bytes.

/// The host announced an input of a length that the ABI does not allow.
pub const LENGTH: i32 = -1;

/// The module's stack, data or heap lies where the buffers are: its linker arguments are not the documented ones.
pub const MISLINKED: i32 = -2;

/// The edit script does not fit its buffer.
pub const SCRIPT_FULL: i32 = -3;
