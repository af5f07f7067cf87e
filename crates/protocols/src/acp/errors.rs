//! ACP errors. An ACP error consists of a code, the fixed message of this code, and details in `data`.
//!
//! A path outside the roots gets the same error as a missing file, so that responses do not reveal which files exist
//! outside the roots.

use serde_json::{Value, json};
use stead_engine::Error;

use crate::error_rows::error_row;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AcpError {
    code: AcpErrorCode,
    data: Option<Value>,
    /// An error of the editor, which is passed on unchanged.
    editor_error: Option<Box<Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcpErrorCode {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    InternalError,
    Cancelled,
    NotFound,
}

impl AcpErrorCode {
    /// The JSON-RPC number and the fixed message of an ACP error code; clients compare the messages.
    fn number_and_message(self) -> (i64, &'static str) {
        match self {
            AcpErrorCode::ParseError => (-32700, "Parse error"),
            AcpErrorCode::InvalidRequest => (-32600, "Invalid request"),
            AcpErrorCode::MethodNotFound => (-32601, "Method not found"),
            AcpErrorCode::InvalidParams => (-32602, "Invalid params"),
            AcpErrorCode::InternalError => (-32603, "Internal error"),
            AcpErrorCode::Cancelled => (-32800, "Request cancelled"),
            AcpErrorCode::NotFound => (-32002, "Resource not found"),
        }
    }
}

impl AcpError {
    fn new(code: AcpErrorCode, data: impl Into<Value>) -> Self {
        Self { data: Some(data.into()), ..Self::without_data(code) }
    }

    fn without_data(code: AcpErrorCode) -> Self {
        Self { code, data: None, editor_error: None }
    }

    /// The error for a line that is not a JSON object.
    pub(crate) fn parse_error() -> Self {
        Self::without_data(AcpErrorCode::ParseError)
    }

    /// The error for a line that is not a valid message.
    pub(crate) fn invalid_request(reason: &str) -> Self {
        Self::new(AcpErrorCode::InvalidRequest, reason)
    }

    /// The error for a method that the proxy did not advertise to the agent.
    pub(crate) fn method_not_found(name: &str) -> Self {
        Self::new(AcpErrorCode::MethodNotFound, name)
    }

    pub(crate) fn invalid_params(reason: impl Into<Value>) -> Self {
        Self::new(AcpErrorCode::InvalidParams, reason)
    }

    pub(crate) fn internal_error(reason: impl Into<Value>) -> Self {
        Self::new(AcpErrorCode::InternalError, reason)
    }

    /// Passes on an error of the editor unchanged.
    pub(crate) fn from_editor(error: Value) -> Self {
        Self { editor_error: Some(Box::new(error)), ..Self::without_data(AcpErrorCode::InternalError) }
    }

    pub(crate) fn cancelled() -> Self {
        Self::without_data(AcpErrorCode::Cancelled)
    }

    /// The error for a file that does not exist or is not accessible.
    pub(crate) fn file_not_found(path: &str) -> Self {
        Self::new(AcpErrorCode::NotFound, json!({ "uri": path }))
    }

    pub(crate) fn session_not_found(session: &str) -> Self {
        Self::new(AcpErrorCode::NotFound, json!({ "sessionId": session }))
    }

    /// Converts an engine error to an ACP error, which contains `path` as the client wrote it.
    pub(crate) fn from_error(error: &Error, path: &str) -> Self {
        match error_row(error.kind).acp {
            AcpErrorCode::NotFound => Self::file_not_found(path),
            AcpErrorCode::Cancelled => Self::cancelled(),
            code @ (AcpErrorCode::ParseError
            | AcpErrorCode::InvalidRequest
            | AcpErrorCode::MethodNotFound
            | AcpErrorCode::InvalidParams
            | AcpErrorCode::InternalError) => Self::new(code, error_sentence(error)),
        }
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> i64 {
        self.code.number_and_message().0
    }

    pub(crate) fn to_json(&self) -> Value {
        if let Some(editor_error) = &self.editor_error {
            return editor_error.as_ref().clone();
        }
        let (code, message) = self.code.number_and_message();
        let mut error = json!({ "code": code, "message": message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

/// One line of text about an engine error, with the error kind, the message and the next step.
fn error_sentence(error: &Error) -> String {
    match &error.next_step {
        Some(hint) => format!("{}: {}; {hint}", error.kind.code(), error.message),
        None => format!("{}: {}", error.kind.code(), error.message),
    }
}
