//! The one narrow trait between the engine and a place where files live. Implemented on a local directory and, later,
//! on a cluster. Not a file-system trait: a verb is added when an operation needs one.
//!
//! Every path that enters here is checked; every path that [`Workspace::locate`] answers is free of links, and all
//! other verbs take only such paths. There is one write verb: [`Workspace::commit`].

use std::time::Instant;

use journal::{Digest, Entry};
use path::{Name, RelPath};
use serde_json::Value;

use crate::{
    approval::{Approval, ApprovalAnswer, ApprovalAsk, ApprovalFilter},
    buffers::Buffers,
    caller::{Caller, Principal},
    desk::Desk,
    failure::{Failure, Kind},
    index::{Need, Sieve, Survey},
    plan::{Plan, Top},
    policy::{InForce, Tier},
    quota::Quota,
    version::Version,
    watching::{Watch, WatchAsk},
};

/// What to do with a link in the last component of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// Follow it to the place it means.
    Follow,
    /// Keep it: the link itself is meant.
    Keep,
}

/// The cheap facts about a file that change when it is replaced or written. Equal stamps let a commit skip a second
/// hash within one call; they are never compared across calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Device and inode, or whatever identifies the object.
    pub identity: (u64, u64),
    /// Length in bytes.
    pub size: u64,
    /// When its bytes last changed.
    pub modified_ns: i128,
    /// When anything about it last changed.
    pub changed_ns: i128,
}

/// One thing in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub top: Top,
    /// Length in bytes; zero for directories.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// How many names it has.
    pub links: u64,
    /// When its bytes last changed, in unix milliseconds.
    pub modified_ms: i64,
    /// Its stamp now.
    pub stamp: Stamp,
}

/// What is known about a thing beyond its [`Node`], for the few who ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Particulars {
    /// When it was made, in unix milliseconds, where that is known.
    pub created_ms: Option<i64>,
    /// The name of the user it belongs to, or that user's number.
    pub owner: Option<String>,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: Name,
    /// What it is.
    pub top: Top,
}

/// What a look at one name found: a thing, nothing, or why it could not be seen.
pub type Looked = Result<Option<Node>, Failure>;

/// A directory that is open for a walk: what is in it is reached by one name, whatever the way there has become.
pub trait Branch<'w>: Send + Sync {
    /// Opens a directory in this one and lists it, as [`Workspace::list`] does. Never follows a link.
    fn enter(&self, name: &Name) -> Result<Entered<'w>, Failure>;

    /// What is under a name in this directory now; a link is not followed.
    fn stat(&self, name: &Name) -> Looked;

    /// The bytes of a regular file in this directory, or only the first of them when `goes_on` says no to those. What is
    /// larger than `limit_bytes` is refused as too large. `bytes` is emptied first.
    fn scan(
        &self,
        name: &Name,
        limit_bytes: u64,
        goes_on: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure>;

    /// Opens a regular file in this directory to be read piece by piece.
    fn pieces(&self, name: &Name) -> Result<Box<dyn Pieces>, Failure>;
}

/// A regular file that is open to be read piece by piece: for looking through one that is too large to be held.
pub trait Pieces {
    /// The bytes it had when it was opened.
    fn size(&self) -> u64;

    /// Reads from `offset` as much as comes at once; 0 at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Failure>;
}

/// An open directory and the names in it, in byte order.
pub type Entered<'w> = (Box<dyn Branch<'w> + 'w>, Vec<Listed>);

/// Which bytes of a file are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// All of them, refused as too large above this many.
    Whole {
        /// The limit.
        limit_bytes: u64,
    },
    /// From `offset`, at most `length`.
    Range {
        /// First byte.
        offset: u64,
        /// At most this many.
        length: u64,
    },
    /// None: only the version.
    Nothing,
}

/// Bytes of a file with the version of the whole.
#[derive(Debug, Clone)]
pub struct FileBytes {
    /// The bytes asked for.
    pub bytes: Vec<u8>,
    /// The version of the whole file.
    pub version: Version,
    /// What the file was when it was read.
    pub node: Node,
}

