//! The route `GET /events` sends the changes of a workspace as server-sent events. An event stream continues after the
//! event in the Last-Event-ID header, so a reconnected client misses no event.

use std::sync::Arc;

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, Response, header},
};
use stead_engine::{
    BeforeAfterContentInclusion, ChangesFollower, Version,
    ops::{ChangesArgs, ChangesOutcome, JournalCursorArgument},
};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{
    change_notifier::{ChangeNotifierStoppedError, ChangeSubscription},
    client::{AuthenticatedHttpClient, CallHeaders},
    errors::{HttpRejection, HttpResult},
    operations::run_typed,
    state::{HttpServerState, ShutdownSignal},
};
use crate::{
    limits::STREAM_KEEPALIVE_INTERVAL,
    native::{CallStyle, to_json_text},
};

const EVENT_STREAM_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/event-stream");
const QUEUED_PAGES_MAX: usize = 2;
/// The length of the hash that binds an event id to its client.
const CLIENT_HASH_HEX_DIGITS: usize = 16;
/// The default cursor of an event stream, with which the stream starts at the next change.
const CURSOR_NOW: &str = "now";

struct EventStream {
    state: Arc<HttpServerState>,
    client: Arc<AuthenticatedHttpClient>,
    follower: ChangesFollower,
    cursor: String,
    changes: ChangeSubscription,
    sender: mpsc::Sender<Bytes>,
    _permit: OwnedSemaphorePermit,
}

struct HttpEventStreamStoppedError;

pub(super) async fn serve_event_stream(
    State(state): State<Arc<HttpServerState>>,
    Extension(client): Extension<Arc<AuthenticatedHttpClient>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> HttpResult {
    let permit = client.acquire_stream_permit()?;
    let cursor = starting_cursor(&client, query.as_deref(), &headers)?;
    // The stream subscribes to changes before it reads the first page, so that it misses no change after the first
    // page.
    let engine = client.executor.engine();
    let changes =
        state.change_notifiers.subscribe(&client.workspace_id, engine).await.map_err(|ChangeNotifierStoppedError| {
            HttpRejection::unavailable("the server cannot watch for changes at the moment; retry later")
        })?;
    // The first page is read with a regular, recorded call before the response starts. If the cursor is invalid, the
    // client therefore gets an error status.
    let arguments = ChangesArgs { since: JournalCursorArgument::Text(cursor), wait_ms: None };
    let first = run_typed(&client, arguments, BeforeAfterContentInclusion::Omit, &headers).await?.outcome;
    let cursor = first.cursor.to_string();
    let caller = CallHeaders::from_headers(&headers).caller_in_session(&client.caller);
    let follower = ChangesFollower::from_cursor(engine.clone(), caller, &cursor)?;
    let (sender, receiver) = mpsc::channel(QUEUED_PAGES_MAX);
    let stream = EventStream { state, client, follower, cursor, changes, sender, _permit: permit };
    tokio::spawn(stream.run(first));
    let mut response =
        Response::new(Body::from_stream(ReceiverStream::new(receiver).map(Ok::<_, std::convert::Infallible>)));
    response.headers_mut().insert(header::CONTENT_TYPE, EVENT_STREAM_CONTENT_TYPE);
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// The Last-Event-ID header takes precedence over the `since` parameter.
fn starting_cursor(
    client: &AuthenticatedHttpClient,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<String, HttpRejection> {
    let malformed = HttpRejection::bad_request("invalid query of /events; pass since=CURSOR, since=now or since=0");
    let since = match query.unwrap_or_default().split_once('=') {
        None if query.is_none_or(str::is_empty) => CURSOR_NOW,
        Some(("since", since)) if !since.contains(['&', '%']) => since,
        None | Some(_) => return Err(malformed),
    };
    match headers.get("last-event-id") {
        None => Ok(since.to_owned()),
        Some(id) => {
            let id = id.to_str().map_err(|_| malformed)?;
            let (cursor, hash) = id.rsplit_once('.').ok_or(malformed)?;
            if hash != client_hash(client, cursor) {
                return Err(HttpRejection::forbidden(
                    "Last-Event-ID belongs to another client; omit it, or pass the id of an event that this client received",
                ));
            }
            Ok(cursor.to_owned())
        }
    }
}

/// Only clients with the same workspace and principal can use an event id, because the id contains a hash of both.
fn client_hash(client: &AuthenticatedHttpClient, cursor: &str) -> String {
    let whole =
        Version::hash_bytes(format!("{}\0{}\0{cursor}", client.workspace_id, client.caller.principal).as_bytes());
    whole.to_string().chars().take(CLIENT_HASH_HEX_DIGITS).collect()
}

impl EventStream {
    async fn run(mut self, first: ChangesOutcome) {
        let mut shutdown = self.state.shutdown_signal();
        self.state.metrics.stream_opened();
        let mut next = Some(first);
        while let Some(page) = next {
            next = self.send_page_and_wait(page, &mut shutdown).await.ok();
        }
        self.state.metrics.stream_closed();
    }

    async fn send_page_and_wait(
        &mut self,
        page: ChangesOutcome,
        shutdown: &mut ShutdownSignal,
    ) -> Result<ChangesOutcome, HttpEventStreamStoppedError> {
        self.send_page(&page).await?;
        if !page.completeness.is_truncated() {
            self.wait_for_change(shutdown).await?;
        }
        match self.follower.next_page() {
            Ok(changes) => Ok(changes),
            Err(error) => {
                let error = CallStyle::Endpoint.error_to_json(&error).to_string();
                drop(self.sender.send(format_sse_event("error", None, &error).into()).await);
                Err(HttpEventStreamStoppedError)
            }
        }
    }

    async fn wait_for_change(&mut self, shutdown: &mut ShutdownSignal) -> Result<(), HttpEventStreamStoppedError> {
        loop {
            let changed = tokio::select! {
                // This branch detects a disconnected client before the next event occurs.
                () = self.sender.closed() => return Err(HttpEventStreamStoppedError),
                () = shutdown.until_shutdown() => {
                    drop(self.sender.send(Bytes::from_static(b"event: stop\ndata: {}\n\n")).await);
                    return Err(HttpEventStreamStoppedError);
                }
                changed = self.changes.changed() => Some(changed.map_err(|ChangeNotifierStoppedError| HttpEventStreamStoppedError)?),
                () = tokio::time::sleep(STREAM_KEEPALIVE_INTERVAL) => None,
            };
            if !self.state.is_still_valid(&self.client) {
                return Err(HttpEventStreamStoppedError);
            }
            match changed {
                Some(()) => return Ok(()),
                None => self
                    .sender
                    .send(Bytes::from_static(b": alive\n\n"))
                    .await
                    .map_err(|_| HttpEventStreamStoppedError)?,
            }
        }
    }

    async fn send_page(&mut self, page: &ChangesOutcome) -> Result<(), HttpEventStreamStoppedError> {
        self.cursor = page.cursor.to_string();
        if page.events.is_empty() {
            return Ok(());
        }
        let id = format!("{}.{}", self.cursor, client_hash(&self.client, &self.cursor));
        let mut text = String::new();
        for (at, event) in page.events.iter().enumerate() {
            // Only the last event of a page has an id. If a client disconnects before the last event, it gets the
            // whole page again.
            let id = (at + 1 == page.events.len()).then_some(id.as_str());
            text.push_str(&format_sse_event("change", id, &to_json_text(event)));
        }
        self.sender.send(text.into()).await.map_err(|_| HttpEventStreamStoppedError)
    }
}

fn format_sse_event(name: &str, id: Option<&str>, json: &str) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {name}\n{id}data: {json}\n\n")
}
