//! Pre-flight: what a module declares, judged before any engine sees it, and the bounded copy that is run.
//!
//! Browsers do not bound linear memory (1 and 4 GiB were granted when asked for), so the host reads the sections itself
//! and writes its ceilings into the copy that it compiles. Whatever can hold memory that no section bounds is refused:
//! garbage-collected types, exception tags, shared and 64-bit memories.
//!
//! This reader looks only at what the rules need. It does not validate function bodies: the engine does.

mod bound;
mod inspect;
mod reader;

pub use bound::bounded;
pub use inspect::{Limits, Module, Table};

use crate::abi::Abi;
use crate::limits::{
    WASM_MAX_TABLES, WASM_MEMORY_MAX_BYTES, WASM_MODULE_MAX_BYTES, WASM_PAGE_BYTES, WASM_TABLE_MAX_ELEMENTS,
};
use crate::refusal::{Code, Refusal};

/// Most imports that a refusal names; the count is always given.
pub const IMPORTS_SHOWN: usize = 8;

/// Why a module is refused before it is compiled. Each variant carries its evidence.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ModuleFault {
    /// The file is larger than the host reads.
    #[error("the module file is {0} bytes; the host reads and hashes at most {WASM_MODULE_MAX_BYTES}")]
    TooLarge(u64),
    /// The bytes do not have the form of a module.
    #[error("not a valid module: {what} at byte {offset}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// Where, in bytes from the start of the file.
        offset: usize,
    },
    /// The module imports something.
    #[error("the module declares {count} import{}: {}{}; a shelf tool may import nothing",
        if *count == 1 { "" } else { "s" }, shown.join(", "), if *count as usize > shown.len() { ", …" } else { "" })]
    Imports {
        /// The first of them, as `module.name`.
        shown: Vec<String>,
        /// How many there are.
        count: u32,
    },
    /// No memory is exported under the name `memory`.
    #[error("the module exports no linear memory named `memory`")]
    NoMemory,
    /// More than one memory.
    #[error("the module declares {0} memories; the host runs modules with one")]
    Memories(u32),
    /// The memory is shared, 64-bit or has pages of its own size.
    #[error("the module's memory is {0}, which the host does not run")]
    MemoryKind(&'static str),
    /// The memory is smaller than the ABI's buffers.
    #[error("memory is {bytes} bytes but the declared ABI needs {needed}")]
    MemoryTooSmall {
        /// Initial size.
        bytes: u64,
        /// Size that the ABI needs.
        needed: u64,
    },
    /// The memory starts above the host's ceiling.
    #[error(
        "the module asks for {0} bytes of memory at its start; the host grants at most {WASM_MEMORY_MAX_BYTES}"
    )]
    MemoryTooLarge(u64),
    /// A table starts above the host's ceiling.
    #[error("the module asks for a table of {0} elements; the host grants at most {WASM_TABLE_MAX_ELEMENTS}")]
    TableTooLarge(u64),
    /// Too many tables.
    #[error("the module declares {0} tables; the host grants at most {WASM_MAX_TABLES}")]
    Tables(u32),
    /// A feature whose memory no section bounds.
    #[error("the module uses {0}, whose memory the host cannot bound")]
    Unbounded(&'static str),
    /// The ABI's function is not exported.
    #[error("the module exports no function `{0}`, which its ABI calls")]
    NoExport(&'static str),
    /// The ABI's function is there with another type.
    #[error("the export `{name}` has the type {found}; its ABI calls {wanted}")]
    ExportType {
        /// Name of the export.
        name: &'static str,
        /// Its type.
        found: String,
        /// The type that the ABI calls.
        wanted: String,
    },
}

impl ModuleFault {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::TooLarge(_) => Code::OverBudget,
            Self::Malformed { .. } => Code::WasmInvalid,
            Self::Imports { .. } => Code::ImportUndeclared,
            Self::MemoryTooLarge(_) | Self::TableTooLarge(_) | Self::Tables(_) => Code::ResourceExceeded,
            Self::NoMemory
            | Self::Memories(_)
            | Self::MemoryKind(_)
            | Self::MemoryTooSmall { .. }
            | Self::Unbounded(_)
            | Self::NoExport(_)
            | Self::ExportType { .. } => Code::UnsupportedAbi,
        }
    }
}

impl From<ModuleFault> for Refusal {
    fn from(fault: ModuleFault) -> Self {
        Self::new(fault.code(), fault.to_string())
    }
}

/// Checks a file's size before it is read.
///
/// # Errors
/// [`ModuleFault::TooLarge`] above [`WASM_MODULE_MAX_BYTES`].
pub fn check_size(bytes: u64) -> Result<(), ModuleFault> {
    if bytes > WASM_MODULE_MAX_BYTES as u64 { Err(ModuleFault::TooLarge(bytes)) } else { Ok(()) }
}

impl Module<'_> {
    /// Checks what every shelf tool must keep, whatever its ABI: no imports, and nothing that cannot be bounded.
    ///
    /// # Errors
    /// The first [`ModuleFault`] that holds.
    pub fn check_bounds(&self) -> Result<(), ModuleFault> {
        if self.import_count > 0 {
            return Err(ModuleFault::Imports { shown: self.imports_shown.clone(), count: self.import_count });
        }
        if let Some(feature) = self.unbounded {
            return Err(ModuleFault::Unbounded(feature));
        }
        match self.memory_count {
            0 => return Err(ModuleFault::NoMemory),
            1 => {}
            count => return Err(ModuleFault::Memories(count)),
        }
        let Some(memory) = self.memory.filter(|_| self.memory_exported) else {
            return Err(ModuleFault::NoMemory);
        };
        if let Some(kind) = memory.kind {
            return Err(ModuleFault::MemoryKind(kind));
        }
        let bytes = memory.min.saturating_mul(WASM_PAGE_BYTES);
        if bytes > WASM_MEMORY_MAX_BYTES {
            return Err(ModuleFault::MemoryTooLarge(bytes));
        }
        if self.table_count as usize > WASM_MAX_TABLES {
            return Err(ModuleFault::Tables(self.table_count));
        }
        match self.tables.iter().find(|table| table.limits.min > WASM_TABLE_MAX_ELEMENTS) {
            Some(table) => Err(ModuleFault::TableTooLarge(table.limits.min)),
            None => Ok(()),
        }
    }

    /// Checks that the module fits `abi`: its memory covers the buffers, and the export is there with the right type.
    ///
    /// # Errors
    /// The first [`ModuleFault`] that holds.
    pub fn check_abi(&self, abi: Abi) -> Result<(), ModuleFault> {
        let bytes = self.memory_bytes();
        let needed = abi.memory_required();
        if bytes < needed {
            return Err(ModuleFault::MemoryTooSmall { bytes, needed });
        }
        let layout = abi.layout();
        let wanted = format!("({}) -> (i32)", vec!["i32"; layout.inputs.len()].join(", "));
        match self.exported_function_type(layout.export)? {
            None => Err(ModuleFault::NoExport(layout.export)),
            Some(found) if found == wanted => Ok(()),
            Some(found) => Err(ModuleFault::ExportType { name: layout.export, found, wanted }),
        }
    }

    /// Initial size of the linear memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.map_or(0, |memory| memory.min.saturating_mul(WASM_PAGE_BYTES))
    }
}

#[cfg(test)]
mod tests;
