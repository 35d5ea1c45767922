//! Modules in every shape that the rules name, written as text.

use proptest::prelude::*;
use wasmparser::{Payload, TableInit, Validator, WasmFeatures};

use super::*;
use crate::limits::{WASM_MEMORY_MAX_PAGES, WASM_TABLE_MAX_ELEMENTS};

/// A `buffer-abi/1` module with `extra` fields.
fn tool(memory: &str, extra: &str) -> Vec<u8> {
    wat::parse_str(format!(
        r#"(module {memory} {extra} (func (export "sha256") (param i32) (result i32) i32.const 32))"#
    ))
    .unwrap()
}

const MEMORY: &str = r#"(memory (export "memory") 2)"#;

fn preflight(bytes: &[u8], abi: Abi) -> Result<(), Refusal> {
    let module = Module::read(bytes)?;
    module.check_bounds()?;
    Ok(module.check_abi(abi)?)
}

fn refusal(bytes: &[u8]) -> (Code, String) {
    let refusal = preflight(bytes, Abi::Buffer1).unwrap_err();
    (refusal.code, refusal.why)
}

#[test]
fn a_plain_tool_passes() {
    assert_eq!(preflight(&tool(MEMORY, ""), Abi::Buffer1), Ok(()));
    let start =
        r#"(func $s) (start $s) (table 3 funcref) (global (mut i32) (i32.const 0)) (data (i32.const 0) "x")"#;
    let with_all = tool(MEMORY, start);
    assert_eq!(preflight(&with_all, Abi::Buffer1), Ok(()));
    assert!(Module::read(&with_all).unwrap().has_start());
}

