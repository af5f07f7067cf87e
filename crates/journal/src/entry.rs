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
    /// The time at which the server decided about the call, in Unix milliseconds.
    pub time_ms: i64,
    /// The caller of the recorded call, with its session.
    pub caller: JournalEntryCaller,
    /// The request id or idempotency key that the caller sent, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "request")]
    pub request_id: Option<String>,
    /// The name of the operation that was called.
    pub operation: String,
    /// The dialect's tool, such as `comma/edit_file`; `None` if the operation was called by its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments of the call as compact JSON; file content and long texts are replaced by their size.
    pub arguments: String,
    /// Whether the call succeeded, was refused or failed.
    pub decision: JournaledCallOutcomeStatus,
    /// The error kind of a call that was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The version of the policy that was in force during the call.
    #[serde(rename = "policy")]
    pub policy_version: u64,
    /// The supervision tier of the call (`notify`, `approval_required` or `blocked`); `None` means unrestricted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The id of the approval that allowed the call, or that a refused call needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The changes that the recorded call made.
    pub changes: Vec<RecordedChange>,
    /// The earlier entry or trash item that the call undid, redid, restored or amended.
    #[serde(rename = "link")]
    pub relation: JournalEntryRelation,
    /// The number of content bytes that the call read or wrote.
    pub bytes: u64,
    /// The duration of the call, in microseconds.
    pub duration_us: u64,
}

/// The caller of a recorded call: the principal, the user it acts for, the session and the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalEntryCaller {
    /// The principal who made the call, as `user:name` or `agent:name`.
    pub principal: String,
    /// The user that the calling agent acts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// The id of the session in which the call was made.
    pub session: String,
    /// The protocol through which the call came.
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
    /// The kind of the recorded change.
    pub kind: ChangeKind,
    /// The target path of a rename or a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The state of the changed path before the change.
    pub before: PathState,
    /// The state of the changed path after the change, or of the target path of a rename or a copy.
    pub after: PathState,
}

/// The kind of a recorded change. The numbers are the tags in the canonical bytes, so a new kind of change would need a
/// new format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A file was created.
    Create = 1,
    /// The content of a file changed.
    Modify = 2,
    /// A file, link or tree was removed.
    Remove = 3,
    /// The path was renamed to the target path of the change.
    Rename = 4,
    /// The path was copied to the target path of the change.
    Copy = 5,
    /// A directory was created.
    MakeDir = 6,
    /// A symbolic link was created.
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
    /// The path does not exist.
    Absent,
    /// The path is a regular file.
    File {
        /// The SHA-256 of the file's content.
        version: Digest,
        /// The size of the file in bytes.
        size: u64,
        /// The permission bits of the file.
        mode: u32,
    },
    /// The path is a directory; the journal does not describe the directory's content.
    Directory {
        /// The permission bits of the directory.
        mode: u32,
    },
    /// The path is a symbolic link.
    Link {
        /// The target of the symbolic link, as the link stores it.
        target: String,
    },
    /// The path is a directory tree described as a whole, or an item in the trash.
    Tree {
        /// The id of the trash item that holds the tree; `None` if the tree is not in the trash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trash: Option<String>,
        /// The number of files in the tree.
        files: u64,
        /// The total size of the files in the tree, in bytes.
        bytes: u64,
        /// The SHA-256 of the content of a tree that is a single file; `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
    },
    /// The path is a file of unknown content, for example a file that was too large to hash.
    Unknown {
        /// The size of the file in bytes, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
}

/// The relation of an entry to an earlier entry or trash item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalEntryRelation {
    /// The entry does not refer to an earlier entry or trash item.
    #[default]
    None,
    /// The recorded call undid the journal entry with this number.
    Undoes(u64),
    /// The recorded call redid the undone journal entry with this number.
    Redoes(u64),
    /// The recorded call restored the trash item with this id.
    Restores(String),
    /// The entry adds a late outcome to the call that the journal entry with this number records.
    Amends(u64),
}
