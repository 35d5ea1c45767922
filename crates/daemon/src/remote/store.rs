//! A list in a file that only its owner can read, written whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toolshelf_core::refusal::{Code, Refusal, cut};
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

use crate::files;

/// Largest file that is read, in bytes.
const FILE_MAX_BYTES: usize = 1024 * 1024;
/// Version of the files.
const VERSION: u32 = 1;

/// The file.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read<T> {
    version: u32,
    entries: Vec<T>,
}

#[derive(Serialize)]
struct Written<'a, T> {
    version: u32,
    entries: &'a [T],
}

impl Store {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The entries; none where there is no file. The file is made, so that it is closed to others from the beginning.
    ///
    /// # Errors
    /// [`Code::PairingListUnreadable`].
    pub(super) fn read<T: DeserializeOwned + Serialize>(&self) -> Result<Vec<T>, Refusal> {
        let empty = || Ok(Zeroizing::new(text::<T>(&[])?));
        let bytes =
            private::secret(&self.path, FILE_MAX_BYTES, empty).map_err(|err| self.fault(&err.to_string()))?;
        let read: Read<T> =
            serde_json::from_slice(&bytes).map_err(|err| self.fault(&cut(&err.to_string(), 120)))?;
        match read.version {
            VERSION => Ok(read.entries),
            other => {
                Err(self.fault(&format!("it is of version {other}, and version {VERSION} is understood")))
            }
        }
    }

    /// Puts `entries` in the place of those that were.
    ///
    /// # Errors
    /// [`Code::StorageUnavailable`]; the file is as it was then.
    pub(super) fn write<T: Serialize>(&self, entries: &[T]) -> Result<(), Refusal> {
        let failed = |why: String| Refusal::new(Code::StorageUnavailable, why);
        let bytes = Zeroizing::new(text(entries).map_err(|err| failed(err.to_string()))?);
        files::replace(&self.path, &bytes).map_err(|refusal| failed(refusal.why))
    }

    fn fault(&self, why: &str) -> Refusal {
        Refusal::new(Code::PairingListUnreadable, format!("{} cannot be used: {why}", self.path.display()))
    }
}

fn text<T: Serialize>(entries: &[T]) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(&Written { version: VERSION, entries })?;
    text.push(b'\n');
    Ok(text)
}

/// The file of that name in the data folder.
pub(super) fn file(data: &Path, name: &str) -> Store {
    Store::at(data.join(name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    #[test]
    fn what_is_written_is_read_and_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let store = file(dir.path(), "list.json");
        assert_eq!(store.read::<u32>().unwrap(), [0; 0]);
        store.write(&[1, 2]).unwrap();
        assert_eq!(store.read::<u32>().unwrap(), [1, 2]);
        assert_eq!(fs::metadata(dir.path().join("list.json")).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_or_open_file_is_refused_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (store, path) = (file(dir.path(), "list.json"), dir.path().join("list.json"));
        for bad in [
            "",
            "{",
            "[]",
            r#"{"version":2,"entries":[]}"#,
            r#"{"version":1,"entries":["x"]}"#,
            r#"{"version":1,"entries":[],"more":1}"#,
        ] {
            fs::write(&path, bad).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(store.read::<u32>().unwrap_err().code, Code::PairingListUnreadable, "{bad}");
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
        }
        fs::write(&path, r#"{"version":1,"entries":[]}"#).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(store.read::<u32>().unwrap_err().code, Code::PairingListUnreadable);
    }
}
