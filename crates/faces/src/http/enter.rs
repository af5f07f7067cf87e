//! The way in: every request is judged here before a route sees it, and every answer leaves with the same headers.

use std::{sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header},
    middleware::Next,
};

use super::{
    Credential, Peer,
    allowance::Allowance,
    bodies,
    guard::Turned,
    hall::{Client, Hall},
    limits::{ARCHIVE_BYTES_MAX, BODY_BYTES_MAX},
    log::{ID_HEADER, Line, RequestId},
    problem,
    routes::{self, Route, Wants},
    strangers::Unproven,
};
use crate::notes::{self, Notes};

/// What every answer says to a browser: nothing here is a page, and nothing is kept.
const ALWAYS: [(HeaderName, HeaderValue); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// Judges a request and passes it on with who asks.
pub(super) async fn enter(State(hall): State<Arc<Hall>>, mut request: Request, next: Next) -> Response<Body> {
    let begun = Instant::now();
    let route = routes::named(request.uri().path());
    let id = RequestId::of(request.headers());
    let mut line = hall.keeping.log.as_ref().map(|log| Line::begin(log, id.text(), route, request.method()));
    request.extensions_mut().insert(id.clone());
    let challenge = challenge(&hall, &request);
    let judged = match judge(&hall, &request) {
        Ok(Brought::Nothing) => Ok(None),
        Ok(Brought::Token(token)) => hall.admit(Credential::Token(&token)).await.map(Some),
        Ok(Brought::SameUser) => hall.admit(Credential::SameUser).await.map(Some),
        Err(turned) => Err(turned),
    };
    if let Ok(Some(client)) = &judged {
        line.iter_mut().for_each(|line| line.of(client));
        request.extensions().get::<Unproven>().iter().for_each(|unproven| unproven.proven());
    }
    let allowance = judged.as_ref().ok().and_then(Option::as_ref).map(Client::allowance);
    let judged = judged.and_then(|client| admit(&hall, route, client, &mut request));
    let mut response = match judged {
        Ok(()) => pass_on(line.as_ref(), allowance.as_deref(), request, next).await,
        Err(turned) => problem::turned(turned),
    };
    if let (StatusCode::UNAUTHORIZED, Some(challenge)) = (response.status(), challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response.headers_mut().insert(ID_HEADER, id.0);
    for (name, value) in ALWAYS {
        response.headers_mut().entry(name).or_insert(value);
    }
    hall.metrics.answered(route, response.status(), begun.elapsed());
    match line {
        Some(line) => line.answer(response),
        None => response,
    }
}

/// What the client is told if it has no valid token, where the operator named somebody who hands them out.
fn challenge(hall: &Hall, request: &Request) -> Option<HeaderValue> {
    let authorization = hall.keeping.authorization.as_ref()?;
    authorization.challenge(request.headers(), request.uri().path())
}

/// Has a request answered, and holds what it takes against what its principal may take.
async fn pass_on(
    line: Option<&Line>,
    allowance: Option<&Allowance>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let notes = line.map_or_else(Arc::<Notes>::default, |line| line.notes.clone());
    request.extensions_mut().insert(notes.clone());
    let response = notes::taking(Some(notes.clone()), next.run(request)).await;
    match allowance {
        Some(allowance) => {
            allowance.charge_beyond_one(notes.calls().count);
            bodies::let_out(allowance, response).await
        }
        None => response,
    }
}

/// What a request brings to say who asks, taken out of it.
enum Brought {
    /// It needs nothing.
    Nothing,
    Token(String),
    SameUser,
}

fn judge(hall: &Hall, request: &Request) -> Result<Brought, Turned> {
    let target = request.uri();
    hall.names.judge(target, request.headers())?;
    let route = routes::named(target.path());
    judge_type(route, request.method(), request.headers())?;
    if route.is_open() {
        return Ok(Brought::Nothing);
    }
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(Peer::Network);
    match (token(request.headers())?, peer) {
        (Some(token), _) => Ok(Brought::Token(token.to_owned())),
        (None, Peer::SameUser) => Ok(Brought::SameUser),
        (None, Peer::Network | Peer::OtherUser) => {
            Err(Turned::new(StatusCode::UNAUTHORIZED, "bring a token: Authorization: Bearer TOKEN"))
        }
    }
}

/// Lets a client on to where its token leads, and nowhere else. Nothing of the address is looked up for anybody else.
fn admit(hall: &Hall, route: Route, client: Option<Client>, request: &mut Request) -> Result<(), Turned> {
    let Some(client) = client else { return Ok(()) };
    match (route.wants(hall.steward()), &client) {
        (Wants::Anybody, _) | (Wants::Guest, Client::Guest(_)) | (Wants::Overseer, Client::Overseer(_)) => {}
        (Wants::Guest, Client::Overseer(_)) => {
            let reason = "this client administers workspaces and opens none; make a token for one";
            return Err(Turned::new(StatusCode::FORBIDDEN, reason));
        }
        (Wants::Overseer, Client::Guest(_)) => {
            return Err(Turned::new(StatusCode::FORBIDDEN, "this client does not administer workspaces"));
        }
    }
    client.allowance().ask()?;
    judge_length(request.headers(), route)?;
    match client {
        Client::Guest(guest) => request.extensions_mut().insert(guest).map(drop),
        Client::Overseer(overseer) => request.extensions_mut().insert(overseer).map(drop),
    };
    Ok(())
}

/// A body that is announced too long is not read at all.
fn judge_length(headers: &HeaderMap, route: Route) -> Result<(), Turned> {
    let most = match route {
        // An archive is never held whole; what else comes there is bounded where it is read.
        Route::Workspaces => ARCHIVE_BYTES_MAX,
        Route::Mcp
        | Route::Rpc
        | Route::Files
        | Route::Operations
        | Route::Document
        | Route::Events
        | Route::Health
        | Route::Metrics
        | Route::Metadata
        | Route::Elsewhere => BODY_BYTES_MAX as u64,
    };
    let said = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match said.and_then(|said| said.parse::<u64>().ok()) {
        Some(length) if length > most => {
            Err(Turned::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long"))
        }
        Some(_) | None => Ok(()),
    }
}

/// What is said in JSON must be called JSON: a form of another page cannot.
fn judge_type(route: routes::Route, method: &Method, headers: &HeaderMap) -> Result<(), Turned> {
    if *method != Method::POST || !route.takes_json() {
        return Ok(());
    }
    need_json(headers)
}

/// Refuses a body that is not called JSON.
pub(super) fn need_json(headers: &HeaderMap) -> Result<(), Turned> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Turned::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"))
}

/// The token of the one Authorization header.
fn token(headers: &HeaderMap) -> Result<Option<&str>, Turned> {
    let mut named = headers.get_all(header::AUTHORIZATION).iter();
    let malformed = Turned::new(StatusCode::UNAUTHORIZED, "the authorization is not 'Bearer TOKEN'");
    match (named.next(), named.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(Turned::new(StatusCode::BAD_REQUEST, "two authorizations")),
        (Some(value), None) => {
            let (scheme, token) =
                value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or(malformed)?;
            let fits = scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty();
            fits.then_some(Some(token.trim())).ok_or(malformed)
        }
    }
}
