//! `/v1/workspaces`: workspaces are made, listed, shown and ended here, and tokens for them made. Every request becomes one
//! [`Errand`]; what becomes of it is decided by the [`Steward`].

use std::{
    io::{Read, Write},
    sync::Arc,
};

use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Path, RawQuery, Request, State, rejection::PathRejection},
    http::{Response, StatusCode, request::Parts},
};
use engine::{Caller, Failure};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::{
    allowance::Allowance,
    bodies, enter,
    guard::Turned,
    hall::Hall,
    limits::{ARCHIVES_MAX, ERRANDS_MAX},
    operations, problem,
};

/// One thing that is wanted of the steward.
#[derive(Debug, Clone, PartialEq)]
pub enum Errand {
    /// A page of workspaces: `cursor`, `limit`, `trash`.
    List(Map<String, Value>),
    /// A new workspace: `name` and how it shall be.
    Create(Map<String, Value>),
    /// Everything about one.
    Show(String),
    /// The end of one.
    Destroy(String),
    /// A copy of one: `name` and how it shall be.
    Fork(String, Map<String, Value>),
    /// One back from the trash, perhaps under another `name`.
    Restore(String, Map<String, Value>),
    /// The tokens of one.
    Tokens(String),
    /// A new token of one.
    MakeToken(String, Map<String, Value>),
    /// The end of a token of one.
    Revoke(String, String),
}

/// What is known of an archive before its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leaving {
    /// Links, pipes and the like, which it does not carry.
    pub left_out: u64,
}

/// Whoever makes and ends workspaces.
pub trait Steward: Send + Sync + 'static {
    /// Does one errand. Called on a thread that may wait.
    fn run(&self, by: &Caller, errand: Errand) -> Result<Value, Failure>;

    /// Writes a workspace as an archive. `begin` is called before the first byte.
    fn export(
        &self,
        by: &Caller,
        name: &str,
        begin: &mut dyn FnMut(Leaving),
        out: &mut dyn Write,
    ) -> Result<(), Failure>;

    /// Makes a workspace from an archive.
    fn import(
        &self,
        by: &Caller,
        name: &str,
        ask: Map<String, Value>,
        from: &mut dyn Read,
    ) -> Result<Value, Failure>;
}

/// One who administers, for one request.
pub(super) struct Overseer {
    pub(super) caller: Caller,
    pub(super) allowance: Arc<Allowance>,
}

/// How much is done for those who administer.
pub(super) struct Errands {
    running: Arc<Semaphore>,
    pub(super) archives: Arc<Semaphore>,
}

impl Default for Errands {
    fn default() -> Self {
        Self {
            running: Arc::new(Semaphore::new(ERRANDS_MAX)),
            archives: Arc::new(Semaphore::new(ARCHIVES_MAX)),
        }
    }
}

/// The steward and who asks; nobody where there is one workspace.
pub(super) struct Attended {
    pub(super) steward: Arc<dyn Steward>,
    pub(super) by: Caller,
}

impl FromRequestParts<Arc<Hall>> for Attended {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, hall: &Arc<Hall>) -> Result<Self, Self::Rejection> {
        let overseer = parts.extensions.get::<Arc<Overseer>>();
        match (hall.steward(), overseer) {
            (Some(steward), Some(overseer)) => {
                Ok(Self { steward: steward.clone(), by: overseer.caller.clone() })
            }
            (None, _) | (Some(_), None) => {
                let reason = "this server serves one workspace; start it with --workspaces to serve many";
                Err(problem::turned(Turned::new(StatusCode::NOT_FOUND, reason)))
            }
        }
    }
}

