//! The planned changes of a call, computed before anything is written. Plain values: a plan can be shown, hashed,
//! refused or committed, and only a commit applies it.

use stead_journal::EntryRelation;
use stead_path::RelPath;

use crate::{buffers::PlannedBufferChange, version::Version, workspace::FileIdentity};

/// Permission bits of a new file.
pub const NEW_FILE_MODE: u32 = 0o644;
/// Permission bits of a new directory.
pub const NEW_DIRECTORY_MODE: u32 = 0o755;

/// The changes of one call, in order.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The changes, in the order in which they are applied.
    pub changes: Vec<PlannedChange>,
    /// The entry that this plan undoes or redoes, or the trash item that it restores.
    pub link: EntryRelation,
    /// Changes of open buffers, applied together with the files.
    pub buffers: Vec<PlannedBufferChange>,
}

impl Plan {
    /// A plan without changes.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// A plan of these changes.
    pub fn new(changes: Vec<PlannedChange>) -> Self {
        Self::with_link(changes, EntryRelation::None)
    }

    /// A plan that undoes, redoes or restores something.
    pub fn with_link(changes: Vec<PlannedChange>, link: EntryRelation) -> Self {
        Self { changes, link, buffers: Vec::new() }
    }

    /// Whether the plan has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// The version of a file as observed during planning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedVersion {
    /// The version of its bytes.
    pub version: Version,
    /// Its identity at that moment; a commit that finds the same identity does not hash again.
    pub identity: FileIdentity,
}

/// The state that a commit requires at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitExpectation {
    /// The path does not exist.
    Absent,
    /// A file with this version.
    File(ObservedVersion),
    /// The same directory or symlink.
    SameEntry(FileIdentity),
}

/// The source of new content.
#[derive(Debug, Clone)]
pub enum PlannedContent {
    /// Given with the call.
    Bytes(Vec<u8>),
    /// A stored version.
    Retained(Version),
    /// Another file of the workspace, as observed.
    CopyOf(RelPath, ObservedVersion),
}

/// The source of the permission bits of a written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileModeSource {
    /// The mode of the replaced file; [`NEW_FILE_MODE`] if there is none.
    KeepExisting,
    /// This mode, without set-id bits.
    Set(u32),
    /// The mode, owner, access list and extended attributes of another file as observed: this is that file at its new
    /// path.
    CopyFrom(RelPath, ObservedVersion),
}

/// One change of a plan.
#[derive(Debug, Clone)]
pub enum PlannedChange {
    /// Writes a file.
    Put {
        /// The file.
        path: RelPath,
        /// The expected current state.
        expectation: CommitExpectation,
        /// The new content.
        content: PlannedContent,
        /// The version of the new content.
        version: Version,
        /// The size of the new content.
        size: u64,
        /// The permission bits.
        mode: FileModeSource,
    },
    /// Creates an empty directory at an unused path.
    MakeDirectory {
        /// The directory.
        path: RelPath,
        /// The permission bits.
        mode: u32,
    },
    /// Recreates a recorded symlink at an unused path.
    MakeLink {
        /// The symlink.
        path: RelPath,
        /// Its target.
        target: Vec<u8>,
    },
    /// Renames a file, symlink or tree.
    Move {
        /// The old path.
        from: RelPath,
        /// The new path.
        to: RelPath,
        /// The expected state of the old path.
        expectation: CommitExpectation,
        /// The expected state of the new path: absent, or a file that is replaced and retained.
        replaced: CommitExpectation,
        /// The size of the moved tree.
        tree: TreeSummary,
    },
    /// Moves a file, symlink or tree to the trash.
    Remove {
        /// The entry to remove.
        path: RelPath,
        /// The expected current state.
        expectation: CommitExpectation,
        /// End of its retention.
        retain_until_ms: i64,
        /// The size of the removed tree.
        tree: TreeSummary,
    },
    /// Removes an empty directory that an undone call created.
    RemoveDirectory {
        /// The directory.
        path: RelPath,
    },
    /// Restores a trash item to an unused path.
    Restore {
        /// The id of the trash item.
        trash: String,
        /// The destination.
        path: RelPath,
        /// The size of the restored tree.
        tree: TreeSummary,
    },
}

impl PlannedChange {
    /// The paths that this change touches; the primary path is first.
    pub fn paths(&self) -> impl Iterator<Item = &RelPath> {
        let (first, second) = match self {
            PlannedChange::Put { path, .. }
            | PlannedChange::MakeDirectory { path, .. }
            | PlannedChange::MakeLink { path, .. }
            | PlannedChange::Remove { path, .. }
            | PlannedChange::RemoveDirectory { path }
            | PlannedChange::Restore { path, .. } => (path, None),
            PlannedChange::Move { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }
}

/// The size of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeSummary {
    /// The kind of its top entry.
    pub kind: FileKind,
    /// Files in it.
    pub files: u64,
    /// Directories in it, including the top.
    pub directories: u64,
    /// Total size of its files.
    pub bytes: u64,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink.
    Link,
    /// A pipe, socket or device.
    Special,
}
