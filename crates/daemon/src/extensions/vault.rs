//! The vault: secrets that extensions may be granted, encrypted at rest.
//!
//! `<data>/vault.json` holds each secret sealed with XChaCha20-Poly1305: a random nonce for each, its id as associated
//! data, so that an entry cannot be passed off as another. Where the key is, `vault_key` says; it is asked for when a
//! secret is first set or read. The file is for its owner alone and is read on every use, so that what another program
//! sets holds at once. Nothing here can tell an older copy of the whole file from the newest one.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

use super::files;
use super::vault_key::{KeyAt, KeyFault, KeyPlace, KeySource, VaultKey};

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
    /// There is no key.
    #[error(transparent)]
    Key(#[from] KeyFault),
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
    /// The file cannot be read or written.
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
            VaultError::WrongKey(_)
            | VaultError::Tampered(_)
            | VaultError::Malformed { .. }
            | VaultError::Key(KeyFault::Gone { .. }) => Code::VaultDamaged,
            VaultError::Io { .. } | VaultError::Key(_) => Code::StorageUnavailable,
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
    key: KeySource,
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
    /// The vault of the data folder `data`, whose key is put in `place`. Nothing is read or made yet.
    pub(crate) fn of(data: &Path, place: KeyPlace) -> Self {
        Self { path: data.join("vault.json"), key: KeySource::of(data, place) }
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
        let found = self.read()?;
        let key = self.key_of(found.as_ref())?;
        let mut file = found.unwrap_or_else(|| VaultFile::empty(&key));
        if !file.secrets.contains_key(id) && file.secrets.len() >= VAULT_MAX_SECRETS {
            return Err(VaultError::Full);
        }
        let mut nonce = [0; NONCE_BYTES];
        private::fill_random(&mut nonce).map_err(|err| self.io(err))?;
        let aad = associated(id);
        let payload = Payload { msg: secret, aad: &aad };
        let sealed =
            cipher(&key).encrypt(&XNonce::from(nonce), payload).map_err(|_| VaultError::BadLength)?;
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
        let entry = file.as_ref().and_then(|file| file.secrets.get(id));
        let entry = entry.ok_or_else(|| VaultError::Unknown(shown(id)))?;
        let key = self.key_of(file.as_ref())?;
        unseal(&key, id, entry).ok_or_else(|| VaultError::Tampered(shown(id)))
    }

    /// The ids of all secrets, in their order.
    ///
    /// # Errors
    /// A [`VaultError`].
    pub(crate) fn list(&self) -> Result<Vec<SecretInfo>, VaultError> {
        let secrets = self.read()?.map(|file| file.secrets).unwrap_or_default().into_iter();
        Ok(secrets.map(|(id, sealed)| SecretInfo { id, set_at_unix_ms: sealed.set_at_unix_ms }).collect())
    }

    /// Forgets a secret.
    ///
    /// # Errors
    /// A [`VaultError`]; [`VaultError::Unknown`] where there is none.
    pub(crate) fn remove(&self, id: &str) -> Result<(), VaultError> {
        let _lock = self.lock()?;
        let found = self.read()?;
        let Some(mut file) = found.filter(|file| file.secrets.contains_key(id)) else {
            return Err(VaultError::Unknown(shown(id)));
        };
        file.secrets.remove(id);
        self.write(&file)
    }

    /// Puts the key into the file or into the system's keyring, and says where it was.
    ///
    /// # Errors
    /// A [`VaultError`]; then the key is where it was.
    pub(crate) fn move_key(&self, to: KeyAt) -> Result<KeyAt, VaultError> {
        let _lock = self.lock()?;
        let found = self.read()?;
        let key = self.key_of(found.as_ref())?;
        if found.is_none() {
            // What the vault says is how a key in the keyring is found again.
            self.write(&VaultFile::empty(&key))?;
        }
        Ok(self.key.move_to(to, &key.id)?)
    }

    /// Where the key is, in a sentence, and whether all is well with it.
    pub(crate) fn key_report(&self) -> (String, Option<bool>) {
        match self.read() {
            Ok(found) => self.key.report(found.as_ref().map(|file| file.key_id.as_str())),
            Err(err) => (err.to_string(), Some(false)),
        }
    }

    /// The key that the vault was sealed with; a new one where nothing is sealed yet.
    fn key_of(&self, file: Option<&VaultFile>) -> Result<Arc<VaultKey>, VaultError> {
        let key = self.key.key(file.map(|file| file.key_id.as_str()))?;
        if file.is_some_and(|file| file.key_id != key.id) {
            return Err(VaultError::WrongKey(self.key.file().to_owned()));
        }
        Ok(key)
    }

    fn read(&self) -> Result<Option<VaultFile>, VaultError> {
        let bytes = files::read_bounded(&self.path, FILE_MAX_BYTES).map_err(|err| self.io(err))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let malformed = |why: String| VaultError::Malformed { path: self.path.clone(), why };
        let file: VaultFile = serde_json::from_slice(&bytes).map_err(|err| malformed(err.to_string()))?;
        if file.schema != SCHEMA {
            return Err(malformed(format!("its schema is not {SCHEMA}")));
        }
        Ok(Some(file))
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
        f.debug_struct("Vault").field("path", &self.path).finish_non_exhaustive()
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

impl VaultFile {
    fn empty(key: &VaultKey) -> Self {
        Self { schema: SCHEMA.to_owned(), key_id: key.id.clone(), secrets: BTreeMap::new() }
    }
}

fn cipher(key: &VaultKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&Key::from(*key.bytes))
}

fn unseal(key: &VaultKey, id: &str, entry: &Sealed) -> Option<Zeroizing<Vec<u8>>> {
    let nonce: [u8; NONCE_BYTES] = BASE64_STANDARD.decode(&entry.nonce).ok()?.try_into().ok()?;
    let sealed = BASE64_STANDARD.decode(&entry.sealed).ok()?;
    let payload = Payload { msg: &sealed, aad: &associated(id) };
    cipher(key).decrypt(&XNonce::from(nonce), payload).ok().map(Zeroizing::new)
}

fn associated(id: &str) -> Vec<u8> {
    [SCHEMA.as_bytes(), b"\0", id.as_bytes()].concat()
}

fn shown(id: &str) -> String {
    id.chars().take(SECRET_ID_MAX_BYTES).collect()
}

#[cfg(test)]
#[path = "vault_tests.rs"]
mod tests;
