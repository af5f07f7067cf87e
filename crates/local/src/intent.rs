//! What is about to be done to the directory, written down with the entry before any of it is done. Enough to finish
//! the work after the process has died, and to tell our own half-done work from somebody else's edit.

use engine::Failure;
use journal::Digest;
use path::RelPath;
use serde::{Deserialize, Serialize};

/// Which file, as it is stored: its inode and when that was born, because numbers are used again.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Id {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    pub(crate) born_ns: Option<i64>,
}

/// Devices get their numbers anew whenever the machine starts; a birth, where the file system knows it, stays.
impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        let same_device = self.born_ns.is_some() || self.dev == other.dev;
        self.ino == other.ino && self.born_ns == other.born_ns && same_device
    }
}

impl Eq for Id {}

impl Id {
    pub(crate) fn of(stat: &disk::Stat) -> Self {
        let id = stat.stamp.id;
        Self { dev: id.dev, ino: id.ino, born_ns: stat.born_ns.map(nanoseconds) }
    }

    pub(crate) fn staged(staged: &disk::Staged) -> Self {
        let id = staged.id();
        Self { dev: id.dev, ino: id.ino, born_ns: staged.born_ns().map(nanoseconds) }
    }
}

/// Times fit 64 bits until the year 2262.
pub(crate) fn nanoseconds(time: i128) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

/// A path as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) RelPath);

impl Serialize for Place {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_wire())
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = String::deserialize(deserializer)?;
        RelPath::from_wire(&wire).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A staged file: where it lies under its temporary name, and which inode it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Temporary {
    pub(crate) directory: Place,
    pub(crate) name: Place,
    pub(crate) id: Id,
    /// When its bytes were written. A later time means that somebody else has written to it.
    pub(crate) modified_ns: i64,
}

/// The file that is replaced.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Replaced {
    pub(crate) version: Digest,
    pub(crate) id: Id,
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
    pub(crate) mode: u32,
    pub(crate) kept: Kept,
}

/// Where bytes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kept {
    /// In the database.
    Row,
    /// As a file of their own.
    File,
}

/// One step of making a plan true.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Step {
    Put { path: Place, staged: Temporary, over: Option<Replaced>, version: Digest, mode: u32, after: Kept },
    MakeDirectory { path: Place, mode: u32 },
    MakeLink { path: Place, target: Vec<u8> },
    Move { from: Place, to: Place, id: Id, over: Option<Replaced> },
    Remove { path: Place, id: Id, trash: String },
    RemoveDirectory { path: Place, id: Id, mode: u32 },
    Restore { path: Place, id: Id, trash: String },
}

impl Step {
    /// The places this step touches.
    pub(crate) fn places(&self) -> Vec<&RelPath> {
        match self {
            Step::Put { path, .. }
            | Step::MakeDirectory { path, .. }
            | Step::MakeLink { path, .. }
            | Step::Remove { path, .. }
            | Step::RemoveDirectory { path, .. }
            | Step::Restore { path, .. } => vec![&path.0],
            Step::Move { from, to, .. } => vec![&from.0, &to.0],
        }
    }

    /// Whether a failure of this step may leave it done: a rename that was looked at afterwards and could not be
    /// taken back.
    pub(crate) fn may_be_half_done(&self) -> bool {
        match self {
            Step::Put { .. } | Step::Move { .. } | Step::Remove { .. } | Step::Restore { .. } => true,
            Step::MakeDirectory { .. } | Step::MakeLink { .. } | Step::RemoveDirectory { .. } => false,
        }
    }

    /// The stored form.
    pub(crate) fn to_text(&self) -> Result<String, Failure> {
        serde_json::to_string(self).map_err(|_| malformed())
    }

    /// Reads the stored form.
    pub(crate) fn from_text(text: &str) -> Result<Self, Failure> {
        serde_json::from_str(text).map_err(|_| malformed())
    }
}

fn malformed() -> Failure {
    Failure::new(engine::Kind::AuditUnavailable, "a pending step in the store cannot be read")
}
