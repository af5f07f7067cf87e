//! The HTTP server: MCP, JSON-RPC, files, operations and an event stream, for clients that authenticate with a token.
//!
//! The HTTP server checks requests, enforces limits on size and time, and maps errors to status codes. A request passes
//! these checks in this order before any work is done: framing, Host, Origin, Sec-Fetch-Site, method and content type,
//! token, limits. Tokens are read only from the Authorization header and verified by the [`Authenticator`]. A slow or
//! busy client delays only its own calls. A shutdown finishes in-flight requests and notifies streams. The engine
//! decides about access to files, not the HTTP server.

use std::{sync::Arc, time::Duration};

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

/// Limits of the server and of each client.
pub mod limits {
    use super::Duration;

    /// Maximum number of concurrent connections; further connections wait to be accepted.
    pub const CONNECTIONS_MAX: usize = 16_384;
    /// Maximum number of unauthenticated connections per address; further connections are closed at once.
    pub const UNAUTHENTICATED_PER_ADDRESS_MAX: usize = 256;
    /// Maximum size of a request head in bytes.
    pub const HEAD_BYTES_MAX: usize = 32 << 10;
    /// Maximum number of headers of a request.
    pub const HEADERS_MAX: usize = 64;
    /// Timeout for reading a request head.
    pub const HEAD_READ_TIMEOUT: Duration = Duration::from_secs(10);
    /// Timeout for the TLS handshake.
    pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
    /// Timeout for reading a request body.
    pub const BODY_READ_TIMEOUT: Duration = Duration::from_secs(60);
    /// Maximum size of a request body in bytes.
    pub const BODY_BYTES_MAX: usize = crate::limits::MESSAGE_BYTES_MAX;
    /// Timeout for a client that reads nothing while the server has data to send.
    pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
    /// Maximum number of bytes of request and response bodies in memory, per principal.
    pub const RESERVED_BYTES_PER_CLIENT_MAX: usize = 256 << 20;
    /// Maximum number of bytes of request and response bodies in memory, for all principals together.
    pub const RESERVED_BYTES_MAX: usize = 1 << 30;
    /// Maximum number of bytes of files that running calls load into memory, per principal. Further calls wait.
    pub const CALL_BYTES_PER_CLIENT_MAX: usize = 64 << 20;
    /// Maximum number of bytes of files that running calls load into memory, for all principals together.
    pub const CALL_BYTES_MAX: usize = 256 << 20;
    /// Maximum number of calls that wait for an event, for all principals together.
    pub const CALLS_WAITING_TOTAL_MAX: usize = 256;
    /// Maximum number of concurrent requests per principal; further requests get status 429.
    pub const REQUESTS_PER_CLIENT_MAX: usize = 256;
    /// Maximum number of concurrent streams per principal.
    pub const STREAMS_PER_CLIENT_MAX: usize = 16_384;
    /// Maximum number of concurrent administration requests of all clients. Further requests wait.
    pub const ADMIN_REQUESTS_MAX: usize = 8;
    /// Maximum number of concurrent imports and exports of all clients; further ones get status 429.
    pub const ARCHIVES_MAX: usize = 4;
    /// Maximum size of an imported archive in bytes.
    pub const ARCHIVE_BYTES_MAX: u64 = 16 << 30;
    /// Maximum number of archive chunks that are queued for the client or for the disk.
    pub const ARCHIVE_CHUNKS_MAX: usize = 4;
    /// Size of an archive chunk in bytes.
    pub const ARCHIVE_CHUNK_BYTES: usize = 256 << 10;
    /// Number of clients that are evicted at once when too many workspaces are open.
    pub const EVICTION_BATCH_SIZE: usize = 64;
    /// Default value of the Retry-After header, in seconds.
    pub const RETRY_AFTER_SECONDS: u64 = 1;
    /// Maximum number of cached clients; the least recently used client is evicted first.
    pub const CACHED_CLIENTS_MAX: usize = 10_000;
    /// Interval of keep-alive messages on an idle stream.
    pub const STREAM_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
    /// Timeout for a WebSocket client that sends nothing, not even pongs.
    pub const WEBSOCKET_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
    /// Time that a shutdown waits for in-flight requests.
    pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
}

pub(crate) type SharedAuthenticator = Arc<dyn Authenticator>;
