//! The journal entry, which records one call: the caller, the decision and the changes.
//!
//! Unknown fields in the JSON form of an entry are rejected, because the hash does not cover them. A journal entry
//! never contains file content: a version identifies the content, and arguments are redacted.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// The record of one call in the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalEntry {
    /// The position of the entry in the journal, counted from 1 without gaps.
    pub number: u64,
    /// The time of the server's decision about the call.
    pub time_ms: i64,
    pub caller: JournalEntryCaller,
    /// The request id or idempotency key that the caller sent, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "request")]
    pub request_id: Option<String>,
    pub operation: String,
    /// The dialect's tool, such as `comma/edit_file`; `None` if the operation was called by its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments of the call as compact JSON; file content and long texts are replaced by their size.
    pub arguments: String,
    pub decision: JournaledCallOutcomeStatus,
    /// The error kind of a call that was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(rename = "policy")]
    pub policy_version: u64,
    /// The supervision tier of the call (`notify`, `approval_required` or `blocked`); `None` means unrestricted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The id of the approval that allowed the call, or that a refused call needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    pub changes: Vec<RecordedChange>,
    #[serde(rename = "link")]
    pub relation: JournalEntryRelation,
    /// The content bytes that the call read or wrote.
    pub bytes: u64,
    pub duration_us: u64,
    /// Further facts about the call; an entry in format 1, 2 or 3 has none.
    #[serde(default, skip_serializing_if = "JournalEntryDetails::is_empty")]
    pub details: JournalEntryDetails,
}

/// Facts about a call that the server adds to its journal entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JournalEntryDetails {
    /// The files that the call moved and also changed, which the changes list as a removal and a creation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<RecordedMove>,
    /// The version of a file that already had the content that the call wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<Digest>,
    /// The ids of the open buffers that the call changed along with the files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<String>,
    /// The number of changes that the call left to the editor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_by_editor: Option<u64>,
    /// The digest of the complete arguments, to which an approval is bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Digest>,
    /// The usage of the workspace before the call, if a quota limits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_before: Option<RecordedUsage>,
    /// The database rows that the call wrote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<RecordedRowDigest>,
}

impl JournalEntryDetails {
    /// Whether the entry has no details.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The old and the new path of a moved file, relative to the workspace root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedMove {
    pub from: String,
    pub to: String,
}

/// The size of the files of a workspace, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedUsage {
    pub bytes: u64,
    pub files: u64,
}

/// The digest of a database row that a call wrote, with the family of the row, such as `lease`, and its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRowDigest {
    pub family: String,
    pub id: String,
    /// The SHA-256 of the stored value of the row.
    pub sha256: Digest,
}

/// The caller of a recorded call: the principal, the user it acts for, the session and the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalEntryCaller {
    /// The principal as `user:name` or `agent:name`.
    pub principal: String,
    /// The user that the calling agent acts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    pub session: String,
    #[serde(rename = "face")]
    pub protocol: String,
}

/// Whether a recorded call succeeded, was refused or failed. The numbers are the tags in the canonical bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournaledCallOutcomeStatus {
    /// The call was permitted and succeeded.
    #[default]
    Allowed = 1,
    /// The call was not permitted and changed nothing.
    Refused = 2,
    /// The call was permitted but failed.
    Failed = 3,
}

/// A change of one path that a journal entry records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedChange {
    /// The changed path, relative to the workspace root.
    pub path: String,
    pub kind: ChangeKind,
    /// The target path of a rename or a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    pub before: PathState,
    /// The state of the changed path after the change, or of the target path of a rename or a copy.
    pub after: PathState,
}

/// The kind of a recorded change. The numbers are the tags in the canonical bytes, so a new kind of change would need a
/// new format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Create = 1,
    Modify = 2,
    Remove = 3,
    Rename = 4,
    Copy = 5,
    MakeDir = 6,
    MakeLink = 7,
    /// Only the permission bits of the path changed.
    SetMode = 8,
    /// The path or anything below it may have changed, but the individual changes were not observed.
    Rescan = 9,
}

/// The state of a path before or after a recorded change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PathState {
    Absent,
    File {
        version: Digest,
        size: u64,
        mode: u32,
    },
    /// The journal does not describe the directory's content.
    Directory {
        mode: u32,
    },
    Link {
        /// The target of the symbolic link, as the link stores it.
        target: String,
    },
    /// The path is a directory tree described as a whole, or an item in the trash.
    Tree {
        /// The id of the trash item that holds the tree; `None` if the tree is not in the trash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trash: Option<String>,
        files: u64,
        bytes: u64,
        /// The SHA-256 of the content of a tree that is a single file; `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
    },
    /// The path is a file of unknown content, for example a file that was too large to hash.
    Unknown {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
}

/// The relation of an entry to an earlier entry or trash item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalEntryRelation {
    #[default]
    None,
    /// The number of the undone entry.
    Undoes(u64),
    /// The number of the undone entry that was redone.
    Redoes(u64),
    /// The id of the restored trash item.
    Restores(String),
    /// The entry adds a late outcome to the call that the journal entry with this number records.
    Amends(u64),
}
