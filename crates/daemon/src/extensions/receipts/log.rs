//! The log as it is written.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use toolshelf_core::digest::{Digest, to_hex};
use toolshelf_sandbox::private;

use super::chain::{
    Head, LINE_MAX_BYTES, body_bytes, check_signature, genesis, head_bytes, head_path, parse, read_head, walk,
};
use super::{
    NewReceipt, RECEIPT_ACTION_MAX_BYTES, RECEIPT_PAYLOAD_MAX_BYTES, RECEIPTS_MAX_BYTES, Receipt,
    ReceiptBody, ReceiptsError,
};
use crate::extensions::{files, guard};

/// The log of a data folder, to be written.
pub(crate) struct ReceiptLog {
    pub(super) path: PathBuf,
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

impl ReceiptLog {
    /// Opens the log of the data folder `data`. Its key is made where there is none.
    ///
    /// # Errors
    /// A [`ReceiptsError`] when the key cannot be read or made.
    pub(crate) fn open(data: &Path) -> Result<Self, ReceiptsError> {
        let path = data.join("receipts.jsonl");
        let failed = |err| ReceiptsError::Io { path: path.clone(), err };
        let key = SigningKey::from_bytes(&*private::key(&data.join("receipts.key")).map_err(failed)?);
        let public = data.join("receipts.pub");
        let hex = to_hex(key.verifying_key().as_bytes());
        if files::read_bounded(&public, 64).map_err(failed)?.as_deref() != Some(hex.as_bytes()) {
            files::write_whole(&public, hex.as_bytes()).map_err(failed)?;
        }
        Ok(Self { path, key, end: Mutex::new(None) })
    }

    /// Where the log is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
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
        let mut end = guard(&self.end);
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
            private::make_folder(folder)?;
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
