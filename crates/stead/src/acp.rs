//! `stead acp`: an ACP proxy between an editor on standard input and output and an agent that it starts, or in a chain that a
//! conductor runs. Only protocol messages go to standard output.
//!
//! Exits when either side ends, with the exit code of the agent. Stops no process that it did not start.

use std::sync::Arc;

use stead_engine::{ApprovalMode, Caller};
use stead_protocols::{
    acp::{
        self, AcpCallers, AcpCapabilityOffered, AcpFileCapabilities, AcpOptions, AcpPeer, WriteEncodingPolicy,
        WriteFormatPolicy, WriteLineEndingPolicy,
    },
    limits::{CALL_THREADS_MAX, SHUTDOWN_TIMEOUT},
};

mod agent_process;
mod root_opener;

use agent_process::AgentProcess;
use root_opener::LocalRootOpener;

use crate::{
    cli::{AcpFlags, ApprovalModeArg, CallerFlags, FlagSource, LineEndingsArg, WorkspaceFlags, WriteEncodingArg},
    open_workspace::{self, CallerKind},
    output::{CommandError, CommandExit, CommandResult},
    startup, stdio,
};

/// Threads for standard streams without asynchronous I/O, and for waiting for the agent.
const STREAM_AND_AGENT_THREADS: usize = 4;

/// Runs the proxy until one side ends.
pub(crate) fn run(flags: &WorkspaceFlags, workspace: FlagSource, acp: &AcpFlags) -> CommandResult {
    startup::print_warnings(flags);
    let agent = open_workspace::caller_from_flags(&acp.caller, CallerKind::Acp)?;
    let person = Caller {
        protocol: agent.protocol,
        ..open_workspace::caller_from_flags(&CallerFlags::default(), CallerKind::Person)?
    };
    let callers = AcpCallers { agent, person };
    let root_opener =
        LocalRootOpener::new(flags, workspace, acp, callers.agent.principal.clone(), approval_mode(acp.approve))?;
    let root_opener = Arc::new(root_opener);
    let options = AcpOptions { file_capabilities: file_capabilities(acp), text_format: text_format_policy(acp) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(CALL_THREADS_MAX + STREAM_AND_AGENT_THREADS)
        .build()
        .map_err(|error| CommandError::System(format!("cannot start the async runtime: {error}")))?;
    let served = runtime.block_on(async {
        let editor = AcpPeer { input: stdio::open_stdin(), output: stdio::open_stdout() };
        let Some((program, arguments)) = acp.agent.split_first() else {
            let ended = acp::proxy_in_chain(editor, callers, options, root_opener.clone()).await;
            return ended.map(|_| CommandExit::Success).map_err(CommandError::from);
        };
        let (mut agent, peer) = AgentProcess::start(program, arguments)?;
        tokio::select! {
            ended = acp::proxy_editor_and_agent(editor, peer, callers, options, root_opener.clone()) => match ended {
                // An error means that a peer disconnected.
                Ok(_) | Err(_) => agent.stop().await,
            },
            // Children of the agent may keep its output open, so its exit ends the proxy too.
            exit = agent.until_exit() => exit,
        }
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    root_opener.close_workspaces();
    served
}

/// The approval mode. The client is the editor, not the agent, so its user may answer.
fn approval_mode(approve: ApprovalModeArg) -> ApprovalMode {
    match approve {
        ApprovalModeArg::Client => ApprovalMode::TrustClient,
        ApprovalModeArg::Ask | ApprovalModeArg::Deny | ApprovalModeArg::Allow => startup::approval_mode(approve),
    }
}

fn file_capabilities(acp: &AcpFlags) -> AcpFileCapabilities {
    AcpFileCapabilities {
        read_text_file: AcpCapabilityOffered::Yes,
        write_text_file: if acp.caller.read_only { AcpCapabilityOffered::No } else { AcpCapabilityOffered::Yes },
    }
}

fn text_format_policy(acp: &AcpFlags) -> WriteFormatPolicy {
    let endings = match acp.line_endings {
        LineEndingsArg::Kept => WriteLineEndingPolicy::Keep,
        LineEndingsArg::Given => WriteLineEndingPolicy::AsGiven,
    };
    let encodings = match acp.encoding {
        WriteEncodingArg::Kept => WriteEncodingPolicy::Keep,
        WriteEncodingArg::Utf8 => WriteEncodingPolicy::Utf8,
    };
    WriteFormatPolicy { line_endings: endings, encoding: encodings }
}
