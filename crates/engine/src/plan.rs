//! What a call would change, computed before anything is written. Plain values: a plan can be shown, hashed, refused
//! or committed, and nothing but a commit makes it true.

use journal::Link;
use path::RelPath;

use crate::{buffers::BufferStep, version::Version, workspace::Stamp};

/// Permission bits of a new file.
pub const NEW_FILE_MODE: u32 = 0o644;
/// Permission bits of a new directory.
pub const NEW_DIRECTORY_MODE: u32 = 0o755;

/// Everything one call would change, in order.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The changes, in the order they become true.
    pub changes: Vec<Change>,
    /// What this plan undoes, redoes or restores.
    pub link: Link,
    /// What becomes of open buffers in the same moment.
    pub buffers: Vec<BufferStep>,
}

impl Plan {
    /// A plan that changes nothing: every read.
    pub fn nothing() -> Self {
        Self::of(Vec::new())
    }

    /// A plan of these changes.
    pub fn of(changes: Vec<Change>) -> Self {
        Self::linked(changes, Link::None)
    }

    /// A plan of these changes that undoes, redoes or restores something.
    pub fn linked(changes: Vec<Change>, link: Link) -> Self {
        Self { changes, link, buffers: Vec::new() }
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// What was seen of a file when the plan was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The version of its bytes.
    pub version: Version,
    /// The cheap facts it had at that moment; a commit that still finds them does not hash again.
    pub stamp: Stamp,
}

/// What a commit must find before it changes a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing is there.
    Absent,
    /// A file with these bytes.
    File(Seen),
    /// A directory or link that is still the same one.
    Node(Stamp),
}

/// Where new bytes come from.
#[derive(Debug, Clone)]
pub enum Content {
    /// Given with the call.
    Bytes(Vec<u8>),
    /// Kept from earlier, by version.
    Kept(Version),
    /// Another file of the workspace as it was seen.
    CopyOf(RelPath, Seen),
}

/// Permission bits of what is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Those of the file that is replaced; [`NEW_FILE_MODE`] when there is none.
    Keep,
    /// These, without set-id bits.
    Set(u32),
    /// Those of another file as it was seen, and its owner, access list and further attributes as well: this is that
    /// file at its new place.
    Like(RelPath, Seen),
}

/// One change of a plan.
#[derive(Debug, Clone)]
pub enum Change {
    /// A file gets these bytes.
    Put {
        /// Which file.
        path: RelPath,
        /// What is there now.
        expect: Expect,
        /// The bytes.
        content: Content,
        /// Their version.
        version: Version,
        /// Their length.
        size: u64,
        /// Permission bits.
        mode: Mode,
    },
    /// A new, empty directory. Nothing is there now.
    MakeDirectory {
        /// Which directory.
        path: RelPath,
        /// Permission bits.
        mode: u32,
    },
    /// A new link, made again from a recorded one. Nothing is there now.
    MakeLink {
        /// Where the link is.
        path: RelPath,
        /// What it says.
        target: Vec<u8>,
    },
    /// A file, link or whole tree gets another name.
    Move {
        /// The old place.
        from: RelPath,
        /// The new place.
        to: RelPath,
        /// What is at the old place.
        expect: Expect,
        /// What is at the new place: nothing, or a file that is replaced and kept.
        over: Expect,
        /// How much moves.
        tree: Tree,
    },
    /// A file, link or whole tree goes to the trash.
    Remove {
        /// What goes.
        path: RelPath,
        /// What is there now.
        expect: Expect,
        /// Until when it can come back.
        keep_until_ms: i64,
        /// How much goes.
        tree: Tree,
    },
    /// An empty directory that an undone call had made goes away.
    RemoveDirectory {
        /// Which directory.
        path: RelPath,
    },
    /// Something comes back from the trash. Nothing is at its place now.
    Restore {
        /// Which item.
        trash: String,
        /// Where to.
        path: RelPath,
        /// How much comes back.
        tree: Tree,
    },
}

impl Change {
    /// The places this change touches; the first is the one it is about.
    pub fn paths(&self) -> impl Iterator<Item = &RelPath> {
        let (first, second) = match self {
            Change::Put { path, .. }
            | Change::MakeDirectory { path, .. }
            | Change::MakeLink { path, .. }
            | Change::Remove { path, .. }
            | Change::RemoveDirectory { path }
            | Change::Restore { path, .. } => (path, None),
            Change::Move { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }
}

/// How much a change carries with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    /// What the top of it is.
    pub top: Top,
    /// Files in it.
    pub files: u64,
    /// Directories in it, the top included.
    pub directories: u64,
    /// Bytes of those files.
    pub bytes: u64,
}

/// What the top of a moved or removed tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Top {
    /// One regular file.
    File,
    /// A directory with what it holds.
    Directory,
    /// A link, itself, not what it points at.
    Link,
    /// A pipe, socket or device.
    Special,
}
