//! Looking extensions up in a registry, and installing them from there: a real server, with an authority of its own.

use std::fs;

use toolshelf_core::extension::TrustTier;
use toolshelf_core::extension::keyring::TrustedKey;
use toolshelf_core::extension::signature::{public_key_hex, sign};
use toolshelf_core::extension::{ExtensionError, IntegrationManifest};

use super::super::index::RegistryInstall;
use super::super::testing::{Answer, Server};
use super::*;

const SECRET: [u8; 32] = [7; 32];

/// A registry of `ext.a`: its index, its manifest and its module. `change` sees index and manifest before they are served.
struct Registry {
    server: Server,
    host: Host,
}

impl Registry {
    fn with(change: impl FnOnce(&mut Value, &mut Vec<u8>)) -> Self {
        let shared = Arc::new(Mutex::new((Value::Null, Vec::new())));
        let served = Arc::clone(&shared);
        let server = Server::https(move |seen| {
            let (index, manifest) = &*served.lock().unwrap();
            match seen.line.as_str() {
                "GET /index.json HTTP/1.1" if index.is_null() => Answer::Whole(503, vec![], vec![]),
                "GET /index.json HTTP/1.1" => Answer::ok(index.to_string()),
                "GET /a.json HTTP/1.1" => Answer::ok(manifest.clone()),
                "GET /a.wasm HTTP/1.1" => Answer::ok(EMPTY_MODULE),
                "GET /large.json HTTP/1.1" => Answer::ok(vec![b' '; 2_097_153]),
                _ => Answer::Whole(404, vec![], vec![]),
            }
        });
        let mut manifest = wasm_manifest("ext.a", EMPTY_MODULE);
        manifest.as_object_mut().unwrap().remove("wasm_module_path");
        manifest["wasm_module_url"] = json!(server.url("/a.wasm"));
        let mut signed = IntegrationManifest::from_value(&manifest).unwrap();
        signed.signature = Some(sign(&signed, &SECRET));
        let mut manifest = serde_json::to_vec_pretty(&signed).unwrap();
        let mut index = json!({
            "schema": "crux.extensions.registry.v1",
            "extensions": [
                {"id": "ext.a", "version": "1.2.3", "manifest_url": server.url("/a.json"),
                 "manifest_sha256": Digest::of(&manifest).to_string(), "name": "Notes", "summary": "Sums up.",
                 "publisher_passport_fpr": "p_pub"},
                {"id": "ext.gone", "version": "1", "manifest_url": server.url("/gone.json"),
                 "manifest_sha256": "0".repeat(64)},
                {"id": "ext.large", "version": "1", "manifest_url": server.url("/large.json"),
                 "manifest_sha256": "0".repeat(64)},
            ],
        });
        change(&mut index, &mut manifest);
        *shared.lock().unwrap() = (index, manifest);
        let host = Host::trusting(Some(server.authorities.clone()));
        host.set("TOOLSHELF_EXTENSIONS_ALLOW_UNSIGNED", "no");
        host.set("TOOLSHELF_EXTENSIONS_REGISTRY", &server.url("/index.json"));
        let key = TrustedKey {
            passport_fpr: "p_pub".to_owned(),
            public_key_hex: public_key_hex(&SECRET),
            trust_tier: TrustTier::CommunityReviewed,
            added_by: None,
        };
        host.extensions.add_key(key, None).unwrap();
        Self { server, host }
    }

    fn new() -> Self {
        Self::with(|_, _| {})
    }

    fn install(&self, id: &str) -> Result<RegistryInstall, ExtError> {
        self.host.extensions.install_from_registry(id, None, LifecycleState::Active, Some("p_admin"))
    }

    fn asked_for_the_index(&self) -> usize {
        self.server.seen().iter().filter(|seen| seen.line.contains("/index.json")).count()
    }
}

