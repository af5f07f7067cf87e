//! One line about every request, for whoever keeps a log: who asked, where, for what, and what came of it. Promises that
//! nothing a client wrote is in it, but an id that has the shape of one and is no token. A stream has its line when it ends.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header},
};
use http_body_util::BodyExt;

use super::{guest::Guest, hall::Client, routes::Route};
use crate::notes::Notes;
pub use crate::notes::{Called, Calls};

/// The header that names a request.
pub(super) const ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken over.
const ID_BYTES_MAX: usize = 64;
/// What tokens begin with: one that was put into the wrong header is not written down.
const TOKEN_START: &str = "stead_";
/// What a request has instead of a status when its client did not wait for one.
const GONE: u16 = 499;

/// What became of one request.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Its id: the client's, if that had the shape of one, or the server's own.
    pub id: String,
    /// The part of the server.
    pub route: &'static str,
    /// How it was asked.
    pub method: &'static str,
    /// Who asked, once that was known.
    pub principal: Option<String>,
    /// Which workspace, as the door calls it.
    pub workspace: Option<String>,
    /// What it called.
    pub calls: Calls,
    /// The status of the answer, or 499 when nobody waited for it.
    pub status: u16,
    /// How long it took, to the end of a stream.
    pub took: Duration,
}

/// Whoever keeps a log.
pub trait Log: Send + Sync + 'static {
    /// A request has its answer. Must be quick, and must not wait.
    fn answered(&self, request: Answered);
}

/// The line of one request, written when it is dropped.
pub(super) struct Line {
    log: Arc<dyn Log>,
    begun: Instant,
    answered: Option<Answered>,
    pub(super) notes: Arc<Notes>,
}

impl Line {
    pub(super) fn begin(log: &Arc<dyn Log>, id: &str, route: Route, method: &Method) -> Self {
        let answered = Answered {
            id: id.to_owned(),
            route: route.word(),
            method: word(method),
            principal: None,
            workspace: None,
            calls: Calls::default(),
            status: GONE,
            took: Duration::ZERO,
        };
        Self { log: log.clone(), begun: Instant::now(), answered: Some(answered), notes: Arc::default() }
    }

    /// Who asks.
    pub(super) fn of(&mut self, client: &Client) {
        let Some(answered) = &mut self.answered else { return };
        match client {
            Client::Guest(guest) => {
                answered.principal = Some(guest.caller.principal.to_string());
                answered.workspace = Some(guest.workspace.clone());
            }
            Client::Overseer(overseer) => answered.principal = Some(overseer.caller.principal.to_string()),
        }
    }

    /// The answer. A stream keeps the line until it ends.
    pub(super) fn answer(mut self, response: Response<Body>) -> Response<Body> {
        if let Some(answered) = &mut self.answered {
            answered.status = response.status().as_u16();
        }
        let said = response.headers().get(header::CONTENT_TYPE);
        if !said.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            return response;
        }
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _until_the_end = &self;
                frame
            }))
        })
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let Some(mut answered) = self.answered.take() else { return };
        answered.took = self.begun.elapsed();
        answered.calls = self.notes.calls();
        self.log.answered(answered);
    }
}

/// Notes for one message of a conversation, which has a line of its own when it is done.
pub(super) fn message(log: Option<&Arc<dyn Log>>, id: &str, guest: &Guest) -> Arc<Notes> {
    let (log, begun, allowance) = (log.cloned(), Instant::now(), guest.allowance.clone());
    let mut line = Answered {
        id: id.to_owned(),
        route: Route::Rpc.word(),
        method: "message",
        principal: Some(guest.caller.principal.to_string()),
        workspace: Some(guest.workspace.clone()),
        calls: Calls::default(),
        status: 200,
        took: Duration::ZERO,
    };
    Notes::handed_over(move |calls| {
        allowance.charge_beyond_one(calls.count);
        let Some(log) = log else { return };
        line.calls = calls;
        line.took = begun.elapsed();
        log.answered(line);
    })
}

fn word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// The id of a request, in its own words where they are fit.
#[derive(Debug, Clone)]
pub(super) struct RequestId(pub(super) HeaderValue);

impl RequestId {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut named = headers.get_all(ID_HEADER).iter();
        match (named.next(), named.next()) {
            (Some(id), None) if is_fit(id.as_bytes()) => Self(id.clone()),
            (Some(_), _) | (None, _) => Self(own()),
        }
    }

    pub(super) fn text(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

fn is_fit(id: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    let holds_token = id.windows(TOKEN_START.len()).any(|part| part == TOKEN_START.as_bytes());
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.iter().all(is_plain) && !holds_token
}

/// An id that no other request to any server has.
fn own() -> HeaderValue {
    static START: OnceLock<u64> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Without random bytes ids are unique within this process, which is what they are for.
    let start = START.get_or_init(|| getrandom::u64().unwrap_or_default());
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    HeaderValue::from_str(&format!("{start:016x}-{next}")).unwrap_or(HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_over_when_it_is_one() {
        let id = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ID_HEADER, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            RequestId::of(&headers).text().to_owned()
        };
        assert_eq!(id(&["0192-ab:c_d.e"]), "0192-ab:c_d.e");
        let long = "x".repeat(ID_BYTES_MAX + 1);
        for odd in [&["a b"][..], &["{\"a\":1}"], &["ü"], &[""], &[&long], &["a", "a"], &["stead_x_1"]] {
            let taken = id(odd);
            assert!(!odd.contains(&taken.as_str()) && !taken.is_empty(), "{odd:?}: {taken}");
        }
        assert_ne!(id(&[]), id(&[]));
    }
}
