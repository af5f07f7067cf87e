//! Classes of errors that edits and patches have their own texts for. Mapped without a wildcard, so that every new kind
//! is considered.

use stead_engine::ErrorKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommaErrorClass {
    MalformedPatch,
    NotFound,
    NotDirectory,
    IsDirectory,
    AlreadyExists,
    Stale,
    MultipleMatches,
    TextNotFound,
    OverlappingEdits,
    NotText,
    InvalidArguments,
    Other,
}

impl From<ErrorKind> for CommaErrorClass {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::MalformedPatch => CommaErrorClass::MalformedPatch,
            ErrorKind::NotFound => CommaErrorClass::NotFound,
            ErrorKind::NotDirectory => CommaErrorClass::NotDirectory,
            ErrorKind::IsDirectory => CommaErrorClass::IsDirectory,
            ErrorKind::Exists => CommaErrorClass::AlreadyExists,
            ErrorKind::Stale => CommaErrorClass::Stale,
            ErrorKind::Ambiguous => CommaErrorClass::MultipleMatches,
            ErrorKind::TextNotFound | ErrorKind::AlreadyApplied => CommaErrorClass::TextNotFound,
            ErrorKind::Overlap => CommaErrorClass::OverlappingEdits,
            ErrorKind::NotText => CommaErrorClass::NotText,
            ErrorKind::BadRequest => CommaErrorClass::InvalidArguments,
            ErrorKind::UnknownOperation
            | ErrorKind::InvalidPath
            | ErrorKind::PathTooLong
            | ErrorKind::NameTooLong
            | ErrorKind::DepthLimit
            | ErrorKind::InvalidName
            | ErrorKind::NameCollision
            | ErrorKind::PathEscape
            | ErrorKind::CrossMount
            | ErrorKind::ProtectedPath
            | ErrorKind::OutOfScope
            | ErrorKind::ReadOnly
            | ErrorKind::NotOwner
            | ErrorKind::Locked
            | ErrorKind::NotRegular
            | ErrorKind::NotEmpty
            | ErrorKind::LinkLoop
            | ErrorKind::BaseRequired
            | ErrorKind::Conflict
            | ErrorKind::NothingToDo
            | ErrorKind::Expired
            | ErrorKind::HistoryLost
            | ErrorKind::CorruptHistory
            | ErrorKind::TooLarge
            | ErrorKind::TooMany
            | ErrorKind::QuotaExceeded
            | ErrorKind::RateLimited
            | ErrorKind::PolicyDenied
            | ErrorKind::ApprovalPending
            | ErrorKind::ApprovalDenied
            | ErrorKind::ApprovalStale
            | ErrorKind::NoSpace
            | ErrorKind::SystemDenied
            | ErrorKind::Busy
            | ErrorKind::Deadline
            | ErrorKind::Cancelled
            | ErrorKind::AuditUnavailable
            | ErrorKind::Io => CommaErrorClass::Other,
        }
    }
}
