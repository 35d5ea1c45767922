//! From an author to whoever trusts him: a key, a signature, an installation; and what is changed on the way.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// The program in a data folder of its own, where nothing unsigned is taken.
struct Computer(tempfile::TempDir);

impl Computer {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_toolshelf"))
            .env_clear()
            .env("TOOLSHELF_DATA_DIR", self.0.path())
            .env("TOOLSHELF_CACHE_DIR", self.0.path().join("cache"))
            .env("TOOLSHELF_CONFIG", self.0.path().join("toolshelf.toml"))
            .env("TOOLSHELF_VAULT_KEY", "file")
            .arg("--json")
            .args(args)
            .output()
            .unwrap()
    }

    /// What a command that works answers.
    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{args:?}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The code and the sentence of one that does not.
    fn refusal(&self, args: &[&str]) -> (String, String) {
        let output = self.run(args);
        assert_eq!(output.status.code().map(|code| code != 0), Some(true), "{args:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        (answer["refused"].as_str().unwrap().to_owned(), answer["why"].as_str().unwrap().to_owned())
    }
}

/// A project in a folder of its own, which is not signed.
fn project() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/guests/ext-echo");
    for name in ["manifest.json", "echo.wasm"] {
        fs::copy(from.join(name), folder.path().join(name)).unwrap();
    }
    let manifest = folder.path().join("manifest.json");
    (folder, manifest)
}

fn read(manifest: &Path) -> Value {
    serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap()
}

fn change(manifest: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = read(manifest);
    change(&mut value);
    fs::write(manifest, value.to_string()).unwrap();
}

#[test]
fn what_an_author_signs_is_installed_by_who_trusts_him_and_by_nobody_else() {
    let (author, friend) = (Computer::new(), Computer::new());
    let (folder, manifest) = project();
    let dir = folder.path().to_str().unwrap();
    let before = read(&manifest);

    let key = author.json(&["keys", "new"]);
    let file = PathBuf::from(key["file"].as_str().unwrap());
    assert_eq!((&key["made"], file.parent()), (&json!(true), Some(author.0.path())));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = author.json(&["keys", "new"]);
    assert_eq!((&again["made"], &again["public_key"]), (&json!(false), &key["public_key"]));

    let signed = author.json(&["ext", "sign", dir]);
    let (passport, public) = (signed["passport"].as_str().unwrap(), signed["public_key"].as_str().unwrap());
    assert_eq!(signed["public_key"], key["public_key"]);
    let mut after = read(&manifest);
    assert_eq!(after["hashes"]["manifest"], signed["manifest_hash"]);
    // All else is as the author wrote it.
    after.as_object_mut().unwrap().retain(|field, _| before.get(field).is_some());
    assert_eq!(after, before);

    assert_eq!(friend.refusal(&["ext", "install", dir]).0, "extension-untrusted", "nobody is trusted yet");
    friend.json(&["keys", "add", passport, public]);
    let installed = friend.json(&["ext", "install", dir]);
    assert_eq!(installed["extension"]["trust_tier"], "locally_signed");
    assert_eq!(installed["extension"]["manifest_hash"], signed["manifest_hash"]);
    friend.json(&["ext", "remove", before["id"].as_str().unwrap()]);
    // Trust ends.
    friend.json(&["keys", "remove", passport]);
    assert_eq!(friend.refusal(&["ext", "install", dir]).0, "extension-untrusted");
}

