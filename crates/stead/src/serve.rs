//! Runs `stead serve`, which serves one workspace or many hosted workspaces over HTTP until SIGINT or SIGTERM.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use stead_local::{LandlockMode, WorkspaceRegistry};
use stead_path::RelPath;
use stead_protocols::{
    dialect::{DialectFilesystemReach, DialectWorkspaceRootPath},
    http::{
        Authenticator, HttpListener, HttpServerConfig, HttpServerOptions, HttpServerState, RateLimit, RequestLogSink,
        serve,
    },
    limits::{CONNECTIONS_MAX, SHUTDOWN_TIMEOUT, UNAUTHENTICATED_PER_ADDRESS_MAX},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    cli::{ApprovalCliFlags, CallerAccessCliFlags, WorkspaceFlags},
    host_files,
    limits::{CALLS_PER_WORKSPACE_MAX, SERVER_CALL_THREADS_MAX},
    open_workspace::{self, CallerProtocol},
    output::{self, CliCommandResult, CommandError, CommandExit},
    spans, stdio_server, time, workspaces,
};

mod authentication;
mod banner;
mod listener;
mod request_log;

use authentication::{WorkspaceAuthenticator, WorkspaceRegistryAuthenticator, authorization_servers};
use listener::{BoundListener, TlsFiles, allowed_hosts, bind_listener, load_tls, per_address_limit};
use request_log::RequestLogFlags;

const UPKEEP_INTERVAL: Duration = Duration::from_secs(15);
/// The number of open files that the server needs besides connections.
const SERVER_OPEN_FILES: u64 = 480;
const OPEN_FILES_PER_WORKSPACE: u64 = 32;

#[derive(Debug, Args)]
pub(crate) struct ServeFlags {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7777")]
    listen: SocketAddr,
    /// Listen on a Unix socket instead; processes of the same user need no token
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    socket: Option<PathBuf>,
    /// Additional host name of the server, with the port if a proxy uses another one (repeatable)
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Web origin that may call from a browser (repeatable)
    #[arg(long, value_name = "URL")]
    origin: Vec<String>,
    /// Authorization server to advertise (repeatable): metadata only; this server still accepts only its own tokens
    #[arg(long, value_name = "URL")]
    authorization_server: Vec<String>,
    /// TLS certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "socket")]
    tls_cert: Option<PathBuf>,
    /// TLS private key (PEM); SIGHUP reloads key and certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert", conflicts_with = "socket")]
    tls_key: Option<PathBuf>,
    /// Allow a non-loopback address without TLS, because a reverse proxy terminates TLS
    #[arg(long)]
    behind_proxy: bool,
    /// Always print the temporary token of this server; by default only if standard error is a terminal
    #[arg(long)]
    print_token: bool,
    /// Dialect of /mcp (repeatable if tool names do not collide); every dialect also has its own endpoint
    #[arg(long, value_name = "NAME", default_value = "stead")]
    dialect: Vec<String>,
    /// Serve the hosted workspaces in this directory, which is created if it is missing
    #[arg(long, value_name = "DIR")]
    workspaces: Option<PathBuf>,
    /// With --workspaces: time until an unused workspace is closed
    #[arg(long, value_name = "TIME", default_value = "5m")]
    idle_close: String,
    /// With --workspaces: maximum number of open workspaces
    #[arg(long, value_name = "COUNT", default_value_t = 512)]
    open_max: usize,
    #[command(flatten)]
    limits: ServerLimitFlags,
    #[command(flatten)]
    log: RequestLogFlags,
    #[command(flatten)]
    caller: CallerAccessCliFlags,
    #[command(flatten)]
    approval: ApprovalCliFlags,
}

/// Checks whether a server would start, without binding the address or opening the workspace.
pub(crate) fn check_settings(flags: &WorkspaceFlags, serve_flags: &ServeFlags) -> Result<(), CommandError> {
    let tls_files = load_tls(serve_flags)?;
    let workspace = open_workspace::workspace_path(flags)?;
    if let Some(tls_files) = &tls_files {
        tls_files.refuse_key_inside(Path::new(&workspace))?;
    }
    open_workspace::open_options(flags, LandlockMode::Restrict, &DialectFilesystemReach::Workspace)?;
    open_workspace::caller_with_home(&serve_flags.caller, CallerProtocol::Http, &RelPath::root())?;
    authorization_servers(serve_flags)?;
    http_config(serve_flags, workspace, SERVER_CALL_THREADS_MAX).map(drop)
}

