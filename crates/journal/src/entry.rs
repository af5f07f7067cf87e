//! The record of one call: who asked, what was decided, what changed.
//!
//! Owns the shape of an entry and its JSON form (derived; unknown fields are refused, because a field that is not in
//! the canonical bytes is not covered by the hash). The canonical bytes are made in `canonical`.
//! Never holds file content: content is named by version, and arguments arrive already redacted.

use serde::{Deserialize, Serialize};

use crate::Digest;

/// One record in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Place in the journal, counted from 1 without gaps.
    pub number: u64,
    /// Wall clock when the call was decided, in unix milliseconds.
    pub time_ms: i64,
    /// Who asked.
    pub caller: Caller,
    /// Request id or idempotency key, if the caller gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Name of the operation.
    pub operation: String,
    /// The dialect's name for it, such as `comma/edit_file`; nothing when it was asked for by its own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Redacted arguments as compact JSON: content is replaced by its size and sha256.
    pub arguments: String,
    /// What became of the call.
    pub decision: Decision,
    /// Kind code of a refusal or failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Version of the policy in force.
    pub policy: u64,
    /// How far the caller could go alone, where that was not all the way: `notify`, `approval_required` or `blocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The approval that let it run; for a refusal, the one that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// What changed, path by path.
    pub changes: Vec<Change>,
    /// The earlier entry or thing that this one answers.
    pub link: Link,
    /// Bytes carried by the call.
    pub bytes: u64,
    /// Time the call took, in microseconds.
    pub duration_us: u64,
}

/// Who asked, for whom, and by which way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    /// `user:name` or `agent:name`.
    pub principal: String,
    /// The user an agent acts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// The session the call belongs to.
    pub session: String,
    /// The face that carried the call.
    pub face: String,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It was permitted and done.
    Allowed,
    /// It was not permitted; nothing changed.
    Refused,
    /// It was permitted but could not be done.
    Failed,
}

/// What happened to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Path beneath the root.
    pub path: String,
    /// Kind of change.
    pub kind: ChangeKind,
    /// Where it went, for a rename or a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What stood there before.
    pub before: State,
    /// What stands there now (at `to`, for a rename or a copy).
    pub after: State,
}

/// The kinds of change. Closed: a new kind is a new format of the canonical bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A file came into being.
    Create,
    /// A file's bytes changed.
    Modify,
    /// A file, link or tree was taken away.
    Remove,
    /// Something moved to `to`.
    Rename,
    /// Something was copied to `to`.
    Copy,
    /// A directory came into being.
    MakeDir,
    /// A symbolic link came into being.
    MakeLink,
    /// Only permission bits changed.
    SetMode,
    /// Anything at this place or below may have changed; what, nobody saw.
    Rescan,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// sha256 of its bytes.
        version: Digest,
        /// Size in bytes.
        size: u64,
        /// Permission bits.
        mode: u32,
    },
    /// A directory, by itself.
    Directory {
        /// Permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Its target as stored.
        target: String,
    },
    /// A directory with everything in it, or whatever lies in the trash.
    Tree {
        /// Where it lies in the trash, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trash: Option<String>,
        /// Files in it.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// For one file alone, the sha256 of its bytes, where it was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<Digest>,
    },
    /// Something whose content nobody has looked at: changed by others, too large to be hashed, or gone too soon.
    Unknown {
        /// Its size in bytes, where that was seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
}

/// What an entry answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// Nothing earlier.
    None,
    /// Takes back an entry.
    Undoes(u64),
    /// Does an undone entry again.
    Redoes(u64),
    /// Brings back a thing from the trash, by its id.
    Restores(String),
    /// Adds an outcome learnt after the fact to an entry.
    Amends(u64),
}
