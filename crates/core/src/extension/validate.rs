//! The rules of a manifest, in the order in which they are applied, with the texts of the seed.
//!
//! A manifest is judged in three steps: its form here, then its hash and its signature (`signature`, which needs
//! cryptography). Nothing is downloaded before all three have said yes.

use super::manifest::{EntryKind, ExtensionTool, INTEGRATION_SCHEMA, IntegrationManifest};
use crate::digest::Digest;
use crate::manifest::contained_path;
use crate::refusal::{Code, Refusal, cut};

/// The capabilities that a manifest may name.
pub const CAPABILITIES: [&str; 14] = [
    "integrations:read",
    "integrations:install",
    "integrations:grant",
    "integrations:disable",
    "facts:read",
    "facts:write",
    "facts:private:read",
    "sessions:read",
    "sessions:write",
    "passport:read",
    "tenant:metadata:read",
    "tenant:chunks:read",
    "tenant:content:preview",
    "admin:read",
];

/// Longest part of a manifest that a text repeats, in characters.
const QUOTED_MAX_CHARS: usize = 200;

/// Which rule a manifest breaks. The texts are stable.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ManifestFault {
    /// Another schema.
    #[error("invalid integration schema '{0}'")]
    InvalidSchema(String),
    /// Something that must be there is not, or is empty.
    #[error("field '{0}' is required")]
    FieldRequired(&'static str),
    /// A text that is not of its form; most rules of a kind are told in these words.
    #[error("invalid identifier '{0}'")]
    InvalidIdentifier(String),
    /// Not one of [`CAPABILITIES`].
    #[error("unknown capability '{0}'")]
    UnknownCapability(String),
    /// The kind `external_helper`.
    #[error("external helpers are disabled by policy")]
    ExternalHelpersDisabled,
    /// `hashes.manifest` is not the hash of the payload.
    #[error("manifest hash mismatch: expected {expected}, actual {actual}")]
    HashMismatch {
        /// What the manifest says.
        expected: String,
        /// What it is.
        actual: String,
    },
    /// There is no signature, and one is asked for.
    #[error("signature is required")]
    SignatureRequired,
    /// An algorithm other than `ed25519`.
    #[error("unsupported signature algorithm '{0}'")]
    UnsupportedAlgorithm(String),
    /// The keyring has no key of the publisher.
    #[error("no trusted public key for passport '{0}'")]
    NoTrustedKey(String),
    /// A key or a signature that cannot be one, or that belongs to somebody else.
    #[error("invalid signature material: {0}")]
    InvalidSignatureMaterial(String),
    /// The signature is not one of this manifest.
    #[error("signature verification failed")]
    SignatureFailed,
}

impl ManifestFault {
    /// The code of the refusal that it is.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::SignatureRequired
            | Self::UnsupportedAlgorithm(_)
            | Self::NoTrustedKey(_)
            | Self::InvalidSignatureMaterial(_)
            | Self::SignatureFailed => Code::ExtensionUntrusted,
            _ => Code::ExtensionInvalid,
        }
    }
}

impl From<ManifestFault> for Refusal {
    fn from(fault: ManifestFault) -> Self {
        Self::new(fault.code(), fault.to_string())
    }
}

/// Applies every rule on the form of a manifest. `external_helpers` says whether policy allows that kind.
///
/// # Errors
/// The first rule that is broken.
pub fn check_form(manifest: &IntegrationManifest, external_helpers: bool) -> Result<(), ManifestFault> {
    if manifest.schema != INTEGRATION_SCHEMA {
        return Err(ManifestFault::InvalidSchema(quoted(&manifest.schema)));
    }
    required("id", &manifest.id)?;
    required("name", &manifest.name)?;
    required("version", &manifest.version)?;
    required("publisher_passport_fpr", &manifest.publisher_passport_fpr)?;
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !manifest.id.bytes().all(is_id) {
        return Err(invalid(quoted(&manifest.id)));
    }
    required("entry.path", &manifest.entry.path)?;
    if let Some(unknown) = manifest.capabilities.iter().find(|name| !CAPABILITIES.contains(&name.as_str())) {
        return Err(ManifestFault::UnknownCapability(quoted(unknown)));
    }
    match manifest.entry.kind {
        EntryKind::ExternalHelper if !external_helpers => Err(ManifestFault::ExternalHelpersDisabled),
        EntryKind::Wasm => check_wasm(manifest),
        EntryKind::ExternalTool => check_external_tool(manifest),
        kind => check_declarative(manifest, kind),
    }
}

/// Checks the id under which an extension is installed, which becomes the name of a folder: stricter than a manifest's
/// id, and never a name that leaves the folder.
///
/// # Errors
/// The sentence of the refusal.
pub fn check_install_id(id: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let fits = (1..=super::read::EXTENSION_ID_MAX_BYTES).contains(&id.len());
    // `.` and `..` are made of allowed characters, and are other folders.
    if fits && id.bytes().all(is_allowed) && !id.starts_with('.') {
        return Ok(());
    }
    Err(format!(
        "manifest id '{}' contains invalid characters; expected lowercase alphanumerics + . - _",
        quoted(id)
    ))
}

