//! Journal records and the proof of their integrity.
//!
//! This crate defines the journal entry, its canonical bytes and index, the hash chain, the Merkle tree over the chain, signed
//! checkpoints, key rotation, streaming verification and the export format. [`JournalVerifier`] detects a change of any
//! recorded byte and a lost, added or moved entry, with bounded memory. This crate does not open files, read a clock,
//! generate random numbers or panic on untrusted bytes.
//!
//! A holder of the signing key can forge all journal entries that no published checkpoint or head covers. A head is the
//! chain hash of the last entry of a journal. To detect forged entries, publish checkpoints and heads outside the
//! machine, and check them with [`JournalVerifier::push_checkpoint`] and [`JournalVerifier::expect_head`].

mod canonical;
mod chain;
mod checkpoint;
mod digest;
mod entry;
mod entry_index;
mod export;
mod key_ring;
mod keys;
mod leb128;
mod merkle;
mod signed_note;
mod verify;

pub use canonical::{FORMAT, JournalEntryDecodeError, decode_entry, encode_entry};
pub use chain::{JournalWorkspaceId, MAX_WORKSPACE_ID_BYTES, WorkspaceIdError, chain_hash, genesis_hash};
pub use checkpoint::{JournalCheckpoint, JournalCheckpointVerifyError};
pub use digest::{Digest, DigestParseError};
pub use entry::{
    ChangeKind, JournalEntry, JournalEntryCaller, JournalEntryDetails, JournalEntryRelation,
    JournaledCallOutcomeStatus, PathState, RecordedChange, RecordedMove, RecordedRowDigest, RecordedUsage,
};
pub use entry_index::{IndexedPathChange, JournalEntryIndex, index_entry};
pub use export::{
    EXPORT_FORMAT, ExportVerificationReport, JournalExportFileError, JournalExportLine, JournalTrustAnchors,
    MAX_LINE_BYTES, verify_export,
};
pub use key_ring::{JournalKeyRecord, JournalKeyTrustChain, JournalKeyTrustChainError};
pub use keys::{Ed25519Signature, InvalidSignatureError, PublicKeyParseError, Signer, VerifyingKey};
pub use leb128::{Leb128Error, read_leb128, write_leb128};
pub use merkle::proof::{
    ConsistencyProof, InclusionProof, InvalidMerkleProofError, MerkleProofCreationError, consistency_proof,
    inclusion_proof,
};
pub use merkle::{MerkleFrontier, MerkleFrontierDecodeError, MerkleLeafHash};
pub use signed_note::{MAX_NOTE_BYTES, MAX_SIGNATURES};
pub use verify::{
    AWAITED_MAX, JournalIntegrityError, JournalIntegrityErrorKind, JournalVerifier, VerifiedJournalPrefix,
    VerifiedJournalSummary,
};