/// Does one errand and answers what became of it.
async fn done(hall: &Hall, attended: Attended, errand: Errand, good: StatusCode) -> Response<Body> {
    let Attended { steward, by } = attended;
    let stopping = || problem::turned(Turned::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    let Ok(place) = hall.errands.running.clone().acquire_owned().await else { return stopping() };
    let ran = tokio::task::spawn_blocking(move || {
        let outcome = steward.run(&by, errand);
        drop(place);
        outcome
    });
    match ran.await {
        Ok(outcome) => answered(outcome, good),
        Err(_) => problem::turned(Turned::new(StatusCode::INTERNAL_SERVER_ERROR, "the errand broke off")),
    }
}

/// What became of an errand.
pub(super) fn answered(outcome: Result<Value, Failure>, good: StatusCode) -> Response<Body> {
    match outcome {
        Ok(value) => problem::json_body(good, &value),
        Err(failure) => problem::failed(&failure, &failure.to_json()),
    }
}

/// The name in an address.
pub(super) type Named = Result<Path<String>, PathRejection>;

/// The name in the address; what is no text is no name, and the steward says so.
pub(super) fn named(name: Named) -> String {
    name.map(|Path(name)| name).unwrap_or_default()
}

/// What a request asks for, in its body.
pub(super) struct Asked(Map<String, Value>);

impl<S: Sync> FromRequest<S> for Asked {
    type Rejection = Response<Body>;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Self::Rejection> {
        let (head, body) = request.into_parts();
        enter::need_json(&head.headers).map_err(problem::turned)?;
        let read = bodies::read_short(body).await.and_then(|bytes| operations::arguments(&bytes));
        read.map(Self).map_err(problem::turned)
    }
}

/// The parameters after the question mark, as they are written; numbers as numbers.
pub(super) fn parameters(query: Option<&str>) -> Map<String, Value> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let value = match (value, value.parse::<u64>()) {
                (_, Ok(number)) => Value::from(number),
                ("true", _) => Value::from(true),
                ("false", _) => Value::from(false),
                (text, Err(_)) => Value::from(unescaped(text)),
            };
            (key.to_owned(), value)
        })
        .collect()
}

/// Text without the escapes of an address.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = escaped
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, first) {
            (Some(byte), _) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (None, b'+') => {
                bytes.push(b' ');
                rest = after;
            }
            (None, other) => {
                bytes.push(*other);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `GET /v1/workspaces`.
pub(super) async fn list(
    State(hall): State<Arc<Hall>>,
    attended: Attended,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    let wanted = parameters(query.as_deref());
    done(&hall, attended, Errand::List(wanted), StatusCode::OK).await
}

/// `POST /v1/workspaces`.
pub(super) async fn create(
    State(hall): State<Arc<Hall>>,
    attended: Attended,
    Asked(ask): Asked,
) -> Response<Body> {
    done(&hall, attended, Errand::Create(ask), StatusCode::CREATED).await
}

/// `GET /v1/workspaces/{name}`.
pub(super) async fn show(State(hall): State<Arc<Hall>>, attended: Attended, name: Named) -> Response<Body> {
    done(&hall, attended, Errand::Show(named(name)), StatusCode::OK).await
}

/// `DELETE /v1/workspaces/{name}`.
pub(super) async fn destroy(
    State(hall): State<Arc<Hall>>,
    attended: Attended,
    name: Named,
) -> Response<Body> {
    done(&hall, attended, Errand::Destroy(named(name)), StatusCode::OK).await
}

/// `POST /v1/workspaces/{name}/fork`.
pub(super) async fn fork(
    State(hall): State<Arc<Hall>>,
    attended: Attended,
    name: Named,
    Asked(ask): Asked,
) -> Response<Body> {
    done(&hall, attended, Errand::Fork(named(name), ask), StatusCode::CREATED).await
}

/// `POST /v1/workspaces/{name}/restore`.
pub(super) async fn restore(
    State(hall): State<Arc<Hall>>,
    attended: Attended,
    name: Named,
    Asked(ask): Asked,
) -> Response<Body> {
    done(&hall, attended, Errand::Restore(named(name), ask), StatusCode::OK).await
}

/// `GET /v1/workspaces/{name}/tokens`.
pub(super) async fn tokens(State(hall): State<Arc<Hall>>, attended: Attended, name: Named) -> Response<Body> {
    done(&hall, attended, Errand::Tokens(named(name)), StatusCode::OK).await
}

/// `POST /v1/workspaces/{name}/tokens`.
pub(super) async fn make_token(
    State(hall): State<Arc<Hall>>,
    attended: Attended,
    name: Named,
    Asked(ask): Asked,
) -> Response<Body> {
    done(&hall, attended, Errand::MakeToken(named(name), ask), StatusCode::CREATED).await
}

/// `DELETE /v1/workspaces/{name}/tokens/{id}`.
pub(super) async fn revoke(
    State(hall): State<Arc<Hall>>,
    attended: Attended,
    which: Result<Path<(String, String)>, PathRejection>,
) -> Response<Body> {
    let (name, id) = which.map(|Path(which)| which).unwrap_or_default();
    done(&hall, attended, Errand::Revoke(name, id), StatusCode::OK).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_read() {
        let read = parameters(Some("limit=3&cursor=a%2Eb+c&trash&label=%zz&x=%"));
        let expected = json!({ "limit": 3, "cursor": "a.b c", "trash": true, "label": "%zz", "x": "%" });
        assert_eq!(Value::Object(read), expected);
        assert_eq!(parameters(None), Map::new());
    }
}