fn check_wasm(manifest: &IntegrationManifest) -> Result<(), ManifestFault> {
    let tools = check_tools(manifest)?;
    if tools.iter().any(|tool| tool.auth_shared_secret_id.is_some()) {
        return Err(invalid(
            "wasm tools must not set tools[].auth_shared_secret_id; use crux::get_secret_decrypted in-module instead",
        ));
    }
    if manifest.external_tool_endpoint.is_some() {
        return Err(invalid("external_tool_endpoint must be unset for entry.kind=wasm"));
    }
    let sha256 = manifest.wasm_module_sha256.as_deref();
    let sha256 = sha256.ok_or(ManifestFault::FieldRequired("wasm_module_sha256"))?;
    if Digest::parse(sha256).is_none() {
        let chars = sha256.chars().count();
        return Err(invalid(format!("wasm_module_sha256 must be 64 lowercase hex chars, got {chars} chars")));
    }
    match (manifest.wasm_module_path.as_deref(), manifest.wasm_module_url.as_deref()) {
        (Some(_), Some(_)) => Err(invalid("wasm_module_path and wasm_module_url are mutually exclusive")),
        (None, None) => Err(ManifestFault::FieldRequired("wasm_module_path or wasm_module_url")),
        (Some(path), None) => check_module_path(path),
        (None, Some(url)) => check_module_url(url),
    }
}

fn check_external_tool(manifest: &IntegrationManifest) -> Result<(), ManifestFault> {
    let endpoint = manifest.external_tool_endpoint.as_deref().unwrap_or_default();
    required("external_tool_endpoint", endpoint)?;
    if !has_scheme(endpoint, &["http://", "https://"]) {
        return Err(invalid(format!(
            "external_tool_endpoint must be an http(s) URL, got '{}'",
            quoted(endpoint)
        )));
    }
    check_tools(manifest)?;
    if has_module_fields(manifest) {
        return Err(invalid("wasm_module_* fields only valid when entry.kind=wasm"));
    }
    Ok(())
}

fn check_declarative(manifest: &IntegrationManifest, kind: EntryKind) -> Result<(), ManifestFault> {
    if manifest.external_tool_endpoint.is_some() || manifest.tools.is_some() || has_module_fields(manifest) {
        return Err(invalid(format!(
            "external_tool_endpoint, tools[], or wasm_module_* fields are only valid when entry.kind in \
             {{external_tool, wasm}}, got {kind:?}"
        )));
    }
    Ok(())
}

fn has_module_fields(manifest: &IntegrationManifest) -> bool {
    [&manifest.wasm_module_path, &manifest.wasm_module_url, &manifest.wasm_module_sha256]
        .iter()
        .any(|field| field.is_some())
}

/// At least one tool, each with a name of its own and a description.
fn check_tools(manifest: &IntegrationManifest) -> Result<&[ExtensionTool], ManifestFault> {
    let tools = manifest.tools.as_deref().unwrap_or_default();
    if tools.is_empty() {
        return Err(ManifestFault::FieldRequired("tools"));
    }
    for (index, tool) in tools.iter().enumerate() {
        required("tools[].name", &tool.name)?;
        required("tools[].description", &tool.description)?;
        // A call names its tool; two of one name could not be told apart.
        if tools[..index].iter().any(|earlier| earlier.name == tool.name) {
            return Err(invalid(format!("tools[].name '{}' is used twice", quoted(&tool.name))));
        }
    }
    Ok(tools)
}

fn check_module_path(path: &str) -> Result<(), ManifestFault> {
    // Two dots anywhere are refused, as documented; the rest (drives, backslashes, NULs) is the shelf's rule.
    if !path.trim().is_empty() && !path.contains("..") && contained_path(path).is_ok() {
        return Ok(());
    }
    Err(invalid(format!(
        "wasm_module_path must be relative to <data_dir>/extensions/{{id}}/, got '{}'",
        quoted(path)
    )))
}

fn check_module_url(url: &str) -> Result<(), ManifestFault> {
    if has_scheme(url, &["https://"]) {
        return Ok(());
    }
    Err(invalid(format!("wasm_module_url must be an https:// URL, got '{}'", quoted(url))))
}

/// Does `url` begin with one of `schemes`, with a host behind it and nothing that a URL cannot hold?
fn has_scheme(url: &str, schemes: &[&str]) -> bool {
    let rest = schemes.iter().find_map(|scheme| url.strip_prefix(scheme)).unwrap_or_default();
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    !authority.is_empty() && !url.chars().any(|char| char.is_whitespace() || char.is_control())
}

