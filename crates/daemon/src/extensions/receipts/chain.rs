//! The log as it is checked: each line follows from the one before, and each is signed.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};
use toolshelf_core::digest::Digest;

use super::{Receipt, ReceiptBody, ReceiptsError};
use crate::extensions::files;

/// Longer than any line: each byte of a text may be written as six.
pub(super) const LINE_MAX_BYTES: u64 = 256 * 1024;
const HEAD_MAX_BYTES: u64 = 4 * 1024;

/// How far the log goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) seq: u64,
    pub(super) hash: Digest,
    pub(super) sig: String,
}

/// What a whole log has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Verified {
    /// Receipts in it.
    pub(crate) receipts: u64,
    /// Hash of its last line.
    pub(crate) last: Digest,
    /// Whether a head says that nothing is missing at the end.
    pub(crate) end_confirmed: bool,
}

/// Checks a log from its first line to its last. The head is looked for beside it.
///
/// # Errors
/// A [`ReceiptsError`] that names the first line that is not as it was written.
pub(crate) fn verify(path: &Path, key: &VerifyingKey) -> Result<Verified, ReceiptsError> {
    let head = read_head(path, key)?;
    let mut last = genesis(key);
    let mut head_matches = head.as_ref().is_none_or(|head| head.seq == 0);
    let receipts = walk(path, |line, hash, receipt| {
        if receipt.body.seq != line {
            return Err(format!("it has the number {}", receipt.body.seq));
        }
        if receipt.body.prev != last {
            return Err(format!("it follows {}, not {}", receipt.body.prev.prefix(), last.prefix()));
        }
        check_signature(key, &receipt)?;
        last = hash;
        if let Some(head) = head.as_ref().filter(|head| head.seq == line) {
            head_matches = head.hash == hash;
        }
        Ok(())
    })?;
    match head {
        Some(head) if head.seq > receipts => {
            Err(ReceiptsError::Truncated { path: path.to_owned(), found: receipts, expected: head.seq })
        }
        Some(_) if !head_matches => {
            Err(ReceiptsError::BrokenHead { path: path.to_owned(), why: "it is of another log".to_owned() })
        }
        head => Ok(Verified { receipts, last, end_confirmed: head.is_some() }),
    }
}

/// Reads a public key as it stands in `receipts.pub`.
///
/// # Errors
/// [`ReceiptsError::NoKey`].
pub(crate) fn public_key(hex: &str) -> Result<VerifyingKey, ReceiptsError> {
    let bytes = Digest::parse(hex.trim()).ok_or(ReceiptsError::NoKey)?;
    let key = VerifyingKey::from_bytes(bytes.as_bytes()).ok();
    key.filter(|key| !key.is_weak()).ok_or(ReceiptsError::NoKey)
}

/// Shows every line to `look`, and counts them.
pub(super) fn walk(
    path: &Path,
    mut look: impl FnMut(u64, Digest, Receipt) -> Result<(), String>,
) -> Result<u64, ReceiptsError> {
    let failed = |err| ReceiptsError::Io { path: path.to_owned(), err };
    let mut reader = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(err) => return Err(failed(err)),
    };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut reader).take(LINE_MAX_BYTES).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            return Ok(number - 1);
        }
        let broken = |why: String| ReceiptsError::Broken { path: path.to_owned(), line: number, why };
        if line.pop() != Some(b'\n') {
            return Err(broken(
                "it does not end; it was never given out as a receipt, or it was cut".to_owned(),
            ));
        }
        let receipt = parse(&line).map_err(broken)?;
        look(number, Digest::of(&line), receipt).map_err(broken)?;
    }
    Ok(0)
}

pub(super) fn parse(line: &[u8]) -> Result<Receipt, String> {
    let receipt: Receipt = serde_json::from_slice(line).map_err(|err| format!("it is no receipt: {err}"))?;
    // One spelling, so that the signature covers each byte of the line.
    match serde_json::to_vec(&receipt) {
        Ok(bytes) if bytes == line => Ok(receipt),
        _ => Err("it is not spelled as it was written".to_owned()),
    }
}

pub(super) fn check_signature(key: &VerifyingKey, receipt: &Receipt) -> Result<(), String> {
    let bytes = body_bytes(&receipt.body).map_err(|err| err.to_string())?;
    check(key, &bytes, &receipt.sig).ok_or_else(|| "its signature is not one of this key".to_owned())
}

fn check(key: &VerifyingKey, bytes: &[u8], sig: &str) -> Option<()> {
    let sig: [u8; 64] = BASE64_STANDARD.decode(sig).ok()?.try_into().ok()?;
    key.verify_strict(bytes, &Signature::from_bytes(&sig)).ok()
}

pub(super) fn read_head(log: &Path, key: &VerifyingKey) -> Result<Option<Head>, ReceiptsError> {
    let broken = |why: &str| ReceiptsError::BrokenHead { path: log.to_owned(), why: why.to_owned() };
    let bytes = files::read_bounded(&head_path(log), HEAD_MAX_BYTES);
    let Some(bytes) = bytes.map_err(|err| ReceiptsError::Io { path: log.to_owned(), err })? else {
        return Ok(None);
    };
    let head: Head = serde_json::from_slice(&bytes).map_err(|err| broken(&err.to_string()))?;
    check(key, &head_bytes(head.seq, head.hash), &head.sig)
        .ok_or_else(|| broken("its signature is not one of this key"))?;
    Ok(Some(head))
}

pub(super) fn head_path(log: &Path) -> PathBuf {
    log.with_extension("head.json")
}

// What is signed begins with what it is, so that no signature can stand for something else.
pub(super) fn body_bytes(body: &ReceiptBody) -> io::Result<Vec<u8>> {
    let mut bytes = b"toolshelf.receipt.v1\0".to_vec();
    serde_json::to_writer(&mut bytes, body)?;
    Ok(bytes)
}

pub(super) fn head_bytes(seq: u64, hash: Digest) -> Vec<u8> {
    format!("toolshelf.receipts.head.v1\0{seq}\0{hash}").into_bytes()
}

pub(super) fn genesis(key: &VerifyingKey) -> Digest {
    Digest::of(&[b"toolshelf.receipts.v1\0", key.as_bytes().as_slice()].concat())
}