#[test]
fn what_a_registry_lists_is_found_and_installed() {
    let registry = Registry::new();
    let host = &registry.host.extensions;
    let index = host.registry(None, false).unwrap();
    for (query, ids) in [
        ("", vec!["ext.a", "ext.gone", "ext.large"]),
        ("NOTES sums", vec!["ext.a"]),
        ("p_pub", vec!["ext.a"]),
        ("notes gone", vec![]),
    ] {
        let found: Vec<&str> = index.search(query).iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(found, ids, "{query:?}");
    }
    let installed = registry.install("ext.a").unwrap();
    let json = serde_json::to_value(&installed).unwrap();
    assert_eq!(json["schema"], "crux.extensions.registry_install.v1");
    assert_eq!(json["manifest_sha256"], json["registry_entry"]["manifest_sha256"]);
    assert_eq!(
        (installed.installed.trust_tier, &json["installed"]["manifest"]["id"]),
        (TrustTier::CommunityReviewed, &json!("ext.a"))
    );
    assert_eq!(fs::read(registry.host.path("extensions/ext.a/extension.wasm")).unwrap(), EMPTY_MODULE);
    let again = registry.install("ext.a").unwrap_err();
    assert_eq!((status(&again), again.to_string().as_str()), (409, "extension id already installed"));
}

#[test]
fn an_index_is_read_again_after_a_while_and_an_old_one_serves_where_there_is_no_other() {
    let registry = Registry::new();
    let host = &registry.host.extensions;
    host.registry(None, false).unwrap();
    host.registry(None, false).unwrap();
    assert_eq!(registry.asked_for_the_index(), 1);
    host.registry(None, true).unwrap();
    registry.host.after(5 * 60_000);
    assert!(!host.registry(None, false).unwrap().stale);
    assert_eq!(registry.asked_for_the_index(), 3);
    // The registry can no longer be reached.
    registry.host.after(5 * 60_000);
    registry.host.set("TOOLSHELF_EXTENSIONS_ALLOW_PRIVATE_ADDRESSES", "no");
    let old = host.registry(None, false).unwrap();
    assert!(old.stale && old.extensions.len() == 3);
    // One of another place is not its stand-in.
    let other = host.registry(Some("https://localhost:1/other.json"), false).unwrap_err();
    assert_eq!(status(&other), 502, "{other}");
}

#[test]
fn an_index_may_be_a_file() {
    let registry = Registry::new();
    let index = registry.host.extensions.registry(None, false).unwrap();
    let path = registry.host.path("index.json");
    let file = json!({ "schema": "crux.extensions.registry.v1", "extensions": index.extensions });
    fs::write(&path, file.to_string()).unwrap();
    let from = path.to_str().unwrap();
    let host = &registry.host.extensions;
    assert_eq!(host.registry(Some(from), false).unwrap().extensions, index.extensions);
    let staged = host.install_from_registry("ext.a", Some(from), LifecycleState::Staged, None).unwrap();
    assert_eq!(staged.installed.lifecycle.state, LifecycleState::Staged);
}

