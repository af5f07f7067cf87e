//! Runs `stead mcp` and `stead rpc`, which serve one client over standard input and output. Only protocol messages are
//! written to standard output. No thread starts before the sandbox is active, because a sandbox cannot restrict running
//! threads. The calls of `stead mcp` belong to the session of the ticket in the environment, regardless of the client's
//! name.

use std::{
    io,
    os::{fd::AsFd, unix::net::UnixStream as StdStream},
    sync::{Arc, OnceLock},
};

use stead_engine::{Caller, Error, ErrorKind};
use stead_local::{LandlockMode, LocalWorkspace};
use stead_protocols::{
    dialect::{DialectFilesystemReach, DialectSet},
    limits::{CALL_THREADS_MAX, SHUTDOWN_TIMEOUT},
    mcp::{self, AssignedSessionNameProvider},
    rpc::{self, RpcServer},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{
        UnixStream,
        unix::pipe::{OpenOptions, Receiver, Sender},
    },
    runtime::{Builder, Runtime},
};

use crate::{
    cli::{ApprovalCliFlags, CallerAccessCliFlags, DialectFlags, McpFlags, RpcStdioServerCliFlags, WorkspaceFlags},
    open_workspace::{self, CallerProtocol, CommandLineWorkspace},
    output::{self, CliCommandResult, CommandError, CommandExit},
    spans,
};

/// The environment variable with the session ticket, which is never an argument because other users can read arguments.
pub(crate) const TICKET_VARIABLE: &str = "STEAD_TICKET";
const STREAM_THREADS: usize = 2;
/// Opening standard input by its path gives a new handle, so non-blocking mode does not affect other processes.
const STDIN_PATH: &str = "/proc/self/fd/0";
const STDOUT_PATH: &str = "/proc/self/fd/1";

pub(crate) type BoxedStdinReader = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type BoxedStdoutWriter = Box<dyn AsyncWrite + Send + Unpin>;

pub(crate) fn run_mcp(flags: &WorkspaceFlags, mcp: &McpFlags) -> CliCommandResult {
    let StdioServerParts { runtime, input, output, dialects, workspace, caller } =
        StdioServerParts::prepare(flags, &mcp.dialects, &mcp.caller, &mcp.approval, CallerProtocol::Mcp)?;
    let sessions = match std::env::var(TICKET_VARIABLE) {
        Ok(ticket) => Some(resolver_for_ticket(&workspace.local, &caller, ticket)?),
        Err(_) => None,
    };
    finish(runtime, mcp::serve(workspace.engine.clone(), caller, sessions, dialects, input, output))
}

pub(crate) fn run_rpc(flags: &WorkspaceFlags, rpc: &RpcStdioServerCliFlags) -> CliCommandResult {
    let StdioServerParts { runtime, input, output, dialects, workspace, caller } =
        StdioServerParts::prepare(flags, &rpc.dialects(), &rpc.caller, &rpc.approval, CallerProtocol::Rpc)?;
    finish(runtime, rpc::serve(RpcServer::new(workspace.engine.clone(), caller, dialects), input, output))
}

fn finish<E: ToString>(runtime: Runtime, serving: impl Future<Output = Result<(), E>>) -> CliCommandResult {
    let served = runtime.block_on(serving);
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    served.map_err(|error| CommandError::System(error.to_string()))?;
    Ok(CommandExit::Success)
}

struct StdioServerParts {
    runtime: Runtime,
    input: BoxedStdinReader,
    output: BoxedStdoutWriter,
    dialects: DialectSet,
    workspace: CommandLineWorkspace,
    caller: Caller,
}

