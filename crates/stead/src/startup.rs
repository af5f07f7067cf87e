//! Startup of servers: warnings, standard streams, dialects, the open workspace and the caller.

use std::path::PathBuf;

use stead_engine::{ApprovalMode, Caller};
use stead_local::LandlockMode;
use stead_protocols::{
    dialect::{DialectSet, FilesystemReach},
    limits::CALL_THREADS_MAX,
};
use tokio::runtime::Runtime;

use crate::{
    cli::{ApprovalFlags, ApprovalModeArg, CallerFlags, DialectFlags, DurabilityArg, WorkspaceFlags},
    host_files,
    open_workspace::{self, CallerKind, CommandWorkspace},
    output::{self, CommandError},
    spans,
    stdio::{self, StdinReader, StdoutWriter},
};

const ROOT_USER: u32 = 0;
/// Threads for standard streams that do not support asynchronous I/O.
const STREAM_THREADS: usize = 2;

/// Everything a server over standard input and output needs.
pub(crate) struct StdioServerSetup {
    pub(crate) runtime: Runtime,
    pub(crate) input: StdinReader,
    pub(crate) output: StdoutWriter,
    pub(crate) dialects: DialectSet,
    pub(crate) workspace: CommandWorkspace,
    pub(crate) caller: Caller,
}

/// Prepares a server. One thread runs the protocol; calls run on other threads. No thread starts before the sandbox is active.
pub(crate) fn prepare_stdio_server(
    flags: &WorkspaceFlags,
    dialects: &DialectFlags,
    caller: &CallerFlags,
    approval: &ApprovalFlags,
    kind: CallerKind,
) -> Result<StdioServerSetup, CommandError> {
    print_warnings(flags);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(CALL_THREADS_MAX + STREAM_THREADS)
        .build()
        .map_err(|error| CommandError::System(format!("cannot start the async runtime: {error}")))?;
    let (input, output) = {
        let _inside = runtime.enter();
        (stdio::open_stdin(), stdio::open_stdout())
    };
    let dialects = open_workspace::build_dialects(flags, dialects)?;
    let reach = dialects.filesystem_reach();
    if reach == FilesystemReach::WholeMachine {
        output::print_note(
            "restrict=false: callers can access every file that this user can; the Landlock sandbox is off",
        );
    }
    let mut opened = open_workspace::open_with_reach(flags, LandlockMode::Restrict, &reach)?;
    spans::start_export();
    opened.engine = opened.engine.clone().with_approval_mode(approval_mode(approval.approve));
    let caller = open_workspace::caller_with_home(caller, kind, &opened.home)?;
    Ok(StdioServerSetup { runtime, input, output, dialects, workspace: opened, caller })
}

/// Prints warnings and opens the workspace in the Landlock sandbox, which leaves `readable_paths` readable.
pub(crate) fn open_sandboxed(
    flags: &WorkspaceFlags,
    approval: &ApprovalFlags,
    readable_paths: Vec<PathBuf>,
) -> Result<CommandWorkspace, CommandError> {
    print_warnings(flags);
    let mut options = open_workspace::open_options(flags, LandlockMode::Restrict, &FilesystemReach::Workspace)?;
    options.readable_paths = readable_paths;
    let mut opened = open_workspace::open_with_options(options)?;
    opened.engine = opened.engine.clone().with_approval_mode(approval_mode(approval.approve));
    Ok(opened)
}

/// The approval mode of a flag. Prints a note for modes that trust the agent or client.
pub(crate) fn approval_mode(approve: ApprovalModeArg) -> ApprovalMode {
    match approve {
        ApprovalModeArg::Ask => ApprovalMode::AskPerson,
        ApprovalModeArg::Deny => ApprovalMode::DenyAll,
        ApprovalModeArg::Allow => {
            output::print_note(
                "approve=allow: calls that need a person's approval run without it, and the journal records that",
            );
            ApprovalMode::AllowAll
        }
        ApprovalModeArg::Client => {
            output::print_note(
                "approve=client: the client answers approvals; if the client is the agent, it approves its own calls",
            );
            ApprovalMode::TrustClient
        }
    }
}

/// Warns about root and about durability fast.
pub(crate) fn print_warnings(flags: &WorkspaceFlags) {
    if host_files::effective_user() == Some(ROOT_USER) {
        output::print_note(
            "running as root: new files belong to root, and only stead's checks limit what callers can access; run it as a \
             dedicated user if possible",
        );
    }
    if flags.durability == DurabilityArg::Fast {
        output::print_note("durability=fast: an acknowledged change survives a crash of stead, but not a power cut");
    }
}
