//! Where the request and the response of a call lie in the module's memory.
//!
//! Source: the seed, section 6.4, and the reference facts, C5. The module is not asked to allocate: the host writes the
//! request at offset 0 and offers the bytes behind it for the response. What the module keeps there is overwritten.

use super::envelope::RESPONSE_MAX_BYTES;
use super::rc::RESPONSE_OVERFLOW;
use crate::limits::WASM_PAGE_BYTES;

/// Longest request, in bytes.
pub const REQUEST_MAX_BYTES: u32 = 262_144;
/// The least room for a response. Where a request ends so near to the end of a page that less is left, one page more is
/// asked for: without it a response could never fit, whatever the module does.
const RESPONSE_MIN_BYTES: u64 = 4_096;

/// Where the two buffers of a call lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLayout {
    /// Length of the request, which begins at 0.
    pub request_len: u32,
    /// Size that the memory must at least have, in bytes; a multiple of a page.
    pub memory_bytes: u64,
    /// Where the response begins.
    pub response_ptr: u32,
    /// How long it may be.
    pub response_cap: u32,
}

/// Why there is no layout.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum LayoutFault {
    /// The request is longer than [`REQUEST_MAX_BYTES`].
    #[error("request of {0} bytes exceeds the {REQUEST_MAX_BYTES}-byte cap")]
    RequestTooLarge(u64),
    /// The memory would have to grow past its ceiling.
    #[error("a memory of {needed} bytes is needed, the ceiling is {ceiling}")]
    BeyondCeiling {
        /// What is needed, in bytes.
        needed: u64,
        /// What is granted, in bytes.
        ceiling: u64,
    },
}

/// Why what the module returned is not the length of a response.
#[derive(Debug, Clone, Copy, thiserror::Error, PartialEq, Eq)]
pub enum ReturnedFault {
    /// -1: the module says that its response does not fit.
    #[error("response buffer overflow")]
    Overflow,
    /// Any other negative number.
    #[error("module returned reserved code {0}")]
    Reserved(i32),
    /// More than it was given.
    #[error("module returned {returned} bytes, its buffer has {cap}")]
    BeyondBuffer {
        /// What it returned.
        returned: u32,
        /// What it was given.
        cap: u32,
    },
}

impl CallLayout {
    /// Lays out a call with a request of `request_len` bytes over a memory that has `memory_bytes` now and may grow to
    /// `ceiling_bytes`.
    ///
    /// # Errors
    /// A [`LayoutFault`]; the caller has written nothing yet.
    pub fn of(request_len: usize, memory_bytes: u64, ceiling_bytes: u64) -> Result<Self, LayoutFault> {
        let too_large = || LayoutFault::RequestTooLarge(request_len as u64);
        let len = u32::try_from(request_len).map_err(|_| too_large())?;
        if len > REQUEST_MAX_BYTES {
            return Err(too_large());
        }
        // 8 to 15 bytes behind the request, at a multiple of 8.
        let response_ptr = (len + 15) & !7;
        let wanted = u64::from(len).max(u64::from(response_ptr) + RESPONSE_MIN_BYTES);
        let needed = memory_bytes.max(wanted.div_ceil(WASM_PAGE_BYTES) * WASM_PAGE_BYTES);
        if needed > ceiling_bytes && needed > memory_bytes {
            return Err(LayoutFault::BeyondCeiling { needed, ceiling: ceiling_bytes });
        }
        let left = needed - u64::from(response_ptr);
        let response_cap = u32::try_from(left).unwrap_or(u32::MAX).min(RESPONSE_MAX_BYTES);
        Ok(Self { request_len: len, memory_bytes: needed, response_ptr, response_cap })
    }

    /// The length of the response that the module says it has written.
    ///
    /// # Errors
    /// A [`ReturnedFault`], before a byte is read or room for one is made.
    pub fn returned(&self, returned: i32) -> Result<u32, ReturnedFault> {
        match u32::try_from(returned) {
            Ok(returned) if returned <= self.response_cap => Ok(returned),
            Ok(returned) => Err(ReturnedFault::BeyondBuffer { returned, cap: self.response_cap }),
            Err(_) if returned == RESPONSE_OVERFLOW => Err(ReturnedFault::Overflow),
            Err(_) => Err(ReturnedFault::Reserved(returned)),
        }
    }
}

