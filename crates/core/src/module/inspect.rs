//! Reading a module's declarations.

use std::ops::Range;

use super::reader::Reader;
use super::{IMPORTS_SHOWN, ModuleFault};
use crate::refusal::cut;

/// Ids of the sections that this reader looks into, as the binary format numbers them.
pub(super) mod section {
    pub(in super::super) const CUSTOM: u8 = 0;
    pub(in super::super) const TYPE: u8 = 1;
    pub(in super::super) const IMPORT: u8 = 2;
    pub(in super::super) const FUNCTION: u8 = 3;
    pub(in super::super) const TABLE: u8 = 4;
    pub(in super::super) const MEMORY: u8 = 5;
    pub(in super::super) const EXPORT: u8 = 7;
    pub(in super::super) const START: u8 = 8;
    pub(in super::super) const TAG: u8 = 13;
}

/// What a module declares, as far as the rules ask.
#[derive(Debug, Clone)]
pub struct Module<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) sections: Vec<Section>,
    pub(super) import_count: u32,
    pub(super) imports_shown: Vec<String>,
    pub(super) memory_count: u32,
    pub(super) memory: Option<Limits>,
    pub(super) memory_exported: bool,
    pub(super) table_count: u32,
    pub(super) tables: Vec<Table>,
    pub(super) has_start: bool,
    pub(super) unbounded: Option<&'static str>,
}

/// A section and where its content lies in the file.
#[derive(Debug, Clone)]
pub(super) struct Section {
    pub(super) id: u8,
    pub(super) content: Range<usize>,
}

/// The declared size of a memory (in pages) or of a table (in elements).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size at the start.
    pub min: u64,
    /// Declared maximum.
    pub max: Option<u64>,
    /// What makes it a kind that the host does not run: shared, 64-bit, own page size.
    pub kind: Option<&'static str>,
}

/// A declared table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// The reference type's byte in the binary format.
    pub element: u8,
    /// Declared size.
    pub limits: Limits,
}

