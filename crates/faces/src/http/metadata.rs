//! `/.well-known/oauth-protected-resource` (RFC 9728): where a client that has no token is sent, when the operator named an
//! authorization server. Metadata only: what lets in is a token of this server and nothing else, so whoever stands at that
//! address hands those out.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use serde_json::json;

use super::{
    guard::Turned,
    hall::Hall,
    problem,
    routes::{self, Route},
};

/// Where the metadata is, by the standard.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Who hands out tokens, and how this server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    /// The addresses of the authorization servers.
    pub servers: Vec<String>,
    /// How clients reach this server.
    pub way: Way,
}

/// How an address begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In clear, on this machine.
    Http,
    /// Privately: by this server's own TLS or by that of a proxy.
    Https,
}

impl Way {
    fn word(self) -> &'static str {
        match self {
            Way::Http => "http",
            Way::Https => "https",
        }
    }
}

impl Authorization {
    /// The address of this server, as the client that asks calls it. The way in has judged the host.
    fn base(&self, headers: &HeaderMap) -> Option<String> {
        let host = headers.get(header::HOST)?.to_str().ok()?;
        Some(format!("{}://{}", self.way.word(), host.to_ascii_lowercase()))
    }

    /// What a client without a valid token is told, besides that it needs one.
    pub(super) fn challenge(&self, headers: &HeaderMap, path: &str) -> Option<HeaderValue> {
        let path = path.trim_matches('/');
        let about = if is_served(path) { format!("/{path}") } else { String::new() };
        let metadata = format!("{}{WELL_KNOWN}{about}", self.base(headers)?);
        HeaderValue::try_from(format!("Bearer realm=\"stead\", resource_metadata=\"{metadata}\"")).ok()
    }
}

/// About the server as a whole.
pub(super) async fn whole(State(hall): State<Arc<Hall>>, headers: HeaderMap) -> Response<Body> {
    answer(&hall, &headers, "")
}

/// About one address.
pub(super) async fn one(
    State(hall): State<Arc<Hall>>,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
) -> Response<Body> {
    match path {
        Ok(Path(path)) if is_served(&path) => answer(&hall, &headers, &format!("/{path}")),
        Ok(_) | Err(_) => nothing(),
    }
}

/// Whether a token is asked for there. What is spelled in an odd way is nowhere.
fn is_served(path: &str) -> bool {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    let route = routes::named(&format!("/{path}"));
    is_plain && !route.is_open() && route != Route::Elsewhere
}

fn answer(hall: &Hall, headers: &HeaderMap, path: &str) -> Response<Body> {
    let named = hall.keeping.authorization.as_ref();
    let Some((authorization, base)) = named.and_then(|named| Some((named, named.base(headers)?))) else {
        return nothing();
    };
    let metadata = json!({
        "resource": format!("{base}{path}"),
        "authorization_servers": authorization.servers,
        "bearer_methods_supported": ["header"],
        "resource_name": "stead",
    });
    problem::json_body(StatusCode::OK, &metadata)
}

fn nothing() -> Response<Body> {
    problem::turned(Turned::new(StatusCode::NOT_FOUND, "no authorization server is named for that"))
}
