//! Runs `stead acp`, the ACP proxy between an editor on standard input and output and an agent. Only protocol messages
//! go to standard output. The ACP proxy exits with the exit code of the agent when the editor or the agent ends.

use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use stead_engine::{ApprovalMode, Caller};
use stead_local::LandlockMode;
use stead_protocols::{
    acp::{self, AcpConnectionCallers, AcpFileCapabilities, AcpPeerStreams, AcpProxyConfig, WriteFormatPolicy},
    limits::{CALL_THREADS_MAX, SHUTDOWN_TIMEOUT},
};

use tokio::{
    process::{Child, Command},
    runtime::Builder,
};

mod root_opener;

use root_opener::LocalSessionRootOpener;

use crate::{
    cli::{AcpFlags, CallerAccessCliFlags, FlagSource, WorkspaceFlags},
    open_workspace::{self, CallerProtocol},
    output::{self, CliCommandResult, CommandError, CommandExit},
    stdio_server,
};

const STREAM_AND_AGENT_THREADS: usize = 4;
const AGENT_EXIT_WAIT: Duration = Duration::from_secs(3);
/// The time that the ACP proxy waits for the agent's last output after the agent has exited.
const FINAL_OUTPUT_WAIT: Duration = Duration::from_secs(2);
/// The base of the exit code for an agent that a signal killed, as in a shell.
const SIGNAL_EXIT_BASE: i32 = 128;

pub(crate) fn run(flags: &WorkspaceFlags, workspace: FlagSource, acp: &AcpFlags) -> CliCommandResult {
    open_workspace::print_warnings(flags, LandlockMode::Off);
    let agent = open_workspace::caller_from_flags(&acp.caller, CallerProtocol::Acp)?;
    let person = Caller {
        protocol: agent.protocol,
        ..open_workspace::caller_from_flags(&CallerAccessCliFlags::default(), CallerProtocol::Person)?
    };
    let callers = AcpConnectionCallers { agent, person };
    // The client is the editor and not the agent, so it may answer approval requests without a warning.
    if acp.approve != ApprovalMode::TrustClient {
        open_workspace::print_approval_warning(acp.approve);
    }
    let principal = callers.agent.principal.clone();
    let root_opener = Arc::new(LocalSessionRootOpener::new(flags, workspace, acp, principal)?);
    let file_capabilities = AcpFileCapabilities { read_text_file: true, write_text_file: !acp.caller.read_only };
    let text_format = WriteFormatPolicy { line_endings: acp.line_endings, encoding: acp.encoding };
    let options = AcpProxyConfig { file_capabilities, text_format };
    let threads = CALL_THREADS_MAX + STREAM_AND_AGENT_THREADS;
    let runtime = stdio_server::build_runtime(Builder::new_current_thread(), threads)?;
    let served = runtime.block_on(async {
        let editor = AcpPeerStreams { input: stdio_server::open_stdin(), output: stdio_server::open_stdout() };
        let Some((program, arguments)) = acp.agent.split_first() else {
            let ended = acp::proxy_in_chain(editor, callers, options, root_opener.clone()).await;
            return ended.map(|_| CommandExit::Success).map_err(CommandError::from);
        };
        let (mut agent, peer) = AcpProxiedAgentProcess::start(program, arguments)?;
        tokio::select! {
            ended = acp::proxy_editor_and_agent(editor, peer, callers, options, root_opener.clone()) => match ended {
                // An error means that a peer disconnected.
                Ok(_) | Err(_) => agent.stop().await,
            },
            // Children of the agent may keep its output open, so the exit of the agent also ends the proxy.
            exit = agent.until_exit() => exit,
        }
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    root_opener.close_workspaces();
    served
}

struct AcpProxiedAgentProcess(Child);

impl AcpProxiedAgentProcess {
    /// Starts the agent; must be called inside a tokio runtime.
    fn start(program: &OsString, arguments: &[OsString]) -> Result<(Self, AcpPeerStreams), CommandError> {
        let failed = |error: io::Error| {
            CommandError::System(format!(
                "cannot start the agent {}: {error}; pass a program that exists, for example: stead acp -- opencode acp",
                program.display()
            ))
        };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CommandError::System(format!(
                "internal error: the agent {} was started without pipes",
                program.display()
            )));
        };
        Ok((Self(child), AcpPeerStreams { input: Box::new(stdout), output: Box::new(stdin) }))
    }

    async fn stop(&mut self) -> Result<CommandExit, CommandError> {
        if let Ok(waited) = tokio::time::timeout(AGENT_EXIT_WAIT, self.0.wait()).await {
            return exit_of_status(waited);
        }
        output::print_note("the agent did not exit in time, so stead killed it");
        // Killing the agent fails if the agent has just exited.
        drop(self.0.start_kill());
        exit_of_status(self.0.wait().await)
    }

    async fn until_exit(&mut self) -> Result<CommandExit, CommandError> {
        let waited = self.0.wait().await;
        tokio::time::sleep(FINAL_OUTPUT_WAIT).await;
        exit_of_status(waited)
    }
}

fn exit_of_status(waited: io::Result<ExitStatus>) -> Result<CommandExit, CommandError> {
    let status = waited.map_err(|error| CommandError::System(format!("cannot wait for the agent: {error}")))?;
    let code =
        status.code().or_else(|| status.signal().map(|signal| SIGNAL_EXIT_BASE + signal)).unwrap_or(SIGNAL_EXIT_BASE);
    if code != 0 {
        output::print_note(&format!("the agent ended with {status}"));
    }
    Ok(CommandExit::ChildStatus(u8::try_from(code).unwrap_or(u8::MAX)))
}
