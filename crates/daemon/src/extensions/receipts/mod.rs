//! The log of receipts: what extensions put on record, so that nobody can change it afterwards without being seen.
//!
//! `<data>/receipts.jsonl` has one receipt in each line: `{"body":{…},"sig":"…"}`. A body holds its number, and the
//! SHA-256 of the whole line before it (of the public key, in the first). `sig` is the Ed25519 signature of the body's
//! bytes. A receipt is given out when its line is on disk. `<data>/receipts.head.json` says, signed too, how many there
//! are and what the last one's hash is.
//!
//! [`chain::verify`] needs the log and the public key (`<data>/receipts.pub`), no key of this computer, and names the first
//! line that is not as it was written. A log that was cut off at its end is found by its head. It is not found where
//! the head is gone, too, or where both were put back together to an earlier state: keep a copy of the head elsewhere
//! if that matters.
//!
//! | part | idea |
//! |---|---|
//! | `log` | the log as it is written |
//! | `chain` | the log as it is checked |

pub(crate) mod chain;
mod log;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolshelf_core::digest::Digest;
use toolshelf_core::refusal::{Code, Refusal};

pub(crate) use self::log::ReceiptLog;

/// Longest action of a receipt, in bytes.
pub(crate) const RECEIPT_ACTION_MAX_BYTES: usize = 256;
/// Longest payload of a receipt, in bytes.
pub(crate) const RECEIPT_PAYLOAD_MAX_BYTES: usize = 16 * 1024;
/// Largest log, in bytes; beyond it nothing is put on record until the log has been moved away.
pub(crate) const RECEIPTS_MAX_BYTES: u64 = 1024 * 1024 * 1024;

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
    #[error(
        "the receipt log is full: it has {RECEIPTS_MAX_BYTES} bytes; move it away together with its head"
    )]
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
            ReceiptsError::Broken { .. }
            | ReceiptsError::Truncated { .. }
            | ReceiptsError::BrokenHead { .. } => Code::ReceiptsDamaged,
            ReceiptsError::NoKey => Code::InvalidArgument,
            ReceiptsError::Io { .. } => Code::StorageUnavailable,
        };
        Self::new(code, err.to_string())
    }
}
