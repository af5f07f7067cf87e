//! A plan changes files in steps, which this module defines. All steps are stored with the journal entry before the
//! first step is applied. After a crash, recovery uses the stored steps to finish the plan, and to distinguish the
//! server's own unfinished work from another program's change.

use serde::{Deserialize, Serialize};
use stead_engine::Error;
use stead_journal::Digest;
use stead_path::RelPath;

use crate::errors;

/// Inode numbers are reused, so the stored identity of a file includes the creation time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StoredInodeId {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    #[serde(rename = "born_ns")]
    pub(crate) created_ns: Option<i64>,
}

/// Device numbers change at every boot, so they are compared only if the file system has no creation times.
impl PartialEq for StoredInodeId {
    fn eq(&self, other: &Self) -> bool {
        let same_device = self.created_ns.is_some() || self.dev == other.dev;
        self.ino == other.ino && self.created_ns == other.created_ns && same_device
    }
}

impl Eq for StoredInodeId {}

impl StoredInodeId {
    pub(crate) fn from_stat(stat: &stead_disk::DiskStat) -> Self {
        let id = stat.fingerprint.id;
        Self { dev: id.dev, ino: id.ino, created_ns: stat.created_ns.map(to_stored_ns) }
    }
}

/// Nanoseconds fit into 64 bits until the year 2262.
pub(crate) fn to_stored_ns(time: i128) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SerializableRelPath(pub(crate) RelPath);

impl From<&RelPath> for SerializableRelPath {
    fn from(path: &RelPath) -> Self {
        Self(path.clone())
    }
}

impl Serialize for SerializableRelPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_wire())
    }
}

impl<'de> Deserialize<'de> for SerializableRelPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = String::deserialize(deserializer)?;
        RelPath::from_wire(&wire).map(Self).map_err(serde::de::Error::custom)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StagedFileRecord {
    pub(crate) directory: SerializableRelPath,
    pub(crate) name: SerializableRelPath,
    pub(crate) id: StoredInodeId,
    /// The modification time of the staged file; a later time shows that another program wrote to the file.
    pub(crate) modified_ns: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReplacedFileRecord {
    pub(crate) version: Digest,
    pub(crate) id: StoredInodeId,
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
    pub(crate) mode: u32,
    #[serde(rename = "kept")]
    pub(crate) retained_in: RetainedVersionLocation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RetainedVersionLocation {
    #[serde(rename = "Row")]
    Database,
    File,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FileWriteStep {
    pub(crate) path: SerializableRelPath,
    pub(crate) staged: StagedFileRecord,
    pub(crate) over: Option<ReplacedFileRecord>,
    pub(crate) version: Digest,
    pub(crate) mode: u32,
    pub(crate) after: RetainedVersionLocation,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum FileApplyStep {
    Put(FileWriteStep),
    MakeDirectory { path: SerializableRelPath, mode: u32 },
    MakeLink { path: SerializableRelPath, target: Vec<u8> },
    Move { from: SerializableRelPath, to: SerializableRelPath, id: StoredInodeId, over: Option<ReplacedFileRecord> },
    Remove { path: SerializableRelPath, id: StoredInodeId, trash: String },
    RemoveDirectory { path: SerializableRelPath, id: StoredInodeId, mode: u32 },
    Restore { path: SerializableRelPath, id: StoredInodeId, trash: String },
}

impl FileApplyStep {
    pub(crate) fn paths(&self) -> Vec<&RelPath> {
        match self {
            FileApplyStep::Put(FileWriteStep { path, .. })
            | FileApplyStep::MakeDirectory { path, .. }
            | FileApplyStep::MakeLink { path, .. }
            | FileApplyStep::Remove { path, .. }
            | FileApplyStep::RemoveDirectory { path, .. }
            | FileApplyStep::Restore { path, .. } => vec![&path.0],
            FileApplyStep::Move { from, to, .. } => vec![&from.0, &to.0],
        }
    }

    /// A half-done step has renamed a file, failed a check after the rename, and could not undo the rename.
    pub(crate) fn may_be_half_done(&self) -> bool {
        match self {
            FileApplyStep::Put(_)
            | FileApplyStep::Move { .. }
            | FileApplyStep::Remove { .. }
            | FileApplyStep::Restore { .. } => true,
            FileApplyStep::MakeDirectory { .. }
            | FileApplyStep::MakeLink { .. }
            | FileApplyStep::RemoveDirectory { .. } => false,
        }
    }

    pub(crate) fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(|_| malformed_step_error())
    }

    pub(crate) fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).map_err(|_| malformed_step_error())
    }
}

fn malformed_step_error() -> Error {
    errors::damaged_database_error("a pending step cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file `steps.jsonl` has one pending step of every kind, in the format of version 0.1.0.
    const STEPS: &str = include_str!("../tests/pins/steps.jsonl");

    fn stored_path(wire: &str) -> SerializableRelPath {
        (&RelPath::from_wire(wire).unwrap()).into()
    }

    fn steps() -> Vec<FileApplyStep> {
        let id = StoredInodeId { dev: 1, ino: 2, created_ns: Some(3) };
        let without_time = StoredInodeId { created_ns: None, ..id };
        let staged =
            StagedFileRecord { directory: stored_path("d"), name: stored_path(".stead~x"), id, modified_ns: 4 };
        let version = Digest([5; 32]);
        let over = |retained_in| ReplacedFileRecord {
            version,
            id: without_time,
            size: 6,
            modified_ns: 7,
            mode: 0o644,
            retained_in,
        };
        let put = |over, after| {
            let (path, staged) = (stored_path("d/f"), staged.clone());
            FileApplyStep::Put(FileWriteStep { path, staged, over, version, mode: 0o600, after })
        };
        vec![
            put(None, RetainedVersionLocation::Database),
            put(Some(over(RetainedVersionLocation::File)), RetainedVersionLocation::File),
            FileApplyStep::MakeDirectory { path: stored_path("d"), mode: 0o755 },
            FileApplyStep::MakeLink { path: stored_path("l"), target: b"to".to_vec() },
            FileApplyStep::Move {
                from: stored_path("a"),
                to: stored_path("b"),
                id,
                over: Some(over(RetainedVersionLocation::Database)),
            },
            FileApplyStep::Remove { path: stored_path("a"), id, trash: "t-1".to_owned() },
            FileApplyStep::RemoveDirectory { path: stored_path("a"), id, mode: 0o755 },
            FileApplyStep::Restore { path: stored_path("a"), id, trash: "t-1".to_owned() },
        ]
    }

    #[test]
    fn stored_steps_have_the_format_of_0_1_0() {
        let text: String = steps().iter().map(|step| step.to_json().unwrap() + "\n").collect();
        testkit::pin::check(env!("CARGO_MANIFEST_DIR"), "steps.jsonl", &text);
    }

    #[test]
    fn steps_stored_by_0_1_0_can_be_read() {
        for line in STEPS.lines() {
            assert_eq!(FileApplyStep::from_json(line).unwrap().to_json().unwrap(), line);
        }
    }
}
