//! The errors of the protocol: a code, the one text that goes with it, and what to say in `data`.
//!
//! Promises that a place outside the roots is answered exactly as a missing one, so that nobody can find out what is
//! there.

use engine::{Failure, Kind};
use serde_json::{Value, json};

/// An error as the protocol has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sorry {
    class: Class,
    said: Option<Value>,
    /// The whole error, where it is somebody else's.
    whole: Option<Box<Value>>,
}

/// The errors that the protocol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Parse,
    Request,
    Method,
    Params,
    Internal,
    Cancelled,
    NotFound,
}

impl Class {
    fn code(self) -> i64 {
        match self {
            Class::Parse => -32700,
            Class::Request => -32600,
            Class::Method => -32601,
            Class::Params => -32602,
            Class::Internal => -32603,
            Class::Cancelled => -32800,
            Class::NotFound => -32002,
        }
    }

    /// The text that clients compare; it never varies.
    fn message(self) -> &'static str {
        match self {
            Class::Parse => "Parse error",
            Class::Request => "Invalid request",
            Class::Method => "Method not found",
            Class::Params => "Invalid params",
            Class::Internal => "Internal error",
            Class::Cancelled => "Request cancelled",
            Class::NotFound => "Resource not found",
        }
    }
}

impl Sorry {
    fn new(class: Class, said: impl Into<Value>) -> Self {
        Self { class, said: Some(said.into()), whole: None }
    }

    /// The line is no JSON object.
    pub(crate) fn unreadable() -> Self {
        Self { class: Class::Parse, said: None, whole: None }
    }

    /// The line is no message.
    pub(crate) fn request(why: &str) -> Self {
        Self::new(Class::Request, why)
    }

    /// The method was not announced.
    pub(crate) fn method(name: &str) -> Self {
        Self::new(Class::Method, name)
    }

    /// The parameters do not fit.
    pub(crate) fn params(why: impl Into<Value>) -> Self {
        Self::new(Class::Params, why)
    }

    /// It did not work out, for this reason.
    pub(crate) fn failed(why: impl Into<Value>) -> Self {
        Self::new(Class::Internal, why)
    }

    /// The editor's own error, as it said it.
    pub(crate) fn of_editor(error: Value) -> Self {
        Self { class: Class::Internal, said: None, whole: Some(Box::new(error)) }
    }

    /// Nobody wants it any more.
    pub(crate) fn cancelled() -> Self {
        Self { class: Class::Cancelled, said: None, whole: None }
    }

    /// Nothing is there, or nothing that may be seen.
    pub(crate) fn no_file(path: &str) -> Self {
        Self::new(Class::NotFound, json!({ "uri": path }))
    }

    /// There is no such session.
    pub(crate) fn no_session(session: &str) -> Self {
        Self::new(Class::NotFound, json!({ "sessionId": session }))
    }

    /// What a failed call is called here. The path is the one that was asked for, as it was given.
    pub(crate) fn of(failure: &Failure, path: &str) -> Self {
        match failure.kind {
            Kind::NotFound
            | Kind::InvalidPath
            | Kind::PathTooLong
            | Kind::NameTooLong
            | Kind::DepthLimit
            | Kind::PathEscape
            | Kind::CrossMount
            | Kind::NotDirectory
            | Kind::LinkLoop => Self::no_file(path),
            Kind::BadRequest | Kind::UnknownOperation => Self::params(told(failure)),
            Kind::Cancelled => Self::cancelled(),
            Kind::InvalidName
            | Kind::NameCollision
            | Kind::ProtectedPath
            | Kind::OutOfScope
            | Kind::ReadOnly
            | Kind::NotOwner
            | Kind::Locked
            | Kind::Exists
            | Kind::IsDirectory
            | Kind::NotRegular
            | Kind::NotEmpty
            | Kind::NotText
            | Kind::TextNotFound
            | Kind::Ambiguous
            | Kind::Overlap
            | Kind::AlreadyApplied
            | Kind::MalformedPatch
            | Kind::Stale
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
            | Kind::AuditUnavailable
            | Kind::Io => Self::failed(told(failure)),
        }
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> i64 {
        self.class.code()
    }

    pub(crate) fn json(&self) -> Value {
        if let Some(whole) = &self.whole {
            return whole.as_ref().clone();
        }
        let mut error = json!({ "code": self.class.code(), "message": self.class.message() });
        if let Some(said) = &self.said {
            error["data"] = said.clone();
        }
        error
    }
}

/// What happened and what to do next, in one sentence for the agent. The kind comes first, for whoever sorts by it.
fn told(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) => format!("{}: {}; {hint}", failure.kind.code(), failure.detail),
        None => format!("{}: {}", failure.kind.code(), failure.detail),
    }
}
