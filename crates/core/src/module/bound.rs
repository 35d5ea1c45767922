//! The copy of a module that is compiled: the same code, with the host's ceilings written into its declarations.

use super::inspect::section;
use super::reader::write_leb;
use super::{Limits, Module, ModuleFault};
use crate::limits::{WASM_MEMORY_MAX_PAGES, WASM_TABLE_MAX_ELEMENTS};

/// Rewrites `module` so that its memory and tables cannot grow past the host's ceilings. Custom sections, which hold
/// nothing that runs, are left out.
///
/// The result depends on nothing but the module's bytes, so the digest of those still says what runs.
///
/// # Errors
/// Those of [`Module::check_bounds`]: a module that fails them has no bounded copy.
pub fn bounded(module: &Module<'_>) -> Result<Vec<u8>, ModuleFault> {
    module.check_bounds()?;
    let mut out = Vec::with_capacity(module.bytes.len() + 32);
    out.extend_from_slice(&module.bytes[..8]);
    for section in &module.sections {
        match section.id {
            section::MEMORY => {
                let mut content = vec![1];
                if let Some(memory) = module.memory() {
                    write_limits(&mut content, memory, WASM_MEMORY_MAX_PAGES);
                }
                write_section(&mut out, section.id, &content);
            }
            section::TABLE => {
                let mut content = Vec::new();
                write_leb(&mut content, module.tables.len() as u64);
                for table in &module.tables {
                    content.push(table.element);
                    write_limits(&mut content, table.limits, WASM_TABLE_MAX_ELEMENTS);
                }
                write_section(&mut out, section.id, &content);
            }
            _ => write_section(&mut out, section.id, &module.bytes[section.content.clone()]),
        }
    }
    Ok(out)
}

fn write_section(out: &mut Vec<u8>, id: u8, content: &[u8]) {
    out.push(id);
    write_leb(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// A declared maximum below the ceiling is the module's own and stays. One below the minimum is the engine's to refuse.
fn write_limits(out: &mut Vec<u8>, limits: Limits, ceiling: u64) {
    out.push(1);
    write_leb(out, limits.min);
    write_leb(out, limits.max.map_or(ceiling, |max| max.min(ceiling)));
}