/// How a path is locked for the duration of a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockAsk {
    /// The path. Everything above it is held shared, so a tree cannot move while something in it changes.
    pub path: RelPath,
}

/// Holds the locks of one call until dropped.
pub trait Guard: Send {}

/// What one call leaves in the journal besides its changes.
#[derive(Debug, Clone)]
pub struct Record<'a> {
    /// Who asked.
    pub caller: &'a Caller,
    /// What was asked.
    pub operation: &'static str,
    /// The dialect's name for it.
    pub tool: Option<&'a str>,
    /// The arguments without contents, as compact JSON.
    pub arguments: String,
    /// The places the call was about.
    pub paths: Vec<RelPath>,
    /// The caller's idempotency key.
    pub key: Option<&'a str>,
    /// Why it was refused or failed; nothing when it was allowed.
    pub reason: Option<crate::failure::Kind>,
    /// How far the caller may go alone with this.
    pub tier: Tier,
    /// The approval that lets it run, which is used up by recording it; for a refusal, the one that is asked for.
    pub approval: Option<String>,
    /// Version of the policy it was judged by.
    pub policy: u64,
    /// How much there may be after it; nothing where no quota is set for anybody, and then nothing is counted.
    pub quota: Option<Quota>,
    /// Bytes read or written.
    pub bytes: u64,
    /// When the call came in.
    pub started: Instant,
}

/// The end of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of the last entry; zero when there is none.
    pub number: u64,
    /// Its chain hash.
    pub hash: Digest,
}

/// What a commit answers.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The entry that recorded it.
    pub number: u64,
    /// The entry's chain hash.
    pub hash: Digest,
    /// Trash items made by it, in the order of the plan's removals.
    pub trash: Vec<String>,
    /// Things the caller should know: attributes that could not be kept, a hard link that was broken.
    pub notices: Vec<String>,
}

/// Why a commit did not happen.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// Something a plan expected is no longer so; plan again.
    Moved(RelPath),
    /// The same idempotency key was committed by somebody a moment ago.
    Replayed(u64),
    /// It cannot be done.
    Failed(Failure),
    /// It was recorded and then could not be made true; the journal says so already.
    Amended(Failure),
}

impl From<Failure> for CommitError {
    fn from(failure: Failure) -> Self {
        CommitError::Failed(failure)
    }
}

/// One entry as it is kept.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The entry.
    pub entry: Entry,
    /// Its chain hash.
    pub hash: Digest,
}

/// Which entries are wanted.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    /// Only about this path and what is below it.
    pub path: Option<RelPath>,
    /// Only by this principal.
    pub principal: Option<String>,
    /// Only of this operation.
    pub operation: Option<String>,
    /// Only after this number.
    pub after: Option<u64>,
    /// Only before this number.
    pub before: Option<u64>,
    /// Only from this time on, in unix milliseconds.
    pub since_ms: Option<i64>,
    /// Only up to this time, in unix milliseconds.
    pub until_ms: Option<i64>,
    /// Which calls count.
    pub what: Which,
    /// In which order.
    pub order: Order,
    /// At most this many.
    pub limit: usize,
}

/// Which calls count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Which {
    /// Every call.
    #[default]
    All,
    /// Those that changed something.
    Changes,
}

/// In which order entries come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Newest first.
    #[default]
    NewestFirst,
    /// Oldest first.
    OldestFirst,
}

/// One thing in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trashed {
    /// Its id.
    pub id: String,
    /// Who removed it.
    pub owner: String,
    /// Where it was.
    pub path: RelPath,
    /// How much it is.
    pub tree: crate::plan::Tree,
    /// When it was removed, in unix milliseconds.
    pub removed_ms: i64,
    /// Until when it can come back.
    pub keep_until_ms: i64,
    /// The entry that removed it.
    pub entry: u64,
}

