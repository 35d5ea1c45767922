//! Modules and folders that mean harm: each has a named end in time, and the next call works.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use common::{ANSWERS, call, on_one_thread, one_tool, one_tool_of_text, shelf_in, shelf_over};
use serde_json::Value;
use toolshelf_core::digest::Digest;
use toolshelf_sandbox::Shelves;

/// Calls the module as a shelf's only tool, and checks that it ended by name, in time, and hurt nobody.
fn ends_by_name(name: &str, module: &[u8], wanted: &[&str]) -> Value {
    let dir = one_tool(module);
    let (answer, took) = on_one_thread(async {
        let good = shelf_over(Shelves::builtin());
        let start = Instant::now();
        let answer = call(&shelf_in(dir.path()), "case", &[]).await;
        let took = start.elapsed();
        assert_eq!(call(&good, "hash", &[("input", b"abc")]).await["ok"], true, "after {name}");
        (answer, took)
    });
    let ended = if answer["ok"] == true { "ok" } else { answer["refused"].as_str().unwrap() };
    assert!(wanted.contains(&ended), "{name}: {answer}");
    // Two deadlines, of compiling and of running, and what a busy machine adds.
    assert!(took < Duration::from_secs(20), "{name} took {took:?}");
    answer
}

fn text(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap()
}

const COSTLY: &[&str] = &["time-exceeded", "resource-exceeded"];
const ANY: &[&str] = &["ok", "time-exceeded", "resource-exceeded", "wasm-invalid", "wasm-trapped"];

#[test]
fn a_compile_bomb_is_ended() {
    // Every block may jump to every other: what the compiler keeps for it grows with the square.
    let blocks = 4_000;
    let targets: String = (0..blocks).map(|target| format!(" {target}")).collect();
    let jump = format!("(br_table{targets} (local.get 0))");
    let module = format!(
        r#"(module (memory (export "memory") 2) (func (export "sha256") (param i32) (result i32) (local $x i32)
        {}{}{} (i32.const 32)))"#,
        "(block ".repeat(blocks),
        jump.repeat(400),
        ")".repeat(blocks),
    );
    ends_by_name("a table of jumps in every block", &text(&module), ANY);

    // Fifteen mebibytes of code.
    let step = "(local.set 0 (i32.mul (i32.add (local.get 0) (i32.const 77)) (i32.xor (local.get 0) (i32.const 3))))";
    let function = format!("(func (param i32) (result i32) {} (local.get 0))", step.repeat(20_000));
    let module = format!(
        r#"(module (memory (export "memory") 2) {} (func (export "sha256") (param i32) (result i32) i32.const 32))"#,
        function.repeat(40)
    );
    ends_by_name("fifteen mebibytes of code", &text(&module), COSTLY);
}

#[test]
fn deep_nesting_is_ended() {
    for (name, open, close) in
        [("blocks", "(block ", ")"), ("loops", "(loop ", ")"), ("ifs", "(if (local.get 0) (then ", "))")]
    {
        let module = format!(
            r#"(module (memory (export "memory") 2) (func (export "sha256") (param i32) (result i32) {}{} i32.const 32))"#,
            open.repeat(3_000),
            close.repeat(3_000)
        );
        ends_by_name(name, &text(&module), ANY);
    }
    // Deeper than a text can be written: 200,000 blocks in the binary form.
    let mut body = vec![0];
    (0..200_000).for_each(|_| body.extend([0x02, 0x40]));
    body.extend(vec![0x0b; 200_000]);
    body.extend([0x41, 0x20, 0x0b]);
    ends_by_name("200,000 nested blocks", &with_body(&body), ANY);
    // An expression whose operands wait on the stack.
    let mut body = vec![0];
    (0..500_000).for_each(|_| body.extend([0x41, 0x01]));
    body.extend(vec![0x6a; 499_999]);
    body.push(0x0b);
    ends_by_name("500,000 operands", &with_body(&body), ANY);
}

/// A module whose export has this body.
fn with_body(body: &[u8]) -> Vec<u8> {
    fn number(mut value: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let byte = (value & 0x7f) as u8;
            value >>= 7;
            bytes.push(if value == 0 { byte } else { byte | 0x80 });
            if value == 0 {
                return bytes;
            }
        }
    }
    let code = [&[1][..], &number(body.len()), body].concat();
    let head = b"\0asm\x01\0\0\0\x01\x06\x01\x60\x01\x7f\x01\x7f\x03\x02\x01\0\x05\x03\x01\0\x02\
        \x07\x13\x02\x06memory\x02\0\x06sha256\0\0\x0a";
    [&head[..], &number(code.len()), &code].concat()
}

