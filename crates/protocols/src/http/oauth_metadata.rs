//! The route `/.well-known/oauth-protected-resource` (RFC 9728) directs clients without a token to the configured
//! authorization servers. A configured authorization server must hand out tokens of this HTTP server, which accepts no
//! other tokens.

use std::sync::Arc;

use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
};
use serde_json::json;

use super::{
    errors::{self, HttpRejection, HttpResult},
    routes::{self, HttpRouteGroup},
    state::HttpServerState,
};

pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The configured authorization servers, and the URL scheme of this HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationServers {
    pub servers: Vec<String>,
    /// The scheme of the URL that clients use for this HTTP server.
    pub scheme: UrlScheme,
}

/// The URL scheme with which clients reach this HTTP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlScheme {
    /// Clients connect with `http`, without TLS, from the local machine.
    Http,
    /// Clients connect with `https`, because this server or a proxy provides TLS.
    Https,
}

impl UrlScheme {
    fn name(self) -> &'static str {
        match self {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        }
    }
}

impl AuthorizationServers {
    /// The base URL contains the host from the Host header, which the middleware has already checked.
    fn base_url(&self, headers: &HeaderMap) -> Option<String> {
        let host = headers.get(header::HOST)?.to_str().ok()?;
        Some(format!("{}://{}", self.scheme.name(), host.to_ascii_lowercase()))
    }

    pub(super) fn auth_challenge(&self, headers: &HeaderMap, path: &str) -> Option<HeaderValue> {
        let path = path.trim_matches('/');
        let suffix = if requires_token(path) { format!("/{path}") } else { String::new() };
        let metadata = format!("{}{METADATA_PATH}{suffix}", self.base_url(headers)?);
        HeaderValue::try_from(format!("Bearer realm=\"stead\", resource_metadata=\"{metadata}\"")).ok()
    }
}

pub(super) async fn server_metadata(State(state): State<Arc<HttpServerState>>, headers: HeaderMap) -> HttpResult {
    metadata_response(&state, &headers, "")
}

pub(super) async fn route_metadata(
    State(state): State<Arc<HttpServerState>>,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
) -> HttpResult {
    match path {
        Ok(Path(path)) if requires_token(&path) => metadata_response(&state, &headers, &format!("/{path}")),
        Ok(_) | Err(_) => Err(not_found().into()),
    }
}

/// A request path with characters other than letters, digits and `-_./` matches no route that requires a token.
fn requires_token(path: &str) -> bool {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    let route = routes::route_of_path(&format!("/{path}"));
    is_plain && !route.needs_no_token() && route != HttpRouteGroup::Unknown
}

fn metadata_response(state: &HttpServerState, headers: &HeaderMap, path: &str) -> HttpResult {
    let configured = state.options.authorization_servers.as_ref();
    let (authorization, base) =
        configured.and_then(|configured| Some((configured, configured.base_url(headers)?))).ok_or(not_found())?;
    let metadata = json!({
        "resource": format!("{base}{path}"),
        "authorization_servers": authorization.servers,
        "bearer_methods_supported": ["header"],
        "resource_name": "stead",
    });
    Ok(errors::json_response(StatusCode::OK, &metadata))
}

fn not_found() -> HttpRejection {
    HttpRejection::not_found(
        "no authorization server is configured for this path; send a token that stead token create printed",
    )
}
