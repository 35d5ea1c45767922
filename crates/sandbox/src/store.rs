//! Shelves in folders of this computer, and the one that comes with the program.
//!
//! Every call reads its module from the folder again, by the rules of [`folder`](crate::folder).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use toolshelf_core::limits::{MANIFEST_MAX_BYTES, WASM_MODULE_MAX_BYTES};
use toolshelf_core::manifest::{MANIFEST_FILE, Manifest, ManifestFault};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::shelf::{FileFault, Hashed};
use toolshelf_host::ShelfStore;

use crate::folder::{self, FolderFault};

/// Key of the built-in shelf. Keys of folders are paths.
pub const BUILTIN: &str = "builtin";

const BUILTIN_MANIFEST: &[u8] = include_bytes!("../../../www/shelf/manifest.json");
const BUILTIN_FILES: &[(&str, &[u8])] = &[
    ("hash.wasm", include_bytes!("../../../www/shelf/hash.wasm")),
    ("diff.wasm", include_bytes!("../../../www/shelf/diff.wasm")),
    ("diff-loose.wasm", include_bytes!("../../../www/shelf/diff-loose.wasm")),
];

/// A folder, or none, and the tools that come with the program.
///
/// The folder comes first. The built-in shelf adds the tools whose ids the folder's manifest does not list: an entry
/// that is refused, such as one whose file was swapped, is not silently served by another module of the same id. Where
/// the folder's manifest cannot be read, the built-in shelf offers nothing either.
#[derive(Debug, Clone)]
pub struct Shelves {
    folder: Option<Folder>,
}

/// A shelf's folder.
#[derive(Debug, Clone)]
struct Folder {
    key: String,
    path: PathBuf,
}

impl Shelves {
    /// The built-in tools alone.
    #[must_use]
    pub fn builtin() -> Self {
        Self { folder: None }
    }

    /// The shelf in `folder`, then the built-in tools.
    ///
    /// A link that leads to the folder is followed once, here. If the folder is replaced by a link later, it is refused.
    #[must_use]
    pub fn with_folder(folder: &Path) -> Self {
        let path = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        Self { folder: Some(Folder { key: path.to_string_lossy().into_owned(), path }) }
    }

    /// Path of the folder, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| &*folder.path)
    }

    fn folder_of(&self, shelf: &str) -> Option<&Folder> {
        self.folder.as_ref().filter(|folder| folder.key == shelf)
    }

    /// The built-in manifest without what the folder lists.
    fn builtin_manifest(&self) -> Vec<u8> {
        let Some(folder) = &self.folder else { return BUILTIN_MANIFEST.to_vec() };
        let listed = folder.manifest().ok().and_then(|bytes| Manifest::read(&bytes).ok());
        let Some(listed) = listed else { return br#"{"name":"toolshelf","tools":[]}"#.to_vec() };
        let listed: HashSet<_> = listed.entries.into_iter().filter_map(|entry| entry.id).collect();
        let Ok(mut builtin) = Manifest::read(BUILTIN_MANIFEST) else { return Vec::new() };
        builtin.entries.retain(|entry| !listed.contains(entry.label()));
        builtin.written()
    }
}

impl ShelfStore for Shelves {
    async fn shelves(&self) -> Result<Vec<String>, Refusal> {
        let folder = self.folder.iter().map(|folder| folder.key.clone());
        Ok(folder.chain([BUILTIN.to_owned()]).collect())
    }

    fn default_name(&self, shelf: &str) -> String {
        let name = Path::new(shelf).file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| shelf.to_owned())
    }

    async fn manifest(&self, shelf: &str) -> Result<Vec<u8>, Refusal> {
        match self.folder_of(shelf) {
            Some(folder) => folder.manifest(),
            None => Ok(self.builtin_manifest()),
        }
    }

    async fn module(&self, shelf: &str, path: &str) -> Result<Hashed, FileFault> {
        let bytes = match self.folder_of(shelf) {
            Some(folder) => folder.read(path, WASM_MODULE_MAX_BYTES).map_err(FileFault::from)?,
            None => builtin_file(path).ok_or(FileFault::Missing)?.to_vec(),
        };
        Ok(Hashed::new(bytes))
    }
}

