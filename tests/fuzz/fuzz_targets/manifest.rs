//! Any bytes as a manifest: what is read keeps its meaning when it is written and read again, its hash does not depend on
//! how it was written down, and a signature holds for it and for nothing else.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolshelf_core::extension::keyring::{Keyring, TrustedKey};
use toolshelf_core::extension::signature::{Policy, admit, manifest_hash, payload, public_key_hex, sign};
use toolshelf_core::extension::validate::check_install_id;
use toolshelf_core::extension::{EntryKind, IntegrationManifest, ManifestFault, TrustTier};

const SECRET: [u8; 32] = [7; 32];

fuzz_target!(|bytes: &[u8]| {
    let Ok(manifest) = IntegrationManifest::read(bytes) else { return };
    let written = serde_json::to_vec(&manifest).expect("what was read can be written");
    let again = IntegrationManifest::read(&written).expect("what was written can be read");
    assert_eq!(payload(&again), payload(&manifest), "the payload depends on how it was written down");
    let value = serde_json::to_value(&manifest).expect("what was read can be written");
    let of_value = IntegrationManifest::from_value(&value).expect("what was written can be read");
    assert_eq!(payload(&of_value), payload(&manifest), "the payload depends on how it was read");
    if check_install_id(&manifest.id).is_ok() {
        assert!(!manifest.id.contains(['/', '\\', '\0']) && !manifest.id.starts_with('.'));
    }
    for unsigned in [false, true] {
        for external_helpers in [false, true] {
            judge(&manifest, Policy { unsigned, external_helpers });
        }
    }
});

fn judge(manifest: &IntegrationManifest, policy: Policy) {
    let nobody = Keyring::default();
    let alone = admit(manifest, policy, &nobody);
    assert!(policy.unsigned || alone.is_err(), "nobody is trusted, and it was admitted");
    let mut bare = manifest.clone();
    bare.signature = None;
    let Ok(admitted) = admit(&bare, Policy { unsigned: true, ..policy }, &nobody) else { return };
    assert_eq!(admitted.manifest_hash, manifest_hash(manifest));
    assert_eq!(admitted.trust_tier, TrustTier::Unknown);
    if manifest.entry.kind == EntryKind::Wasm {
        let moved = bare.clone().in_path_form("extension.wasm");
        assert_eq!(manifest_hash(&moved), admitted.manifest_hash, "where the module lies is not signed");
        let digest = manifest.wasm_module_sha256.as_deref().unwrap_or_default();
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    let mut keyring = Keyring::default();
    let key = TrustedKey {
        passport_fpr: manifest.publisher_passport_fpr.clone(),
        public_key_hex: public_key_hex(&SECRET),
        trust_tier: TrustTier::CommunityReviewed,
        added_by: None,
    };
    if keyring.add(key).is_err() {
        return;
    }
    let mut signed = bare;
    signed.signature = Some(sign(&signed, &SECRET));
    let trusted = admit(&signed, policy, &keyring).expect("it is signed by a publisher who is trusted");
    assert_eq!(trusted.trust_tier, TrustTier::CommunityReviewed);
    // Whatever is changed after it was signed, and keeps to the rules of its form.
    signed.hashes.manifest = None;
    signed.version.push('x');
    assert_eq!(admit(&signed, policy, &keyring), Err(ManifestFault::SignatureFailed));
    assert!(admit(&signed, policy, &nobody).is_err());
}
