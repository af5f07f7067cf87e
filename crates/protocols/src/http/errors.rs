//! HTTP error responses. A rejected request gets a status code and a reason. A failed call gets the status code of its
//! error kind, and the engine's error object as the body.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use serde_json::{Value, json};
use stead_engine::Error;

use crate::{
    call_executor::CallPanicOrShutdownError,
    error_rows::{RetryAdvice, error_row},
    limits::RETRY_AFTER_SECONDS,
    native::CallStyle,
};

pub(super) const JSON_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const BEARER_CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"stead\"");

/// An HTTP request that the server rejects without a result or an error from the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HttpRejection {
    pub(super) status: StatusCode,
    reason: &'static str,
    /// The Retry-After header is sent only with the status codes 429 and 503.
    retry_after_seconds: u64,
}

impl HttpRejection {
    pub(super) fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason, retry_after_seconds: RETRY_AFTER_SECONDS }
    }

    pub(super) fn bad_request(reason: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    pub(super) fn unauthorized(reason: &'static str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, reason)
    }

    pub(super) fn forbidden(reason: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, reason)
    }

    pub(super) fn not_found(reason: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, reason)
    }

    pub(super) fn too_many_requests(reason: &'static str) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, reason)
    }

    pub(super) fn internal_error(reason: &'static str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
    }

    pub(super) fn unavailable(reason: &'static str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    }

    /// The time in Retry-After is rounded up to whole seconds.
    pub(super) fn retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self { retry_after_seconds: seconds.max(RETRY_AFTER_SECONDS), ..self }
    }
}

impl IntoResponse for HttpRejection {
    fn into_response(self) -> Response<Body> {
        let error = json!({ "error": { "kind": "refused", "detail": self.reason } });
        let mut response = json_response(self.status, &error);
        match self.status {
            StatusCode::UNAUTHORIZED => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, BEARER_CHALLENGE);
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                response.headers_mut().insert(header::RETRY_AFTER, self.retry_after_seconds.into());
            }
            _ => {}
        }
        response
    }
}

pub(super) type HttpResult = Result<Response<Body>, HttpHandlerError>;

#[derive(Debug)]
pub(super) enum HttpHandlerError {
    Rejected(HttpRejection),
    CallFailed(Error),
}

impl From<HttpRejection> for HttpHandlerError {
    fn from(rejection: HttpRejection) -> Self {
        HttpHandlerError::Rejected(rejection)
    }
}

impl From<CallPanicOrShutdownError> for HttpHandlerError {
    fn from(abort: CallPanicOrShutdownError) -> Self {
        HttpHandlerError::Rejected(match abort {
            CallPanicOrShutdownError::Panicked => HttpRejection::internal_error(
                "internal error: the call panicked; POST /v1/history shows whether it changed files",
            ),
            CallPanicOrShutdownError::ShuttingDown => {
                HttpRejection::unavailable("the server is shutting down; retry when it runs again")
            }
        })
    }
}

impl From<Error> for HttpHandlerError {
    fn from(error: Error) -> Self {
        HttpHandlerError::CallFailed(error)
    }
}

impl IntoResponse for HttpHandlerError {
    fn into_response(self) -> Response<Body> {
        match self {
            HttpHandlerError::Rejected(rejection) => rejection.into_response(),
            HttpHandlerError::CallFailed(error) => error_response(&error),
        }
    }
}

pub(super) fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    json_text_response(status, value.to_string())
}

pub(super) fn json_text_response(status: StatusCode, json: String) -> Response<Body> {
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON_CONTENT_TYPE);
    response
}

fn error_response(error: &Error) -> Response<Body> {
    let row = error_row(error.kind);
    let mut response = json_response(row.http, &CallStyle::Endpoint.error_to_json(error));
    let wait = match error.details.retry_after_ms.and_then(|ms| u64::try_from(ms).ok()) {
        Some(ms) => Some(ms.div_ceil(1000)),
        None => matches!(row.retry, RetryAdvice::Soon | RetryAdvice::AfterRepair).then_some(RETRY_AFTER_SECONDS),
    };
    if let Some(seconds) = wait {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}
