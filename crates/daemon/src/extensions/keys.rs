//! The keyring on disk: the publishers that are trusted.
//!
//! `<data>/extensions/trusted-keys.json`, for its owner alone. It is read on every use, so that a key that another
//! program removes is not trusted a moment longer.

use std::io;
use std::path::{Path, PathBuf};

use toolshelf_core::extension::keyring::{KeyFault, Keyring, TrustedKey};
use toolshelf_core::problem::ProblemKind;
use toolshelf_core::refusal::{Code, Refusal};

use super::files;

/// Name of the keyring's file in the folder of extensions. No extension can have it as its id.
pub(super) const KEYRING_FILE: &str = "trusted-keys.json";
pub(super) const KEYRING_LOCK: &str = "trusted-keys.lock";
const FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Why the keyring says no.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyringError {
    /// The key is none that can be trusted.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// There is no key of that passport.
    #[error("key for passport '{0}' not found")]
    NotFound(String),
    /// The file is no keyring.
    #[error("'{}' is no keyring: {why}", .path.display())]
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

impl KeyringError {
    /// What kind of problem it is over HTTP.
    pub(crate) const fn kind(&self) -> ProblemKind {
        match self {
            Self::Key(KeyFault::Full) => ProblemKind::Conflict,
            Self::Key(_) => ProblemKind::BadRequest,
            Self::NotFound(_) => ProblemKind::NotFound,
            Self::Malformed { .. } | Self::Io { .. } => ProblemKind::Internal,
        }
    }
}

impl From<KeyringError> for Refusal {
    fn from(err: KeyringError) -> Self {
        let code = match &err {
            KeyringError::Key(KeyFault::Full) => Code::OverBudget,
            KeyringError::Key(_) => Code::InvalidArgument,
            KeyringError::NotFound(_) => Code::KeyUnknown,
            KeyringError::Malformed { .. } | KeyringError::Io { .. } => Code::StorageUnavailable,
        };
        Self::new(code, err.to_string())
    }
}

/// The keyring of a data folder.
#[derive(Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
    lock: PathBuf,
}

impl KeyFile {
    /// The keyring of the data folder `data`. Nothing is read yet.
    pub(crate) fn of(data: &Path) -> Self {
        let folder = data.join("extensions");
        Self { path: folder.join(KEYRING_FILE), lock: folder.join(KEYRING_LOCK) }
    }

    /// The keys as they are now; none where there is no file.
    ///
    /// # Errors
    /// [`KeyringError::Malformed`] and [`KeyringError::Io`].
    pub(crate) fn read(&self) -> Result<Keyring, KeyringError> {
        let bytes = files::read_bounded(&self.path, FILE_MAX_BYTES).map_err(|err| self.io(err))?;
        let Some(bytes) = bytes else { return Ok(Keyring::default()) };
        serde_json::from_slice(&bytes)
            .map_err(|err| KeyringError::Malformed { path: self.path.clone(), why: err.to_string() })
    }

    /// Trusts a key; one of the same passport is replaced.
    ///
    /// # Errors
    /// A [`KeyringError`]; then the keyring is as it was.
    pub(crate) fn add(&self, key: TrustedKey) -> Result<(), KeyringError> {
        let _lock = files::lock(&self.lock).map_err(|err| self.io(err))?;
        let mut keyring = self.read()?;
        keyring.add(key)?;
        self.write(&keyring)
    }

    /// Trusts the key of a passport no longer.
    ///
    /// # Errors
    /// A [`KeyringError`]; [`KeyringError::NotFound`] where there is none.
    pub(crate) fn remove(&self, passport_fpr: &str) -> Result<(), KeyringError> {
        let _lock = files::lock(&self.lock).map_err(|err| self.io(err))?;
        let mut keyring = self.read()?;
        if !keyring.remove(passport_fpr) {
            return Err(KeyringError::NotFound(toolshelf_core::refusal::cut(passport_fpr, 100)));
        }
        self.write(&keyring)
    }

    fn write(&self, keyring: &Keyring) -> Result<(), KeyringError> {
        let bytes = serde_json::to_vec_pretty(keyring).map_err(|err| self.io(err.into()))?;
        files::write_whole(&self.path, &bytes).map_err(|err| self.io(err))
    }

    fn io(&self, err: io::Error) -> KeyringError {
        KeyringError::Io { path: self.path.clone(), err }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use toolshelf_core::extension::TrustTier;
    use toolshelf_core::extension::signature::public_key_hex;

    use super::*;

    fn key(passport: &str, secret: u8) -> TrustedKey {
        TrustedKey {
            passport_fpr: passport.to_owned(),
            public_key_hex: public_key_hex(&[secret; 32]),
            trust_tier: TrustTier::LocallySigned,
            added_by: None,
        }
    }

    #[test]
    fn keys_are_added_replaced_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let keys = KeyFile::of(dir.path());
        assert_eq!(keys.read().unwrap().keys().len(), 0);
        keys.add(key("p_b", 1)).unwrap();
        keys.add(key("p_a", 2)).unwrap();
        keys.add(key("p_b", 3)).unwrap();
        let keyring = KeyFile::of(dir.path()).read().unwrap();
        let of_b = public_key_hex(&[3; 32]);
        assert_eq!(keyring.keys().map(|key| key.passport_fpr.as_str()).collect::<Vec<_>>(), ["p_a", "p_b"]);
        assert_eq!(keyring.keys().nth(1).unwrap().public_key_hex, of_b);
        assert_eq!(fs::metadata(&keys.path).unwrap().permissions().mode() & 0o777, 0o600);
        keys.remove("p_b").unwrap();
        assert!(matches!(keys.remove("p_b"), Err(KeyringError::NotFound(_))));
    }

    #[test]
    fn a_broken_keyring_trusts_nobody_and_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let keys = KeyFile::of(dir.path());
        keys.add(key("p_a", 1)).unwrap();
        for broken in
            ["{", "{}", r#"[{"passport_fpr":"p","public_key_hex":"00","trust_tier":"first_party"}]"#]
        {
            fs::write(&keys.path, broken).unwrap();
            assert!(matches!(keys.read(), Err(KeyringError::Malformed { .. })), "{broken}");
            assert!(keys.add(key("p_b", 2)).is_err());
            assert_eq!(fs::read_to_string(&keys.path).unwrap(), broken);
        }
    }

    #[test]
    fn programs_that_add_at_the_same_time_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let data = dir.path();
                scope.spawn(move || KeyFile::of(data).add(key(&format!("p_{number}"), number)).unwrap());
            }
        });
        assert_eq!(KeyFile::of(dir.path()).read().unwrap().keys().len(), 8);
    }
}
