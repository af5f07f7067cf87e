//! `GET /events`: changes of a workspace as server-sent events. A stream resumes after its Last-Event-ID, so a reconnecting
//! client misses nothing.

use std::sync::Arc;

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use serde_json::{Map, Value};
use stead_engine::{CallOutcome, ChangesFollower, Version};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{
    change_notifier::{ChangeSubscription, NotifierClosed},
    client::{AuthenticatedClient, CallHeaders, FileBytesInclusion},
    errors,
    host_check::HttpRejection,
    limits::STREAM_KEEPALIVE_INTERVAL,
    operations,
    state::{ServerState, ShutdownSignal},
};

const EVENT_STREAM_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Pages of events queued for a slow client.
const QUEUED_PAGES_MAX: usize = 2;
/// Length of the signature that binds an event id to its receiver.
const SIGNATURE_HEX_DIGITS: usize = 16;
/// The default start of a stream.
const CURSOR_NOW: &str = "now";

struct EventStream {
    state: Arc<ServerState>,
    client: Arc<AuthenticatedClient>,
    follower: ChangesFollower,
    cursor: String,
    changes: ChangeSubscription,
    sender: mpsc::Sender<Bytes>,
    _permit: OwnedSemaphorePermit,
}

enum NextPageTiming {
    Immediately,
    AfterChange,
}

struct EventStreamEnded;

