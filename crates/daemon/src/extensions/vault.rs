//! The vault: secrets that extensions may be granted, encrypted at rest.
//!
//! `<data>/vault.json` holds each secret sealed with XChaCha20-Poly1305: a random nonce for each, its id as associated
//! data, so that an entry cannot be passed off as another. The key is in `<data>/vault.key`. Both are for the owner
//! alone. The file is read on every use, so that what another program sets holds at once. Nothing here can tell an
//! older copy of the whole file from the newest one.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolshelf_core::digest::to_hex;
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

use super::files;

/// Most secrets in a vault.
pub(crate) const VAULT_MAX_SECRETS: usize = 256;
/// Longest id of a secret, in bytes.
pub(crate) const SECRET_ID_MAX_BYTES: usize = 128;
/// Longest secret, in bytes. One fits into what a host function can hand over.
pub(crate) const SECRET_MAX_BYTES: usize = 32 * 1024;

const SCHEMA: &str = "toolshelf.vault.v1";
/// Larger than a full vault can be.
const FILE_MAX_BYTES: u64 = 16 * 1024 * 1024;
const NONCE_BYTES: usize = 24;

/// Why the vault says no. A sentence never holds a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VaultError {
    /// An id that none can have.
    #[error("a secret's id is 1 to {SECRET_ID_MAX_BYTES} letters, digits, '.', '_' and '-'")]
    BadId,
    /// An empty secret, or one that is too long.
    #[error("a secret has 1 to {SECRET_MAX_BYTES} bytes")]
    BadLength,
    /// One too many.
    #[error("the vault holds {VAULT_MAX_SECRETS} secrets, and no more")]
    Full,
    /// There is none of that id.
    #[error("secret '{0}' is not in the vault")]
    Unknown(String),
    /// The file was sealed with another key.
    #[error("the vault was sealed with another key than the one in '{}'", .0.display())]
    WrongKey(PathBuf),
    /// The entry is not as it was sealed.
    #[error("secret '{0}' has been changed since it was sealed")]
    Tampered(String),
    /// The file is no vault.
    #[error("'{}' is no vault: {why}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file or the key cannot be read or written.
    #[error("'{}' cannot be used: {err}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        err: io::Error,
    },
}

impl From<VaultError> for Refusal {
    fn from(err: VaultError) -> Self {
        let code = match &err {
            VaultError::BadId | VaultError::BadLength => Code::InvalidArgument,
            VaultError::Full => Code::OverBudget,
            VaultError::Unknown(_) => Code::SecretUnknown,
            VaultError::WrongKey(_) | VaultError::Tampered(_) | VaultError::Malformed { .. } => {
                Code::VaultDamaged
            }
            VaultError::Io { .. } => Code::StorageUnavailable,
        };
        Self::new(code, err.to_string())
    }
}

/// What is told about a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SecretInfo {
    /// Its id.
    pub(crate) id: String,
    /// When it was set, in milliseconds since the beginning of 1970.
    pub(crate) set_at_unix_ms: u64,
}

/// The vault of a data folder.
pub(crate) struct Vault {
    path: PathBuf,
    key_path: PathBuf,
    cipher: XChaCha20Poly1305,
    /// Names the key without telling it.
    key_id: String,
}

#[derive(Serialize, Deserialize)]
struct VaultFile {
    schema: String,
    key_id: String,
    secrets: BTreeMap<String, Sealed>,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    nonce: String,
    sealed: String,
    set_at_unix_ms: u64,
}

impl Vault {
    /// Opens the vault of the data folder `data`. Its key is made where there is none.
    ///
    /// # Errors
    /// A [`VaultError`] when the key cannot be read or made.
    pub(crate) fn open(data: &Path) -> Result<Self, VaultError> {
        let (path, key_path) = (data.join("vault.json"), data.join("vault.key"));
        let key = private::key(&key_path).map_err(|err| VaultError::Io { path: key_path.clone(), err })?;
        let key_id = Sha256::new().chain_update(b"toolshelf.vault.key-id\0").chain_update(*key).finalize();
        let cipher = XChaCha20Poly1305::new(&Key::from(*key));
        Ok(Self { path, key_path, cipher, key_id: to_hex(&key_id[..8]) })
    }