pub(crate) fn run(flags: &WorkspaceFlags, serve_flags: &ServeFlags) -> CliCommandResult {
    serve_flags.log.apply_format();
    let bound = bind_listener(serve_flags)?;
    if let Some(directory) = &serve_flags.workspaces {
        return serve_hosted(flags, serve_flags, directory, bound);
    }
    let workspace = open_workspace::workspace_path(flags)?;
    bound.refuse_key_inside(Path::new(&workspace))?;
    let opened = open_workspace::open_sandboxed(flags, &serve_flags.approval, bound.readable_paths())?;
    let caller = open_workspace::caller_with_home(&serve_flags.caller, CallerProtocol::Http, &opened.home)?;
    let settings = http_config(serve_flags, workspace.clone(), SERVER_CALL_THREADS_MAX)?;
    let authenticator = WorkspaceAuthenticator::new(&opened, settings.location.clone(), caller)?;
    let token = authenticator.run_token().to_owned();
    let print_banner =
        |bound: &BoundListener| banner::print_banner(bound, serve_flags, &workspace, flags.durability, &token);
    serve_with(Arc::new(authenticator), settings, serve_flags, bound, print_banner, |_| std::future::pending())
}

/// Serves the hosted workspaces in a directory. The token of a client selects a workspace or makes the client an
/// administrator.
fn serve_hosted(
    flags: &WorkspaceFlags,
    serve_flags: &ServeFlags,
    directory: &Path,
    bound: BoundListener,
) -> CliCommandResult {
    open_workspace::print_warnings(flags, LandlockMode::Restrict);
    let idle_ms = time::parse_duration("--idle-close", &serve_flags.idle_close)?;
    let idle = Duration::from_millis(idle_ms.unsigned_abs());
    bound.refuse_key_inside(directory)?;
    stead_disk::raise_open_file_limit();
    let mut options = workspaces::registry_options(flags, directory);
    (options.landlock, options.idle_timeout) = (LandlockMode::Restrict, idle);
    options.readable_paths = bound.readable_paths();
    options.open_workspaces_max = serve_flags.open_max.max(1);
    open_workspace::print_approval_warning(serve_flags.approval.approve);
    options.approval_mode = serve_flags.approval.approve;
    let registry = WorkspaceRegistry::open(options)?;
    let authenticator = Arc::new(WorkspaceRegistryAuthenticator::new(&registry, serve_flags)?);
    let path = registry.path().to_string_lossy().into_owned();
    let settings = http_config(serve_flags, path.clone(), CALLS_PER_WORKSPACE_MAX)?;
    let token = authenticator.run_token().to_owned();
    let print_banner =
        |bound: &BoundListener| banner::print_registry_banner(bound, serve_flags, &path, flags.durability, &token);
    let upkeep_registry = registry.clone();
    let served = serve_with(authenticator, settings, serve_flags, bound, print_banner, |state| {
        run_upkeep(state, upkeep_registry, idle)
    });
    registry.close_all();
    served
}

async fn run_upkeep(state: Arc<HttpServerState>, registry: Arc<WorkspaceRegistry>, idle: Duration) {
    loop {
        tokio::time::sleep(UPKEEP_INTERVAL.min(idle)).await;
        state.evict_idle_clients(idle, usize::MAX);
        let registry = registry.clone();
        let outcome = tokio::task::spawn_blocking(move || {
            registry.close_idle_workspaces();
            registry.expire_and_reconcile()
        });
        if let Ok(Err(error)) = outcome.await {
            output::print_note(&format!(
                "maintenance of the hosted workspaces failed and will be repeated: {}",
                error.message
            ));
        }
    }
}

/// Runs the HTTP server. The sandbox must already be active, because the HTTP server starts threads. The address is
/// printed after the signal handlers are installed, because a reader of the address may send a signal at once.
fn serve_with<F: Future<Output = ()> + Send + 'static>(
    authenticator: Arc<dyn Authenticator>,
    settings: HttpServerConfig,
    flags: &ServeFlags,
    bound: BoundListener,
    print_banner: impl FnOnce(&BoundListener),
    upkeep: impl FnOnce(Arc<HttpServerState>) -> F,
) -> CliCommandResult {
    let hosts = allowed_hosts(flags, &bound);
    spans::start_export();
    let log = flags.log.start()?;
    let options = HttpServerOptions {
        request_logger: log.clone().map(|log| log as Arc<dyn RequestLogSink>),
        mcp_extension: None,
        authorization_servers: authorization_servers(flags)?,
        rate_limit: flags.limits.rate(),
        connections_max: Some(flags.limits.connections(flags.workspaces.as_ref().map_or(1, |_| flags.open_max))),
        per_address_limit: per_address_limit(flags),
    };
    let state = HttpServerState::with_options(authenticator, hosts, settings, options);
    let builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = stdio_server::build_runtime(builder, SERVER_CALL_THREADS_MAX)?;
    let signals = {
        let _inside = runtime.enter();
        ServerSignals::install().map_err(|error| {
            CommandError::System(format!("cannot start the server: installing the signal handlers failed: {error}"))
        })?
    };
    print_banner(&bound);
    runtime.spawn(upkeep(state.clone()));
    let served = runtime.block_on(serve_until_stopped(state, bound, signals));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    log.iter().for_each(|log| log.flush());
    served.map(|()| CommandExit::Success)
}

