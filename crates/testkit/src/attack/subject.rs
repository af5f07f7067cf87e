//! The subjects under attack: a server is opened on a directory, gets requests, and returns its journal at the end, if
//! it has one.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use serde_json::{Map, Value};
use stead_disk::PathResolutionMethod;
use stead_local::{LocalWorkspace, LocalWorkspaceOptions};

use super::request_timer::CpuWaitAdjustedTimer;

/// How long a server may take to stop.
const EXIT_WAIT: Duration = Duration::from_secs(30);
/// How often a stopping server is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How a subject is opened.
#[derive(Debug, Clone)]
pub struct SubjectOptions {
    /// The workspace directory.
    pub workspace: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// Mounts that belong to the workspace.
    pub mounts: Vec<String>,
    /// The path resolver.
    pub resolver: PathResolutionMethod,
}

/// One request.
#[derive(Debug, Clone)]
pub struct AttackSubjectRequest {
    /// The caller: `agent:…` or `user:…`.
    pub principal: String,
    /// The operation.
    pub operation: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The arguments as raw bytes instead.
    pub raw: Option<Vec<u8>>,
}

/// One reply.
#[derive(Debug, Clone)]
pub struct SubjectReply {
    /// `None` on success, otherwise the error kind.
    pub refusal: Option<String>,
    /// The JSON object.
    pub json: Value,
    /// The text for people.
    pub text: String,
}

/// Clock and maintenance, for subjects that allow them.
#[derive(Debug, Clone, Copy)]
pub enum AttackSubjectClockOrPurgeAction {
    /// Advances both clocks by this many milliseconds.
    AdvanceClocks(i64),
    /// Moves only the wall clock by this many milliseconds.
    ShiftWallClock(i64),
    /// Purges expired trash items.
    PurgeExpired,
}

/// A journal entry, as far as the corpus uses it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubjectJournalEntry {
    /// The principal.
    pub principal: String,
    /// The operation.
    pub operation: String,
    /// `allowed`, `refused` or `failed`.
    pub decision: String,
    /// The error kind, if any.
    pub reason: Option<String>,
}

/// A journal at the end of a case.
#[derive(Debug, Clone)]
pub struct SubjectJournal {
    /// Every entry of a caller, in order.
    pub entries: Vec<SubjectJournalEntry>,
    /// The first problem of the hash chain, if any.
    pub tampering: Option<String>,
}

/// A server of a directory.
pub trait AttackSubject {
    /// Makes a request.
    fn send(&mut self, request: &AttackSubjectRequest) -> io::Result<SubjectReply>;

    /// Moves its clock or runs its maintenance.
    fn maintain(&mut self, chore: AttackSubjectClockOrPurgeAction) -> io::Result<()> {
        Err(io::Error::other(format!("this subject cannot do {chore:?}")))
    }

    /// Stops the server and returns its journal, if it has one. The workspace may have another name by now.
    fn finish(self: Box<Self>, workspace: &Path) -> io::Result<Option<SubjectJournal>>;
}

impl SubjectOptions {
    /// The command of a server for one principal; the caller adds the protocol's arguments.
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

    /// The journal that servers left. The workspace may have another name by now.
    pub(super) fn read_journal(self, workspace: &Path) -> io::Result<SubjectJournal> {
        let mut options = LocalWorkspaceOptions::new(workspace.to_owned(), self.state);
        options.allowed_mounts = super::engine::parse_paths(&self.mounts)?;
        let workspace = LocalWorkspace::open(options).map_err(io::Error::other)?;
        super::engine::read_journal(&workspace)
    }
}

/// A running server, killed if the case aborts.
pub(super) struct ServerChild(pub(super) Child);

impl ServerChild {
    /// Waits for a clean exit. A stopping server syncs its file system, including data of other processes, so a slow
    /// one gets the same time again after a sync.
    pub(super) fn wait_for_exit(&mut self) -> io::Result<()> {
        for wait in [ServerExitWaitAttempt::First, ServerExitWaitAttempt::Last] {
            let watch = CpuWaitAdjustedTimer::start();
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
pub type SubjectOpener<'a> = &'a dyn Fn(&SubjectOptions) -> io::Result<Box<dyn AttackSubject>>;
