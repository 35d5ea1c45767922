//! The log of receipts: what extensions put on record, so that nobody can change it afterwards without being seen.
//!
//! `<data>/receipts.jsonl` has one receipt in each line: `{"body":{…},"sig":"…"}`. A body holds its number, and the
//! SHA-256 of the whole line before it (of the public key, in the first). `sig` is the Ed25519 signature of the body's
//! bytes. A receipt is given out when its line is on disk. `<data>/receipts.head.json` says, signed too, how many there
//! are and what the last one's hash is.
//!
//! [`verify`] needs the log and the public key (`<data>/receipts.pub`), no key of this computer, and names the first
//! line that is not as it was written. A log that was cut off at its end is found by its head. It is not found where
//! the head is gone, too, or where both were put back together to an earlier state: keep a copy of the head elsewhere
//! if that matters.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use toolshelf_core::digest::{Digest, to_hex};
use toolshelf_core::refusal::{Code, Refusal};

use super::files;

/// Longest action of a receipt, in bytes.
pub(crate) const RECEIPT_ACTION_MAX_BYTES: usize = 256;
/// Longest payload of a receipt, in bytes.
pub(crate) const RECEIPT_PAYLOAD_MAX_BYTES: usize = 16 * 1024;
/// Largest log, in bytes; beyond it nothing is put on record until the log has been moved away.
pub(crate) const RECEIPTS_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// Longer than any line: each byte of a text may be written as six.
const LINE_MAX_BYTES: u64 = 256 * 1024;
const HEAD_MAX_BYTES: u64 = 4 * 1024;

/// What is put on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReceiptBody {
    /// Number of the receipt, from 1.
    pub(crate) seq: u64,
    /// When, in milliseconds since the beginning of 1970.
    pub(crate) at_unix_ms: u64,
    /// Which extension.
    pub(crate) extension_id: String,
    /// Which of its tools.
    pub(crate) tool: String,
    /// On whose behalf.
    pub(crate) passport_fpr: String,
    /// In which call.
    pub(crate) request_id: String,
    /// What was done, in the extension's words.
    pub(crate) action: String,
    /// What belongs to it, in the extension's words.
    pub(crate) payload: String,
    /// Hash of the line before.
    pub(crate) prev: Digest,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    /// What is on record.
    pub(crate) body: ReceiptBody,
    /// Signature of the body, in standard Base64.
    pub(crate) sig: String,
}

/// What an extension says, and who it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewReceipt<'r> {
    pub(crate) extension_id: &'r str,
    pub(crate) tool: &'r str,
    pub(crate) passport_fpr: &'r str,
    pub(crate) request_id: &'r str,
    pub(crate) action: &'r str,
    pub(crate) payload: &'r str,
}

/// How far the log goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    seq: u64,
    hash: Digest,
    sig: String,
}