impl StdioServerParts {
    fn prepare(
        flags: &WorkspaceFlags,
        dialects: &DialectFlags,
        caller: &CallerAccessCliFlags,
        approval: &ApprovalCliFlags,
        kind: CallerProtocol,
    ) -> Result<Self, CommandError> {
        let runtime = build_runtime(Builder::new_current_thread(), CALL_THREADS_MAX + STREAM_THREADS)?;
        let (input, output) = {
            let _inside = runtime.enter();
            (open_stdin(), open_stdout())
        };
        let dialects = open_workspace::build_dialects(flags, dialects)?;
        let reach = dialects.filesystem_reach();
        let landlock = match reach {
            DialectFilesystemReach::Workspace => LandlockMode::Restrict,
            DialectFilesystemReach::WholeMachine => LandlockMode::Off,
        };
        open_workspace::print_warnings(flags, landlock);
        if reach == DialectFilesystemReach::WholeMachine {
            output::print_note(
                "restrict=false: callers can access every file that this user can; the Landlock sandbox is off",
            );
        }
        let mut workspace = open_workspace::open_with_reach(flags, LandlockMode::Restrict, &reach)?;
        spans::start_export();
        open_workspace::print_approval_warning(approval.approve);
        workspace.engine = workspace.engine.clone().with_approval_mode(approval.approve);
        let caller = open_workspace::caller_with_home(caller, kind, &workspace.home)?;
        Ok(Self { runtime, input, output, dialects, workspace, caller })
    }
}

pub(crate) fn build_runtime(mut builder: Builder, blocking_threads: usize) -> Result<Runtime, CommandError> {
    builder
        .enable_all()
        .max_blocking_threads(blocking_threads)
        .build()
        .map_err(|error| CommandError::System(format!("cannot start the server: starting its threads failed: {error}")))
}

/// Opens standard input; must be called inside a tokio runtime.
pub(crate) fn open_stdin() -> BoxedStdinReader {
    let pipe: io::Result<Receiver> = OpenOptions::new().open_receiver(STDIN_PATH);
    match (pipe, as_socket(&io::stdin())) {
        (Ok(pipe), _) => Box::new(pipe),
        (Err(_), Ok(socket)) => Box::new(socket),
        (Err(_), Err(_)) => Box::new(tokio::io::stdin()),
    }
}

/// Opens standard output; must be called inside a tokio runtime.
pub(crate) fn open_stdout() -> BoxedStdoutWriter {
    let pipe: io::Result<Sender> = OpenOptions::new().open_sender(STDOUT_PATH);
    match (pipe, as_socket(&io::stdout())) {
        (Ok(pipe), _) => Box::new(pipe),
        (Err(_), Ok(socket)) => Box::new(socket),
        (Err(_), Err(_)) => Box::new(tokio::io::stdout()),
    }
}

fn as_socket(stream: &impl AsFd) -> io::Result<UnixStream> {
    let stream = StdStream::from(stream.as_fd().try_clone_to_owned()?);
    // Fails if the stream is not a Unix socket.
    stream.local_addr()?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

struct TicketSessionResolver {
    local: Arc<LocalWorkspace>,
    ticket: String,
    /// The name of the session to which the session ticket was bound.
    session: OnceLock<String>,
}

impl AssignedSessionNameProvider for TicketSessionResolver {
    fn current_session(&self) -> Option<String> {
        if let Some(session) = self.session.get() {
            return Some(session.clone());
        }
        let session = self.local.load_session_ticket(&self.ticket).ok()??.session?;
        Some(self.session.get_or_init(|| session).clone())
    }
}

fn resolver_for_ticket(
    local: &Arc<LocalWorkspace>,
    caller: &Caller,
    ticket: String,
) -> Result<Arc<dyn AssignedSessionNameProvider>, CommandError> {
    let known = local.load_session_ticket(&ticket)?;
    if known.is_none_or(|known| known.principal != caller.principal.to_string()) {
        let refused = Error::new(
            ErrorKind::NotOwner,
            format!("the session ticket in {TICKET_VARIABLE} is not valid for this workspace and principal"),
        )
        .with_next_step(
            "start the server with the command and environment that the session provided, or unset STEAD_TICKET",
        );
        return Err(refused.into());
    }
    Ok(Arc::new(TicketSessionResolver { local: local.clone(), ticket, session: OnceLock::new() }))
}
