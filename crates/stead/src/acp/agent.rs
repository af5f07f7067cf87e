//! The agent as a process of its own: started with pipes, its complaints passed through, waited for, and ended if it does
//! not end by itself once nobody listens.

use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use faces::acp::Peer;
use tokio::process::{Child, Command};

use crate::show::{self, Exit, Problem};

/// How long an agent may take to end once its input is closed.
const END_WAIT: Duration = Duration::from_secs(3);
/// How long what an agent said last may take to be read, when something it started still holds its output.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(2);
/// What a shell answers for a program that a signal ended, above the signal's number.
const SIGNALLED: i32 = 128;

/// The running agent.
pub(super) struct Agent(Child);

impl Agent {
    /// Starts it. Must be called inside a runtime.
    pub(super) fn start(program: &OsString, arguments: &[OsString]) -> Result<(Self, Peer), Problem> {
        let failed = |error: io::Error| {
            Problem::Outside(format!("the agent {} cannot be started: {error}", program.display()))
        };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(listens), Some(says)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Problem::Outside("the agent has no pipes".to_owned()));
        };
        Ok((Self(child), Peer { input: Box::new(says), output: Box::new(listens) }))
    }

    /// The conversation is over: lets it end, and ends it if it does not.
    pub(super) async fn end(&mut self) -> Result<Exit, Problem> {
        if let Ok(waited) = tokio::time::timeout(END_WAIT, self.0.wait()).await {
            return exit(waited);
        }
        show::remark("the agent did not end by itself and was ended");
        // One that ended just now needs nothing; waiting tells.
        drop(self.0.start_kill());
        exit(self.0.wait().await)
    }

    /// Resolves some time after it is gone, so that what it said last is read first.
    pub(super) async fn gone(&mut self) -> Result<Exit, Problem> {
        let waited = self.0.wait().await;
        tokio::time::sleep(LAST_WORDS_WAIT).await;
        exit(waited)
    }
}

/// How we end after it.
fn exit(waited: io::Result<ExitStatus>) -> Result<Exit, Problem> {
    let status =
        waited.map_err(|error| Problem::Outside(format!("the agent cannot be waited for: {error}")))?;
    let code =
        status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal)).unwrap_or(SIGNALLED);
    if code != 0 {
        show::remark(&format!("the agent ended with {status}"));
    }
    Ok(Exit::Other(u8::try_from(code).unwrap_or(u8::MAX)))
}
