//! The example extensions: each is a folder of `tools/guests/` with source, module and manifest, ready to be installed.
//!
//! They are not shipped. What runs extensions is tested with them, and authors begin from them.

use anyhow::{Context as _, Result, bail};
use toolshelf_core::Digest;

use super::compile;
use super::settle::Settling;
use crate::sh;

/// Folder and module of each.
const EXTENSIONS: [(&str, &str); 4] = [
    ("ext-echo", "echo"),
    ("ext-limits", "ext-limits"),
    ("note-summary", "note-summary"),
    ("every-import", "every-import"),
];

/// The field of a manifest that pins the module.
const PIN: &str = "\"wasm_module_sha256\": \"";

/// Builds the modules, and pins each in its manifest.
pub(super) fn build(settling: &mut Settling) -> Result<()> {
    for (guest, module) in EXTENSIONS {
        let folder = format!("tools/guests/{guest}");
        let path = format!("{folder}/{module}.wasm");
        let bytes = compile::module_or_committed(guest, &format!("{module}.wat"), &path)?;
        settling.settle(&path, &bytes)?;

        let path = format!("{folder}/manifest.json");
        let manifest = std::fs::read_to_string(sh::root().join(&path)).with_context(|| path.clone())?;
        let pinned = pinned(&manifest, &Digest::of(&bytes)).with_context(|| path.clone())?;
        settling.settle(&path, pinned.as_bytes())?;
    }
    Ok(())
}

/// The manifest with another pin, and otherwise as its author has written it.
fn pinned(manifest: &str, digest: &Digest) -> Result<String> {
    let parts: Vec<&str> = manifest.split(PIN).collect();
    let [before, after] = parts[..] else { bail!("the manifest has not one line with {PIN}") };
    let (_, after) = after.split_once('"').context("the pin has no end")?;
    Ok(format!("{before}{PIN}{digest}\"{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_replaced_and_all_else_is_left() {
        let digest = Digest::of(b"");
        let manifest = "{\n  \"a\": 1,\n  \"wasm_module_sha256\": \"00\",\n  \"b\": \"2\"\n}\n";
        let pinned = pinned(manifest, &digest).unwrap();
        assert_eq!(pinned, manifest.replace("00", &digest.to_string()));
        assert!(super::pinned("{}", &digest).is_err());
    }

    #[test]
    fn every_extension_has_a_source_and_a_manifest_that_names_its_module() {
        for (guest, module) in EXTENSIONS {
            let folder = sh::root().join("tools/guests").join(guest);
            assert!(folder.join(format!("{module}.wat")).is_file() || folder.join("Cargo.toml").is_file());
            let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
            let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
            assert_eq!(manifest["wasm_module_path"], format!("{module}.wasm"));
            assert_eq!(manifest["entry"]["kind"], "wasm");
        }
    }
}
