//! What a publisher signs, and the hash of a manifest.
//!
//! The signed payload is version 2. It is compact JSON of an object with these keys in this order: `schema`, `id`,
//! `name`, `version`, `publisher_passport_fpr`, `summary`, `entry`, `capabilities`, `network`, `data_access`, `safety`
//! (all of version 1), then `payload_version` (the number 2), `external_tool_endpoint`, `tools` and
//! `wasm_module_sha256` (`null` where absent). Objects inside `input_schema` have their keys in the order of their
//! bytes, so that the payload does not depend on who wrote the manifest down.
//!
//! Version 1 left out what decides which code runs; a signature over it is not accepted. Path and URL of the module are
//! no part of the payload: the module is what its digest says, wherever it lies.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::keyring::Keyring;
use super::manifest::{
    DataAccess, Entry, ExtensionTool, IntegrationManifest, Network, Safety, Signature, TrustTier,
};
use super::validate::{ManifestFault, check_form};
use crate::digest::to_hex;
use crate::refusal::cut;

/// The only algorithm of signatures.
pub const SIGNATURE_ALGORITHM: &str = "ed25519";
/// Version of the payload that is signed.
pub const PAYLOAD_VERSION: u32 = 2;

/// What a host asks of manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Are manifests of the kind `external_helper` allowed?
    pub external_helpers: bool,
    /// Is a manifest without a signature allowed? For development only. A signature that is there is checked all the
    /// same.
    pub unsigned: bool,
}

/// What is known of a manifest that was admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admitted {
    /// `blake3:` and the hash of the payload.
    pub manifest_hash: String,
    /// How far its publisher is trusted.
    pub trust_tier: TrustTier,
}

/// Applies every rule of a manifest: its form, its hash, its signature.
///
/// # Errors
/// The first rule that is broken.
pub fn admit(
    manifest: &IntegrationManifest,
    policy: Policy,
    keyring: &Keyring,
) -> Result<Admitted, ManifestFault> {
    check_form(manifest, policy.external_helpers)?;
    let payload = payload(manifest);
    let actual = hash_of(&payload);
    if let Some(expected) = manifest.hashes.manifest.as_ref().filter(|expected| **expected != actual) {
        return Err(ManifestFault::HashMismatch { expected: cut(expected, 100), actual });
    }
    let trust_tier = match &manifest.signature {
        Some(signature) => keyring.verify(signature, &manifest.publisher_passport_fpr, &payload)?,
        None if policy.unsigned => TrustTier::Unknown,
        None => return Err(ManifestFault::SignatureRequired),
    };
    Ok(Admitted { manifest_hash: actual, trust_tier })
}

/// The bytes that a publisher signs.
#[must_use]
pub fn payload(manifest: &IntegrationManifest) -> Vec<u8> {
    let tools = manifest.tools.as_ref().map(|tools| tools.iter().map(SignedTool::of).collect());
    let payload = Payload {
        schema: &manifest.schema,
        id: &manifest.id,
        name: &manifest.name,
        version: &manifest.version,
        publisher_passport_fpr: &manifest.publisher_passport_fpr,
        summary: &manifest.summary,
        entry: &manifest.entry,
        capabilities: &manifest.capabilities,
        network: &manifest.network,
        data_access: &manifest.data_access,
        safety: &manifest.safety,
        payload_version: PAYLOAD_VERSION,
        external_tool_endpoint: manifest.external_tool_endpoint.as_deref(),
        tools,
        wasm_module_sha256: manifest.wasm_module_sha256.as_deref(),
    };
    serde_json::to_vec(&payload).expect("texts, numbers and JSON values can be written")
}

/// The hash of a manifest: `blake3:` and the hexadecimal hash of its payload.
#[must_use]
pub fn manifest_hash(manifest: &IntegrationManifest) -> String {
    hash_of(&payload(manifest))
}

fn hash_of(payload: &[u8]) -> String {
    format!("blake3:{}", to_hex(blake3::hash(payload).as_bytes()))
}

/// Signs a manifest in the name of its publisher. `secret` is the publisher's Ed25519 key.
#[must_use]
pub fn sign(manifest: &IntegrationManifest, secret: &[u8; 32]) -> Signature {
    let key = SigningKey::from_bytes(secret);
    Signature {
        alg: SIGNATURE_ALGORITHM.to_owned(),
        passport_fpr: manifest.publisher_passport_fpr.clone(),
        public_key_hex: Some(to_hex(key.verifying_key().as_bytes())),
        sig: STANDARD.encode(key.sign(&payload(manifest)).to_bytes()),
    }
}

