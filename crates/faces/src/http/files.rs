//! Files by their address: `GET`, `HEAD`, `PUT` and `DELETE`, with the version as `ETag`. A file is bytes here, whatever it
//! holds: nothing is served that a browser would show.

use axum::{
    body::Body,
    extract::{Path, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use engine::{Answer, Kind};
use serde_json::{Map, Value, json};

use super::{
    bodies,
    guard::Turned,
    guest::{Guest, Placed, Raw, Said},
    operations, problem,
};

/// Headers that an answer has in the end: room is made for them once.
const HEADERS_USUAL: usize = 12;
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const ATTACHED: HeaderValue = HeaderValue::from_static("attachment");
const RANGES: HeaderValue = HeaderValue::from_static("bytes");

/// Which bytes of a file are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    From(u64),
    Between(u64, u64),
    Last(u64),
}

impl Part {
    /// What a Range header asks for. One that asks for several parts, or in another unit, is left aside, as the protocol
    /// allows.
    fn read(headers: &HeaderMap) -> Self {
        let said = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
        let Some((first, last)) =
            said.and_then(|said| said.strip_prefix("bytes=")).and_then(|said| said.split_once('-'))
        else {
            return Part::Whole;
        };
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Part::Between(first, last),
            (Ok(first), Err(_)) if last.is_empty() => Part::From(first),
            (Err(_), Ok(length)) if first.is_empty() => Part::Last(length),
            _ => Part::Whole,
        }
    }

    /// The argument of `read` for a file of this size, and the first byte.
    fn within(self, size: u64) -> Option<(u64, u64)> {
        let end = size.checked_sub(1)?;
        match self {
            Part::Whole => Some((0, end)),
            Part::From(first) => (first <= end).then_some((first, end)),
            Part::Between(first, last) => (first <= end).then_some((first, last.min(end))),
            Part::Last(length) => (length > 0).then_some((size.saturating_sub(length), end)),
        }
    }
}

/// `GET` and `HEAD`.
pub(super) async fn get(
    Placed { guest, place: _place }: Placed,
    path: Result<Path<String>, PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> Response<Body> {
    let Ok(Path(path)) = path else { return unreadable() };
    let said = Said::read(&headers);
    let part = Part::read(&headers);
    let mut arguments = Map::from_iter([("path".to_owned(), Value::from(path.as_str()))]);
    let everything = async |arguments| match guest.call("read", arguments, &said, Raw::Bytes).await {
        Ok(Ok(answer)) => whole(answer, &headers, &method),
        Ok(Err(failure)) => problem::failed(&failure, &failure.to_json()),
        Err(off) => operations::broken(off),
    };
    if part == Part::Whole {
        return everything(arguments).await;
    }
    let size = match guest.call("stat", arguments.clone(), &said, Raw::No).await {
        // Whether the version is known counts before which part of it is wanted.
        Ok(Ok(answer)) if is_known(&headers, &answer) => {
            return described(StatusCode::NOT_MODIFIED, &answer, Body::empty());
        }
        // Whoever has begun with another version wants this one from its start.
        Ok(Ok(answer)) if version(&answer).is_some() && !is_begun(&headers, &answer) => {
            return everything(arguments).await;
        }
        Ok(Ok(answer)) => answer.json.get("size").and_then(Value::as_u64).unwrap_or_default(),
        Ok(Err(failure)) => return problem::failed(&failure, &failure.to_json()),
        Err(off) => return operations::broken(off),
    };
    let Some((first, last)) = part.within(size) else { return unsatisfiable(size) };
    arguments.insert("bytes".to_owned(), format!("{first}-{last}").into());
    match guest.call("read", arguments, &said, Raw::Bytes).await {
        Ok(Ok(answer)) => some(answer, first, &headers, &method),
        Ok(Err(failure)) => problem::failed(&failure, &failure.to_json()),
        Err(off) => operations::broken(off),
    }
}

/// The headers that every answer about a file has.
fn described(status: StatusCode, answer: &Answer, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(HEADERS_USUAL);
    headers.insert(header::CONTENT_TYPE, BYTES);
    headers.insert(header::CONTENT_DISPOSITION, ATTACHED);
    headers.insert(header::ACCEPT_RANGES, RANGES);
    if let Some(tag) =
        version(answer).and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok())
    {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn version(answer: &Answer) -> Option<&str> {
    answer.json.get("version").and_then(Value::as_str)
}

fn bytes(answer: &mut Answer) -> Vec<u8> {
    answer.evidence.pop().and_then(|held| held.before).unwrap_or_default()
}

/// Whether the client already has this version.
fn is_known(headers: &HeaderMap, answer: &Answer) -> bool {
    let Some(version) = version(answer) else { return false };
    let listed = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    listed == "*" || listed.split(',').any(|tag| bare(tag) == Some(version))
}

/// Whether a part of this version fits to what the client has. Only one that is said to be the same byte for byte does.
fn is_begun(headers: &HeaderMap, answer: &Answer) -> bool {
    match headers.get(header::IF_RANGE).map(|value| value.to_str().unwrap_or_default()) {
        None => true,
        Some(tag) => strong(tag).is_some() && strong(tag) == version(answer),
    }
}

/// A version out of an entity tag that promises the same bytes.
fn strong(tag: &str) -> Option<&str> {
    if tag.trim().starts_with("W/") { None } else { bare(tag) }
}

/// A version out of an entity tag.
fn bare(tag: &str) -> Option<&str> {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')
}

fn body_of(bytes: Vec<u8>, method: &Method) -> Body {
    if method == Method::HEAD { Body::empty() } else { Body::from(bytes) }
}

fn whole(mut answer: Answer, headers: &HeaderMap, method: &Method) -> Response<Body> {
    if is_known(headers, &answer) {
        return described(StatusCode::NOT_MODIFIED, &answer, Body::empty());
    }
    let bytes = bytes(&mut answer);
    let length = bytes.len();
    let mut response = described(StatusCode::OK, &answer, body_of(bytes, method));
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}

fn some(mut answer: Answer, first: u64, headers: &HeaderMap, method: &Method) -> Response<Body> {
    // It became another version since it was looked at, or it is too large to be sent from its start.
    if !is_begun(headers, &answer) {
        return problem::turned(Turned::new(
            StatusCode::PRECONDITION_FAILED,
            "the file is another version by now",
        ));
    }
    let size = answer.json.get("size").and_then(Value::as_u64).unwrap_or_default();
    let bytes = bytes(&mut answer);
    let length = bytes.len() as u64;
    if length == 0 {
        return unsatisfiable(size);
    }
    let range = format!("bytes {first}-{}/{size}", first + length - 1);
    let mut response = described(StatusCode::PARTIAL_CONTENT, &answer, body_of(bytes, method));
    if let Ok(range) = HeaderValue::from_str(&range) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}

fn unsatisfiable(size: u64) -> Response<Body> {
    let mut response =
        problem::turned(Turned::new(StatusCode::RANGE_NOT_SATISFIABLE, "the file has no such bytes"));
    if let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response
}

/// The base that the conditions of a change name.
fn base(headers: &HeaderMap) -> Result<Option<String>, Turned> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default().trim());
    let vague =
        Turned::new(StatusCode::BAD_REQUEST, "If-Match names one version in quotes; If-None-Match is *");
    match (text(header::IF_MATCH), text(header::IF_NONE_MATCH)) {
        (None, None) => Ok(None),
        (None, Some("*")) => Ok(Some(String::new())),
        (Some(tag), None) => {
            strong(tag).filter(|tag| !tag.is_empty()).map(|tag| Some(tag.to_owned())).ok_or(vague)
        }
        (Some(_) | None, Some(_)) => Err(vague),
    }
}

