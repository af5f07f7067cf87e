//! The HTTP server: MCP, JSON-RPC, files, operations and an event stream, for clients that authenticate with a token.
//!
//! The HTTP server checks requests, enforces limits on size and time, and maps errors to status codes. A request passes
//! these checks in this order before any work is done: framing, Host, Origin, Sec-Fetch-Site, method and content type,
//! token, limits. Tokens are read only from the Authorization header and verified by the [`Authenticator`]. A slow or
//! busy client delays only its own calls. A shutdown finishes in-flight requests and notifies streams. The engine
//! decides about access to files, not the HTTP server.

use std::sync::Arc;

use stead_engine::{Caller, Engine};

use crate::dialect::DialectWorkspaceRootPath;

mod archive;
mod body;
mod change_notifier;
mod client;
mod client_limits;
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
mod workspace_admin;
mod write_timeout;

pub(crate) use client::IDEMPOTENCY_KEY_HEADER;
pub use client_limits::RateLimit;
pub use host_check::AllowedHosts;
pub use listener::{HttpListener, serve};
pub use oauth_metadata::{AuthorizationServers, UrlScheme};
pub use request_log::{LoggedCallsOfHttpRequest, RequestLogCall, RequestLogEntry, RequestLogSink};
pub use state::{HttpServerConfig, HttpServerOptions, HttpServerState};
pub use tls::{ReloadableTlsConfig, TlsCertificateError};
pub use unauthenticated::UnauthenticatedPerAddressLimit;
pub use workspace_admin::{WorkspaceAdminRequest, WorkspaceExportStartInfo, WorkspaceRegistryAdmin};

/// The credential of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// The token in the Authorization header.
    Token(&'a str),
    /// The request has no token, but the kernel reports that the client runs as the server's own user.
    SameUser,
}

/// An authenticated client.
#[derive(Clone)]
pub struct AuthenticatedClientIdentity {
    /// A key that identifies the client's token.
    pub client_key: String,
    /// The caller for all engine calls of this client.
    pub caller: Caller,
    /// The workspace or the administration that the client's token gives access to.
    pub scope: WorkspaceOrAdminScope,
}

/// The workspace or the administration that a token gives access to.
#[derive(Clone)]
pub enum WorkspaceOrAdminScope {
    /// One workspace.
    Workspace {
        /// An id that is unique for each workspace.
        id: String,
        /// The location of the workspace, for dialects that report it.
        location: DialectWorkspaceRootPath,
        /// Opens the workspace. The opener may block, and is called once for each client that is not cached.
        opener: OpenWorkspaceFn,
    },
    /// The administration of workspaces, without access to their files.
    Administration,
}

/// Opens a workspace.
pub type OpenWorkspaceFn = Arc<dyn Fn() -> Result<Engine, AuthError> + Send + Sync>;

/// An opener for a workspace that is already open.
pub fn opener_for(engine: Engine) -> OpenWorkspaceFn {
    Arc::new(move || Ok(engine.clone()))
}

/// Why authentication failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthError {
    /// The token is unknown, expired or revoked; the response does not say which.
    UnknownToken,
    /// The server cannot check the token at the moment; the value is the reason.
    Unavailable(String),
    /// Too many workspaces are open. The server then evicts idle clients, so that unused workspaces can be closed.
    TooManyOpenWorkspaces,
}

/// Verifies tokens.
pub trait Authenticator: Send + Sync + 'static {
    /// Identifies the client. Authentication runs for every request, so this method must be fast.
    fn authenticate(&self, credential: Credential<'_>) -> Result<AuthenticatedClientIdentity, AuthError>;

    /// Whether the token of an authenticated client is still valid; the server asks while a stream is open.
    fn is_still_valid(&self, key: &str) -> bool;

    /// The administration of workspaces, if this server hosts several workspaces.
    fn workspace_admin(&self) -> Option<Arc<dyn WorkspaceRegistryAdmin>> {
        None
    }
}

/// Whether a connection comes from the network or from a local user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketPeerOrigin {
    Network,
    /// The client is a process of the server's own user, as the kernel reports.
    SameUser,
    /// The client is a process of another local user.
    OtherUser,
}

pub(crate) type SharedAuthenticator = Arc<dyn Authenticator>;
