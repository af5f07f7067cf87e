//! The HTTP server: MCP, JSON-RPC, files, operations and an event stream, for clients that authenticate with a token.
//!
//! Owns request checks (Host, Origin, authentication), size and time limits, and the mapping from errors to status codes.
//! Checks run in a fixed order before any work is done: framing, Host, Origin, Sec-Fetch-Site, method and content type,
//! token, limits. Tokens are read only from the Authorization header. A client delays only its own calls. A shutdown
//! finishes in-flight requests and notifies streams. File access is decided by the engine, tokens are verified by the
//! [`Authenticator`].

use std::{sync::Arc, time::Duration};

use stead_engine::{Caller, Engine};

use crate::dialect::WorkspaceLocation;

mod archive;
mod body;
mod change_notifier;
mod client;
mod client_limits;
mod errors;
mod event_stream;
mod files;
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
pub use request_log::{LoggedCall, LoggedCalls, RequestLogEntry, RequestLogger};
pub use state::{HttpServerConfig, HttpServerOptions, ServerState};
pub use tls::{ReloadableTlsConfig, TlsError};
pub use unauthenticated::PerAddressLimit;
pub use workspace_admin::{AdminRequest, WorkspaceAdmin, WorkspaceExportSummary};

/// The credential of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// The token of the Authorization header.
    Token(&'a str),
    /// No token; the kernel reports that the peer runs as the server's own user.
    SameUser,
}

/// An authenticated client.
#[derive(Clone)]
pub struct ClientIdentity {
    /// Unique per token.
    pub client_key: String,
    /// The caller of every call of this client.
    pub caller: Caller,
    /// The resources that the token gives access to.
    pub scope: ClientScope,
}

/// The resources that a token gives access to.
#[derive(Clone)]
pub enum ClientScope {
    /// One workspace.
    Workspace {
        /// Unique per workspace.
        id: String,
        /// The location, for dialects that report it.
        location: WorkspaceLocation,
        /// Opens the workspace, which may block. Called once per client.
        opener: WorkspaceOpener,
    },
    /// Workspace administration, without access to files.
    Administration,
}

/// Opens a workspace.
pub type WorkspaceOpener = Arc<dyn Fn() -> Result<Engine, AuthError> + Send + Sync>;

/// An opener for a workspace that is already open.
pub fn opener_for(engine: Engine) -> WorkspaceOpener {
    Arc::new(move || Ok(engine.clone()))
}

/// Why authentication failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthError {
    /// The token is unknown, expired or revoked. The response does not say which.
    UnknownToken,
    /// The token cannot be checked now.
    Unavailable(String),
    /// The limit of open workspaces is reached; evicting idle clients may help.
    TooManyOpenWorkspaces,
}

/// Verifies tokens.
pub trait Authenticator: Send + Sync + 'static {
    /// Identifies the client. Called for every request, so it must be fast.
    fn authenticate(&self, credential: Credential<'_>) -> Result<ClientIdentity, AuthError>;

    /// Whether an authenticated client is still valid. Called while a stream is open.
    fn is_still_valid(&self, key: &str) -> bool;

    /// The workspace administration, if this server hosts several workspaces.
    fn workspace_admin(&self) -> Option<Arc<dyn WorkspaceAdmin>> {
        None
    }
}

/// The origin of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerOrigin {
    Network,
    /// A process of the server's own user, as reported by the kernel.
    SameUser,
    /// A process of another user.
    OtherUser,
}

/// Limits of the server and of each client.
pub mod limits {
    use super::Duration;

    /// Concurrent connections; further ones wait to be accepted.
    pub const CONNECTIONS_MAX: usize = 16_384;
    /// Unauthenticated connections per address; further ones are closed at once.
    pub const UNAUTHENTICATED_PER_ADDRESS_MAX: usize = 256;
    /// Size of a request head in bytes.
    pub const HEAD_BYTES_MAX: usize = 32 << 10;
    /// Number of headers of a request.
    pub const HEADERS_MAX: usize = 64;
    /// Timeout for reading a request head.
    pub const HEAD_READ_TIMEOUT: Duration = Duration::from_secs(10);
    /// Timeout for the TLS handshake.
    pub const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
    /// Timeout for reading a request body.
    pub const BODY_READ_TIMEOUT: Duration = Duration::from_secs(60);
    /// Size of a request body in bytes.
    pub const BODY_BYTES_MAX: usize = crate::limits::MESSAGE_BYTES_MAX;
    /// Timeout for a client that reads nothing while data is pending.
    pub const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
    /// Bytes of request and response bodies in memory, per principal.
    pub const RESERVED_BYTES_PER_CLIENT_MAX: usize = 256 << 20;
    /// Bytes of request and response bodies in memory, of all principals.
    pub const RESERVED_BYTES_MAX: usize = 1 << 30;
    /// Bytes of files that running calls may load into memory, per principal; further calls wait.
    pub const CALL_BYTES_PER_CLIENT_MAX: usize = 64 << 20;
    /// Bytes of files that running calls may load into memory, of all principals.
    pub const CALL_BYTES_MAX: usize = 256 << 20;
    /// Calls that wait for an event, of all principals.
    pub const CALLS_WAITING_TOTAL_MAX: usize = 256;
    /// Concurrent requests per principal; further ones get 429.
    pub const REQUESTS_PER_CLIENT_MAX: usize = 256;
    /// Concurrent streams per principal.
    pub const STREAMS_PER_CLIENT_MAX: usize = 16_384;
    /// Concurrent administration requests of all clients; further ones wait.
    pub const ADMIN_REQUESTS_MAX: usize = 8;
    /// Concurrent imports and exports of all clients; further ones get 429.
    pub const ARCHIVES_MAX: usize = 4;
    /// Size of an imported archive in bytes.
    pub const ARCHIVE_BYTES_MAX: u64 = 16 << 30;
    /// Archive chunks queued for the client or for the disk.
    pub const ARCHIVE_CHUNKS_MAX: usize = 4;
    /// Size of an archive chunk in bytes.
    pub const ARCHIVE_CHUNK_BYTES: usize = 256 << 10;
    /// Clients evicted at once when too many workspaces are open.
    pub const EVICTION_BATCH_SIZE: usize = 64;
    /// Default value of the Retry-After header, in seconds.
    pub const RETRY_AFTER_SECONDS: u64 = 1;
    /// Cached clients; the least recently used one is evicted first.
    pub const CACHED_CLIENTS_MAX: usize = 10_000;
    /// Interval of keep-alive messages on an idle stream.
    pub const STREAM_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
    /// Timeout for a WebSocket client that sends nothing, not even pongs.
    pub const WEBSOCKET_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
    /// Time that a shutdown waits for in-flight requests.
    pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
}

pub(crate) type SharedAuthenticator = Arc<dyn Authenticator>;
