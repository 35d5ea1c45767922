//! Every "no" of installing, granting and calling an extension: its text, its HTTP status, its code.
//!
//! Source: the seed, sections 6.1 to 6.6, and the reference facts, C1 to C6. The texts are stable; statuses that the
//! reference lost on the way (408, 422, 507) are given as documented.

use super::envelope::ResponseFault;
use super::external::ExternalFault;
use super::layout::{LayoutFault, ReturnedFault};
use super::manifest::EntryKind;
use super::read::ManifestReadFault;
use super::validate::ManifestFault;
use crate::grant::GrantFault;
use crate::problem::{Problem, ProblemKind};
use crate::rate::RateLimited;
use crate::refusal::{Code, Refusal};

/// Largest module that is downloaded or installed, in bytes.
pub const WASM_MODULE_DOWNLOAD_LIMIT_BYTES: u64 = 16_777_216;

/// Why an extension is not installed, not granted or not called.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ExtensionError {
    /// The host was built without the feature.
    #[error("wasm extensions require building corecruxd with --features wasm-extensions")]
    NotBuilt,
    /// The engine could not be made.
    #[error("wasm engine init failed at startup; restart the daemon and check logs")]
    EngineFailed,

    /// The manifest cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ManifestReadFault),
    /// The manifest breaks a rule, and signatures are asked for.
    #[error(
        "extension manifest validation failed: {0} (set CORECRUXD_EXTENSIONS_ALLOW_UNSIGNED=true to bypass \
         signature requirement in dev)"
    )]
    Invalid(ManifestFault),
    /// The manifest breaks a rule although signatures are not asked for.
    #[error("extension manifest validation failed: {0}")]
    InvalidInDevelopment(ManifestFault),
    /// The id cannot be the name of a folder; the sentence of
    /// [`check_install_id`](super::validate::check_install_id).
    #[error("{0}")]
    BadId(String),
    /// The id is taken.
    #[error("extension id already installed")]
    AlreadyInstalled,
    /// No extension of that id, when it is looked at.
    #[error("extension '{0}' not found")]
    NotFound(String),
    /// No registry is set, and none was named.
    #[error("no registry is set: TOOLSHELF_EXTENSIONS_REGISTRY names its index")]
    NoRegistry,
    /// The registry's index cannot be had, or is none.
    #[error("registry index cannot be used: {0}")]
    RegistryUnusable(String),
    /// The registry has no extension of that id.
    #[error("extension '{0}' not found in the registry")]
    NotInRegistry(String),
    /// A registry's entry pins another manifest.
    #[error("manifest_sha256 mismatch for {id}: expected {expected}, actual {actual}")]
    RegistryHashMismatch {
        /// The extension.
        id: String,
        /// What the registry says.
        expected: String,
        /// What was downloaded.
        actual: String,
    },
    /// A registry's entry is of another extension or version.
    #[error("registry entry mismatch: expected {expected}, manifest is {found}")]
    RegistryMismatch {
        /// `id@version` of the entry.
        expected: String,
        /// `id@version` of the manifest.
        found: String,
    },

    /// What was downloaded is not what the manifest pins.
    #[error("downloaded module sha256 mismatch: manifest={manifest}, downloaded={downloaded}")]
    DownloadMismatch {
        /// What the manifest says.
        manifest: String,
        /// What came.
        downloaded: String,
    },
    /// The module is larger than [`WASM_MODULE_DOWNLOAD_LIMIT_BYTES`].
    #[error("wasm module exceeds the {WASM_MODULE_DOWNLOAD_LIMIT_BYTES}-byte cap")]
    ModuleTooLarge,
    /// The server answered with something else than the module.
    #[error("module URL returned status {0}")]
    DownloadStatus(u16),
    /// The download failed before there was a status, or did not end in time.
    #[error("module download failed: {0}")]
    DownloadFailed(String),

    /// Nobody says who calls.
    #[error("passport_fpr required (body field or X-Corecrux-Passport-Id header)")]
    PassportRequired,
    /// No extension of that id, when it is called.
    #[error("extension '{0}' not installed")]
    NotInstalled(String),
    /// The passport has no grant.
    #[error("passport '{passport}' has no grant for extension '{extension}'")]
    NoGrant {
        /// The passport.
        passport: String,
        /// The extension.
        extension: String,
    },
    /// The grant has ended.
    #[error("grant for '{extension}' + '{passport}' has expired")]
    GrantExpired {
        /// The extension.
        extension: String,
        /// The passport.
        passport: String,
    },
    /// The extension was taken out of use.
    #[error("extension '{0}' is quarantined")]
    Quarantined(String),
    /// The extension was installed and not taken into use yet.
    #[error("extension '{0}' is staged")]
    Staged(String),
    /// A change of lifecycle that needs a reason has none.
    #[error("a reason is required to leave quarantine")]
    ReasonRequired,
    /// The grant names tools, and this is none of them.
    #[error("tool '{0}' is not in the grant's allowed_tool_names")]
    ToolNotGranted(String),
    /// The manifest has no such tool.
    #[error("tool '{tool}' is not declared by extension '{extension}'")]
    ToolNotDeclared {
        /// The tool.
        tool: String,
        /// The extension.
        extension: String,
    },
    /// The arguments are not those of the tool's `input_schema`.
    #[error("args do not match the input_schema of tool '{tool}': {why}")]
    ArgsMismatch {
        /// The tool.
        tool: String,
        /// Where, and why.
        why: String,
    },
    /// An extension that is never called.
    #[error("extension '{id}' has unsupported entry.kind {kind:?} for tool dispatch")]
    UnsupportedKind {
        /// The extension.
        id: String,
        /// Its kind.
        kind: EntryKind,
    },
    /// Too many calls in a minute.
    #[error(transparent)]
    RateLimited(#[from] RateLimited),
    /// Something outside the grant.
    #[error("scope violation")]
    ScopeViolation,

    /// A grant that breaks a rule.
    #[error(transparent)]
    Grant(#[from] GrantFault),
    /// The passport has a grant already.
    #[error("grant already exists; revoke first to replace")]
    GrantExists,
    /// There is no grant to be taken back.
    #[error("grant for '{extension}' + '{passport}' not found")]
    GrantNotFound {
        /// The extension.
        extension: String,
        /// The passport.
        passport: String,
    },

    /// The bytes on disk are not those that are pinned.
    #[error("module sha256 mismatch: manifest={manifest}, on-disk={on_disk}")]
    ModuleMismatch {
        /// What the manifest says.
        manifest: String,
        /// What lies there.
        on_disk: String,
    },
    /// The module is not there.
    #[error("wasm module file missing at '{0}'")]
    ModuleFileMissing(String),
    /// The record still has a URL.
    #[error(
        "wasm_module_url is set but never resolved to a cached path; install path may have skipped the M6.4 \
         download step"
    )]
    NeverResolved,
    /// All fuel was used.
    #[error("EXT_WASM_FUEL_EXHAUSTED")]
    FuelExhausted,
    /// The wall clock ran out.
    #[error("EXT_WASM_DEADLINE_EXCEEDED")]
    DeadlineExceeded,
    /// The memory's ceiling was reached.
    #[error("EXT_WASM_OOM")]
    OutOfMemory,
    /// The module failed.
    #[error("EXT_WASM_TRAP: {0}")]
    Trap(String),
    /// The module cannot be compiled.
    #[error("compile error: {0}")]
    Compile(String),
    /// Compiling the module takes more time or memory than it is granted.
    #[error("compile error: over budget: {0}")]
    CompileBudget(String),
    /// As many calls run as there are places for.
    #[error("too many extension calls run; try again later")]
    Busy,
    /// The module cannot be instantiated.
    #[error("instantiate error: {0}")]
    Instantiate(String),
    /// The module lacks an export, or has it with another type.
    #[error("missing export: {0}")]
    MissingExport(&'static str),
    /// The request cannot be laid out.
    #[error(transparent)]
    Layout(LayoutFault),
    /// The module's response does not fit.
    #[error("response buffer overflow")]
    ResponseOverflow,
    /// The module's response is no answer.
    #[error(transparent)]
    Response(#[from] ResponseFault),

    /// The call of an external tool failed.
    #[error(transparent)]
    External(#[from] ExternalFault),
    /// Something failed on the host's side.
    #[error("{0}")]
    Internal(String),
}

impl From<LayoutFault> for ExtensionError {
    fn from(fault: LayoutFault) -> Self {
        match fault {
            LayoutFault::BeyondCeiling { .. } => Self::OutOfMemory,
            fault @ LayoutFault::RequestTooLarge(_) => Self::Layout(fault),
        }
    }
}

impl From<ReturnedFault> for ExtensionError {
    fn from(fault: ReturnedFault) -> Self {
        match fault {
            ReturnedFault::Overflow => Self::ResponseOverflow,
            fault => Self::Trap(fault.to_string()),
        }
    }
}

impl ExtensionError {
    /// A manifest that breaks a rule. `unsigned_allowed` is whether the development switch is on.
    #[must_use]
    pub fn invalid(fault: ManifestFault, unsigned_allowed: bool) -> Self {
        if unsigned_allowed { Self::InvalidInDevelopment(fault) } else { Self::Invalid(fault) }
    }

    /// What kind of problem it is over HTTP.
    #[must_use]
    pub const fn kind(&self) -> ProblemKind {
        match self {
            Self::NotBuilt => ProblemKind::NotImplemented,
            Self::EngineFailed | Self::Busy => ProblemKind::Unavailable,
            Self::Unreadable(fault) => fault.kind(),
            Self::Invalid(_)
            | Self::InvalidInDevelopment(_)
            | Self::BadId(_)
            | Self::PassportRequired
            | Self::ArgsMismatch { .. }
            | Self::UnsupportedKind { .. }
            | Self::Grant(_) => ProblemKind::BadRequest,
            Self::NoGrant { .. }
            | Self::GrantExpired { .. }
            | Self::ToolNotGranted(_)
            | Self::ScopeViolation => ProblemKind::Forbidden,
            Self::NotFound(_)
            | Self::NoRegistry
            | Self::NotInRegistry(_)
            | Self::NotInstalled(_)
            | Self::ToolNotDeclared { .. }
            | Self::GrantNotFound { .. }
            | Self::ModuleFileMissing(_) => ProblemKind::NotFound,
            Self::FuelExhausted | Self::DeadlineExceeded => ProblemKind::RequestTimeout,
            Self::AlreadyInstalled
            | Self::RegistryHashMismatch { .. }
            | Self::RegistryMismatch { .. }
            | Self::DownloadMismatch { .. }
            | Self::Quarantined(_)
            | Self::Staged(_)
            | Self::GrantExists
            | Self::ModuleMismatch { .. } => ProblemKind::Conflict,
            Self::ModuleTooLarge | Self::Layout(_) => ProblemKind::PayloadTooLarge,
            Self::ReasonRequired => ProblemKind::Validation,
            Self::RateLimited(_) => ProblemKind::RateLimited,
            Self::OutOfMemory => ProblemKind::InsufficientStorage,
            Self::Internal(_) => ProblemKind::Internal,
            Self::DownloadStatus(_)
            | Self::DownloadFailed(_)
            | Self::RegistryUnusable(_)
            | Self::NeverResolved
            | Self::Trap(_)
            | Self::Compile(_)
            | Self::CompileBudget(_)
            | Self::Instantiate(_)
            | Self::MissingExport(_)
            | Self::ResponseOverflow
            | Self::Response(_)
            | Self::External(_) => ProblemKind::BadGateway,
        }
    }

    /// The code of the refusal that it is.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::NotBuilt | Self::EngineFailed => Code::ExtensionHostUnavailable,
            Self::Unreadable(ManifestReadFault::Malformed(_))
            | Self::BadId(_)
            | Self::RegistryMismatch { .. } => Code::ExtensionInvalid,
            Self::Unreadable(_) | Self::ModuleTooLarge | Self::Layout(_) | Self::Busy => Code::OverBudget,
            Self::Invalid(fault) | Self::InvalidInDevelopment(fault) => fault.code(),
            Self::AlreadyInstalled | Self::GrantExists => Code::ExtensionExists,
            Self::NotFound(_)
            | Self::NotInRegistry(_)
            | Self::NotInstalled(_)
            | Self::GrantNotFound { .. }
            | Self::ModuleFileMissing(_)
            | Self::NeverResolved => Code::ExtensionNotInstalled,
            Self::RegistryHashMismatch { .. }
            | Self::DownloadMismatch { .. }
            | Self::ModuleMismatch { .. } => Code::DigestMismatch,
            Self::DownloadStatus(_)
            | Self::DownloadFailed(_)
            | Self::RegistryUnusable(_)
            | Self::External(_) => Code::UpstreamFailed,
            Self::PassportRequired | Self::ReasonRequired | Self::NoRegistry => Code::MissingArgument,
            Self::NoGrant { .. }
            | Self::GrantExpired { .. }
            | Self::Quarantined(_)
            | Self::Staged(_)
            | Self::ToolNotGranted(_)
            | Self::ScopeViolation => Code::NotGranted,
            Self::ToolNotDeclared { .. } | Self::UnsupportedKind { .. } => Code::UnknownTool,
            Self::ArgsMismatch { .. } | Self::Grant(_) => Code::InvalidArgument,
            Self::RateLimited(_) => Code::RateLimited,
            Self::FuelExhausted | Self::DeadlineExceeded => Code::TimeExceeded,
            Self::OutOfMemory | Self::ResponseOverflow | Self::CompileBudget(_) => Code::ResourceExceeded,
            Self::Compile(_) => Code::WasmInvalid,
            Self::Instantiate(_) | Self::MissingExport(_) => Code::UnsupportedAbi,
            Self::Trap(_) | Self::Response(_) => Code::WasmTrapped,
            Self::Internal(_) => Code::ExtensionHostUnavailable,
        }
    }

    /// The problem document that it is over HTTP.
    #[must_use]
    pub fn problem(&self) -> Problem {
        Problem::new(self.kind(), self.to_string())
    }
}