/// The range of bytes that `(ptr, len)` of a host call names in a memory of `memory_bytes`; `None` where a number is
/// negative or the range ends outside. Checked before anything is read or allocated.
#[must_use]
pub fn guest_range(ptr: i32, len: i32, memory_bytes: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(ptr).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    (end <= memory_bytes).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = WASM_PAGE_BYTES;
    const CEILING: u64 = 16_000_000;

    fn parts(len: usize, pages: u64) -> (u64, u32, u32) {
        let layout = CallLayout::of(len, pages * PAGE, CEILING).unwrap();
        (layout.memory_bytes / PAGE, layout.response_ptr, layout.response_cap)
    }

    #[test]
    fn the_documented_examples_hold() {
        assert_eq!(parts(0, 1), (1, 8, 65_528));
        assert_eq!(parts(100, 1), (1, 112, 65_424));
        assert_eq!(parts(100, 2), (2, 112, 65_536));
        assert_eq!(parts(65_536, 1), (2, 65_544, 65_528));
    }

    #[test]
    fn a_request_that_fills_its_page_still_leaves_room_for_a_response() {
        assert_eq!(parts(65_535, 1), (2, 65_544, 65_528));
        assert_eq!(parts(65_536 - 4_096 - 15, 1).0, 1);
        assert_eq!(parts(65_536 - 4_096, 1).0, 2);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(CallLayout::of(262_145, PAGE, CEILING), Err(LayoutFault::RequestTooLarge(262_145)));
        assert_eq!(
            CallLayout::of(usize::MAX, PAGE, CEILING),
            Err(LayoutFault::RequestTooLarge(usize::MAX as u64))
        );
        assert_eq!(
            CallLayout::of(70_000, PAGE, PAGE),
            Err(LayoutFault::BeyondCeiling { needed: 2 * PAGE, ceiling: PAGE })
        );
        // A memory that is large enough needs no ceiling.
        assert!(CallLayout::of(100, PAGE, 0).is_ok());
    }

    #[test]
    fn a_returned_length_is_believed_only_within_the_buffer() {
        let layout = CallLayout::of(100, PAGE, CEILING).unwrap();
        assert_eq!(layout.returned(0), Ok(0));
        assert_eq!(layout.returned(65_424), Ok(65_424));
        assert_eq!(
            layout.returned(65_425),
            Err(ReturnedFault::BeyondBuffer { returned: 65_425, cap: 65_424 })
        );
        assert_eq!(layout.returned(-1).unwrap_err().to_string(), "response buffer overflow");
        assert_eq!(layout.returned(-7).unwrap_err().to_string(), "module returned reserved code -7");
        assert_eq!(layout.returned(i32::MIN), Err(ReturnedFault::Reserved(i32::MIN)));
    }

    proptest! {
        #[test]
        fn buffers_lie_in_memory_and_apart(
            len in 0_usize..300_000, memory in 0_u64..=1 << 32, ceiling in 0_u64..=1 << 32,
        ) {
            let memory = memory / PAGE * PAGE;
            let Ok(layout) = CallLayout::of(len, memory, ceiling) else { return Ok(()) };
            let end = u64::from(layout.response_ptr) + u64::from(layout.response_cap);
            prop_assert!(layout.request_len + 8 <= layout.response_ptr);
            prop_assert_eq!(layout.response_ptr % 8, 0);
            prop_assert!(end <= layout.memory_bytes);
            prop_assert!(layout.memory_bytes <= memory.max(ceiling));
            prop_assert!(u64::from(layout.response_cap) >= RESPONSE_MIN_BYTES);
            prop_assert!(layout.response_cap <= RESPONSE_MAX_BYTES);
            prop_assert_eq!(layout.memory_bytes % PAGE, 0);
        }

        #[test]
        fn what_is_believed_lies_in_the_buffer(len in 0_usize..300_000, returned: i32) {
            let Ok(layout) = CallLayout::of(len, PAGE, CEILING) else { return Ok(()) };
            if let Ok(len) = layout.returned(returned) {
                prop_assert!(len <= layout.response_cap);
            }
        }

        #[test]
        fn a_range_of_a_guest_lies_in_its_memory(ptr: i32, len: i32, memory in 0_usize..1 << 20) {
            if let Some(range) = guest_range(ptr, len, memory) {
                prop_assert!(range.start <= range.end && range.end <= memory);
                prop_assert_eq!(range.len(), len as usize);
            }
        }
    }
}
