//! What went wrong: a kind for machines, a detail for people, a hint for agents that names the next call.
//! Nobody branches on the text. No host path and nothing about places outside the workspace ever enters a detail.

use std::fmt;

use path::PathError;
use serde_json::{Map, Value, json};
use text::visible::{visible, visible_line};

use crate::{caller::Principal, engine::Held};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $code:literal, $fault:ident;)+) => {
        /// Every way a call can fail. Closed: faces map it exhaustively.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind { $($(#[$doc])* $kind,)+ }

        impl Kind {
            /// Every kind, in documentation order.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)+];

            /// The stable word that machines compare.
            pub fn code(self) -> &'static str {
                match self { $(Kind::$kind => $code,)+ }
            }

            /// Whose doing it was, and so how it is recorded.
            pub fn fault(self) -> Fault {
                match self { $(Kind::$kind => Fault::$fault,)+ }
            }
        }
    };
}

/// Whose doing a failure was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call was refused by a rule.
    Refusal,
    /// The call met a world that does not fit it.
    World,
    /// The machine could not do it.
    Machine,
}

kinds! {
    /// The arguments do not fit the operation.
    BadRequest = "bad_request", Refusal;
    /// There is no operation of that name.
    UnknownOperation = "unknown_operation", Refusal;
    /// The spelling is not a path beneath the root.
    InvalidPath = "invalid_path", Refusal;
    /// The whole path is too long.
    PathTooLong = "path_too_long", Refusal;
    /// One name is too long.
    NameTooLong = "name_too_long", Refusal;
    /// The path has too many components.
    DepthLimit = "depth_limit", Refusal;
    /// A new name is not portable.
    InvalidName = "invalid_name", Refusal;
    /// A new name has a twin that differs only in case or invisible characters.
    NameCollision = "name_collision", Refusal;
    /// A link leads out of the workspace.
    PathEscape = "path_escape", Refusal;
    /// The place is on another file system that is not part of the workspace.
    CrossMount = "cross_mount", Refusal;
    /// The place is the server's own, or one that other programs obey.
    ProtectedPath = "protected_path", Refusal;
    /// The place is outside what this caller may read or write.
    OutOfScope = "out_of_scope", Refusal;
    /// The workspace, or this caller, is read-only.
    ReadOnly = "read_only", Refusal;
    /// The thing belongs to another principal.
    NotOwner = "not_owner", Refusal;
    /// Another principal holds a lease on it.
    Locked = "locked", World;
    /// Nothing is there.
    NotFound = "not_found", World;
    /// Something is already there.
    Exists = "exists", World;
    /// A directory is needed and it is something else.
    NotDirectory = "not_dir", World;
    /// A file is needed and it is a directory.
    IsDirectory = "is_dir", World;
    /// A regular file is needed and it is a link, pipe, socket or device.
    NotRegular = "not_regular", Refusal;
    /// The directory holds something.
    NotEmpty = "not_empty", World;
    /// Too many links, or links in a circle.
    LinkLoop = "link_loop", World;
    /// The file is not text in the encoding asked for.
    NotText = "not_text", World;
    /// The quoted text is not in the file.
    TextNotFound = "text_not_found", World;
    /// The quoted text is in several places, and nothing says which is meant.
    Ambiguous = "ambiguous", World;
    /// Two changes of one call want the same text.
    Overlap = "overlap", Refusal;
    /// The file already is as the call would make it.
    AlreadyApplied = "already_applied", World;
    /// The patch cannot be read.
    MalformedPatch = "malformed_patch", Refusal;
    /// The base is not the current version.
    Stale = "stale", World;
    /// The file exists, and the call did not say which version it saw.
    BaseRequired = "base_required", World;
    /// The world moved while the call ran, or a later change is in the way.
    Conflict = "conflict", World;
    /// There is nothing to undo or redo.
    NothingToDo = "nothing_to_do", World;
    /// What is asked for has passed its retention.
    Expired = "expired", World;
    /// The caller knows a head that this journal does not have.
    HistoryLost = "history_lost", World;
    /// Kept bytes do not match their hash.
    CorruptHistory = "corrupt_history", Machine;
    /// The input or the answer is larger than allowed.
    TooLarge = "too_large", Refusal;
    /// A count limit is reached.
    TooMany = "too_many", Refusal;
    /// A quota is used up.
    Quota = "quota", Refusal;
    /// Too many calls in too short a time.
    RateLimited = "rate_limited", Refusal;
    /// A rule of the policy blocks it.
    PolicyDenied = "policy_denied", Refusal;
    /// A person must say yes first; the question is asked.
    ApprovalPending = "approval_pending", Refusal;
    /// A person said no.
    ApprovalDenied = "approval_denied", Refusal;
    /// A person said yes to something else: the world or the policy moved since.
    ApprovalStale = "approval_stale", World;
    /// The disk is full.
    NoSpace = "no_space", Machine;
    /// The operating system denies it to the server itself.
    Denied = "denied", Machine;
    /// Something else holds it; try again.
    Busy = "busy", World;
    /// The deadline passed.
    Deadline = "deadline", World;
    /// The caller cancelled.
    Cancelled = "cancelled", World;
    /// The journal cannot be written, so nothing may change.
    AuditUnavailable = "audit_unavailable", Machine;
    /// The device failed.
    Io = "io_error", Machine;
}