fn builtin_file(path: &str) -> Option<&'static [u8]> {
    BUILTIN_FILES.iter().find(|(name, _)| *name == path).map(|(_, bytes)| *bytes)
}

/// Reads the module at `path` inside the shelf in `folder`, as a call does.
///
/// # Errors
/// A [`FileFault`].
pub fn read_module(folder: &Path, path: &str) -> Result<Vec<u8>, FileFault> {
    let folder = Folder { key: String::new(), path: folder.to_owned() };
    folder.read(path, WASM_MODULE_MAX_BYTES).map_err(FileFault::from)
}

/// Reads `manifest.json` of the shelf in `folder`, as a call does.
///
/// # Errors
/// [`Code::ShelfUnavailable`] and [`Code::ShelfUnreadable`].
pub fn read_manifest(folder: &Path) -> Result<Vec<u8>, Refusal> {
    Folder { key: String::new(), path: folder.to_owned() }.manifest()
}

impl Folder {
    fn manifest(&self) -> Result<Vec<u8>, Refusal> {
        let shown = cut(&self.path.to_string_lossy(), 200);
        self.read(MANIFEST_FILE, MANIFEST_MAX_BYTES).map_err(|fault| match fault {
            FolderFault::Missing => {
                Refusal::new(Code::ShelfUnavailable, format!("there is no {MANIFEST_FILE} in {shown:?}"))
            }
            FolderFault::TooLarge(bytes) => ManifestFault::TooLarge(bytes).into(),
            other => Refusal::new(
                Code::ShelfUnreadable,
                format!("{MANIFEST_FILE} in {shown:?} cannot be read: {other}"),
            ),
        })
    }

    /// Reads a file of at most `most` bytes. `path` has only plain segments.
    fn read(&self, path: &str, most: usize) -> Result<Vec<u8>, FolderFault> {
        folder::Folder::open(&self.path)?.read(path, most)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/tool.wasm"), b"bytes").unwrap();
        (dir, Folder { key: "k".into(), path })
    }

    #[test]
    fn a_shelf_that_was_replaced_by_a_link_is_not_read() {
        let (_dir, folder) = folder();
        assert_eq!(folder.read("a/b/tool.wasm", 5).unwrap(), b"bytes");
        let other = tempfile::tempdir().unwrap();
        let whole = other.path().join("shelf");
        symlink(&folder.path, &whole).unwrap();
        let replaced = Folder { key: String::new(), path: whole };
        assert!(matches!(replaced.read("a/b/tool.wasm", 100), Err(FolderFault::Link)));
    }

    #[test]
    fn every_built_in_tool_is_there_with_its_digest() {
        let manifest = Manifest::read(BUILTIN_MANIFEST).unwrap();
        assert_eq!(manifest.entries.len(), BUILTIN_FILES.len());
        for entry in &manifest.entries {
            let (_, path) = entry.locate().unwrap();
            let digest = Hashed::new(builtin_file(&path).unwrap().to_vec()).digest.to_string();
            assert_eq!(entry.digest.as_deref(), Some(digest.as_str()));
        }
    }

    #[test]
    fn a_folder_hides_the_built_in_tools_whose_ids_it_lists() {
        let (_dir, folder) = folder();
        let ids = |shelves: &Shelves| -> Vec<String> {
            let manifest = Manifest::read(&shelves.builtin_manifest()).unwrap();
            manifest.entries.iter().map(|entry| entry.label().to_owned()).collect()
        };
        assert_eq!(ids(&Shelves::builtin()), ["hash", "diff", "diff-loose"]);
        fs::write(folder.path.join(MANIFEST_FILE), r#"{"tools":[{"id":"hash"}]}"#).unwrap();
        let shelves = Shelves::with_folder(&folder.path);
        assert_eq!(ids(&shelves), ["diff", "diff-loose"]);
        fs::write(folder.path.join(MANIFEST_FILE), "broken").unwrap();
        assert!(ids(&shelves).is_empty());
    }
}
