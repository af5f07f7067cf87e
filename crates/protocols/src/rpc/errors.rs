//! JSON-RPC error codes, and the code of each error kind.

use std::borrow::Cow;

use serde_json::{Value, json};
use stead_engine::{Error, ErrorClass, ErrorKind};

/// The message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are invalid.
pub const INVALID_PARAMS: i64 = -32602;
/// The system failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// The caller exceeded its rate limit; `data.error.retry_after_ms` says when to retry.
pub const RATE_LIMITED: i64 = -32000;
/// A policy rule denies the call.
pub const POLICY_DENIED: i64 = -32001;
/// The call needs approval; repeat it unchanged once approved.
pub const APPROVAL_PENDING: i64 = -32002;
/// The client is not authenticated.
pub const AUTHENTICATION_FAILED: i64 = -32003;
/// The call failed; `data` describes the error in the form of its dialect.
pub const CALL_FAILED: i64 = -32004;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: Cow<'static, str>,
    pub(super) data: Option<Box<Value>>,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with_data(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(Box::new(data.into()));
        self
    }

    pub(super) fn from_error(error: &Error, data: impl Into<Value>) -> Self {
        Self::new(code_for_kind(error.kind), error.message.clone()).with_data(data)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.as_ref().clone();
        }
        error
    }
}

pub(super) fn code_for_kind(kind: ErrorKind) -> i64 {
    match (kind, kind.class()) {
        (ErrorKind::BadRequest, _) => INVALID_PARAMS,
        (ErrorKind::UnknownOperation, _) => METHOD_NOT_FOUND,
        (ErrorKind::RateLimited, _) => RATE_LIMITED,
        (ErrorKind::PolicyDenied, _) => POLICY_DENIED,
        (ErrorKind::ApprovalPending | ErrorKind::ApprovalStale, _) => APPROVAL_PENDING,
        (_, ErrorClass::SystemFailure) => INTERNAL_ERROR,
        (_, ErrorClass::Refused | ErrorClass::StateMismatch) => CALL_FAILED,
    }
}

/// Whether the kind has a code that applies in every method.
pub(super) fn has_protocol_code(kind: ErrorKind) -> bool {
    matches!(code_for_kind(kind), RATE_LIMITED | POLICY_DENIED | APPROVAL_PENDING)
}
