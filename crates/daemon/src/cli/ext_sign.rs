//! `toolshelf keys new` and `toolshelf ext sign`: what an author needs so that others can trust an extension.
//!
//! Nothing here asks a companion: the key is a file of its author, and so is the manifest.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolshelf_core::digest::Digest;
use toolshelf_core::extension::keyring::{Keyring, TrustedKey};
use toolshelf_core::extension::read::{INTEGRATION_MAX_BYTES, ManifestReadFault};
use toolshelf_core::extension::signature::{Policy, admit, public_key_hex, sign as signed};
use toolshelf_core::extension::{EntryKind, ExtensionError, IntegrationManifest, TrustTier};
use toolshelf_core::manifest::{MANIFEST_FILE, contained_path};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_core::shelf::FileFault;
use toolshelf_sandbox::private;
use toolshelf_sandbox::store::read_module;
use zeroize::Zeroizing;

use super::ordered::Node;
use super::outcome::Outcome;
use super::show::{Style, printable};
use crate::files::{self, Found};
use crate::settings;

/// Length of a publisher's key, in bytes.
const KEY_BYTES: usize = 32;
/// The publisher's key in the data folder.
const KEY_FILE: &str = "publisher.key";

/// Makes a key, or says which one is there.
pub(super) fn new_key(out: Option<PathBuf>, style: Style) -> Result<Outcome, Refusal> {
    let path = key_path(out)?;
    let there = path.symlink_metadata().is_ok();
    let public = public_key_hex(&*key(&path)?);
    let what = if there { "was there already" } else { "is made, for you alone; keep a copy of it" };
    let text = format!(
        "{} {what}\n{public}\nWho is to trust it: toolshelf keys add PASSPORT {public}\n",
        style.bold(&printable(&path.display().to_string()))
    );
    let json = json!({ "ok": true, "file": path, "made": !there, "public_key": public });
    Ok(Outcome::done(json, text))
}

/// Signs the manifest at `from`, a file or the folder that it is in.
pub(super) fn sign(
    from: &Path,
    key_file: Option<PathBuf>,
    passport: Option<String>,
    style: Style,
) -> Result<Outcome, Refusal> {
    let path = if from.is_dir() { from.join(MANIFEST_FILE) } else { from.to_owned() };
    let bytes = match files::read(&path, INTEGRATION_MAX_BYTES as u64)? {
        Found::Whole(bytes) => bytes,
        Found::TooLong(_) => return Err(ManifestReadFault::TooLarge.into()),
    };
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    let invalid = |err: serde_json::Error| Refusal::new(Code::ExtensionInvalid, err.to_string());
    // All that is not signed stays as its author wrote it.
    let mut node: Node = serde_json::from_slice(bytes).map_err(invalid)?;
    if let Some(passport) = &passport {
        node.set("publisher_passport_fpr", Node::text(passport));
    }
    let mut manifest = read(&node)?;
    manifest.signature = None;
    manifest.hashes.manifest = None;
    check_module(&path, &manifest)?;

    let secret = key(&key_path(key_file)?)?;
    let signature = signed(&manifest, &secret);
    let public = public_key_hex(&secret);
    manifest.signature = Some(signature.clone());
    // The rules that whoever installs it will apply, with a keyring that trusts its author.
    let mut keyring = Keyring::default();
    let trusted = TrustedKey {
        passport_fpr: manifest.publisher_passport_fpr.clone(),
        public_key_hex: public.clone(),
        trust_tier: TrustTier::LocallySigned,
        added_by: None,
    };
    keyring.add(trusted).map_err(|fault| Refusal::new(Code::InvalidArgument, fault.to_string()))?;
    let admitted = admit(&manifest, Policy::default(), &keyring)
        .map_err(|fault| Refusal::from(ExtensionError::invalid(fault, true)))?;

    let value = |value: Result<Value, serde_json::Error>| value.map_err(invalid);
    let node_of = |of: Value| serde_json::from_value::<Node>(of).map_err(invalid);
    let mut hashes = value(serde_json::to_value(&manifest.hashes))?;
    hashes["manifest"] = admitted.manifest_hash.as_str().into();
    node.set("hashes", node_of(hashes)?);
    node.set("signature", node_of(value(serde_json::to_value(&signature))?)?);
    let mut written = serde_json::to_vec_pretty(&node).map_err(invalid)?;
    written.push(b'\n');
    files::replace(&path, &written)?;

    let passport = printable(&manifest.publisher_passport_fpr);
    let text = format!(
        "{}\n{}\nWho is to trust it: toolshelf keys add {passport} {public}\n",
        style.good(&format!(
            "{} {} is signed by {passport}",
            printable(&manifest.id),
            printable(&manifest.version)
        )),
        admitted.manifest_hash,
    );
    let json = json!({
        "ok": true, "file": path, "id": manifest.id, "version": manifest.version,
        "passport": manifest.publisher_passport_fpr, "public_key": public, "manifest_hash": admitted.manifest_hash,
    });
    Ok(Outcome::done(json, text))
}

fn read(node: &Node) -> Result<IntegrationManifest, Refusal> {
    let bytes = serde_json::to_vec(node).unwrap_or_default();
    IntegrationManifest::read(&bytes).map_err(|fault| ExtensionError::from(fault).into())
}

/// A module that lies beside its manifest must be the one that is pinned: a signature over another digest would only be
/// found out by whoever installs it.
fn check_module(manifest_file: &Path, manifest: &IntegrationManifest) -> Result<(), Refusal> {
    let (EntryKind::Wasm, Some(path)) = (manifest.entry.kind, &manifest.wasm_module_path) else {
        return Ok(());
    };
    let folder = manifest_file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let module = match read_module(folder, &contained_path(path)?) {
        Ok(module) => module,
        Err(FileFault::Missing) => {
            let why = format!("there is no module {path:?} beside the manifest");
            return Err(Refusal::new(Code::FileUnavailable, why));
        }
        Err(fault) => return Err(fault.refusal(path)),
    };
    let (pinned, actual) = (manifest.wasm_module_sha256.as_deref(), Digest::of(&module).to_string());
    if pinned == Some(actual.as_str()) {
        return Ok(());
    }
    let pinned = pinned.unwrap_or("nothing");
    let why = format!("{path:?} hashes {actual}, but the manifest pins {pinned}: run `toolshelf pin` first");
    Err(Refusal::new(Code::DigestMismatch, why))
}

fn key(path: &Path) -> Result<Zeroizing<[u8; KEY_BYTES]>, Refusal> {
    private::key(path).map_err(|err| files::unavailable(path, &err))
}

fn key_path(named: Option<PathBuf>) -> Result<PathBuf, Refusal> {
    let path = named.or_else(|| settings::data_dir().map(|data| data.join(KEY_FILE)));
    let path = path
        .ok_or_else(|| Refusal::new(Code::FileUnavailable, "there is no data folder; name the key's file"))?;
    std::path::absolute(&path).map_err(|err| files::unavailable(&path, &err))
}
