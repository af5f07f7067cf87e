//! Refusals and failures as HTTP tells them: a status for programs, the engine's own object for everybody.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use engine::{Failure, Kind};
use serde_json::{Value, json};

use super::{guard::Turned, limits::RETRY_SECONDS};

/// The type of every JSON body.
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// What a client without a valid token is told to bring.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"stead\"");

/// A JSON body.
pub(super) fn json_body(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// A request that goes no further.
pub(super) fn turned(turned: Turned) -> Response<Body> {
    let error = json!({ "error": { "kind": "refused", "detail": turned.reason } });
    let mut response = json_body(turned.status, &error);
    match turned.status {
        StatusCode::UNAUTHORIZED => {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, CHALLENGE);
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            response.headers_mut().insert(header::RETRY_AFTER, turned.retry_seconds.into());
        }
        _ => {}
    }
    response
}

/// A call that failed, with the object that its dialect answers.
pub(super) fn failed(failure: &Failure, object: &Value) -> Response<Body> {
    let mut response = json_body(status(failure.kind), object);
    let wait_ms = failure.facts.get("retry_after_ms").and_then(Value::as_u64);
    let wait = match (failure.kind, wait_ms) {
        (_, Some(ms)) => Some(ms.div_ceil(1000)),
        (Kind::Busy | Kind::RateLimited | Kind::AuditUnavailable, None) => Some(RETRY_SECONDS),
        (_, None) => None,
    };
    if let Some(seconds) = wait {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// The status of a kind.
pub(super) fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::BadRequest
        | Kind::InvalidPath
        | Kind::PathTooLong
        | Kind::NameTooLong
        | Kind::DepthLimit
        | Kind::InvalidName => StatusCode::BAD_REQUEST,
        Kind::PathEscape
        | Kind::CrossMount
        | Kind::ProtectedPath
        | Kind::OutOfScope
        | Kind::ReadOnly
        | Kind::NotOwner
        | Kind::NotRegular
        | Kind::PolicyDenied
        | Kind::ApprovalPending
        | Kind::ApprovalDenied => StatusCode::FORBIDDEN,
        Kind::UnknownOperation | Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::NameCollision
        | Kind::Exists
        | Kind::NotDirectory
        | Kind::IsDirectory
        | Kind::NotEmpty
        | Kind::LinkLoop
        | Kind::AlreadyApplied
        | Kind::Conflict
        | Kind::NothingToDo
        | Kind::TooMany
        | Kind::ApprovalStale => StatusCode::CONFLICT,
        Kind::Expired | Kind::HistoryLost => StatusCode::GONE,
        Kind::Stale => StatusCode::PRECONDITION_FAILED,
        Kind::BaseRequired => StatusCode::PRECONDITION_REQUIRED,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::NotText | Kind::TextNotFound | Kind::Ambiguous | Kind::Overlap | Kind::MalformedPatch => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Kind::Locked => StatusCode::LOCKED,
        Kind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Kind::CorruptHistory | Kind::Denied | Kind::Io => StatusCode::INTERNAL_SERVER_ERROR,
        Kind::Busy | Kind::Cancelled | Kind::AuditUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Deadline => StatusCode::GATEWAY_TIMEOUT,
        Kind::Quota | Kind::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
    }
}
