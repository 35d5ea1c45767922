//! Extensions and facts over HTTP and from the command line: the shipped examples, really installed and called.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;
#[path = "common/server.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use server::Server;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/guests").join(name)
}

fn manifest(name: &str) -> Value {
    serde_json::from_slice(&fs::read(example(name).join("manifest.json")).unwrap()).unwrap()
}

/// The program, on the data folder of `server` or on one of its own.
fn toolshelf(data: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_toolshelf"))
        .args(args)
        .env("TOOLSHELF_DATA_DIR", data)
        .env("TOOLSHELF_CACHE_DIR", data.join("cache"))
        .env("TOOLSHELF_CONFIG", data.join("toolshelf.toml"))
        .env("TOOLSHELF_EXTENSIONS_ALLOW_UNSIGNED", "true")
        .env("TOOLSHELF_VAULT_KEY", "file")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_extension_is_installed_granted_called_and_taken_away() {
    let data = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| toolshelf(data.path(), args);
    let (id, tool) = ids("note-summary");
    let folder = example("note-summary");
    let installed = run(&["ext", "install", folder.to_str().unwrap()]);
    assert!(installed.status.success(), "{}", text(&installed.stderr));
    let again = run(&["ext", "install", folder.to_str().unwrap()]);
    assert!(again.status.code() == Some(1) && text(&again.stderr).contains("extension-exists"));
    assert!(text(&run(&["ext", "installed"]).stdout).contains(&id));

    let call = ["ext", "invoke", &id, &tool, "--passport", "p_ann", r#"{"doc_id": "n1"}"#];
    let ungranted = run(&call);
    assert!(
        ungranted.status.code() == Some(1) && text(&ungranted.stderr).contains("not-granted"),
        "{}",
        text(&ungranted.stderr)
    );
    let reserved = run(&["ext", "grant", &id, "--passport", "p_ann", "--read", "__"]);
    assert_eq!(reserved.status.code(), Some(1), "a prefix that covers the system's entities");
    let granted =
        run(&["ext", "grant", &id, "--passport", "p_ann", "--read", "notes::", "--write", "notes::"]);
    assert!(granted.status.success(), "{}", text(&granted.stderr));
    let called = run(&[&["--json"], &call[..]].concat());
    let answer: Value = serde_json::from_slice(&called.stdout).unwrap();
    assert!(answer.get("result").is_some() || answer.get("refused").is_some(), "{answer}");

    assert!(run(&["ext", "revoke", &id, "--passport", "p_ann"]).status.success());
    assert!(text(&run(&call).stderr).contains("not-granted"), "revoking counts from the next call on");
    assert!(run(&["ext", "remove", &id]).status.success());
    assert!(!data.path().join("extensions").join(&id).join("extension.wasm").exists());
    assert!(text(&run(&["ext", "show", &id]).stderr).contains("extension-not-installed"));
}

fn ids(name: &str) -> (String, String) {
    let manifest = manifest(name);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&manifest["id"]), text(&manifest["tools"][0]["name"]))
}

#[test]
fn secrets_are_kept_encrypted_and_receipts_are_verified_offline() {
    let data = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| toolshelf(data.path(), args);
    let mut set = Command::new(env!("CARGO_BIN_EXE_toolshelf"))
        .args(["secret", "set", "api"])
        .env("TOOLSHELF_DATA_DIR", data.path())
        .env("TOOLSHELF_VAULT_KEY", "file")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut set.stdin.take().unwrap(), b"s3cret-value\n").unwrap();
    assert!(set.wait().unwrap().success());
    assert!(text(&run(&["secret", "list"]).stdout).contains("api"));
    let vault = fs::read_to_string(data.path().join("vault.json")).unwrap();
    assert!(!vault.contains("s3cret"), "{vault}");
    assert!(run(&["secret", "remove", "api"]).status.success());
    assert_eq!(run(&["secret", "remove", "api"]).status.code(), Some(1));

    let verified = run(&["receipts", "verify"]);
    assert!(
        verified.status.success() && text(&verified.stdout).contains("0 receipts"),
        "{}",
        text(&verified.stderr)
    );
    fs::write(data.path().join("receipts.jsonl"), "{}\n").unwrap();
    let broken = run(&["receipts", "verify"]);
    assert!(
        !broken.status.success() && text(&broken.stderr).contains("receipts-damaged"),
        "{}",
        text(&broken.stderr)
    );
}

