//! Calls of modules, in the real sandbox, with their code compiled by real workers.

use std::fs;
use std::os::unix::fs::symlink;

use toolshelf_core::extension::envelope::WasmDispatchOutcome;
use toolshelf_facts::NewFact;

use super::super::receipts::chain::verify;
use super::*;

/// A module whose `extension_call` has this body; `$req`, `$len`, `$out`, `$cap` and `$n` are there.
fn module(imports: &str, data: &[&str], body: &str) -> Vec<u8> {
    let data: String = data
        .iter()
        .enumerate()
        .map(|(at, text)| format!("(data (i32.const {}) {:?})\n", DATA + at * 1_000, text))
        .collect();
    wat::parse_str(format!(
        r#"(module {imports} (memory (export "memory") 3)
            (data (i32.const 150000) "{{\"result\":") (data (i32.const 150010) "{{\"result\":\"")
            {data}
            (func (export "extension_call") (param $req i32) (param $len i32) (param $out i32) (param $cap i32)
              (result i32) (local $n i32)
              {body}))"#
    ))
    .unwrap()
}

/// Where the texts of a module are.
const DATA: usize = 140_000;

/// A module that answers with what an import gives: its reply as JSON, or as text, or its code.
fn probe(import: &str, params: usize, data: &[&str], args: &str, text: bool) -> Vec<u8> {
    let params = "i32 ".repeat(params);
    let (from, prefix, suffix, end) = if text { (150_010, 11, 0x7d22, 2) } else { (150_000, 10, 0x7d, 1) };
    module(
        &format!(r#"(import "crux" "{import}" (func $call (param {params}) (result i32)))"#),
        data,
        &format!(
            r"(local.set $n (call $call {args} (i32.add (local.get $out) (i32.const {prefix})) (i32.const 60000)))
              (if (i32.lt_s (local.get $n) (i32.const 0)) (then
                ;; A code has one digit, or two.
                (memory.copy (local.get $out) (i32.const 150000) (i32.const 10))
                (i32.store8 (i32.add (local.get $out) (i32.const 10)) (i32.const 45))
                (local.set $n (i32.sub (i32.const 0) (local.get $n)))
                (i32.store8 (i32.add (local.get $out) (i32.const 11))
                  (i32.add (i32.const 48) (i32.div_u (local.get $n) (i32.const 10))))
                (if (i32.lt_u (local.get $n) (i32.const 10)) (then
                  (i32.store8 (i32.add (local.get $out) (i32.const 11)) (i32.const 32))
                  (i32.store8 (i32.add (local.get $out) (i32.const 10)) (i32.const 32))
                  (i32.store8 (i32.add (local.get $out) (i32.const 11)) (i32.const 45))))
                (i32.store8 (i32.add (local.get $out) (i32.const 12))
                  (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
                (i32.store8 (i32.add (local.get $out) (i32.const 13)) (i32.const 125))
                (return (i32.const 14))))
              (memory.copy (local.get $out) (i32.const {from}) (i32.const {prefix}))
              (i32.store16 (i32.add (local.get $out) (i32.add (local.get $n) (i32.const {prefix}))) (i32.const {suffix}))
              (i32.add (local.get $n) (i32.const {}))",
            prefix + end
        ),
    )
}

/// The place of the text number `at`, and its length.
fn text(at: usize, text: &str) -> String {
    format!("(i32.const {}) (i32.const {})", DATA + at * 1_000, text.len())
}

fn reading(entity: &str, key: &str) -> Vec<u8> {
    probe("read_fact", 6, &[entity, key], &format!("{} {}", text(0, entity), text(1, key)), false)
}

fn writing(entity: &str, key: &str, value: &str) -> Vec<u8> {
    let args = format!("{} {} {} (i32.const 500)", text(0, entity), text(1, key), text(2, value));
    probe("store_fact", 9, &[entity, key, value], &args, false)
}

/// A module that gives its request back.
fn echo() -> Vec<u8> {
    module(
        "",
        &[],
        "(memory.copy (local.get $out) (i32.const 150000) (i32.const 10))
         (memory.copy (i32.add (local.get $out) (i32.const 10)) (local.get $req) (local.get $len))
         (i32.store8 (i32.add (local.get $out) (i32.add (local.get $len) (i32.const 10))) (i32.const 125))
         (i32.add (local.get $len) (i32.const 11))",
    )
}

const SPIN: &str = "(loop $l (br $l)) (unreachable)";

async fn outcome(host: &Host) -> WasmDispatchOutcome {
    match host.call(json!({})).await.unwrap() {
        Outcome::Wasm(outcome) => outcome,
        Outcome::External(_) => panic!("it is a module"),
    }
}

async fn refused(host: &Host) -> (u16, String) {
    let err = host.call(json!({})).await.unwrap_err();
    (status(&err.error), err.to_string())
}

async fn result_of(host: &Host, id: &str, module: &[u8]) -> Value {
    let manifest = wasm_manifest(id, module);
    host.extensions
        .install(&manifest, ModuleSource::Bytes(module.to_vec()), LifecycleState::Active, None)
        .unwrap();
    host.grant(id, |grant| grant.allowed_secret_ids = vec!["api".to_owned()]);
    let call = Invocation { extension: id.to_owned(), ..invocation(json!({})) };
    match host.extensions.invoke(call).await.unwrap() {
        Outcome::Wasm(outcome) => outcome.result,
        Outcome::External(_) => panic!("it is a module"),
    }
}

#[tokio::test]
async fn a_module_gets_the_request_and_answers() {
    let host = Host::new();
    host.with_module(&echo());
    let call = Invocation { request_id: Some("req-7".to_owned()), ..invocation(json!({"b": 1, "a": "x"})) };
    let Outcome::Wasm(outcome) = host.extensions.invoke(call).await.unwrap() else { panic!() };
    assert_eq!(
        outcome.result,
        json!({"tool": "ext.a.note", "args": {"b": 1, "a": "x"}, "calling_passport_id": "p_alice", "request_id": "req-7"})
    );
    assert_eq!(outcome.request_id, "req-7");
    assert!(outcome.fuel_consumed > 0);
    // Calls without a name get one each.
    let (first, second) = (self::outcome(&host).await, self::outcome(&host).await);
    assert!(first.request_id.starts_with("req-") && first.request_id != second.request_id);
    assert_eq!(host.audit().iter().filter(|row| row["action"] == "invoke").count(), 3);
}

#[tokio::test]
async fn facts_are_read_and_written_within_the_grant() {
    let host = Host::new();
    let stored = host.extensions.store_fact(NewFact::new("notes::a", "body", "old and sure")).unwrap();
    let newest = NewFact { confidence: 0.5, ..NewFact::new("notes::a", "body", "new") };
    host.extensions.store_fact(newest).unwrap();
    let read = result_of(&host, "ext.read", &reading("notes::a", "body")).await;
    assert_eq!((&read["value"], &read["confidence"]), (&json!("new"), &json!(0.5)));
    assert_ne!(read["fact_id"], json!(stored.fact_id));
    let cases = [
        (reading("notes::b", "body"), -1),
        (reading("other::a", "body"), -3),
        (reading("__extension__::ext.read", "record"), -3),
        (writing("notes::a", "k", "v"), -3),
        (writing("notes::sum::a", "", "v"), -11),
        (writing("__extension_grant__::ext.a::p_bob", "record", "{}"), -3),
        (
            probe(
                "query_facts",
                7,
                &["n"],
                "(i32.const 140000) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 9)",
                false,
            ),
            -3,
        ),
        (
            probe(
                "query_facts",
                7,
                &[""],
                "(i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 9)",
                false,
            ),
            -3,
        ),
        (probe("read_fact", 6, &[], "(i32.const -1) (i32.const 5) (i32.const 0) (i32.const 1)", false), -11),
        (
            probe(
                "read_fact",
                6,
                &[],
                "(i32.const 196600) (i32.const 2147483647) (i32.const 0) (i32.const 1)",
                false,
            ),
            -11,
        ),
    ];
    for (at, (module, code)) in cases.into_iter().enumerate() {
        assert_eq!(result_of(&host, &format!("ext.case{at}"), &module).await, json!(code), "case {at}");
    }
    let written = result_of(&host, "ext.write", &writing("notes::sum::a", "k", "v")).await;
    assert_eq!((&written["value"], &written["confidence"]), (&json!("v"), &json!(0.5)));
    let fact = host.extensions.facts_of("notes::sum::a").unwrap().remove(0);
    let hash = host.extensions.show("ext.write").unwrap().manifest_hash;
    assert_eq!(fact.actor, Some(format!("pack:ext.write@1.2.3#{hash}")));
    let query = "(i32.const 140000) (i32.const 7) (i32.const 141000) (i32.const 3) (i32.const 9)";
    let found =
        result_of(&host, "ext.query", &probe("query_facts", 7, &["notes::", "NEW"], query, false)).await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["entity"], "notes::a");
}

#[tokio::test]
async fn a_secret_is_revealed_where_the_grant_names_it_and_is_in_no_log() {
    let host = Host::new();
    host.extensions.set_secret("api", b"opensesame-77", None).unwrap();
    host.extensions.set_secret("other", b"x", None).unwrap();
    let of = |id: &str| probe("get_secret_decrypted", 4, &[id], &text(0, id), true);
    assert_eq!(result_of(&host, "ext.api", &of("api")).await, "opensesame-77");
    assert_eq!(result_of(&host, "ext.other", &of("other")).await, -3);
    host.extensions.remove_secret("api", None).unwrap();
    let call = Invocation { extension: "ext.api".to_owned(), ..invocation(json!({})) };
    let Outcome::Wasm(outcome) = host.extensions.invoke(call).await.unwrap() else { panic!() };
    assert_eq!(outcome.result, -1);
    assert!(!fs::read_to_string(host.path("integrations/audit.jsonl")).unwrap().contains("opensesame"));
}

#[tokio::test]
async fn what_is_put_on_record_is_verified_offline() {
    let host = Host::new();
    let payload = r#"{"password": "hunter2-is-long"}"#;
    let args = format!("{} {}", text(0, "sent"), text(1, payload));
    let receipt =
        result_of(&host, "ext.a", &probe("emit_receipt", 6, &["sent", payload], &args, false)).await;
    assert_eq!((&receipt["body"]["seq"], &receipt["body"]["action"]), (&json!(1), &json!("sent")));
    outcome(&host).await;
    let log = host.extensions.receipts();
    let verified = verify(&host.path("receipts.jsonl"), &log.public_key()).unwrap();
    assert_eq!((verified.receipts, verified.end_confirmed), (2, true));
    let newest = log.newest(10, Some("ext.a")).unwrap();
    let body = &newest[0].body;
    assert_eq!((body.passport_fpr.as_str(), body.tool.as_str()), ("p_alice", "ext.a.note"));
    assert!(!fs::read_to_string(host.path("receipts.jsonl")).unwrap().contains("hunter2"));
}

#[tokio::test]
async fn a_file_that_was_swapped_is_refused_at_the_next_call() {
    let host = Host::new();
    let good = echo();
    host.with_module(&good);
    outcome(&host).await;
    let path = host.path("extensions/ext.a/extension.wasm");
    let other = module("", &[], "(i32.const -1)");
    fs::write(&path, &other).unwrap();
    let (code, why) = refused(&host).await;
    let digests = (Digest::of(&good), Digest::of(&other));
    assert_eq!(
        (code, why),
        (409, format!("module sha256 mismatch: manifest={}, on-disk={}", digests.0, digests.1))
    );
    fs::remove_file(&path).unwrap();
    let (code, why) = refused(&host).await;
    assert_eq!((code, why), (404, format!("wasm module file missing at '{}'", path.display())));
    fs::write(host.path("same.wasm"), &good).unwrap();
    symlink(host.path("same.wasm"), &path).unwrap();
    assert_eq!(refused(&host).await.0, 500);
    fs::remove_file(&path).unwrap();
    fs::write(&path, &good).unwrap();
    outcome(&host).await;
}

#[tokio::test]
async fn a_record_that_was_written_by_other_means_is_not_trusted() {
    let host = Host::new();
    let good = echo();
    host.with_module(&good);
    fs::write(host.path("outside.wasm"), &good).unwrap();
    let mut record = host.extensions.show("ext.a").unwrap();
    let mut with = |path: Option<&str>, url: Option<&str>| {
        record.manifest.wasm_module_path = path.map(Into::into);
        record.manifest.wasm_module_url = url.map(Into::into);
        let facts = super::super::records::extension_facts(&record).unwrap();
        host.extensions.write_records(facts).unwrap();
    };
    with(None, Some("https://example.com/a.wasm"));
    let (code, why) = refused(&host).await;
    assert!(code == 502 && why.starts_with("wasm_module_url is set but never resolved"), "{why}");
    for path in ["../../outside.wasm", "/etc/passwd", "a/../../x", ""] {
        with(Some(path), None);
        assert_eq!(refused(&host).await.0, 500, "{path}");
    }
}

#[tokio::test]
async fn a_call_is_refused_for_its_first_reason() {
    let host = Host::new();
    let mut manifest = wasm_manifest("ext.a", &echo());
    manifest["tools"][0]["input_schema"] = json!({"type": "object", "required": ["id"]});
    let of = |change: fn(&mut Invocation)| {
        let mut call = invocation(json!({"id": 1}));
        change(&mut call);
        let extensions = host.extensions.clone();
        async move {
            let err = extensions.invoke(call).await.unwrap_err();
            (status(&err.error), err.to_string())
        }
    };
    let passport = "passport_fpr required (body field or X-Corecrux-Passport-Id header)";
    assert_eq!(of(|call| call.passport = None).await, (400, passport.to_owned()));
    assert_eq!(of(|call| call.passport = Some(" ".into())).await, (400, passport.to_owned()));
    assert_eq!(of(|_| {}).await, (404, "extension 'ext.a' not installed".to_owned()));
    assert_eq!(of(|call| call.extension = "../x\n".into()).await.0, 404);
    host.extensions.install(&manifest, ModuleSource::Bytes(echo()), LifecycleState::Active, None).unwrap();
    let no_grant = "passport 'p_alice' has no grant for extension 'ext.a'";
    assert_eq!(of(|_| {}).await, (403, no_grant.to_owned()));
    host.grant("ext.a", |grant| grant.allowed_tool_names = vec!["ext.a.other".to_owned()]);
    let not_named = "tool 'ext.a.note' is not in the grant's allowed_tool_names";
    assert_eq!(of(|_| {}).await, (403, not_named.to_owned()));
    let undeclared = of(|call| call.tool = "ext.a.other".into()).await;
    assert_eq!(undeclared, (404, "tool 'ext.a.other' is not declared by extension 'ext.a'".to_owned()));
    host.extensions.revoke_grant("ext.a", "p_alice", None).unwrap();
    assert_eq!(of(|_| {}).await.0, 403);
    host.grant("ext.a", |grant| grant.rate_limit_per_min = Some(3));
    let (code, why) = of(|call| call.args = json!({})).await;
    assert!(
        code == 400 && why.starts_with("args do not match the input_schema of tool 'ext.a.note': "),
        "{why}"
    );
    host.extensions.set_lifecycle("ext.a", LifecycleState::Quarantined, None, None).unwrap();
    assert_eq!(of(|_| {}).await, (409, "extension 'ext.a' is quarantined".to_owned()));
    host.extensions.set_lifecycle("ext.a", LifecycleState::Active, Some("fine"), None).unwrap();
    for _ in 0..2 {
        host.call(json!({"id": 1})).await.unwrap();
    }
    assert_eq!(of(|_| {}).await, (429, "rate limited (cap 3/min)".to_owned()));
    host.after(60_000);
    host.call(json!({"id": 1})).await.unwrap();
    host.extensions.uninstall("ext.a", None).unwrap();
    assert_eq!(of(|_| {}).await.0, 404);
}

#[tokio::test]
async fn a_grant_that_expires_is_over_with_the_next_call() {
    let host = Host::new();
    host.with_module(&echo());
    host.extensions.revoke_grant("ext.a", "p_alice", None).unwrap();
    let expires = host.clock.load(Ordering::Relaxed) + 500;
    host.grant("ext.a", |grant| grant.expires_at_unix_ms = Some(expires));
    outcome(&host).await;
    host.after(500);
    assert_eq!(refused(&host).await, (403, "grant for 'ext.a' + 'p_alice' has expired".to_owned()));
}

#[tokio::test]
async fn limits_are_read_for_each_call() {
    let host = Host::new();
    host.with_module(&module("", &[], SPIN));
    assert_eq!(refused(&host).await, (408, "EXT_WASM_FUEL_EXHAUSTED".to_owned()));
    host.set("CORECRUXD_WASM_FUEL_DEFAULT", "1000000000000000");
    host.set("TOOLSHELF_WASM_WALL_MS_DEFAULT", "50");
    assert_eq!(refused(&host).await, (408, "EXT_WASM_DEADLINE_EXCEEDED".to_owned()));
    let host = Host::new();
    host.with_module(&module("", &[], "(drop (memory.grow (i32.const 60000))) (unreachable)"));
    assert_eq!(refused(&host).await, (507, "EXT_WASM_OOM".to_owned()));
}

#[tokio::test]
async fn what_a_module_does_wrong_is_named() {
    let broken = |text: &str| wat::parse_str(text).unwrap();
    let call = r#"(func (export "extension_call") (param i32 i32 i32 i32) (result i32) (i32.const 0))"#;
    let memory = r#"(memory (export "memory") 1)"#;
    let cases = [
        (module("", &[], "(unreachable)"), 502, "EXT_WASM_TRAP: trap: "),
        (module("", &[], "(i32.const -1)"), 502, "response buffer overflow"),
        (module("", &[], "(i32.const -7)"), 502, "EXT_WASM_TRAP: module returned reserved code -7"),
        (module("", &[], "(i32.const 2147483647)"), 502, "EXT_WASM_TRAP: "),
        (module("", &[], "(i32.const 0)"), 502, "response is not valid JSON: "),
        (
            module("", &[], "(i32.store8 (local.get $out) (i32.const 255)) (i32.const 1)"),
            502,
            "response is not valid utf-8",
        ),
        (broken(&format!("(module {call})")), 502, "missing export: memory"),
        (broken(&format!("(module {memory})")), 502, "missing export: extension_call"),
        (
            broken(&format!(r#"(module (import "env" "x" (func)) {memory} {call})"#)),
            502,
            "instantiate error: ",
        ),
        (b"no module".to_vec(), 502, "compile error: "),
    ];
    for (at, (module, code, text)) in cases.into_iter().enumerate() {
        let host = Host::new();
        host.with_module(&module);
        let (found, why) = refused(&host).await;
        assert!(found == code && why.starts_with(text), "case {at}: {found} {why}");
    }
}

#[tokio::test]
async fn what_a_failed_call_has_logged_is_told() {
    let host = Host::new();
    let log = r#"(import "crux" "log" (func $log (param i32 i32 i32 i32)))"#;
    host.with_module(&module(
        log,
        &["info", "Authorization: Bearer abcdefghijklmnop"],
        "(call $log (i32.const 140000) (i32.const 4) (i32.const 141000) (i32.const 38)) (unreachable)",
    ));
    let err = host.call(json!({})).await.unwrap_err();
    let problem = err.problem_json();
    assert_eq!(
        (&problem["status"], &problem["type"]),
        (&json!(502), &json!("https://errors.cuecrux.com/bad-gateway"))
    );
    assert_eq!(problem["log"][0]["level"], "info");
    assert!(!problem["log"][0]["message"].as_str().unwrap().contains("abcdefghijklmnop"));
    assert!(problem["fuel_consumed"].as_u64().unwrap() > 0);
    assert!(problem["request_id"].as_str().unwrap().starts_with("req-"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_the_same_time_never_meet() {
    let host = Host::new();
    let module = echo();
    host.with_module(&module);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..24 {
        let passport = format!("p_{number}");
        host.grant("ext.a", |grant| grant.passport_fpr.clone_from(&passport));
        let extensions = host.extensions.clone();
        calls.spawn(async move {
            let call = Invocation { passport: Some(passport.clone()), ..invocation(json!({ "n": number })) };
            let Outcome::Wasm(outcome) = extensions.invoke(call).await.unwrap() else { panic!() };
            assert_eq!(outcome.result["calling_passport_id"], json!(passport));
            assert_eq!(outcome.result["args"]["n"], json!(number));
        });
    }
    while let Some(end) = calls.join_next().await {
        end.unwrap();
    }
}

#[tokio::test]
async fn an_engine_that_failed_is_said_and_all_else_works() {
    let mut host = Host::new();
    host.with_module(&echo());
    std::sync::Arc::get_mut(&mut host.extensions.inner).unwrap().engine = Err("no address space".to_owned());
    let text = "wasm engine init failed at startup; restart the daemon and check logs";
    assert_eq!(refused(&host).await, (503, text.to_owned()));
    assert_eq!(host.extensions.engine_fault(), Some("no address space"));
    assert_eq!(host.extensions.list().unwrap().len(), 1);
}

#[tokio::test]
async fn packs_are_never_called() {
    let host = Host::new();
    let mut pack = manifest("ext.a", "http_recipe");
    pack.as_object_mut().unwrap().remove("tools");
    host.install(&pack).unwrap();
    host.grant("ext.a", |_| {});
    assert_eq!(
        refused(&host).await,
        (400, "extension 'ext.a' has unsupported entry.kind HttpRecipe for tool dispatch".to_owned())
    );
}