/// The public key that belongs to `secret`, as hexadecimal digits.
#[must_use]
pub fn public_key_hex(secret: &[u8; 32]) -> String {
    to_hex(SigningKey::from_bytes(secret).verifying_key().as_bytes())
}

#[derive(Serialize)]
struct Payload<'a> {
    schema: &'a str,
    id: &'a str,
    name: &'a str,
    version: &'a str,
    publisher_passport_fpr: &'a str,
    summary: &'a str,
    entry: &'a Entry,
    capabilities: &'a [String],
    network: &'a Network,
    data_access: &'a DataAccess,
    safety: &'a Safety,
    payload_version: u32,
    external_tool_endpoint: Option<&'a str>,
    tools: Option<Vec<SignedTool<'a>>>,
    wasm_module_sha256: Option<&'a str>,
}

#[derive(Serialize)]
struct SignedTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Sorted<'a>,
    auth_shared_secret_id: Option<&'a str>,
}

impl<'a> SignedTool<'a> {
    fn of(tool: &'a ExtensionTool) -> Self {
        Self {
            name: &tool.name,
            description: &tool.description,
            input_schema: Sorted(&tool.input_schema),
            auth_shared_secret_id: tool.auth_shared_secret_id.as_deref(),
        }
    }
}

/// A JSON value whose objects are written in the order of their keys, whatever order the parser was built to keep.
struct Sorted<'a>(&'a Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(object) => {
                let sorted: BTreeMap<_, _> = object.iter().map(|(key, value)| (key, Sorted(value))).collect();
                serializer.collect_map(sorted)
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::extension::keyring::TrustedKey;
    use crate::extension::validate::tests::summarise;

    const SECRET: [u8; 32] = [7; 32];

    fn manifest() -> IntegrationManifest {
        IntegrationManifest::from_value(&summarise()).unwrap()
    }

