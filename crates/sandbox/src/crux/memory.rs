//! A module's memory as host functions see it: texts that are read where they lie, replies that are written into the
//! module's buffer.
//!
//! Numbers are checked before anything is read, and nothing is allocated for them.

use std::ops::Range;

use serde::Serialize;
use toolshelf_core::extension::layout::guest_range;
use toolshelf_core::extension::rc::ReturnCode;

/// What a host function gives: a count of bytes, or why not.
pub(super) type Reply = Result<i32, ReturnCode>;

/// The text that `(ptr, len)` names.
pub(super) fn text(memory: &[u8], ptr: i32, len: i32) -> Result<&str, ReturnCode> {
    let range = guest_range(ptr, len, memory.len()).ok_or(ReturnCode::BadInput)?;
    std::str::from_utf8(&memory[range]).map_err(|_| ReturnCode::BadInput)
}

/// The beginning of a text that is for people to read: at most `most` bytes of it are looked at. What cannot be read is
/// empty.
pub(super) fn shown(memory: &[u8], ptr: i32, len: i32, most: usize) -> &str {
    let Some(range) = guest_range(ptr, len, memory.len()) else { return "" };
    let whole = range.len() <= most;
    let bytes = &memory[range.start..range.end.min(range.start + most)];
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A character in the middle of which the look ended.
        Err(err) if !whole && err.error_len().is_none() => {
            std::str::from_utf8(&bytes[..err.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => "",
    }
}

/// The buffer for a reply.
pub(super) fn buffer(memory: &[u8], ptr: i32, cap: i32) -> Result<Range<usize>, ReturnCode> {
    guest_range(ptr, cap, memory.len()).ok_or(ReturnCode::BadInput)
}

/// Writes a reply into its buffer. One that does not fit leaves only what fitted.
pub(super) fn write(memory: &mut [u8], buffer: Range<usize>, reply: &[u8]) -> Reply {
    let place = &mut memory[buffer];
    let place = place.get_mut(..reply.len()).ok_or(ReturnCode::BufferTooSmall)?;
    place.copy_from_slice(reply);
    // Memory is smaller than what an `i32` counts.
    i32::try_from(reply.len()).map_err(|_| ReturnCode::BufferTooSmall)
}

/// Writes a reply as JSON, straight into its buffer.
pub(super) fn write_json(memory: &mut [u8], buffer: Range<usize>, reply: &impl Serialize) -> Reply {
    let place = &mut memory[buffer];
    let cap = place.len();
    let mut left = &mut *place;
    match serde_json::to_writer(&mut left, reply) {
        Ok(()) => i32::try_from(cap - left.len()).map_err(|_| ReturnCode::BufferTooSmall),
        Err(err) if err.is_io() => Err(ReturnCode::BufferTooSmall),
        Err(_) => Err(ReturnCode::SerialiseErr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_within_memory_only() {
        let memory = b"abc\xff\xc3\xa9";
        assert_eq!(text(memory, 0, 3), Ok("abc"));
        assert_eq!(text(memory, 4, 2), Ok("é"));
        assert_eq!(text(memory, 6, 0), Ok(""));
        for (ptr, len) in [(-1, 1), (0, -1), (0, 7), (6, 1), (7, 0), (i32::MAX, i32::MAX), (3, 1), (4, 1)] {
            assert_eq!(text(memory, ptr, len), Err(ReturnCode::BadInput), "({ptr}, {len})");
        }
    }

    #[test]
    fn what_is_shown_ends_between_characters_and_is_empty_where_it_is_no_text() {
        let memory = "aéé\u{0}".as_bytes();
        assert_eq!(shown(memory, 0, 5, 100), "aéé");
        assert_eq!(shown(memory, 0, 5, 4), "aé");
        // The text itself ends in the middle of a character.
        assert_eq!(shown(memory, 0, 4, 100), "");
        assert_eq!(shown(memory, 2, 3, 100), "");
        assert_eq!(shown(memory, 0, 100, 100), "");
        assert_eq!(shown(memory, -1, 2, 100), "");
    }

    #[test]
    fn a_reply_fits_or_is_refused() {
        let mut memory = [0; 8];
        assert_eq!(write(&mut memory, 2..6, b"abcd"), Ok(4));
        assert_eq!(&memory, b"\0\0abcd\0\0");
        assert_eq!(write(&mut memory, 2..5, b"wxyz"), Err(ReturnCode::BufferTooSmall));
        assert_eq!(write_json(&mut memory, 0..8, &"abcdef"), Ok(8));
        assert_eq!(&memory, br#""abcdef""#);
        assert_eq!(write_json(&mut memory, 1..8, &"abcdef"), Err(ReturnCode::BufferTooSmall));
        assert_eq!(memory[0], b'"');
        let unwritable = std::collections::BTreeMap::from([((), ())]);
        assert_eq!(write_json(&mut memory, 0..8, &unwritable), Err(ReturnCode::SerialiseErr));
    }
}
