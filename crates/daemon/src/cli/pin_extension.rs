//! `toolshelf pin` in the folder of an extension: the digest of its module, written into its manifest.

use std::path::Path;

use serde_json::{Value, json};
use toolshelf_core::digest::Digest;
use toolshelf_core::extension::manifest::INTEGRATION_SCHEMA;
use toolshelf_core::manifest::{MANIFEST_FILE, contained_path};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_sandbox::store::read_module;

use super::ordered::Node;
use super::outcome::Outcome;
use super::show::Style;
use crate::files;

/// The field that holds the digest.
const DIGEST: &str = "wasm_module_sha256";
/// What every module begins with.
const MAGIC: &[u8] = b"\0asm";

/// Whether a manifest is one of an extension.
pub(super) fn is_of_extension(manifest: &Value) -> bool {
    manifest["schema"] == INTEGRATION_SCHEMA
}

/// Pins the module that `manifest` names by its path. All else in it stays as its author wrote it.
pub(super) fn run(dir: &Path, manifest: &Value, bytes: &[u8], style: Style) -> Result<Outcome, Refusal> {
    let invalid = |why: String| Refusal::new(Code::ExtensionInvalid, why);
    let path = manifest["wasm_module_path"].as_str().ok_or_else(|| {
        invalid("the manifest names no module of this folder: `wasm_module_path` is missing".to_owned())
    })?;
    let module = read_module(dir, &contained_path(path)?).map_err(|fault| fault.refusal(path))?;
    if !module.starts_with(MAGIC) {
        return Err(Refusal::new(Code::WasmInvalid, format!("{path:?} is no WebAssembly module")));
    }
    let digest = Digest::of(&module).to_string();
    let written = manifest[DIGEST] != digest;
    if written {
        let mut node: Node = serde_json::from_slice(bytes).map_err(|err| invalid(err.to_string()))?;
        node.set(DIGEST, Node::text(&digest));
        let mut bytes = serde_json::to_vec_pretty(&node).map_err(|err| invalid(err.to_string()))?;
        bytes.push(b'\n');
        files::replace(&dir.join(MANIFEST_FILE), &bytes)?;
    }
    let what = if written { "is written" } else { "pins it already" };
    let text = format!("{digest} {path}\n{}\n", style.good(&format!("{MANIFEST_FILE} {what}")));
    Ok(Outcome::done(json!({ "ok": true, "dir": dir, "written": written, "digest": digest }), text))
}
