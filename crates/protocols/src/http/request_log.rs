//! The request log: one entry per request with client, route, calls and status. Of the client's input, a log entry
//! contains only a well-formed request id without a token. The log entry of an event stream is written when the stream
//! ends.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Response},
};

use super::{body, client::AuthenticatedHttpClient, routes::HttpRouteGroup};
pub use crate::call_recorder::{LoggedCallsOfHttpRequest, RequestLogCall};
use crate::{call_recorder::RequestLogCallRecorder, limits::HTTP_REQUEST_ID_BYTES_MAX};

pub(super) const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The prefix of every token; a request id with the prefix of a token is never logged.
const TOKEN_PREFIX: &str = "stead_";
/// The logged status of a request whose client disconnected before the response.
const CLIENT_CLOSED_STATUS: u16 = 499;

/// The log entry of one HTTP request.
#[derive(Debug, Clone)]
pub struct HttpRequestLogEntry {
    /// The request id that the client sent if the id is well-formed, or else a generated id.
    pub id: String,
    /// The name of the route that the HTTP request matched.
    pub route: &'static str,
    /// The HTTP method of the request, or `message` for a WebSocket message.
    pub method: &'static str,
    /// The principal of the request's client, if the client is authenticated.
    pub principal: Option<String>,
    /// The id of the workspace, if the client's token is for one workspace.
    pub workspace: Option<String>,
    pub calls: LoggedCallsOfHttpRequest,
    /// The status of the HTTP response, or 499 if the client disconnected.
    pub status: u16,
    /// The duration of the HTTP request. For an event stream, the logged duration ends when the stream ends.
    pub duration: Duration,
}

impl HttpRequestLogEntry {
    fn new(id: &str, route: HttpRouteGroup, method: &'static str, status: u16) -> Self {
        Self {
            id: id.to_owned(),
            route: route.name(),
            method,
            principal: None,
            workspace: None,
            calls: LoggedCallsOfHttpRequest::default(),
            status,
            duration: Duration::ZERO,
        }
    }

    fn set_client(&mut self, client: &AuthenticatedHttpClient) {
        self.principal = Some(client.caller.principal.to_string());
        self.workspace = Some(client.workspace_id.clone()).filter(|id| !id.is_empty());
    }
}

/// A request log sink receives the log entries of HTTP requests.
pub trait RequestLogSink: Send + Sync + 'static {
    /// Logs a finished HTTP request. A request log sink must be fast and must not block its thread.
    fn log_request(&self, request: HttpRequestLogEntry);
}

pub(super) struct RequestLogGuard {
    logger: Arc<dyn RequestLogSink>,
    started_at: Instant,
    entry: Option<HttpRequestLogEntry>,
    pub(super) recorder: Arc<RequestLogCallRecorder>,
}

impl RequestLogGuard {
    pub(super) fn start(logger: &Arc<dyn RequestLogSink>, id: &str, route: HttpRouteGroup, method: &Method) -> Self {
        let entry = HttpRequestLogEntry::new(id, route, method_name(method), CLIENT_CLOSED_STATUS);
        Self { logger: logger.clone(), started_at: Instant::now(), entry: Some(entry), recorder: Arc::default() }
    }

    pub(super) fn set_client(&mut self, client: &AuthenticatedHttpClient) {
        self.entry.iter_mut().for_each(|entry| entry.set_client(client));
    }

    /// The log entry of a request is written with the response, or at the end of an event stream.
    pub(super) fn attach_to_response(mut self, response: Response<Body>) -> Response<Body> {
        if let Some(entry) = &mut self.entry {
            entry.status = response.status().as_u16();
        }
        body::hold_while_streaming(response, self)
    }
}

impl Drop for RequestLogGuard {
    fn drop(&mut self) {
        let Some(mut entry) = self.entry.take() else { return };
        entry.duration = self.started_at.elapsed();
        entry.calls = self.recorder.calls();
        self.logger.log_request(entry);
    }
}

/// Each WebSocket message gets its own entry in the request log.
pub(super) fn recorder_for_message(
    logger: Option<&Arc<dyn RequestLogSink>>,
    id: &str,
    client: &AuthenticatedHttpClient,
) -> Arc<RequestLogCallRecorder> {
    let (logger, started, limits) = (logger.cloned(), Instant::now(), client.limits.clone());
    let mut entry = HttpRequestLogEntry::new(id, HttpRouteGroup::Rpc, "message", 200);
    entry.set_client(client);
    RequestLogCallRecorder::with_callback(move |calls| {
        limits.charge_extra_calls(calls.count);
        let Some(logger) = logger else { return };
        entry.calls = calls;
        entry.duration = started.elapsed();
        logger.log_request(entry);
    })
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

#[derive(Debug, Clone)]
pub(super) struct HttpRequestId(pub(super) HeaderValue);

impl HttpRequestId {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(REQUEST_ID_HEADER).iter();
        match (values.next(), values.next()) {
            (Some(id), None) if is_valid_request_id(id.as_bytes()) => Self(id.clone()),
            (Some(_), _) | (None, _) => Self(generate_request_id()),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

fn is_valid_request_id(id: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    let contains_token = id.windows(TOKEN_PREFIX.len()).any(|part| part == TOKEN_PREFIX.as_bytes());
    (1..=HTTP_REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.iter().all(is_plain) && !contains_token
}

fn generate_request_id() -> HeaderValue {
    static SERVER_START: OnceLock<u64> = OnceLock::new();
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);
    // If the system provides no random bytes, the ids are still unique within this process.
    let start = SERVER_START.get_or_init(|| getrandom::u64().unwrap_or_default());
    let next = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    HeaderValue::from_str(&format!("{start:016x}-{next}")).unwrap_or(HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_request_ids_are_accepted_and_others_replaced() {
        let id = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(REQUEST_ID_HEADER, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            HttpRequestId::from_headers(&headers).as_str().to_owned()
        };
        assert_eq!(id(&["0192-ab:c_d.e"]), "0192-ab:c_d.e");
        let long = "x".repeat(HTTP_REQUEST_ID_BYTES_MAX + 1);
        for odd in [&["a b"][..], &["{\"a\":1}"], &["ü"], &[""], &[&long], &["a", "a"], &["stead_x_1"]] {
            let taken = id(odd);
            assert!(!odd.contains(&taken.as_str()) && !taken.is_empty(), "{odd:?}: {taken}");
        }
        assert_ne!(id(&[]), id(&[]));
    }
}
