//! `stead serve`: the workspace over HTTP, for many clients at once, until SIGINT or SIGTERM.

use std::{
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use stead_engine::Caller;
use stead_local::LandlockMode;
use stead_path::RelPath;
use stead_protocols::{
    dialect::{FilesystemReach, WorkspaceLocation},
    http::{
        AllowedHosts, Authenticator, HttpListener, HttpServerConfig, HttpServerOptions, RequestLogger, ServerState,
        limits::CALLS_WAITING_TOTAL_MAX, serve,
    },
    limits::{CALLS_WORKING_MAX, SHUTDOWN_TIMEOUT},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    cli::{ApprovalFlags, CallerFlags, WorkspaceFlags},
    host_files::{self, BoundSocketPath},
    open_workspace::{self, CallerKind},
    output::{self, CommandError, CommandExit, CommandResult},
    spans, startup,
};

mod authenticator;
mod authorization_servers;
mod banner;
mod limits;
mod multi_workspace;
mod request_log;
mod tls_files;

use limits::{LimitFlags, PeerAddressMeaning};
use request_log::LogFlags;
use tls_files::TlsFiles;

/// Threads for calls of all clients; waiting calls cannot use up the threads of working ones.
const CALL_THREADS: usize = CALLS_WAITING_TOTAL_MAX + CALLS_WORKING_MAX * 8;

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
    /// Print the temporary token of this server even if standard error is not a terminal
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
    limits: LimitFlags,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    caller: CallerFlags,
    #[command(flatten)]
    approval: ApprovalFlags,
}

/// A listener that is bound before the Landlock sandbox starts.
enum BoundListener {
    Tcp(TcpListener, SocketAddr),
    Tls(TcpListener, SocketAddr, TlsFiles),
    Unix(UnixListener, BoundSocketPath),
}

impl BoundListener {
    /// Paths that the sandbox must leave readable.
    fn readable_paths(&self) -> Vec<PathBuf> {
        match self {
            BoundListener::Tls(_, _, identity) => identity.readable_directories(),
            BoundListener::Tcp(..) | BoundListener::Unix(..) => Vec::new(),
        }
    }
}

/// Checks whether a server would start, without binding the address or opening the workspace.
pub(crate) fn check_settings(flags: &WorkspaceFlags, serve_flags: &ServeFlags) -> Result<(), CommandError> {
    let identity = load_tls(serve_flags)?;
    let workspace = open_workspace::workspace_path(flags)?;
    if let Some(identity) = &identity {
        identity.refuse_key_inside(Path::new(&workspace))?;
    }
    open_workspace::open_options(flags, LandlockMode::Restrict, &FilesystemReach::Workspace)?;
    open_workspace::caller_with_home(&serve_flags.caller, CallerKind::Http, &RelPath::root())?;
    authorization_servers::authorization_servers(serve_flags)?;
    http_config(serve_flags, workspace, CALL_THREADS).map(drop)
}

/// Serves until SIGINT or SIGTERM.
pub(crate) fn run(flags: &WorkspaceFlags, serve_flags: &ServeFlags) -> CommandResult {
    serve_flags.log.apply_format();
    let bound = bind_listener(serve_flags)?;
    if let Some(directory) = &serve_flags.workspaces {
        return multi_workspace::run(flags, serve_flags, directory, bound);
    }
    let workspace = open_workspace::workspace_path(flags)?;
    if let BoundListener::Tls(_, _, identity) = &bound {
        identity.refuse_key_inside(Path::new(&workspace))?;
    }
    let opened = startup::open_sandboxed(flags, &serve_flags.approval, bound.readable_paths())?;
    let caller = open_workspace::caller_with_home(&serve_flags.caller, CallerKind::Http, &opened.home)?;
    let settings = http_config(serve_flags, workspace.clone(), CALL_THREADS)?;
    let authenticator = authenticator::WorkspaceAuthenticator::new(&opened, settings.location.clone(), caller)?;
    let token = authenticator.run_token().to_owned();
    let print_banner =
        |bound: &BoundListener| banner::print_banner(bound, serve_flags, &workspace, flags.durability, &token);
    serve_with(Arc::new(authenticator), settings, serve_flags, bound, print_banner, |_| std::future::pending())
}

/// Serves with an authenticator, and runs `upkeep` in the background. Starts threads, so the sandbox must be active. Prints the
/// address after the signal handlers are installed, because a reader may send a signal at once.
fn serve_with<F: Future<Output = ()> + Send + 'static>(
    authenticator: Arc<dyn Authenticator>,
    settings: HttpServerConfig,
    flags: &ServeFlags,
    bound: BoundListener,
    print_banner: impl FnOnce(&BoundListener),
    upkeep: impl FnOnce(Arc<ServerState>) -> F,
) -> CommandResult {
    let hosts = allowed_hosts(flags, &bound);
    spans::start_export();
    let log = flags.log.start()?;
    let options = HttpServerOptions {
        request_logger: log.clone().map(|log| log as Arc<dyn RequestLogger>),
        mcp_extension: None,
        authorization_servers: authorization_servers::authorization_servers(flags)?,
        rate_limit: flags.limits.rate(),
        connections_max: Some(flags.limits.connections(flags.workspaces.as_ref().map_or(1, |_| flags.open_max))),
        per_address_limit: flags.limits.per_address_limit(address_meaning(flags)),
    };
    let state = ServerState::with_options(authenticator, hosts, settings, options);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(CALL_THREADS)
        .build()
        .map_err(|error| CommandError::System(format!("cannot start the async runtime: {error}")))?;
    let signals = {
        let _inside = runtime.enter();
        ServerSignals::install()
            .map_err(|error| CommandError::System(format!("cannot install signal handlers: {error}")))?
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
        location: WorkspaceLocation { root: workspace },
        mcp_dialects: flags.dialect.clone(),
        rpc_dialects: vec!["stead".to_owned(), "krux".to_owned()],
        workspace_calls_max,
    };
    settings.check_dialects().map_err(|error| CommandError::Usage(error.to_string()))?;
    Ok(settings)
}

