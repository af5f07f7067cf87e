//! Options for opening a workspace.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use stead_engine::FileNamePolicy;
use stead_path::RelPath;

use crate::clock::Clock;

/// When a change is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After it survives a power cut.
    Full,
    /// After it survives a crash of the process.
    Fast,
}

impl Durability {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Fast => "fast",
        }
    }
}

/// Whether the process restricts itself with Landlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandlockMode {
    /// The process can only open files in the workspace, the state directory and `readable_paths`.
    Restrict,
    /// No sandbox: the process needs other files.
    Off,
}

/// How the search index is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexMode {
    /// Built in the background once searches are large enough, and kept up to date.
    Maintain,
    /// An existing index is used; none is built.
    UseExisting,
    /// No index.
    Off,
}

/// Default of [`LocalWorkspaceOptions::index_files_min`].
const INDEX_FILES_MIN: u64 = 2_000;

/// Default of [`LocalWorkspaceOptions::index_min_file_age`]. The coarsest file system timestamps have two seconds.
const INDEX_MIN_FILE_AGE: Duration = Duration::from_secs(3);

/// When a workspace starts to watch for external changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchStart {
    /// At open if any watch exists: for a long-running process.
    AtOpen,
    /// When this process begins a watch: for a short-lived process.
    OnFirstWatch,
}

/// Default of [`LocalWorkspaceOptions::retained_bytes_max`].
pub(crate) const RETAINED_BYTES_DEFAULT: u64 = 1 << 30;

/// How to open a workspace.
#[derive(Clone)]
pub struct LocalWorkspaceOptions {
    /// The root directory of the workspace.
    pub root_path: PathBuf,
    /// The state directory.
    pub state_path: PathBuf,
    /// When a change is acknowledged.
    pub durability: Durability,
    /// Which new file names are accepted.
    pub name_profile: FileNamePolicy,
    /// How paths are resolved.
    pub resolver: stead_disk::PathResolution,
    /// Mount points below the root that belong to the workspace.
    pub allowed_mounts: Vec<RelPath>,
    /// Start of relative paths; the trash is on its file system. Differs from the root only if the workspace is the whole
    /// machine.
    pub default_directory: RelPath,
    /// Paths below the root reserved for the server, besides the state directory.
    pub reserved_paths: Vec<RelPath>,
    /// The policy file; by default `policy.toml` in the state directory, if it exists.
    pub policy_path: Option<PathBuf>,
    /// Whether to activate the Landlock sandbox.
    pub landlock: LandlockMode,
    /// Host paths that stay readable in the sandbox.
    pub readable_paths: Vec<PathBuf>,
    /// Limit of retained bytes; the oldest versions are dropped first.
    pub retained_bytes_max: u64,
    /// How the search index is used.
    pub index_mode: IndexMode,
    /// Files that a search must visit before an index is built.
    pub index_files_min: u64,
    /// How long a file must be unmodified before the index relies on its timestamp: at least the timestamp resolution.
    pub index_min_file_age: Duration,
    /// When to start watching for external changes.
    pub watch_start: WatchStart,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// User names by uid, if they are already unreadable inside the sandbox.
    pub(crate) user_names: Option<HashMap<u32, String>>,
}

impl LocalWorkspaceOptions {
    /// The default options for this root and state directory.
    pub fn new(root_path: PathBuf, state_path: PathBuf) -> Self {
        Self {
            root_path,
            state_path,
            durability: Durability::Full,
            name_profile: FileNamePolicy::Portable,
            resolver: stead_disk::PathResolution::Auto,
            allowed_mounts: Vec::new(),
            default_directory: RelPath::root(),
            reserved_paths: Vec::new(),
            policy_path: None,
            landlock: LandlockMode::Off,
            readable_paths: Vec::new(),
            retained_bytes_max: RETAINED_BYTES_DEFAULT,
            index_mode: IndexMode::Maintain,
            index_files_min: INDEX_FILES_MIN,
            index_min_file_age: INDEX_MIN_FILE_AGE,
            watch_start: WatchStart::OnFirstWatch,
            clock: Arc::new(crate::clock::MachineClock::default()),
            user_names: None,
        }
    }
}
