//! `stead serve`: the workspace over HTTP, for many clients at once, until it is told to stop.

use std::{
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use engine::Caller;
use faces::{
    dialect::{Place, Reach},
    http::{Door, Hall, Keeping, Listener, Log, Names, Settings, limits::CALLS_WAITING_TOTAL_MAX, serve},
    limits::{CALLS_WORKING_MAX, SHUTDOWN_WAIT},
};
use local::Wall;
use path::RelPath;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    cli::{AskingFlags, CallerFlags, WorkspaceFlags},
    outside::{self, SocketPlace},
    serving,
    show::{self, Exit, Outcome, Problem},
    spans,
    wire::{self, Asker},
};

mod authorization;
mod banner;
mod bounds;
mod door;
mod identity;
mod lines;
mod many;

use bounds::{Addresses, BoundFlags};
use identity::Identity;
use lines::LogFlags;

/// Threads that calls may occupy, over all clients: those that wait leave enough for those that work.
const CALL_THREADS: usize = CALLS_WAITING_TOTAL_MAX + CALLS_WORKING_MAX * 8;

/// The flags of `stead serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeFlags {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7777")]
    listen: SocketAddr,
    /// Listen on a socket in the file system instead; processes of the same user need no token there
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    socket: Option<PathBuf>,
    /// Another name by which the server is reached, with a port if a proxy has one (repeatable)
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// A page that may call from a browser, besides the server's own (repeatable)
    #[arg(long, value_name = "URL")]
    origin: Vec<String>,
    /// Where clients without a token are sent (repeatable): metadata only, what lets in are tokens of this server
    #[arg(long, value_name = "URL")]
    authorization_server: Vec<String>,
    /// Make connections private: the server's certificate and those that vouch for it, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "socket")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM; both files are read again on SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_cert", conflicts_with = "socket")]
    tls_key: Option<PathBuf>,
    /// Listen beyond this machine without TLS: a proxy in front keeps others from listening in
    #[arg(long)]
    behind_proxy: bool,
    /// Print the token of this run although nobody seems to look
    #[arg(long)]
    print_token: bool,
    /// The vocabulary of /mcp (repeatable where names do not clash); every one has an address of its own as well
    #[arg(long, value_name = "NAME", default_value = "stead")]
    dialect: Vec<String>,
    /// Serve many workspaces: those of the estate in this directory, which is made if it is missing
    #[arg(long, value_name = "DIR")]
    workspaces: Option<PathBuf>,
    /// With --workspaces: how long one that nobody uses stays open
    #[arg(long, value_name = "TIME", default_value = "5m")]
    idle_close: String,
    /// With --workspaces: how many are open at a time
    #[arg(long, value_name = "COUNT", default_value_t = 512)]
    open_max: usize,
    #[command(flatten)]
    bounds: BoundFlags,
    #[command(flatten)]
    log: LogFlags,
    #[command(flatten)]
    caller: CallerFlags,
    #[command(flatten)]
    asking: AskingFlags,
}

/// A place to listen that is taken before the wall stands.
enum Taken {
    Tcp(TcpListener, SocketAddr),
    Tls(TcpListener, SocketAddr, Identity),
    Unix(UnixListener, SocketPlace),
}

impl Taken {
    /// What must stay readable behind the wall.
    fn places(&self) -> Vec<PathBuf> {
        match self {
            Taken::Tls(_, _, identity) => identity.places(),
            Taken::Tcp(..) | Taken::Unix(..) => Vec::new(),
        }
    }
}

/// Whether a server would start: everything that can be known without taking a place or opening the workspace.
pub(crate) fn check(flags: &WorkspaceFlags, serve_flags: &ServeFlags) -> Result<(), Problem> {
    let identity = private(serve_flags)?;
    let workspace = wire::place(flags)?;
    if let Some(identity) = &identity {
        identity.keep_out_of(Path::new(&workspace))?;
    }
    wire::options(flags, Wall::Raise, &Reach::Workspace)?;
    wire::caller_at(&serve_flags.caller, Asker::Http, &RelPath::root())?;
    authorization::named(serve_flags)?;
    settings(serve_flags, workspace, CALL_THREADS).map(drop)
}

