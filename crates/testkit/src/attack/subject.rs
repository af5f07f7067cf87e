//! The interface of a server under attack, called a subject.

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

const EXIT_WAIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The options with which a subject is opened.
#[derive(Debug, Clone)]
pub struct SubjectOptions {
    /// The workspace directory that the subject serves.
    pub workspace: PathBuf,
    /// The state directory of the subject.
    pub state: PathBuf,
    /// The paths of the mounts that belong to the subject's workspace.
    pub mounts: Vec<String>,
    /// The path resolution method of the subject.
    pub resolver: PathResolutionMethod,
}

/// One request to a subject of attacks.
#[derive(Debug, Clone)]
pub struct AttackSubjectRequest {
    /// The principal that makes the attack request, such as `agent:tester`.
    pub principal: String,
    /// The operation that the attack request calls.
    pub operation: String,
    /// The arguments of the attack request.
    pub arguments: Map<String, Value>,
    /// The raw bytes that are sent instead of the attack request's arguments.
    pub raw: Option<Vec<u8>>,
}

/// The reply of a subject to one attack request.
#[derive(Debug, Clone)]
pub struct AttackSubjectReply {
    /// The error kind of the subject's reply; `None` if the request succeeded.
    pub refusal: Option<String>,
    /// The JSON object of the subject's reply.
    pub json: Value,
    /// The text of the subject's reply.
    pub text: String,
}

/// An action on the clock or the trash of a subject.
#[derive(Debug, Clone, Copy)]
pub enum AttackSubjectClockOrPurgeAction {
    /// The wall clock and the uptime clock of the subject advance by a number of milliseconds.
    AdvanceClocks(i64),
    /// Only the wall clock of the subject moves, by a number of milliseconds.
    ShiftWallClock(i64),
    /// The subject purges its expired trash items.
    PurgeExpired,
}

/// The fields of a journal entry that the attack tests check.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubjectJournalEntry {
    /// The principal that the journal entry records.
    pub principal: String,
    /// The operation that the journal entry records.
    pub operation: String,
    /// The decision that the journal entry records: `allowed`, `refused` or `failed`.
    pub decision: String,
    /// The error kind of the journaled call; `None` if the call succeeded.
    pub reason: Option<String>,
}

/// The journal of a subject at the end of an attack case.
#[derive(Debug, Clone)]
pub struct SubjectJournal {
    /// The journal entries of all callers except the system, oldest first.
    pub entries: Vec<SubjectJournalEntry>,
    /// The first error in the journal's hash chain; `None` if the chain is valid.
    pub tampering: Option<String>,
}

/// A server of a workspace directory that the corpus attacks.
pub trait AttackSubject {
    /// Sends one attack request to the subject and returns the reply.
    fn send(&mut self, request: &AttackSubjectRequest) -> io::Result<AttackSubjectReply>;

    /// Changes the clock of the subject, or purges its trash.
    fn maintain(&mut self, chore: AttackSubjectClockOrPurgeAction) -> io::Result<()> {
        Err(io::Error::other(format!("this subject cannot do {chore:?}")))
    }

    /// Stops the subject and returns its journal, if any. The argument `workspace` is the path of the workspace after
    /// the attack case, which may rename the workspace.
    fn finish(self: Box<Self>, workspace: &Path) -> io::Result<Option<SubjectJournal>>;
}

impl SubjectOptions {
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

    /// Reads the journal after the servers have stopped.
    pub(super) fn read_journal(self, workspace: &Path) -> io::Result<SubjectJournal> {
        let mut options = LocalWorkspaceOptions::new(workspace.to_owned(), self.state);
        options.allowed_mounts = super::engine::parse_paths(&self.mounts)?;
        let workspace = LocalWorkspace::open(options).map_err(io::Error::other)?;
        super::engine::read_journal(&workspace)
    }
}

pub(super) struct ServerChild(pub(super) Child);

impl ServerChild {
    /// Waits for the exit of a stopping server, which is slow while other processes write to the disk. If the first
    /// wait times out, the test syncs the disk and waits a second time.
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
        if matches!(self.0.try_wait(), Ok(None)) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

/// A function that opens a subject of attacks.
pub type AttackSubjectOpenFn<'a> = &'a dyn Fn(&SubjectOptions) -> io::Result<Box<dyn AttackSubject>>;
