//! The `/v1` endpoints of a workspace. The request `POST /v1/{operation}` takes the arguments as a JSON object, and
//! returns the outcome as a JSON object. The route `/v1/files/{path}` reads, writes and deletes a file, whose `ETag` is
//! its version. Files are sent as attachments of type `application/octet-stream`, so that browsers never render them.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
    response::IntoResponse,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, ErrorKind, SuccessfulCallResult, Version,
    ops::{ReadArgs, ReadOutcome, RemoveArgs, StatArgs, WriteArgs},
};

use super::{
    archive::{self, LOG_EXPORT},
    body,
    client::{AuthenticatedHttpClient, CallHeaders, ClientRequestPermit},
    errors::{self, HttpHandlerError, HttpRejection, HttpResult},
    state::HttpServerState,
};
use crate::{
    native::{self, CallStyle},
    prepared_call::{OutcomeWithBytes, PreparedCall, RenderableOperation},
    strict_json::{StrictJsonParserReturnedPart, parse_strict},
};

const OPENAPI_JSON: &str = include_str!("../generated/openapi.json");
/// The number of response headers for which space is allocated in advance.
const TYPICAL_HEADER_COUNT: usize = 12;
const OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");
const ATTACHMENT_DISPOSITION: HeaderValue = HeaderValue::from_static("attachment");
const ACCEPT_BYTE_RANGES: HeaderValue = HeaderValue::from_static("bytes");

pub(super) async fn call_operation(
    State(state): State<Arc<HttpServerState>>,
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    operation: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    content: Body,
) -> HttpResult {
    let invalid = HttpRejection::bad_request(
        "the operation name in the URL is not valid UTF-8; GET /v1/openapi.json lists the operations",
    );
    let Path(operation) = operation.map_err(|_| invalid)?;
    let arguments = parse_arguments(&body::read_body(&client.limits, content).await?.bytes)?;
    if operation == LOG_EXPORT {
        return archive::serve_export(client, &state.transfer_limit, operation, arguments).await;
    }
    let call_headers = CallHeaders::from_headers(&headers);
    let reply = client.call_operation(&operation, &arguments, &call_headers).await?.into_result()?;
    Ok(errors::json_text_response(StatusCode::OK, reply.json))
}

/// The request body is parsed as strictly as a JSON-RPC message. An HTTP request with an empty body calls the operation
/// without arguments.
pub(super) fn parse_arguments(bytes: &[u8]) -> Result<Map<String, Value>, HttpRejection> {
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    match parse_strict(bytes, StrictJsonParserReturnedPart::Everything) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) | Err(_) => Err(HttpRejection::bad_request(
            "the body must be one JSON object with the arguments, without duplicate names",
        )),
    }
}