#[test]
fn imports_are_refused_and_listed() {
    let one = wat::parse_str(r#"(module (import "env" "f" (func)) (memory (export "memory") 1))"#).unwrap();
    let (code, why) = refusal(&one);
    assert_eq!(code, Code::ImportUndeclared);
    assert!(why.contains("1 import: env.f;"), "{why}");

    let many: String = (0..20).map(|n| format!(r#"(import "wasi" "f{n}" (func (param i32)))"#)).collect();
    let (code, why) = refusal(&wat::parse_str(format!("(module {many})")).unwrap());
    assert_eq!(code, Code::ImportUndeclared);
    assert!(why.contains("20 imports: wasi.f0,") && why.contains("wasi.f7, …"), "{why}");

    for kind in ["(memory 1)", "(table 1 funcref)", "(global i32)", "(global (mut i64))"] {
        let bytes =
            wat::parse_str(format!(r#"(module (import "a" "b" {kind}) (import "c" "d" (func)))"#)).unwrap();
        let (code, why) = refusal(&bytes);
        assert_eq!(code, Code::ImportUndeclared, "{kind}");
        assert!(why.contains("a.b, c.d"), "{why}");
    }
}

#[test]
fn memory_must_be_one_exported_plain_and_of_a_size_between_the_abi_and_the_ceiling() {
    let cases = [
        ("", Code::UnsupportedAbi, "exports no linear memory"),
        ("(memory 2)", Code::UnsupportedAbi, "exports no linear memory"),
        (r#"(memory (export "mem") 2)"#, Code::UnsupportedAbi, "exports no linear memory"),
        (
            r#"(memory (export "memory") 0)"#,
            Code::UnsupportedAbi,
            "memory is 0 bytes but the declared ABI needs 9248",
        ),
        (r#"(memory (export "memory") 1) (memory 1)"#, Code::UnsupportedAbi, "2 memories"),
        (r#"(memory (export "memory") 1 2 shared)"#, Code::UnsupportedAbi, "shared"),
        (r#"(memory (export "memory") i64 1)"#, Code::UnsupportedAbi, "64-bit"),
        (r#"(memory (export "memory") 1025)"#, Code::ResourceExceeded, "67174400 bytes"),
        (r#"(memory (export "memory") 65536)"#, Code::ResourceExceeded, "4294967296 bytes"),
    ];
    for (memory, wanted, evidence) in cases {
        let (code, why) = refusal(&tool(memory, ""));
        assert_eq!(code, wanted, "{memory}");
        assert!(why.contains(evidence), "{memory}: {why}");
    }
    assert_eq!(preflight(&tool(r#"(memory (export "memory") 1024)"#, ""), Abi::Buffer1), Ok(()));
}

#[test]
fn what_no_section_bounds_is_refused() {
    let cases = [
        ("(type (struct (field i32)))", "garbage-collected types"),
        ("(type (array (mut i8)))", "garbage-collected types"),
        ("(tag)", "exception tags"),
        ("(type (func (param (ref func))))", "typed references"),
        ("(table i64 1 funcref)", "64-bit tables"),
    ];
    for (extra, evidence) in cases {
        let (code, why) = refusal(&tool(MEMORY, extra));
        assert_eq!(code, Code::UnsupportedAbi, "{extra}");
        assert!(why.contains(evidence), "{extra}: {why}");
    }
    assert_eq!(refusal(&tool(MEMORY, "(table 65537 funcref)")).0, Code::ResourceExceeded);
    assert_eq!(refusal(&tool(MEMORY, &"(table 1 funcref)".repeat(17))).0, Code::ResourceExceeded);
}

#[test]
fn the_export_must_be_a_function_of_the_right_type() {
    let module = |export: &str| wat::parse_str(format!("(module {MEMORY} {export})")).unwrap();
    let (code, why) = refusal(&module(""));
    assert!(code == Code::UnsupportedAbi && why.contains("no function `sha256`"), "{why}");
    let (code, why) = refusal(&module(r#"(global (export "sha256") i32 (i32.const 1))"#));
    assert!(code == Code::UnsupportedAbi && why.contains("no function `sha256`"), "{why}");
    let (code, why) = refusal(&module(r#"(func (export "sha256") (param i32 f64))"#));
    assert_eq!(code, Code::UnsupportedAbi);
    assert!(why.contains("(i32, f64) -> ()") && why.contains("(i32) -> (i32)"), "{why}");
}

#[test]
fn a_file_that_is_no_module_is_invalid() {
    for bytes in [&b""[..], b"\0asm", b"MZ\x90\0\0\0\0\0", b"\0asm\x0d\0\x01\0", b"\0asm\x01\0\0\0\x63\0"] {
        assert_eq!(Module::read(bytes).unwrap_err().code(), Code::WasmInvalid, "{bytes:?}");
    }
    let twice = [&tool(MEMORY, "")[..], &[5, 3, 1, 0, 1]].concat();
    assert_eq!(Module::read(&twice).unwrap_err().code(), Code::WasmInvalid);
}

#[test]
fn one_byte_over_the_bound_is_not_looked_into() {
    let fault = Module::read(&vec![0; WASM_MODULE_MAX_BYTES + 1]).unwrap_err();
    assert_eq!(fault.code(), Code::OverBudget);
    assert!(
        fault
            .to_string()
            .contains("the module file is 16777217 bytes; the host reads and hashes at most 16777216")
    );
}

/// Declared maximum of the memory and of the first table.
fn declared(bytes: &[u8]) -> (Option<u64>, Option<u64>) {
    let (mut memory, mut table) = (None, None);
    for payload in wasmparser::Parser::new(0).parse_all(bytes) {
        match payload.unwrap() {
            Payload::MemorySection(memories) => {
                memory = memories.into_iter().next().unwrap().unwrap().maximum
            }
            Payload::TableSection(tables) => {
                let first = tables.into_iter().next().unwrap().unwrap();
                assert!(matches!(first.init, TableInit::RefNull));
                table = first.ty.maximum;
            }
            _ => {}
        }
    }
    (memory, table)
}

#[test]
fn the_bounded_copy_is_valid_and_has_the_ceilings() {
    let cases = [
        (r#"(memory (export "memory") 2)"#, WASM_MEMORY_MAX_PAGES),
        (r#"(memory (export "memory") 2 65536)"#, WASM_MEMORY_MAX_PAGES),
        (r#"(memory (export "memory") 2 3)"#, 3),
    ];
    for (memory, max) in cases {
        let bytes = tool(memory, "(table 3 funcref) (table 1 2 externref) (@custom \"note\" \"hello\")");
        let copy = bounded(&Module::read(&bytes).unwrap()).unwrap();
        Validator::new_with_features(WasmFeatures::all()).validate_all(&copy).unwrap();
        assert_eq!(declared(&copy), (Some(max), Some(WASM_TABLE_MAX_ELEMENTS)), "{memory}");
        assert!(!copy.windows(5).any(|window| window == b"hello"));
    }
}

#[test]
fn a_module_that_fails_pre_flight_has_no_bounded_copy() {
    let bytes = tool("", "");
    assert_eq!(bounded(&Module::read(&bytes).unwrap()), Err(ModuleFault::NoMemory));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever bytes come, the reader answers; and what it calls fit, once bounded, is bounded for the engine too.
    #[test]
    fn flipped_bits_never_pass_a_bound(flips in prop::collection::vec((0usize..400, 0u8..8), 1..6)) {
        let table = r#"(table 3 funcref) (func $f (param i64) (local f64)) (elem (i32.const 0) $f) (start 1) (func)"#;
        let mut bytes = tool(r#"(memory (export "memory") 2 70)"#, table);
        for (at, bit) in flips {
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
        }
        let Ok(module) = Module::read(&bytes) else { return Ok(()) };
        let Ok(copy) = bounded(&module) else { return Ok(()) };
        if Validator::new_with_features(WasmFeatures::all()).validate_all(&copy).is_ok() {
            let (memory, table) = declared(&copy);
            prop_assert!(memory.is_some_and(|max| max <= WASM_MEMORY_MAX_PAGES));
            prop_assert!(table.is_none_or(|max| max <= WASM_TABLE_MAX_ELEMENTS));
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(tail: Vec<u8>) {
        let _ = Module::read(&[b"\0asm\x01\0\0\0", &tail[..]].concat()).map(|module| bounded(&module));
    }
}
