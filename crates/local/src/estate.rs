//! Many workspaces in one directory: an estate. Each has a directory of its own with its files and its state apart, so that
//! one can be moved, backed up or deleted whole; beside them the estate keeps a registry, the tokens, and a journal of what
//! was done with workspaces.
//!
//! Promises: the registry is the truth and directories follow it, so whoever dies at any point leaves nothing that the next
//! opening does not finish or clear; several processes may work on one estate; nobody who holds a token of one workspace
//! learns anything of another. Never looks into a workspace except through its own opening, and never follows a name to the
//! file system: only ids become directories.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use disk::{Directory, LockFile, Mode, StateDirectory, wall::WallReport};
use engine::{Asking, Caller, Failure, Kind, NameProfile};
use journal::Link;
use rusqlite::Transaction;
use serde_json::Value;

use crate::{
    clock::Clock,
    failure,
    group::{Outcome, Work},
    open::LocalWorkspace,
    options::{Durability, Indexing, Listening, Options, Wall},
    store::{self, Sync},
};

mod archive;
mod describe;
mod end;
mod fork;
mod make;
mod name;
mod registry;
mod rooms;
mod tar;
mod token;

pub use describe::{Description, Page, Paged};
pub use fork::Copied;
pub use make::WorkspaceAsk;
pub use name::WorkspaceName;
pub use registry::Lasting as WorkspaceLasting;
pub use token::{EstateToken, Scope};

use registry::{Row, Settled, Stage};
use rooms::Rooms;

/// Workspaces of one estate, those in its trash included.
const WORKSPACES_MAX: usize = 100_000;
/// Workspaces that are open at a time, when nothing else is said.
const OPEN_MAX: usize = 512;
/// How long a workspace that nobody uses stays open, when nothing else is said.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// How long a destroyed workspace stays in the trash, when nothing else is said.
const TRASH_MS: i64 = 7 * 24 * 3600 * 1000;
/// Longest wait for another process that opens, makes or ends the same workspace.
const HOLD_WAIT: Duration = Duration::from_secs(10);
/// Pause between two tries for it.
const HOLD_PAUSE: Duration = Duration::from_millis(2);

/// Where workspaces are, in the estate's directory.
const WORKSPACES: &str = "workspaces";
/// Where destroyed ones wait.
const TRASH: &str = "trash";
/// Where the estate keeps what is its own.
const OWN: &str = "estate";
/// The files of a workspace, in its directory.
const FILES: &str = "files";
/// The state of a workspace, in its directory.
const STATE: &str = "state";

/// How to open an estate.
#[derive(Clone)]
pub struct EstateOptions {
    /// Its directory.
    pub directory: PathBuf,
    /// When a change is acknowledged.
    pub durability: Durability,
    /// Which new names of files are accepted.
    pub names: NameProfile,
    /// How paths are resolved.
    pub resolver: disk::Resolver,
    /// What becomes of search indexes.
    pub indexing: Indexing,
    /// What is done where a person must be asked.
    pub asking: Asking,
    /// Whether to raise the second wall, around the whole estate.
    pub wall: Wall,
    /// What stays readable behind the wall.
    pub readable: Vec<PathBuf>,
    /// Workspaces that are open at a time.
    pub open_max: usize,
    /// How long one that nobody uses stays open.
    pub idle: Duration,
    /// How long a destroyed one stays in the trash, in milliseconds.
    pub trash_ms: i64,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
}

impl EstateOptions {
    /// The usual choices for this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            durability: Durability::Full,
            names: NameProfile::Portable,
            resolver: disk::Resolver::Auto,
            indexing: Indexing::Keep,
            asking: Asking::Ask,
            wall: Wall::Leave,
            readable: Vec::new(),
            open_max: OPEN_MAX,
            idle: IDLE,
            trash_ms: TRASH_MS,
            clock: Arc::new(crate::clock::System::default()),
        }
    }
}

/// An open estate.
pub struct Estate {
    place: StateDirectory,
    path: PathBuf,
    workspaces: Directory,
    trash: Directory,
    /// The registry, the tokens and the journal: a workspace without files.
    own: Arc<LocalWorkspace>,
    options: EstateOptions,
    rooms: Rooms,
    users: HashMap<u32, String>,
    wall: Option<WallReport>,
}

