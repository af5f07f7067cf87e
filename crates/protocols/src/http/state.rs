//! The shared state of the HTTP server: authenticator, allowed hosts, configuration and cached clients.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{
    AuthError, Credential, OpenWorkspaceFn, SharedAuthenticator,
    archive::TransferLimit,
    change_notifier::ChangeNotifiersByWorkspace,
    client::{AuthenticatedHttpClient, dialects_not_loaded},
    client_limits::{ClientLimitsByPrincipal, RateLimit},
    errors::HttpRejection,
    host_check::AllowedHosts,
    metrics::HttpMetrics,
    oauth_metadata::AuthorizationServers,
    request_log::RequestLogSink,
    unauthenticated::{UnauthenticatedConnectionLimiter, UnauthenticatedPerAddressLimit},
};
use crate::{
    call_executor::WorkspaceConcurrentCallLimiter,
    dialect::{DialectSet, DialectSetupError, DialectWorkspaceRootPath},
    limits::{CACHED_CLIENTS_MAX, EVICTION_BATCH_SIZE},
    mcp::McpExtensionWithParsedItems,
};

/// The configuration of an HTTP server.
#[derive(Debug, Clone)]
pub struct HttpServerConfig {
    pub location: DialectWorkspaceRootPath,
    pub mcp_dialects: Vec<String>,
    pub rpc_dialects: Vec<String>,
    /// The maximum number of concurrent calls that work on files, for all clients of a workspace together. Calls that
    /// wait for an event have a separate limit of the same size.
    pub workspace_calls_max: usize,
}

impl HttpServerConfig {
    /// Checks that the configured dialects can be loaded.
    pub fn check_dialects(&self) -> Result<(), DialectSetupError> {
        for names in [&self.mcp_dialects, &self.rpc_dialects] {
            DialectSet::from_names(names, &[], &self.location)?;
        }
        Ok(())
    }
}

/// The optional features and limits of an HTTP server.
#[derive(Clone, Default)]
pub struct HttpServerOptions {
    /// The receiver of a log entry for every HTTP request; `None` disables the request log.
    pub request_logger: Option<Arc<dyn RequestLogSink>>,
    pub mcp_extension: Option<Arc<McpExtensionWithParsedItems>>,
    pub authorization_servers: Option<AuthorizationServers>,
    /// The rate limit per principal; `None` means no rate limit.
    pub rate_limit: Option<RateLimit>,
    /// The maximum number of concurrent connections; `None` means the default maximum.
    pub connections_max: Option<usize>,
    pub per_address_limit: UnauthenticatedPerAddressLimit,
}

/// The state that all connections of an HTTP server share.
pub struct HttpServerState {
    authenticator: SharedAuthenticator,
    pub(super) allowed_hosts: AllowedHosts,
    pub(super) config: HttpServerConfig,
    pub(super) options: HttpServerOptions,
    pub(super) metrics: HttpMetrics,
    pub(super) unauthenticated: Arc<UnauthenticatedConnectionLimiter>,
    clients: Mutex<HashMap<String, CachedAuthenticatedClient>>,
    workspace_limits: Mutex<HashMap<String, WorkspaceConcurrentCallLimiter>>,
    client_limits: ClientLimitsByPrincipal,
    native_dialects: OnceLock<Arc<DialectSet>>,
    pub(super) transfer_limit: TransferLimit,
    pub(super) change_notifiers: ChangeNotifiersByWorkspace,
    pub(super) shutdown: watch::Sender<bool>,
}

pub(super) struct ShutdownSignal(watch::Receiver<bool>);

impl ShutdownSignal {
    pub(super) async fn until_shutdown(&mut self) {
        // `wait_for` fails if the sender was dropped, which also means that the server shuts down.
        drop(self.0.wait_for(|is_shutdown| *is_shutdown).await);
    }
}

struct CachedAuthenticatedClient {
    client: Arc<AuthenticatedHttpClient>,
    last_seen: Instant,
}

impl HttpServerState {
    /// Creates the state of an HTTP server with default options.
    pub fn new(authenticator: SharedAuthenticator, allowed_hosts: AllowedHosts, config: HttpServerConfig) -> Arc<Self> {
        Self::with_options(authenticator, allowed_hosts, config, HttpServerOptions::default())
    }

    /// Creates the state of an HTTP server with the given options.
    pub fn with_options(
        authenticator: SharedAuthenticator,
        allowed_hosts: AllowedHosts,
        config: HttpServerConfig,
        options: HttpServerOptions,
    ) -> Arc<Self> {
        let (shutdown, _) = watch::channel(false);
        Arc::new(Self {
            native_dialects: OnceLock::new(),
            workspace_limits: Mutex::default(),
            transfer_limit: TransferLimit::default(),
            authenticator,
            allowed_hosts,
            config,
            client_limits: ClientLimitsByPrincipal::new(options.rate_limit),
            unauthenticated: UnauthenticatedConnectionLimiter::new(options.per_address_limit),
            options,
            metrics: HttpMetrics::default(),
            clients: Mutex::default(),
            change_notifiers: ChangeNotifiersByWorkspace::default(),
            shutdown,
        })
    }

    /// Starts a graceful shutdown of the HTTP server. During a shutdown, the server accepts no new connections,
    /// finishes in-flight requests, and sends a stop event to streams.
    pub fn shut_down(&self) {
        self.shutdown.send_replace(true);
    }

