//! The one table from refusal codes to HTTP statuses.

use axum::http::StatusCode;
use toolshelf_core::refusal::Code;

/// The status that a refusal is sent with, where the place that refuses knows no better.
pub(crate) fn status(code: Code) -> StatusCode {
    use Code as C;
    match code {
        // What was sent cannot be meant.
        C::InvalidArgument
        | C::MissingArgument
        | C::InvalidFrame
        | C::InvalidTask
        | C::TaskAuthorityField
        | C::AgentRequired
        | C::InvalidTaskContext
        | C::TaskContextUnavailable
        | C::TaskCallIdRequired
        | C::InvalidTaskAddress
        | C::RootNotDeclared
        | C::ExtensionInvalid
        | C::FactInvalid
        | C::UnboundedExecutor
        | C::OutsideRoot => StatusCode::BAD_REQUEST,
        // Who asks is not known, or may not.
        C::BearerRefused | C::ExecutorUnauthenticated | C::TaskOwnerUnverified => StatusCode::UNAUTHORIZED,
        C::OriginNotAllowed
        | C::TaskOwnerMismatch
        | C::ProtectedAudit
        | C::ExtensionUntrusted
        | C::NotGranted
        | C::FactReserved => StatusCode::FORBIDDEN,
        C::HostNotAllowed => StatusCode::MISDIRECTED_REQUEST,
        // It is not there.
        C::UnknownRoute
        | C::UnknownTool
        | C::TaskNotFound
        | C::AgentNotConfigured
        | C::FileUnavailable
        | C::ExtensionNotInstalled
        | C::SecretUnknown
        | C::KeyUnknown
        | C::FactNotFound => StatusCode::NOT_FOUND,
        // It stands against what is there.
        C::DigestMismatch
        | C::DuplicateTool
        | C::DefinitionChanged
        | C::ExtensionExists
        | C::EnvironmentMismatch
        | C::RootNotReachableFromHere
        | C::TaskCallIdConflict
        | C::TaskOwnerUnconfirmed
        | C::TaskNotRunning
        | C::TaskEnvironmentChanged
        | C::TaskRootUnavailable
        | C::TaskRootReplaced
        | C::TaskCancelled
        | C::EnvironmentEndedOutcomeUnknown
        | C::AdmissionUnconfirmed
        | C::AgentEnvironmentMismatch => StatusCode::CONFLICT,
        // More than is granted, of size or at a time.
        C::TaskInputOverBudget => StatusCode::PAYLOAD_TOO_LARGE,
        C::OverBudget | C::TaskCapacityExhausted | C::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        // The module is not what a shelf takes, or failed.
        C::UnderDeclared
        | C::BadToolName
        | C::WasmInvalid
        | C::ImportUndeclared
        | C::UnsupportedAbi
        | C::HiddenCharacters
        | C::WasmTrapped
        | C::DiffFailed
        | C::UnsupportedRuntimeCapability => StatusCode::UNPROCESSABLE_ENTITY,
        C::WasmWorkerSilent
        | C::TaskInvalidResult
        | C::TaskOutputOverBudget
        | C::ExecutorFailed
        | C::LiveKeyRefused
        | C::UpstreamFailed => StatusCode::BAD_GATEWAY,
        C::TimeExceeded | C::TaskDeadline => StatusCode::GATEWAY_TIMEOUT,
        C::ResourceExceeded | C::TaskPersistenceFailed => StatusCode::INSUFFICIENT_STORAGE,
        // This computer is not able to, now.
        C::ShelfUnavailable
        | C::ShelfUnreadable
        | C::WasmUnreadable
        | C::StorageUnavailable
        | C::PlacementUnavailable
        | C::TaskAuditUnavailable
        | C::ExecutorUnavailable
        | C::ExtensionHostUnavailable
        | C::FactStoreUnavailable
        | C::LiveKeyMissing
        | C::MachineUnreachable => StatusCode::SERVICE_UNAVAILABLE,
        C::TaskEnvironmentUnverified
        | C::VaultDamaged
        | C::ReceiptsDamaged
        | C::TaskAdmissionFailed
        | C::CancelFailed
        | C::ConfigInvalid
        | C::ListenFailed => StatusCode::INTERNAL_SERVER_ERROR,
        // Between machines.
        C::EnvironmentNotPaired
        | C::PairingRevoked
        | C::PairingExpired
        | C::PairingCodeRefused
        | C::OutsideScope => StatusCode::FORBIDDEN,
        C::UnknownEnvironment => StatusCode::NOT_FOUND,
        C::PairingListUnreadable => StatusCode::INTERNAL_SERVER_ERROR,
        C::UnknownField => StatusCode::BAD_REQUEST,
        C::BoundsMismatch | C::UnattributedCall => StatusCode::CONFLICT,
        C::MachineTimeout => StatusCode::GATEWAY_TIMEOUT,
        C::MachineClosed => StatusCode::SERVICE_UNAVAILABLE,
        C::MachineUntrusted => StatusCode::BAD_GATEWAY,
        C::FileMismatch => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_an_error() {
        for code in Code::ALL {
            let status = status(*code);
            assert!(status.is_client_error() || status.is_server_error(), "{code}: {status}");
        }
    }
}
