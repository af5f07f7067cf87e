//! HTTP error responses: a status code, and the engine's error object as the body.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use serde_json::{Value, json};
use stead_engine::{Error, ErrorKind};

use super::{host_check::HttpRejection, limits::RETRY_AFTER_SECONDS};

pub(super) const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const BEARER_CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"stead\"");

pub(super) fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON_CONTENT_TYPE);
    response
}

/// The response to a rejected request.
pub(super) fn rejection_response(rejection: HttpRejection) -> Response<Body> {
    let error = json!({ "error": { "kind": "refused", "detail": rejection.reason } });
    let mut response = json_response(rejection.status, &error);
    match rejection.status {
        StatusCode::UNAUTHORIZED => {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, BEARER_CHALLENGE);
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            response.headers_mut().insert(header::RETRY_AFTER, rejection.retry_after_seconds.into());
        }
        _ => {}
    }
    response
}

/// The response to a failed call, with the error object of its dialect.
pub(super) fn error_response(error: &Error, object: &Value) -> Response<Body> {
    let mut response = json_response(status_for_kind(error.kind), object);
    let wait_ms = error.details.get("retry_after_ms").and_then(Value::as_u64);
    let wait = match (error.kind, wait_ms) {
        (_, Some(ms)) => Some(ms.div_ceil(1000)),
        (ErrorKind::Busy | ErrorKind::RateLimited | ErrorKind::AuditUnavailable, None) => Some(RETRY_AFTER_SECONDS),
        (_, None) => None,
    };
    if let Some(seconds) = wait {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

pub(super) fn status_for_kind(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::BadRequest
        | ErrorKind::InvalidPath
        | ErrorKind::PathTooLong
        | ErrorKind::NameTooLong
        | ErrorKind::DepthLimit
        | ErrorKind::InvalidName => StatusCode::BAD_REQUEST,
        ErrorKind::PathEscape
        | ErrorKind::CrossMount
        | ErrorKind::ProtectedPath
        | ErrorKind::OutOfScope
        | ErrorKind::ReadOnly
        | ErrorKind::NotOwner
        | ErrorKind::NotRegular
        | ErrorKind::PolicyDenied
        | ErrorKind::ApprovalPending
        | ErrorKind::ApprovalDenied => StatusCode::FORBIDDEN,
        ErrorKind::UnknownOperation | ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::NameCollision
        | ErrorKind::Exists
        | ErrorKind::NotDirectory
        | ErrorKind::IsDirectory
        | ErrorKind::NotEmpty
        | ErrorKind::LinkLoop
        | ErrorKind::AlreadyApplied
        | ErrorKind::Conflict
        | ErrorKind::NothingToDo
        | ErrorKind::TooMany
        | ErrorKind::ApprovalStale => StatusCode::CONFLICT,
        ErrorKind::Expired | ErrorKind::HistoryLost => StatusCode::GONE,
        ErrorKind::Stale => StatusCode::PRECONDITION_FAILED,
        ErrorKind::BaseRequired => StatusCode::PRECONDITION_REQUIRED,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::NotText
        | ErrorKind::TextNotFound
        | ErrorKind::Ambiguous
        | ErrorKind::Overlap
        | ErrorKind::MalformedPatch => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Locked => StatusCode::LOCKED,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::CorruptHistory | ErrorKind::SystemDenied | ErrorKind::Io => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::Busy | ErrorKind::Cancelled | ErrorKind::AuditUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Deadline => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::QuotaExceeded | ErrorKind::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
    }
}
