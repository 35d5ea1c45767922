//! The key of the vault, and where it lies: in the system's keyring, or in a file.
//!
//! | | where the key is |
//! |---|---|
//! | `<data>/vault.key` is there | in it, whatever the setting says: a key that is in use stays where it is |
//! | nothing is sealed yet | `auto`: the keyring where one answers, else the file; `keyring`, `file`: there |
//! | the vault was sealed with a key that is in no file | the keyring |
//!
//! In the keyring a key is named by its own id, which stands in the vault: so a vault never gets another one's key, and
//! the data folder may be moved. [`Vault::move_key`](super::vault::Vault::move_key) is the only way from one place to the
//! other.
//!
//! A keyring may ask a person for a password, or hang. So it is asked on a thread of its own and not waited for any
//! longer than [`KEYRING_PATIENCE`]; one that did not answer is left alone for a while.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolshelf_core::digest::to_hex;
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

use super::files;

/// How long the keyring may take.
pub(crate) const KEYRING_PATIENCE: Duration = Duration::from_secs(3);
/// How long one that failed is not asked again.
const KEYRING_PAUSE: Duration = Duration::from_secs(10);
/// Length of the key, in bytes.
const KEY_BYTES: usize = 32;
/// What keys are filed under in the keyring.
const SERVICE: &str = "toolshelf";

/// Where a key may be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum KeyPlace {
    /// In the keyring where one answers, else in the file.
    #[default]
    Auto,
    /// In the keyring.
    Keyring,
    /// In the file.
    File,
}

impl KeyPlace {
    /// What a setting says; what is none of the three counts as unset.
    pub(crate) fn of_text(text: &str) -> Self {
        match text.to_ascii_lowercase().as_str() {
            "keyring" => Self::Keyring,
            "file" => Self::File,
            _ => Self::Auto,
        }
    }
}