impl From<ExtensionError> for Refusal {
    fn from(error: ExtensionError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_statuses_are_those_of_the_seed() {
        use ExtensionError as E;
        let cases = [
            (501, E::NotBuilt, "wasm extensions require building corecruxd with --features wasm-extensions"),
            (503, E::EngineFailed, "wasm engine init failed at startup; restart the daemon and check logs"),
            (
                409,
                E::DownloadMismatch { manifest: "a".into(), downloaded: "b".into() },
                "downloaded module sha256 mismatch: manifest=a, downloaded=b",
            ),
            (413, E::ModuleTooLarge, "wasm module exceeds the 16777216-byte cap"),
            (502, E::DownloadStatus(404), "module URL returned status 404"),
            (
                409,
                E::ModuleMismatch { manifest: "a".into(), on_disk: "b".into() },
                "module sha256 mismatch: manifest=a, on-disk=b",
            ),
            (
                502,
                E::NeverResolved,
                "wasm_module_url is set but never resolved to a cached path; install path may have skipped the \
                 M6.4 download step",
            ),
            (404, E::ModuleFileMissing("x".into()), "wasm module file missing at 'x'"),
            (408, E::FuelExhausted, "EXT_WASM_FUEL_EXHAUSTED"),
            (408, E::DeadlineExceeded, "EXT_WASM_DEADLINE_EXCEEDED"),
            (507, E::OutOfMemory, "EXT_WASM_OOM"),
            (502, ReturnedFault::Reserved(-7).into(), "EXT_WASM_TRAP: module returned reserved code -7"),
            (502, ReturnedFault::Overflow.into(), "response buffer overflow"),
            (502, ResponseFault::NotUtf8.into(), "response is not valid utf-8"),
            (429, RateLimited { cap: 10, retry_after_ms: 1 }.into(), "rate limited (cap 10/min)"),
            (
                400,
                E::UnsupportedKind { id: "a".into(), kind: EntryKind::McpConfig },
                "extension 'a' has unsupported entry.kind McpConfig for tool dispatch",
            ),
            (
                400,
                E::invalid(ManifestFault::SignatureRequired, false),
                "extension manifest validation failed: signature is required (set \
                 CORECRUXD_EXTENSIONS_ALLOW_UNSIGNED=true to bypass signature requirement in dev)",
            ),
            (
                400,
                E::invalid(ManifestFault::SignatureFailed, true),
                "extension manifest validation failed: signature verification failed",
            ),
            (
                403,
                E::NoGrant { passport: "p".into(), extension: "e".into() },
                "passport 'p' has no grant for extension 'e'",
            ),
            (
                409,
                E::RegistryHashMismatch { id: "a".into(), expected: "b".into(), actual: "c".into() },
                "manifest_sha256 mismatch for a: expected b, actual c",
            ),
            (
                409,
                E::RegistryMismatch { expected: "a@1".into(), found: "b@2".into() },
                "registry entry mismatch: expected a@1, manifest is b@2",
            ),
            (413, ManifestReadFault::TooLarge.into(), "manifest exceeds the 2097152-byte cap"),
            (507, LayoutFault::BeyondCeiling { needed: 2, ceiling: 1 }.into(), "EXT_WASM_OOM"),
        ];
        for (status, error, text) in cases {
            assert_eq!((error.kind().status(), error.to_string().as_str()), (status, text));
            assert_eq!(error.problem().detail.as_deref(), Some(text));
        }
    }
}
