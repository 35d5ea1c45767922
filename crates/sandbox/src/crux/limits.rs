//! The limits of one call, and the limiter that holds its memory and tables to them.

use wasmtime::ResourceLimiter;

use super::engine::{EXTENSION_MAX_TABLES, EXTENSION_MEMORY_CEILING_BYTES, EXTENSION_TABLE_MAX_ELEMENTS};

/// What one call may use. A setting may change them between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Fuel: roughly one unit for each instruction, and for each byte that an instruction for many bytes moves.
    pub fuel: u64,
    /// Ceiling of linear memory, in bytes. It counts at most as [`EXTENSION_MEMORY_CEILING_BYTES`].
    pub memory_bytes: usize,
    /// Wall-clock time, in milliseconds. The engine's tick is its resolution. It starts when the code is compiled.
    pub wall_ms: u64,
}

impl Limits {
    /// Those that hold where no setting names others (the extensions seed, 6.6).
    pub const DEFAULT: Self = Self { fuel: 1_000_000, memory_bytes: 16_000_000, wall_ms: 1_000 };
}

/// Grants or denies what a module asks for, and remembers that it denied something.
#[derive(Debug)]
pub(super) struct Limiter {
    memory_bytes: usize,
    /// Memories and tables of the module that have not been asked for yet: each is, once, before anything runs.
    declared: u32,
    denied: bool,
    /// The growth that was granted last goes past the maximum that the module itself declares.
    past_own_maximum: bool,
}

impl Limiter {
    /// A limiter for a module that declares so many memories and tables.
    pub(super) fn new(limits: &Limits, declared: u32) -> Self {
        let memory_bytes = limits.memory_bytes.min(EXTENSION_MEMORY_CEILING_BYTES);
        Self { memory_bytes, declared, denied: false, past_own_maximum: false }
    }

    /// Whether the module, once it ran, asked for more memory or table than it may have.
    pub(super) fn denied_growth(&self) -> bool {
        self.denied
    }

    fn growing(&mut self, desired: usize, own: Option<usize>, most: usize) -> bool {
        let granted = desired <= most;
        match self.declared.checked_sub(1) {
            // What a module declares for its beginning is no growth: it is refused as part of the instantiation.
            Some(left) => self.declared = left,
            None => self.denied |= !granted,
        }
        self.past_own_maximum = own.is_some_and(|own| desired > own);
        granted
    }

    fn grow_failed(&mut self) {
        // That a module keeps to its own maximum is nobody's limit but its own. All else that fails is want of memory.
        self.denied |= !std::mem::take(&mut self.past_own_maximum);
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.growing(desired, maximum, self.memory_bytes))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.grow_failed();
        Ok(())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.growing(desired, maximum, EXTENSION_TABLE_MAX_ELEMENTS))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.grow_failed();
        Ok(())
    }

    fn instances(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        EXTENSION_MAX_TABLES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_seed() {
        assert_eq!(Limits::DEFAULT, Limits { fuel: 1_000_000, memory_bytes: 16_000_000, wall_ms: 1_000 });
    }

    #[test]
    fn a_denied_growth_is_remembered_and_a_granted_one_is_not() {
        let mut limiter = Limiter::new(&Limits { memory_bytes: 131_072, ..Limits::DEFAULT }, 1);
        assert!(limiter.memory_growing(0, 0, None).unwrap());
        assert!(limiter.memory_growing(65_536, 131_072, None).unwrap());
        assert!(!limiter.denied_growth());
        assert!(!limiter.memory_growing(131_072, 196_608, None).unwrap());
        assert!(limiter.denied_growth());
    }

    #[test]
    fn what_is_declared_for_the_beginning_is_no_growth() {
        let mut limiter = Limiter::new(&Limits { memory_bytes: 65_536, ..Limits::DEFAULT }, 1);
        assert!(!limiter.memory_growing(0, 131_072, None).unwrap());
        assert!(!limiter.denied_growth());
    }

    #[test]
    fn the_modules_own_maximum_is_not_the_hosts_limit() {
        let mut limiter = Limiter::new(&Limits::DEFAULT, 0);
        assert!(limiter.memory_growing(65_536, 131_072, Some(65_536)).unwrap());
        limiter.memory_grow_failed(wasmtime::Error::msg("past its maximum")).unwrap();
        assert!(!limiter.denied_growth());
        // More pages than a memory can have never come to `memory_growing`.
        limiter.memory_grow_failed(wasmtime::Error::msg("no such size")).unwrap();
        assert!(limiter.denied_growth());
    }

    #[test]
    fn no_setting_goes_past_the_slots_of_the_pool() {
        let mut limiter = Limiter::new(&Limits { memory_bytes: usize::MAX, ..Limits::DEFAULT }, 0);
        assert!(!limiter.memory_growing(65_536, EXTENSION_MEMORY_CEILING_BYTES + 65_536, None).unwrap());
    }
}
