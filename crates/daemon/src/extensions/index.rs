//! The registry: an index of extensions that can be installed, which somebody publishes as one file.
//!
//! ```json
//! {"schema": "crux.extensions.registry.v1",
//!  "extensions": [{"id": "…", "version": "…", "manifest_url": "https://…", "manifest_sha256": "…",
//!                  "name": "…", "summary": "…", "publisher_passport_fpr": "…"}]}
//! ```
//!
//! Source: the reference facts, C1, which name the routes, the answers and the refusals. The form of the index is not
//! known from there and is this project's own. An index vouches for nothing: the manifest that it leads to must be the
//! one whose digest it pins, and then pass every rule of an installation, its signature first of all.
//!
//! The index that was read last is kept in `<data>/integrations/registry.json`. It answers for [`FRESH`], and after that
//! where the registry cannot be reached, and says so.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolshelf_core::Digest;
use toolshelf_core::extension::read::ManifestReadFault;
use toolshelf_core::extension::{ExtensionError, IntegrationManifest};
use toolshelf_core::refusal::cut;

use super::download::MANIFEST_MAX_BYTES;
use super::records::{InstallRecord, LifecycleState};
use super::registry::ModuleSource;
use super::{ExtError, Extensions, files};

/// Schema of an index, and of the answer that lists it.
pub(crate) const REGISTRY_SCHEMA: &str = "crux.extensions.registry.v1";
/// Schema of what an installation from a registry answers.
pub(crate) const REGISTRY_INSTALL_SCHEMA: &str = "crux.extensions.registry_install.v1";
/// Most entries of an index.
pub(crate) const REGISTRY_MAX_ENTRIES: usize = 10_000;
/// How long an index is not fetched again when it is only listed.
const FRESH: Duration = Duration::from_mins(5);
/// Longer than an index with what is kept beside it.
const KEPT_MAX_BYTES: u64 = 2 * MANIFEST_MAX_BYTES;

/// What an index says of one extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegistryEntry {
    /// Its id.
    pub(crate) id: String,
    /// Its version.
    pub(crate) version: String,
    /// Where its manifest is: an https URL.
    pub(crate) manifest_url: String,
    /// The SHA-256 of the manifest's bytes, 64 lowercase hexadecimal digits.
    pub(crate) manifest_sha256: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    /// Who publishes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) publisher_passport_fpr: Option<String>,
}

/// An index as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RegistryIndex {
    /// Where it is.
    pub(crate) source: String,
    /// When it was read, in milliseconds since the beginning of 1970.
    pub(crate) fetched_at_unix_ms: u64,
    /// Its entries, in its order.
    pub(crate) extensions: Vec<RegistryEntry>,
    /// Is it an older one, because the registry cannot be reached?
    #[serde(default)]
    pub(crate) stale: bool,
}

/// What an installation from a registry gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RegistryInstall {
    /// [`REGISTRY_INSTALL_SCHEMA`].
    pub(crate) schema: &'static str,
    /// The entry that led to it.
    pub(crate) registry_entry: RegistryEntry,
    /// The digest of the manifest that was downloaded, which is the entry's.
    pub(crate) manifest_sha256: String,
    /// What is installed now.
    pub(crate) installed: InstallRecord,
}

#[derive(Deserialize)]
struct IndexFile {
    schema: String,
    extensions: Vec<RegistryEntry>,
}

/// Where an index is.
enum Source {
    Url(String),
    File(PathBuf),
}

impl Extensions {
    /// The index at `source`, or of the registry that is set. One that was read a moment ago is not read again, unless
    /// it `must_be_new`.
    ///
    /// # Errors
    /// An [`ExtError`]: no registry is set, or its index cannot be had and never was.
    pub(crate) fn registry(
        &self,
        source: Option<&str>,
        must_be_new: bool,
    ) -> Result<RegistryIndex, ExtError> {
        let named = source.map(str::to_owned).or_else(|| self.inner.variables.registry());
        let name = named.filter(|name| !name.trim().is_empty()).ok_or(ExtensionError::NoRegistry)?;
        let source = Source::of(&name)?;
        let kept = self.kept_index(&name);
        let age = kept.as_ref().map(|kept| self.now().saturating_sub(kept.fetched_at_unix_ms));
        if let (Source::Url(_), Some(kept), Some(age), false) = (&source, &kept, age, must_be_new)
            && u128::from(age) < FRESH.as_millis()
        {
            return Ok(kept.clone());
        }
        match (self.read_index(&source, &name), kept) {
            (Ok(index), _) => {
                self.keep_index(&index);
                Ok(index)
            }
            // What pins every manifest by its digest does no harm by being old.
            (
                Err(ExtError::Extension(
                    ExtensionError::DownloadFailed(_) | ExtensionError::DownloadStatus(_),
                )),
                Some(kept),
            ) => Ok(RegistryIndex { stale: true, ..kept }),
            (Err(ExtError::Extension(ExtensionError::DownloadFailed(why))), None) => {
                Err(ExtensionError::RegistryUnusable(why).into())
            }
            (Err(ExtError::Extension(ExtensionError::DownloadStatus(status))), None) => {
                Err(ExtensionError::RegistryUnusable(format!("it answered with status {status}")).into())
            }
            (Err(err), _) => Err(err),
        }
    }

