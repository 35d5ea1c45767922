//! Reading a manifest: its bounds, and how it says no.

use serde::Deserialize as _;
use serde_json::Value;

use super::manifest::{ExtensionTool, INTEGRATION_SCHEMA, IntegrationManifest, Signature};
use crate::problem::ProblemKind;
use crate::refusal::{Code, Refusal, cut};

/// Largest manifest that is read, in bytes.
pub const INTEGRATION_MAX_BYTES: usize = 2_097_152;
/// Longest id of an extension, in bytes.
pub const EXTENSION_ID_MAX_BYTES: usize = 128;
/// Longest name, version, passport, tool name or capability, in bytes.
pub const INTEGRATION_NAME_MAX_BYTES: usize = 256;
/// Longest summary or description of a tool, in bytes.
pub const INTEGRATION_TEXT_MAX_BYTES: usize = 8_192;
/// Longest path, URL or host, in bytes.
pub const INTEGRATION_PATH_MAX_BYTES: usize = 2_048;
/// Most tools, capabilities, hosts or scopes that one manifest may list.
pub const INTEGRATION_LIST_MAX: usize = 256;

/// Why a manifest cannot be read.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ManifestReadFault {
    /// More bytes than [`INTEGRATION_MAX_BYTES`].
    #[error("manifest exceeds the {INTEGRATION_MAX_BYTES}-byte cap")]
    TooLarge,
    /// Not JSON, or a field is missing or of the wrong type.
    #[error("manifest is not a {INTEGRATION_SCHEMA} document: {0}")]
    Malformed(String),
    /// A field is longer than its bound.
    #[error("manifest field '{field}' exceeds its bound of {bound}")]
    Beyond {
        /// The field.
        field: &'static str,
        /// Its bound, in bytes or items.
        bound: usize,
    },
}

impl ManifestReadFault {
    /// The kind of problem that it is over HTTP.
    #[must_use]
    pub const fn kind(&self) -> ProblemKind {
        match self {
            Self::TooLarge => ProblemKind::PayloadTooLarge,
            Self::Malformed(_) | Self::Beyond { .. } => ProblemKind::BadRequest,
        }
    }
}

impl From<ManifestReadFault> for Refusal {
    fn from(fault: ManifestReadFault) -> Self {
        let code = match fault {
            ManifestReadFault::Malformed(_) => Code::ExtensionInvalid,
            ManifestReadFault::TooLarge | ManifestReadFault::Beyond { .. } => Code::OverBudget,
        };
        Self::new(code, fault.to_string())
    }
}

