//! The interface of a server under attack, called a subject. A subject is opened on a directory, receives requests, and
//! finally returns its journal, if it has one.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use serde_json::{Map, Value};
use stead_disk::PathResolutionMethod;
use stead_local::{LocalWorkspace, LocalWorkspaceOptions};

use super::request_timer::BusyMachineAdjustedTimer;

/// How long a server under attack may take to stop.
const EXIT_WAIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The options with which a subject is opened.
#[derive(Debug, Clone)]
pub struct SubjectOptions {
    /// The workspace directory.
    pub workspace: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// Paths of mounts that belong to the workspace.
    pub mounts: Vec<String>,
    /// The path resolver.
    pub resolver: PathResolutionMethod,
}

/// One request.
#[derive(Debug, Clone)]
pub struct AttackSubjectRequest {
    /// The principal that makes the request: `agent:…` or `user:…`.
    pub principal: String,
    /// The operation.
    pub operation: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The arguments as raw bytes, which are sent instead of `arguments`.
    pub raw: Option<Vec<u8>>,
}

/// One reply.
#[derive(Debug, Clone)]
pub struct SubjectReply {
    /// The error kind of the reply; `None` if the request succeeded.
    pub refusal: Option<String>,
    /// The JSON object.
    pub json: Value,
    /// The text of the reply.
    pub text: String,
}

/// A change of the clock, or a purge of the trash, for subjects that support it.
#[derive(Debug, Clone, Copy)]
pub enum AttackSubjectClockOrPurgeAction {
    /// Advances the wall clock and the uptime clock by this many milliseconds.
    AdvanceClocks(i64),
    /// Moves only the wall clock by this many milliseconds.
    ShiftWallClock(i64),
    /// Purges expired trash items.
    PurgeExpired,
}

/// The fields of a journal entry that the attack tests check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubjectJournalEntry {
    /// The principal.
    pub principal: String,
    /// The operation.
    pub operation: String,
    /// The recorded decision about the call: `allowed`, `refused` or `failed`.
    pub decision: String,
    /// The error kind of the call; `None` if the call succeeded.
    pub reason: Option<String>,
}

/// The journal of a subject at the end of an attack case.
#[derive(Debug, Clone)]
pub struct SubjectJournal {
    /// The journal entries of all callers except the system, oldest first.
    pub entries: Vec<SubjectJournalEntry>,
    /// The first problem that verifying the hash chain found; `None` if the chain is valid.
    pub tampering: Option<String>,
}

/// A server of a workspace directory that the corpus attacks.
pub trait AttackSubject {
    /// Makes a request.
    fn send(&mut self, request: &AttackSubjectRequest) -> io::Result<SubjectReply>;

    /// Changes the clock of the subject, or purges its trash.
    fn maintain(&mut self, chore: AttackSubjectClockOrPurgeAction) -> io::Result<()> {
        Err(io::Error::other(format!("this subject cannot do {chore:?}")))
    }

    /// Stops the server and returns its journal, if any. `workspace` is the current path of the workspace, which a case
    /// may have renamed.
    fn finish(self: Box<Self>, workspace: &Path) -> io::Result<Option<SubjectJournal>>;
}

impl SubjectOptions {
    /// The command line that starts the binary for one principal; the caller adds the arguments of the protocol.
    pub(super) fn server_command(&self, binary: &Path, face: &str, principal: &str) -> Command {
        let resolver = match self.resolver {
            PathResolutionMethod::Auto => "auto",
            PathResolutionMethod::Kernel => "kernel",
            PathResolutionMethod::Walker => "walker",
        };
        let mut command = Command::new(binary);
        command.arg(face).arg("--workspace").arg(&self.workspace).arg("--state").arg(&self.state);
        command.args(["--principal", principal, "--durability", "fast", "--resolver", resolver]);
        for mount in &self.mounts {
            command.args(["--mount", mount]);
        }
        command
    }

    /// Opens the workspace after its servers have stopped, and reads their journal. `workspace` is the current path of
    /// the workspace, which a case may have renamed.
    pub(super) fn read_journal(self, workspace: &Path) -> io::Result<SubjectJournal> {
        let mut options = LocalWorkspaceOptions::new(workspace.to_owned(), self.state);
        options.allowed_mounts = super::engine::parse_paths(&self.mounts)?;
        let workspace = LocalWorkspace::open(options).map_err(io::Error::other)?;
        super::engine::read_journal(&workspace)
    }
}

/// A running server process, killed on drop.
pub(super) struct ServerChild(pub(super) Child);

impl ServerChild {
    /// Waits for the server process to exit, and fails if its exit code is not zero. A stopping server syncs its file
    /// system, which other processes can make slow. After a timeout the test syncs the disk itself and waits again.
    pub(super) fn wait_for_exit(&mut self) -> io::Result<()> {
        for wait in [ServerExitWaitAttempt::First, ServerExitWaitAttempt::Last] {
            let watch = BusyMachineAdjustedTimer::start();
            while watch.elapsed() <= EXIT_WAIT {
                match self.0.try_wait()? {
                    Some(status) if status.success() => return Ok(()),
                    Some(status) => return Err(io::Error::other(format!("the server ended with {status}"))),
                    None => std::thread::sleep(POLL_INTERVAL),
                }
            }
            match wait {
                ServerExitWaitAttempt::First => drop(Command::new("sync").status()?),
                ServerExitWaitAttempt::Last => {}
            }
        }
        self.0.kill()?;
        self.0.wait()?;
        Err(io::Error::other("the server does not end"))
    }
}

#[derive(Clone, Copy)]
enum ServerExitWaitAttempt {
    First,
    Last,
}

impl Drop for ServerChild {
    fn drop(&mut self) {
        // A server that has exited needs no kill.
        if matches!(self.0.try_wait(), Ok(None)) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

/// Opens a subject.
pub type AttackSubjectOpenFn<'a> = &'a dyn Fn(&SubjectOptions) -> io::Result<Box<dyn AttackSubject>>;