/// A lock that agents can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// On what; everything below is included.
    pub path: RelPath,
    /// Who holds it.
    pub holder: String,
    /// Rises with every grant, so that a late holder can be told apart.
    pub fence: u64,
    /// When it ends, in unix milliseconds.
    pub ends_ms: i64,
}

/// What to do with a lease.
#[derive(Debug, Clone)]
pub enum LeaseAsk {
    /// Take or prolong one.
    Take {
        /// On what.
        path: RelPath,
        /// Until when.
        ends_ms: i64,
    },
    /// Give one back.
    Release {
        /// On what.
        path: RelPath,
    },
}

impl LeaseAsk {
    /// On what.
    pub fn path(&self) -> &RelPath {
        match self {
            LeaseAsk::Take { path, .. } | LeaseAsk::Release { path } => path,
        }
    }
}

/// Which new names are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameProfile {
    /// Only names every common file system can hold, and no look-alike twins.
    Portable,
    /// Whatever this file system takes.
    Posix,
}

/// What is fixed about a workspace while it is open.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its id.
    pub id: String,
    /// Absolute spellings of its root that callers may use.
    pub roots: Vec<String>,
    /// Which new names are accepted.
    pub names: NameProfile,
    /// Places inside that are the server's own, whatever their case.
    pub own: Vec<RelPath>,
}

/// A tree of files with its journal.
pub trait Workspace: Desk + Buffers + Send + Sync {
    /// What is fixed about it.
    fn profile(&self) -> &Profile;

    /// The time, in unix milliseconds.
    fn now_ms(&self) -> i64;

    /// The link-free place a path means. It need not exist.
    fn locate(&self, path: &RelPath, last: Last) -> Result<RelPath, Failure>;

    /// What is at a place; links are not followed.
    fn stat(&self, path: &RelPath) -> Result<Option<Node>, Failure>;

    /// The link-free place a path means, and what is there if that was seen on the way. Nothing says nothing about it: ask
    /// [`Workspace::stat`] then.
    fn find(&self, path: &RelPath, last: Last) -> Result<(RelPath, Option<Node>), Failure> {
        self.locate(path, last).map(|place| (place, None))
    }

    /// What else is known about a place; links are not followed.
    fn particulars(&self, _path: &RelPath) -> Result<Particulars, Failure> {
        Ok(Particulars::default())
    }

    /// What is under each of these names of one directory; links are not followed. One name that is closed, such as a
    /// file of another mount, does not hide the others.
    fn stat_names(&self, directory: &RelPath, names: &[Name]) -> Result<Vec<Looked>, Failure> {
        names.iter().map(|name| Ok(self.stat(&directory.join(name)?))).collect()
    }

    /// Bytes of a regular file, with the version of the whole.
    fn read(&self, path: &RelPath, want: Want) -> Result<FileBytes, Failure>;

    /// Bytes of a regular file without their version, for looking through many of them. Too large a file is refused.
    fn scan(&self, path: &RelPath, limit_bytes: u64) -> Result<Vec<u8>, Failure> {
        Ok(self.read(path, Want::Whole { limit_bytes })?.bytes)
    }

    /// Opens a regular file to be read piece by piece. Where files cannot be that large, none can be opened so.
    fn pieces(&self, path: &RelPath) -> Result<Box<dyn Pieces>, Failure> {
        Err(Failure::new(Kind::TooLarge, format!("{path} cannot be read piece by piece")))
    }