/// Where a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyAt {
    /// In the system's keyring.
    Keyring,
    /// In `vault.key`.
    File,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFault {
    /// The keyring does not answer, or says no.
    #[error("the system's keyring cannot be used: {0}")]
    Keyring(String),
    /// The vault was sealed with a key that is nowhere.
    #[error("the key of the vault is not in '{}'{}", .file.display(), if *.asked { " nor in the system's keyring" } else { ", and TOOLSHELF_VAULT_KEY keeps the keyring from being asked" })]
    Gone {
        /// The file.
        file: PathBuf,
        /// Whether the keyring was asked.
        asked: bool,
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

/// A key, with the id that names it without telling it.
pub(crate) struct VaultKey {
    /// The key.
    pub(crate) bytes: Zeroizing<[u8; KEY_BYTES]>,
    /// Its id.
    pub(crate) id: String,
}

impl VaultKey {
    fn of(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let id = Sha256::new().chain_update(b"toolshelf.vault.key-id\0").chain_update(*bytes).finalize();
        Self { bytes, id: to_hex(&id[..8]) }
    }

    fn random() -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        private::fill_random(&mut *bytes)?;
        Ok(Self::of(bytes))
    }
}

/// The key of one data folder.
pub(crate) struct KeySource {
    file: PathBuf,
    place: KeyPlace,
    /// The key, once it was needed.
    known: Mutex<Option<Arc<VaultKey>>>,
}

impl KeySource {
    /// The key of the data folder `data`. Nothing is read or made yet.
    pub(crate) fn of(data: &Path, place: KeyPlace) -> Self {
        Self { file: data.join("vault.key"), place, known: Mutex::default() }
    }

    /// The file that the key is in, where it is in one.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The key that the vault was sealed with, which may turn out to be another one: `sealed_with` is its id. Where
    /// nothing is sealed yet it is made; whoever asks for that holds the vault's lock.
    ///
    /// # Errors
    /// A [`KeyFault`].
    pub(crate) fn key(&self, sealed_with: Option<&str>) -> Result<Arc<VaultKey>, KeyFault> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = known.as_ref().filter(|key| sealed_with.is_none_or(|id| id == key.id)) {
            return Ok(Arc::clone(key));
        }
        let key = match (self.in_file()?, sealed_with) {
            (Some(key), _) => key,
            (None, Some(id)) => self.of_id(id)?,
            (None, None) => self.new_key()?,
        };
        let key = Arc::new(key);
        *known = Some(Arc::clone(&key));
        Ok(key)
    }

    /// Puts the key, whose id is `id`, into the other place, and says where it was.
    ///
    /// # Errors
    /// A [`KeyFault`]; then it is where it was.
    pub(crate) fn move_to(&self, to: KeyAt, id: &str) -> Result<KeyAt, KeyFault> {
        let io = |err| self.io(err);
        match (self.in_file()?, to) {
            (Some(_), KeyAt::File) => Ok(KeyAt::File),
            (Some(key), KeyAt::Keyring) => {
                put(&key)?;
                fs::remove_file(&self.file).map_err(io)?;
                if let Some(folder) = self.file.parent() {
                    files::sync_folder(folder).map_err(io)?;
                }
                Ok(KeyAt::File)
            }
            (None, KeyAt::Keyring) => self.of_id(id).map(|_| KeyAt::Keyring),
            (None, KeyAt::File) => {
                let key = get(id)?.ok_or_else(|| self.gone(true))?;
                files::write_whole(&self.file, &*key.bytes).map_err(io)?;
                // It is in use from the file already, so one that stays behind does no harm.
                let _ = forget(id);
                Ok(KeyAt::Keyring)
            }
        }
    }

    /// Where the key is, or would be put, in a sentence, and whether all is well with that. The keyring is asked.
    pub(crate) fn report(&self, sealed_with: Option<&str>) -> (String, Option<bool>) {
        let file = self.file.display();
        match (self.in_file(), sealed_with) {
            (Err(fault), _) => (fault.to_string(), Some(false)),
            (Ok(Some(_)), _) if self.place == KeyPlace::Keyring => {
                (format!("in {file}; `toolshelf secret move-key keyring` moves it"), Some(true))
            }
            (Ok(Some(_)), _) => (format!("in {file}, for its owner alone"), Some(true)),
            (Ok(None), Some(id)) => match self.of_id(id) {
                Ok(_) => ("in the system's keyring".to_owned(), Some(true)),
                Err(fault) => (fault.to_string(), Some(false)),
            },
            (Ok(None), None) if self.place == KeyPlace::File => {
                (format!("none yet; it will lie in {file}"), None)
            }
            (Ok(None), None) => match (answers(), self.place) {
                (Ok(()), _) => ("none yet; it will lie in the system's keyring".to_owned(), None),
                (Err(fault), KeyPlace::Keyring) => (format!("none yet, and {fault}"), Some(false)),
                (Err(fault), _) => (format!("none yet; it will lie in {file}, as {fault}"), None),
            },
        }
    }

    fn in_file(&self) -> Result<Option<VaultKey>, KeyFault> {
        match fs::symlink_metadata(&self.file) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(self.io(err)),
            Ok(_) => {}
        }
        private::key(&self.file).map(|bytes| Some(VaultKey::of(bytes))).map_err(|err| self.io(err))
    }

    fn of_id(&self, id: &str) -> Result<VaultKey, KeyFault> {
        // Never another one instead: what is sealed would be lost without a word.
        if self.place == KeyPlace::File {
            return Err(self.gone(false));
        }
        get(id)?.ok_or_else(|| self.gone(true))
    }

    fn new_key(&self) -> Result<VaultKey, KeyFault> {
        if self.place != KeyPlace::File {
            let key = VaultKey::random().map_err(|err| self.io(err))?;
            match put(&key) {
                Ok(()) => return Ok(key),
                Err(fault) if self.place == KeyPlace::Keyring => return Err(fault),
                Err(_) => {}
            }
        }
        private::key(&self.file).map(VaultKey::of).map_err(|err| self.io(err))
    }

    fn gone(&self, asked: bool) -> KeyFault {
        KeyFault::Gone { file: self.file.clone(), asked }
    }

    fn io(&self, err: io::Error) -> KeyFault {
        KeyFault::Io { path: self.file.clone(), err }
    }
}

/// Puts a key into the keyring, and looks whether it is there.
fn put(key: &VaultKey) -> Result<(), KeyFault> {
    let (id, bytes) = (key.id.clone(), key.bytes.clone());
    let kept = ask(move || {
        let entry = keyring::Entry::new(SERVICE, &account(&id))?;
        entry.set_secret(&*bytes)?;
        Ok(Zeroizing::new(entry.get_secret()?).as_slice() == bytes.as_slice())
    })?;
    if kept { Ok(()) } else { Err(KeyFault::Keyring("it keeps something else than it was given".to_owned())) }
}

/// The key of that id, where the keyring has it.
fn get(id: &str) -> Result<Option<VaultKey>, KeyFault> {
    let account = account(id);
    let found = ask(move || match keyring::Entry::new(SERVICE, &account)?.get_secret() {
        Ok(secret) => Ok(Some(Zeroizing::new(secret))),
        Err(keyring::Error::NoEntry) => Ok(None),
        Err(err) => Err(err),
    })?;
    let key = found.and_then(|secret| secret.as_slice().try_into().ok());
    Ok(key.map(|bytes| VaultKey::of(Zeroizing::new(bytes))).filter(|key| key.id == id))
}