/// Why nothing is put on record, or a log is not what it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiptsError {
    /// Something that is too long.
    #[error("a receipt's {field} has at most {most} bytes")]
    TooLong {
        /// What.
        field: &'static str,
        /// Its bound.
        most: usize,
    },
    /// The log has its largest size.
    #[error("the receipt log is full: it has {RECEIPTS_MAX_BYTES} bytes; move it away together with its head")]
    Full,
    /// A line is not as it was written.
    #[error("receipt log '{}' is broken in line {line}: {why}", .path.display())]
    Broken {
        /// The log.
        path: PathBuf,
        /// The first such line, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Lines are missing at the end.
    #[error("receipt log '{}' was cut off: it has {found} receipts, and its head counts {expected}", .path.display())]
    Truncated {
        /// The log.
        path: PathBuf,
        /// Receipts in it.
        found: u64,
        /// Receipts that there were.
        expected: u64,
    },
    /// The head is not as it was written.
    #[error("the head of receipt log '{}' is broken: {why}", .path.display())]
    BrokenHead {
        /// The log.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Not a public key.
    #[error("a public key is 64 hexadecimal digits of an Ed25519 key")]
    NoKey,
    /// The log or the key cannot be read or written.
    #[error("receipt log '{}' cannot be used: {err}", .path.display())]
    Io {
        /// The log.
        path: PathBuf,
        /// What the system says.
        #[source]
        err: io::Error,
    },
}

impl From<ReceiptsError> for Refusal {
    fn from(err: ReceiptsError) -> Self {
        let code = match &err {
            ReceiptsError::TooLong { .. } | ReceiptsError::Full => Code::OverBudget,
            ReceiptsError::Broken { .. } | ReceiptsError::Truncated { .. } | ReceiptsError::BrokenHead { .. } => {
                Code::ReceiptsDamaged
            }
            ReceiptsError::NoKey => Code::InvalidArgument,
            ReceiptsError::Io { .. } => Code::StorageUnavailable,
        };
        Self::new(code, err.to_string())
    }
}

/// The log of a data folder, to be written.
pub(crate) struct ReceiptLog {
    path: PathBuf,
    key: SigningKey,
    // Where the next line goes. Nothing where the last write failed: then it is looked up again.
    end: Mutex<Option<End>>,
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    seq: u64,
    hash: Digest,
    bytes: u64,
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

impl ReceiptLog {
    /// Opens the log of the data folder `data`. Its key is made where there is none.
    ///
    /// # Errors
    /// A [`ReceiptsError`] when the key cannot be read or made.
    pub(crate) fn open(data: &Path) -> Result<Self, ReceiptsError> {
        let path = data.join("receipts.jsonl");
        let failed = |err| ReceiptsError::Io { path: path.clone(), err };
        let key = SigningKey::from_bytes(&*files::key_file(&data.join("receipts.key")).map_err(failed)?);
        let public = data.join("receipts.pub");
        let hex = to_hex(key.verifying_key().as_bytes());
        if files::read_bounded(&public, 64).map_err(failed)?.as_deref() != Some(hex.as_bytes()) {
            files::write_whole(&public, hex.as_bytes()).map_err(failed)?;
        }
        Ok(Self { path, key, end: Mutex::new(None) })
    }

    /// The key that the log is verified with.
    pub(crate) fn public_key(&self) -> VerifyingKey {
        self.key.verifying_key()
    }

    /// Puts something on record. The receipt is on disk when it is given back.
    ///
    /// # Errors
    /// A [`ReceiptsError`]; a log whose end is damaged is not written on.
    pub(crate) fn append(&self, new: NewReceipt<'_>, now_unix_ms: u64) -> Result<Receipt, ReceiptsError> {
        for (field, text, most) in [
            ("action", new.action, RECEIPT_ACTION_MAX_BYTES),
            ("payload", new.payload, RECEIPT_PAYLOAD_MAX_BYTES),
        ] {
            if text.len() > most {
                return Err(ReceiptsError::TooLong { field, most });
            }
        }
        let failed = |err| ReceiptsError::Io { path: self.path.clone(), err };
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = self.open_file().map_err(failed)?;
        // Another program may have written since.
        file.lock().map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let last = match end.take() {
            Some(last) if last.bytes == length => last,
            _ => self.find_end(&mut file)?,
        };
        if last.bytes >= RECEIPTS_MAX_BYTES {
            return Err(ReceiptsError::Full);
        }
        let body = ReceiptBody {
            seq: last.seq + 1,
            at_unix_ms: now_unix_ms,
            extension_id: new.extension_id.to_owned(),
            tool: new.tool.to_owned(),
            passport_fpr: new.passport_fpr.to_owned(),
            request_id: new.request_id.to_owned(),
            action: new.action.to_owned(),
            payload: new.payload.to_owned(),
            prev: last.hash,
        };
        let sig = self.key.sign(&body_bytes(&body).map_err(failed)?);
        let receipt = Receipt { body, sig: BASE64_STANDARD.encode(sig.to_bytes()) };
        let mut line = serde_json::to_vec(&receipt).map_err(|err| failed(err.into()))?;
        let hash = Digest::of(&line);
        line.push(b'\n');
        file.set_len(last.bytes).map_err(failed)?;
        file.seek(SeekFrom::Start(last.bytes)).map_err(failed)?;
        file.write_all(&line).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        let seq = receipt.body.seq;
        // The receipt is on record. A head that lags behind is caught up with the next one.
        let _ = self.write_head(seq, hash);
        *end = Some(End { seq, hash, bytes: last.bytes + line.len() as u64 });
        Ok(receipt)
    }

    /// The newest receipts, the newest first.
    ///
    /// # Errors
    /// A [`ReceiptsError`] for a log that cannot be read, or a line in it.
    pub(crate) fn newest(&self, most: usize, extension: Option<&str>) -> Result<Vec<Receipt>, ReceiptsError> {
        let mut newest = std::collections::VecDeque::new();
        walk(&self.path, |line, _, receipt| {
            if receipt.body.seq != line {
                return Err(format!("it has the number {}", receipt.body.seq));
            }
            if extension.is_none_or(|extension| receipt.body.extension_id == extension) {
                newest.push_front(receipt);
                newest.truncate(most);
            }
            Ok(())
        })?;
        Ok(newest.into())
    }

    fn open_file(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            files::make_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(&self.path)
    }

    /// Where the next line goes. What stands behind the last whole line was never given out as a receipt: the power
    /// failed while it was written, and the next line takes its place.
    fn find_end(&self, file: &mut File) -> Result<End, ReceiptsError> {
        let failed = |err| ReceiptsError::Io { path: self.path.clone(), err };
        let key = self.key.verifying_key();
        let (bytes, last) = last_line(file).map_err(failed)?;
        let end = match last {
            None => End { seq: 0, hash: genesis(&key), bytes: 0 },
            Some(line) => {
                let broken = |why: &str| ReceiptsError::Broken {
                    path: self.path.clone(),
                    line: count_lines(&self.path),
                    why: why.to_owned(),
                };
                let receipt = parse(&line).map_err(|why| broken(&why))?;
                check_signature(&key, &receipt).map_err(|why| broken(&why))?;
                End { seq: receipt.body.seq, hash: Digest::of(&line), bytes }
            }
        };
        match read_head(&self.path, &key)? {
            Some(head) if head.seq > end.seq => {
                let path = self.path.clone();
                Err(ReceiptsError::Truncated { path, found: end.seq, expected: head.seq })
            }
            _ => Ok(end),
        }
    }

    fn write_head(&self, seq: u64, hash: Digest) -> io::Result<()> {
        let sig = self.key.sign(&head_bytes(seq, hash));
        let head = Head { seq, hash, sig: BASE64_STANDARD.encode(sig.to_bytes()) };
        files::write_whole(&head_path(&self.path), &serde_json::to_vec(&head)?)
    }
}

impl fmt::Debug for ReceiptLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiptLog").field("path", &self.path).finish_non_exhaustive()
    }
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
    let digits = Digest::parse(hex.trim()).ok_or(ReceiptsError::NoKey)?;
    let bytes = from_hex(&digits.to_string());
    VerifyingKey::from_bytes(&bytes).ok().filter(|key| !key.is_weak()).ok_or(ReceiptsError::NoKey)
}