fn required(field: &'static str, text: &str) -> Result<(), ManifestFault> {
    if text.trim().is_empty() { Err(ManifestFault::FieldRequired(field)) } else { Ok(()) }
}

fn invalid(text: impl Into<String>) -> ManifestFault {
    ManifestFault::InvalidIdentifier(text.into())
}

/// A part of a manifest, as a text may repeat it.
fn quoted(text: &str) -> String {
    cut(text, QUOTED_MAX_CHARS)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The manifest of the seed.
    pub(in super::super) fn summarise() -> Value {
        json!({
            "schema": "crux.integration.v1",
            "id": "ext.example.summarise",
            "name": "Summarise",
            "version": "0.1.0",
            "publisher_passport_fpr": "p_community_alice",
            "summary": "Summarises a note in-process.",
            "entry": {"kind": "wasm", "path": "tools/summarise.json"},
            "capabilities": ["facts:read", "facts:write"],
            "safety": {"sandbox": "wasm", "max_runtime_ms": 0, "max_output_bytes": 0},
            "wasm_module_url": "https://example.com/summarise-0.1.0.wasm",
            "wasm_module_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "tools": [{
                "name": "ext.example.summarise.note",
                "description": "Summarise a note.",
                "input_schema": {"type": "object"},
            }],
        })
    }

    #[test]
    fn the_manifest_of_the_seed_is_well_formed() {
        let manifest = IntegrationManifest::from_value(&summarise()).unwrap();
        assert_eq!(check_form(&manifest, false), Ok(()));
    }

    #[test]
    fn earlier_rules_speak_first() {
        // Every field is wrong; mending one lets the next rule speak.
        let mut wrong = summarise();
        wrong["schema"] = json!("x");
        for field in ["id", "name", "version", "publisher_passport_fpr"] {
            wrong[field] = json!(" ");
        }
        wrong["entry"]["path"] = json!("");
        wrong["capabilities"] = json!(["facts:delete"]);
        wrong["external_tool_endpoint"] = json!("https://x");
        wrong["tools"] = json!([]);
        wrong.as_object_mut().unwrap().remove("wasm_module_sha256");
        wrong["wasm_module_path"] = json!("/etc/x.wasm");

        let good = summarise();
        let mend = |wrong: &mut Value, pointer: &str| {
            *wrong.pointer_mut(pointer).unwrap() = good.pointer(pointer).unwrap().clone();
        };
        for (text, pointer) in [
            ("invalid integration schema 'x'", "/schema"),
            ("field 'id' is required", "/id"),
            ("field 'name' is required", "/name"),
            ("field 'version' is required", "/version"),
            ("field 'publisher_passport_fpr' is required", "/publisher_passport_fpr"),
            ("field 'entry.path' is required", "/entry/path"),
            ("unknown capability 'facts:delete'", "/capabilities"),
            ("field 'tools' is required", "/tools"),
        ] {
            let manifest = IntegrationManifest::from_value(&wrong).unwrap();
            assert_eq!(check_form(&manifest, false).unwrap_err().to_string(), text);
            mend(&mut wrong, pointer);
        }
        let said = |wrong: &Value| {
            check_form(&IntegrationManifest::from_value(wrong).unwrap(), false).unwrap_err().to_string()
        };
        assert_eq!(
            said(&wrong),
            "invalid identifier 'external_tool_endpoint must be unset for entry.kind=wasm'"
        );
        wrong.as_object_mut().unwrap().remove("external_tool_endpoint");
        assert_eq!(said(&wrong), "field 'wasm_module_sha256' is required");
        wrong["wasm_module_sha256"] = good["wasm_module_sha256"].clone();
        assert_eq!(
            said(&wrong),
            "invalid identifier 'wasm_module_path and wasm_module_url are mutually exclusive'"
        );
        wrong.as_object_mut().unwrap().remove("wasm_module_url");
        assert_eq!(
            said(&wrong),
            "invalid identifier 'wasm_module_path must be relative to <data_dir>/extensions/{id}/, got '/etc/x.wasm''"
        );
    }

    #[test]
    fn an_id_that_becomes_a_folder_stays_one() {
        for good in ["ext.example.summarise", "a", "0-_.", &"a".repeat(128)] {
            assert_eq!(check_install_id(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "A", "a/b", "a\\b", "ä", "a b", &"a".repeat(129)] {
            assert!(check_install_id(bad).is_err(), "{bad}");
        }
        assert_eq!(
            check_install_id("Ext").unwrap_err(),
            "manifest id 'Ext' contains invalid characters; expected lowercase alphanumerics + . - _"
        );
    }

    #[test]
    fn a_hostile_text_is_cut_before_it_is_repeated() {
        let mut manifest = IntegrationManifest::from_value(&summarise()).unwrap();
        manifest.schema = "x".repeat(100_000);
        assert!(check_form(&manifest, false).unwrap_err().to_string().len() < 300);
    }
}