fn forget(id: &str) -> Result<(), KeyFault> {
    let account = account(id);
    ask(move || match keyring::Entry::new(SERVICE, &account)?.delete_credential() {
        Ok(()) | Err(keyring::Error::NoEntry) => Ok(()),
        Err(err) => Err(err),
    })
}

/// Is there a keyring that answers?
fn answers() -> Result<(), KeyFault> {
    get("0").map(drop)
}

fn account(id: &str) -> String {
    format!("vault-key-{id}")
}

/// One that did not answer, and when.
static FAILED: Mutex<Option<(Instant, String)>> = Mutex::new(None);
/// Whether a question is still open that nobody waits for any more.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Asks the keyring, on a thread that may be left behind.
fn ask<T: Send + 'static>(
    question: impl FnOnce() -> keyring::Result<T> + Send + 'static,
) -> Result<T, KeyFault> {
    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, why)) = failed.as_ref()
        && at.elapsed() < KEYRING_PAUSE
    {
        return Err(KeyFault::Keyring(why.clone()));
    }
    let end = if OPEN.swap(true, Ordering::AcqRel) {
        Err("an earlier question is not answered yet".to_owned())
    } else {
        ask_and_wait(question)
    };
    *failed = end.as_ref().err().map(|why| (Instant::now(), why.clone()));
    end.map_err(KeyFault::Keyring)
}

fn ask_and_wait<T: Send + 'static>(
    question: impl FnOnce() -> keyring::Result<T> + Send + 'static,
) -> Result<T, String> {
    let (tell, told) = mpsc::channel();
    let asking = std::thread::Builder::new().name("keyring".to_owned()).spawn(move || {
        let answer = question().map_err(|err| described(&err));
        OPEN.store(false, Ordering::Release);
        // Where nobody waits any more, nobody needs it.
        let _ = tell.send(answer);
    });
    if let Err(err) = asking {
        OPEN.store(false, Ordering::Release);
        return Err(err.to_string());
    }
    told.recv_timeout(KEYRING_PATIENCE).unwrap_or_else(|_| {
        Err(format!(
            "it did not answer within {} s; it may be waiting for somebody to unlock it",
            KEYRING_PATIENCE.as_secs()
        ))
    })
}

/// What the keyring says; never what it holds.
fn described(err: &keyring::Error) -> String {
    match err {
        keyring::Error::NoDefaultStore => match keyring::Entry::store_status() {
            Err(err) => described_store(err),
            Ok(()) => err.to_string(),
        },
        err => described_store(err),
    }
}

fn described_store(err: &keyring::Error) -> String {
    match err {
        keyring::Error::BadEncoding(_) | keyring::Error::BadDataFormat(..) => {
            "it holds something of another form".to_owned()
        }
        err => toolshelf_core::refusal::cut(&err.to_string(), 200),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(data: &Path) -> KeySource {
        KeySource::of(data, KeyPlace::File)
    }

    #[test]
    fn a_key_in_the_file_is_made_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let made = source(dir.path()).key(None).unwrap();
        assert_eq!(source(dir.path()).key(None).unwrap().id, made.id);
        assert_eq!(source(dir.path()).key(Some(&made.id)).unwrap().bytes, made.bytes);
        // A file stays in use, whatever is set: the keyring is not even asked.
        assert_eq!(KeySource::of(dir.path(), KeyPlace::Keyring).key(Some(&made.id)).unwrap().id, made.id);
        assert_eq!(source(dir.path()).move_to(KeyAt::File, &made.id).unwrap(), KeyAt::File);
    }

    #[test]
    fn what_is_sealed_never_gets_another_key_in_silence() {
        let dir = tempfile::tempdir().unwrap();
        let fault = source(dir.path()).key(Some("0011223344556677")).err().unwrap();
        assert!(matches!(&fault, KeyFault::Gone { asked: false, .. }), "{fault}");
        assert!(fault.to_string().contains("TOOLSHELF_VAULT_KEY"), "{fault}");
        assert!(!dir.path().join("vault.key").exists());
        let (text, holds) = source(dir.path()).report(Some("0011223344556677"));
        assert_eq!(holds, Some(false), "{text}");
        let (text, holds) = source(dir.path()).report(None);
        assert!(holds.is_none() && text.starts_with("none yet; it will lie in /"), "{text}");
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        for (text, place) in [
            ("auto", KeyPlace::Auto),
            ("Keyring", KeyPlace::Keyring),
            ("file", KeyPlace::File),
            ("", KeyPlace::Auto),
            ("cellar", KeyPlace::Auto),
        ] {
            assert_eq!(KeyPlace::of_text(text), place, "{text}");
        }
    }
}
