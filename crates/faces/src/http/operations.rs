//! One address for every operation: its arguments as an object in, its answer as an object out; and the document that
//! describes them.

use axum::{
    body::Body,
    extract::{Path, rejection::PathRejection},
    http::{HeaderMap, Response, StatusCode, header},
};
use serde_json::{Map, Value};

use super::{
    bodies,
    guard::Turned,
    guest::{Placed, Raw, Said},
    problem,
};
use crate::{rpc::strict, run::Broken};

/// The document, as it was generated.
const OPENAPI: &str = include_str!("../generated/openapi.json");

/// What a call without an outcome is answered.
pub(super) fn broken(broken: Broken) -> Response<Body> {
    let status = match broken {
        Broken::Off => StatusCode::INTERNAL_SERVER_ERROR,
        Broken::Closing => StatusCode::SERVICE_UNAVAILABLE,
    };
    let reason = match broken {
        Broken::Off => "the call broke off; what it changed is in history",
        Broken::Closing => "the server is stopping",
    };
    problem::turned(Turned::new(status, reason))
}

/// `POST /v1/{operation}`.
pub(super) async fn call(
    Placed { guest, place: _place }: Placed,
    operation: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    given: Body,
) -> Response<Body> {
    let Ok(Path(operation)) = operation else {
        return problem::turned(Turned::new(StatusCode::BAD_REQUEST, "the name of the operation is no text"));
    };
    let arguments = match bodies::read(&guest.allowance, given).await.and_then(|body| arguments(&body.bytes))
    {
        Ok(arguments) => arguments,
        Err(turned) => return problem::turned(turned),
    };
    match guest.call(&operation, arguments, &Said::read(&headers), Raw::No).await {
        Ok(Ok(answer)) => problem::json_body(StatusCode::OK, &Value::Object(answer.json)),
        Ok(Err(failure)) => problem::failed(&failure, &failure.to_json()),
        Err(off) => broken(off),
    }
}

/// The arguments in a body: one object, read as strictly as any message.
pub(super) fn arguments(bytes: &[u8]) -> Result<Map<String, Value>, Turned> {
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    match strict::read(bytes) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) | Err(_) => Err(Turned::new(
            StatusCode::BAD_REQUEST,
            "the body must be one JSON object with the arguments, no name twice",
        )),
    }
}

/// `GET /v1/openapi.json`.
pub(super) async fn document() -> Response<Body> {
    let mut response = Response::new(Body::from(OPENAPI));
    response.headers_mut().insert(header::CONTENT_TYPE, problem::JSON);
    response
}
