//! The key that seals addresses: 32 random bytes in a file of the data folder. The environment's name follows from it.

use std::fmt;
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use toolshelf_core::Digest;
use toolshelf_core::address::{key_epoch, key_epoch_input};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_host::Sealer;
use toolshelf_sandbox::private;
use zeroize::Zeroizing;

/// The key's file, in the data folder.
const KEY_FILE: &str = "task.key";
/// Length of a key, in bytes.
pub(crate) const KEY_BYTES: usize = 32;
/// What the environment's name is a hash of, besides the key.
const ENVIRONMENT_LABEL: &[u8] = b"toolshelf machine environment 1\0";

/// The key.
pub(crate) struct FileSealer {
    key: Zeroizing<[u8; KEY_BYTES]>,
    epoch: String,
}

impl FileSealer {
    /// Takes the key of the data folder, which is made where it is missing.
    ///
    /// # Errors
    /// [`Code::TaskEnvironmentUnverified`] when it cannot be made or read, is a link, has another length, belongs to
    /// somebody else or is open to others.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, Refusal> {
        let path = data_dir.join(KEY_FILE);
        let key = private::key::<KEY_BYTES>(&path).map_err(|err| {
            let why = format!("the key of this host in {} cannot be used: {err}", path.display());
            Refusal::new(Code::TaskEnvironmentUnverified, why)
        })?;
        Ok(Self::of(key))
    }

    /// Seals with a key that is kept somewhere else.
    pub(crate) fn of_key(key: [u8; KEY_BYTES]) -> Self {
        Self::of(Zeroizing::new(key))
    }

    fn of(key: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        Self { epoch: key_epoch(&Digest::of(&key_epoch_input(&*key))), key }
    }

    /// 16 hexadecimal digits that stand for this host as long as it has its key.
    pub(crate) fn host_id(&self) -> String {
        Digest::of(&[ENVIRONMENT_LABEL, &*self.key].concat()).prefix()
    }

    fn mac(&self, bytes: &[u8]) -> Hmac<Sha256> {
        let mut block = [0; 64];
        block[..KEY_BYTES].copy_from_slice(&*self.key);
        // HMAC pads a shorter key with zeros itself; a whole block needs no check of its length.
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(bytes);
        mac
    }
}

impl Sealer for FileSealer {
    async fn seal(&self, bytes: &[u8]) -> Result<[u8; 32], Refusal> {
        Ok(self.mac(bytes).finalize().into_bytes().into())
    }

    async fn verify(&self, bytes: &[u8], mac: &[u8; 32]) -> bool {
        self.mac(bytes).verify_slice(mac).is_ok()
    }

    fn epoch(&self) -> &str {
        &self.epoch
    }

    fn nonce(&self) -> [u8; 16] {
        random()
    }
}

impl fmt::Debug for FileSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSealer").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// Random bytes of the system.
pub(crate) fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    // So few bytes are always there once the system is up; until then this waits.
    while private::fill_random(&mut bytes).is_err() {}
    bytes
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[tokio::test]
    async fn a_mac_is_the_one_of_the_standard_and_holds_for_its_bytes_alone() {
        // RFC 4231, test case 2, whose key is padded with zeros.
        let mut key = [0; KEY_BYTES];
        key[..4].copy_from_slice(b"Jefe");
        let sealer = FileSealer { key: Zeroizing::new(key), epoch: String::new() };
        let mac = sealer.seal(b"what do ya want for nothing?").await.unwrap();
        let known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(toolshelf_core::digest::to_hex(&mac), known);
        assert!(sealer.verify(b"what do ya want for nothing?", &mac).await);
        assert!(!sealer.verify(b"what do ya want for nothing!", &mac).await);
        for bit in 0..256 {
            let mut changed = mac;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!sealer.verify(b"what do ya want for nothing?", &changed).await);
        }
    }

    #[test]
    fn a_host_keeps_its_name_as_long_as_it_has_its_key() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = FileSealer::open(one.path()).unwrap();
        assert_eq!(FileSealer::open(one.path()).unwrap().host_id(), first.host_id());
        assert_ne!(FileSealer::open(other.path()).unwrap().host_id(), first.host_id());
        assert_ne!(first.host_id(), first.epoch());
        assert_eq!(first.host_id().len(), 16);
        assert_ne!(random(), random());
    }

    #[test]
    fn a_key_that_is_not_the_hosts_own_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(KEY_FILE);
        let refused = |what: &str| {
            let refusal = FileSealer::open(dir.path()).unwrap_err();
            assert_eq!(refusal.code, Code::TaskEnvironmentUnverified, "{what}");
            assert!(refusal.why.contains(KEY_FILE), "{}", refusal.why);
        };
        FileSealer::open(dir.path()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        refused("others can read it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        FileSealer::open(dir.path()).unwrap();
        let aside = dir.path().join("aside");
        fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        refused("a link");
        fs::remove_file(&path).unwrap();
        fs::write(&path, [7; 31]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        refused("too short");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        refused("a folder");
    }
}
