//! Checks, authenticates and logs every request before it reaches a route, and sets the security headers of responses.

use std::{sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header},
    middleware::Next,
    response::IntoResponse,
};

use stead_engine::CallerAuthority;

use super::{
    Credential, SocketPeerOrigin, body,
    client::AuthenticatedHttpClient,
    client_limits::HttpClientLimiter,
    errors::HttpRejection,
    request_log::{HttpRequestId, REQUEST_ID_HEADER, RequestLogGuard},
    routes::{self, HttpRouteGroup, HttpRouteRequiredRole},
    state::HttpServerState,
    unauthenticated::UnauthenticatedConnectionPermit,
};
use crate::{
    call_recorder::{self, RequestLogCallRecorder},
    limits::{BODY_BYTES_MAX, UPLOADED_ARCHIVE_BYTES_MAX},
};

/// The headers of every response tell browsers not to render, embed or cache the response.
const SECURITY_HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

pub(super) async fn authenticate_and_log(
    State(state): State<Arc<HttpServerState>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let started = Instant::now();
    let route = routes::route_of_path(request.uri().path());
    let id = HttpRequestId::from_headers(request.headers());
    let mut log_guard = state
        .options
        .request_logger
        .as_ref()
        .map(|log| RequestLogGuard::start(log, id.as_str(), route, request.method()));
    request.extensions_mut().insert(id.clone());
    let challenge = auth_challenge(&state, &request);
    let result = match check_request(&state, &request) {
        Ok(RequestCredential::NotNeeded) => Ok(None),
        Ok(RequestCredential::Token(token)) => state.authenticate(Credential::Token(&token)).await.map(Some),
        Ok(RequestCredential::SameUser) => state.authenticate(Credential::SameUser).await.map(Some),
        Err(rejection) => Err(rejection),
    };
    if let Ok(Some(client)) = &result {
        if let Some(log_guard) = &mut log_guard {
            log_guard.set_client(client);
        }
        if let Some(connection) = request.extensions().get::<UnauthenticatedConnectionPermit>() {
            connection.mark_authenticated();
        }
    }
    let limits = result.as_ref().ok().and_then(Option::as_ref).map(|client| client.limits.clone());
    let result = match result.and_then(|client| authorize_route(&state, route, client, &mut request)) {
        Ok(()) => run_handler(log_guard.as_ref(), limits.as_deref(), request, next).await,
        Err(rejection) => Err(rejection),
    };
    let mut response = result.unwrap_or_else(IntoResponse::into_response);
    if let (StatusCode::UNAUTHORIZED, Some(challenge)) = (response.status(), challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response.headers_mut().insert(REQUEST_ID_HEADER, id.0);
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().entry(name).or_insert(value);
    }
    state.metrics.record_response(route, response.status(), started.elapsed());
    match log_guard {
        Some(log_guard) => log_guard.attach_to_response(response),
        None => response,
    }
}

fn auth_challenge(state: &HttpServerState, request: &Request) -> Option<HeaderValue> {
    let authorization = state.options.authorization_servers.as_ref()?;
    authorization.auth_challenge(request.headers(), request.uri().path())
}

/// The calls and response bytes of an HTTP request count against the limits of its client.
async fn run_handler(
    log_guard: Option<&RequestLogGuard>,
    limits: Option<&HttpClientLimiter>,
    mut request: Request,
    next: Next,
) -> Result<Response<Body>, HttpRejection> {
    let recorder =
        log_guard.map_or_else(Arc::<RequestLogCallRecorder>::default, |log_guard| log_guard.recorder.clone());
    request.extensions_mut().insert(recorder.clone());
    let response = call_recorder::record_during(Some(recorder.clone()), next.run(request)).await;
    match limits {
        Some(limits) => {
            limits.charge_extra_calls(recorder.calls().count);
            body::meter_response(limits, response).await
        }
        None => Ok(response),
    }
}

enum RequestCredential {
    NotNeeded,
    Token(String),
    SameUser,
}

fn check_request(state: &HttpServerState, request: &Request) -> Result<RequestCredential, HttpRejection> {
    let target = request.uri();
    state.allowed_hosts.check_request_head(target, request.headers())?;
    let route = routes::route_of_path(target.path());
    check_content_type(route, request.method(), request.headers())?;
    if route.needs_no_token() {
        return Ok(RequestCredential::NotNeeded);
    }
    let peer = request.extensions().get::<SocketPeerOrigin>().copied().unwrap_or(SocketPeerOrigin::Network);
    match (bearer_token(request.headers())?, peer) {
        (Some(token), _) => Ok(RequestCredential::Token(token.to_owned())),
        (None, SocketPeerOrigin::SameUser) => Ok(RequestCredential::SameUser),
        (None, SocketPeerOrigin::Network | SocketPeerOrigin::OtherUser) => {
            Err(HttpRejection::unauthorized("missing token; send 'Authorization: Bearer TOKEN'"))
        }
    }
}

fn authorize_route(
    state: &HttpServerState,
    route: HttpRouteGroup,
    client: Option<Arc<AuthenticatedHttpClient>>,
    request: &mut Request,
) -> Result<(), HttpRejection> {
    let Some(client) = client else { return Ok(()) };
    let administers = client.caller.grants.authority != CallerAuthority::UseFiles;
    match (route.required_role(state), administers) {
        (HttpRouteRequiredRole::Any, _)
        | (HttpRouteRequiredRole::UseFiles, false)
        | (HttpRouteRequiredRole::Administer, true) => {}
        (HttpRouteRequiredRole::UseFiles, true) => {
            let reason = "this is an administrator token, which cannot open a workspace; create a workspace token with POST /v1/workspaces/NAME/tokens";
            return Err(HttpRejection::forbidden(reason));
        }
        (HttpRouteRequiredRole::Administer, false) => {
            return Err(HttpRejection::forbidden(
                "this endpoint requires an administrator token; create one with: stead token create --workspaces DIR --estate --principal user:NAME",
            ));
        }
    }
    client.limits.take_request()?;
    check_content_length(request.headers(), route)?;
    request.extensions_mut().insert(client);
    Ok(())
}

fn check_content_length(headers: &HeaderMap, route: HttpRouteGroup) -> Result<(), HttpRejection> {
    // Archives are streamed and may be large. The length of any other body of their route is checked when the body is
    // read.
    let takes_archives = route == HttpRouteGroup::Workspaces;
    let limit = if takes_archives { UPLOADED_ARCHIVE_BYTES_MAX } else { BODY_BYTES_MAX as u64 };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match length.and_then(|length| length.parse::<u64>().ok()) {
        Some(length) if length > limit => Err(HttpRejection::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request body is too large; send less in one request",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Routes that expect JSON require a JSON content type, which an HTML form of another site cannot send.
fn check_content_type(route: HttpRouteGroup, method: &Method, headers: &HeaderMap) -> Result<(), HttpRejection> {
    if *method != Method::POST || !route.expects_json() {
        return Ok(());
    }
    require_json(headers)
}

pub(super) fn require_json(headers: &HeaderMap) -> Result<(), HttpRejection> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(HttpRejection::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the body must be JSON; send the header Content-Type: application/json",
    ))
}

fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, HttpRejection> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let malformed =
        HttpRejection::unauthorized("the Authorization header is malformed; send 'Authorization: Bearer TOKEN'");
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => {
            Err(HttpRejection::bad_request("the request has more than one Authorization header; send one"))
        }
        (Some(value), None) => {
            let (scheme, token) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or(malformed)?;
            let is_valid = scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty();
            is_valid.then_some(Some(token.trim())).ok_or(malformed)
        }
    }
}