fn from_hex(digits: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (byte, at) in bytes.iter_mut().zip((0..digits.len()).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or_default();
    }
    bytes
}

/// Shows every line to `look`, and counts them.
fn walk(
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
            return Err(broken("it does not end; it was never given out as a receipt, or it was cut".to_owned()));
        }
        let receipt = parse(&line).map_err(broken)?;
        look(number, Digest::of(&line), receipt).map_err(broken)?;
    }
    Ok(0)
}

/// The last whole line of a log, and where it ends.
fn last_line(file: &mut File) -> io::Result<(u64, Option<Vec<u8>>)> {
    let length = file.seek(SeekFrom::End(0))?;
    // A torn line behind the last whole one may be as long as it.
    let from = length.saturating_sub(2 * LINE_MAX_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.take(2 * LINE_MAX_BYTES).read_to_end(&mut tail)?;
    let Some(end) = tail.iter().rposition(|byte| *byte == b'\n') else {
        return if from == 0 { Ok((0, None)) } else { Err(io::Error::other("its last line is too long")) };
    };
    let start = tail[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Ok((from + end as u64 + 1, Some(tail[start..end].to_vec())))
}

fn count_lines(path: &Path) -> u64 {
    let Ok(file) = File::open(path) else { return 0 };
    BufReader::new(file).split(b'\n').map_while(Result::ok).count() as u64
}

fn parse(line: &[u8]) -> Result<Receipt, String> {
    let receipt: Receipt = serde_json::from_slice(line).map_err(|err| format!("it is no receipt: {err}"))?;
    // One spelling, so that the signature covers each byte of the line.
    match serde_json::to_vec(&receipt) {
        Ok(bytes) if bytes == line => Ok(receipt),
        _ => Err("it is not spelled as it was written".to_owned()),
    }
}

fn check_signature(key: &VerifyingKey, receipt: &Receipt) -> Result<(), String> {
    let bytes = body_bytes(&receipt.body).map_err(|err| err.to_string())?;
    check(key, &bytes, &receipt.sig).ok_or_else(|| "its signature is not one of this key".to_owned())
}

fn check(key: &VerifyingKey, bytes: &[u8], sig: &str) -> Option<()> {
    let sig: [u8; 64] = BASE64_STANDARD.decode(sig).ok()?.try_into().ok()?;
    key.verify_strict(bytes, &Signature::from_bytes(&sig)).ok()
}

fn read_head(log: &Path, key: &VerifyingKey) -> Result<Option<Head>, ReceiptsError> {
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

fn head_path(log: &Path) -> PathBuf {
    log.with_extension("head.json")
}

// What is signed begins with what it is, so that no signature can stand for something else.
fn body_bytes(body: &ReceiptBody) -> io::Result<Vec<u8>> {
    let mut bytes = b"toolshelf.receipt.v1\0".to_vec();
    serde_json::to_writer(&mut bytes, body)?;
    Ok(bytes)
}

fn head_bytes(seq: u64, hash: Digest) -> Vec<u8> {
    format!("toolshelf.receipts.head.v1\0{seq}\0{hash}").into_bytes()
}

fn genesis(key: &VerifyingKey) -> Digest {
    Digest::of(&[b"toolshelf.receipts.v1\0", key.as_bytes().as_slice()].concat())
}

#[cfg(test)]
#[path = "receipts_tests.rs"]
mod tests;