    /// Keeps a secret; one of the same id is replaced.
    ///
    /// # Errors
    /// A [`VaultError`]; then the vault is as it was.
    pub(crate) fn set(&self, id: &str, secret: &[u8], now_unix_ms: u64) -> Result<(), VaultError> {
        check_id(id)?;
        if secret.is_empty() || secret.len() > SECRET_MAX_BYTES {
            return Err(VaultError::BadLength);
        }
        let _lock = self.lock()?;
        let mut file = self.read()?;
        if !file.secrets.contains_key(id) && file.secrets.len() >= VAULT_MAX_SECRETS {
            return Err(VaultError::Full);
        }
        let mut nonce = [0; NONCE_BYTES];
        private::fill_random(&mut nonce).map_err(|err| self.io(err))?;
        let aad = associated(id);
        let payload = Payload { msg: secret, aad: &aad };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| VaultError::BadLength)?;
        let sealed = Sealed {
            nonce: BASE64_STANDARD.encode(nonce),
            sealed: BASE64_STANDARD.encode(sealed),
            set_at_unix_ms: now_unix_ms,
        };
        file.secrets.insert(id.to_owned(), sealed);
        self.write(&file)
    }

    /// The secret of that id.
    ///
    /// # Errors
    /// A [`VaultError`]; [`VaultError::Unknown`] where there is none.
    pub(crate) fn get(&self, id: &str) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let file = self.read()?;
        let Some(entry) = file.secrets.get(id) else { return Err(VaultError::Unknown(shown(id))) };
        self.unseal(id, entry).ok_or_else(|| VaultError::Tampered(shown(id)))
    }

    /// The ids of all secrets, in their order.
    ///
    /// # Errors
    /// A [`VaultError`].
    pub(crate) fn list(&self) -> Result<Vec<SecretInfo>, VaultError> {
        let secrets = self.read()?.secrets.into_iter();
        Ok(secrets.map(|(id, sealed)| SecretInfo { id, set_at_unix_ms: sealed.set_at_unix_ms }).collect())
    }

    /// Forgets a secret.
    ///
    /// # Errors
    /// A [`VaultError`]; [`VaultError::Unknown`] where there is none.
    pub(crate) fn remove(&self, id: &str) -> Result<(), VaultError> {
        let _lock = self.lock()?;
        let mut file = self.read()?;
        if file.secrets.remove(id).is_none() {
            return Err(VaultError::Unknown(shown(id)));
        }
        self.write(&file)
    }

    fn unseal(&self, id: &str, entry: &Sealed) -> Option<Zeroizing<Vec<u8>>> {
        let nonce: [u8; NONCE_BYTES] = BASE64_STANDARD.decode(&entry.nonce).ok()?.try_into().ok()?;
        let sealed = BASE64_STANDARD.decode(&entry.sealed).ok()?;
        let payload = Payload { msg: &sealed, aad: &associated(id) };
        self.cipher.decrypt(&XNonce::from(nonce), payload).ok().map(Zeroizing::new)
    }

    fn read(&self) -> Result<VaultFile, VaultError> {
        let Some(bytes) = files::read_bounded(&self.path, FILE_MAX_BYTES).map_err(|err| self.io(err))? else {
            return Ok(VaultFile {
                schema: SCHEMA.to_owned(),
                key_id: self.key_id.clone(),
                secrets: BTreeMap::new(),
            });
        };
        let malformed = |why: String| VaultError::Malformed { path: self.path.clone(), why };
        let file: VaultFile = serde_json::from_slice(&bytes).map_err(|err| malformed(err.to_string()))?;
        if file.schema != SCHEMA {
            return Err(malformed(format!("its schema is not {SCHEMA}")));
        }
        if file.key_id != self.key_id {
            return Err(VaultError::WrongKey(self.key_path.clone()));
        }
        Ok(file)
    }

    fn write(&self, file: &VaultFile) -> Result<(), VaultError> {
        let bytes = serde_json::to_vec_pretty(file).map_err(|err| self.io(err.into()))?;
        files::write_whole(&self.path, &bytes).map_err(|err| self.io(err))
    }

    fn lock(&self) -> Result<std::fs::File, VaultError> {
        files::lock(&self.path.with_extension("lock")).map_err(|err| self.io(err))
    }

    fn io(&self, err: io::Error) -> VaultError {
        VaultError::Io { path: self.path.clone(), err }
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault")
            .field("path", &self.path)
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// Can something of that id be in a vault?
///
/// # Errors
/// [`VaultError::BadId`].
pub(crate) fn check_id(id: &str) -> Result<(), VaultError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let fits = (1..=SECRET_ID_MAX_BYTES).contains(&id.len());
    if fits && id.bytes().all(is_allowed) { Ok(()) } else { Err(VaultError::BadId) }
}

fn associated(id: &str) -> Vec<u8> {
    [SCHEMA.as_bytes(), b"\0", id.as_bytes()].concat()
}

