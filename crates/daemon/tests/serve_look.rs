//! What is looked at before and after: a manifest before it is installed, names of facts, the log of receipts; and an
//! extension whose module comes in the same body.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;
#[path = "common/server.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use server::{Reply, Server};

const UNSIGNED: [(&str, &str); 1] = [("TOOLSHELF_EXTENSIONS_ALLOW_UNSIGNED", "true")];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/guests").join(name)
}

fn manifest(name: &str) -> Value {
    serde_json::from_slice(&fs::read(example(name).join("manifest.json")).unwrap()).unwrap()
}

fn module(name: &str) -> Value {
    let path = manifest(name)["wasm_module_path"].as_str().unwrap().to_owned();
    json!({ "base64": STANDARD.encode(fs::read(example(name).join(path)).unwrap()) })
}

/// Holds an answer to what the description says of it.
fn described(server: &Server, method: &str, path: &str, reply: &Reply) -> Value {
    let document = server.get("/v1/openapi.json").json();
    let mut schema =
        document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    let body = reply.json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator.iter_errors(&body).map(|fault| fault.to_string()).collect();
    assert!(reply.status == 200 && faults.is_empty(), "{method} {path}: {faults:?} in {body}");
    body
}

fn inspect(server: &Server, what: &Value) -> Value {
    let reply = server.post("/v1/extensions/inspect", what);
    described(server, "post", "/v1/extensions/inspect", &reply)
}

#[test]
fn a_manifest_is_judged_before_it_is_installed() {
    let strict = Server::start();
    let seen = inspect(&strict, &json!({ "manifest": manifest("note-summary") }));
    assert_eq!(seen["refusal"]["refused"], "extension-untrusted");
    assert_eq!((&seen["manifest"]["name"], &seen["trust_tier"]), (&json!("Note summary"), &json!(null)));
    assert_eq!(seen["limits"], json!({"fuel": 1_000_000, "memory_bytes": 16_000_000, "wall_ms": 1_000}));
    for (what, refused) in
        [(json!([]), "extension-invalid"), (json!({"id": "x".repeat(200_000)}), "extension-invalid")]
    {
        let seen = inspect(&strict, &json!({ "manifest": what }));
        assert_eq!((&seen["manifest"], &seen["refusal"]["refused"]), (&json!(null), &json!(refused)));
        assert!(seen["refusal"]["why"].as_str().unwrap().len() < 1_000);
    }
    let link = strict.post("/v1/extensions/inspect", &json!({ "url": "http://127.0.0.1:9/m.json" }));
    assert_eq!((link.status, &link.json()["code"]), (502, &json!("upstream-failed")), "{}", link.body);
    assert_eq!(strict.post("/v1/extensions/inspect", &json!({ "path": "/etc/passwd" })).status, 400);
    assert_eq!(strict.get("/v1/extensions").json()["count"], 0);
}

#[tokio::test]
async fn a_module_comes_with_its_manifest() {
    let server = Server::with(None, &UNSIGNED);
    let with = |module: Value| json!({ "manifest": manifest("note-summary"), "module": module });
    let register = |body: &Value| server.post("/v1/extensions/register", body);
    let other = register(&with(module("ext-echo")));
    assert_eq!((other.status, &other.json()["code"]), (409, &json!("digest-mismatch")), "{}", other.body);
    let no_base64 = register(&with(json!({ "base64": "*" })));
    assert_eq!((no_base64.status, &no_base64.json()["code"]), (400, &json!("invalid-frame")));
    assert_eq!(register(&with(json!({ "base64": "YQ==", "x": 1 }))).status, 400);
    // More than any other body may have.
    let long = register(&with(json!({ "base64": "A".repeat(4 << 20) })));
    assert_eq!((long.status, &long.json()["code"]), (409, &json!("digest-mismatch")), "{}", long.body);
    let installed = register(&with(module("note-summary")));
    assert_eq!(installed.status, 201, "{}", installed.body);
    let id = installed.json()["manifest"]["id"].as_str().unwrap().to_owned();
    let seen = inspect(&server, &json!({ "manifest": manifest("note-summary") }));
    assert_eq!(
        (&seen["installed_version"], &seen["refusal"]["refused"]),
        (&json!("0.1.0"), &json!("extension-exists"))
    );

    // What is installed so is called as any other; who watches hears of it, and of nothing that is not there.
    let (mut live, _) = server.ready().await;
    let call = |tool: &str| {
        let body = json!({ "args": {"entity": "notes::1"}, "passport_fpr": "p_ann" });
        server.post(&format!("/v1/extensions/{id}/tools/{tool}/invoke"), &body)
    };
    assert_eq!(call("made-up").json()["code"], "not-granted");
    let refused = call(&format!("{id}.summarise"));
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("not-granted")));
    let notice = live.frame_of("tool").await["calls"][0].clone();
    assert_eq!(notice["name"], format!("{id}/{id}.summarise"));
    assert_eq!((&notice["ok"], &notice["refused"]), (&json!(false), &json!("not-granted")));
    let grant = json!({ "passport_fpr": "p_ann", "allowed_prefixes_read": ["notes::"], "allowed_prefixes_write": ["notes::"] });
    assert_eq!(server.post(&format!("/v1/extensions/{id}/grants"), &grant).status, 201);
    server.send("PUT", "/v1/facts", &json!({"entity": "notes::1", "key": "text", "value": "One. Two."}));
    assert_eq!(call(&format!("{id}.summarise")).json()["result"]["of"], 2);
    let notice = live.frame_of("tool").await["calls"][0].clone();
    assert_eq!(
        (&notice["ok"], &notice["output"], &notice["from"]),
        (&json!(true), &json!(""), &json!("http"))
    );
}

#[test]
fn names_of_facts_are_told_below_a_prefix_and_private_ones_where_they_are_asked_for() {
    let server = Server::start();
    for entity in ["notes::a::1", "notes::a::2", "notes::b", "github::org"] {
        server.send("PUT", "/v1/facts", &json!({"entity": entity, "key": "k", "value": "v"}));
    }
    let browse = |query: &str| {
        let page =
            described(&server, "get", "/v1/facts/browse", &server.get(&format!("/v1/facts/browse{query}")));
        let names = page["names"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|name| name["name"].as_str().unwrap().to_owned()).collect();
        (names, page["next"].as_str().map(str::to_owned))
    };
    assert_eq!(browse(""), (vec!["notes::".into()], None));
    assert_eq!(browse("?include_private=true").0, ["github::", "notes::"]);
    assert_eq!(browse("?prefix=notes::").0, ["notes::a::", "notes::b"]);
    let (first, next) = browse("?prefix=notes::&limit=1");
    assert_eq!((first, next.as_deref()), (vec!["notes::a::".into()], Some("notes::a::")));
    assert_eq!(browse("?prefix=notes::&limit=1&after=notes::a::").0, ["notes::b"]);
}

#[test]
fn the_log_of_receipts_is_verified_and_a_damaged_one_is_told() {
    let server = Server::start();
    let verify = || {
        let reply = server.get("/v1/extensions/receipts/verify");
        described(&server, "get", "/v1/extensions/receipts/verify", &reply)
    };
    let whole = verify();
    assert_eq!((&whole["verified"], &whole["receipts"]), (&json!(true), &json!(0)));
    assert_eq!(whole["public_key"].as_str().unwrap().len(), 64);
    fs::write(server.data.path().join("receipts.jsonl"), "{}\n").unwrap();
    let broken = verify();
    assert_eq!(
        (&broken["verified"], &broken["refusal"]["refused"]),
        (&json!(false), &json!("receipts-damaged"))
    );
}
