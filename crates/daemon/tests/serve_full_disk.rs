//! A companion whose disk is full: the real program, which the system lets write nothing any more.
//!
//! Every case of `full_disk.json` is asked while nothing can be written, and again when it can. The first time it ends in
//! its defined status, with nothing half done; the second time it works.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[path = "common/server.rs"]
mod server;

use std::path::Path;
use std::process::Output;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use server::{Reply, Server};
use toolshelf_core::digest::Digest;

const CASES: &str = include_str!("../../../tests/conformance/cases/extensions/full_disk.json");

/// Stores a fact and leaves a receipt, and answers the two codes as hexadecimal digits.
const MODULE: &str = r#"(module
  (import "crux" "store_fact" (func $store (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "crux" "emit_receipt" (func $emit (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 90000) "disk::modulekvdone")
  (data (i32.const 90100) "{\"result\":\"")
  (func $hex (param $value i32) (param $to i32) (local $shift i32) (local $digit i32)
    (local.set $shift (i32.const 28))
    (loop $next
      (local.set $digit (i32.and (i32.shr_u (local.get $value) (local.get $shift)) (i32.const 15)))
      (i32.store8 (local.get $to) (i32.add (local.get $digit)
        (select (i32.const 87) (i32.const 48) (i32.gt_u (local.get $digit) (i32.const 9)))))
      (local.set $to (i32.add (local.get $to) (i32.const 1)))
      (local.set $shift (i32.sub (local.get $shift) (i32.const 4)))
      (br_if $next (i32.ge_s (local.get $shift) (i32.const 0)))))
  (func (export "extension_call") (param $req i32) (param $len i32) (param $out i32) (param $cap i32) (result i32)
    (call $hex
      (call $store (i32.const 90000) (i32.const 12) (i32.const 90012) (i32.const 1) (i32.const 90013) (i32.const 1)
        (i32.const 1000) (i32.const 100000) (i32.const 4000))
      (i32.add (local.get $out) (i32.const 11)))
    (call $hex
      (call $emit (i32.const 90014) (i32.const 4) (i32.const 90014) (i32.const 4) (i32.const 100000) (i32.const 4000))
      (i32.add (local.get $out) (i32.const 19)))
    (memory.copy (local.get $out) (i32.const 90100) (i32.const 11))
    (i32.store16 (i32.add (local.get $out) (i32.const 27)) (i32.const 0x7d22))
    (i32.const 29)))"#;

/// The imports of the module, in the order of its digits.
const IMPORTS: [&str; 2] = ["store_fact", "emit_receipt"];

#[test]
fn a_full_disk_is_said_by_name_and_what_comes_after_it_works() {
    let server = Server::start();
    let other = prepared(&server);
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        fill(&server, true);
        let refused = ask(&server, case, &other);
        // A second one meets a store that has failed already.
        let again = server.send("PUT", "/v1/facts", &json!({"entity": "disk::x", "key": "k", "value": "v"}));
        assert_eq!(again.status, 503, "{name}: {}", again.body);
        assert_eq!(again.header("content-type"), Some("application/problem+json"), "{name}");
        fill(&server, false);
        let expected = case["full"].as_array().unwrap();
        assert!(expected.contains(&json!(refused.status)), "{name}: {refused:?}");
        if let Some(codes) = case.get("codes") {
            for (import, code) in IMPORTS.iter().zip(codes_of(&refused)) {
                assert_eq!(json!(code), codes[*import], "{name}: {import}");
            }
        }
        nothing_half_done(&server, case, name);
        let then = ask(&server, case, &other);
        assert_eq!(json!(then.status), case["then"], "{name}: {}", then.body);
        if case.get("codes").is_some() {
            assert!(codes_of(&then).iter().all(|code| *code > 0), "{name}: {}", then.body);
        }
    }
    deleting(&server);
    what_is_kept_is_whole(server);
}

/// A signed extension that is granted to `p_ann`, a fact, and the manifest of an extension that can be installed.
fn prepared(server: &Server) -> Value {
    let module = wat::parse_str(MODULE).unwrap();
    let key = server.data.path().join("publisher.key");
    let made = toolshelf(server, &["keys", "new", "--out", key.to_str().unwrap()]);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let trusted = json!({
        "passport_fpr": "p_pub", "public_key_hex": made["public_key"], "trust_tier": "locally_signed",
    });
    assert_eq!(server.post("/v1/extensions/keys", &trusted).status, 201);
    let [full, other] = ["ext.full", "ext.other"].map(|id| signed(server, id, &module, &key));
    let installed = server.post("/v1/extensions/register", &json!({ "manifest": full }));
    assert_eq!(installed.status, 201, "{}", installed.body);
    let grant = json!({ "passport_fpr": "p_ann", "allowed_prefixes_write": ["disk::"] });
    assert_eq!(server.post("/v1/extensions/ext.full/grants", &grant).status, 201);
    let kept = json!({"entity": "disk::kept", "key": "k", "value": "first"});
    assert_eq!(server.send("PUT", "/v1/facts", &kept).status, 201);
    // Compiled before the disk is full.
    let called =
        server.post("/v1/extensions/ext.full/tools/ext.full.run/invoke", &json!({"passport_fpr": "p_ann"}));
    assert!(codes_of(&called).iter().all(|code| *code > 0), "{}", called.body);
    let stored = server.get("/v1/facts/entity/disk::module").json()["facts"][0]["fact_id"].clone();
    let path = format!("/v1/facts/{}", stored.as_str().unwrap());
    assert_eq!(server.send("DELETE", &path, &json!({})).status, 200);
    other
}

/// The manifest of `id`, signed, whose module lies in its folder already.
fn signed(server: &Server, id: &str, module: &[u8], key: &Path) -> Value {
    let folder = server.data.path().join("extensions").join(id);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("module.wasm"), module).unwrap();
    let manifest = json!({
        "schema": "crux.integration.v1", "id": id, "name": "Full", "version": "1",
        "publisher_passport_fpr": "p_pub", "summary": "", "entry": {"kind": "wasm", "path": "manifest.json"},
        "wasm_module_path": "module.wasm", "wasm_module_sha256": Digest::of(module).to_string(),
        "tools": [{"name": format!("{id}.run"), "description": "Runs.", "input_schema": {"type": "object"}}],
    });
    let file = folder.join("manifest.json");
    std::fs::write(&file, manifest.to_string()).unwrap();
    let output = toolshelf(server, &["ext", "sign", file.to_str().unwrap(), "--key", key.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// The program, on the data folder of the server.
fn toolshelf(server: &Server, args: &[&str]) -> Output {
    let mut command = server::toolshelf(None);
    command.env("TOOLSHELF_DATA_DIR", server.data.path()).args(args).output().unwrap()
}

/// Lets the companion write nothing, or as much as it likes: its files may not grow past their beginning.
fn fill(server: &Server, full: bool) {
    let pid = Pid::from_raw(server.pid().cast_signed());
    let current = full.then_some(0);
    prlimit(pid, Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
}

fn ask(server: &Server, case: &Value, other: &Value) -> Reply {
    let mut body = case.get("body").cloned().unwrap_or_else(|| json!({}));
    if body["manifest"] == "other" {
        body["manifest"] = other.clone();
    }
    server.send(case["method"].as_str().unwrap(), case["path"].as_str().unwrap(), &body)
}

fn codes_of(reply: &Reply) -> Vec<i32> {
    let body = reply.json();
    let digits = body["result"].as_str().unwrap_or_else(|| panic!("{body}"));
    let code = |at: usize| u32::from_str_radix(&digits[at..at + 8], 16).unwrap().cast_signed();
    vec![code(0), code(8)]
}

fn nothing_half_done(server: &Server, case: &Value, name: &str) {
    if let Some(path) = case["absent"].as_str() {
        let facts = server.get(path);
        assert_eq!((facts.status, &facts.json()["facts"]), (200, &json!([])), "{name}");
    }
    if let Some(path) = case["absent_route"].as_str() {
        assert_eq!(server.get(path).status, 404, "{name}");
    }
    if let Some([path, pointer, value]) = case["keeps"].as_array().map(Vec::as_slice) {
        let body = server.get(path.as_str().unwrap()).json();
        assert_eq!(body.pointer(pointer.as_str().unwrap()), Some(value), "{name}: {body}");
    }
}

/// A deletion is done, or not done, or done and not yet erased; and then it can be done.
fn deleting(server: &Server) {
    let fact = json!({"entity": "disk::doomed", "key": "k", "value": "OpenSesame77"});
    let id = server.send("PUT", "/v1/facts", &fact).json()["fact_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/facts/{id}");
    fill(server, true);
    assert_eq!(server.send("DELETE", &path, &json!({})).status, 503);
    fill(server, false);
    let then = server.send("DELETE", &path, &json!({})).status;
    assert!([200, 404].contains(&then), "{then}");
    assert_eq!(server.get(&path).status, 404);
    let bytes = std::fs::read(server.data.path().join("facts.redb")).unwrap();
    assert!(!bytes.windows(12).any(|window| window == b"OpenSesame77"));
}

/// What the companion leaves can be read by the next one.
fn what_is_kept_is_whole(server: Server) {
    let before = server.get("/v1/facts/export").json()["facts"].clone();
    let verified = toolshelf(&server, &["receipts", "verify"]);
    let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!((&verified["ok"], &verified["receipts"]), (&json!(true), &json!(2)), "{verified}");
    let audit = std::fs::read_to_string(server.data.path().join("integrations/audit.jsonl")).unwrap();
    for line in audit.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|err| panic!("{err}: {line}"));
    }
    assert!(audit.contains("\"missed\":"), "rows that could not be written are counted");
    // While the companion runs, commands ask it.
    let shown = toolshelf(&server, &["ext", "show", "ext.full"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["extension"]["lifecycle"]["state"], "quarantined", "{shown}");
    assert!(before.as_array().unwrap().iter().any(|fact| fact["entity"] == "disk::kept"));
    assert!(server.stop().0.success());
}