impl IntegrationManifest {
    /// Reads the bytes of a manifest.
    ///
    /// # Errors
    /// A [`ManifestReadFault`].
    pub fn read(bytes: &[u8]) -> Result<Self, ManifestReadFault> {
        if bytes.len() > INTEGRATION_MAX_BYTES {
            return Err(ManifestReadFault::TooLarge);
        }
        // Editors on some platforms put a byte-order mark in front of what they save.
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|err| ManifestReadFault::Malformed(cut(&err.to_string(), 200)))?;
        manifest.check_bounds()?;
        Ok(manifest)
    }

    /// Reads a manifest that is part of a larger document, which its reader has bounded.
    ///
    /// # Errors
    /// A [`ManifestReadFault`], never [`TooLarge`](ManifestReadFault::TooLarge).
    pub fn from_value(value: &Value) -> Result<Self, ManifestReadFault> {
        let manifest = Self::deserialize(value)
            .map_err(|err| ManifestReadFault::Malformed(cut(&err.to_string(), 200)))?;
        manifest.check_bounds()?;
        Ok(manifest)
    }

    fn check_bounds(&self) -> Result<(), ManifestReadFault> {
        const NAME: usize = INTEGRATION_NAME_MAX_BYTES;
        const TEXT: usize = INTEGRATION_TEXT_MAX_BYTES;
        const PATH: usize = INTEGRATION_PATH_MAX_BYTES;
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let longest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or(0);
        let tools = self.tools.as_deref().unwrap_or_default();
        let tool = |size: fn(&ExtensionTool) -> usize| tools.iter().map(size).max().unwrap_or(0);
        let signature = |size: fn(&Signature) -> usize| self.signature.as_ref().map_or(0, size);

        let sizes = [
            ("schema", self.schema.len(), NAME),
            ("id", self.id.len(), EXTENSION_ID_MAX_BYTES),
            ("name", self.name.len(), NAME),
            ("version", self.version.len(), NAME),
            ("publisher_passport_fpr", self.publisher_passport_fpr.len(), NAME),
            ("summary", self.summary.len(), TEXT),
            ("entry.path", self.entry.path.len(), PATH),
            ("capabilities", self.capabilities.len(), INTEGRATION_LIST_MAX),
            ("capabilities[]", longest(&self.capabilities), NAME),
            ("network.allowed_hosts", self.network.allowed_hosts.len(), INTEGRATION_LIST_MAX),
            ("network.allowed_hosts[]", longest(&self.network.allowed_hosts), PATH),
            ("data_access.tenant_scopes", self.data_access.tenant_scopes.len(), INTEGRATION_LIST_MAX),
            ("data_access.tenant_scopes[]", longest(&self.data_access.tenant_scopes), NAME),
            ("hashes.manifest", optional(&self.hashes.manifest), NAME),
            ("hashes.bundle", optional(&self.hashes.bundle), NAME),
            ("signature.alg", signature(|signature| signature.alg.len()), NAME),
            ("signature.passport_fpr", signature(|signature| signature.passport_fpr.len()), NAME),
            ("signature.sig", signature(|signature| signature.sig.len()), NAME),
            ("external_tool_endpoint", optional(&self.external_tool_endpoint), PATH),
            ("tools", tools.len(), INTEGRATION_LIST_MAX),
            ("tools[].name", tool(|tool| tool.name.len()), NAME),
            ("tools[].description", tool(|tool| tool.description.len()), TEXT),
            ("wasm_module_path", optional(&self.wasm_module_path), PATH),
            ("wasm_module_url", optional(&self.wasm_module_url), PATH),
            ("wasm_module_sha256", optional(&self.wasm_module_sha256), PATH),
        ];
        if let Some((field, _, bound)) = sizes.into_iter().find(|(_, size, bound)| size > bound) {
            return Err(ManifestReadFault::Beyond { field, bound });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::extension::validate::tests::summarise;

    #[test]
    fn every_bound_is_held_and_named() {
        let bytes = vec![b' '; INTEGRATION_MAX_BYTES + 1];
        let fault = IntegrationManifest::read(&bytes).unwrap_err();
        assert_eq!(fault.to_string(), "manifest exceeds the 2097152-byte cap");
        assert_eq!(fault.kind().status(), 413);

        let tool = summarise()["tools"][0].clone();
        for (pointer, value, field) in [
            ("/id", json!("a".repeat(129)), "id"),
            ("/summary", json!("a".repeat(8_193)), "summary"),
            ("/capabilities", json!(vec!["facts:read"; 257]), "capabilities"),
            ("/tools", json!(vec![tool; 257]), "tools"),
            ("/tools/0/name", json!("a".repeat(257)), "tools[].name"),
            ("/wasm_module_url", json!(format!("https://{}", "a".repeat(2_048))), "wasm_module_url"),
        ] {
            let mut manifest = summarise();
            *manifest.pointer_mut(pointer).unwrap() = value;
            let fault = IntegrationManifest::from_value(&manifest).unwrap_err();
            assert!(
                matches!(fault, ManifestReadFault::Beyond { field: found, .. } if found == field),
                "{pointer}: {fault}"
            );
            assert_eq!(Refusal::from(fault).code, Code::OverBudget);
        }
    }

    #[test]
    fn nesting_without_end_is_refused_before_the_stack_is() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = summarise().to_string().replace(r#"{"type":"object"}"#, &deep);
        assert!(matches!(IntegrationManifest::read(text.as_bytes()), Err(ManifestReadFault::Malformed(_))));
    }

    /// Needs the feature `float_roundtrip` of the parser, which the feature `extensions` brings.
    #[cfg(feature = "extensions")]
    #[test]
    fn a_number_is_signed_as_what_it_is_written_as() {
        // Found by the fuzz target `manifest`: a parser in a hurry takes the last two for neighbours of theirs.
        for number in [
            "0.1",
            "1e300",
            "123456789012345678901234567890",
            "-0.0",
            "-6.792475937705741e+155",
            "4.570939674669643e+203",
        ] {
            let schema = format!(r#"{{"type":"number","maximum":[{number}]}}"#);
            let text = summarise().to_string().replace(r#"{"type":"object"}"#, &schema);
            let manifest = IntegrationManifest::read(text.as_bytes()).unwrap();
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(IntegrationManifest::from_value(&value).unwrap(), manifest, "{number}");
            let again = IntegrationManifest::read(&serde_json::to_vec(&manifest).unwrap()).unwrap();
            assert_eq!(again, manifest, "{number}");
            let written = again.tools.unwrap()[0].input_schema["maximum"][0].as_f64().unwrap();
            assert_eq!(written.to_bits(), number.parse::<f64>().unwrap().to_bits(), "{number}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
            let _ = IntegrationManifest::read(&bytes);
        }
    }
}
