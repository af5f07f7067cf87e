//! Errors: a kind for programs, a message for people, a next step for agents. Callers branch on the kind, never on the
//! text. Messages contain no host paths and nothing about files outside the workspace.

use std::fmt;

use serde_json::{Map, Value, json};
use stead_path::PathError;
use stead_text::visible::{escape_deceptive, escape_deceptive_line};

use crate::{caller::Principal, engine::BeforeAfterBytes};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal, $class:ident;)+) => {
        /// Every way a call can fail. Closed: protocols map it exhaustively.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $($(#[$doc])* $kind,)+ }

        impl ErrorKind {
            /// Every kind, in documentation order.
            pub const ALL: &[ErrorKind] = &[$(ErrorKind::$kind,)+];

            /// The stable error code on the wire.
            pub fn code(self) -> &'static str {
                match self { $(ErrorKind::$kind => $code,)+ }
            }

            /// The class of the error, which decides how it is recorded.
            pub fn class(self) -> ErrorClass {
                match self { $(ErrorKind::$kind => ErrorClass::$class,)+ }
            }
        }
    };
}

/// Who caused an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// A rule refused the call.
    Refused,
    /// The state of the workspace does not fit the call.
    StateMismatch,
    /// The server or the operating system failed.
    SystemFailure,
}

kinds! {
    /// The arguments do not fit the operation.
    BadRequest = "bad_request", Refused;
    /// No operation has that name.
    UnknownOperation = "unknown_operation", Refused;
    /// The text is not a path inside the workspace.
    InvalidPath = "invalid_path", Refused;
    /// The whole path is too long.
    PathTooLong = "path_too_long", Refused;
    /// One name is too long.
    NameTooLong = "name_too_long", Refused;
    /// The path has too many components.
    DepthLimit = "depth_limit", Refused;
    /// A new name is not portable.
    InvalidName = "invalid_name", Refused;
    /// A new name differs from an existing one only in case or invisible characters.
    NameCollision = "name_collision", Refused;
    /// A symlink leads out of the workspace.
    PathEscape = "path_escape", Refused;
    /// The path is on another file system that is not part of the workspace.
    CrossMount = "cross_mount", Refused;
    /// The path belongs to the server, or to files that other programs execute.
    ProtectedPath = "protected_path", Refused;
    /// The path is outside the caller's readable or writable scope.
    OutOfScope = "out_of_scope", Refused;
    /// The workspace, or this caller, is read-only.
    ReadOnly = "read_only", Refused;
    /// The object belongs to another principal.
    NotOwner = "not_owner", Refused;
    /// Another principal holds a lease on the path.
    Locked = "locked", StateMismatch;
    /// The file or object does not exist.
    NotFound = "not_found", StateMismatch;
    /// The path already exists.
    Exists = "exists", StateMismatch;
    /// A directory is required, and the path is something else.
    NotDirectory = "not_dir", StateMismatch;
    /// A file is required, and the path is a directory.
    IsDirectory = "is_dir", StateMismatch;
    /// A regular file is required, and the path is a symlink, pipe, socket or device.
    NotRegular = "not_regular", Refused;
    /// The directory is not empty.
    NotEmpty = "not_empty", StateMismatch;
    /// Too many symlinks, or a symlink cycle.
    LinkLoop = "link_loop", StateMismatch;
    /// The file is not text in the requested encoding.
    NotText = "not_text", StateMismatch;
    /// The quoted text is not in the file.
    TextNotFound = "text_not_found", StateMismatch;
    /// The quoted text occurs more than once.
    Ambiguous = "ambiguous", StateMismatch;
    /// Two changes of one call overlap.
    Overlap = "overlap", Refused;
    /// The file already has the requested content.
    AlreadyApplied = "already_applied", StateMismatch;
    /// The patch cannot be parsed.
    MalformedPatch = "malformed_patch", Refused;
    /// The base is not the current version.
    Stale = "stale", StateMismatch;
    /// The file exists, and the call gave no base version.
    BaseRequired = "base_required", StateMismatch;
    /// The file changed while the call ran, or a later change is in the way.
    Conflict = "conflict", StateMismatch;
    /// There is nothing to undo or redo.
    NothingToDo = "nothing_to_do", StateMismatch;
    /// The requested data is past its retention.
    Expired = "expired", StateMismatch;
    /// The caller's journal head is not in this journal.
    HistoryLost = "history_lost", StateMismatch;
    /// Stored bytes do not match their hash.
    CorruptHistory = "corrupt_history", SystemFailure;
    /// The input or the result is larger than allowed.
    TooLarge = "too_large", Refused;
    /// A count limit is reached.
    TooMany = "too_many", Refused;
    /// A quota is used up.
    QuotaExceeded = "quota", Refused;
    /// Too many calls in too short a time.
    RateLimited = "rate_limited", Refused;
    /// A policy rule blocks the call.
    PolicyDenied = "policy_denied", Refused;
    /// Approval is required and was requested.
    ApprovalPending = "approval_pending", Refused;
    /// A person denied the call.
    ApprovalDenied = "approval_denied", Refused;
    /// The approval is for another plan: the files or the policy changed since.
    ApprovalStale = "approval_stale", StateMismatch;
    /// The disk is full.
    NoSpace = "no_space", SystemFailure;
    /// The operating system denied access to the server.
    SystemDenied = "denied", SystemFailure;
    /// The resource is in use; try again.
    Busy = "busy", StateMismatch;
    /// The deadline passed.
    Deadline = "deadline", StateMismatch;
    /// The caller cancelled.
    Cancelled = "cancelled", StateMismatch;
    /// The journal cannot be written, so no file may change.
    AuditUnavailable = "audit_unavailable", SystemFailure;
    /// A device or file system error.
    Io = "io_error", SystemFailure;
}