/// Serves until a signal, then shuts down gracefully.
async fn serve_until_stopped(
    state: Arc<ServerState>,
    bound: BoundListener,
    mut signals: ServerSignals,
) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| CommandError::System(format!("cannot listen: {error}"));
    let mut identity = None;
    let mut socket = None;
    let listener = match bound {
        BoundListener::Tcp(listener, _) => {
            HttpListener::Tcp(tokio::net::TcpListener::from_std(listener).map_err(failed)?)
        }
        BoundListener::Tls(listener, _, files) => {
            let tls = files.tls.clone();
            identity = Some(files);
            HttpListener::Tls(tokio::net::TcpListener::from_std(listener).map_err(failed)?, tls)
        }
        BoundListener::Unix(listener, path) => {
            let user = host_files::effective_user()
                .ok_or_else(|| output::usage_error("cannot determine the user of this process"))?;
            socket = Some(path);
            HttpListener::Unix(tokio::net::UnixListener::from_std(listener).map_err(failed)?, user)
        }
    };
    let serving = tokio::spawn(serve(state.clone(), listener));
    signals.until_shutdown(identity.as_ref()).await;
    output::print_note("shutting down: finishing in-flight requests");
    state.shut_down();
    drop(serving.await);
    // Removes the socket file.
    drop(socket);
    Ok(())
}

/// Signals of the server process, caught from creation on.
struct ServerSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl ServerSignals {
    /// Must be called inside a runtime.
    fn install() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Resolves at SIGINT or SIGTERM. SIGHUP reloads the TLS files.
    async fn until_shutdown(&mut self, identity: Option<&TlsFiles>) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hang_up.recv() => identity.into_iter().for_each(TlsFiles::reload),
            }
        }
    }
}

/// Loads the TLS files. A non-loopback address needs TLS, here or in a proxy that the operator confirms with --behind-proxy;
/// otherwise tokens would travel unencrypted.
fn load_tls(flags: &ServeFlags) -> Result<Option<TlsFiles>, CommandError> {
    let identity = match (&flags.tls_cert, &flags.tls_key) {
        (Some(chain), Some(key)) => Some(TlsFiles::load(chain, key)?),
        (Some(_), None) | (None, Some(_)) | (None, None) => None,
    };
    if is_reachable_remotely(flags) && identity.is_none() && !flags.behind_proxy {
        return Err(CommandError::Usage(format!(
            "{} can be reached from other machines, and tokens would travel unencrypted; pass --tls-cert and --tls-key, or \
             --behind-proxy if a reverse proxy terminates TLS, or listen on 127.0.0.1",
            flags.listen
        )));
    }
    Ok(identity)
}

/// Whether other machines can connect.
fn is_reachable_remotely(flags: &ServeFlags) -> bool {
    flags.socket.is_none() && !flags.listen.ip().is_loopback()
}

/// Whether peer addresses tell clients apart.
fn address_meaning(flags: &ServeFlags) -> PeerAddressMeaning {
    if is_reachable_remotely(flags) && !flags.behind_proxy {
        PeerAddressMeaning::PerClient
    } else {
        PeerAddressMeaning::Shared
    }
}

fn bind_listener(flags: &ServeFlags) -> Result<BoundListener, CommandError> {
    if let Some(path) = &flags.socket {
        let (listener, socket) = BoundSocketPath::bind(path)?;
        return Ok(BoundListener::Unix(listener, socket));
    }
    let identity = load_tls(flags)?;
    let failed = |error: std::io::Error| {
        CommandError::System(format!(
            "cannot listen on {}: {error}; choose another port with --listen 127.0.0.1:PORT",
            flags.listen
        ))
    };
    let listener = TcpListener::bind(flags.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(match identity {
        Some(identity) => BoundListener::Tls(listener, address, identity),
        None => BoundListener::Tcp(listener, address),
    })
}

fn allowed_hosts(flags: &ServeFlags, bound: &BoundListener) -> AllowedHosts {
    let mut names = match bound {
        BoundListener::Tcp(_, address) => AllowedHosts::loopback(address.port()),
        BoundListener::Tls(_, address, _) => AllowedHosts::secure_loopback(address.port()),
        BoundListener::Unix(..) => AllowedHosts::unix_socket(),
    };
    flags.host.iter().for_each(|host| names.add_host(host));
    flags.origin.iter().for_each(|origin| names.add_origin(origin));
    names
}

/// The caller in the session of its token or socket.
pub(crate) fn caller_in_session(caller: &Caller, id: &str) -> Caller {
    Caller { session: format!("http-{id}"), ..caller.clone() }
}
