//! The publishers that are trusted, and the check of their signatures.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Serialize, Serializer};

use super::manifest::{Signature, TrustTier};
use super::read::INTEGRATION_NAME_MAX_BYTES;
use super::signature::SIGNATURE_ALGORITHM;
use super::validate::ManifestFault;
use crate::refusal::cut;

/// Most keys that a keyring holds.
pub const KEYRING_MAX_KEYS: usize = 1_024;

/// A key that is trusted, as it is kept and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedKey {
    /// Whose it is.
    pub passport_fpr: String,
    /// The key, 64 hexadecimal digits.
    pub public_key_hex: String,
    /// How far it is trusted.
    pub trust_tier: TrustTier,
    /// Who added it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_by: Option<String>,
}

/// The publishers that are trusted, by their passports. On disk a list of [`TrustedKey`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keyring {
    keys: BTreeMap<String, TrustedKey>,
}

/// Why a key is not taken into a keyring.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum KeyFault {
    /// No passport, or one that is too long.
    #[error("invalid passport_fpr '{0}': must be 1 to {INTEGRATION_NAME_MAX_BYTES} bytes")]
    Passport(String),
    /// Not a key that signatures can be checked with.
    #[error("invalid public_key_hex: {0}")]
    Key(&'static str),
    /// A full keyring.
    #[error("the keyring holds {KEYRING_MAX_KEYS} keys already")]
    Full,
}

impl Keyring {
    /// Takes a key in; one of the same passport is replaced.
    ///
    /// # Errors
    /// A [`KeyFault`].
    pub fn add(&mut self, key: TrustedKey) -> Result<(), KeyFault> {
        if key.passport_fpr.trim().is_empty() || key.passport_fpr.len() > INTEGRATION_NAME_MAX_BYTES {
            return Err(KeyFault::Passport(cut(&key.passport_fpr, 100)));
        }
        verifying_key(&key.public_key_hex).map_err(KeyFault::Key)?;
        if self.keys.len() >= KEYRING_MAX_KEYS && !self.keys.contains_key(&key.passport_fpr) {
            return Err(KeyFault::Full);
        }
        self.keys.insert(key.passport_fpr.clone(), key);
        Ok(())
    }

    /// Takes the key of a passport out; says whether there was one.
    pub fn remove(&mut self, passport_fpr: &str) -> bool {
        self.keys.remove(passport_fpr).is_some()
    }

    /// The keys, by their passports.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &TrustedKey> {
        self.keys.values()
    }

    /// Checks a signature of `publisher` over `payload`; answers how far its key is trusted.
    pub(super) fn verify(
        &self,
        signature: &Signature,
        publisher: &str,
        payload: &[u8],
    ) -> Result<TrustTier, ManifestFault> {
        let material = |why: &str| ManifestFault::InvalidSignatureMaterial(why.to_owned());
        if signature.alg != SIGNATURE_ALGORITHM {
            return Err(ManifestFault::UnsupportedAlgorithm(cut(&signature.alg, 100)));
        }
        let trusted = self
            .keys
            .get(&signature.passport_fpr)
            .ok_or_else(|| ManifestFault::NoTrustedKey(cut(&signature.passport_fpr, 100)))?;
        let key = verifying_key(&trusted.public_key_hex).map_err(material)?;
        if let Some(inline) = &signature.public_key_hex
            && !inline.eq_ignore_ascii_case(&trusted.public_key_hex)
        {
            return Err(material("the inline public key is not the one in the keyring"));
        }
        // Whoever is trusted may speak for nobody else.
        if signature.passport_fpr != publisher {
            return Err(material("the signer is not the manifest's publisher"));
        }
        let bytes = STANDARD.decode(&signature.sig).map_err(|_| material("sig is not standard Base64"))?;
        let bytes: [u8; 64] = bytes.try_into().map_err(|_| material("sig is not 64 bytes"))?;
        // Strict: a signature that another key or another text might share is none.
        key.verify_strict(payload, &ed25519_dalek::Signature::from_bytes(&bytes))
            .map_err(|_| ManifestFault::SignatureFailed)?;
        Ok(trusted.trust_tier)
    }
}

impl Serialize for Keyring {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.keys())
    }
}

impl<'de> Deserialize<'de> for Keyring {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut keyring = Self::default();
        for key in Vec::<TrustedKey>::deserialize(deserializer)? {
            keyring.add(key).map_err(serde::de::Error::custom)?;
        }
        Ok(keyring)
    }
}

fn verifying_key(hex: &str) -> Result<VerifyingKey, &'static str> {
    let lower = hex.to_ascii_lowercase();
    let bytes = crate::digest::Digest::parse(&lower).ok_or("it must be 64 hexadecimal digits")?;
    let key = VerifyingKey::from_bytes(bytes.as_bytes()).map_err(|_| "it is no point of the curve")?;
    if key.is_weak() { Err("it is a weak key") } else { Ok(key) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::signature::public_key_hex;

    #[test]
    fn a_keyring_takes_only_keys_and_survives_its_wire_form() {
        let key = |passport_fpr: &str, public_key_hex: &str| TrustedKey {
            passport_fpr: passport_fpr.into(),
            public_key_hex: public_key_hex.into(),
            trust_tier: TrustTier::Unknown,
            added_by: None,
        };
        let mut keyring = Keyring::default();
        let good = public_key_hex(&[7; 32]);
        keyring.add(key("p_alice", &good)).unwrap();
        let json = serde_json::to_string(&keyring).unwrap();
        assert_eq!(serde_json::from_str::<Keyring>(&json).unwrap(), keyring);
        assert!(matches!(keyring.add(key(" ", &good)), Err(KeyFault::Passport(_))));
        // Zeros are a point of small order: anybody could sign for it.
        for bad in ["", "zz", &good[2..], &"0".repeat(64)] {
            assert!(matches!(keyring.add(key("p", bad)), Err(KeyFault::Key(_))), "{bad}");
        }
        assert!(keyring.add(key("p", &good.to_uppercase())).is_ok());
        assert_eq!(keyring.keys().len(), 2);
        assert!(keyring.remove("p") && !keyring.remove("p"));
    }
}
