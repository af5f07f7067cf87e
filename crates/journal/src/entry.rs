//! The record of one call: the caller, the decision, the changes.
//!
//! Owns the structure of an entry and its JSON form (derived; unknown fields are rejected, because a field that is not
//! in the canonical bytes is not covered by the hash). [`canonical`](crate::canonical) makes the canonical bytes.
//! Never holds file content: content is named by version, and arguments are redacted before.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// One record in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalEntry {
    /// Position in the journal, counted from 1 without gaps.
    pub number: u64,
    /// Time of the decision, in Unix milliseconds.
    pub time_ms: i64,
    /// The caller.
    pub caller: EntryCaller,
    /// Request id or idempotency key, if the caller sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "request")]
    pub request_id: Option<String>,
    /// Name of the operation.
    pub operation: String,
    /// The dialect's tool, such as `comma/edit_file`; `None` if the operation was called by its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Redacted arguments as compact JSON: content and long texts are replaced by their size.
    pub arguments: String,
    /// The decision about the call.
    pub decision: EntryDecision,
    /// Error kind of a refusal or failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Version of the policy in force.
    #[serde(rename = "policy")]
    pub policy_version: u64,
    /// The policy tier, unless it was unrestricted: `notify`, `approval_required` or `blocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The approval that allowed the call; for a refusal, the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The changed paths.
    pub changes: Vec<RecordedChange>,
    /// The earlier entry or trash item that this entry refers to.
    #[serde(rename = "link")]
    pub relation: EntryRelation,
    /// Bytes carried by the call.
    pub bytes: u64,
    /// Time the call took, in microseconds.
    pub duration_us: u64,
}

/// The caller, the user it acts for, and the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryCaller {
    /// `user:name` or `agent:name`.
    pub principal: String,
    /// The user an agent acts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// The session of the call.
    pub session: String,
    /// The protocol of the call.
    #[serde(rename = "face")]
    pub protocol: String,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryDecision {
    /// It was permitted and carried out.
    Allowed,
    /// It was not permitted; nothing changed.
    Refused,
    /// It was permitted but failed.
    Failed,
}

/// A change of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedChange {
    /// Path relative to the root.
    pub path: String,
    /// Kind of change.
    pub kind: ChangeKind,
    /// The target of a rename or a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The state before.
    pub before: PathState,
    /// The state after (at `to`, for a rename or a copy).
    pub after: PathState,
}

/// The kinds of change. Closed: a new kind is a new format of the canonical bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A file was created.
    Create,
    /// The content of a file changed.
    Modify,
    /// A file, link or tree was removed.
    Remove,
    /// The path was renamed to `to`.
    Rename,
    /// The path was copied to `to`.
    Copy,
    /// A directory was created.
    MakeDir,
    /// A symbolic link was created.
    MakeLink,
    /// Only permission bits changed.
    SetMode,
    /// This path or anything below may have changed; the changes were not observed.
    Rescan,
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PathState {
    /// The path does not exist.
    Absent,
    /// A regular file.
    File {
        /// SHA-256 of its content.
        version: Digest,
        /// Size in bytes.
        size: u64,
        /// Permission bits.
        mode: u32,
    },
    /// A directory without its content.
    Directory {
        /// Permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Its target as stored.
        target: String,
    },
    /// A directory with its content, or any item in the trash.
    Tree {
        /// Its id in the trash, if it is there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trash: Option<String>,
        /// The number of files in it.
        files: u64,
        /// The total size of the files in bytes.
        bytes: u64,
        /// For a single file, the SHA-256 of its content, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
    },
    /// A file whose content was not read: changed by another program, too large to hash, or removed too soon.
    Unknown {
        /// Its size in bytes, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
}

/// The relation of an entry to an earlier entry or trash item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryRelation {
    /// No relation.
    None,
    /// Undoes an entry.
    Undoes(u64),
    /// Redoes an undone entry.
    Redoes(u64),
    /// Restores a trash item, by its id.
    Restores(String),
    /// Adds an outcome to an entry that became known later.
    Amends(u64),
}
