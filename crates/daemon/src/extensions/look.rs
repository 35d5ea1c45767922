//! What is looked at before and after something is done: a manifest that is not installed yet, names of facts, and
//! whether the log of receipts is whole. Nothing here changes anything.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolshelf_core::digest::to_hex;
use toolshelf_core::extension::signature::{Policy, admit};
use toolshelf_core::extension::{ExtensionError, IntegrationManifest, TrustTier};
use toolshelf_core::refusal::Refusal;
use toolshelf_facts::{BrowseRequest, FactStore as _, Names};

use super::receipts::chain::{self, Verified};
use super::registry::check_id;
use super::{ExtError, Extensions, wait};

/// What a manifest asks for, and whether it would be installed.
#[derive(Debug, Serialize)]
pub(crate) struct Inspected {
    /// The manifest as it was read; none where it cannot be read at all.
    pub(crate) manifest: Option<IntegrationManifest>,
    /// `blake3:` and the hash of what is signed, where its form and its signature are in order.
    pub(crate) manifest_hash: Option<String>,
    /// How far its publisher is trusted, where its signature is in order.
    pub(crate) trust_tier: Option<TrustTier>,
    /// Whether this host takes manifests without a signature.
    pub(crate) allow_unsigned_dev: bool,
    /// Which version is installed under the same id.
    pub(crate) installed_version: Option<String>,
    /// What a call of a module is held to; none where modules cannot be called here.
    pub(crate) limits: Option<CallLimits>,
    /// Why it would not be installed.
    pub(crate) refusal: Option<Refusal>,
}

/// What one call of a module is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct CallLimits {
    /// Fuel, about one unit for each instruction.
    pub(crate) fuel: u64,
    /// Linear memory, in bytes.
    pub(crate) memory_bytes: usize,
    /// Time, in milliseconds.
    pub(crate) wall_ms: u64,
}

/// Whether the log of receipts is as it was written.
#[derive(Debug, Serialize)]
pub(crate) struct ReceiptsVerdict {
    /// Whether it is.
    pub(crate) verified: bool,
    /// What it has, where it is.
    #[serde(flatten)]
    pub(crate) whole: Option<Verified>,
    /// The first thing that is wrong with it, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refusal: Option<Refusal>,
    /// The key that it was verified with, in digits.
    pub(crate) public_key: String,
}

/// Which names of facts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FactsBrowse {
    /// Entities that begin like this; all where it is left out.
    prefix: String,
    /// The name that the page before has ended with.
    after: Option<String>,
    /// How many names.
    limit: Option<usize>,
    /// Private facts, too.
    include_private: bool,
}

impl Extensions {
    /// Judges a manifest as installing it would, and installs nothing. Its module is not asked for.
    pub(crate) fn inspect(&self, manifest: &Value) -> Inspected {
        let mut inspected = Inspected {
            manifest: None,
            manifest_hash: None,
            trust_tier: None,
            allow_unsigned_dev: self.allow_unsigned(),
            installed_version: None,
            limits: self.call_limits(),
            refusal: None,
        };
        if let Err(err) = self.judge(manifest, &mut inspected) {
            inspected.refusal = Some(err.into());
        }
        inspected
    }

    fn judge(&self, manifest: &Value, inspected: &mut Inspected) -> Result<(), ExtError> {
        let manifest = IntegrationManifest::from_value(manifest).map_err(ExtensionError::from)?;
        let manifest = &*inspected.manifest.insert(manifest);
        check_id(&manifest.id)?;
        let unsigned = inspected.allow_unsigned_dev;
        let policy = Policy { unsigned, ..Policy::default() };
        let keyring = self.keys()?;
        let admitted =
            admit(manifest, policy, &keyring).map_err(|fault| ExtensionError::invalid(fault, unsigned))?;
        inspected.manifest_hash = Some(admitted.manifest_hash);
        inspected.trust_tier = Some(admitted.trust_tier);
        self.check_schemas(manifest).map_err(|fault| ExtensionError::invalid(fault, unsigned))?;
        if let Some(installed) = self.extension_record(&manifest.id)? {
            inspected.installed_version = Some(installed.manifest.version);
            return Err(ExtensionError::AlreadyInstalled.into());
        }
        Ok(())
    }

    #[cfg(feature = "wasm-extensions")]
    fn call_limits(&self) -> Option<CallLimits> {
        let limits = self.inner.variables.limits();
        Some(CallLimits { fuel: limits.fuel, memory_bytes: limits.memory_bytes, wall_ms: limits.wall_ms })
    }

    #[cfg(not(feature = "wasm-extensions"))]
    fn call_limits(&self) -> Option<CallLimits> {
        None
    }

    /// Checks the log of receipts from its first line to its last.
    pub(crate) fn verify_receipts(&self) -> ReceiptsVerdict {
        let log = self.receipts();
        let key = log.public_key();
        let public_key = to_hex(key.as_bytes());
        match chain::verify(log.path(), &key) {
            Ok(whole) => ReceiptsVerdict { verified: true, whole: Some(whole), refusal: None, public_key },
            Err(err) => {
                ReceiptsVerdict { verified: false, whole: None, refusal: Some(err.into()), public_key }
            }
        }
    }

    /// Which names stand directly below a prefix of entities.
    ///
    /// # Errors
    /// A [`FactError`](toolshelf_facts::FactError).
    pub(crate) fn browse_facts(&self, browse: FactsBrowse) -> Result<Names, ExtError> {
        let FactsBrowse { prefix, after, limit, include_private } = browse;
        Ok(wait(self.inner.facts.browse(&BrowseRequest { prefix, after, limit, include_private }))?)
    }
}
