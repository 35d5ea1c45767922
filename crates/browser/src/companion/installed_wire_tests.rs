//! What `core` and the companion write of extensions is what is read here.

use serde_json::json;
use toolshelf_core::extension::IntegrationManifest;
use toolshelf_core::extension::envelope::{HostLogEntry, WasmDispatchOutcome};
use toolshelf_core::refusal::{Code, Refusal};

use super::*;

fn summarise() -> Value {
    json!({
        "schema": "crux.integration.v1", "id": "ext.a", "name": "A", "version": "1", "summary": "Does it.",
        "publisher_passport_fpr": "p_a", "entry": {"kind": "wasm", "path": "manifest.json"},
        "capabilities": ["facts:read"],
        "network": {"allowed_hosts": ["a.example"], "requires_user_token": true},
        "data_access": {"tenant_scopes": [], "content_preview": true, "private_facts": true},
        "safety": {"sandbox": "wasm", "max_runtime_ms": 5, "max_output_bytes": 6},
        "signature": {"alg": "ed25519", "passport_fpr": "p_a", "sig": "x"},
        "tools": [{"name": "ext.a.t", "description": "It", "input_schema": {"type": "object"}}],
        "wasm_module_path": "a.wasm", "wasm_module_sha256": "0".repeat(64),
    })
}

#[test]
fn a_manifest_is_read_as_core_writes_it() {
    let written = json!(IntegrationManifest::from_value(&summarise()).unwrap());
    let read = manifest(&written).unwrap();
    assert_eq!((&*read.id, &*read.kind, &*read.publisher), ("ext.a", "wasm", "p_a"));
    assert_eq!((read.hosts.len(), read.max_runtime_ms, read.max_output_bytes), (1, 5, 6));
    assert!(read.requires_user_token && read.content_preview && read.private_facts);
    assert_eq!((read.signed_by.as_deref(), read.module_path.as_deref()), (Some("p_a"), Some("a.wasm")));
    assert_eq!((read.tools[0].name.as_str(), read.tools[0].secret.as_deref()), ("ext.a.t", None));
    assert_eq!(read.whole, written);
    let bare = json!({
        "schema": "crux.integration.v1", "id": "b", "name": "B", "version": "1", "summary": "",
        "publisher_passport_fpr": "p", "entry": {"kind": "http_recipe", "path": "r.json"},
    });
    let bare = manifest(&json!(IntegrationManifest::from_value(&bare).unwrap())).unwrap();
    assert!(bare.tools.is_empty() && bare.signed_by.is_none() && bare.module_sha256.is_none());
    assert_eq!(manifest(&json!({"id": "b"})), Err("name"));
}

#[test]
fn what_is_installed_is_read_in_either_state() {
    for (state, is_quarantined) in [("active", false), ("quarantined", true)] {
        let told = json!({ "count": 1, "allow_unsigned_dev": true, "extensions": [{
            "manifest": summarise(), "manifest_hash": "blake3:0", "trust_tier": "locally_signed",
            "installed_at_unix_ms": 7, "lifecycle": {"state": state, "since_unix_ms": 8, "reason": "why"},
        }]});
        let read = listed(&told).unwrap();
        let [one] = &read.extensions[..] else { panic!("one extension: {read:?}") };
        assert_eq!(
            (one.is_quarantined, one.since_ms, one.reason.as_deref()),
            (is_quarantined, 8, Some("why"))
        );
        assert_eq!((one.trust, read.allow_unsigned), (TrustTier::LocallySigned, true));
    }
    let told = json!({"manifest": null, "manifest_hash": null, "trust_tier": null, "allow_unsigned_dev": false,
        "installed_version": null, "limits": {"fuel": 1, "memory_bytes": 2, "wall_ms": 3},
        "refusal": Refusal::new(Code::ExtensionInvalid, "no")});
    let read = inspected(&told).unwrap();
    assert_eq!((read.manifest, read.refusal.map(|no| no.code)), (None, Some(Code::ExtensionInvalid)));
    assert_eq!(read.limits, Some(CallLimits { fuel: 1, memory_bytes: 2, wall_ms: 3 }));
}

#[test]
fn a_grant_is_read_and_asked_for_field_by_field() {
    let whole = Grant {
        extension_id: "ext.a".into(),
        passport_fpr: "p_ann".into(),
        allowed_tool_names: vec!["t".into()],
        allowed_prefixes_read: vec!["r::".into()],
        allowed_prefixes_write: vec!["w::".into()],
        rate_limit_per_min: Some(3),
        granted_at_unix_ms: 1,
        granted_by_passport: Some("p_me".into()),
        expires_at_unix_ms: Some(2),
        allowed_secret_ids: vec!["s".into()],
    };
    for told in
        [whole.clone(), Grant { extension_id: "b".into(), passport_fpr: "p".into(), ..Grant::default() }]
    {
        assert_eq!(grant(&json!(told)), Ok(told));
    }
    // What the companion says itself is not asked for.
    let mut expected = json!(whole);
    for own in ["extension_id", "granted_at_unix_ms", "granted_by_passport"] {
        expected.as_object_mut().unwrap().remove(own);
    }
    assert_eq!(grant_request(&whole), expected);
}

#[test]
fn outcomes_receipts_and_verdicts_are_read() {
    let log = vec![HostLogEntry { level: "info".into(), message: "m".into(), at_unix_ms: 1 }];
    let told = WasmDispatchOutcome {
        result: Value::Null,
        elapsed_ms: 4,
        fuel_consumed: 5,
        log: log.clone(),
        request_id: "req-1".into(),
    };
    let read = outcome(&json!(told)).unwrap();
    assert_eq!((read.elapsed_ms, read.fuel_consumed, &read.log), (4, Some(5), &log));
    let external = json!({"result": 1, "elapsed_ms": 4, "request_id": "r", "drop_reasons": ["no"]});
    assert_eq!(outcome(&external).unwrap().drop_reasons, ["no"]);

    let told = json!({"body": {"seq": 3, "at_unix_ms": 9, "extension_id": "e", "tool": "t", "passport_fpr": "p",
        "request_id": "r", "action": "did", "payload": "{}", "prev": "0"}, "sig": "s"});
    let read = receipt(&told).unwrap();
    assert_eq!((read.seq, &*read.action, &read.whole), (3, "did", &told));

    let whole =
        json!({"verified": true, "receipts": 2, "last": "0", "end_confirmed": true, "public_key": "k"});
    assert_eq!(verdict(&whole).unwrap().whole, Ok((2, true)));
    let broken = json!({"verified": false, "public_key": "k",
        "refusal": Refusal::new(Code::ReceiptsDamaged, "line 1")});
    assert_eq!(verdict(&broken).unwrap().whole.map_err(|no| no.code), Err(Code::ReceiptsDamaged));
}
