//! Installing, uninstalling, taking out of use.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use toolshelf_core::extension::keyring::TrustedKey;
use toolshelf_core::extension::signature::{public_key_hex, sign};
use toolshelf_core::extension::{IntegrationManifest, TrustTier};

use super::super::download::Download;
use super::super::testing::{Answer, Server, closed_port};
use super::*;

const CAP: usize = 16_777_216;

fn url_manifest(server: &Server, module: &[u8], path: &str) -> Value {
    let mut manifest = wasm_manifest("ext.a", module);
    manifest.as_object_mut().unwrap().remove("wasm_module_path");
    manifest["wasm_module_url"] = json!(server.url(path));
    manifest
}

#[test]
fn a_module_is_downloaded_verified_kept_and_never_fetched_again() {
    let server = Server::https(|_| Answer::ok(EMPTY_MODULE));
    let host = Host::trusting(Some(server.authorities.clone()));
    let manifest = url_manifest(&server, EMPTY_MODULE, "/a.wasm");
    let record = host.install(&manifest).unwrap();
    assert_eq!(record.manifest.wasm_module_path.as_deref(), Some("extension.wasm"));
    assert_eq!((&record.manifest.wasm_module_url, record.trust_tier), (&None, TrustTier::Unknown));
    assert_eq!(record.installed_by_passport.as_deref(), Some("p_admin"));
    assert_eq!(fs::read(host.path("extensions/ext.a/extension.wasm")).unwrap(), EMPTY_MODULE);
    assert_eq!(fs::read_dir(host.path("extensions/ext.a")).unwrap().count(), 1);
    let again = host.install(&manifest).unwrap_err();
    assert_eq!((status(&again), again.to_string().as_str()), (409, "extension id already installed"));
    assert_eq!(server.seen().len(), 1);
    assert_eq!(server.seen()[0].line, "GET /a.wasm HTTP/1.1");
    assert_eq!(host.extensions.list().unwrap(), std::slice::from_ref(&record));
    let host = host.reopened();
    assert_eq!(host.extensions.show("ext.a").unwrap(), record);
    let rows: Vec<_> = host.audit().iter().map(|row| row["outcome"].clone()).collect();
    assert_eq!(rows, ["ok", "conflict"]);
}

#[test]
fn a_download_that_is_not_what_it_should_be_leaves_nothing_behind() {
    type Reply = fn(&super::super::testing::Seen) -> Answer;
    let cases: [(&str, Reply, u16, &str); 9] = [
        ("other bytes", |_| Answer::ok("other"), 409, "downloaded module sha256 mismatch: manifest="),
        ("nothing", |_| Answer::ok(""), 409, "downloaded module sha256 mismatch: manifest="),
        ("not found", |_| Answer::Whole(404, vec![], b"no".to_vec()), 502, "module URL returned status 404"),
        ("an error", |_| Answer::Whole(500, vec![], vec![]), 502, "module URL returned status 500"),
        (
            "too large, announced",
            |_| Answer::ok(vec![0; CAP + 1]),
            413,
            "wasm module exceeds the 16777216-byte cap",
        ),
        ("too large, not announced", |_| Answer::Endless, 413, "wasm module exceeds the 16777216-byte cap"),
        ("no HTTP", |_| Answer::Raw(b"hello".to_vec()), 502, "module download failed: "),
        ("to plain http", |_| Answer::redirect("http://localhost:1/"), 502, "module download failed: "),
        ("in circles", |_| Answer::redirect("/again"), 502, "module download failed: "),
    ];
    for (name, reply, code, text) in cases {
        let server = Server::https(reply);
        let host = Host::trusting(Some(server.authorities.clone()));
        let err = host.install(&url_manifest(&server, EMPTY_MODULE, "/a.wasm")).unwrap_err();
        assert_eq!(status(&err), code, "{name}: {err}");
        assert!(err.to_string().starts_with(text), "{name}: {err}");
        assert!(!host.path("extensions/ext.a").exists(), "{name}");
        assert!(host.extensions.list().unwrap().is_empty(), "{name}");
    }
}