#[test]
fn facts_are_stored_found_and_deleted_over_http() {
    let server = Server::start();
    let stored =
        server.send("PUT", "/v1/facts", &json!({"entity": "notes::1", "key": "text", "value": "alpha"}));
    assert_eq!(stored.status, 201, "{}", stored.body);
    let newer =
        server.send("PUT", "/v1/facts", &json!({"entity": "notes::1", "key": "text", "value": "beta"}));
    assert_eq!(newer.json()["version"], 2);
    let found = server.get("/v1/facts?entity_prefix=notes::").json();
    assert_eq!(found["facts"][0]["value"], "beta", "the newest version holds");
    let history = server.get("/v1/facts/history?entity=notes::1&key=text").json();
    assert_eq!(history["facts"].as_array().unwrap().len(), 2);
    let reserved = json!({"entity": "__extension_grant__::x::p", "key": "record", "value": "{}"});
    let refused = server.send("PUT", "/v1/facts", &reserved);
    assert_eq!(
        (refused.status, &refused.json()["status"]),
        (403, &json!(403)),
        "nobody grants himself anything"
    );
    let id = newer.json()["fact_id"].as_str().unwrap().to_owned();
    assert_eq!(server.send("DELETE", &format!("/v1/facts/{id}"), &json!({})).json()["deleted"], true);
    assert_eq!(server.get(&format!("/v1/facts/{id}")).status, 404);
}

#[test]
fn every_no_of_extensions_over_http_is_a_problem() {
    let server = Server::start();
    let (id, tool) = ids("ext-echo");
    let missing = server.get(&format!("/v1/extensions/{id}"));
    assert_eq!(missing.status, 404);
    assert_eq!(missing.header("content-type"), Some("application/problem+json"));
    assert_eq!(missing.json()["detail"], format!("extension '{id}' not found"));
    // Not signed, and not in development.
    let unsigned = server.post("/v1/extensions/register", &json!({"manifest": manifest("ext-echo")}));
    assert_eq!(unsigned.status, 400, "{}", unsigned.body);
    assert!(
        unsigned.json()["detail"].as_str().unwrap().starts_with("extension manifest validation failed: ")
    );
    let invoke = server.post(&format!("/v1/extensions/{id}/tools/{tool}/invoke"), &json!({"args": {}}));
    assert_eq!(
        invoke.json()["detail"],
        "passport_fpr required (body field or X-Corecrux-Passport-Id header)"
    );
    let not_installed =
        server.post(&format!("/v1/extensions/{id}/tools/{tool}/invoke"), &json!({"passport_fpr": "p"}));
    assert_eq!(not_installed.json()["detail"], format!("extension '{id}' not installed"));
    assert_eq!(server.get("/v1/extensions").json()["count"], 0);
    let registry = server.get("/v1/extensions/registry");
    assert_eq!((registry.status, &registry.json()["title"]), (404, &json!("Not Found")), "none is set");
    let path = server.data.path().join("index.json");
    fs::write(&path, json!({"schema": "crux.extensions.registry.v1", "extensions": []}).to_string()).unwrap();
    let from = |index: &Path| {
        server.post("/v1/extensions/install-from-registry", &json!({ "id": id, "index_path": index }))
    };
    let unlisted = from(&path);
    assert_eq!(
        (unlisted.status, &unlisted.json()["detail"]),
        (404, &json!(format!("extension '{id}' not found in the registry")))
    );
    assert_eq!(from(server.data.path()).status, 502, "a folder is no index");
    // While a companion has the facts, the command line asks it.
    let listed = toolshelf(server.data.path(), &["--json", "ext", "installed"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["extensions"], json!([]), "{listed}");
}

#[test]
fn a_companion_that_was_stopped_keeps_no_command_waiting() {
    let server = Server::start();
    let pid = rustix::process::Pid::from_raw(server.pid() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let called = toolshelf(server.data.path(), &["call", "hash", "--input", "abc"]);
    assert!(called.status.success(), "{}", text(&called.stderr));
    let listed = toolshelf(server.data.path(), &["ext", "list"]);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
}

#[test]
fn the_module_of_an_extension_is_pinned_and_all_else_stays() {
    let data = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| toolshelf(data.path(), args);
    let folder = data.path().join("echo");
    fs::create_dir(&folder).unwrap();
    let mut before = manifest("ext-echo");
    let module = before["wasm_module_path"].as_str().unwrap().to_owned();
    fs::copy(example("ext-echo").join(&module), folder.join(&module)).unwrap();
    let right = before["wasm_module_sha256"].clone();
    before["wasm_module_sha256"] = "0".repeat(64).into();
    fs::write(folder.join("manifest.json"), before.to_string()).unwrap();
    let folder_name = folder.to_str().unwrap();
    let refused = run(&["ext", "install", folder_name]);
    assert_eq!(refused.status.code(), Some(1), "another digest than the module's");
    let pinned = run(&["pin", folder_name]);
    assert!(pinned.status.success(), "{}", text(&pinned.stderr));
    let after: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    before["wasm_module_sha256"] = right;
    assert_eq!(after, before);
    assert!(run(&["ext", "install", folder_name]).status.success());
    fs::write(folder.join(&module), "no module").unwrap();
    let invalid = run(&["pin", folder_name]);
    assert!(invalid.status.code() == Some(1) && text(&invalid.stderr).contains("wasm-invalid"));
}