/// One failed call.
#[derive(Debug, Clone)]
pub struct Error {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// The message, for people.
    pub message: String,
    /// The next step, for agents.
    pub next_step: Option<String>,
    /// Further fields of the kind: current versions, the holder of a lease, a diff.
    pub details: Map<String, Value>,
    extras: Option<Box<ErrorExtras>>,
    /// The kind that the journal records when an agent is the caller, if it differs.
    pub(crate) kind_for_agents: Option<ErrorKind>,
}

/// Fields that few errors have.
#[derive(Debug, Clone, Default)]
struct ErrorExtras {
    excerpt: Option<Box<str>>,
    before_after: Option<BeforeAfterBytes>,
}

impl Error {
    /// An error of one kind. Messages quote callers, so terminal control characters are escaped.
    pub fn new(kind: ErrorKind, message: impl AsRef<str>) -> Self {
        Self {
            kind,
            message: escape_deceptive_line(message.as_ref()).into_owned(),
            next_step: None,
            details: Map::new(),
            extras: None,
            kind_for_agents: None,
        }
    }

    /// The kind that the journal records: a path outside the workspace counts as an escape attempt by an agent.
    pub(crate) fn recorded_kind(&self, principal: &Principal) -> ErrorKind {
        match principal {
            Principal::Agent(_) => self.kind_for_agents.unwrap_or(self.kind),
            Principal::User(_) | Principal::System | Principal::External => self.kind,
        }
    }

    /// The error for a missing workspace root.
    pub fn workspace_missing() -> Self {
        Self::new(ErrorKind::NotFound, "the workspace directory does not exist: it was moved or removed")
            .with_next_step("ask a person to restore the directory and to restart the server")
    }

    /// Adds the next step.
    pub fn with_next_step(mut self, hint: impl AsRef<str>) -> Self {
        self.next_step = Some(escape_deceptive_line(hint.as_ref()).into_owned());
        self
    }

    /// Adds one field.
    pub fn with_detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Adds lines for the text form. They quote files, so terminal control characters are escaped.
    pub fn with_excerpt(mut self, lines: impl AsRef<str>) -> Self {
        let escaped = escape_deceptive(lines.as_ref());
        self.extras.get_or_insert_default().excerpt = (!escaped.is_empty()).then(|| escaped.into());
        self
    }

    /// Lines shown below the message in the text form; the JSON form has the same content in its fields.
    pub fn excerpt(&self) -> Option<&str> {
        self.extras.as_ref()?.excerpt.as_deref()
    }

    pub(crate) fn with_before_after(mut self, before_after: Option<BeforeAfterBytes>) -> Self {
        if before_after.is_some() {
            self.extras.get_or_insert_default().before_after = before_after;
        }
        self
    }

    /// The content before and after, if the call needs approval and the options request it.
    pub fn before_after(&self) -> Option<&BeforeAfterBytes> {
        self.extras.as_ref()?.before_after.as_ref()
    }

    /// The wire form: `{"error": {kind, detail, hint?, …details}}`.
    pub fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("kind".into(), self.kind.code().into());
        error.insert("detail".into(), self.message.clone().into());
        if let Some(hint) = &self.next_step {
            error.insert("hint".into(), hint.clone().into());
        }
        error.extend(self.details.clone());
        json!({ "error": error })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.code(), self.message)?;
        match &self.next_step {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<PathError> for Error {
    fn from(path_error: PathError) -> Self {
        let kind = match path_error {
            PathError::Empty
            | PathError::Nul
            | PathError::DotDot
            | PathError::ForeignSyntax
            | PathError::Absolute
            | PathError::Backslash => ErrorKind::InvalidPath,
            PathError::NameTooLong => ErrorKind::NameTooLong,
            PathError::PathTooLong => ErrorKind::PathTooLong,
            PathError::TooDeep => ErrorKind::DepthLimit,
        };
        let mut error = Error::new(kind, path_error.to_string());
        if matches!(path_error, PathError::DotDot | PathError::ForeignSyntax) {
            error.kind_for_agents = Some(ErrorKind::PathEscape);
        }
        if kind == ErrorKind::InvalidPath {
            return error
                .with_next_step("give a path relative to the workspace root, without '..', for example src/main.rs");
        }
        error
    }
}
