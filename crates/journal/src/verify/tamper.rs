//! What can be wrong with a journal, and where.

use serde::Serialize;

use crate::CheckpointError;

/// The first fault found in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("entry {number}: {kind}")]
pub struct Tamper {
    /// What is wrong.
    pub kind: TamperKind,
    /// The first entry that cannot be believed. A checkpoint only tells that something is wrong since the last one
    /// that was right, so there it is the entry after that one.
    pub number: u64,
    /// Size of the checkpoint or number of the head that told, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
}

/// The kinds of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum TamperKind {
    /// An entry is not there.
    #[error("missing")]
    Missing,
    /// An entry is there a second time.
    #[error("there twice")]
    Duplicate,
    /// An entry stands at another entry's place.
    #[error("out of order")]
    OutOfOrder,
    /// An entry's bytes do not give its hash, or its hash does not follow the one before.
    #[error("its bytes do not give the recorded hash")]
    HashMismatch,
    /// The hash is right but the bytes are no entry.
    #[error("its bytes are not a record")]
    Malformed,
    /// The tree over the entries has another root than the checkpoint.
    #[error("the entries do not give the root of the checkpoint")]
    RootMismatch,
    /// The chain has another hash here than the one kept elsewhere.
    #[error("the chain has another hash here than the one that was kept")]
    HeadMismatch,
    /// Two signed checkpoints of one size differ.
    #[error("two signed checkpoints of one size differ")]
    Fork,
    /// The journal ends before a checkpoint or head that is known.
    #[error("the journal ends before a known checkpoint or head")]
    Truncated,
    /// A checkpoint's signature is not valid.
    #[error("the signature of a checkpoint is not valid")]
    BadSignature,
    /// A checkpoint is signed by a key that is not the workspace's.
    #[error("a checkpoint is signed by an unknown key")]
    UnknownKey,
    /// A checkpoint is signed by a key that had been replaced.
    #[error("a checkpoint is signed by a retired key")]
    RetiredKey,
    /// A checkpoint is signed by a key that begins later.
    #[error("a checkpoint is signed by a key that begins later")]
    PrematureKey,
    /// A checkpoint of another workspace.
    #[error("a checkpoint of another workspace")]
    WrongOrigin,
    /// A checkpoint that cannot be read.
    #[error("a checkpoint that cannot be read")]
    BadCheckpoint,
    /// A checkpoint or head came after the entries it speaks of, so it could not be compared.
    #[error("a checkpoint or head came after the entries it speaks of")]
    Late,
    /// More checkpoints and heads wait for entries than are held.
    #[error("too many checkpoints and heads wait for entries")]
    TooManyAwaited,
}

impl Tamper {
    pub(crate) fn at_entry(kind: TamperKind, number: u64) -> Self {
        Self { kind, number, checkpoint: None }
    }

    pub(super) fn at_checkpoint(kind: TamperKind, number: u64, size: u64) -> Self {
        Self { kind, number, checkpoint: Some(size) }
    }

    pub(super) fn of_note(error: CheckpointError, number: u64) -> Self {
        let kind = match error {
            CheckpointError::Malformed { .. } => TamperKind::BadCheckpoint,
            CheckpointError::WrongOrigin => TamperKind::WrongOrigin,
            CheckpointError::BadSignature { .. } => TamperKind::BadSignature,
            CheckpointError::UnknownKey { .. } => TamperKind::UnknownKey,
            CheckpointError::RetiredKey { .. } => TamperKind::RetiredKey,
            CheckpointError::PrematureKey { .. } => TamperKind::PrematureKey,
        };
        Self { kind, number, checkpoint: error.size() }
    }
}
