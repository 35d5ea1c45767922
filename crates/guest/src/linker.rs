//! Where the linker has put the module's own things, and so which addresses are left to the host.

use core::ops::Range;

/// The ranges that the linker has given away.
#[derive(Debug, Clone)]
pub(crate) struct Linked {
    /// The stack. It is used from its end downwards.
    pub(crate) stack: Range<usize>,
    /// The data, with initial values or without.
    pub(crate) data: Range<usize>,
    /// Where the heap begins. It is taken to reach to the end of memory.
    pub(crate) heap: usize,
}

impl Linked {
    /// Those of this module.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn here() -> Self {
        #![expect(unsafe_code, reason = "what the linker defines has to be declared as foreign")]
        unsafe extern "C" {
            safe static __stack_low: u8;
            safe static __stack_high: u8;
            safe static __global_base: u8;
            safe static __data_end: u8;
            safe static __heap_base: u8;
        }
        // The linker tells addresses: the statics have no value, and are not read.
        Self {
            stack: (&raw const __stack_low).addr()..(&raw const __stack_high).addr(),
            data: (&raw const __global_base).addr()..(&raw const __data_end).addr(),
            heap: (&raw const __heap_base).addr(),
        }
    }

    /// Whether a range is left to buffers for as long as the module runs.
    ///
    /// That the range is memory at all follows from the data or the heap lying behind it, for memory is at least as
    /// large as what the linker placed in it.
    pub(crate) fn leaves(&self, buffers: &Range<usize>) -> bool {
        apart(buffers, &self.stack) && self.leaves_data_and_heap(buffers)
    }

    /// Whether a range is left to buffers while no more of the stack is in use than its uppermost `in_use` bytes.
    #[cfg(feature = "extension")]
    pub(crate) fn leaves_for_now(&self, buffers: &Range<usize>, in_use: usize) -> bool {
        let used = self.stack.start.max(self.stack.end.saturating_sub(in_use))..self.stack.end;
        apart(buffers, &used) && self.leaves_data_and_heap(buffers)
    }

    fn leaves_data_and_heap(&self, buffers: &Range<usize>) -> bool {
        apart(buffers, &self.data) && buffers.end <= self.heap
    }
}

fn apart(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.end <= other.start || other.end <= one.start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_for_now_is_the_upper_end_of_the_stack() {
        let linked = Linked { stack: 100..200, data: 200..300, heap: 300 };
        for (buffers, always, for_now) in [
            (0..100, true, true),
            (100..150, false, true),
            (0..150, false, true),
            (0..151, false, false),
            (200..201, false, false),
            (300..301, false, false),
        ] {
            assert_eq!(linked.leaves(&buffers), always, "{buffers:?}");
            assert_eq!(linked.leaves_for_now(&buffers, 50), for_now, "{buffers:?}");
        }
        assert!(!linked.leaves_for_now(&(99..101), 5_000));
    }
}