pub(super) async fn serve_openapi() -> Response<Body> {
    let mut response = Response::new(Body::from(OPENAPI_JSON));
    response.headers_mut().insert(header::CONTENT_TYPE, errors::JSON_CONTENT_TYPE);
    response
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestedByteRange {
    WholeFile,
    FromByte(u64),
    Between(u64, u64),
    LastBytes(u64),
}

impl RequestedByteRange {
    /// A Range header with several ranges, or with a unit other than bytes, is ignored, as HTTP allows.
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

pub(super) async fn get_file(
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    path: Result<Path<String>, PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> HttpResult {
    let Path(path) = path.map_err(reject_path)?;
    let range = RequestedByteRange::from_headers(&headers);
    let read = |bytes| {
        let arguments = ReadArgs { path: path.clone(), bytes, ..ReadArgs::default() };
        run_typed(&client, arguments, BeforeAfterContentInclusion::Include, &headers)
    };
    if range == RequestedByteRange::WholeFile {
        return Ok(full_response(read(None).await?, &headers, &method));
    }
    let stat = StatArgs { path: path.clone() };
    let stat = run_typed(&client, stat, BeforeAfterContentInclusion::Omit, &headers).await?.outcome;
    let version = stat.version.as_ref().map(|fields| fields.version);
    // If-None-Match takes precedence over Range.
    if matches_if_none_match(&headers, version) {
        return Ok(file_response(StatusCode::NOT_MODIFIED, version, Body::empty()));
    }
    // If the version of the file differs from the version in If-Range, the whole file is sent.
    if version.is_some() && !matches_if_range(&headers, version) {
        return Ok(full_response(read(None).await?, &headers, &method));
    }
    let Some((first, last)) = range.resolve(stat.size) else { return Ok(range_not_satisfiable(stat.size)) };
    partial_response(read(Some(format!("{first}-{last}"))).await?, first, &headers, &method)
}

pub(super) async fn run_typed<O: RenderableOperation>(
    client: &AuthenticatedHttpClient,
    arguments: O,
    before_after: BeforeAfterContentInclusion,
    headers: &HeaderMap,
) -> Result<OutcomeWithBytes<O::Result>, HttpHandlerError> {
    let options = CallOptions { before_after, ..CallOptions::default() };
    let call = PreparedCall::new(arguments, options, |result| OutcomeWithBytes::from_reply(result?));
    Ok(client.run_call(call, &CallHeaders::from_headers(headers)).await?.reply?)
}

fn file_response(status: StatusCode, version: Option<Version>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(TYPICAL_HEADER_COUNT);
    headers.insert(header::CONTENT_TYPE, OCTET_STREAM);
    headers.insert(header::CONTENT_DISPOSITION, ATTACHMENT_DISPOSITION);
    headers.insert(header::ACCEPT_RANGES, ACCEPT_BYTE_RANGES);
    headers.extend(version_etag(version).map(|tag| (header::ETAG, tag)));
    response
}

fn version_etag(version: Option<Version>) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{}\"", version?)).ok()
}

fn take_bytes(read: &mut OutcomeWithBytes<ReadOutcome>) -> Vec<u8> {
    read.before_after.pop().and_then(|bytes| bytes.before).unwrap_or_default()
}

fn matches_if_none_match(headers: &HeaderMap, version: Option<Version>) -> bool {
    let Some(version) = version.map(|version| version.to_string()) else { return false };
    let listed = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    listed == "*" || listed.split(',').any(|tag| etag_version(tag) == Some(&version))
}

/// If-Range matches only with a strong entity tag.
fn matches_if_range(headers: &HeaderMap, version: Option<Version>) -> bool {
    match headers.get(header::IF_RANGE).map(|value| value.to_str().unwrap_or_default()) {
        None => true,
        Some(tag) => {
            let version = version.map(|version| version.to_string());
            strong_etag_version(tag).is_some() && strong_etag_version(tag) == version.as_deref()
        }
    }
}

fn strong_etag_version(tag: &str) -> Option<&str> {
    if tag.trim().starts_with("W/") { None } else { etag_version(tag) }
}

fn etag_version(tag: &str) -> Option<&str> {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')
}

fn response_body(bytes: Vec<u8>, method: &Method) -> Body {
    if method == Method::HEAD { Body::empty() } else { Body::from(bytes) }
}

fn full_response(mut read: OutcomeWithBytes<ReadOutcome>, headers: &HeaderMap, method: &Method) -> Response<Body> {
    let version = Some(read.outcome.version.version);
    if matches_if_none_match(headers, version) {
        return file_response(StatusCode::NOT_MODIFIED, version, Body::empty());
    }
    let bytes = take_bytes(&mut read);
    let length = bytes.len();
    let mut response = file_response(StatusCode::OK, version, response_body(bytes, method));
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}

fn partial_response(
    mut read: OutcomeWithBytes<ReadOutcome>,
    first: u64,
    headers: &HeaderMap,
    method: &Method,
) -> HttpResult {
    let version = Some(read.outcome.version.version);
    // The version differs from If-Range if the file changed after `stat`, or if the file is too large to have a
    // version.
    if !matches_if_range(headers, version) {
        let reason =
            "the file changed: its version is not the one in If-Range; request the file again without If-Range";
        return Err(HttpRejection::new(StatusCode::PRECONDITION_FAILED, reason).into());
    }
    let size = read.outcome.size;
    let bytes = take_bytes(&mut read);
    let length = bytes.len() as u64;
    if length == 0 {
        return Ok(range_not_satisfiable(size));
    }
    let range = format!("bytes {first}-{}/{size}", first + length - 1);
    let mut response = file_response(StatusCode::PARTIAL_CONTENT, version, response_body(bytes, method));
    if let Ok(range) = HeaderValue::from_str(&range) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    Ok(response)
}

