//! Request and response in the module's memory.

#![cfg_attr(target_arch = "wasm32", expect(unsafe_code, reason = "the ABI passes addresses"))]

use core::fmt;
use core::ops::Range;

use crate::linker::Linked;

/// How much of the stack, from its top, may be in use while the request is read and while the response is written.
/// Only [`serve`] and what it calls of the standard library is on it then.
const STACK_IN_USE_BYTES: usize = 65_536;

/// Serves one call: request and response are addresses with lengths.
///
/// # Safety
///
/// Only the host calls this, through the export of a module of its own, with nothing else on the stack.
#[cfg(target_arch = "wasm32")]
pub unsafe fn serve<A: serde::de::DeserializeOwned, R: serde::Serialize>(
    tool: fn(super::Request<A>) -> Result<R, super::Failure>,
    request: (i32, i32),
    response: (i32, i32),
) -> i32 {
    use core::{ptr, slice};
    use std::borrow::ToOwned as _;

    use super::{RESPONSE_OVERFLOW, answer, log};

    // A panic ends in a trap; the hook is what says why.
    std::panic::set_hook(std::boxed::Box::new(|panic| log::error(panic)));
    let buffers = match Buffers::of(request, response, &Linked::here()) {
        Ok(buffers) => buffers,
        Err(misplaced) => panic!("{misplaced}"),
    };
    let from = ptr::with_exposed_provenance(buffers.request.start);
    // SAFETY: `Buffers::of` has proved that the ranges are memory in which nothing of the module lives for as long as
    // no more of the stack is in use than now, the host lets nobody else at them, and the slice ends here.
    let request = unsafe { slice::from_raw_parts(from, buffers.request.len()) }.to_owned();
    let answer = answer(tool, &request);
    if answer.len() > buffers.response.len() {
        let (is, has) = (answer.len(), buffers.response.len());
        log::error(format_args!("the response is {is} bytes, its buffer has {has}"));
        return RESPONSE_OVERFLOW;
    }
    let to = ptr::with_exposed_provenance_mut(buffers.response.start);
    // SAFETY: as above; what the tool has left in the range is not needed any more.
    unsafe { ptr::copy_nonoverlapping(answer.as_ptr(), to, answer.len()) };
    // A response is shorter than its buffer, whose length came as an `i32`.
    i32::try_from(answer.len()).unwrap_or(RESPONSE_OVERFLOW)
}

/// Where request and response lie.
#[derive(Debug, PartialEq, Eq)]
struct Buffers {
    request: Range<usize>,
    response: Range<usize>,
}

/// The buffers lie where the module keeps its own things.
#[derive(Debug, PartialEq, Eq)]
struct Misplaced {
    request: (i32, i32),
    response: (i32, i32),
}

impl Buffers {
    fn of(request: (i32, i32), response: (i32, i32), linked: &Linked) -> Result<Self, Misplaced> {
        let free = |buffer| range(buffer).filter(|range| linked.leaves_for_now(range, STACK_IN_USE_BYTES));
        match (free(request), free(response)) {
            (Some(request), Some(response)) => Ok(Self { request, response }),
            _ => Err(Misplaced { request, response }),
        }
    }
}

fn range((ptr, len): (i32, i32)) -> Option<Range<usize>> {
    let start = usize::try_from(ptr).ok()?;
    Some(start..start.checked_add(usize::try_from(len).ok()?)?)
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((request, request_len), (response, response_len)) = (self.request, self.response);
        write!(
            f,
            "request ({request}, {request_len} bytes) and response ({response}, {response_len} bytes) lie where the \
             module's own stack, data or heap is: send less, or link it as documented"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::*;

    const PAGE: i32 = 65_536;
    const MIB: usize = 1_048_576;

    /// What the toolchain makes without being told anything.
    fn by_default() -> Linked {
        Linked { stack: 0..MIB, data: MIB..MIB + 4_000, heap: MIB + 4_096 }
    }

    #[test]
    fn the_largest_request_that_a_host_sends_fits_the_layout_of_the_toolchain() {
        let linked = by_default();
        for len in [0, 100, PAGE, 4 * PAGE] {
            let response = (len + 15) & !7;
            let buffers = Buffers::of((0, len), (response, PAGE), &linked).unwrap();
            assert_eq!(buffers.request, 0..len as usize);
            assert_eq!(buffers.response, response as usize..(response + PAGE) as usize);
        }
    }

    #[test]
    fn buffers_that_reach_into_what_the_module_keeps_are_refused() {
        let default = by_default();
        let fits = |linked: &Linked, response: i32| Buffers::of((0, 8), (response, PAGE), linked).is_ok();
        assert!(fits(&default, 14 * PAGE));
        assert!(!fits(&default, 14 * PAGE + 8), "the uppermost part of the stack");
        assert!(!fits(&default, 16 * PAGE), "data");
        assert!(!fits(&default, 17 * PAGE), "heap");
        assert!(Buffers::of((0, 15 * PAGE), (0, 0), &default).is_ok());
        assert!(Buffers::of((0, 15 * PAGE + 1), (0, 0), &default).is_err());
        // Data first, the stack above it: what lies at 0 is overwritten.
        let data_first = Linked { stack: 4_096..MIB, data: 1_024..4_096, heap: MIB };
        assert!(!fits(&data_first, 16));
        // A stack that is too small for both.
        let small = Linked { stack: 0..PAGE as usize, data: PAGE as usize..70_000, heap: 70_000 };
        assert!(!fits(&small, 16));
        // All of the module's own lies above.
        let above = Linked { stack: MIB..2 * MIB, data: 2 * MIB..3 * MIB, heap: 3 * MIB };
        assert!(fits(&above, 15 * PAGE));
    }

    #[test]
    fn numbers_that_name_no_memory_are_refused_in_words() {
        for (request, response) in [((-1, 8), (16, 8)), ((0, -8), (16, 8)), ((0, 8), (16, i32::MIN))] {
            assert!(Buffers::of(request, response, &by_default()).is_err(), "{request:?} {response:?}");
        }
        let misplaced = Buffers::of((0, i32::MAX), (i32::MAX, i32::MAX), &by_default()).unwrap_err();
        assert!(
            misplaced.to_string().starts_with("request (0, 2147483647 bytes) and response (2147483647, ")
        );
    }
}