fn http_config(
    flags: &ServeFlags,
    workspace: String,
    workspace_calls_max: usize,
) -> Result<HttpServerConfig, CommandError> {
    let settings = HttpServerConfig {
        location: DialectWorkspaceRootPath { root: workspace },
        mcp_dialects: flags.dialect.clone(),
        rpc_dialects: vec!["stead".to_owned(), "krux".to_owned()],
        workspace_calls_max,
    };
    settings.check_dialects().map_err(|error| CommandError::Usage(error.to_string()))?;
    Ok(settings)
}

async fn serve_until_stopped(
    state: Arc<HttpServerState>,
    bound: BoundListener,
    mut signals: ServerSignals,
) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| CommandError::System(format!("cannot listen: {error}"));
    let mut tls_files = None;
    let mut socket = None;
    let listener = match bound {
        BoundListener::Tcp(listener, _) => {
            HttpListener::Tcp(tokio::net::TcpListener::from_std(listener).map_err(failed)?)
        }
        BoundListener::Tls(listener, _, files) => {
            let tls = files.tls.clone();
            tls_files = Some(files);
            HttpListener::Tls(tokio::net::TcpListener::from_std(listener).map_err(failed)?, tls)
        }
        BoundListener::Unix(listener, path) => {
            let user = host_files::effective_user()
                .ok_or_else(|| output::usage_error("cannot read /proc/self to find the user of this process; mount /proc, or use --listen instead of --socket"))?;
            socket = Some(path);
            HttpListener::Unix(tokio::net::UnixListener::from_std(listener).map_err(failed)?, user)
        }
    };
    let serving = tokio::spawn(serve(state.clone(), listener));
    signals.until_shutdown(tls_files.as_ref()).await;
    output::print_note("shutting down: finishing the requests in progress");
    state.shut_down();
    drop(serving.await);
    // Dropping the socket removes its file.
    drop(socket);
    Ok(())
}

struct ServerSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl ServerSignals {
    /// Installs the signal handlers; must be called inside a tokio runtime.
    fn install() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for SIGINT or SIGTERM, and reloads the TLS files at SIGHUP.
    async fn until_shutdown(&mut self, tls_files: Option<&TlsFiles>) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hang_up.recv() => tls_files.into_iter().for_each(TlsFiles::reload),
            }
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ServerLimitFlags {
    /// Maximum sustained calls per second and principal (0 = unlimited)
    #[arg(long, value_name = "CALLS", default_value_t = 0)]
    rate: u32,
    /// Calls allowed in a burst above the rate (0 = twice the rate)
    #[arg(long, value_name = "CALLS", default_value_t = 0)]
    rate_burst: u32,
    /// Maximum number of connections
    #[arg(long, value_name = "COUNT", default_value_t = CONNECTIONS_MAX)]
    connections: usize,
    /// Maximum unauthenticated connections per IP address (0 = unlimited)
    #[arg(long, value_name = "COUNT", default_value_t = UNAUTHENTICATED_PER_ADDRESS_MAX)]
    strangers_per_address: usize,
}

impl ServerLimitFlags {
    pub(crate) fn rate(&self) -> Option<RateLimit> {
        let burst = if self.rate_burst == 0 { self.rate.saturating_mul(2) } else { self.rate_burst };
        (self.rate > 0).then_some(RateLimit { per_second: self.rate, burst })
    }

    /// Returns the maximum number of connections, which a low limit on open files reduces.
    pub(crate) fn connections(&self, workspaces: usize) -> usize {
        let Some(allowed) = stead_disk::raise_open_file_limit() else { return self.connections };
        let room = connection_limit(allowed, workspaces);
        if room < self.connections {
            output::print_note(&format!(
                "accepting {room} connections at most, not {}: this process may have only {allowed} open files; raise the limit with ulimit -Hn",
                self.connections
            ));
        }
        room.min(self.connections)
    }
}

/// Returns the number of connections that a limit of `allowed` open files permits. Connections may use at least half of
/// the allowed open files.
fn connection_limit(allowed: u64, workspaces: usize) -> usize {
    let own = SERVER_OPEN_FILES + OPEN_FILES_PER_WORKSPACE * workspaces as u64;
    let room = allowed.saturating_sub(own).max(allowed / 2).max(1);
    usize::try_from(room).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_limit_leaves_room_for_server_files() {
        assert_eq!([20_000, 1_024, 256, 0].map(|allowed| connection_limit(allowed, 1)), [19_488, 512, 128, 1]);
        assert_eq!(connection_limit(40_000, 512), 40_000 - 480 - 512 * 32);
    }
}
