//! The agent process: started with pipes, its standard error passed through, and killed if it does not exit after its input is
//! closed.

use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use stead_protocols::acp::AcpPeer;
use tokio::process::{Child, Command};

use crate::output::{self, CommandError, CommandExit};

/// How long an agent may take to exit after its input is closed.
const AGENT_EXIT_WAIT: Duration = Duration::from_secs(3);
/// Time to read the agent's last output after it exits; its children may keep the pipe open.
const FINAL_OUTPUT_WAIT: Duration = Duration::from_secs(2);
/// Exit code of a program killed by a signal, minus the signal number, as in a shell.
const SIGNAL_EXIT_BASE: i32 = 128;

pub(super) struct AgentProcess(Child);

impl AgentProcess {
    /// Starts the agent. Must be called inside a runtime.
    pub(super) fn start(program: &OsString, arguments: &[OsString]) -> Result<(Self, AcpPeer), CommandError> {
        let failed =
            |error: io::Error| CommandError::System(format!("cannot start the agent {}: {error}", program.display()));
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CommandError::System("the agent has no pipes".to_owned()));
        };
        Ok((Self(child), AcpPeer { input: Box::new(stdout), output: Box::new(stdin) }))
    }

    /// Waits for the agent to exit, and kills it after a timeout.
    pub(super) async fn stop(&mut self) -> Result<CommandExit, CommandError> {
        if let Ok(waited) = tokio::time::timeout(AGENT_EXIT_WAIT, self.0.wait()).await {
            return exit_of_status(waited);
        }
        output::print_note("the agent did not exit in time and was killed");
        // Fails if the agent has just exited.
        drop(self.0.start_kill());
        exit_of_status(self.0.wait().await)
    }

    /// Resolves a while after the agent exits, so that its last output is read first.
    pub(super) async fn until_exit(&mut self) -> Result<CommandExit, CommandError> {
        let waited = self.0.wait().await;
        tokio::time::sleep(FINAL_OUTPUT_WAIT).await;
        exit_of_status(waited)
    }
}

/// The exit status of the command after the agent's.
fn exit_of_status(waited: io::Result<ExitStatus>) -> Result<CommandExit, CommandError> {
    let status = waited.map_err(|error| CommandError::System(format!("cannot wait for the agent: {error}")))?;
    let code =
        status.code().or_else(|| status.signal().map(|signal| SIGNAL_EXIT_BASE + signal)).unwrap_or(SIGNAL_EXIT_BASE);
    if code != 0 {
        output::print_note(&format!("the agent exited with {status}"));
    }
    Ok(CommandExit::ChildStatus(u8::try_from(code).unwrap_or(u8::MAX)))
}
