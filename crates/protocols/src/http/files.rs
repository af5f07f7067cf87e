//! `/v1/files/{path}`: `GET`, `HEAD`, `PUT` and `DELETE`, with the version as `ETag`. Files are served as attachments of
//! type `application/octet-stream`, so that browsers never render them.

use axum::{
    body::Body,
    extract::{Path, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use stead_engine::{CallOutcome, ErrorKind};

use super::{
    body,
    client::{AuthenticatedClient, CallHeaders, ClientRequestPermit, FileBytesInclusion},
    errors,
    host_check::HttpRejection,
    operations,
};

/// Capacity reserved for response headers.
const TYPICAL_HEADER_COUNT: usize = 12;
const OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");
const ATTACHMENT_DISPOSITION: HeaderValue = HeaderValue::from_static("attachment");
const ACCEPT_BYTE_RANGES: HeaderValue = HeaderValue::from_static("bytes");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestedByteRange {
    WholeFile,
    FromByte(u64),
    Between(u64, u64),
    LastBytes(u64),
}

impl RequestedByteRange {
    /// Parses the Range header. Multiple ranges and other units are ignored, as HTTP allows.
    fn from_headers(headers: &HeaderMap) -> Self {
        let range = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
        let Some((first, last)) =
            range.and_then(|range| range.strip_prefix("bytes=")).and_then(|range| range.split_once('-'))
        else {
            return RequestedByteRange::WholeFile;
        };
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => RequestedByteRange::Between(first, last),
            (Ok(first), Err(_)) if last.is_empty() => RequestedByteRange::FromByte(first),
            (Err(_), Ok(length)) if first.is_empty() => RequestedByteRange::LastBytes(length),
            _ => RequestedByteRange::WholeFile,
        }
    }

    /// The first and last byte in a file of this size; `None` if the range is outside of it.
    fn resolve(self, size: u64) -> Option<(u64, u64)> {
        let end = size.checked_sub(1)?;
        match self {
            RequestedByteRange::WholeFile => Some((0, end)),
            RequestedByteRange::FromByte(first) => (first <= end).then_some((first, end)),
            RequestedByteRange::Between(first, last) => (first <= end).then_some((first, last.min(end))),
            RequestedByteRange::LastBytes(length) => (length > 0).then_some((size.saturating_sub(length), end)),
        }
    }
}

/// `GET` and `HEAD /v1/files/{path}`.
pub(super) async fn get_file(
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    path: Result<Path<String>, PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> Response<Body> {
    let Ok(Path(path)) = path else { return invalid_path_response() };
    let call_headers = CallHeaders::from_headers(&headers);
    let range = RequestedByteRange::from_headers(&headers);
    let mut arguments = Map::from_iter([("path".to_owned(), Value::from(path.as_str()))]);
    let send_whole_file = async |arguments| match client
        .call_operation("read", arguments, &call_headers, FileBytesInclusion::Include)
        .await
    {
        Ok(Ok(outcome)) => full_response(outcome, &headers, &method),
        Ok(Err(error)) => errors::error_response(&error, &error.to_json()),
        Err(abort) => operations::call_abort_response(abort),
    };
    if range == RequestedByteRange::WholeFile {
        return send_whole_file(arguments).await;
    }
    let size = match client.call_operation("stat", arguments.clone(), &call_headers, FileBytesInclusion::Omit).await {
        // If-None-Match takes precedence over Range.
        Ok(Ok(outcome)) if matches_if_none_match(&headers, &outcome) => {
            return file_response(StatusCode::NOT_MODIFIED, &outcome, Body::empty());
        }
        // If-Range does not match: send the whole file.
        Ok(Ok(outcome)) if outcome_version(&outcome).is_some() && !matches_if_range(&headers, &outcome) => {
            return send_whole_file(arguments).await;
        }
        Ok(Ok(outcome)) => outcome.json.get("size").and_then(Value::as_u64).unwrap_or_default(),
        Ok(Err(error)) => return errors::error_response(&error, &error.to_json()),
        Err(abort) => return operations::call_abort_response(abort),
    };
    let Some((first, last)) = range.resolve(size) else { return range_not_satisfiable(size) };
    arguments.insert("bytes".to_owned(), format!("{first}-{last}").into());
    match client.call_operation("read", arguments, &call_headers, FileBytesInclusion::Include).await {
        Ok(Ok(outcome)) => partial_response(outcome, first, &headers, &method),
        Ok(Err(error)) => errors::error_response(&error, &error.to_json()),
        Err(abort) => operations::call_abort_response(abort),
    }
}

/// A response with the headers common to all file responses.
fn file_response(status: StatusCode, outcome: &CallOutcome, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(TYPICAL_HEADER_COUNT);
    headers.insert(header::CONTENT_TYPE, OCTET_STREAM);
    headers.insert(header::CONTENT_DISPOSITION, ATTACHMENT_DISPOSITION);
    headers.insert(header::ACCEPT_RANGES, ACCEPT_BYTE_RANGES);
    if let Some(tag) =
        outcome_version(outcome).and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok())
    {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn outcome_version(outcome: &CallOutcome) -> Option<&str> {
    outcome.json.get("version").and_then(Value::as_str)
}

fn take_bytes(outcome: &mut CallOutcome) -> Vec<u8> {
    outcome.before_after.pop().and_then(|bytes| bytes.before).unwrap_or_default()
}

/// Whether If-None-Match lists this version.
fn matches_if_none_match(headers: &HeaderMap, outcome: &CallOutcome) -> bool {
    let Some(version) = outcome_version(outcome) else { return false };
    let listed = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    listed == "*" || listed.split(',').any(|tag| etag_version(tag) == Some(version))
}

/// Whether If-Range is absent or names this version with a strong tag.
fn matches_if_range(headers: &HeaderMap, outcome: &CallOutcome) -> bool {
    match headers.get(header::IF_RANGE).map(|value| value.to_str().unwrap_or_default()) {
        None => true,
        Some(tag) => strong_etag_version(tag).is_some() && strong_etag_version(tag) == outcome_version(outcome),
    }
}

/// The version in a strong entity tag.
fn strong_etag_version(tag: &str) -> Option<&str> {
    if tag.trim().starts_with("W/") { None } else { etag_version(tag) }
}

/// The version in an entity tag.
fn etag_version(tag: &str) -> Option<&str> {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')
}

fn response_body(bytes: Vec<u8>, method: &Method) -> Body {
    if method == Method::HEAD { Body::empty() } else { Body::from(bytes) }
}

fn full_response(mut outcome: CallOutcome, headers: &HeaderMap, method: &Method) -> Response<Body> {
    if matches_if_none_match(headers, &outcome) {
        return file_response(StatusCode::NOT_MODIFIED, &outcome, Body::empty());
    }
    let bytes = take_bytes(&mut outcome);
    let length = bytes.len();
    let mut response = file_response(StatusCode::OK, &outcome, response_body(bytes, method));
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}

fn partial_response(mut outcome: CallOutcome, first: u64, headers: &HeaderMap, method: &Method) -> Response<Body> {
    // The file changed after `stat`, or it is too large to be sent whole.
    if !matches_if_range(headers, &outcome) {
        return errors::rejection_response(HttpRejection::new(
            StatusCode::PRECONDITION_FAILED,
            "the file changed; its version no longer matches If-Range",
        ));
    }
    let size = outcome.json.get("size").and_then(Value::as_u64).unwrap_or_default();
    let bytes = take_bytes(&mut outcome);
    let length = bytes.len() as u64;
    if length == 0 {
        return range_not_satisfiable(size);
    }
    let range = format!("bytes {first}-{}/{size}", first + length - 1);
    let mut response = file_response(StatusCode::PARTIAL_CONTENT, &outcome, response_body(bytes, method));
    if let Ok(range) = HeaderValue::from_str(&range) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}

fn range_not_satisfiable(size: u64) -> Response<Body> {
    let mut response = errors::rejection_response(HttpRejection::new(
        StatusCode::RANGE_NOT_SATISFIABLE,
        "the requested range is outside the file",
    ));
    if let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response
}

/// The base version in If-Match or If-None-Match.
fn base_version(headers: &HeaderMap) -> Result<Option<String>, HttpRejection> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default().trim());
    let malformed =
        HttpRejection::new(StatusCode::BAD_REQUEST, "If-Match must be one quoted version; If-None-Match must be *");
    match (text(header::IF_MATCH), text(header::IF_NONE_MATCH)) {
        (None, None) => Ok(None),
        (None, Some("*")) => Ok(Some(String::new())),
        (Some(tag), None) => {
            strong_etag_version(tag).filter(|tag| !tag.is_empty()).map(|tag| Some(tag.to_owned())).ok_or(malformed)
        }
        (Some(_) | None, Some(_)) => Err(malformed),
    }
}

/// The path is not UTF-8 after percent-decoding. Such file names use the escapes of the operations instead.
fn invalid_path_response() -> Response<Body> {
    errors::rejection_response(HttpRejection::new(
        StatusCode::BAD_REQUEST,
        "the percent-decoded path is not valid UTF-8",
    ))
}

/// `PUT /v1/files/{path}`.
pub(super) async fn put_file(
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    content: Body,
) -> Response<Body> {
    let Ok(Path(path)) = path else { return invalid_path_response() };
    let (base, body) = match (base_version(&headers), body::read_body(&client.limits, content).await) {
        (Ok(base), Ok(body)) => (base, body),
        (Err(rejection), _) | (Ok(_), Err(rejection)) => return errors::rejection_response(rejection),
    };
    let mut arguments = json!({ "path": path, "content": STANDARD.encode(&body.bytes), "encoding": "base64" });
    if let Some(base) = base {
        arguments["base"] = base.into();
    }
    change_file(&client, "write", arguments, &headers).await
}

/// `DELETE /v1/files/{path}`.
pub(super) async fn delete_file(
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Response<Body> {
    let Ok(Path(path)) = path else { return invalid_path_response() };
    let mut arguments = json!({ "path": path });
    match base_version(&headers) {
        Ok(Some(base)) => arguments["base"] = base.into(),
        Ok(None) => {}
        Err(rejection) => return errors::rejection_response(rejection),
    }
    change_file(&client, "remove", arguments, &headers).await
}

/// Runs a change and builds its response.
async fn change_file(
    client: &AuthenticatedClient,
    operation: &str,
    arguments: Value,
    headers: &HeaderMap,
) -> Response<Body> {
    let Value::Object(arguments) = arguments else {
        return errors::rejection_response(HttpRejection::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error: the arguments are not an object",
        ));
    };
    match client
        .call_operation(operation, arguments, &CallHeaders::from_headers(headers), FileBytesInclusion::Omit)
        .await
    {
        Ok(Ok(outcome)) => {
            let created = outcome.json.get("created").and_then(Value::as_bool) == Some(true);
            let status = if created { StatusCode::CREATED } else { StatusCode::OK };
            let tag =
                outcome_version(&outcome).and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok());
            let mut response = errors::json_response(status, &Value::Object(outcome.json));
            if let Some(tag) = tag {
                response.headers_mut().insert(header::ETAG, tag);
            }
            response
        }
        Ok(Err(error)) => {
            let mut response = errors::error_response(&error, &error.to_json());
            if error.kind == ErrorKind::Exists && headers.contains_key(header::IF_NONE_MATCH) {
                *response.status_mut() = StatusCode::PRECONDITION_FAILED;
            }
            response
        }
        Err(abort) => operations::call_abort_response(abort),
    }
}
