//! What is installed: installing, listing, uninstalling, taking out of use.
//!
//! An installation is the record in the fact store. Its module is written before the record, and removed after it; so
//! whenever the power fails, there is an extension with its module, or a module that nothing refers to, which the next
//! start removes.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use toolshelf_core::Digest;
use toolshelf_core::extension::errors::WASM_MODULE_DOWNLOAD_LIMIT_BYTES;
use toolshelf_core::extension::signature::{Policy, admit};
use toolshelf_core::extension::validate::check_install_id;
use toolshelf_core::extension::{EntryKind, ExtensionError, IntegrationManifest, ManifestFault};
use toolshelf_core::refusal::cut;
use toolshelf_core::shelf::FileFault;

use super::audit::AuditAction;
use super::download::{DOWNLOAD_TIMEOUT, Download, check_digest};
use super::keys::{KEYRING_FILE, KEYRING_LOCK};
use super::records::{InstallRecord, Lifecycle, LifecycleState, extension_facts, extension_gone, grant_gone};
use super::{ExtError, Extensions, files};

/// The module's file in the folder of its extension.
pub(crate) const MODULE_FILE: &str = "extension.wasm";
/// Schema of what a change of lifecycle answers.
pub(crate) const LIFECYCLE_SCHEMA: &str = "crux.extensions.lifecycle.v1";
/// Longest reason of a change of lifecycle, in characters; more is cut.
const REASON_MAX_CHARS: usize = 500;

/// Where a module comes from.
#[derive(Debug)]
pub(crate) enum ModuleSource {
    /// From where the manifest says: its URL, or its path in the extension's own folder.
    Manifest,
    /// These bytes, whatever the manifest says. Its digest counts all the same.
    Bytes(Vec<u8>),
}

/// A change of lifecycle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Transition {
    /// [`LIFECYCLE_SCHEMA`].
    pub(crate) schema: &'static str,
    /// From which state to which.
    pub(crate) transition: TransitionStep,
    /// The extension as it is now.
    pub(crate) extension: InstallRecord,
}

/// From which state to which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TransitionStep {
    pub(crate) from: LifecycleState,
    pub(crate) to: LifecycleState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) at_unix_ms: u64,
}

impl Extensions {
    /// Installs an extension for `by`. The manifest is judged whole before anything is fetched, and nothing is written
    /// before the module's digest is known to be the pinned one. What is installed staged cannot be called before
    /// somebody activates it.
    ///
    /// # Errors
    /// An [`ExtError`]; then nothing is installed.
    pub(crate) fn install(
        &self,
        manifest: &Value,
        module: ModuleSource,
        state: LifecycleState,
        by: Option<&str>,
    ) -> Result<InstallRecord, ExtError> {
        let text = |field: &str| cut(manifest.get(field).and_then(Value::as_str).unwrap_or_default(), 128);
        let end = self.install_unseen(manifest, module, state, by);
        let detail = end.as_ref().err().map(ToString::to_string).unwrap_or_default();
        self.audit(AuditAction::Install, by, (&text("id"), &text("version")), &detail, &end);
        end
    }

    fn install_unseen(
        &self,
        manifest: &Value,
        module: ModuleSource,
        state: LifecycleState,
        by: Option<&str>,
    ) -> Result<InstallRecord, ExtError> {
        let manifest = IntegrationManifest::from_value(manifest).map_err(ExtensionError::from)?;
        check_id(&manifest.id)?;
        let unsigned = self.inner.variables.allow_unsigned();
        let policy = Policy { unsigned, ..Policy::default() };
        let keyring = self.inner.keys.read()?;
        let admitted =
            admit(&manifest, policy, &keyring).map_err(|fault| ExtensionError::invalid(fault, unsigned))?;
        self.check_schemas(&manifest).map_err(|fault| ExtensionError::invalid(fault, unsigned))?;
        let id = manifest.id.clone();
        self.changing(&id, || {
            if self.extension_record(&id)?.is_some() {
                return Err(ExtensionError::AlreadyInstalled.into());
            }
            self.check_room_for_extension()?;
            let now = self.now();
            let is_module = manifest.entry.kind == EntryKind::Wasm;
            let bytes = is_module.then(|| self.module_bytes(&manifest, module)).transpose()?;
            let record = InstallRecord {
                manifest: if is_module { manifest.in_path_form(MODULE_FILE) } else { manifest },
                manifest_hash: admitted.manifest_hash,
                trust_tier: admitted.trust_tier,
                installed_at_unix_ms: now,
                installed_by_passport: by.map(str::to_owned),
                lifecycle: Lifecycle { state, since_unix_ms: now, ..Lifecycle::default() },
            };
            let facts = extension_facts(&record)?;
            let folder = self.folder_of(&id);
            if let Some(bytes) = bytes {
                let path = folder.join(MODULE_FILE);
                files::write_whole(&path, &bytes).map_err(ExtError::io(path))?;
            }
            if let Err(err) = self.write_records(facts) {
                // A record that cannot be written leaves no module behind.
                let _ = remove_module(&folder);
                return Err(err);
            }
            Ok(record)
        })
    }