/// One failed call.
#[derive(Debug, Clone)]
pub struct Failure {
    /// For machines.
    pub kind: Kind,
    /// For people.
    pub detail: String,
    /// For agents: what to call next.
    pub hint: Option<String>,
    /// Facts that go with the kind: current versions, the holder of a lease, a diff.
    pub facts: Map<String, Value>,
    /// What few failures have.
    rest: Option<Box<Rest>>,
    /// What the journal calls it when an agent is the caller, where that says more to a supervisor than to the agent.
    pub(crate) of_agent: Option<Kind>,
}

/// What few failures have.
#[derive(Debug, Clone, Default)]
struct Rest {
    shown: Option<Box<str>>,
    held: Option<Held>,
}

impl Failure {
    /// A failure of one kind with its detail. Details quote what callers wrote, so what a terminal would obey is
    /// spelled out.
    pub fn new(kind: Kind, detail: impl AsRef<str>) -> Self {
        Self {
            kind,
            detail: visible_line(detail.as_ref()).into_owned(),
            hint: None,
            facts: Map::new(),
            rest: None,
            of_agent: None,
        }
    }

    /// What the journal calls it: an agent that spells a place outside tries to get out.
    pub(crate) fn recorded(&self, principal: &Principal) -> Kind {
        match principal {
            Principal::Agent(_) => self.of_agent.unwrap_or(self.kind),
            Principal::User(_) | Principal::System | Principal::Outside => self.kind,
        }
    }

    /// The root itself is not there: nothing that a caller could look for would help.
    pub fn workspace_gone() -> Self {
        Self::new(Kind::NotFound, "the directory of the workspace is gone: it was moved away or removed")
            .hint("ask the person you work for to put it back and to start the server again")
    }

    /// Adds what to do next.
    pub fn hint(mut self, hint: impl AsRef<str>) -> Self {
        self.hint = Some(visible_line(hint.as_ref()).into_owned());
        self
    }

    /// Adds one fact.
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// Adds lines for the text twin. They quote files, so what a terminal would obey is spelled out.
    pub fn shows(mut self, lines: impl AsRef<str>) -> Self {
        let shown = visible(lines.as_ref());
        self.rest.get_or_insert_default().shown = (!shown.is_empty()).then(|| shown.into());
        self
    }

    /// Lines that the text twin shows below the detail; machines find the same in the facts.
    pub fn shown(&self) -> Option<&str> {
        self.rest.as_ref()?.shown.as_deref()
    }

    /// Adds what a file holds and would hold.
    pub(crate) fn about(mut self, held: Option<Held>) -> Self {
        if held.is_some() {
            self.rest.get_or_insert_default().held = held;
        }
        self
    }

    /// What a file holds and would hold, where a person must be asked first and the terms want the bytes.
    pub fn held(&self) -> Option<&Held> {
        self.rest.as_ref()?.held.as_ref()
    }

    /// The wire form: `{"error": {kind, detail, hint?, …facts}}`.
    pub fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("kind".into(), self.kind.code().into());
        error.insert("detail".into(), self.detail.clone().into());
        if let Some(hint) = &self.hint {
            error.insert("hint".into(), hint.clone().into());
        }
        error.extend(self.facts.clone());
        json!({ "error": error })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.code(), self.detail)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        let kind = match error {
            PathError::Empty
            | PathError::Nul
            | PathError::DotDot
            | PathError::Foreign
            | PathError::Absolute
            | PathError::Backslash => Kind::InvalidPath,
            PathError::NameTooLong => Kind::NameTooLong,
            PathError::PathTooLong => Kind::PathTooLong,
            PathError::TooDeep => Kind::DepthLimit,
        };
        let mut failure = Failure::new(kind, error.to_string());
        if matches!(error, PathError::DotDot | PathError::Foreign) {
            failure.of_agent = Some(Kind::PathEscape);
        }
        if kind == Kind::InvalidPath {
            return failure
                .hint("give a path relative to the workspace root, without '..', for example src/main.rs");
        }
        failure
    }
}
