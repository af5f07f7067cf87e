//! What can be chosen when a workspace is opened.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use engine::NameProfile;
use path::RelPath;

use crate::clock::Clock;

/// When a change is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After it is safe against a power cut.
    Full,
    /// After it is safe against the death of the process.
    Fast,
}

/// Whether the process walls itself in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wall {
    /// Landlock: from now on this process reaches the workspace and the state directory, nothing else.
    Raise,
    /// No second wall: the process has other work to do.
    Leave,
}

/// What becomes of the search index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexing {
    /// It is built in the background when a search is worth it, and kept up.
    Keep,
    /// One that is there is used; nothing is built.
    Use,
    /// There is none.
    Off,
}

/// Files that a search must have met before an index is built, when nothing else is said.
const INDEX_FILES_MIN: u64 = 2_000;

/// How long a file must have stood still before the index relies on its stamp, when nothing else is said. The coarsest
/// clocks of file systems count in two seconds.
const INDEX_SETTLED: Duration = Duration::from_secs(3);

/// When a workspace begins to listen for changes that other programs make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening {
    /// As soon as anybody has a watch: for a process that stays.
    AtOnce,
    /// When a watch is begun through this opening: for a process that does one thing and ends.
    WhenAsked,
}

/// Bytes of kept history before the oldest is dropped, when nothing else is said.
pub(crate) const KEPT_BYTES_DEFAULT: u64 = 1 << 30;

/// How to open a workspace.
#[derive(Clone)]
pub struct Options {
    /// The directory.
    pub workspace: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// When a change is acknowledged.
    pub durability: Durability,
    /// Which new names are accepted.
    pub names: NameProfile,
    /// How paths are resolved.
    pub resolver: disk::Resolver,
    /// Mount points inside the workspace that belong to it.
    pub mounts: Vec<RelPath>,
    /// Where relative paths start. Removed things are kept on its file system; only with the widest reach it is not
    /// the workspace directory itself.
    pub home: RelPath,
    /// Places inside that are the server's own, besides the state directory.
    pub own: Vec<RelPath>,
    /// The policy file. Without one, `policy.toml` in the state directory holds if it is there.
    pub policy: Option<PathBuf>,
    /// Whether to raise the second wall.
    pub wall: Wall,
    /// Places outside that stay readable behind it.
    pub beside: Vec<PathBuf>,
    /// Bytes of kept history before the oldest is dropped.
    pub kept_bytes_max: u64,
    /// What becomes of the search index.
    pub indexing: Indexing,
    /// Files that a search must have met before an index is built.
    pub index_files_min: u64,
    /// How long a file must have stood still before the index relies on its stamp: as long as two changes can have the
    /// same one.
    pub index_settled: Duration,
    /// When to listen for changes that other programs make.
    pub listening: Listening,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Names of users by their numbers, where they can no longer be read because the wall stands.
    pub(crate) users: Option<HashMap<u32, String>>,
}

impl Options {
    /// The usual choices for this directory and state directory.
    pub fn new(workspace: PathBuf, state: PathBuf) -> Self {
        Self {
            workspace,
            state,
            durability: Durability::Full,
            names: NameProfile::Portable,
            resolver: disk::Resolver::Auto,
            mounts: Vec::new(),
            home: RelPath::root(),
            own: Vec::new(),
            policy: None,
            wall: Wall::Leave,
            beside: Vec::new(),
            kept_bytes_max: KEPT_BYTES_DEFAULT,
            indexing: Indexing::Keep,
            index_files_min: INDEX_FILES_MIN,
            index_settled: INDEX_SETTLED,
            listening: Listening::WhenAsked,
            clock: Arc::new(crate::clock::System::default()),
            users: None,
        }
    }
}
