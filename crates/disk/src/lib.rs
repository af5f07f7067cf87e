//! All file access, below an open root handle. Owns confinement, changes of directories, the state directory with its
//! blobs and locks, watches, the Landlock sandbox, the clock and randomness.
//!
//! Promises: a path reaches the kernel only as a checked [`stead_path::RelPath`] or [`stead_path::FileName`] below an
//! open handle; the kernel never follows a link; a special file is never opened; every handle closes on exec; an error
//! never contains a path. Never decides what may be changed, never records anything.

mod attributes;
mod blobs;
mod canonical;
mod clock;
mod confinement;
mod directory;
mod errors;
pub mod faults;
pub mod fs_events;
pub mod landlock;
mod lock_file;
mod mount_points;
mod network;
mod open_file;
mod open_file_limit;
mod private_directory;
mod random;
mod remove;
mod rename;
mod root;
mod stage;
mod stat;
mod state_directory;
mod sys;
pub mod terminal;
mod users;
mod walk;

pub use attributes::{AttributeSource, LostAttribute};
pub use blobs::BlobSync;
pub use canonical::{STEPS_MAX, SYMLINKS_MAX};
pub use clock::{SystemClock, lower_thread_priority};
pub use confinement::PathResolution;
pub use directory::{DirectoryHandle, DiskDirectoryEntry};
pub use errors::{DiskError, DiskErrorKind};
pub use lock_file::{LockFile, LockMode};
pub use mount_points::resolve_with_mount_points;
pub use open_file::OpenFile;
pub use open_file_limit::{OpenFileLimit, raise_open_file_limit};
pub use private_directory::{PrivateDirectory, StateError};
pub use random::random_bytes;
pub use remove::RemovalCounts;
pub use rename::ExistingTarget;
pub use root::{RootDirectory, RootOptions};
pub use stage::{ContentSource, StagedFile};
pub use stat::{DiskSpace, DiskStat, FileType, InodeFingerprint, InodeId};
pub use state_directory::StateDirectory;
pub use stead_path::{FinalSymlink, TEMPORARY_PREFIX};
pub use users::user_names;
pub use walk::{
    DiskTreeSize, UnreadableDirectory, WalkControl, WalkEndReason, WalkEntry, WalkLimits, WalkReport, measure_tree,
    walk_tree,
};
