//! `crux.integration.v1`: the manifest of an extension, as it is read and as it is written.
//!
//! Fields that are not known are ignored. What is kept is bounded where it is read ([`read`](super::read)); the rules on
//! the content are in [`validate`](super::validate).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The only schema that is read.
pub const INTEGRATION_SCHEMA: &str = "crux.integration.v1";
/// What an extension is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A declarative pack, never called: configuration of an MCP server.
    McpConfig,
    /// A declarative pack, never called: requests over HTTP.
    HttpRecipe,
    /// A declarative pack, never called: use of an SDK.
    SdkRecipe,
    /// A declarative pack, never called: use of a program.
    CliRecipe,
    /// A declarative pack, never called: a folder to be watched.
    FileWatcher,
    /// A declarative pack, never called: an adapter for webhooks.
    WebhookAdapter,
    /// A program beside the host; refused by policy.
    ExternalHelper,
    /// A service that the host calls.
    ExternalTool,
    /// A module that runs inside the host.
    Wasm,
}

/// How far an extension's publisher is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustTier {
    /// Published by those who publish the host.
    FirstParty,
    /// Signed with a key of the host's own keyring.
    LocallySigned,
    /// Reviewed by others.
    CommunityReviewed,
    /// Nobody vouches for it.
    Unknown,
}

/// Where an extension says that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// Nowhere in particular.
    #[default]
    None,
    /// In a process of its own.
    Command,
    /// In a WebAssembly sandbox.
    Wasm,
}

/// The manifest of an extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntegrationManifest {
    /// [`INTEGRATION_SCHEMA`].
    pub schema: String,
    /// Name of the extension for machines.
    pub id: String,
    /// Name of the extension for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whose key signs it.
    pub publisher_passport_fpr: String,
    /// What it does, in a sentence; may be empty.
    pub summary: String,
    /// What it is.
    pub entry: Entry,
    /// What it would like to do, of a closed list. It grants nothing.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Whom it calls.
    #[serde(default)]
    pub network: Network,
    /// Which data it is shown.
    #[serde(default)]
    pub data_access: DataAccess,
    /// How it is held.
    #[serde(default)]
    pub safety: Safety,
    /// Hashes of the manifest and its bundle.
    #[serde(default)]
    pub hashes: Hashes,
    /// The publisher's signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// Where an external tool answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_tool_endpoint: Option<String>,
    /// The tools that can be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ExtensionTool>>,
    /// Path of the module, below the extension's own folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasm_module_path: Option<String>,
    /// Where the module is downloaded from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasm_module_url: Option<String>,
    /// The module's SHA-256, 64 lowercase hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wasm_module_sha256: Option<String>,
}

/// What an extension is, and where its pack is described.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The kind.
    pub kind: EntryKind,
    /// A path in the pack.
    pub path: String,
}

/// Whom an extension calls.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// The hosts; none means any that the host allows.
    pub allowed_hosts: Vec<String>,
    /// Does it need a token of the user?
    pub requires_user_token: bool,
}

/// Which data an extension is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataAccess {
    /// Of which tenants.
    #[serde(default)]
    pub tenant_scopes: Vec<String>,
    /// May it see contents?
    #[serde(default)]
    pub content_preview: bool,
    /// May it see private facts?
    #[serde(default)]
    pub private_facts: bool,
}

impl Default for DataAccess {
    fn default() -> Self {
        Self { tenant_scopes: vec!["selected".to_owned()], content_preview: false, private_facts: false }
    }
}

/// How an extension is held. Where the object is given, it is given whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Safety {
    /// Where it runs.
    pub sandbox: Sandbox,
    /// Longest call of an external tool, in milliseconds; 0 leaves it to the host.
    pub max_runtime_ms: u64,
    /// Longest answer of an external tool, in bytes; 0 leaves it to the host.
    pub max_output_bytes: u64,
}

/// Hashes that a manifest may carry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hashes {
    /// Of the signed payload, `blake3:` and hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// Of what the pack holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
}

/// A publisher's signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The algorithm; only `ed25519` is known.
    pub alg: String,
    /// Whose key it is.
    pub passport_fpr: String,
    /// The key, 64 hexadecimal digits. It is never trusted, only compared with the keyring's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key_hex: Option<String>,
    /// The 64 bytes of the signature, in standard Base64.
    pub sig: String,
}

/// A tool of an extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtensionTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Under which id the host keeps the secret that an external tool is called with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_shared_secret_id: Option<String>,
}

impl IntegrationManifest {
    /// The tool of that name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ExtensionTool> {
        self.tools.iter().flatten().find(|tool| tool.name == name)
    }

    /// The manifest as it is kept once its module lies in the extension's own folder: the path form, without the URL.
    /// Signature and hash hold for both forms.
    #[must_use]
    pub fn in_path_form(mut self, path: &str) -> Self {
        self.wasm_module_path = Some(path.to_owned());
        self.wasm_module_url = None;
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::extension::read::ManifestReadFault;
    use crate::extension::validate::tests::summarise;

    #[test]
    fn what_is_left_out_has_its_defaults() {
        let manifest = IntegrationManifest::from_value(&json!({
            "schema": "crux.integration.v1", "id": "a", "name": "A", "version": "1",
            "publisher_passport_fpr": "p", "summary": "", "entry": {"kind": "http_recipe", "path": "r.json"},
            "unknown": {"ignored": true},
        }))
        .unwrap();
        assert_eq!(manifest.data_access.tenant_scopes, ["selected"]);
        assert_eq!(
            manifest.safety,
            Safety { sandbox: Sandbox::None, max_runtime_ms: 0, max_output_bytes: 0 }
        );
        assert_eq!((manifest.network, manifest.hashes), (Network::default(), Hashes::default()));
        assert_eq!((manifest.signature, manifest.tools), (None, None));
    }

    #[test]
    fn an_object_of_safety_is_given_whole_or_not_at_all() {
        let mut manifest = summarise();
        manifest["safety"] = json!({"sandbox": "wasm"});
        let fault = IntegrationManifest::from_value(&manifest).unwrap_err();
        assert!(
            matches!(&fault, ManifestReadFault::Malformed(why) if why.contains("max_runtime_ms")),
            "{fault}"
        );
    }

    #[test]
    fn what_was_read_is_written_and_read_again() {
        let manifest = IntegrationManifest::from_value(&summarise()).unwrap();
        let bytes = serde_json::to_vec(&manifest).unwrap();
        assert_eq!(IntegrationManifest::read(&bytes).unwrap(), manifest);
        let kept = manifest.in_path_form("extension.wasm");
        assert_eq!((kept.wasm_module_path.as_deref(), kept.wasm_module_url), (Some("extension.wasm"), None));
    }
}
