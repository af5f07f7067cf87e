//! The options for opening a local workspace, and the clock that the workspace reads. The clock is an option, so that
//! tests can control time without sleeping.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use stead_disk::{PathResolutionMethod, SystemClock};
use stead_engine::{ClockReading, FileNamePolicy};
use stead_path::RelPath;

use crate::store::to_sql_integer;

/// Which failures a change survives once the change is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A change is acknowledged once it survives a power cut.
    Full,
    /// A change is acknowledged once it survives a crash of the process.
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

/// Whether the process restricts its own file access with Landlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandlockMode {
    /// The process can only open files in the workspace, the state directory and the directories that stay readable.
    Restrict,
    /// The process can open any file, also outside the workspace.
    Off,
}

/// Whether searches use an index, and whether an index is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexBuildAndUseMode {
    /// After large searches, a search index is built in the background and kept up to date.
    Maintain,
    /// Searches use an existing index, but no index is built.
    UseExisting,
    Off,
}

/// When a workspace starts to record changes by other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExternalChangeRecordingStartPolicy {
    /// The workspace records changes by other programs as soon as it is opened, if a watch exists.
    AtOpen,
    /// The workspace records changes by other programs only after its first watch has begun.
    OnFirstWatch,
}

const INDEX_FILES_MIN: u64 = 2_000;
/// The default minimum age of an indexed file, longer than the two seconds of the coarsest file system timestamps.
const INDEX_MIN_FILE_AGE: Duration = Duration::from_secs(3);
const RETAINED_BYTES_DEFAULT: u64 = 1 << 30;

/// The options for opening a workspace.
#[derive(Clone)]
pub struct LocalWorkspaceOptions {
    pub root_path: PathBuf,
    pub state_path: PathBuf,
    pub durability: Durability,
    pub name_profile: FileNamePolicy,
    pub resolver: PathResolutionMethod,
    /// Mount points below the root whose files belong to the workspace.
    pub allowed_mounts: Vec<RelPath>,
    /// The directory of the workspace from which relative paths start. Only a workspace that is the whole machine
    /// resolves relative paths from a directory other than the root. The trash is on the same mount as the directory
    /// from which relative paths start.
    pub default_directory: RelPath,
    /// Paths below the workspace root that callers cannot access, besides the state directory.
    pub reserved_paths: Vec<RelPath>,
    /// The path of the policy file; `None` means the optional file `policy.toml` in the state directory.
    pub policy_path: Option<PathBuf>,
    pub landlock: LandlockMode,
    /// Paths outside the workspace that stay readable in the Landlock sandbox.
    pub readable_paths: Vec<PathBuf>,
    /// The most bytes of old file versions that the workspace retains; the oldest versions are dropped first.
    pub retained_bytes_max: u64,
    pub index_mode: IndexBuildAndUseMode,
    /// The least number of files that a search must visit to cause the building of a search index.
    pub index_files_min: u64,
    /// The time for which a file must be unmodified before the search index trusts its timestamp. If the minimum file
    /// age is shorter than the resolution of timestamps, a search can miss a change.
    pub index_min_file_age: Duration,
    pub watch_start: ExternalChangeRecordingStartPolicy,
    pub clock: Arc<dyn Clock>,
    /// The user names by user id, if they were read before a sandbox was activated.
    pub(crate) user_names: Option<HashMap<u32, String>>,
}

impl LocalWorkspaceOptions {
    /// Returns the default options for a workspace with this root and state directory.
    pub fn new(root_path: PathBuf, state_path: PathBuf) -> Self {
        Self {
            root_path,
            state_path,
            durability: Durability::Full,
            name_profile: FileNamePolicy::Portable,
            resolver: PathResolutionMethod::Auto,
            allowed_mounts: Vec::new(),
            default_directory: RelPath::root(),
            reserved_paths: Vec::new(),
            policy_path: None,
            landlock: LandlockMode::Off,
            readable_paths: Vec::new(),
            retained_bytes_max: RETAINED_BYTES_DEFAULT,
            index_mode: IndexBuildAndUseMode::Maintain,
            index_files_min: INDEX_FILES_MIN,
            index_min_file_age: INDEX_MIN_FILE_AGE,
            watch_start: ExternalChangeRecordingStartPolicy::OnFirstWatch,
            clock: Arc::new(SystemClock::default()),
            user_names: None,
        }
    }
}

/// A clock that the workspace reads and that tests can replace.
pub trait Clock: Send + Sync {
    /// Reads the wall clock and the monotonic clock.
    fn now(&self) -> ClockReading;
}

impl Clock for SystemClock {
    fn now(&self) -> ClockReading {
        ClockReading {
            wall_ms: to_sql_integer(self.now_ms()),
            uptime_ms: to_sql_integer(self.monotonic_ms()),
            boot_id: self.boot_id(),
        }
    }
}
