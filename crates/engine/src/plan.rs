//! The planned changes of a call, computed before anything is written. A plan is a plain value that can be previewed,
//! hashed, refused or committed; only a commit applies it.

use stead_journal::JournalEntryRelation;
use stead_path::RelPath;

use crate::{buffers::PlannedBufferChange, version::Version, workspace::FileStatFingerprint};

/// Permission bits of a new file.
pub const NEW_FILE_MODE: u32 = 0o644;
/// Permission bits of a new directory.
pub const NEW_DIRECTORY_MODE: u32 = 0o755;

/// The planned changes of one call.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The planned changes of files, in the order in which the commit applies them.
    pub changes: Vec<PlannedChange>,
    /// The journal entry that the plan undoes, redoes or amends, or the trash item that the plan restores.
    pub link: JournalEntryRelation,
    /// Changes of open editor buffers, applied together with the files.
    pub buffers: Vec<PlannedBufferChange>,
}

impl Plan {
    /// A plan without changes.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// Creates a plan from a list of changes.
    pub fn new(changes: Vec<PlannedChange>) -> Self {
        Self::with_link(changes, JournalEntryRelation::None)
    }

    /// Creates a plan that refers to a journal entry or a trash item, for example to the entry that it undoes.
    pub fn with_link(changes: Vec<PlannedChange>, link: JournalEntryRelation) -> Self {
        Self { changes, link, buffers: Vec::new() }
    }

    /// Whether the plan has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// The version of a file as observed during planning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanTimeFileVersion {
    /// The version of the file's bytes.
    pub version: Version,
    /// The stat fingerprint of the file when the version was observed. If a file still has this fingerprint at the
    /// commit, the commit does not hash the file again.
    pub identity: FileStatFingerprint,
}

/// The state that a path must have at the commit; otherwise the commit fails and overwrites no later change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitExpectation {
    /// The commit requires that the path does not exist.
    Absent,
    /// The commit requires that the path is a file with this version.
    File(PlanTimeFileVersion),
    /// The commit requires that the path is the same directory or symlink as during planning.
    SameEntry(FileStatFingerprint),
}

/// The source of a file's new content.
#[derive(Debug, Clone)]
pub enum PlannedContent {
    /// The new content is these bytes.
    Bytes(Vec<u8>),
    /// The new content is the content of this stored version.
    Retained(Version),
    /// The new content is a copy of another file, which must still have the observed version at the commit.
    CopyOf(RelPath, PlanTimeFileVersion),
}

/// The source of the permission bits of a written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileModeSource {
    /// The written file keeps the mode of the file that it replaces; a new file gets [`NEW_FILE_MODE`].
    KeepExisting,
    /// The written file gets these permission bits, without set-user-id and set-group-id bits.
    Set(u32),
    /// The written file is a changed file at a new path. It gets the mode, owner, access control list and extended
    /// attributes of the file at the old path. That file must still have the observed version.
    CopyFrom(RelPath, PlanTimeFileVersion),
}

/// One change of a plan.
#[derive(Debug, Clone)]
pub enum PlannedChange {
    /// Writes a file.
    Put {
        /// The file.
        path: RelPath,
        /// The state that the path must have at the commit.
        expectation: CommitExpectation,
        /// The new content.
        content: PlannedContent,
        /// The version of the file's new content.
        version: Version,
        /// The size of the new content in bytes.
        size: u64,
        /// The source of the written file's permission bits.
        mode: FileModeSource,
    },
    /// Creates an empty directory at an unused path.
    MakeDirectory {
        /// The directory.
        path: RelPath,
        /// The permission bits of the directory.
        mode: u32,
    },
    /// Recreates a recorded symlink at an unused path.
    MakeLink {
        /// The path of the symlink.
        path: RelPath,
        /// The target of the symlink.
        target: Vec<u8>,
    },
    /// Renames a file, symlink or tree.
    Move {
        /// The old path.
        from: RelPath,
        /// The new path.
        to: RelPath,
        /// The state that the old path must have at the commit.
        expectation: CommitExpectation,
        /// The state that the new path must have at the commit: absent, or a file with a known version. The move
        /// replaces this file and retains its content.
        replaced: CommitExpectation,
        /// The size of the moved tree.
        tree: TreeSummary,
    },
    /// Moves a file, symlink or tree to the trash.
    Remove {
        /// The path of the file, symlink or tree that moves to the trash.
        path: RelPath,
        /// The state that the path must have at the commit.
        expectation: CommitExpectation,
        /// The time from which the trash may purge the removed file or tree, in Unix milliseconds.
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
        /// The path to which the trash item is restored.
        path: RelPath,
        /// The size of the restored tree.
        tree: TreeSummary,
    },
}

impl PlannedChange {
    /// The paths that a planned change names; for a move, the old path comes first.
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

/// The size of a file, symlink or directory tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeSummary {
    /// The kind of the entry at the top of the tree.
    pub kind: FileKind,
    /// Number of files, symlinks and other entries that are not directories.
    pub files: u64,
    /// Number of directories, including the top directory.
    pub directories: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
}

/// The kind of a directory entry.
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
