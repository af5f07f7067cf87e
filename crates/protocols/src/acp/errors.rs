//! ACP errors: a code, its fixed message, and details in `data`.
//!
//! A path outside the roots gets the same error as a missing file, so that responses do not reveal what exists there.

use serde_json::{Value, json};
use stead_engine::{Error, ErrorKind};

/// An ACP error response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AcpError {
    code: AcpErrorCode,
    data: Option<Value>,
    /// The editor's error, passed on unchanged.
    editor_error: Option<Box<Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AcpErrorCode {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    InternalError,
    Cancelled,
    NotFound,
}

impl AcpErrorCode {
    fn code(self) -> i64 {
        match self {
            AcpErrorCode::ParseError => -32700,
            AcpErrorCode::InvalidRequest => -32600,
            AcpErrorCode::MethodNotFound => -32601,
            AcpErrorCode::InvalidParams => -32602,
            AcpErrorCode::InternalError => -32603,
            AcpErrorCode::Cancelled => -32800,
            AcpErrorCode::NotFound => -32002,
        }
    }

    /// The message; it is fixed because clients compare it.
    fn message(self) -> &'static str {
        match self {
            AcpErrorCode::ParseError => "Parse error",
            AcpErrorCode::InvalidRequest => "Invalid request",
            AcpErrorCode::MethodNotFound => "Method not found",
            AcpErrorCode::InvalidParams => "Invalid params",
            AcpErrorCode::InternalError => "Internal error",
            AcpErrorCode::Cancelled => "Request cancelled",
            AcpErrorCode::NotFound => "Resource not found",
        }
    }
}

impl AcpError {
    fn new(code: AcpErrorCode, data: impl Into<Value>) -> Self {
        Self { code, data: Some(data.into()), editor_error: None }
    }

    /// The line is not a JSON object.
    pub(crate) fn parse_error() -> Self {
        Self { code: AcpErrorCode::ParseError, data: None, editor_error: None }
    }

    /// The line is not a valid message.
    pub(crate) fn invalid_request(reason: &str) -> Self {
        Self::new(AcpErrorCode::InvalidRequest, reason)
    }

    /// The method was not advertised.
    pub(crate) fn method_not_found(name: &str) -> Self {
        Self::new(AcpErrorCode::MethodNotFound, name)
    }

    pub(crate) fn invalid_params(reason: impl Into<Value>) -> Self {
        Self::new(AcpErrorCode::InvalidParams, reason)
    }

    pub(crate) fn internal_error(reason: impl Into<Value>) -> Self {
        Self::new(AcpErrorCode::InternalError, reason)
    }

    /// The editor's error, passed on unchanged.
    pub(crate) fn from_editor(error: Value) -> Self {
        Self { code: AcpErrorCode::InternalError, data: None, editor_error: Some(Box::new(error)) }
    }

    pub(crate) fn cancelled() -> Self {
        Self { code: AcpErrorCode::Cancelled, data: None, editor_error: None }
    }

    /// The file is missing or not accessible.
    pub(crate) fn file_not_found(path: &str) -> Self {
        Self::new(AcpErrorCode::NotFound, json!({ "uri": path }))
    }

    pub(crate) fn session_not_found(session: &str) -> Self {
        Self::new(AcpErrorCode::NotFound, json!({ "sessionId": session }))
    }

    /// Converts an engine error. `path` is the path as the client wrote it.
    pub(crate) fn from_error(error: &Error, path: &str) -> Self {
        match error.kind {
            ErrorKind::NotFound
            | ErrorKind::InvalidPath
            | ErrorKind::PathTooLong
            | ErrorKind::NameTooLong
            | ErrorKind::DepthLimit
            | ErrorKind::PathEscape
            | ErrorKind::CrossMount
            | ErrorKind::NotDirectory
            | ErrorKind::LinkLoop => Self::file_not_found(path),
            ErrorKind::BadRequest | ErrorKind::UnknownOperation => Self::invalid_params(error_sentence(error)),
            ErrorKind::Cancelled => Self::cancelled(),
            ErrorKind::InvalidName
            | ErrorKind::NameCollision
            | ErrorKind::ProtectedPath
            | ErrorKind::OutOfScope
            | ErrorKind::ReadOnly
            | ErrorKind::NotOwner
            | ErrorKind::Locked
            | ErrorKind::Exists
            | ErrorKind::IsDirectory
            | ErrorKind::NotRegular
            | ErrorKind::NotEmpty
            | ErrorKind::NotText
            | ErrorKind::TextNotFound
            | ErrorKind::Ambiguous
            | ErrorKind::Overlap
            | ErrorKind::AlreadyApplied
            | ErrorKind::MalformedPatch
            | ErrorKind::Stale
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
            | ErrorKind::AuditUnavailable
            | ErrorKind::Io => Self::internal_error(error_sentence(error)),
        }
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> i64 {
        self.code.code()
    }

    pub(crate) fn to_json(&self) -> Value {
        if let Some(editor_error) = &self.editor_error {
            return editor_error.as_ref().clone();
        }
        let mut error = json!({ "code": self.code.code(), "message": self.code.message() });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// The error kind, the message and the next step, in one line for the agent.
fn error_sentence(error: &Error) -> String {
    match &error.next_step {
        Some(hint) => format!("{}: {}; {hint}", error.kind.code(), error.message),
        None => format!("{}: {}", error.kind.code(), error.message),
    }
}
