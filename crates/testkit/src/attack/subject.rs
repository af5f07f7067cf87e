//! What is attacked. Owns the shape that every server takes in the runner's eyes: it is opened on a directory, it is
//! asked, and at the end it shows its journal if it keeps one.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use disk::Resolver;
use local::{LocalWorkspace, Options};
use serde_json::{Map, Value};

use super::time::Watch;

/// How long a server may take to end once it is told to.
const END_WAIT: Duration = Duration::from_secs(30);
/// How often one that ends is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How a subject is opened.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The workspace directory.
    pub workspace: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// Mounts inside that belong to the workspace.
    pub mounts: Vec<String>,
    /// How paths are resolved.
    pub resolver: Resolver,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Who asks: `agent:…` or `user:…`.
    pub principal: String,
    /// The operation.
    pub operation: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// The arguments as raw bytes instead.
    pub raw: Option<Vec<u8>>,
}

/// One reply.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Nothing when it was done, else the kind of refusal.
    pub refused: Option<String>,
    /// The object for machines.
    pub json: Value,
    /// The text for people.
    pub text: String,
}

/// Time and tidying, for subjects whose clock can be moved.
#[derive(Debug, Clone, Copy)]
pub enum Chore {
    /// Both clocks go on by so many milliseconds.
    Later(i64),
    /// Only the wall clock is set by so many milliseconds.
    WallJump(i64),
    /// Empty what has passed its time.
    Expire,
}

/// One entry of a journal, as far as the corpus looks at it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recorded {
    /// Who asked.
    pub principal: String,
    /// What.
    pub operation: String,
    /// `allowed`, `refused` or `failed`.
    pub decision: String,
    /// Why not.
    pub reason: Option<String>,
}

/// A journal at the end of a case.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// Every entry that a caller made, in order.
    pub entries: Vec<Recorded>,
    /// What does not fit in the chain, if anything.
    pub tamper: Option<String>,
}

/// Something that serves a directory.
pub trait Subject {
    /// Asks it.
    fn ask(&mut self, asked: &Asked) -> io::Result<Reply>;

    /// Moves its clock or makes it tidy up.
    fn tend(&mut self, chore: Chore) -> io::Result<()> {
        Err(io::Error::other(format!("this subject cannot do {chore:?}")))
    }

    /// Ends it and shows its journal; nothing when it keeps none. The workspace may have another name by now.
    fn finish(self: Box<Self>, workspace: &Path) -> io::Result<Option<Ledger>>;
}

impl Opening {
    /// The binary as a server of this opening for one principal; what the face needs besides is the caller's.
    pub(super) fn server(&self, binary: &Path, face: &str, principal: &str) -> Command {
        let resolver = match self.resolver {
            Resolver::Auto => "auto",
            Resolver::Kernel => "kernel",
            Resolver::Walker => "walker",
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
    pub(super) fn ledger(self, workspace: &Path) -> io::Result<Ledger> {
        let mut options = Options::new(workspace.to_owned(), self.state);
        options.mounts = super::engine::places(&self.mounts)?;
        let workspace = LocalWorkspace::open(options).map_err(io::Error::other)?;
        super::engine::ledger_of(&workspace)
    }
}

/// A server that runs, and that is ended when a case breaks off.
pub(super) struct Running(pub(super) Child);

impl Running {
    /// Waits until it has ended by itself, and well. One that ends brings what it changed to the device, and with it whatever
    /// others wrote to the same file system; so one that takes long is given as long again once the machine has done that.
    pub(super) fn ended(&mut self) -> io::Result<()> {
        for wait in [Wait::First, Wait::Last] {
            let watch = Watch::start();
            while watch.took() <= END_WAIT {
                match self.0.try_wait()? {
                    Some(status) if status.success() => return Ok(()),
                    Some(status) => return Err(io::Error::other(format!("the server ended with {status}"))),
                    None => std::thread::sleep(LOOK_EVERY),
                }
            }
            match wait {
                Wait::First => drop(Command::new("sync").status()?),
                Wait::Last => {}
            }
        }
        self.0.kill()?;
        self.0.wait()?;
        Err(io::Error::other("the server does not end"))
    }
}

/// Whether another follows.
#[derive(Clone, Copy)]
enum Wait {
    First,
    Last,
}

impl Drop for Running {
    fn drop(&mut self) {
        // A server that ended is not there to be ended.
        if matches!(self.0.try_wait(), Ok(None)) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

/// Opens a subject.
pub type Opener<'a> = &'a dyn Fn(&Opening) -> io::Result<Box<dyn Subject>>;