    /// All extensions, by their ids.
    ///
    /// # Errors
    /// An [`ExtError`].
    pub(crate) fn list(&self) -> Result<Vec<InstallRecord>, ExtError> {
        self.extension_records()
    }

    /// One extension.
    ///
    /// # Errors
    /// An [`ExtError`]; [`ExtensionError::NotFound`] where it is not installed.
    pub(crate) fn show(&self, id: &str) -> Result<InstallRecord, ExtError> {
        self.extension_record(id)?.ok_or_else(|| not_found(id))
    }

    /// Takes an extension away, with its grants and its module. Calls that run are not ended.
    ///
    /// # Errors
    /// As [`show`](Self::show).
    pub(crate) fn uninstall(&self, id: &str, by: Option<&str>) -> Result<(), ExtError> {
        let mut version = String::new();
        let end = self.changing(id, || {
            match self.show(id) {
                Ok(record) => version = record.manifest.version,
                // What cannot be read can still be taken away.
                Err(ExtError::Damaged { .. }) => {}
                Err(err) => return Err(err),
            }
            let passports = self.granted_passports(id)?;
            let gone = passports.iter().flat_map(|passport| grant_gone(id, passport));
            self.write_records(gone.chain(extension_gone(id)).collect())?;
            let folder = self.folder_of(id);
            remove_module(&folder).map_err(ExtError::io(folder))
        });
        self.audit(AuditAction::Uninstall, by, (id, &version), "", &end);
        end
    }