#[test]
fn what_does_not_agree_is_refused_by_name_and_leaves_nothing() {
    type Change = fn(&mut Value, &mut Vec<u8>);
    let cases: [(&str, &str, Change, u16, &str); 14] = [
        ("no such id", "ext.zzz", |_, _| {}, 404, "extension 'ext.zzz' not found in the registry"),
        ("no manifest", "ext.gone", |_, _| {}, 502, "module URL returned status 404"),
        ("a large manifest", "ext.large", |_, _| {}, 413, "manifest exceeds the 2097152-byte cap"),
        (
            "another manifest",
            "ext.a",
            |_, manifest| manifest.push(b'\n'),
            409,
            "manifest_sha256 mismatch for ext.a: expected ",
        ),
        (
            "another version",
            "ext.a",
            |index, _| index["extensions"][0]["version"] = json!("2"),
            409,
            "registry entry mismatch: expected ext.a@2, manifest is ext.a@1.2.3",
        ),
        (
            "another id",
            "ext.b",
            |index, _| index["extensions"][0]["id"] = json!("ext.b"),
            409,
            "registry entry mismatch: expected ext.b@1.2.3, manifest is ext.a@1.2.3",
        ),
        (
            "what is no manifest",
            "ext.a",
            |index, manifest| {
                *manifest = b"{}".to_vec();
                index["extensions"][0]["manifest_sha256"] = json!(Digest::of(manifest).to_string());
            },
            400,
            "manifest is not a crux.integration.v1 document: ",
        ),
        (
            "a signature over something else",
            "ext.a",
            |index, manifest| {
                let text = String::from_utf8(manifest.clone()).unwrap().replace("Notes.", "Votes.");
                *manifest = text.into_bytes();
                index["extensions"][0]["manifest_sha256"] = json!(Digest::of(manifest).to_string());
            },
            400,
            "extension manifest validation failed: signature verification failed",
        ),
        (
            "no index",
            "ext.a",
            |index, _| *index = Value::Null,
            502,
            "registry index cannot be used: it answered with status 503",
        ),
        (
            "an index of another form",
            "ext.a",
            |index, _| index["schema"] = json!("x"),
            502,
            "registry index cannot be used: its schema",
        ),
        (
            "an id twice",
            "ext.a",
            |index, _| index["extensions"][1]["id"] = json!("ext.a"),
            502,
            "registry index cannot be used: 'ext.a' is listed twice",
        ),
        (
            "an id that leads out",
            "ext.a",
            |index, _| index["extensions"][1]["id"] = json!("../a"),
            502,
            "registry index cannot be used: '../a' is no id of an extension",
        ),
        (
            "a digest that is none",
            "ext.a",
            |index, _| index["extensions"][1]["manifest_sha256"] = json!("ABC"),
            502,
            "registry index cannot be used: manifest_sha256 of 'ext.gone' is not 64",
        ),
        (
            "a manifest over plain http",
            "ext.a",
            |index, _| index["extensions"][1]["manifest_url"] = json!("http://localhost/m.json"),
            502,
            "registry index cannot be used: manifest_url of 'ext.gone' is no https",
        ),
    ];
    for (name, id, change, code, text) in cases {
        let registry = Registry::with(change);
        let err = registry.install(id).unwrap_err();
        assert_eq!(status(&err), code, "{name}: {err}");
        assert!(err.to_string().starts_with(text), "{name}: {err}");
        assert!(registry.host.extensions.list().unwrap().is_empty(), "{name}");
        assert!(!registry.host.path("extensions/ext.a").exists(), "{name}");
    }
}

#[test]
fn a_place_that_is_no_registry_is_named() {
    let host = Host::new();
    let none = host.extensions.registry(None, false).unwrap_err();
    assert!(
        matches!(none, ExtError::Extension(ExtensionError::NoRegistry)) && status(&none) == 404,
        "{none}"
    );
    for (source, part) in [
        ("http://localhost/index.json", "is neither an https:// URL nor a file"),
        ("/no/such/index.json", "No such file"),
        ("ftp://x", "is neither"),
    ] {
        let err = host.extensions.registry(Some(source), false).unwrap_err();
        assert!(status(&err) == 502 && err.to_string().contains(part), "{err}");
    }
    let folder = host.extensions.registry(host.dir.path().to_str(), false).unwrap_err();
    assert_eq!(status(&folder), 502, "{folder}");
}

#[tokio::test]
async fn what_is_staged_is_not_called_before_it_is_activated() {
    let host = Host::new();
    let manifest = wasm_manifest("ext.a", EMPTY_MODULE);
    let module = ModuleSource::Bytes(EMPTY_MODULE.to_vec());
    host.extensions.install(&manifest, module, LifecycleState::Staged, None).unwrap();
    host.grant("ext.a", |_| {});
    let err = host.call(json!({})).await.unwrap_err();
    assert_eq!((status(&err.error), err.to_string().as_str()), (409, "extension 'ext.a' is staged"));
    host.extensions.set_lifecycle("ext.a", LifecycleState::Active, None, None).unwrap();
    let err = host.call(json!({})).await.unwrap_err();
    assert_ne!(status(&err.error), 409, "{err}");
    // Back from quarantine it goes for a reason, wherever to.
    host.extensions.set_lifecycle("ext.a", LifecycleState::Quarantined, None, None).unwrap();
    let err = host.extensions.set_lifecycle("ext.a", LifecycleState::Staged, None, None).unwrap_err();
    assert_eq!(status(&err), 422);
    host.extensions.set_lifecycle("ext.a", LifecycleState::Staged, Some("looked at"), None).unwrap();
}