/// A path whose escapes are no text. Paths that are not text are written as the operations write them.
fn unreadable() -> Response<Body> {
    problem::turned(Turned::new(StatusCode::BAD_REQUEST, "the escapes of the path are no UTF-8"))
}

/// `PUT`.
pub(super) async fn put(
    Placed { guest, place: _place }: Placed,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    given: Body,
) -> Response<Body> {
    let Ok(Path(path)) = path else { return unreadable() };
    let (base, body) = match (base(&headers), bodies::read(&guest.allowance, given).await) {
        (Ok(base), Ok(body)) => (base, body),
        (Err(turned), _) | (Ok(_), Err(turned)) => return problem::turned(turned),
    };
    let mut arguments =
        json!({ "path": path, "content": STANDARD.encode(&body.bytes), "encoding": "base64" });
    if let Some(base) = base {
        arguments["base"] = base.into();
    }
    changed(&guest, "write", arguments, &headers).await
}

/// `DELETE`.
pub(super) async fn delete(
    Placed { guest, place: _place }: Placed,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Response<Body> {
    let Ok(Path(path)) = path else { return unreadable() };
    let mut arguments = json!({ "path": path });
    match base(&headers) {
        Ok(Some(base)) => arguments["base"] = base.into(),
        Ok(None) => {}
        Err(turned) => return problem::turned(turned),
    }
    changed(&guest, "remove", arguments, &headers).await
}

/// Makes a change and answers what became of it.
async fn changed(guest: &Guest, operation: &str, arguments: Value, headers: &HeaderMap) -> Response<Body> {
    let Value::Object(arguments) = arguments else {
        return problem::turned(Turned::new(StatusCode::INTERNAL_SERVER_ERROR, "the call could not be made"));
    };
    match guest.call(operation, arguments, &Said::read(headers), Raw::No).await {
        Ok(Ok(answer)) => {
            let created = answer.json.get("created").and_then(Value::as_bool) == Some(true);
            let status = if created { StatusCode::CREATED } else { StatusCode::OK };
            let tag =
                version(&answer).and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok());
            let mut response = problem::json_body(status, &Value::Object(answer.json));
            if let Some(tag) = tag {
                response.headers_mut().insert(header::ETAG, tag);
            }
            response
        }
        Ok(Err(failure)) => {
            let mut response = problem::failed(&failure, &failure.to_json());
            if failure.kind == Kind::Exists && headers.contains_key(header::IF_NONE_MATCH) {
                *response.status_mut() = StatusCode::PRECONDITION_FAILED;
            }
            response
        }
        Err(off) => operations::broken(off),
    }
}
