//! `POST /v1/{operation}`: arguments as a JSON object in, outcome as a JSON object out; and the OpenAPI document.

use axum::{
    body::Body,
    extract::{Path, rejection::PathRejection},
    http::{HeaderMap, Response, StatusCode, header},
};
use serde_json::{Map, Value};

use super::{
    body,
    client::{CallHeaders, ClientRequestPermit, FileBytesInclusion},
    errors,
    host_check::HttpRejection,
};
use crate::{call_executor::CallAbortError, rpc::parse_strict};

const OPENAPI_JSON: &str = include_str!("../generated/openapi.json");

/// The response to a call that ended without an outcome.
pub(super) fn call_abort_response(abort: CallAbortError) -> Response<Body> {
    let status = match abort {
        CallAbortError::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        CallAbortError::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
    };
    let reason = match abort {
        CallAbortError::Panicked => "internal error: the call panicked; committed changes are in the history",
        CallAbortError::ShuttingDown => "the server is shutting down",
    };
    errors::rejection_response(HttpRejection::new(status, reason))
}

/// `POST /v1/{operation}`.
pub(super) async fn call_operation(
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    operation: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    content: Body,
) -> Response<Body> {
    let Ok(Path(operation)) = operation else {
        return errors::rejection_response(HttpRejection::new(
            StatusCode::BAD_REQUEST,
            "the operation name is not valid UTF-8",
        ));
    };
    let arguments = match body::read_body(&client.limits, content).await.and_then(|body| parse_arguments(&body.bytes)) {
        Ok(arguments) => arguments,
        Err(rejection) => return errors::rejection_response(rejection),
    };
    match client
        .call_operation(&operation, arguments, &CallHeaders::from_headers(&headers), FileBytesInclusion::Omit)
        .await
    {
        Ok(Ok(outcome)) => errors::json_response(StatusCode::OK, &Value::Object(outcome.json)),
        Ok(Err(error)) => errors::error_response(&error, &error.to_json()),
        Err(abort) => call_abort_response(abort),
    }
}

/// Parses a body as one JSON object, as strictly as a JSON-RPC message.
pub(super) fn parse_arguments(bytes: &[u8]) -> Result<Map<String, Value>, HttpRejection> {
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    match parse_strict(bytes) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) | Err(_) => Err(HttpRejection::new(
            StatusCode::BAD_REQUEST,
            "the body must be one JSON object with the arguments, without duplicate names",
        )),
    }
}

/// `GET /v1/openapi.json`.
pub(super) async fn serve_openapi() -> Response<Body> {
    let mut response = Response::new(Body::from(OPENAPI_JSON));
    response.headers_mut().insert(header::CONTENT_TYPE, errors::JSON_CONTENT_TYPE);
    response
}
