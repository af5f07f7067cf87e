//! Integrity errors of a journal and their position.

use serde::Serialize;

use crate::CheckpointError;

/// The first error found in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("entry {number}: {kind}")]
pub struct IntegrityError {
    /// The kind of error.
    pub kind: IntegrityErrorKind,
    /// The first entry that is not verified. A mismatching checkpoint only shows an error after the last matching one,
    /// so this is the entry after that one.
    pub number: u64,
    /// Size of the checkpoint or number of the head that showed the error, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
}

/// The kinds of integrity errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum IntegrityErrorKind {
    /// An entry is missing.
    #[error("missing")]
    Missing,
    /// An entry occurs twice.
    #[error("duplicate")]
    Duplicate,
    /// An entry is at another entry's position.
    #[error("out of order")]
    OutOfOrder,
    /// An entry's bytes do not match its hash, or its hash does not follow the previous one.
    #[error("its bytes do not match the recorded hash")]
    HashMismatch,
    /// The hash matches but the bytes are not an entry.
    #[error("its bytes are not a valid record")]
    Malformed,
    /// The tree over the entries has another root than the checkpoint.
    #[error("the entries do not match the root of the checkpoint")]
    RootMismatch,
    /// The chain has another hash than the one saved elsewhere.
    #[error("the chain hash differs from the saved one")]
    HeadMismatch,
    /// Two signed checkpoints of one size differ.
    #[error("two signed checkpoints of one size differ")]
    Fork,
    /// The journal ends before a known checkpoint or head.
    #[error("the journal ends before a known checkpoint or head")]
    Truncated,
    /// A checkpoint's signature is not valid.
    #[error("the signature of a checkpoint is not valid")]
    BadSignature,
    /// A checkpoint is signed by a key that is not the workspace's.
    #[error("a checkpoint is signed by an unknown key")]
    UnknownKey,
    /// A checkpoint is signed by a replaced key.
    #[error("a checkpoint is signed by a retired key")]
    RetiredKey,
    /// A checkpoint is signed by a key that becomes active later.
    #[error("a checkpoint is signed by a key that is not active yet")]
    PrematureKey,
    /// A checkpoint of another workspace.
    #[error("the checkpoint belongs to another workspace")]
    WrongOrigin,
    /// A checkpoint cannot be parsed.
    #[error("a checkpoint cannot be parsed")]
    BadCheckpoint,
    /// A checkpoint or head was added after its entries and could not be compared.
    #[error("a checkpoint or head was added after its entries")]
    Late,
    /// More checkpoints and heads wait for entries than [`AWAITED_MAX`](super::AWAITED_MAX).
    #[error("too many checkpoints and heads wait for entries")]
    TooManyAwaited,
}

impl IntegrityError {
    pub(crate) fn at_entry(kind: IntegrityErrorKind, number: u64) -> Self {
        Self { kind, number, checkpoint: None }
    }

    pub(super) fn at_checkpoint(kind: IntegrityErrorKind, number: u64, size: u64) -> Self {
        Self { kind, number, checkpoint: Some(size) }
    }

    pub(super) fn from_checkpoint_error(error: CheckpointError, number: u64) -> Self {
        let kind = match error {
            CheckpointError::Malformed { .. } => IntegrityErrorKind::BadCheckpoint,
            CheckpointError::WrongOrigin => IntegrityErrorKind::WrongOrigin,
            CheckpointError::BadSignature { .. } => IntegrityErrorKind::BadSignature,
            CheckpointError::UnknownKey { .. } => IntegrityErrorKind::UnknownKey,
            CheckpointError::RetiredKey { .. } => IntegrityErrorKind::RetiredKey,
            CheckpointError::KeyNotYetActive { .. } => IntegrityErrorKind::PrematureKey,
        };
        Self { kind, number, checkpoint: error.size() }
    }
}