    /// Takes an extension out of use, or back into it.
    ///
    /// # Errors
    /// As [`show`](Self::show); [`ExtensionError::ReasonRequired`] for leaving quarantine without saying why.
    pub(crate) fn set_lifecycle(
        &self,
        id: &str,
        state: LifecycleState,
        reason: Option<&str>,
        by: Option<&str>,
    ) -> Result<Transition, ExtError> {
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| cut(reason, REASON_MAX_CHARS));
        let mut version = String::new();
        let end = self.changing(id, || {
            let mut extension = self.show(id)?;
            version.clone_from(&extension.manifest.version);
            let (from, at_unix_ms) = (extension.lifecycle.state, self.now());
            if from == LifecycleState::Quarantined && state != from && reason.is_none() {
                return Err(ExtensionError::ReasonRequired.into());
            }
            extension.lifecycle = Lifecycle {
                state,
                since_unix_ms: at_unix_ms,
                reason: reason.clone(),
                changed_by_passport: by.map(str::to_owned),
            };
            self.write_records(extension_facts(&extension)?)?;
            let transition = TransitionStep { from, to: state, reason: reason.clone(), at_unix_ms };
            Ok(Transition { schema: LIFECYCLE_SCHEMA, transition, extension })
        });
        let detail = format!("{state:?}: {}", reason.as_deref().unwrap_or_default());
        self.audit(AuditAction::Lifecycle, by, (id, &version), &detail, &end);
        end
    }

    /// The folder of one extension, whose id has been checked.
    pub(super) fn folder_of(&self, id: &str) -> PathBuf {
        self.folder().join(id)
    }

    pub(super) fn download(&self) -> Download {
        Download {
            timeout: DOWNLOAD_TIMEOUT,
            private_addresses: self.inner.variables.allow_private_addresses(),
            authorities: self.inner.authorities.clone(),
        }
    }

    /// The manifest at an https URL, not judged yet.
    ///
    /// # Errors
    /// An [`ExtError`] when it does not come, or is no JSON.
    pub(crate) fn fetch_manifest(&self, url: &str) -> Result<Value, ExtError> {
        let bytes = self.download().manifest(url)?;
        let not_json = |err: serde_json::Error| ExtensionError::DownloadFailed(format!("no manifest: {err}"));
        Ok(serde_json::from_slice(&bytes).map_err(not_json)?)
    }

    fn module_bytes(
        &self,
        manifest: &IntegrationManifest,
        source: ModuleSource,
    ) -> Result<Vec<u8>, ExtError> {
        let sha256 = manifest.wasm_module_sha256.as_deref().unwrap_or_default();
        match (source, &manifest.wasm_module_url) {
            (ModuleSource::Bytes(bytes), _) => {
                if bytes.len() as u64 > WASM_MODULE_DOWNLOAD_LIMIT_BYTES {
                    return Err(ExtensionError::ModuleTooLarge.into());
                }
                check_digest(&bytes, sha256)?;
                Ok(bytes)
            }
            (ModuleSource::Manifest, Some(url)) => Ok(self.download().module(url, sha256)?),
            (ModuleSource::Manifest, None) => {
                let bytes = self.module_in_folder(manifest)?;
                let on_disk = Digest::of(&bytes).to_string();
                if on_disk != sha256 {
                    return Err(
                        ExtensionError::ModuleMismatch { manifest: sha256.to_owned(), on_disk }.into()
                    );
                }
                Ok(bytes)
            }
        }
    }

    /// The bytes of the module that lies in the extension's folder, whatever they are. No path and no link leads out.
    pub(super) fn module_in_folder(&self, manifest: &IntegrationManifest) -> Result<Vec<u8>, ExtError> {
        check_id(&manifest.id)?;
        let Some(path) = &manifest.wasm_module_path else { return Err(ExtensionError::NeverResolved.into()) };
        let folder = self.folder_of(&manifest.id);
        let shown = folder.join(path);
        let inside = toolshelf_core::manifest::contained_path(path);
        let inside = inside.map_err(|outside| ExtError::io(&shown)(std::io::Error::other(outside.why)))?;
        toolshelf_sandbox::store::read_module(&folder, &inside).map_err(|fault| match fault {
            FileFault::Missing => ExtensionError::ModuleFileMissing(shown.display().to_string()).into(),
            FileFault::TooLarge(_) => ExtensionError::ModuleTooLarge.into(),
            FileFault::Unreadable(why) => ExtError::io(&shown)(std::io::Error::other(why)),
        })
    }

    pub(super) fn check_schemas(&self, manifest: &IntegrationManifest) -> Result<(), ManifestFault> {
        manifest.tools.iter().flatten().try_for_each(|tool| {
            self.inner.schemas.admit(&tool.input_schema).map_err(|why| {
                let text =
                    format!("tools[].input_schema of '{}' cannot be used: {why}", cut(&tool.name, 100));
                ManifestFault::InvalidIdentifier(text)
            })
        })
    }

    /// Removes what unfinished installations and removals have left.
    pub(super) fn clear_away(&self) -> Result<(), ExtError> {
        let folder = self.folder();
        let entries = match fs::read_dir(&folder) {
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(ExtError::io(&folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(ExtError::io(&folder))?;
            if !entry.file_type().map_err(ExtError::io(entry.path()))?.is_dir() {
                continue;
            }
            files::clear_drafts(&entry.path()).map_err(ExtError::io(entry.path()))?;
            // A name that is no id is nothing of ours. A record that is damaged keeps its module.
            let name = entry.file_name().to_string_lossy().into_owned();
            if check_id(&name).is_ok() && self.extension_record(&name).is_ok_and(|record| record.is_none()) {
                remove_module(&entry.path()).map_err(ExtError::io(entry.path()))?;
            }
        }
        Ok(())
    }
}

/// Checks an id that becomes the name of a folder.
pub(super) fn check_id(id: &str) -> Result<(), ExtError> {
    check_install_id(id).map_err(ExtensionError::BadId)?;
    if [KEYRING_FILE, KEYRING_LOCK].contains(&id) {
        return Err(
            ExtensionError::BadId(format!("manifest id '{id}' is the name of a file of the host")).into()
        );
    }
    Ok(())
}

pub(super) fn not_found(id: &str) -> ExtError {
    ExtensionError::NotFound(cut(id, 200)).into()
}

/// Removes a module; then its folder, where nothing else is in it.
fn remove_module(folder: &Path) -> std::io::Result<()> {
    match fs::remove_file(folder.join(MODULE_FILE)) {
        Err(err)
            if !matches!(err.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Err(err);
        }
        _ => {}
    }
    // What a person has put there stays.
    let _ = fs::remove_dir(folder);
    Ok(())
}