fn shown(id: &str) -> String {
    id.chars().take(SECRET_ID_MAX_BYTES).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SECRET: &[u8] = b"s3cret-of-the-house";

    fn vault() -> (tempfile::TempDir, Vault) {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::open(dir.path()).unwrap();
        (dir, vault)
    }

    fn edit(vault: &Vault, change: impl FnOnce(&mut VaultFile)) {
        let mut file = vault.read().unwrap();
        change(&mut file);
        vault.write(&file).unwrap();
    }

    #[test]
    fn a_secret_is_kept_listed_replaced_and_forgotten() {
        let (dir, vault) = vault();
        vault.set("api.key", b"old", 1).unwrap();
        vault.set("api.key", SECRET, 2).unwrap();
        vault.set("a", b"x", 3).unwrap();
        // Another program opens the same vault.
        let other = Vault::open(dir.path()).unwrap();
        assert_eq!(*other.get("api.key").unwrap(), SECRET);
        let ids: Vec<_> =
            other.list().unwrap().into_iter().map(|info| (info.id, info.set_at_unix_ms)).collect();
        assert_eq!(ids, [("a".to_owned(), 3), ("api.key".to_owned(), 2)]);
        other.remove("api.key").unwrap();
        assert!(matches!(vault.get("api.key"), Err(VaultError::Unknown(id)) if id == "api.key"));
        assert!(matches!(vault.remove("api.key"), Err(VaultError::Unknown(_))));
    }

    #[test]
    fn nothing_on_disk_tells_a_secret_and_only_the_owner_reads_it() {
        let (dir, vault) = vault();
        vault.set("k", SECRET, 1).unwrap();
        vault.set("l", SECRET, 1).unwrap();
        for name in ["vault.json", "vault.key"] {
            let path = dir.path().join(name);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
            let bytes = fs::read(&path).unwrap();
            for form in [SECRET.to_vec(), BASE64_STANDARD.encode(SECRET).into_bytes()] {
                assert!(!bytes.windows(form.len()).any(|window| window == form), "{name}");
            }
        }
        let file = vault.read().unwrap();
        assert_ne!(file.secrets["k"].sealed, file.secrets["l"].sealed);
        assert!(!format!("{vault:?}").contains("s3cret"));
    }

    #[test]
    fn a_changed_entry_is_named_and_never_opened() {
        type Change = fn(&mut VaultFile);
        let cases: [(&str, Change); 5] = [
            ("swapped", |file| {
                let mut other = file.secrets.remove("b").unwrap();
                std::mem::swap(&mut other, file.secrets.get_mut("a").unwrap());
            }),
            ("one bit", |file| {
                let entry = file.secrets.get_mut("a").unwrap();
                let mut bytes = BASE64_STANDARD.decode(&entry.sealed).unwrap();
                bytes[0] ^= 1;
                entry.sealed = BASE64_STANDARD.encode(bytes);
            }),
            ("cut", |file| file.secrets.get_mut("a").unwrap().sealed = "AAAA".to_owned()),
            ("nonce", |file| {
                file.secrets.get_mut("a").unwrap().nonce = BASE64_STANDARD.encode([7; NONCE_BYTES])
            }),
            ("no base64", |file| file.secrets.get_mut("a").unwrap().nonce = "?".to_owned()),
        ];
        for (name, change) in cases {
            let (_dir, vault) = vault();
            vault.set("a", b"first", 1).unwrap();
            vault.set("b", b"second", 1).unwrap();
            edit(&vault, change);
            assert!(matches!(vault.get("a"), Err(VaultError::Tampered(id)) if id == "a"), "{name}");
        }
    }

    #[test]
    fn another_key_and_a_broken_file_are_errors_by_name() {
        let (dir, vault) = vault();
        vault.set("a", SECRET, 1).unwrap();
        files::write_whole(&dir.path().join("vault.key"), &[7; 32]).unwrap();
        let other = Vault::open(dir.path()).unwrap();
        assert!(matches!(other.get("a"), Err(VaultError::WrongKey(_))));
        // A vault of another key is not written over either.
        assert!(matches!(other.set("b", SECRET, 1), Err(VaultError::WrongKey(_))));
        assert_eq!(*vault.get("a").unwrap(), SECRET);
        fs::write(dir.path().join("vault.json"), "{").unwrap();
        assert!(matches!(vault.set("a", SECRET, 1), Err(VaultError::Malformed { .. })));
        assert_eq!(fs::read(dir.path().join("vault.json")).unwrap(), b"{");
    }

    #[test]
    fn ids_lengths_and_numbers_are_bounded() {
        let (_dir, vault) = vault();
        for id in ["", "a/b", "ä", "a b", &"a".repeat(SECRET_ID_MAX_BYTES + 1)] {
            assert!(matches!(vault.set(id, SECRET, 1), Err(VaultError::BadId)), "{id}");
            assert!(matches!(vault.get(id), Err(VaultError::Unknown(_))), "{id}");
        }
        for secret in [&[][..], &vec![1; SECRET_MAX_BYTES + 1]] {
            assert!(matches!(vault.set("a", secret, 1), Err(VaultError::BadLength)));
        }
        vault.set("a", &vec![1; SECRET_MAX_BYTES], 1).unwrap();
        edit(&vault, |file| {
            for number in 1..VAULT_MAX_SECRETS {
                let sealed = Sealed { nonce: String::new(), sealed: String::new(), set_at_unix_ms: 0 };
                file.secrets.insert(format!("s{number}"), sealed);
            }
        });
        assert!(matches!(vault.set("one-more", SECRET, 1), Err(VaultError::Full)));
        vault.set("a", SECRET, 1).unwrap();
    }

    #[test]
    fn programs_that_set_at_the_same_time_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let data = dir.path();
                scope
                    .spawn(move || Vault::open(data).unwrap().set(&format!("s{number}"), SECRET, 1).unwrap());
            }
        });
        assert_eq!(Vault::open(dir.path()).unwrap().list().unwrap().len(), 8);
    }
}
