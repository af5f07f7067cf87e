//! `/.well-known/oauth-protected-resource` (RFC 9728): directs clients without a token to the configured authorization
//! servers. Metadata only: this server accepts only its own tokens, so the authorization server must issue those.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use serde_json::json;

use super::{
    errors,
    host_check::HttpRejection,
    routes::{self, HttpRoute},
    state::ServerState,
};

pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The configured authorization servers, and the URL scheme of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationServers {
    /// The URLs of the authorization servers.
    pub servers: Vec<String>,
    /// The scheme of this server's URL, as clients see it.
    pub scheme: UrlScheme,
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlScheme {
    /// Without TLS, on the local machine.
    Http,
    /// With TLS, of this server or of a proxy.
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
    /// The URL of this server as the client wrote it. The middleware has checked the Host header.
    fn base_url(&self, headers: &HeaderMap) -> Option<String> {
        let host = headers.get(header::HOST)?.to_str().ok()?;
        Some(format!("{}://{}", self.scheme.name(), host.to_ascii_lowercase()))
    }

    /// The WWW-Authenticate challenge for a client without a valid token.
    pub(super) fn auth_challenge(&self, headers: &HeaderMap, path: &str) -> Option<HeaderValue> {
        let path = path.trim_matches('/');
        let suffix = if requires_token(path) { format!("/{path}") } else { String::new() };
        let metadata = format!("{}{METADATA_PATH}{suffix}", self.base_url(headers)?);
        HeaderValue::try_from(format!("Bearer realm=\"stead\", resource_metadata=\"{metadata}\"")).ok()
    }
}

/// The metadata of the whole server.
pub(super) async fn server_metadata(State(state): State<Arc<ServerState>>, headers: HeaderMap) -> Response<Body> {
    metadata_response(&state, &headers, "")
}

/// The metadata of one route.
pub(super) async fn route_metadata(
    State(state): State<Arc<ServerState>>,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
) -> Response<Body> {
    match path {
        Ok(Path(path)) if requires_token(&path) => metadata_response(&state, &headers, &format!("/{path}")),
        Ok(_) | Err(_) => not_found(),
    }
}

/// Whether the path is a known route that needs a token. Paths with unusual characters are not.
fn requires_token(path: &str) -> bool {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    let route = routes::route_of_path(&format!("/{path}"));
    is_plain && !route.needs_no_token() && route != HttpRoute::Unknown
}

fn metadata_response(state: &ServerState, headers: &HeaderMap, path: &str) -> Response<Body> {
    let configured = state.options.authorization_servers.as_ref();
    let Some((authorization, base)) =
        configured.and_then(|configured| Some((configured, configured.base_url(headers)?)))
    else {
        return not_found();
    };
    let metadata = json!({
        "resource": format!("{base}{path}"),
        "authorization_servers": authorization.servers,
        "bearer_methods_supported": ["header"],
        "resource_name": "stead",
    });
    errors::json_response(StatusCode::OK, &metadata)
}

fn not_found() -> Response<Body> {
    errors::rejection_response(HttpRejection::new(
        StatusCode::NOT_FOUND,
        "no authorization server is configured for this path",
    ))
}