/// Serves until an interrupt or a request to end.
pub(crate) fn run(flags: &WorkspaceFlags, serve_flags: &ServeFlags) -> Outcome {
    serve_flags.log.settle();
    let taken = take(serve_flags)?;
    if let Some(directory) = &serve_flags.workspaces {
        return many::run(flags, serve_flags, directory, taken);
    }
    let workspace = wire::place(flags)?;
    if let Taken::Tls(_, _, identity) = &taken {
        identity.keep_out_of(Path::new(&workspace))?;
    }
    let opened = serving::opened(flags, &serve_flags.asking, taken.places())?;
    let caller = wire::caller_at(&serve_flags.caller, Asker::Http, &opened.home)?;
    let settings = settings(serve_flags, workspace.clone(), CALL_THREADS)?;
    let door = door::Door::new(&opened, settings.place.clone(), caller)?;
    let token = door.token().to_owned();
    let say = |taken: &Taken| banner::show(taken, serve_flags, &workspace, flags.durability, &token);
    serve_behind(Arc::new(door), settings, serve_flags, taken, say, |_| std::future::pending())
}

/// Serves behind a door, with `upkeep` beside it. Threads start here, behind the wall. Says where it is when it can be told
/// to stop, and not before: whoever hears of it may do so at once.
fn serve_behind<F: Future<Output = ()> + Send + 'static>(
    door: Arc<dyn Door>,
    settings: Settings,
    flags: &ServeFlags,
    taken: Taken,
    say: impl FnOnce(&Taken),
    upkeep: impl FnOnce(Arc<Hall>) -> F,
) -> Outcome {
    let names = names(flags, &taken);
    spans::begin();
    let log = flags.log.keep()?;
    let keeping = Keeping {
        log: log.clone().map(|log| log as Arc<dyn Log>),
        annex: None,
        authorization: authorization::named(flags)?,
        rate: flags.bounds.rate(),
        connections: Some(flags.bounds.connections(flags.workspaces.as_ref().map_or(1, |_| flags.open_max))),
        per_address: flags.bounds.per_address(addresses(flags)),
    };
    let hall = Hall::kept(door, names, settings, keeping);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(CALL_THREADS)
        .build()
        .map_err(|error| Problem::Outside(format!("the runtime cannot start: {error}")))?;
    let signals = {
        let _inside = runtime.enter();
        Signals::heard().map_err(|error| Problem::Outside(format!("signals cannot be heard: {error}")))?
    };
    say(&taken);
    runtime.spawn(upkeep(hall.clone()));
    let served = runtime.block_on(until_stopped(hall, taken, signals));
    runtime.shutdown_timeout(SHUTDOWN_WAIT);
    log.iter().for_each(|log| log.flush());
    served.map(|()| Exit::Fine)
}

/// What the face is set to.
fn settings(flags: &ServeFlags, workspace: String, workspace_calls_max: usize) -> Result<Settings, Problem> {
    let settings = Settings {
        place: Place { workspace },
        mcp_dialects: flags.dialect.clone(),
        rpc_dialects: vec!["stead".to_owned(), "krux".to_owned()],
        workspace_calls_max,
    };
    settings.check().map_err(|error| Problem::Usage(error.to_string()))?;
    Ok(settings)
}