    pub(super) fn shutdown_signal(&self) -> ShutdownSignal {
        ShutdownSignal(self.shutdown.subscribe())
    }

    pub(super) fn hosts_workspaces(&self) -> bool {
        self.authenticator.hosts_workspaces()
    }

    pub(super) async fn authenticate(
        &self,
        credential: Credential<'_>,
    ) -> Result<Arc<AuthenticatedHttpClient>, HttpRejection> {
        let identity = self.authenticator.authenticate(credential).map_err(reject_auth_error)?;
        if let Some(client) = self.cached_client(&identity.client_key) {
            return Ok(client);
        }
        let engine = match open_workspace(identity.opener.clone()).await {
            Err(AuthError::TooManyOpenWorkspaces) => {
                self.evict_idle_clients(Duration::ZERO, EVICTION_BATCH_SIZE);
                open_workspace(identity.opener.clone()).await.map_err(reject_auth_error)?
            }
            other => other.map_err(reject_auth_error)?,
        };
        let (key, workspace) = (identity.client_key.clone(), &identity.workspace_id);
        let limits = self.client_limits.limits_for(workspace, &identity.caller.principal.to_string());
        let workspace_limit = self.workspace_limit(workspace);
        let native = self.native_dialects()?;
        let client = Arc::new(AuthenticatedHttpClient::new(identity, engine, limits, workspace_limit, native));
        let mut clients = crate::lock(&self.clients);
        if clients.len() >= CACHED_CLIENTS_MAX {
            evict_oldest_client(&mut clients);
        }
        // A concurrent request of the same client may have inserted the client first.
        let cached = clients.entry(key).or_insert(CachedAuthenticatedClient { client, last_seen: Instant::now() });
        Ok(cached.client.clone())
    }

    fn native_dialects(&self) -> Result<Arc<DialectSet>, HttpRejection> {
        if let Some(native) = self.native_dialects.get() {
            return Ok(native.clone());
        }
        let native = DialectSet::native().map_err(|_| dialects_not_loaded())?;
        Ok(self.native_dialects.get_or_init(|| Arc::new(native)).clone())
    }

    fn cached_client(&self, key: &str) -> Option<Arc<AuthenticatedHttpClient>> {
        let mut clients = crate::lock(&self.clients);
        let cached = clients.get_mut(key)?;
        cached.last_seen = Instant::now();
        Some(cached.client.clone())
    }

    fn workspace_limit(&self, workspace: &str) -> WorkspaceConcurrentCallLimiter {
        let mut workspace_limits = crate::lock(&self.workspace_limits);
        let new_limit = || WorkspaceConcurrentCallLimiter::new(self.config.workspace_calls_max);
        workspace_limits.entry(workspace.to_owned()).or_insert_with(new_limit).clone()
    }

    /// Evicts up to `clients_max` clients that have been idle for at least `idle_time`, least recently used first.
    /// Returns the number of evicted clients. A client with an open stream is not idle. An evicted client loses its MCP
    /// sessions, and its next request opens its workspace again.
    pub fn evict_idle_clients(&self, idle_time: Duration, clients_max: usize) -> usize {
        let mut clients = crate::lock(&self.clients);
        let now = Instant::now();
        let mut idle: Vec<(Instant, String)> = clients
            .iter()
            .filter(|(_, cached)| now - cached.last_seen >= idle_time && Arc::strong_count(&cached.client) == 1)
            .filter(|(_, cached)| cached.client.is_idle())
            .map(|(key, cached)| (cached.last_seen, key.clone()))
            .collect();
        idle.sort();
        idle.truncate(clients_max);
        let evicted: Vec<CachedAuthenticatedClient> = idle.iter().filter_map(|(_, key)| clients.remove(key)).collect();
        drop(clients);
        let count = evicted.len();
        drop(evicted);
        let mut workspace_limits = crate::lock(&self.workspace_limits);
        workspace_limits.retain(|_, limit| limit.is_in_use());
        count
    }

    pub(super) fn is_still_valid(&self, client: &AuthenticatedHttpClient) -> bool {
        self.authenticator.is_still_valid(&client.client_key)
    }

    pub(super) fn client_count(&self) -> usize {
        crate::lock(&self.clients).len()
    }
}

async fn open_workspace(opener: OpenWorkspaceFn) -> Result<stead_engine::Engine, AuthError> {
    let aborted = |_| {
        AuthError::Unavailable("internal error: the workspace could not be opened; send the request again".to_owned())
    };
    tokio::task::spawn_blocking(move || opener()).await.map_err(aborted)?
}

fn reject_auth_error(reason: AuthError) -> HttpRejection {
    match reason {
        AuthError::UnknownToken => HttpRejection::unauthorized(
            "the token is unknown, revoked or expired; create a new one with: stead token create",
        ),
        AuthError::Unavailable(_) => HttpRejection::unavailable("tokens cannot be checked now; retry later"),
        AuthError::TooManyOpenWorkspaces => {
            HttpRejection::unavailable("the server has too many open workspaces; retry later")
        }
    }
}

fn evict_oldest_client(clients: &mut HashMap<String, CachedAuthenticatedClient>) {
    let oldest = clients.iter().min_by_key(|(_, cached)| cached.last_seen).map(|(key, _)| key.clone());
    if let Some(key) = oldest {
        clients.remove(&key);
    }
}