#[test]
fn a_redirect_within_https_is_followed() {
    let server = Server::https(|seen| match seen.line.as_str() {
        "GET /a.wasm HTTP/1.1" => Answer::redirect("/b.wasm"),
        _ => Answer::ok(EMPTY_MODULE),
    });
    let host = Host::trusting(Some(server.authorities.clone()));
    host.install(&url_manifest(&server, EMPTY_MODULE, "/a.wasm")).unwrap();
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn a_server_that_stalls_is_given_up() {
    let server = Server::https(|_| Answer::Stalled);
    let download = Download {
        timeout: Duration::from_millis(300),
        private_addresses: true,
        authorities: server.authorities.clone(),
    };
    let err = download.module(&server.url("/a.wasm"), "").unwrap_err();
    assert_eq!(err.to_string(), "module download failed: it took too long");
}

#[test]
fn a_server_that_nobody_vouches_for_is_refused() {
    let server = Server::https(|_| Answer::ok(EMPTY_MODULE));
    for authorities in [None, Some(Server::https(|_| Answer::ok("")).authorities)] {
        let host = Host::trusting(authorities);
        let err = host.install(&url_manifest(&server, EMPTY_MODULE, "/a.wasm")).unwrap_err();
        assert_eq!(status(&err), 502, "{err}");
        assert!(err.to_string().contains("certificate"), "{err}");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn this_computer_and_its_networks_are_not_downloaded_from() {
    let server = Server::https(|_| Answer::ok(EMPTY_MODULE));
    let host = Host::trusting(Some(server.authorities.clone()));
    host.set("TOOLSHELF_EXTENSIONS_ALLOW_PRIVATE_ADDRESSES", "no");
    // Numbers are names of the same address, in spellings that a look at the text would miss.
    for name in
        ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"]
    {
        let mut manifest = url_manifest(&server, EMPTY_MODULE, "/a.wasm");
        manifest["wasm_module_url"] = json!(format!("https://{name}:{}/a.wasm", server.port));
        let err = host.install(&manifest).unwrap_err();
        assert_eq!(status(&err), 502, "{name}: {err}");
        assert!(err.to_string().contains("the host has the private address"), "{name}: {err}");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn a_manifest_is_judged_before_anything_is_fetched_or_written() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, u16, &str); 26] = [
        ("schema", |m| m["schema"] = json!("x"), 400, "invalid integration schema 'x'"),
        ("no id", |m| drop(m.as_object_mut().unwrap().remove("id")), 400, "missing field `id`"),
        ("empty name", |m| m["name"] = json!(""), 400, "field 'name' is required"),
        ("capability", |m| m["capabilities"] = json!(["root"]), 400, "unknown capability 'root'"),
        ("path out", |m| m["id"] = json!("../a"), 400, "manifest id '../a' contains invalid characters"),
        ("dot", |m| m["id"] = json!(".."), 400, "contains invalid characters"),
        ("slash", |m| m["id"] = json!("a/b"), 400, "contains invalid characters"),
        ("upper case", |m| m["id"] = json!("Ext"), 400, "contains invalid characters"),
        ("empty id", |m| m["id"] = json!(""), 400, "contains invalid characters"),
        ("long id", |m| m["id"] = json!("a".repeat(129)), 400, "bound of 128"),
        ("the keyring", |m| m["id"] = json!("trusted-keys.json"), 400, "name of a file of the host"),
        ("no tools", |m| m["tools"] = json!([]), 400, "field 'tools' is required"),
        (
            "no digest",
            |m| m["wasm_module_sha256"] = Value::Null,
            400,
            "field 'wasm_module_sha256' is required",
        ),
        (
            "short digest",
            |m| m["wasm_module_sha256"] = json!("ab"),
            400,
            "must be 64 lowercase hex chars, got 2 chars",
        ),
        ("both", |m| m["wasm_module_path"] = json!("a"), 400, "mutually exclusive"),
        ("http", |m| m["wasm_module_url"] = json!("http://localhost/a"), 400, "must be an https:// URL"),
        ("file", |m| m["wasm_module_url"] = json!("file:///etc/passwd"), 400, "must be an https:// URL"),
        ("helper", |m| m["entry"]["kind"] = json!("external_helper"), 400, "disabled by policy"),
        ("kind", |m| m["entry"]["kind"] = json!("virus"), 400, "unknown variant"),
        ("endpoint", |m| m["external_tool_endpoint"] = json!("https://a"), 400, "must be unset"),
        ("secret of a module", |m| m["tools"][0]["auth_shared_secret_id"] = json!("a"), 400, "must not set"),
        ("schema of nothing", |m| m["tools"][0]["input_schema"] = json!([]), 400, "a schema is an object"),
        (
            "schema elsewhere",
            |m| m["tools"][0]["input_schema"] = json!({"$ref": "https://a/b"}),
            400,
            "leads to nothing",
        ),
        (
            "schema of backtracking",
            |m| m["tools"][0]["input_schema"] = json!({"pattern": "(?=a)"}),
            400,
            "cannot be used",
        ),
        ("hash", |m| m["hashes"] = json!({"manifest": "blake3:0"}), 400, "manifest hash mismatch"),
        (
            "signature",
            |m| m["signature"] = json!({"alg": "ed25519", "passport_fpr": "p_pub", "sig": "AA=="}),
            400,
            "no trusted public key for passport 'p_pub'",
        ),
    ];
    let server = Server::https(|_| Answer::ok(EMPTY_MODULE));
    let host = Host::trusting(Some(server.authorities.clone()));
    for (name, change, code, text) in cases {
        let mut manifest = url_manifest(&server, EMPTY_MODULE, "/a.wasm");
        change(&mut manifest);
        let err = host.install(&manifest).unwrap_err();
        assert_eq!(status(&err), code, "{name}: {err}");
        assert!(err.to_string().contains(text), "{name}: {err}");
        assert!(!toolshelf_core::Refusal::from(err).why.is_empty());
    }
    assert!(server.seen().is_empty());
    assert!(!host.path("extensions").exists());
}

#[test]
fn only_signed_extensions_are_installed_where_development_is_off() {
    let host = Host::new();
    host.set("TOOLSHELF_EXTENSIONS_ALLOW_UNSIGNED", "0");
    let json = wasm_manifest("ext.a", EMPTY_MODULE);
    let install = |json: &Value| {
        host.extensions.install(
            json,
            ModuleSource::Bytes(EMPTY_MODULE.to_vec()),
            LifecycleState::Active,
            None,
        )
    };
    assert_eq!(
        install(&json).unwrap_err().to_string(),
        "extension manifest validation failed: signature is required (set \
         CORECRUXD_EXTENSIONS_ALLOW_UNSIGNED=true to bypass signature requirement in dev)"
    );
    let mut manifest = IntegrationManifest::from_value(&json).unwrap();
    manifest.signature = Some(sign(&manifest, &[7; 32]));
    let signed = serde_json::to_value(&manifest).unwrap();
    assert!(install(&signed).unwrap_err().to_string().contains("no trusted public key"));
    let key = TrustedKey {
        passport_fpr: "p_pub".to_owned(),
        public_key_hex: public_key_hex(&[7; 32]),
        trust_tier: TrustTier::LocallySigned,
        added_by: None,
    };
    host.extensions.add_key(key, Some("p_admin")).unwrap();
    let mut swapped = signed.clone();
    swapped["wasm_module_sha256"] = json!(Digest::of(b"other").to_string());
    assert!(install(&swapped).unwrap_err().to_string().contains("signature verification failed"));
    assert_eq!(install(&signed).unwrap().trust_tier, TrustTier::LocallySigned);
}

#[test]
fn a_module_of_this_computer_is_held_to_its_digest_and_its_folder() {
    let host = Host::new();
    let manifest = wasm_manifest("ext.a", EMPTY_MODULE);
    assert_eq!(status(&host.install(&manifest).unwrap_err()), 404);
    let folder = host.path("extensions/ext.a");
    fs::create_dir_all(&folder).unwrap();
    fs::write(host.path("outside.wasm"), EMPTY_MODULE).unwrap();
    symlink(host.path("outside.wasm"), folder.join("module.wasm")).unwrap();
    assert_eq!(status(&host.install(&manifest).unwrap_err()), 500);
    fs::remove_file(folder.join("module.wasm")).unwrap();
    fs::write(folder.join("module.wasm"), "other").unwrap();
    let err = host.install(&manifest).unwrap_err();
    assert!(err.to_string().starts_with("module sha256 mismatch: manifest="), "{err}");
    fs::write(folder.join("module.wasm"), EMPTY_MODULE).unwrap();
    host.install(&manifest).unwrap();
    assert_eq!(fs::read(folder.join("extension.wasm")).unwrap(), EMPTY_MODULE);
    let other = |id: &str, bytes: Vec<u8>| {
        host.extensions
            .install(
                &wasm_manifest(id, EMPTY_MODULE),
                ModuleSource::Bytes(bytes),
                LifecycleState::Active,
                None,
            )
            .unwrap_err()
    };
    assert_eq!(status(&other("ext.b", b"other".to_vec())), 409);
    assert_eq!(status(&other("ext.b", vec![0; CAP + 1])), 413);
}

#[test]
fn other_kinds_are_installed_without_a_module() {
    let host = Host::new();
    let mut pack = manifest("ext.pack", "http_recipe");
    pack.as_object_mut().unwrap().remove("tools");
    host.install(&pack).unwrap();
    let mut tool = manifest("ext.tool", "external_tool");
    tool["external_tool_endpoint"] = json!(format!("https://localhost:{}/", closed_port()));
    host.install(&tool).unwrap();
    let ids: Vec<_> = host.extensions.list().unwrap().into_iter().map(|record| record.manifest.id).collect();
    assert_eq!(ids, ["ext.pack", "ext.tool"]);
}

#[test]
fn a_record_that_cannot_be_kept_leaves_no_module() {
    let host = Host::new();
    let mut manifest = wasm_manifest("ext.a", EMPTY_MODULE);
    let text = "x".repeat(8_000);
    manifest["tools"] = (0..40)
        .map(|at| json!({"name": format!("t{at}"), "description": text, "input_schema": {}}))
        .collect();
    let module = ModuleSource::Bytes(EMPTY_MODULE.to_vec());
    let err = host.extensions.install(&manifest, module, LifecycleState::Active, None).unwrap_err();
    assert_eq!(status(&err), 413, "{err}");
    assert!(!host.path("extensions/ext.a").exists());
}

#[test]
fn of_many_installations_of_one_id_one_wins() {
    let server = Server::https(|_| Answer::ok(EMPTY_MODULE));
    let host = Host::trusting(Some(server.authorities.clone()));
    let manifest = url_manifest(&server, EMPTY_MODULE, "/a.wasm");
    let ends: Vec<_> = std::thread::scope(|scope| {
        let installers: Vec<_> = (0..6).map(|_| scope.spawn(|| host.install(&manifest))).collect();
        installers.into_iter().map(|installer| installer.join().unwrap()).collect()
    });
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 1);
    assert!(ends.iter().flat_map(|end| end.as_ref().err()).all(|err| status(err) == 409));
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn what_a_crash_has_left_is_cleared_away_and_nothing_else_is() {
    let host = Host::new();
    let install = |id: &str| {
        let manifest = wasm_manifest(id, EMPTY_MODULE);
        host.extensions
            .install(&manifest, ModuleSource::Bytes(EMPTY_MODULE.to_vec()), LifecycleState::Active, None)
            .unwrap();
    };
    install("ext.a");
    fs::write(host.path("extensions/ext.a/.draft-x"), "half").unwrap();
    // The module was written, the record was not.
    fs::create_dir(host.path("extensions/ext.b")).unwrap();
    fs::write(host.path("extensions/ext.b/extension.wasm"), EMPTY_MODULE).unwrap();
    fs::create_dir(host.path("extensions/ext.c")).unwrap();
    fs::write(host.path("extensions/ext.c/notes.txt"), "mine").unwrap();
    let host = host.reopened();
    assert!(!host.path("extensions/ext.a/.draft-x").exists());
    assert!(host.path("extensions/ext.a/extension.wasm").exists());
    assert!(!host.path("extensions/ext.b").exists());
    assert!(host.path("extensions/ext.c/notes.txt").exists());
}

#[test]
fn uninstalling_takes_the_module_and_the_grants() {
    let host = Host::new();
    host.with_module(EMPTY_MODULE);
    host.extensions.uninstall("ext.a", Some("p_admin")).unwrap();
    assert!(!host.path("extensions/ext.a").exists());
    assert!(host.extensions.list().unwrap().is_empty());
    for err in [
        host.extensions.show("ext.a").unwrap_err(),
        host.extensions.uninstall("ext.a", None).unwrap_err(),
        host.extensions.grants("ext.a").unwrap_err(),
    ] {
        assert_eq!((status(&err), err.to_string().as_str()), (404, "extension 'ext.a' not found"));
    }
    // Whoever installs it again begins without grants.
    let manifest = wasm_manifest("ext.a", EMPTY_MODULE);
    host.extensions
        .install(&manifest, ModuleSource::Bytes(EMPTY_MODULE.to_vec()), LifecycleState::Active, None)
        .unwrap();
    assert!(host.extensions.grants("ext.a").unwrap().is_empty());
}

#[test]
fn what_is_damaged_is_named_and_can_be_taken_away() {
    use toolshelf_facts::NewFact;
    let host = Host::new();
    host.with_module(EMPTY_MODULE);
    let broken = ["__extension__::ext.a", "__extension_grant__::ext.a::p_alice"];
    host.extensions.write_records(broken.map(|entity| NewFact::new(entity, "record", "{")).into()).unwrap();
    let err = host.extensions.list().unwrap_err();
    assert_eq!(status(&err), 500);
    assert!(err.to_string().starts_with("the record '__extension__::ext.a' is damaged: "), "{err}");
    host.extensions.uninstall("ext.a", None).unwrap();
    host.with_module(EMPTY_MODULE);
    assert_eq!(host.extensions.list().unwrap().len(), 1);
}

#[test]
fn keys_and_secrets_leave_rows_in_the_audit_log_and_no_secret() {
    let host = Host::new();
    let extensions = &host.extensions;
    extensions.set_secret("api", b"opensesame-77", Some("p_admin")).unwrap();
    assert_eq!(extensions.secrets().unwrap()[0].id, "api");
    extensions.remove_secret("api", None).unwrap();
    assert_eq!(status(&extensions.remove_secret("api", None).unwrap_err()), 404);
    assert_eq!(status(&extensions.set_secret("a/b", b"x", None).unwrap_err()), 400);
    assert_eq!(status(&extensions.remove_key("p_pub", None).unwrap_err()), 404);
    assert_eq!(extensions.keys().unwrap().keys().len(), 0);
    let rows = host.audit();
    let actions: Vec<_> = rows.iter().map(|row| row["action"].clone()).collect();
    assert_eq!(actions, ["secret_set", "secret_removed", "secret_removed", "secret_set", "key_removed"]);
    assert!(!serde_json::to_string(&rows).unwrap().contains("opensesame"));
}

#[test]
fn an_extension_leaves_quarantine_for_a_reason() {
    let host = Host::new();
    host.with_module(EMPTY_MODULE);
    let set =
        |state, reason: Option<&str>| host.extensions.set_lifecycle("ext.a", state, reason, Some("p_admin"));
    let quarantined = set(LifecycleState::Quarantined, Some("odd")).unwrap();
    let json = serde_json::to_value(&quarantined).unwrap();
    assert_eq!(json["schema"], "crux.extensions.lifecycle.v1");
    assert_eq!(
        (&json["transition"]["from"], &json["transition"]["to"]),
        (&json!("active"), &json!("quarantined"))
    );
    assert_eq!(json["extension"]["lifecycle"]["reason"], "odd");
    for reason in [None, Some(""), Some("  ")] {
        let err = set(LifecycleState::Active, reason).unwrap_err();
        assert_eq!(
            (status(&err), err.to_string().as_str()),
            (422, "a reason is required to leave quarantine")
        );
    }
    let host = host.reopened();
    let state = |host: &Host| host.extensions.show("ext.a").unwrap().lifecycle.state;
    assert_eq!(state(&host), LifecycleState::Quarantined);
    host.extensions.set_lifecycle("ext.a", LifecycleState::Active, Some("looked at"), None).unwrap();
    assert_eq!(state(&host), LifecycleState::Active);
}

#[test]
fn a_second_host_over_the_same_folder_is_refused() {
    let host = Host::new();
    let err = open(host.dir.path().to_owned(), &host.variables, &host.clock, None).unwrap_err();
    assert_eq!(status(&err), 503, "{err}");
}

#[test]
fn a_file_of_authorities_that_cannot_be_used_is_named() {
    let host = Host::new();
    host.set("TOOLSHELF_EXTENSIONS_CA_FILE", "/nowhere.pem");
    let other = tempfile::tempdir().unwrap();
    let err = open(other.path().to_owned(), &host.variables, &host.clock, None).unwrap_err();
    assert!(err.to_string().starts_with("TOOLSHELF_EXTENSIONS_CA_FILE cannot be used: "), "{err}");
}
