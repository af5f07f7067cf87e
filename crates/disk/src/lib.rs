//! All access to disks: confined paths, directories, the state directory with its blobs and locks, and file watches. A
//! caller's path reaches the kernel only as a checked [`stead_path::RelPath`] or [`stead_path::FileName`] below an open
//! handle. The kernel follows no symbolic link in a caller's path. A special file is never read, and an error never
//! contains a path. This crate does not decide which changes are permitted, and it writes no journal.

mod attributes;
mod blobs;
mod canonical;
mod confinement;
mod directory;
mod errors;
pub mod faults;
pub mod fs_events;
mod host;
pub mod landlock;
mod mounts;
mod open_file;
mod remove;
mod root;
mod stage;
mod stat;
mod state_directory;
mod sys;
pub mod terminal;
mod walk;

pub use attributes::{FileAttributeSource, LostAttribute};
pub use blobs::BlobSyncTiming;
pub use canonical::{STEPS_MAX, SYMLINKS_MAX};
pub use confinement::PathResolutionMethod;
pub use directory::{DirectoryHandle, DiskDirectoryEntry, ExistingTargetPolicy};
pub use errors::{DiskError, DiskErrorKind};
pub use host::{SystemClock, lower_thread_priority, raise_open_file_limit, random_bytes, user_names};
pub use mounts::resolve_with_mount_points;
pub use open_file::OpenFile;
pub use root::{EntryHandle, RootDirectory, RootDirectoryOptions};
pub use rustix::fs::FileType;
pub use stage::{StagedContentSource, StagedFile};
pub use stat::{DiskSpace, DiskStat, InodeFingerprint, InodeId};
pub use state_directory::{
    LockMode, MultiSlotLockFile, ServerOnlyDirectoryHandle, StateDirectory, StateDirectoryAccessError,
};
pub use stead_path::{FinalSymlink, TEMPORARY_PREFIX};
pub use walk::{DiskTreeSize, measure_tree};
