//! The rules of manifests and grants, case by case: `tests/conformance/cases/extensions.json`.
//!
//! A case takes one of the bases, sets and removes what its JSON pointers name, is signed where it says so, and may be
//! changed after that. Expected is a tier of trust, or the text of the rule that is broken.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde_json::{Value, json};
use toolshelf_core::extension::IntegrationManifest;
use toolshelf_core::extension::keyring::{Keyring, TrustedKey};
use toolshelf_core::extension::manifest::TrustTier;
use toolshelf_core::extension::signature::{Policy, admit, manifest_hash, public_key_hex, sign};
use toolshelf_core::grant::Grant;

const SECRET: [u8; 32] = [42; 32];

#[derive(Deserialize)]
struct Cases {
    bases: BTreeMap<String, Value>,
    manifests: Vec<ManifestCase>,
    grants: Vec<GrantCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestCase {
    name: String,
    base: String,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    remove: Vec<String>,
    #[serde(default)]
    sign: bool,
    #[serde(default)]
    after: BTreeMap<String, Value>,
    #[serde(default)]
    after_remove: Vec<String>,
    /// Is the development switch on?
    #[serde(default)]
    unsigned: bool,
    /// Is it refused before its rules are looked at? Then the text begins like this.
    #[serde(default)]
    unreadable: bool,
    expect: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantCase {
    name: String,
    grant: Grant,
    expect: Option<String>,
}

fn cases() -> Cases {
    serde_json::from_str(include_str!("../../../tests/conformance/cases/extensions.json")).unwrap()
}

/// Sets and removes what pointers name. The last part of a pointer need not be there yet.
fn change(value: &mut Value, set: &BTreeMap<String, Value>, remove: &[String]) {
    let parent_and_key = |pointer: &str| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        (parent.to_owned(), key.to_owned())
    };
    for (pointer, new) in set {
        let (parent, key) = parent_and_key(pointer);
        value.pointer_mut(&parent).unwrap()[key] = new.clone();
    }
    for pointer in remove {
        let (parent, key) = parent_and_key(pointer);
        value.pointer_mut(&parent).unwrap().as_object_mut().unwrap().remove(&key).unwrap();
    }
}

fn keyring() -> Keyring {
    let mut keyring = Keyring::default();
    keyring
        .add(TrustedKey {
            passport_fpr: "p_community_alice".into(),
            public_key_hex: public_key_hex(&SECRET),
            trust_tier: TrustTier::CommunityReviewed,
            added_by: None,
        })
        .unwrap();
    keyring
}

fn verdict(case: &ManifestCase, bases: &BTreeMap<String, Value>) -> String {
    let mut manifest = bases[&case.base].clone();
    change(&mut manifest, &case.set, &case.remove);
    let read = |value: &Value| IntegrationManifest::read(&serde_json::to_vec(value).unwrap());
    let parsed = match read(&manifest) {
        Ok(parsed) => parsed,
        Err(fault) => return fault.to_string(),
    };
    let hash = manifest_hash(&parsed);
    if manifest["hashes"]["manifest"] == "{manifest_hash}" {
        manifest["hashes"]["manifest"] = json!(hash);
    }
    if case.sign {
        manifest["signature"] = serde_json::to_value(sign(&parsed, &SECRET)).unwrap();
    }
    change(&mut manifest, &case.after, &case.after_remove);
    let policy = Policy { unsigned: case.unsigned, ..Policy::default() };
    match admit(&read(&manifest).unwrap(), policy, &keyring()) {
        Ok(admitted) => serde_json::to_value(admitted.trust_tier).unwrap().as_str().unwrap().to_owned(),
        Err(fault) => fault.to_string().replace(&hash, "{manifest_hash}"),
    }
}

#[test]
fn every_manifest_gets_its_verdict() {
    let cases = cases();
    assert!(cases.manifests.len() >= 60);
    let names: HashSet<_> = cases.manifests.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.manifests.len());
    for case in &cases.manifests {
        let verdict = verdict(case, &cases.bases);
        if case.unreadable {
            assert!(verdict.starts_with(&case.expect), "{}: {verdict}", case.name);
        } else {
            assert_eq!(verdict, case.expect, "{}", case.name);
        }
    }
}

#[test]
fn every_grant_gets_its_verdict() {
    let cases = cases();
    assert!(cases.grants.len() >= 30);
    for case in &cases.grants {
        let verdict = case.grant.check(&[]).err().map(|fault| fault.to_string());
        assert_eq!(verdict, case.expect, "{}", case.name);
    }
}
