//! Every "no" of the extension host, with its problem document and its refusal.

use std::io;
use std::path::PathBuf;

use serde_json::Value;
use toolshelf_core::extension::ExtensionError;
use toolshelf_core::extension::envelope::HostLogEntry;
use toolshelf_core::grant::GrantFault;
use toolshelf_core::problem::{Problem, ProblemKind};
use toolshelf_core::refusal::{Code, Refusal};
use toolshelf_facts::FactError;

use super::keys::KeyringError;
use super::receipts::ReceiptsError;
use super::vault::VaultError;

/// Why the extension host says no.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExtError {
    /// By the rules of extensions.
    #[error(transparent)]
    Extension(#[from] ExtensionError),
    /// By the fact store.
    #[error(transparent)]
    Facts(#[from] FactError),
    /// By the vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// By the log of receipts.
    #[error(transparent)]
    Receipts(#[from] ReceiptsError),
    /// By the keyring.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// A file or folder of the host cannot be read or written.
    #[error("'{}' cannot be used: {err}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        #[source]
        err: io::Error,
    },
    /// What is kept of an extension or a grant is not of its form.
    #[error("the record '{entity}' is damaged: {why}")]
    Damaged {
        /// The fact that holds it.
        entity: String,
        /// What is wrong with it.
        why: String,
    },
    /// A setting that cannot be used.
    #[error("{name} cannot be used: {why}")]
    Setting {
        /// The variable.
        name: &'static str,
        /// Why not.
        why: String,
    },
}

impl From<GrantFault> for ExtError {
    fn from(fault: GrantFault) -> Self {
        Self::Extension(fault.into())
    }
}

impl ExtError {
    /// What the system says of a file.
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |err| Self::Io { path, err }
    }

    /// What kind of problem it is over HTTP.
    pub(crate) fn kind(&self) -> ProblemKind {
        match self {
            Self::Extension(err) => err.kind(),
            Self::Facts(err) => err.kind(),
            Self::Keyring(err) => err.kind(),
            Self::Vault(VaultError::BadId | VaultError::BadLength) => ProblemKind::BadRequest,
            Self::Vault(VaultError::Unknown(_)) => ProblemKind::NotFound,
            Self::Vault(VaultError::Full) => ProblemKind::InsufficientStorage,
            Self::Receipts(ReceiptsError::TooLong { .. }) => ProblemKind::PayloadTooLarge,
            Self::Receipts(ReceiptsError::Full) => ProblemKind::InsufficientStorage,
            Self::Receipts(ReceiptsError::NoKey) => ProblemKind::BadRequest,
            Self::Vault(_)
            | Self::Receipts(_)
            | Self::Io { .. }
            | Self::Damaged { .. }
            | Self::Setting { .. } => ProblemKind::Internal,
        }
    }

    /// The problem document that it is over HTTP.
    pub(crate) fn problem(&self) -> Problem {
        Problem::new(self.kind(), self.to_string())
    }
}

impl From<ExtError> for Refusal {
    fn from(err: ExtError) -> Self {
        match err {
            ExtError::Extension(err) => err.into(),
            ExtError::Facts(err) => err.into(),
            ExtError::Vault(err) => err.into(),
            ExtError::Receipts(err) => err.into(),
            ExtError::Keyring(err) => err.into(),
            ExtError::Io { .. } => Self::new(Code::StorageUnavailable, err.to_string()),
            ExtError::Damaged { .. } => Self::new(Code::FactStoreUnavailable, err.to_string()),
            ExtError::Setting { .. } => Self::new(Code::ConfigInvalid, err.to_string()),
        }
    }
}

/// A call without a result. What it has logged and used is told all the same.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct InvokeError {
    /// Why there is no result.
    #[source]
    pub(crate) error: Box<ExtError>,
    /// Names the call, where it got as far as having a name.
    pub(crate) request_id: Option<String>,
    /// How long it took, in milliseconds.
    pub(crate) elapsed_ms: u64,
    /// How much fuel it used.
    pub(crate) fuel_consumed: u64,
    /// What it logged.
    pub(crate) log: Vec<HostLogEntry>,
}

impl<E: Into<ExtError>> From<E> for InvokeError {
    fn from(error: E) -> Self {
        Self {
            error: Box::new(error.into()),
            request_id: None,
            elapsed_ms: 0,
            fuel_consumed: 0,
            log: Vec::new(),
        }
    }
}

impl InvokeError {
    /// The problem document, with what is known of the call beside its own fields: `request_id`, `elapsed_ms`,
    /// `fuel_consumed`, `log`, and `retry_after_ms` for a call that came too soon.
    pub(crate) fn problem_json(&self) -> Value {
        let mut json = serde_json::to_value(self.error.problem()).unwrap_or_default();
        if let (Value::Object(fields), Some(request_id)) = (&mut json, &self.request_id) {
            fields.insert("request_id".to_owned(), request_id.as_str().into());
            fields.insert("elapsed_ms".to_owned(), self.elapsed_ms.into());
            fields.insert("fuel_consumed".to_owned(), self.fuel_consumed.into());
            fields.insert("log".to_owned(), serde_json::to_value(&self.log).unwrap_or_default());
        }
        if let (Value::Object(fields), ExtError::Extension(ExtensionError::RateLimited(limited))) =
            (&mut json, &*self.error)
        {
            fields.insert("retry_after_ms".to_owned(), limited.retry_after_ms.into());
        }
        json
    }
}
