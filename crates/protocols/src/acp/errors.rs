//! ACP errors, which consist of a code, the fixed message of the code, and details in `data`. A path outside the roots
//! gets the same error as a missing file. An error response does not reveal whether a file exists outside the session
//! roots.

use serde_json::{Value, json};
use stead_engine::Error;

use crate::{
    error_rows::error_row,
    native::{CallStyle, without_nulls},
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AcpError {
    code: AcpErrorCode,
    data: Option<Value>,
    /// The proxy passes on an error of the editor unchanged.
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
    /// ACP clients compare error messages, so each ACP error code has one fixed message.
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

    pub(crate) fn parse_error() -> Self {
        Self::without_data(AcpErrorCode::ParseError)
    }

    pub(crate) fn invalid_request(reason: &str) -> Self {
        Self::new(AcpErrorCode::InvalidRequest, reason)
    }

    pub(crate) fn method_not_found(name: &str) -> Self {
        Self::new(AcpErrorCode::MethodNotFound, name)
    }

    pub(crate) fn invalid_params(reason: impl Into<Value>) -> Self {
        Self::new(AcpErrorCode::InvalidParams, reason)
    }

    pub(crate) fn internal_error(reason: impl Into<Value>) -> Self {
        Self::new(AcpErrorCode::InternalError, reason)
    }

    pub(crate) fn from_editor(error: Value) -> Self {
        Self { editor_error: Some(Box::new(error)), ..Self::without_data(AcpErrorCode::InternalError) }
    }

    pub(crate) fn cancelled() -> Self {
        Self::without_data(AcpErrorCode::Cancelled)
    }

    /// A file that is not accessible gets the same ACP error as a file that does not exist.
    pub(crate) fn file_not_found(path: &str) -> Self {
        Self::new(AcpErrorCode::NotFound, json!({ "uri": path }))
    }

    pub(crate) fn session_not_found(session: &str) -> Self {
        Self::new(AcpErrorCode::NotFound, json!({ "sessionId": session }))
    }

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
        without_nulls(json!({ "code": code, "message": message, "data": self.data }))
    }
}

fn error_sentence(error: &Error) -> String {
    match CallStyle::DialectTool(|_| None).render_hint(error) {
        Some(hint) => format!("{}: {}; {hint}", error.kind.code(), error.message),
        None => format!("{}: {}", error.kind.code(), error.message),
    }
}
