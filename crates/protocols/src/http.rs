//! The HTTP server: MCP, JSON-RPC, files, operations and an event stream, for clients that authenticate with a token.
//! The server checks a request in this order: framing, Host, Origin, Sec-Fetch-Site, method and content type, token,
//! limits. Tokens are read only from the Authorization header and verified by the [`Authenticator`]. The engine decides
//! about access to files, not the HTTP server.

use std::sync::Arc;

use stead_engine::{Caller, Engine};

use crate::dialect::DialectWorkspaceRootPath;

mod archive;
mod body;
mod change_notifier;
mod client;
mod client_limits;
mod declared_routes;
mod errors;
mod event_stream;
mod host_check;
mod listener;
mod mcp;
mod metrics;
mod middleware;
mod oauth_metadata;
mod operations;
mod request_log;
mod routes;
mod rpc;
mod state;
mod tls;
mod unauthenticated;
mod write_timeout;

pub(crate) use client::IDEMPOTENCY_KEY_HEADER;
pub use client_limits::RateLimit;
pub use host_check::AllowedHosts;
pub use listener::{HttpListener, serve};
pub use oauth_metadata::{AuthorizationServers, UrlScheme};
pub use request_log::{HttpRequestLogEntry, LoggedCallsOfHttpRequest, RequestLogCall, RequestLogSink};
pub use state::{HttpServerConfig, HttpServerOptions, HttpServerState};
pub use tls::{ReloadableTlsConfig, TlsCertificateError};
pub use unauthenticated::UnauthenticatedPerAddressLimit;

/// The credential with which the client of an HTTP request authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// The token in the Authorization header of an HTTP request.
    Token(&'a str),
    /// The HTTP request has no token, but the kernel reports that the client runs as the server's own user.
    SameUser,
}

/// The identity of a client that the HTTP server has authenticated.
#[derive(Clone)]
pub struct AuthenticatedClientIdentity {
    /// A key that identifies the client's token.
    pub client_key: String,
    pub caller: Caller,
    /// The unique id of the workspace that the token gives access to. It is empty for the registry of
    /// workspaces.
    pub workspace_id: String,
    pub location: DialectWorkspaceRootPath,
    /// The function that opens the workspace. The server calls the opener once for each client that is not in its
    /// cache. The opener may block its thread.
    pub opener: OpenWorkspaceFn,
}

/// A function that opens a workspace for an authenticated client.
pub type OpenWorkspaceFn = Arc<dyn Fn() -> Result<Engine, AuthError> + Send + Sync>;

/// Creates an opener for a workspace that is already open.
pub fn opener_for(engine: Engine) -> OpenWorkspaceFn {
    Arc::new(move || Ok(engine.clone()))
}

/// The reason why the authentication of a client failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthError {
    /// The token is unknown, expired or revoked; the HTTP response does not say which.
    UnknownToken,
    /// The server cannot check the token at the moment; the value is the reason.
    Unavailable(String),
    /// Too many workspaces are open. The server evicts idle clients, so that their workspaces can be closed.
    TooManyOpenWorkspaces,
}

/// An authenticator verifies the tokens of HTTP clients.
pub trait Authenticator: Send + Sync + 'static {
    /// Identifies an HTTP client by its credential. Authentication must be fast, because it runs for every request.
    fn authenticate(&self, credential: Credential<'_>) -> Result<AuthenticatedClientIdentity, AuthError>;

    /// Whether the token of a client with an open stream is still valid.
    fn is_still_valid(&self, key: &str) -> bool;

    /// Whether this server hosts several workspaces.
    fn hosts_workspaces(&self) -> bool {
        false
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketPeerOrigin {
    Network,
    SameUser,
    OtherUser,
}

pub(crate) type SharedAuthenticator = Arc<dyn Authenticator>;
