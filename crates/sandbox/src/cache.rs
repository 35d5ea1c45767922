//! Compiled code on disk, so that a program that starts does not compile again what it has compiled before.
//!
//! Compiled code is machine code: who can choose it can run anything. So the folder is the host's own (mode 0700, never
//! the shelf's), and every file carries a MAC under a key that only this host has. What does not verify is not used,
//! whatever the reason; it is compiled and written anew.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use toolshelf_core::digest::Digest;
use zeroize::Zeroizing;

use crate::engine;
use crate::private;
use crate::process::COMPILED_MAX_BYTES;

/// Most bytes that are kept; the files that were written first make room.
const CACHE_MAX_BYTES: u64 = 256 * 1024 * 1024;
const MAC_BYTES: usize = 32;
/// As long as a block of SHA-256, so that HMAC takes it as it is.
const KEY_BYTES: usize = 64;
const EXTENSION: &str = "code";

/// The folder of compiled code.
#[derive(Clone)]
pub struct CodeCache {
    folder: PathBuf,
    key: Zeroizing<[u8; KEY_BYTES]>,
    fingerprint: Digest,
}

impl CodeCache {
    /// Opens the cache in `folder`, with the key in the file `key`; both are made where they are missing.
    ///
    /// # Errors
    /// When one of them cannot be made or read, belongs to somebody else, or is open to others.
    pub fn open(folder: &Path, key: &Path) -> io::Result<Self> {
        private::folder(folder)?;
        let key = private::key(key)?;
        let engine = engine::compiling().map_err(io::Error::other)?;
        Ok(Self { folder: folder.to_owned(), key, fingerprint: engine::fingerprint(&engine) })
    }

    /// The same folder under the same key, for the code of extensions: it is compiled for another engine, so each of
    /// the two finds only its own.
    ///
    /// # Errors
    /// When this computer's processor is none that wasmtime compiles for.
    #[cfg(feature = "wasm-extensions")]
    pub fn for_extensions(&self) -> io::Result<Self> {
        let fingerprint = crate::crux::engine::code_fingerprint().map_err(io::Error::other)?;
        Ok(Self { fingerprint, ..self.clone() })
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The code of the module with that digest, if it is there and is what this host wrote.
    #[must_use]
    pub fn load(&self, module: Digest) -> Option<Vec<u8>> {
        let most = (MAC_BYTES + COMPILED_MAX_BYTES) as u64;
        let file = private::open_no_follow(&self.path(module)).ok()?;
        if file.metadata().ok().filter(|about| about.is_file())?.len() > most {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).ok()?;
        let mac = bytes.get(..MAC_BYTES)?.to_vec();
        let code = bytes.split_off(MAC_BYTES);
        self.mac(module, &code).verify_slice(&mac).ok()?;
        Some(code)
    }

    /// Keeps the code of a module. A cache that cannot be written only costs time, so nobody hears of it.
    pub fn store(&self, module: Digest, code: &[u8]) {
        let _ = self.write(module, code);
    }

    fn write(&self, module: Digest, code: &[u8]) -> io::Result<()> {
        self.make_room(code.len() as u64)?;
        let path = self.path(module);
        // A name that no other process uses; what one that died has left behind is replaced.
        let draft = path.with_extension(format!("{}.draft", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        let mac = self.mac(module, code).finalize().into_bytes();
        let written =
            file.write_all(&mac).and_then(|()| file.write_all(code)).and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }

    /// The MAC binds the code to the module that it comes from and to all else that it depends on.
    fn mac(&self, module: Digest, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new(&(*self.key).into());
        mac.update(b"toolshelf compiled code 1\0");
        mac.update(module.to_string().as_bytes());
        mac.update(self.fingerprint.to_string().as_bytes());
        mac.update(code);
        mac
    }

    fn path(&self, module: Digest) -> PathBuf {
        let name = Digest::of(format!("{module}{}", self.fingerprint).as_bytes());
        self.folder.join(name.to_string()).with_extension(EXTENSION)
    }

    fn make_room(&self, needed: u64) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(&self.folder)?
            .flatten()
            .filter_map(|entry| {
                let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((about.modified().ok()?, about.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut total = needed + files.iter().map(|(_, bytes, _)| bytes).sum::<u64>();
        for (_, bytes, path) in files {
            if total <= CACHE_MAX_BYTES {
                break;
            }
            fs::remove_file(path)?;
            total -= bytes;
        }
        Ok(())
    }
}

impl std::fmt::Debug for CodeCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeCache").field("folder", &self.folder).finish_non_exhaustive()
    }
}