#[test]
fn tables_and_data_as_large_as_they_may_be_are_run_or_ended() {
    let tables: String = (0..16).map(|_| "(table 65536 externref)").collect();
    let module = format!(
        r#"(module (memory (export "memory") 1024) {tables} (func (export "sha256") (param i32) (result i32) i32.const 32))"#
    );
    ends_by_name("sixteen tables of the largest size", &text(&module), &["ok"]);

    let data = "a".repeat(15 * 1024 * 1024);
    let module = format!(
        r#"(module (memory (export "memory") 1024) (data (i32.const 0x10000) "{data}")
        (func (export "sha256") (param i32) (result i32) i32.const 32))"#
    );
    ends_by_name("fifteen mebibytes of data", &text(&module), &["ok"]);

    let segments = r#"(data (i32.const 70000) "xyz")"#.repeat(100_000);
    let module = format!(
        r#"(module (memory (export "memory") 1024) {segments} (func (export "sha256") (param i32) (result i32) i32.const 32))"#
    );
    ends_by_name("100,000 segments of data", &text(&module), ANY);

    let beyond = r#"(module (memory (export "memory") 2) (data (i32.const 131072) "x")
        (func (export "sha256") (param i32) (result i32) i32.const 32))"#;
    ends_by_name("data beyond the memory", &text(beyond), &["wasm-trapped"]);

    let functions = "(func)".repeat(300_000);
    let module = format!(
        r#"(module (memory (export "memory") 2) {functions} (func (export "sha256") (param i32) (result i32) i32.const 32))"#
    );
    ends_by_name("300,000 functions", &text(&module), ANY);
}

#[test]
fn memory_that_is_touched_to_the_ceiling_is_granted_and_no_more() {
    let module = r#"(module (memory (export "memory") 2) (func (export "sha256") (param i32) (result i32)
        (loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
        (memory.fill (i32.const 0) (i32.const 1) (i32.mul (memory.size) (i32.const 65536)))
        (memory.size)))"#;
    let answer = ends_by_name("64 MiB, all touched", &text(module), &["ok"]);
    assert_eq!(answer["returned"], 1024);
}

#[test]
fn a_module_that_is_swapped_at_random_runs_as_it_was_admitted_or_not_at_all() {
    let dir = one_tool_of_text(ANSWERS);
    let path = dir.path().join("case.wasm");
    let (good, other) = (fs::read(&path).unwrap(), text(common::SPINS));
    let digest = Digest::of(&good).to_string();
    on_one_thread(async {
        let shelf = shelf_in(dir.path());
        assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let writer = std::thread::spawn({
            let (done, path, good) = (done.clone(), path.clone(), good.clone());
            move || {
                for round in 0_usize.. {
                    if done.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    // In place, so that a reader sees halves too.
                    let bytes = if round.is_multiple_of(2) { &other } else { &good };
                    fs::write(&path, bytes).unwrap();
                    std::thread::sleep(Duration::from_micros(300));
                }
            }
        });
        let (mut ran, mut refused) = (0, 0);
        for _ in 0..300 {
            let answer = call(&shelf, "case", &[]).await;
            if answer["ok"] == true {
                assert_eq!(answer["digest"], digest.as_str());
                ran += 1;
            } else {
                assert_eq!(answer["refused"], "digest-mismatch", "{answer}");
                refused += 1;
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap();
        assert!(ran > 0 && refused > 0, "{ran} ran, {refused} were refused");
        fs::write(&path, &good).unwrap();
        assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
    });
}

#[test]
fn a_file_or_folder_that_is_replaced_is_refused_by_name() {
    let dir = one_tool_of_text(ANSWERS);
    let path = dir.path().join("case.wasm");
    let elsewhere = tempfile::tempdir().unwrap();
    let kept = elsewhere.path().join("kept.wasm");
    on_one_thread(async {
        let shelf = shelf_in(dir.path());
        let refused = async |wanted: &str, evidence: &str| {
            let answer = call(&shelf, "case", &[]).await;
            assert_eq!(answer["refused"], wanted, "{answer}");
            assert!(answer["why"].as_str().unwrap().contains(evidence), "{answer}");
        };
        assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
        // The same bytes, behind a link.
        fs::rename(&path, &kept).unwrap();
        symlink(&kept, &path).unwrap();
        refused("wasm-unreadable", "link").await;
        fs::remove_file(&path).unwrap();
        refused("wasm-unreadable", "is not in the shelf's folder").await;
        fs::create_dir(&path).unwrap();
        refused("wasm-unreadable", "no plain file").await;
        fs::remove_dir(&path).unwrap();
        fs::write(&path, vec![0; 16 * 1024 * 1024 + 1]).unwrap();
        refused(
            "over-budget",
            "the module file is 16777217 bytes; the host reads and hashes at most 16777216",
        )
        .await;
        fs::rename(&kept, &path).unwrap();
        assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
        // The whole folder, behind a link.
        let moved = elsewhere.path().join("moved");
        fs::rename(dir.path(), &moved).unwrap();
        symlink(&moved, dir.path()).unwrap();
        refused("wasm-unreadable", "link").await;
        fs::remove_file(dir.path()).unwrap();
        refused("wasm-unreadable", "is not in the shelf's folder").await;
        fs::rename(&moved, dir.path()).unwrap();
        assert_eq!(call(&shelf, "case", &[]).await["ok"], true);
    });
}