    /// Opens a directory for a walk and lists it; nothing where there are no handles and paths are as good.
    fn branch(&self, _path: &RelPath) -> Result<Option<Entered<'_>>, Failure> {
        Ok(None)
    }

    /// What is known of files without opening them, while something is looked for that needs this; nothing when there is
    /// no index, or when it can rule nothing out.
    fn sieve(&self, _need: &Need) -> Option<Box<dyn Sieve + '_>> {
        None
    }

    /// What a walk of plain names below a directory would meet, as a caller sees it who may see everything; nothing when
    /// that is not known for certain, or when more would have to be looked into than a walk is worth.
    fn survey(&self, _start: &RelPath, _need: &Need) -> Option<Survey> {
        None
    }

    /// A search has looked into so many files: an index may be worth its price.
    fn searched(&self, _files: u64) {}

    /// What a link says.
    fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Failure>;

    /// The names in a directory, in byte order. The server's own and half-made files are not among them.
    fn list(&self, path: &RelPath) -> Result<Vec<Listed>, Failure>;

    /// Locks these places, in sorted order, waiting until the deadline. Finishes what a dead process left there.
    fn lock(&self, asks: &[LockAsk], deadline: Instant) -> Result<Box<dyn Guard>, Failure>;

    /// Makes a plan true, all or nothing, and records it. The only write verb. The plan's places are locked.
    fn commit(&self, plan: &Plan, record: &Record<'_>) -> Result<Committed, CommitError>;

    /// Records a call that changed nothing.
    fn note(&self, record: &Record<'_>) -> Result<(), Failure>;

    /// The end of the journal.
    fn head(&self) -> Result<Head, Failure>;

    /// One entry.
    fn entry(&self, number: u64) -> Result<Option<Stored>, Failure>;

    /// Entries by filter.
    fn entries(&self, filter: &EntryFilter) -> Result<Vec<Stored>, Failure>;

    /// Waits until an entry after this one exists, or the deadline passes.
    fn wait_after(&self, number: u64, deadline: Instant) -> Result<(), Failure>;

    /// A number that is another one whenever something may have been changed since. Cheap: it is asked with every call.
    /// News of other processes may take a second.
    fn news(&self) -> Result<u64, Failure> {
        Ok(self.head()?.number)
    }

    /// The entry that last left this version at this path.
    fn rev_of(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Failure>;

    /// The entry that a principal's idempotency key made.
    fn replayed(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Failure>;

    /// Bytes kept from earlier, checked against their hash. Nothing when they are no longer kept.
    fn kept(&self, version: &Version) -> Result<Option<Vec<u8>>, Failure>;

    /// One thing in the trash, if it is still there.
    fn trashed(&self, id: &str) -> Result<Option<Trashed>, Failure>;

    /// What is in the trash, newest first.
    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<Trashed>, Failure>;

    /// Takes or gives back a lease, recording it. Refuses when another principal holds one that overlaps.
    fn lease(&self, ask: &LeaseAsk, record: &Record<'_>) -> Result<(Lease, Committed), Failure>;

    /// Running leases that overlap these places.
    fn leases(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Failure>;

    /// The policy that holds now. Fails when its file cannot be read or understood: then nothing runs.
    fn in_force(&self) -> Result<InForce, Failure> {
        Ok(InForce::built_in())
    }

    /// One approval, by its id.
    fn approval(&self, id: &str) -> Result<Option<Approval>, Failure>;

    /// Approvals by filter, newest first.
    fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, Failure>;

    /// Keeps a question to a person. The same question that still waits is not kept twice; one of the same call with
    /// another plan that waits or was answered with yes becomes stale.
    fn ask(&self, ask: &ApprovalAsk) -> Result<Approval, Failure>;

    /// Keeps a person's answer, recording it. Refuses when the question does not wait any more.
    fn answer(&self, answer: &ApprovalAnswer, record: &Record<'_>) -> Result<(Approval, Committed), Failure>;

    /// Begins or ends a watch, recording it. From then on the journal tells what others do there, or that it cannot.
    /// Waits no longer than the deadline for whoever does the watching.
    fn watch(
        &self,
        ask: &WatchAsk,
        record: &Record<'_>,
        deadline: Instant,
    ) -> Result<(Watch, Committed), Failure>;

    /// The watches of a principal, oldest first.
    fn watches(&self, owner: &Principal) -> Result<Vec<Watch>, Failure>;

    /// Whether this entry is undone at present, and by which entry.
    fn undone(&self, number: u64) -> Result<Option<u64>, Failure>;

    /// Facts about the workspace for people: durability, resolver, wall.
    fn describe(&self) -> Value;
}
