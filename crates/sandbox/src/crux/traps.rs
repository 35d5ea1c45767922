//! Why a call of an extension has no result, and how that is found out.
//!
//! Rules, in this order:
//!
//! 1. Without fuel it is [`CallFault::FuelExhausted`], past the wall-clock limit [`CallFault::DeadlineExceeded`], wherever
//!    the call was: in the start function, in `_initialize`, in `extension_call`, in an import.
//! 2. After the module was denied memory or table elements at the host's ceiling, any other trap and any negative
//!    answer is [`CallFault::OutOfMemory`]: a module that cannot get memory has no other way to say so. One that goes on
//!    and answers has its answer taken.
//! 3. What is left is a trap, or, before the module was whole, an [`CallFault::Instantiate`]. A memory that is declared
//!    larger than the ceiling is one of those: such a module never runs, whatever it is asked.

use std::fmt;

use toolshelf_core::extension::ExtensionError;
use toolshelf_core::extension::envelope::ResponseFault;
use toolshelf_core::extension::layout::{LayoutFault, ReturnedFault};
use toolshelf_core::refusal::cut;
use toolshelf_host::CompileFault;
use wasmtime::{PoolConcurrencyLimitError, Trap};

/// Most characters of what the engine says; names in a module can be as long as it is.
const TEXT_MAX_CHARS: usize = 300;

/// Why there is no result. Its text is the one that the rules have for it: [`ExtensionError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFault {
    /// The fuel is used up.
    FuelExhausted,
    /// The wall-clock limit has passed.
    DeadlineExceeded,
    /// The memory ceiling leaves no room for the request, or for what the module asked for.
    OutOfMemory,
    /// The module trapped, or answered what no module may.
    Trap(String),
    /// The module is none, or uses what the engine does not take.
    Compile(String),
    /// Compiling took more time or memory than it is granted.
    CompileBudget(String),
    /// What compiles gave no answer.
    CompileSilent(String),
    /// The module has imports that are not there, is larger than a slot, or trapped in its start function.
    Instantiate(String),
    /// The module lacks an export, or has another thing under its name.
    MissingExport(&'static str),
    /// The module says that its answer did not fit.
    ResponseOverflow,
    /// The request is too long.
    Layout(LayoutFault),
    /// The answer cannot be read.
    Response(ResponseFault),
    /// All places for calls were taken for as long as a call may take.
    Busy,
}

impl fmt::Display for CallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ExtensionError::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for CallFault {}

impl From<ResponseFault> for CallFault {
    fn from(fault: ResponseFault) -> Self {
        Self::Response(fault)
    }
}

impl CallFault {
    /// How a call ended that got as far as the module's code.
    pub(super) fn of_run(err: &wasmtime::Error, denied_growth: bool) -> Self {
        Self::limit(err, denied_growth).unwrap_or_else(|| match err.downcast_ref::<Trap>() {
            Some(trap) => Self::Trap(format!("trap: {trap}")),
            None => Self::Trap(text(err)),
        })
    }

    /// Why a module was not instantiated.
    pub(super) fn of_instantiation(err: &wasmtime::Error, denied_growth: bool) -> Self {
        match err.downcast_ref::<PoolConcurrencyLimitError>() {
            Some(_) => Self::Busy,
            None => Self::limit(err, denied_growth).unwrap_or_else(|| Self::Instantiate(text(err))),
        }
    }

    fn limit(err: &wasmtime::Error, denied_growth: bool) -> Option<Self> {
        match err.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => Some(Self::FuelExhausted),
            Some(Trap::Interrupt) => Some(Self::DeadlineExceeded),
            _ => denied_growth.then_some(Self::OutOfMemory),
        }
    }
}

impl From<LayoutFault> for CallFault {
    fn from(fault: LayoutFault) -> Self {
        match fault {
            LayoutFault::BeyondCeiling { .. } => Self::OutOfMemory,
            fault @ LayoutFault::RequestTooLarge(_) => Self::Layout(fault),
        }
    }
}

impl From<ReturnedFault> for CallFault {
    fn from(fault: ReturnedFault) -> Self {
        match fault {
            ReturnedFault::Overflow => Self::ResponseOverflow,
            fault => Self::Trap(fault.to_string()),
        }
    }
}

/// What it is in words, over HTTP and as a refusal is said by the rules.
impl From<CallFault> for ExtensionError {
    fn from(fault: CallFault) -> Self {
        match fault {
            CallFault::FuelExhausted => Self::FuelExhausted,
            CallFault::DeadlineExceeded => Self::DeadlineExceeded,
            CallFault::OutOfMemory => Self::OutOfMemory,
            CallFault::Trap(why) => Self::Trap(why),
            CallFault::Compile(why) => Self::Compile(why),
            CallFault::CompileBudget(why) => Self::CompileBudget(why),
            CallFault::CompileSilent(why) => Self::Internal(format!("what compiles gave no answer: {why}")),
            CallFault::Instantiate(why) => Self::Instantiate(why),
            CallFault::MissingExport(name) => Self::MissingExport(name),
            CallFault::ResponseOverflow => Self::ResponseOverflow,
            CallFault::Layout(fault) => Self::Layout(fault),
            CallFault::Response(fault) => Self::Response(fault),
            CallFault::Busy => Self::Busy,
        }
    }
}