/// `GET /events`.
pub(super) async fn serve_event_stream(
    State(state): State<Arc<ServerState>>,
    Extension(client): Extension<Arc<AuthenticatedClient>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response<Body> {
    let permit = match client.acquire_stream_permit() {
        Ok(permit) => permit,
        Err(rejection) => return errors::rejection_response(rejection),
    };
    let cursor = match starting_cursor(&client, query.as_deref(), &headers) {
        Ok(cursor) => cursor,
        Err(rejection) => return errors::rejection_response(rejection),
    };
    // Subscribes before the first read, so that no change in between is missed.
    let Ok(changes) = state.change_notifiers.subscribe(&client.workspace_id, client.executor.engine()).await else {
        return errors::rejection_response(HttpRejection::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "changes cannot be watched now; retry later",
        ));
    };
    // An invalid cursor becomes an error status. The first page is a regular, recorded call.
    let call_headers = CallHeaders::from_headers(&headers);
    let arguments = Map::from_iter([("since".to_owned(), Value::from(cursor))]);
    let first = match client.call_operation("changes", arguments, &call_headers, FileBytesInclusion::Omit).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => return errors::error_response(&error, &error.to_json()),
        Err(abort) => return operations::call_abort_response(abort),
    };
    let cursor = outcome_cursor(&first).unwrap_or_default().to_owned();
    let engine = client.executor.engine().clone();
    let follower = match ChangesFollower::from_cursor(engine, call_headers.caller_in_session(&client.caller), &cursor) {
        Ok(follower) => follower,
        Err(error) => return errors::error_response(&error, &error.to_json()),
    };
    let (sender, receiver) = mpsc::channel(QUEUED_PAGES_MAX);
    let stream = EventStream { state, client, follower, cursor, changes, sender, _permit: permit };
    tokio::spawn(stream.run(first));
    let mut response =
        Response::new(Body::from_stream(ReceiverStream::new(receiver).map(Ok::<_, std::convert::Infallible>)));
    response.headers_mut().insert(header::CONTENT_TYPE, EVENT_STREAM_CONTENT_TYPE);
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The start of the stream: the Last-Event-ID header, or the `since` parameter.
fn starting_cursor(
    client: &AuthenticatedClient,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<String, HttpRejection> {
    let malformed = HttpRejection::new(StatusCode::BAD_REQUEST, "/events takes since=CURSOR, since=now or since=0");
    let since = match query.unwrap_or_default().split_once('=') {
        None if query.is_none_or(str::is_empty) => CURSOR_NOW,
        Some(("since", since)) if !since.contains(['&', '%']) => since,
        None | Some(_) => return Err(malformed),
    };
    match headers.get("last-event-id") {
        None => Ok(since.to_owned()),
        Some(id) => {
            let id = id.to_str().map_err(|_| malformed)?;
            let (cursor, bound) = id.rsplit_once('.').ok_or(malformed)?;
            if bound != event_id_signature(client, cursor) {
                return Err(HttpRejection::new(StatusCode::FORBIDDEN, "Last-Event-ID belongs to another client"));
            }
            Ok(cursor.to_owned())
        }
    }
}

/// The signature that binds an event id to its workspace and principal.
fn event_id_signature(client: &AuthenticatedClient, cursor: &str) -> String {
    let whole =
        Version::hash_bytes(format!("{}\0{}\0{cursor}", client.workspace_id, client.caller.principal).as_bytes());
    whole.to_string().chars().take(SIGNATURE_HEX_DIGITS).collect()
}

impl EventStream {
    async fn run(mut self, first: CallOutcome) {
        let mut shutdown = self.state.shutdown_signal();
        self.state.metrics.stream_opened();
        let mut next = Some(first);
        while let Some(outcome) = next {
            match self.send_page(&outcome).await {
                Ok(NextPageTiming::Immediately) => {}
                Ok(NextPageTiming::AfterChange) => match self.wait_for_change(&mut shutdown).await {
                    Ok(()) => {}
                    Err(EventStreamEnded) => break,
                },
                Err(EventStreamEnded) => break,
            }
            next = match self.follower.next_page() {
                Ok(outcome) => Some(outcome),
                Err(error) => {
                    drop(self.sender.send(format_sse_event("error", None, &error.to_json()).into()).await);
                    None
                }
            };
        }
        self.state.metrics.stream_closed();
    }

    /// Waits for a change and sends keep-alive comments meanwhile.
    async fn wait_for_change(&mut self, shutdown: &mut ShutdownSignal) -> Result<(), EventStreamEnded> {
        loop {
            let changed = tokio::select! {
                // Detects a disconnected client without waiting for the next event.
                () = self.sender.closed() => return Err(EventStreamEnded),
                () = shutdown.until_shutdown() => {
                    drop(self.sender.send(Bytes::from_static(b"event: stop\ndata: {}\n\n")).await);
                    return Err(EventStreamEnded);
                }
                changed = self.changes.changed() => Some(changed.map_err(|NotifierClosed| EventStreamEnded)?),
                () = tokio::time::sleep(STREAM_KEEPALIVE_INTERVAL) => None,
            };
            if !self.state.is_still_valid(&self.client) {
                return Err(EventStreamEnded);
            }
            match changed {
                Some(()) => return Ok(()),
                None => self.sender.send(Bytes::from_static(b": alive\n\n")).await.map_err(|_| EventStreamEnded)?,
            }
        }
    }

    /// Sends one page and returns when the next one is due.
    async fn send_page(&mut self, outcome: &CallOutcome) -> Result<NextPageTiming, EventStreamEnded> {
        let events = outcome.json.get("events").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if let Some(cursor) = outcome_cursor(outcome) {
            cursor.clone_into(&mut self.cursor);
        }
        if !events.is_empty() {
            let id = format!("{}.{}", self.cursor, event_id_signature(&self.client, &self.cursor));
            let mut page = String::new();
            for (at, event) in events.iter().enumerate() {
                // Only the last event carries the id: a client that disconnects earlier gets the page again.
                let id = (at + 1 == events.len()).then_some(id.as_str());
                page.push_str(&format_sse_event("change", id, event));
            }
            self.sender.send(page.into()).await.map_err(|_| EventStreamEnded)?;
        }
        let more = outcome.json.get("truncated").and_then(Value::as_bool) == Some(true);
        Ok(if more { NextPageTiming::Immediately } else { NextPageTiming::AfterChange })
    }
}

fn outcome_cursor(outcome: &CallOutcome) -> Option<&str> {
    outcome.json.get("cursor").and_then(Value::as_str)
}

fn format_sse_event(name: &str, id: Option<&str>, data: &Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {name}\n{id}data: {data}\n\n")
}
