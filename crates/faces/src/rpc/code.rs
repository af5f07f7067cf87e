//! The codes of errors, and which failure has which.

use std::borrow::Cow;

use engine::{Failure, Fault, Kind};
use serde_json::{Value, json};

/// The message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is JSON and no request.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The machine could not do it.
pub const INTERNAL_ERROR: i64 = -32603;
/// The caller asks too often; `data.error.retry_after_ms` says when to ask again.
pub const RATE_LIMITED: i64 = -32000;
/// A rule of the policy forbids it.
pub const POLICY_DENIED: i64 = -32001;
/// A person has to approve it first; the same call runs once that has happened.
pub const APPROVAL_PENDING: i64 = -32002;
/// The transport does not know who asks.
pub const AUTHENTICATION_FAILED: i64 = -32003;
/// The call was made and failed; `data` says how, in the words of its dialect.
pub const FAILED: i64 = -32004;

/// The error member of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ErrorObject {
    pub(super) code: i64,
    pub(super) message: Cow<'static, str>,
    pub(super) data: Option<Box<Value>>,
}

impl ErrorObject {
    pub(super) fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(Box::new(data.into()));
        self
    }

    /// What an engine's failure is called here.
    pub(super) fn of(failure: &Failure, data: impl Into<Value>) -> Self {
        Self::new(code(failure.kind), failure.detail.clone()).with(data)
    }

    pub(super) fn json(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.as_ref().clone();
        }
        error
    }
}

/// The code of a kind of failure.
pub(super) fn code(kind: Kind) -> i64 {
    match (kind, kind.fault()) {
        (Kind::BadRequest, _) => INVALID_PARAMS,
        (Kind::UnknownOperation, _) => METHOD_NOT_FOUND,
        (Kind::RateLimited, _) => RATE_LIMITED,
        (Kind::PolicyDenied, _) => POLICY_DENIED,
        (Kind::ApprovalPending | Kind::ApprovalStale, _) => APPROVAL_PENDING,
        (_, Fault::Machine) => INTERNAL_ERROR,
        (_, Fault::Refusal | Fault::World) => FAILED,
    }
}

/// Whether a failure is one that the protocol has a code of its own for, wherever it happens.
pub(super) fn is_of_protocol(kind: Kind) -> bool {
    matches!(code(kind), RATE_LIMITED | POLICY_DENIED | APPROVAL_PENDING)
}