#[test]
fn what_is_changed_after_it_was_signed_is_refused() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, &str); 8] = [
        ("the version", |m| m["version"] = json!("9"), "manifest hash mismatch"),
        (
            "the version, and no hash",
            |m| (m["version"], m["hashes"]) = (json!("9"), json!({})),
            "signature verification failed",
        ),
        ("a tool", |m| m["tools"][0]["description"] = json!("Pays."), "manifest hash mismatch"),
        (
            "a schema, and no hash",
            |m| (m["tools"][0]["input_schema"], m["hashes"]) = (json!(true), json!({})),
            "signature verification failed",
        ),
        ("a capability", |m| m["capabilities"] = json!(["admin:read"]), "manifest hash mismatch"),
        (
            "the signature",
            |m| m["signature"]["sig"] = json!("A".repeat(86) + "=="),
            "signature verification failed",
        ),
        ("no signature", |m| drop(m.as_object_mut().unwrap().remove("signature")), "signature is required"),
        ("another publisher", |m| m["publisher_passport_fpr"] = json!("p_other"), "manifest hash mismatch"),
    ];
    let (author, friend) = (Computer::new(), Computer::new());
    for (name, tamper, text) in cases {
        let (folder, manifest) = project();
        let dir = folder.path().to_str().unwrap();
        let signed = author.json(&["ext", "sign", dir]);
        friend.json(&[
            "keys",
            "add",
            signed["passport"].as_str().unwrap(),
            signed["public_key"].as_str().unwrap(),
        ]);
        change(&manifest, tamper);
        let (_, why) = friend.refusal(&["ext", "install", dir]);
        assert!(why.contains(text), "{name}: {why}");
    }
    // The module itself: its digest is signed.
    let (folder, manifest) = project();
    author.json(&["ext", "sign", folder.path().to_str().unwrap()]);
    let module = read(&manifest)["wasm_module_path"].as_str().unwrap().to_owned();
    fs::write(folder.path().join(module), b"\0asm\x01\0\0\0").unwrap();
    let (code, why) = friend.refusal(&["ext", "install", folder.path().to_str().unwrap()]);
    assert_eq!(code, "digest-mismatch", "{why}");
    assert_eq!(friend.json(&["ext", "installed"])["extensions"], json!([]));
}

#[test]
fn what_should_not_be_signed_is_not() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, &str); 5] = [
        ("another module", |m| m["wasm_module_sha256"] = json!("0".repeat(64)), "digest-mismatch"),
        ("no module", |m| m["wasm_module_path"] = json!("gone.wasm"), "file-unavailable"),
        ("a module outside", |m| m["wasm_module_path"] = json!("../echo.wasm"), "outside-root"),
        ("a broken rule", |m| m["capabilities"] = json!(["root"]), "extension-invalid"),
        ("no manifest", |m| *m = json!({"schema": "crux.integration.v1"}), "extension-invalid"),
    ];
    let author = Computer::new();
    for (name, spoil, code) in cases {
        let (folder, manifest) = project();
        change(&manifest, spoil);
        let before = fs::read(&manifest).unwrap();
        let (refused, why) = author.refusal(&["ext", "sign", folder.path().to_str().unwrap()]);
        assert_eq!(refused, code, "{name}: {why}");
        assert_eq!(fs::read(&manifest).unwrap(), before, "{name}");
    }
    // A key that others can read is not used.
    let (folder, _) = project();
    let key = folder.path().join("my.key");
    fs::write(&key, [7; 32]).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let args = ["ext", "sign", folder.path().to_str().unwrap(), "--key", key.to_str().unwrap()];
    let (code, why) = author.refusal(&args);
    assert!(code == "file-unavailable" && why.contains("closed to others"), "{why}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let signed = author.json(&[&args[..], &["--passport", "p_me"]].concat());
    assert_eq!(signed["passport"], "p_me");
}

#[test]
fn a_registry_is_searched_and_what_it_leads_to_is_judged() {
    let computer = Computer::new();
    let index = computer.0.path().join("index.json");
    let entry = |id: &str, summary: &str| {
        json!({
            "id": id, "version": "1", "summary": summary, "manifest_sha256": "0".repeat(64),
            // Nobody listens there, and addresses of this computer are not asked anyway.
            "manifest_url": "https://localhost:1/manifest.json",
        })
    };
    let entries = [entry("ext.notes", "Sums up notes."), entry("ext.mail", "Sorts mail.")];
    let file = json!({ "schema": "crux.extensions.registry.v1", "extensions": entries });
    fs::write(&index, file.to_string()).unwrap();
    let index = index.to_str().unwrap();

    assert_eq!(computer.refusal(&["ext", "search", "notes"]).0, "missing-argument", "no registry is set");
    let found = computer.json(&["ext", "search", "NOTES", "sums", "--index", index]);
    assert_eq!((&found["entries"][0]["id"], &found["entries"][1]), (&json!("ext.notes"), &Value::Null));
    let install = |id: &str| computer.refusal(&["ext", "install", id, "--from-registry", "--index", index]);
    let (code, why) = install("ext.notes");
    assert!(code == "upstream-failed" && why.contains("private address"), "{why}");
    assert_eq!(install("ext.other").0, "extension-not-installed");
    fs::write(index, "{}").unwrap();
    let (code, why) = install("ext.notes");
    assert!(code == "upstream-failed" && why.contains("registry index cannot be used"), "{why}");
    assert_eq!(computer.json(&["ext", "installed"])["extensions"], json!([]));
}