    fn signed() -> IntegrationManifest {
        let mut manifest = manifest();
        manifest.signature = Some(sign(&manifest, &SECRET));
        manifest
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

    fn refused(manifest: &IntegrationManifest) -> String {
        admit(manifest, Policy::default(), &keyring()).unwrap_err().to_string()
    }

    #[test]
    fn the_payload_is_stable() {
        assert_eq!(
            String::from_utf8(payload(&manifest())).unwrap(),
            concat!(
                r#"{"schema":"crux.integration.v1","id":"ext.example.summarise","name":"Summarise","version":"0.1.0","#,
                r#""publisher_passport_fpr":"p_community_alice","summary":"Summarises a note in-process.","#,
                r#""entry":{"kind":"wasm","path":"tools/summarise.json"},"capabilities":["facts:read","facts:write"],"#,
                r#""network":{"allowed_hosts":[],"requires_user_token":false},"#,
                r#""data_access":{"tenant_scopes":["selected"],"content_preview":false,"private_facts":false},"#,
                r#""safety":{"sandbox":"wasm","max_runtime_ms":0,"max_output_bytes":0},"payload_version":2,"#,
                r#""external_tool_endpoint":null,"tools":[{"name":"ext.example.summarise.note","#,
                r#""description":"Summarise a note.","input_schema":{"type":"object"},"auth_shared_secret_id":null}],"#,
                r#""wasm_module_sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}"#,
            )
        );
        let hash = manifest_hash(&manifest());
        assert!(hash.starts_with("blake3:") && hash.len() == 7 + 64, "{hash}");
    }

    #[test]
    fn blake3_is_the_published_function() {
        assert_eq!(hash_of(b""), "blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    }

    #[test]
    fn a_signed_manifest_is_admitted_with_the_trust_of_its_key() {
        let admitted = admit(&signed(), Policy::default(), &keyring()).unwrap();
        assert_eq!(admitted.trust_tier, TrustTier::CommunityReviewed);
        assert_eq!(admitted.manifest_hash, manifest_hash(&manifest()));
        let mut with_hash = signed();
        with_hash.hashes.manifest = Some(admitted.manifest_hash.clone());
        assert_eq!(admit(&with_hash, Policy::default(), &keyring()), Ok(admitted.clone()));
        // Installing rewrites the manifest; its signature still holds.
        let kept = signed().in_path_form("extension.wasm");
        assert_eq!(admit(&kept, Policy::default(), &keyring()), Ok(admitted));
    }

    #[test]
    fn whatever_decides_what_runs_is_signed() {
        let changes: [fn(&mut IntegrationManifest); 6] = [
            |manifest| manifest.wasm_module_sha256 = Some("0".repeat(64)),
            |manifest| manifest.tools.as_mut().unwrap()[0].name.push('x'),
            |manifest| manifest.tools.as_mut().unwrap()[0].description.push('x'),
            |manifest| manifest.tools.as_mut().unwrap()[0].input_schema = json!({}),
            |manifest| manifest.capabilities.clear(),
            |manifest| manifest.network.allowed_hosts.push("example.com".into()),
        ];
        for change in changes {
            let mut manifest = signed();
            change(&mut manifest);
            assert_eq!(refused(&manifest), "signature verification failed");
        }
        let mut external = manifest();
        external.entry.kind = crate::extension::EntryKind::ExternalTool;
        (external.wasm_module_url, external.wasm_module_sha256) = (None, None);
        external.external_tool_endpoint = Some("https://a.example".into());
        external.signature = Some(sign(&external, &SECRET));
        assert!(admit(&external, Policy::default(), &keyring()).is_ok());
        external.external_tool_endpoint = Some("https://b.example".into());
        assert_eq!(refused(&external), "signature verification failed");
    }

    #[test]
    fn a_signature_over_the_first_payload_is_not_accepted() {
        let mut manifest = manifest();
        let full = String::from_utf8(payload(&manifest)).unwrap();
        let first = format!("{}}}", &full[..full.find(r#","payload_version""#).unwrap()]);
        assert!(serde_json::from_str::<Value>(&first).is_ok());
        let key = SigningKey::from_bytes(&SECRET);
        let mut signature = sign(&manifest, &SECRET);
        signature.sig = STANDARD.encode(key.sign(first.as_bytes()).to_bytes());
        manifest.signature = Some(signature);
        assert_eq!(refused(&manifest), "signature verification failed");
    }

    #[test]
    fn every_fault_of_a_signature_has_its_text() {
        assert_eq!(refused(&manifest()), "signature is required");
        let with = |change: fn(&mut Signature)| {
            let mut manifest = signed();
            change(manifest.signature.as_mut().unwrap());
            refused(&manifest)
        };
        assert_eq!(with(|s| s.alg = "rsa".into()), "unsupported signature algorithm 'rsa'");
        assert_eq!(with(|s| s.passport_fpr = "p_b".into()), "no trusted public key for passport 'p_b'");
        assert_eq!(
            with(|s| s.public_key_hex = Some(public_key_hex(&[8; 32]))),
            "invalid signature material: the inline public key is not the one in the keyring"
        );
        assert_eq!(with(|s| s.sig = "?".into()), "invalid signature material: sig is not standard Base64");
        assert_eq!(with(|s| s.sig = "AAAA".into()), "invalid signature material: sig is not 64 bytes");
        assert_eq!(with(|s| s.sig = STANDARD.encode([0; 64])), "signature verification failed");
        let mut manifest = signed();
        manifest.hashes.manifest = Some("blake3:00".into());
        assert!(refused(&manifest).starts_with("manifest hash mismatch: expected blake3:00, actual blake3:"));
    }

    #[test]
    fn a_trusted_key_speaks_for_nobody_else() {
        let mut keyring = keyring();
        keyring
            .add(TrustedKey {
                passport_fpr: "p_mallory".into(),
                public_key_hex: public_key_hex(&[9; 32]),
                trust_tier: TrustTier::Unknown,
                added_by: None,
            })
            .unwrap();
        let mut manifest = manifest();
        manifest.signature =
            Some(Signature { passport_fpr: "p_mallory".into(), ..sign(&manifest, &[9; 32]) });
        assert_eq!(
            admit(&manifest, Policy::default(), &keyring).unwrap_err().to_string(),
            "invalid signature material: the signer is not the manifest's publisher"
        );
    }

    #[test]
    fn development_takes_unsigned_manifests_and_no_wrong_signatures() {
        let policy = Policy { unsigned: true, ..Policy::default() };
        assert_eq!(admit(&manifest(), policy, &Keyring::default()).unwrap().trust_tier, TrustTier::Unknown);
        assert!(admit(&signed(), policy, &Keyring::default()).is_err());
    }

    proptest! {
        #[test]
        fn no_changed_bit_of_a_signature_verifies(index in 0_usize..64, bit in 0_u8..8) {
            let mut manifest = signed();
            let signature = manifest.signature.as_mut().unwrap();
            let mut bytes = STANDARD.decode(&signature.sig).unwrap();
            bytes[index] ^= 1 << bit;
            signature.sig = STANDARD.encode(bytes);
            prop_assert_eq!(refused(&manifest), "signature verification failed");
        }
    }
}