/// A workspace that nobody else opens, makes or ends while this is there.
pub(crate) struct Hold(#[expect(dead_code, reason = "dropping it frees the lock")] LockFile);

impl Estate {
    /// What makes a directory an estate: its own directory in it.
    pub fn own_directory(directory: &Path) -> PathBuf {
        directory.join(OWN)
    }

    /// Opens an estate, and makes it when it is missing. What a dead process left half done is finished or cleared.
    pub fn open(options: EstateOptions) -> Result<Arc<Self>, Failure> {
        let own = |error: disk::DiskError| failure::own(&error);
        let place = StateDirectory::open(&options.directory).map_err(|error| {
            Failure::new(Kind::AuditUnavailable, format!("the estate's directory cannot be used: {error}"))
        })?;
        let path = place.path().to_owned();
        let (workspaces, trash) =
            (place.directory(WORKSPACES).map_err(own)?, place.directory(TRASH).map_err(own)?);
        place.directory(&format!("{OWN}/{FILES}")).map_err(own)?;
        // The names of users lie outside the wall, and threads start only behind it.
        let users = disk::users();
        let wall = match options.wall {
            Wall::Raise => {
                let readable: Vec<&Path> = options.readable.iter().map(PathBuf::as_path).collect();
                Some(disk::wall::raise_beside(&[&path], &readable))
            }
            Wall::Leave => None,
        };
        let own_path = path.join(OWN);
        let mut own_options = Options::new(own_path.join(FILES), own_path.join(STATE));
        own_options.durability = options.durability;
        own_options.indexing = Indexing::Off;
        own_options.clock = Arc::clone(&options.clock);
        let own = LocalWorkspace::open(own_options)?;
        registry::prepare(&own.store)?;
        let estate = Arc::new(Self {
            place,
            path,
            workspaces,
            trash,
            own,
            options,
            rooms: Rooms::default(),
            users,
            wall,
        });
        estate.tidy()?;
        Ok(estate)
    }

    /// What became of the second wall, when it was asked for.
    pub fn wall(&self) -> Option<&WallReport> {
        self.wall.as_ref()
    }

    /// The estate's own journal, to verify and export it.
    pub fn journal(&self) -> &LocalWorkspace {
        &self.own
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What time it is.
    pub fn now_ms(&self) -> i64 {
        self.options.clock.now().wall_ms
    }

    /// Finishes or clears what was left half done, and lets go what was in the trash long enough. Call it now and then.
    pub fn tidy(&self) -> Result<(), Failure> {
        let now = self.options.clock.now();
        // As in every trash: while a clock that was set forward is not trusted, nothing leaves.
        if !self.own.clock_jumped(&now)? {
            for id in self.own.store.look(|connection| registry::expired(connection, now.wall_ms))? {
                self.expire(&id)?;
            }
        }
        for id in self.own.store.look(registry::unsettled)? {
            self.settle_if_left(&id)?;
        }
        Ok(())
    }

    /// Keeps others from opening, making or ending a workspace, or shares that with others who open it.
    fn hold(&self, id: &str, mode: Mode) -> Result<Hold, Failure> {
        let deadline = Instant::now() + HOLD_WAIT;
        loop {
            match self.try_hold(id, mode)? {
                Some(hold) => return Ok(hold),
                None if Instant::now() >= deadline => {
                    return Err(Failure::new(
                        Kind::Busy,
                        "the workspace is just being opened, made or ended",
                    )
                    .hint("call again"));
                }
                None => std::thread::sleep(HOLD_PAUSE),
            }
        }
    }

    fn try_hold(&self, id: &str, mode: Mode) -> Result<Option<Hold>, Failure> {
        let own = |error: disk::DiskError| failure::own(&error);
        let file = self.place.lock_file().map_err(own)?;
        let taken = file.try_lock(name::slot(id), mode).map_err(own)?;
        Ok(taken.then_some(Hold(file)))
    }

    fn row(&self, id: &str) -> Result<Option<Row>, Failure> {
        self.own.store.look(|connection| registry::by_id(connection, id))
    }

    /// The ready workspace of this name.
    fn ready(&self, name: &str) -> Result<Row, Failure> {
        let found = self.own.store.look(|connection| registry::live(connection, name))?;
        found.filter(|row| row.stage == Stage::Ready).ok_or_else(|| registry::unknown(name))
    }

    /// Changes the registry and says so in the journal, in one transaction. A change that refuses writes nothing.
    fn record(
        &self,
        by: &Caller,
        operation: &str,
        arguments: &Value,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<(), Failure>> + Send + 'static,
    ) -> Result<(), Failure> {
        let mut draft = self.own.system_draft(operation, arguments.to_string(), Link::None);
        draft.entry.caller = journal::Caller {
            principal: by.principal.to_string(),
            on_behalf_of: by.on_behalf_of.as_ref().map(ToString::to_string),
            session: by.session.clone(),
            face: by.face.to_owned(),
        };
        self.change(Box::new(move |transaction, tip| {
            if let Err(failure) = change(transaction)? {
                return Ok(Outcome::Refused(failure));
            }
            store::append(transaction, tip, &mut draft)?;
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        }))
    }

    /// Changes the registry where there is nothing to say about it.
    fn note(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<(), Failure>> + Send + 'static,
    ) -> Result<(), Failure> {
        self.change(Box::new(move |transaction, tip| match change(transaction)? {
            Ok(()) => Ok(Outcome::Recorded(tip.number, tip.hash)),
            Err(failure) => Ok(Outcome::Refused(failure)),
        }))
    }

    fn change(&self, work: Work) -> Result<(), Failure> {
        match self.own.group.submit(&self.own.store, self.own.durability, Sync::Now, work)? {
            Outcome::Recorded(..) => Ok(()),
            Outcome::Refused(failure) => Err(failure),
            Outcome::Replayed(_) => Err(Failure::new(Kind::AuditUnavailable, "it was not recorded")),
        }
    }

    /// How a workspace of the estate is opened.
    fn options_of(&self, id: &str) -> Options {
        let place = self.path.join(WORKSPACES).join(id);
        let mut options = Options::new(place.join(FILES), place.join(STATE));
        options.durability = self.options.durability;
        options.names = self.options.names;
        options.resolver = self.options.resolver;
        options.indexing = self.options.indexing;
        options.listening = Listening::AtOnce;
        options.clock = Arc::clone(&self.options.clock);
        options.users = Some(self.users.clone());
        options
    }
}

impl Drop for Estate {
    fn drop(&mut self) {
        self.close();
    }
}
