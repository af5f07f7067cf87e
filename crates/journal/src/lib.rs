//! The journal's records and the proof that nobody changed them.
//!
//! Owns: what an entry is, its canonical bytes, the hash chain, the Merkle tree over the chain, signed checkpoints,
//! key rotation, streaming verification and the export form.
//! Promises: the same entry always gives the same bytes; a change of any recorded byte, a lost, added or moved entry
//! is found by [`Verifier`]; memory stays bounded whatever is fed in.
//! Never: opens a file, reads a clock, makes random numbers, or panics on foreign bytes. Seeds and times are given.
//!
//! What the proofs cannot do: whoever holds the live key can rewrite everything after the last checkpoint or head
//! that left the machine. So checkpoints and heads are handed out, and checked with
//! [`Verifier::checkpoint`] and [`Verifier::expect_head`].

mod canonical;
mod chain;
mod checkpoint;
mod digest;
mod entry;
mod export;
mod keys;
mod merkle;
mod note;
mod origin;
mod ring;
mod verify;

pub use canonical::{FORMAT, Malformed, decode, encode};
pub use chain::{genesis, link_hash};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use digest::{BadDigest, Digest};
pub use entry::{Caller, Change, ChangeKind, Decision, Entry, Link, State};
pub use export::{
    EXPORT_FORMAT, Expected, ExportError, ExportLine, ExportReport, MAX_LINE_BYTES, verify_export,
};
pub use keys::{BadKey, BadSignature, Signature, Signer, VerifyingKey};
pub use merkle::proof::{
    BadProof, ConsistencyProof, InclusionProof, ProofError, consistency_proof, inclusion_proof,
};
pub use merkle::{BadFrontier, Frontier, Leaf};
pub use note::{MAX_NOTE_BYTES, MAX_SIGNATURES};
pub use origin::{BadWorkspaceId, MAX_WORKSPACE_ID_BYTES, Origin};
pub use ring::{BadRing, KeyRecord, KeyRing};
pub use verify::{MAX_AWAITED, Tamper, TamperKind, Trusted, Verified, Verifier};