impl From<CompileFault> for CallFault {
    fn from(fault: CompileFault) -> Self {
        match fault {
            CompileFault::Invalid(why) => Self::Compile(cut(&why, TEXT_MAX_CHARS)),
            CompileFault::TooCostly(why) => Self::CompileBudget(cut(&why, TEXT_MAX_CHARS)),
            CompileFault::DeadlinePassed => Self::CompileBudget("its time has passed".to_owned()),
            CompileFault::Silent(why) => Self::CompileSilent(cut(&why, TEXT_MAX_CHARS)),
        }
    }
}

/// What the engine says, with its causes.
fn text(err: &wasmtime::Error) -> String {
    cut(&format!("{err:#}"), TEXT_MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trap(trap: Trap) -> wasmtime::Error {
        wasmtime::Error::from(trap)
    }

    #[test]
    fn fuel_and_time_come_before_want_of_memory() {
        for denied in [false, true] {
            assert_eq!(CallFault::of_run(&trap(Trap::OutOfFuel), denied), CallFault::FuelExhausted);
            assert_eq!(CallFault::of_run(&trap(Trap::Interrupt), denied), CallFault::DeadlineExceeded);
            assert_eq!(CallFault::of_instantiation(&trap(Trap::OutOfFuel), denied), CallFault::FuelExhausted);
        }
    }

    #[test]
    fn a_trap_after_a_denied_growth_is_want_of_memory() {
        let unreachable = trap(Trap::UnreachableCodeReached);
        assert_eq!(CallFault::of_run(&unreachable, true), CallFault::OutOfMemory);
        assert_eq!(CallFault::of_instantiation(&unreachable, true), CallFault::OutOfMemory);
        assert!(matches!(CallFault::of_run(&unreachable, false), CallFault::Trap(_)));
        assert!(matches!(CallFault::of_instantiation(&unreachable, false), CallFault::Instantiate(_)));
    }

    #[test]
    fn the_displays_are_those_of_the_seed() {
        assert_eq!(CallFault::FuelExhausted.to_string(), "EXT_WASM_FUEL_EXHAUSTED");
        assert_eq!(CallFault::DeadlineExceeded.to_string(), "EXT_WASM_DEADLINE_EXCEEDED");
        assert_eq!(CallFault::OutOfMemory.to_string(), "EXT_WASM_OOM");
        assert_eq!(CallFault::Trap("x".into()).to_string(), "EXT_WASM_TRAP: x");
        assert_eq!(CallFault::MissingExport("memory").to_string(), "missing export: memory");
        assert_eq!(CallFault::ResponseOverflow.to_string(), "response buffer overflow");
    }

    #[test]
    fn every_fault_has_the_text_of_the_rules() {
        let too_large = LayoutFault::RequestTooLarge(300_000);
        let (layout, response) = (too_large.to_string(), ResponseFault::NotUtf8.to_string());
        let faults = [
            (CallFault::FuelExhausted, "EXT_WASM_FUEL_EXHAUSTED"),
            (CallFault::DeadlineExceeded, "EXT_WASM_DEADLINE_EXCEEDED"),
            (CallFault::OutOfMemory, "EXT_WASM_OOM"),
            (CallFault::Trap("x".into()), "EXT_WASM_TRAP: x"),
            (CallFault::Compile("x".into()), "compile error: x"),
            (CallFault::CompileBudget("x".into()), "compile error: over budget: x"),
            (CallFault::CompileSilent("x".into()), "what compiles gave no answer: x"),
            (CallFault::Instantiate("x".into()), "instantiate error: x"),
            (CallFault::MissingExport("memory"), "missing export: memory"),
            (CallFault::ResponseOverflow, "response buffer overflow"),
            (CallFault::Layout(LayoutFault::RequestTooLarge(300_000)), &*layout),
            (CallFault::Response(ResponseFault::NotUtf8), &*response),
            (CallFault::Busy, "too many extension calls run; try again later"),
        ];
        for (fault, text) in faults {
            assert_eq!(fault.to_string(), text);
            assert_eq!(ExtensionError::from(fault).to_string(), text);
        }
        let beyond = LayoutFault::BeyondCeiling { needed: 2, ceiling: 1 };
        assert_eq!(CallFault::from(beyond), CallFault::OutOfMemory);
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = wasmtime::Error::msg("x".repeat(100_000));
        assert!(CallFault::of_instantiation(&long, false).to_string().len() < 400);
    }
}