/// Serves, and stops in good order when it is told to.
async fn until_stopped(hall: Arc<Hall>, taken: Taken, mut signals: Signals) -> Result<(), Problem> {
    let failed = |error: std::io::Error| Problem::Outside(format!("the server cannot listen: {error}"));
    let mut identity = None;
    let mut socket = None;
    let listener = match taken {
        Taken::Tcp(listener, _) => {
            Listener::Tcp(tokio::net::TcpListener::from_std(listener).map_err(failed)?)
        }
        Taken::Tls(listener, _, proof) => {
            let tls = proof.tls.clone();
            identity = Some(proof);
            Listener::Tls(tokio::net::TcpListener::from_std(listener).map_err(failed)?, tls)
        }
        Taken::Unix(listener, place) => {
            let user =
                outside::user().ok_or_else(|| show::usage("the kernel does not say which user this is"))?;
            socket = Some(place);
            Listener::Unix(tokio::net::UnixListener::from_std(listener).map_err(failed)?, user)
        }
    };
    let serving = tokio::spawn(serve(hall.clone(), listener));
    signals.end(identity.as_ref()).await;
    show::remark("stopping: what runs is finished, nothing new is taken in");
    hall.stop();
    drop(serving.await);
    // Nobody listens any more: the place is free.
    drop(socket);
    Ok(())
}

/// What the server is told from outside. Heard from when this is made.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Must be called inside a runtime.
    fn heard() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Resolves at an interrupt or a request to end. A hang-up means to read again what may be new.
    async fn end(&mut self, identity: Option<&Identity>) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hang_up.recv() => identity.into_iter().for_each(Identity::renew),
            }
        }
    }
}

/// What makes connections private. Beyond this machine they are, here or by a proxy that the operator vouches for: tokens
/// would go over the network in clear.
fn private(flags: &ServeFlags) -> Result<Option<Identity>, Problem> {
    let identity = match (&flags.tls_cert, &flags.tls_key) {
        (Some(chain), Some(key)) => Some(Identity::read(chain, key)?),
        (Some(_), None) | (None, Some(_)) | (None, None) => None,
    };
    if is_wide(flags) && identity.is_none() && !flags.behind_proxy {
        return Err(Problem::Usage(format!(
            "{} can be reached from other machines, and tokens would travel in clear; say --tls-cert and --tls-key, or put \
             a proxy with TLS in front and say --behind-proxy, or listen on 127.0.0.1",
            flags.listen
        )));
    }
    Ok(identity)
}

/// Whether other machines can connect.
fn is_wide(flags: &ServeFlags) -> bool {
    flags.socket.is_none() && !flags.listen.ip().is_loopback()
}

/// What the addresses of connections are good for.
fn addresses(flags: &ServeFlags) -> Addresses {
    if is_wide(flags) && !flags.behind_proxy { Addresses::Tell } else { Addresses::Same }
}

/// Takes the place to listen.
fn take(flags: &ServeFlags) -> Result<Taken, Problem> {
    if let Some(path) = &flags.socket {
        let (listener, place) = SocketPlace::take(path)?;
        return Ok(Taken::Unix(listener, place));
    }
    let identity = private(flags)?;
    let failed = |error: std::io::Error| {
        Problem::Outside(format!(
            "{} cannot be listened on: {error}; another --listen would do",
            flags.listen
        ))
    };
    let listener = TcpListener::bind(flags.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(match identity {
        Some(identity) => Taken::Tls(listener, address, identity),
        None => Taken::Tcp(listener, address),
    })
}

fn names(flags: &ServeFlags, taken: &Taken) -> Names {
    let mut names = match taken {
        Taken::Tcp(_, address) => Names::loopback(address.port()),
        Taken::Tls(_, address, _) => Names::secure_loopback(address.port()),
        Taken::Unix(..) => Names::socket(),
    };
    flags.host.iter().for_each(|host| names.add_host(host));
    flags.origin.iter().for_each(|origin| names.add_origin(origin));
    names
}

/// The same caller in the session that belongs to its way in.
pub(crate) fn session_of(caller: &Caller, id: &str) -> Caller {
    Caller { session: format!("http-{id}"), ..caller.clone() }
}
