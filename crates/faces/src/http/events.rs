//! `GET /events`: what changes, as it changes, by server-sent events. A stream goes on where its last event id says, so a
//! client that lost its connection misses nothing.

use std::sync::Arc;

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use engine::{Answer, Listening, Version};
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use super::{
    bell::{Heard, Silent},
    guard::Turned,
    guest::{Guest, Raw, Said},
    hall::{Hall, Stopping},
    limits::STREAM_ALIVE,
    operations, problem,
};

const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Pages of events that wait for a client that does not read.
const PAGES_WAITING_MAX: usize = 2;
/// Digits that bind an event id to who received it.
const BOUND_DIGITS: usize = 16;
/// Where a stream begins when nothing is said.
const NOW: &str = "now";

/// One client's stream.
struct Stream {
    hall: Arc<Hall>,
    guest: Arc<Guest>,
    listening: Listening,
    cursor: String,
    heard: Heard,
    to: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
}

/// When there is more to tell.
enum More {
    AtOnce,
    Later,
}

/// Why a stream ends.
struct Over;

/// `GET /events`.
pub(super) async fn stream(
    State(hall): State<Arc<Hall>>,
    Extension(guest): Extension<Arc<Guest>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response<Body> {
    let place = match guest.stream() {
        Ok(place) => place,
        Err(turned) => return problem::turned(turned),
    };
    let cursor = match begin(&guest, query.as_deref(), &headers) {
        Ok(cursor) => cursor,
        Err(turned) => return problem::turned(turned),
    };
    // It listens before it looks: what changes in between is heard.
    let Ok(heard) = hall.bells.hear(&guest.workspace, guest.runner.engine()).await else {
        return problem::turned(Turned::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "changes cannot be listened for now",
        ));
    };
    // What is wrong with where it begins is said by the status. The first look is a call, and recorded as one.
    let said = Said::read(&headers);
    let arguments = Map::from_iter([("since".to_owned(), Value::from(cursor))]);
    let first = match guest.call("changes", arguments, &said, Raw::No).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(failure)) => return problem::failed(&failure, &failure.to_json()),
        Err(off) => return operations::broken(off),
    };
    let cursor = cursor_of(&first).unwrap_or_default().to_owned();
    let engine = guest.runner.engine().clone();
    let listening = match Listening::after(engine, said.caller(&guest.caller), &cursor) {
        Ok(listening) => listening,
        Err(failure) => return problem::failed(&failure, &failure.to_json()),
    };
    let (to, from) = mpsc::channel(PAGES_WAITING_MAX);
    let stream = Stream { hall, guest, listening, cursor, heard, to, _place: place };
    tokio::spawn(stream.run(first));
    let mut response =
        Response::new(Body::from_stream(ReceiverStream::new(from).map(Ok::<_, std::convert::Infallible>)));
    response.headers_mut().insert(header::CONTENT_TYPE, STREAM);
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Where the stream begins: after the last event that the client has, or where it says.
fn begin(guest: &Guest, query: Option<&str>, headers: &HeaderMap) -> Result<String, Turned> {
    let malformed = Turned::new(StatusCode::BAD_REQUEST, "/events takes since=CURSOR, since=now or since=0");
    let since = match query.unwrap_or_default().split_once('=') {
        None if query.is_none_or(str::is_empty) => NOW,
        Some(("since", since)) if !since.contains(['&', '%']) => since,
        None | Some(_) => return Err(malformed),
    };
    match headers.get("last-event-id") {
        None => Ok(since.to_owned()),
        Some(id) => {
            let id = id.to_str().map_err(|_| malformed)?;
            let (cursor, bound) = id.rsplit_once('.').ok_or(malformed)?;
            if bound != bond(guest, cursor) {
                return Err(Turned::new(StatusCode::FORBIDDEN, "that event id was given to somebody else"));
            }
            Ok(cursor.to_owned())
        }
    }
}

/// What binds an event id to the principal that received it.
fn bond(guest: &Guest, cursor: &str) -> String {
    let whole = Version::of(format!("{}\0{}\0{cursor}", guest.workspace, guest.caller.principal).as_bytes());
    whole.to_string().chars().take(BOUND_DIGITS).collect()
}

impl Stream {
    async fn run(mut self, first: Answer) {
        let mut stopping = self.hall.stopping();
        self.hall.metrics.stream_opened();
        let mut next = Some(first);
        while let Some(answer) = next {
            match self.pass_on(&answer).await {
                Ok(More::AtOnce) => {}
                Ok(More::Later) => match self.wait(&mut stopping).await {
                    Ok(()) => {}
                    Err(Over) => break,
                },
                Err(Over) => break,
            }
            next = match self.listening.next_page() {
                Ok(answer) => Some(answer),
                Err(failure) => {
                    drop(self.to.send(told("error", None, &failure.to_json()).into()).await);
                    None
                }
            };
        }
        self.hall.metrics.stream_closed();
    }

    /// Waits until something changed, and meanwhile says now and then that the stream is alive.
    async fn wait(&mut self, stopping: &mut Stopping) -> Result<(), Over> {
        loop {
            let heard = tokio::select! {
                // Whoever is gone is found out about here and not only when there is something to tell.
                () = self.to.closed() => return Err(Over),
                () = stopping.begun() => {
                    drop(self.to.send(Bytes::from_static(b"event: stop\ndata: {}\n\n")).await);
                    return Err(Over);
                }
                heard = self.heard.again() => Some(heard.map_err(|Silent| Over)?),
                () = tokio::time::sleep(STREAM_ALIVE) => None,
            };
            if !self.hall.still_admits(&self.guest) {
                return Err(Over);
            }
            match heard {
                Some(()) => return Ok(()),
                None => self.to.send(Bytes::from_static(b": alive\n\n")).await.map_err(|_| Over)?,
            }
        }
    }

    /// Sends one page; says whether more follows at once.
    async fn pass_on(&mut self, answer: &Answer) -> Result<More, Over> {
        let events =
            answer.json.get("events").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if let Some(cursor) = cursor_of(answer) {
            cursor.clone_into(&mut self.cursor);
        }
        if !events.is_empty() {
            let id = format!("{}.{}", self.cursor, bond(&self.guest, &self.cursor));
            let mut page = String::new();
            for (at, event) in events.iter().enumerate() {
                // Only the last carries the id: whoever breaks off before hears the page again.
                let id = (at + 1 == events.len()).then_some(id.as_str());
                page.push_str(&told("change", id, event));
            }
            self.to.send(page.into()).await.map_err(|_| Over)?;
        }
        let more = answer.json.get("truncated").and_then(Value::as_bool) == Some(true);
        Ok(if more { More::AtOnce } else { More::Later })
    }
}

/// Where an answer ends.
fn cursor_of(answer: &Answer) -> Option<&str> {
    answer.json.get("cursor").and_then(Value::as_str)
}

/// One event as the protocol writes it.
fn told(name: &str, id: Option<&str>, data: &Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {name}\n{id}data: {data}\n\n")
}
