//! The planned changes of a call, computed before anything is written. A plan is a plain value that can be previewed,
//! hashed, refused or committed; only a commit applies the plan.

use serde::Serialize;
use stead_journal::{JournalEntryRelation, RecordedMove};
use stead_path::RelPath;

use crate::{
    buffers::PlannedBufferChange,
    transaction::Expectation,
    tree::{FileIdentity, FileStamp},
    version::Version,
};

/// The permission bits that a new file gets.
pub const NEW_FILE_MODE: u32 = 0o644;
/// The permission bits that a new directory gets.
pub const NEW_DIRECTORY_MODE: u32 = 0o755;

/// The planned changes of one call, which a commit applies.
#[derive(Debug, Clone)]
pub struct Plan {
    /// In the order in which the commit applies them.
    pub changes: Vec<PlannedChange>,
    /// The journal entry or trash item that the plan refers to, for example the entry that the plan undoes.
    pub link: JournalEntryRelation,
    /// The planned changes of open editor buffers, which the commit applies together with the files.
    pub buffers: Vec<PlannedBufferChange>,
    /// Conditions about rows on which the plan was decided, such as the leases at that moment.
    pub expect: Vec<Expectation>,
}

impl Plan {
    /// Creates a plan without changes.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// Creates a plan from a list of changes, without a reference to a journal entry.
    pub fn new(changes: Vec<PlannedChange>) -> Self {
        Self::with_link(changes, JournalEntryRelation::None)
    }

    /// Creates a plan that refers to a journal entry or a trash item, for example to the entry to undo.
    pub fn with_link(changes: Vec<PlannedChange>, link: JournalEntryRelation) -> Self {
        Self { changes, link, buffers: Vec::new(), expect: Vec::new() }
    }

    /// The files that the plan moves and also changes, as the removal of one file and the creation of another.
    pub(crate) fn moved_files(&self) -> Vec<RecordedMove> {
        let moved = |change: &PlannedChange| {
            let PlannedChange::Put { path, mode: FileModeSource::CopyFrom(from, _), .. } = change else { return None };
            Some(RecordedMove { from: from.to_string(), to: path.to_string() })
        };
        self.changes.iter().filter_map(moved).collect()
    }

    /// Whether the plan has no file changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// The version, size and stamp of a file, as observed during planning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanTimeFileVersion {
    pub version: Version,
    pub size: u64,
    /// The stamp of the file during planning. The commit does not hash a file whose stamp is unchanged since planning.
    pub stamp: FileStamp,
}

/// The state that a path must have at the commit; otherwise the commit fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitExpectation {
    Absent,
    /// The commit requires that the path is a file with this version.
    File(PlanTimeFileVersion),
    /// The commit requires that the path is the same directory or symlink as during planning.
    SameEntry(FileIdentity),
}

/// The source of the new content of a written file.
#[derive(Debug, Clone)]
pub enum PlannedContent {
    Bytes(Vec<u8>),
    /// The new content of the file is the content of this stored version.
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
    /// The written file gets the mode, owner, access control list and extended attributes of another file. The file
    /// whose attributes are copied must still have the observed version at the commit.
    CopyFrom(RelPath, PlanTimeFileVersion),
}

/// One planned change of a file, directory or symlink.
#[derive(Debug, Clone)]
pub enum PlannedChange {
    Put {
        path: RelPath,
        expectation: CommitExpectation,
        content: PlannedContent,
        version: Version,
        size: u64,
        mode: FileModeSource,
    },
    /// The planned change creates an empty directory at an unused path.
    MakeDirectory { path: RelPath, mode: u32 },
    /// The planned change recreates a recorded symlink at an unused path.
    MakeLink { path: RelPath, target: Vec<u8> },
    /// The planned change renames a file, symlink or tree.
    Move {
        from: RelPath,
        to: RelPath,
        expectation: CommitExpectation,
        /// The state that the new path of a move must have at the commit: absent, or a file that the move replaces.
        replaced: CommitExpectation,
        tree: TreeSummary,
    },
    /// The planned change moves a file, symlink or tree to the trash.
    Remove {
        path: RelPath,
        expectation: CommitExpectation,
        /// The time in Unix milliseconds from which the trash may purge the removed file or tree.
        retain_until_ms: i64,
        tree: TreeSummary,
    },
    /// The planned change removes an empty directory that an undone call created.
    RemoveDirectory { path: RelPath },
    /// The planned change restores a trash item to an unused path.
    Restore { trash: String, path: RelPath, tree: TreeSummary },
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

/// The number of entries and bytes of a file, symlink or directory tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeSummary {
    pub kind: FileKind,
    /// The number of entries of the tree that are not directories, such as files and symlinks.
    pub files: u64,
    /// The number of directories in the tree, including the top directory.
    pub directories: u64,
    pub bytes: u64,
}

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    File,
    Directory,
    Link,
    #[serde(rename = "other")]
    Special,
}
