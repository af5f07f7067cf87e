//! The kinds of failure that edits and patches have words of their own for. Mapped without a wildcard, so that a new
//! kind has to be thought about.

use engine::Kind;

/// What went wrong, as far as the words depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// The patch cannot be read.
    Unreadable,
    /// Nothing is there.
    Missing,
    /// A file is where a directory is needed.
    NoDirectory,
    /// A directory is where a file is needed.
    Directory,
    /// Something is already there.
    Taken,
    /// It is not the version that was seen.
    Stale,
    /// The quoted text is in several places.
    Ambiguous,
    /// The quoted text is in none.
    Unplaced,
    /// Two changes want the same text.
    Overlap,
    /// It is no text.
    NotText,
    /// The arguments do not fit each other.
    Arguments,
    /// Anything else.
    Other,
}

impl From<Kind> for Class {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::MalformedPatch => Class::Unreadable,
            Kind::NotFound => Class::Missing,
            Kind::NotDirectory => Class::NoDirectory,
            Kind::IsDirectory => Class::Directory,
            Kind::Exists => Class::Taken,
            Kind::Stale => Class::Stale,
            Kind::Ambiguous => Class::Ambiguous,
            Kind::TextNotFound | Kind::AlreadyApplied => Class::Unplaced,
            Kind::Overlap => Class::Overlap,
            Kind::NotText => Class::NotText,
            Kind::BadRequest => Class::Arguments,
            Kind::UnknownOperation
            | Kind::InvalidPath
            | Kind::PathTooLong
            | Kind::NameTooLong
            | Kind::DepthLimit
            | Kind::InvalidName
            | Kind::NameCollision
            | Kind::PathEscape
            | Kind::CrossMount
            | Kind::ProtectedPath
            | Kind::OutOfScope
            | Kind::ReadOnly
            | Kind::NotOwner
            | Kind::Locked
            | Kind::NotRegular
            | Kind::NotEmpty
            | Kind::LinkLoop
            | Kind::BaseRequired
            | Kind::Conflict
            | Kind::NothingToDo
            | Kind::Expired
            | Kind::HistoryLost
            | Kind::CorruptHistory
            | Kind::TooLarge
            | Kind::TooMany
            | Kind::Quota
            | Kind::RateLimited
            | Kind::PolicyDenied
            | Kind::ApprovalPending
            | Kind::ApprovalDenied
            | Kind::ApprovalStale
            | Kind::NoSpace
            | Kind::Denied
            | Kind::Busy
            | Kind::Deadline
            | Kind::Cancelled
            | Kind::AuditUnavailable
            | Kind::Io => Class::Other,
        }
    }
}
