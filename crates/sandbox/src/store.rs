//! Shelves in folders of this computer, and the one that comes with the program.
//!
//! Every call reads its module from the folder again. No link is followed on the way: a file is opened segment by
//! segment, each inside the one before, so that nothing outside of the folder is ever read, whoever changes the folder
//! meanwhile. What is no plain file is not read, and a size is checked before anything is.

use std::collections::HashSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use toolshelf_core::limits::{MANIFEST_MAX_BYTES, WASM_MODULE_MAX_BYTES};
use toolshelf_core::manifest::{MANIFEST_FILE, Manifest, ManifestFault};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_core::shelf::{FileFault, Hashed};
use toolshelf_host::ShelfStore;

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

/// Why a file of a folder was not read.
#[derive(Debug, thiserror::Error)]
enum ReadFault {
    #[error("it is not there")]
    Missing,
    #[error("it is {0} bytes")]
    TooLarge(u64),
    #[error("it, or a folder on the way, is a link, which is not followed")]
    Link,
    #[error("it is no plain file")]
    NoFile,
    #[error("{0}")]
    Io(io::Error),
}

impl From<ReadFault> for FileFault {
    fn from(fault: ReadFault) -> Self {
        match fault {
            ReadFault::Missing => Self::Missing,
            ReadFault::TooLarge(bytes) => Self::TooLarge(bytes),
            other => Self::Unreadable(other.to_string()),
        }
    }
}

impl Folder {
    fn manifest(&self) -> Result<Vec<u8>, Refusal> {
        let shown = cut(&self.path.to_string_lossy(), 200);
        self.read(MANIFEST_FILE, MANIFEST_MAX_BYTES).map_err(|fault| match fault {
            ReadFault::Missing => {
                Refusal::new(Code::ShelfUnavailable, format!("there is no {MANIFEST_FILE} in {shown:?}"))
            }
            ReadFault::TooLarge(bytes) => ManifestFault::TooLarge(bytes).into(),
            other => Refusal::new(
                Code::ShelfUnreadable,
                format!("{MANIFEST_FILE} in {shown:?} cannot be read: {other}"),
            ),
        })
    }

    /// Reads a file of at most `most` bytes. `path` has only plain segments.
    fn read(&self, path: &str, most: usize) -> Result<Vec<u8>, ReadFault> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = openat(CWD, &self.path, flags | OFlags::DIRECTORY, Mode::empty())?;
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        for segment in folders.split('/').filter(|segment| !segment.is_empty()) {
            at = openat(&at, segment, flags | OFlags::DIRECTORY, Mode::empty())?;
        }
        // Opening a pipe or a device must not wait for anybody.
        let file = openat(&at, name, flags | OFlags::NONBLOCK, Mode::empty())?;
        let about = fstat(&file)?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(ReadFault::NoFile);
        }
        let bytes = u64::try_from(about.st_size).unwrap_or_default();
        if bytes > most as u64 {
            return Err(ReadFault::TooLarge(bytes));
        }
        // A file that grows meanwhile is read no further than one byte beyond the bound.
        let mut content = Vec::with_capacity(bytes as usize + 1);
        let read = std::fs::File::from(file).take(most as u64 + 1).read_to_end(&mut content);
        let read = read.map_err(ReadFault::Io)?;
        if read > most { Err(ReadFault::TooLarge(read as u64)) } else { Ok(content) }
    }
}

impl From<Errno> for ReadFault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            // Linux answers "not a directory" for a link where a folder is wanted.
            Errno::LOOP | Errno::MLINK | Errno::NOTDIR => Self::Link,
            other => Self::Io(other.into()),
        }
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
    fn a_file_in_folders_is_read_and_one_that_is_not_there_is_missing() {
        let (_dir, folder) = folder();
        assert_eq!(folder.read("a/b/tool.wasm", 5).unwrap(), b"bytes");
        assert!(matches!(folder.read("a/b/other.wasm", 5), Err(ReadFault::Missing)));
        assert!(matches!(folder.read("a/c/tool.wasm", 5), Err(ReadFault::Missing)));
    }

    #[test]
    fn one_byte_above_the_bound_is_not_read() {
        let (_dir, folder) = folder();
        assert!(matches!(folder.read("a/b/tool.wasm", 4), Err(ReadFault::TooLarge(5))));
    }

    #[test]
    fn no_link_is_followed_wherever_it_leads() {
        let (_dir, folder) = folder();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("tool.wasm"), b"other").unwrap();
        symlink(outside.path().join("tool.wasm"), folder.path.join("file")).unwrap();
        symlink(outside.path(), folder.path.join("folder")).unwrap();
        symlink("a/b/tool.wasm", folder.path.join("inside")).unwrap();
        for path in ["file", "folder/tool.wasm", "inside"] {
            assert!(matches!(folder.read(path, 100), Err(ReadFault::Link)), "{path}");
        }
        let whole = outside.path().join("shelf");
        symlink(&folder.path, &whole).unwrap();
        let replaced = Folder { key: String::new(), path: whole };
        assert!(matches!(replaced.read("a/b/tool.wasm", 100), Err(ReadFault::Link)));
    }

    #[test]
    fn what_is_no_plain_file_is_refused_at_once() {
        let (_dir, folder) = folder();
        let pipe = folder.path.join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(matches!(folder.read("pipe", 100), Err(ReadFault::NoFile)));
        assert!(matches!(folder.read("a", 100), Err(ReadFault::NoFile)));
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