fn range_not_satisfiable(size: u64) -> Response<Body> {
    let reason = "the requested range is outside the file; Content-Range has the size of the file";
    let mut response = HttpRejection::new(StatusCode::RANGE_NOT_SATISFIABLE, reason).into_response();
    if let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response
}

/// The If-Match header contains the version that the file must have before the change. The header `If-None-Match: *`
/// means that the file must not exist before the change.
fn base_version(headers: &HeaderMap) -> Result<Option<String>, HttpRejection> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default().trim());
    let malformed = HttpRejection::bad_request(
        "invalid precondition: If-Match must be one quoted version such as \"r17\", and If-None-Match must be *",
    );
    match (text(header::IF_MATCH), text(header::IF_NONE_MATCH)) {
        (None, None) => Ok(None),
        (None, Some("*")) => Ok(Some(String::new())),
        (Some(tag), None) => {
            strong_etag_version(tag).filter(|tag| !tag.is_empty()).map(|tag| Some(tag.to_owned())).ok_or(malformed)
        }
        (Some(_) | None, Some(_)) => Err(malformed),
    }
}

/// A file whose name is not UTF-8 can be accessed with `/v1/{operation}`, whose arguments can escape bytes as `\xHH`.
fn reject_path(_rejection: PathRejection) -> HttpRejection {
    HttpRejection::bad_request("the path in the URL is not valid UTF-8 after percent-decoding; correct the URL")
}

pub(super) async fn put_file(
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    content: Body,
) -> HttpResult {
    let Path(path) = path.map_err(reject_path)?;
    let body = body::read_body(&client.limits, content).await;
    let (base, body) = (base_version(&headers)?, body?);
    let (content, encoding) = (STANDARD.encode(&body.bytes), Some("base64".to_owned()));
    let arguments = WriteArgs { path, content, encoding, base, ..WriteArgs::default() };
    change_file(&client, arguments, &headers, |write| (Some(write.version.version), write.created)).await
}

pub(super) async fn delete_file(
    ClientRequestPermit { client, permit: _permit }: ClientRequestPermit,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> HttpResult {
    let Path(path) = path.map_err(reject_path)?;
    let arguments = RemoveArgs { path, base: base_version(&headers)?, ..RemoveArgs::default() };
    change_file(&client, arguments, &headers, |_| (None, false)).await
}

/// The function `version_and_created` returns the version of the file, and whether the call created the file.
async fn change_file<O: RenderableOperation>(
    client: &AuthenticatedHttpClient,
    arguments: O,
    headers: &HeaderMap,
    version_and_created: fn(&O::Result) -> (Option<Version>, bool),
) -> HttpResult {
    let call = PreparedCall::new(arguments, CallOptions::default(), move |result| {
        let (version, created) = match result.as_ref().map(|reply| &reply.result) {
            Ok(SuccessfulCallResult::Done(outcome)) => version_and_created(outcome),
            Ok(SuccessfulCallResult::AlreadyDone(call)) => (call.version.as_ref().map(|fields| fields.version), false),
            Ok(SuccessfulCallResult::LeftToEditor) | Err(_) => (None, false),
        };
        (version, created, native::render_reply(result, CallStyle::ToolCall))
    });
    match client.run_call(call, &CallHeaders::from_headers(headers)).await?.into_result() {
        Ok((version, created, reply)) => {
            let status = if created { StatusCode::CREATED } else { StatusCode::OK };
            let mut response = errors::json_text_response(status, reply.json);
            response.headers_mut().extend(version_etag(version).map(|tag| (header::ETAG, tag)));
            Ok(response)
        }
        Err(error) if error.kind == ErrorKind::Exists && headers.contains_key(header::IF_NONE_MATCH) => {
            let mut response = HttpHandlerError::from(error).into_response();
            *response.status_mut() = StatusCode::PRECONDITION_FAILED;
            Ok(response)
        }
        Err(error) => Err(error.into()),
    }
}