    /// Installs the extension `id` of the registry for `by`.
    ///
    /// # Errors
    /// An [`ExtError`]; then nothing is installed.
    pub(crate) fn install_from_registry(
        &self,
        id: &str,
        source: Option<&str>,
        state: LifecycleState,
        by: Option<&str>,
    ) -> Result<RegistryInstall, ExtError> {
        let index = self.registry(source, true)?;
        let entry = index.extensions.into_iter().find(|entry| entry.id == id);
        let entry = entry.ok_or_else(|| ExtensionError::NotInRegistry(cut(id, 200)))?;
        let bytes = self.download().manifest(&entry.manifest_url)?;
        let actual = Digest::of(&bytes).to_string();
        if actual != entry.manifest_sha256 {
            let expected = entry.manifest_sha256.clone();
            return Err(ExtensionError::RegistryHashMismatch { id: cut(id, 200), expected, actual }.into());
        }
        let manifest = IntegrationManifest::read(&bytes).map_err(ExtensionError::from)?;
        if (&manifest.id, &manifest.version) != (&entry.id, &entry.version) {
            let named = |id: &str, version: &str| format!("{}@{}", cut(id, 200), cut(version, 100));
            let expected = named(&entry.id, &entry.version);
            let found = named(&manifest.id, &manifest.version);
            return Err(ExtensionError::RegistryMismatch { expected, found }.into());
        }
        // As it came: a number that is written again may come out as its neighbour, and is no longer what was signed.
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
        let manifest: Value = serde_json::from_slice(bytes)
            .map_err(|err| ManifestReadFault::Malformed(cut(&err.to_string(), 200)))
            .map_err(ExtensionError::from)?;
        let installed = self.install(&manifest, ModuleSource::Manifest, state, by)?;
        Ok(RegistryInstall {
            schema: REGISTRY_INSTALL_SCHEMA,
            registry_entry: entry,
            manifest_sha256: actual,
            installed,
        })
    }

    fn read_index(&self, source: &Source, name: &str) -> Result<RegistryIndex, ExtError> {
        let unusable = |why: String| ExtError::from(ExtensionError::RegistryUnusable(cut(&why, 300)));
        let bytes = match source {
            Source::Url(url) => self.download().manifest(url)?,
            Source::File(path) => files::read_bounded(path, MANIFEST_MAX_BYTES)
                .map_err(|err| unusable(err.to_string()))?
                .ok_or_else(|| unusable(format!("there is no file '{}'", path.display())))?,
        };
        let index: IndexFile = serde_json::from_slice(&bytes).map_err(|err| unusable(err.to_string()))?;
        check(&index).map_err(unusable)?;
        Ok(RegistryIndex {
            source: name.to_owned(),
            fetched_at_unix_ms: self.now(),
            extensions: index.extensions,
            stale: false,
        })
    }

    fn kept_file(&self) -> PathBuf {
        self.inner.data.join("integrations/registry.json")
    }

    fn kept_index(&self, name: &str) -> Option<RegistryIndex> {
        let bytes = files::read_bounded(&self.kept_file(), KEPT_MAX_BYTES).ok()??;
        serde_json::from_slice(&bytes).ok().filter(|kept: &RegistryIndex| kept.source == name)
    }

    /// What cannot be kept is read again the next time.
    fn keep_index(&self, index: &RegistryIndex) {
        if let Ok(bytes) = serde_json::to_vec(index) {
            let _ = files::write_whole(&self.kept_file(), &bytes);
        }
    }
}

impl RegistryIndex {
    /// The entries in which each of the words occurs, in whatever case.
    pub(crate) fn search(&self, query: &str) -> Vec<&RegistryEntry> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let matches = |entry: &&RegistryEntry| {
            let texts = [Some(&entry.id), entry.name.as_ref(), entry.summary.as_ref()];
            let publisher = entry.publisher_passport_fpr.as_ref();
            let all = texts.into_iter().chain([publisher]).flatten().map(|text| text.to_lowercase());
            let all = all.collect::<Vec<_>>().join("\n");
            words.iter().all(|word| all.contains(word.as_str()))
        };
        self.extensions.iter().filter(matches).collect()
    }
}

impl Source {
    fn of(name: &str) -> Result<Self, ExtError> {
        if name.starts_with("https://") {
            return Ok(Self::Url(name.to_owned()));
        }
        let unusable = |why: String| ExtensionError::RegistryUnusable(why);
        if name.contains("://") {
            return Err(
                unusable(format!("'{}' is neither an https:// URL nor a file", cut(name, 120))).into()
            );
        }
        let path = fs::canonicalize(Path::new(name));
        let path = path.map_err(|err| unusable(format!("'{}': {err}", cut(name, 120))))?;
        Ok(Self::File(path))
    }
}

/// Checks what an index says before anybody relies on it.
fn check(index: &IndexFile) -> Result<(), String> {
    if index.schema != REGISTRY_SCHEMA {
        return Err(format!("its schema is not {REGISTRY_SCHEMA}"));
    }
    if index.extensions.len() > REGISTRY_MAX_ENTRIES {
        return Err(format!("it has more than {REGISTRY_MAX_ENTRIES} entries"));
    }
    let mut ids = HashSet::new();
    for entry in &index.extensions {
        let id = cut(&entry.id, 200);
        if toolshelf_core::extension::validate::check_install_id(&entry.id).is_err() {
            return Err(format!("'{id}' is no id of an extension"));
        }
        if !ids.insert(&entry.id) {
            return Err(format!("'{id}' is listed twice"));
        }
        if Digest::parse(&entry.manifest_sha256).is_none() {
            return Err(format!("manifest_sha256 of '{id}' is not 64 lowercase hex chars"));
        }
        if !entry.manifest_url.starts_with("https://") {
            return Err(format!("manifest_url of '{id}' is no https:// URL"));
        }
    }
    Ok(())
}