impl<'a> Module<'a> {
    /// Reads the declarations of `bytes`.
    ///
    /// # Errors
    /// [`ModuleFault::TooLarge`] and [`ModuleFault::Malformed`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, ModuleFault> {
        super::check_size(bytes.len() as u64)?;
        let mut reader = Reader::new(bytes, 0);
        if reader.take(8).map_err(|_| reader.fault("no WebAssembly header"))? != b"\0asm\x01\0\0\0" {
            return Err(ModuleFault::Malformed { what: "no WebAssembly header of version 1", offset: 0 });
        }
        let mut module = Self {
            bytes,
            sections: Vec::new(),
            import_count: 0,
            imports_shown: Vec::new(),
            memory_count: 0,
            memory: None,
            memory_exported: false,
            table_count: 0,
            tables: Vec::new(),
            has_start: false,
            unbounded: None,
        };
        let mut seen = 0u16;
        while !reader.is_empty() {
            let id = reader.byte()?;
            let length = reader.u32()?;
            let start = reader.offset();
            reader.take(length)?;
            if id == section::CUSTOM {
                continue;
            }
            if id > section::TAG {
                return Err(ModuleFault::Malformed { what: "unknown section", offset: start });
            }
            // Two sections of one kind would let a second one undo what was read in the first.
            if seen & 1 << id != 0 {
                return Err(ModuleFault::Malformed { what: "repeated section", offset: start });
            }
            seen |= 1 << id;
            let content = start..reader.offset();
            module.read_section(id, Reader::new(&bytes[content.clone()], start))?;
            module.sections.push(Section { id, content });
        }
        Ok(module)
    }

    /// How many imports the module declares.
    #[must_use]
    pub fn import_count(&self) -> u32 {
        self.import_count
    }

    /// The declared memory, if there is exactly one.
    #[must_use]
    pub fn memory(&self) -> Option<Limits> {
        self.memory.filter(|_| self.memory_count == 1)
    }

    /// Whether the module runs code when it is instantiated.
    #[must_use]
    pub fn has_start(&self) -> bool {
        self.has_start
    }

    fn read_section(&mut self, id: u8, reader: Reader<'a>) -> Result<(), ModuleFault> {
        match id {
            section::TYPE => self.read_types(reader),
            section::IMPORT => self.read_imports(reader),
            section::TABLE => self.read_tables(reader),
            section::MEMORY => self.read_memories(reader),
            section::EXPORT => self.read_exports(reader),
            section::START => {
                self.has_start = true;
                Ok(())
            }
            section::TAG => {
                self.unbounded = Some("exception tags");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Only function types are let through: structs and arrays live on the engine's heap, which nothing bounds.
    fn read_types(&mut self, mut reader: Reader<'a>) -> Result<(), ModuleFault> {
        let count = reader.u32()?;
        for _ in 0..count {
            if reader.byte()? != FUNCTION_TYPE {
                self.unbounded = Some("garbage-collected types");
                return Ok(());
            }
            for _ in 0..2 {
                let values = reader.u32()?;
                if reader.take(values)?.iter().any(|&value| value_type(value).is_none()) {
                    self.unbounded = Some("typed references");
                    return Ok(());
                }
            }
        }
        end(&reader)
    }

    fn read_imports(&mut self, mut reader: Reader<'a>) -> Result<(), ModuleFault> {
        self.import_count = reader.u32()?;
        for _ in 0..self.import_count.min(IMPORTS_SHOWN as u32) {
            let (module, name) = (reader.name()?, reader.name()?);
            self.imports_shown.push(format!("{}.{}", cut(module, 60), cut(name, 60)));
            // What is imported is of no interest, but the next import begins only behind it.
            match reader.byte()? {
                0 => drop(reader.u32()?),
                1 => {
                    reader.byte()?;
                    read_limits(&mut reader)?;
                }
                2 => drop(read_limits(&mut reader)?),
                3 => drop((reader.byte()?, reader.byte()?)),
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn read_tables(&mut self, mut reader: Reader<'a>) -> Result<(), ModuleFault> {
        self.table_count = reader.u32()?;
        for _ in 0..(self.table_count as usize).min(crate::limits::WASM_MAX_TABLES) {
            let element = reader.byte()?;
            if !matches!(value_type(element), Some("funcref" | "externref")) {
                self.unbounded = Some("tables of typed references");
                return Ok(());
            }
            let limits = read_limits(&mut reader)?;
            if limits.kind.is_some() {
                self.unbounded = Some("64-bit tables");
                return Ok(());
            }
            self.tables.push(Table { element, limits });
        }
        if self.tables.len() == self.table_count as usize { end(&reader) } else { Ok(()) }
    }

    fn read_memories(&mut self, mut reader: Reader<'a>) -> Result<(), ModuleFault> {
        self.memory_count = reader.u32()?;
        if self.memory_count != 1 {
            return Ok(());
        }
        self.memory = Some(read_limits(&mut reader)?);
        end(&reader)
    }

    fn read_exports(&mut self, mut reader: Reader<'a>) -> Result<(), ModuleFault> {
        let count = reader.u32()?;
        for _ in 0..count {
            let (name, kind, index) = (reader.name()?, reader.byte()?, reader.u32()?);
            self.memory_exported |= name == "memory" && kind == MEMORY_EXPORT && index == 0;
        }
        end(&reader)
    }

    fn content(&self, id: u8) -> Option<Reader<'a>> {
        let section = self.sections.iter().find(|section| section.id == id)?;
        Some(Reader::new(&self.bytes[section.content.clone()], section.content.start))
    }

    /// The type of the exported function `name`, as text such as `(i32, i32) -> (i32)`. Imports count as no function,
    /// since a module that has any is refused before.
    pub(super) fn exported_function_type(&self, name: &str) -> Result<Option<String>, ModuleFault> {
        let Some(mut exports) = self.content(section::EXPORT) else { return Ok(None) };
        let count = exports.u32()?;
        for _ in 0..count {
            let (export, kind, index) = (exports.name()?, exports.byte()?, exports.u32()?);
            if export == name && kind == FUNCTION_EXPORT {
                return self.function_type(index);
            }
        }
        Ok(None)
    }

    fn function_type(&self, index: u32) -> Result<Option<String>, ModuleFault> {
        let Some(mut functions) = self.content(section::FUNCTION) else { return Ok(None) };
        if index >= functions.u32()? {
            return Err(functions.fault("exported function does not exist"));
        }
        for _ in 0..index {
            functions.u32()?;
        }
        let wanted = functions.u32()?;
        let Some(mut types) = self.content(section::TYPE) else { return Ok(None) };
        if wanted >= types.u32()? {
            return Err(types.fault("type does not exist"));
        }
        for _ in 0..wanted {
            read_function_type(&mut types)?;
        }
        let (parameters, results) = read_function_type(&mut types)?;
        Ok(Some(format!("({}) -> ({})", type_names(parameters), type_names(results))))
    }
}

const FUNCTION_TYPE: u8 = 0x60;
const FUNCTION_EXPORT: u8 = 0;
const MEMORY_EXPORT: u8 = 2;

fn read_function_type<'a>(types: &mut Reader<'a>) -> Result<(&'a [u8], &'a [u8]), ModuleFault> {
    if types.byte()? != FUNCTION_TYPE {
        return Err(types.fault("not a function type"));
    }
    let count = types.u32()?;
    let parameters = types.take(count)?;
    let count = types.u32()?;
    Ok((parameters, types.take(count)?))
}

fn type_names(types: &[u8]) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<_> = types.iter().take(SHOWN).map(|&byte| value_type(byte).unwrap_or("?")).collect();
    if types.len() > SHOWN {
        names.push("…");
    }
    names.join(", ")
}

fn value_type(byte: u8) -> Option<&'static str> {
    Some(match byte {
        0x7f => "i32",
        0x7e => "i64",
        0x7d => "f32",
        0x7c => "f64",
        0x7b => "v128",
        0x70 => "funcref",
        0x6f => "externref",
        _ => return None,
    })
}

fn read_limits(reader: &mut Reader<'_>) -> Result<Limits, ModuleFault> {
    let flags = reader.byte()?;
    if flags > 0x0f {
        return Err(reader.fault("unknown limits"));
    }
    let kind = match flags {
        0 | 1 => None,
        _ if flags & 8 != 0 => Some("of a page size of its own"),
        _ if flags & 4 != 0 => Some("64-bit"),
        _ => Some("shared"),
    };
    let min = reader.u64()?;
    let max = if flags & 1 == 0 { None } else { Some(reader.u64()?) };
    if flags & 8 != 0 {
        reader.u32()?;
    }
    Ok(Limits { min, max, kind })
}

fn end(reader: &Reader<'_>) -> Result<(), ModuleFault> {
    if reader.is_empty() { Ok(()) } else { Err(reader.fault("section is longer than its content")) }
}
