//! Streaming verification of a journal.
//!
//! The verifier reads every entry once, in order, with bounded memory. The first error of a verification is final, even
//! if a caller ignores it. A saved head or checkpoint must be added before the verifier reads the entries that it
//! covers.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    Digest, JournalCheckpoint, JournalCheckpointVerifyError, JournalEntry, JournalKeyTrustChain, MerkleFrontier,
    MerkleLeafHash, chain_hash, decode_entry, genesis_hash, merkle::MerkleFrontierDecodeError,
};

/// The largest number of checkpoints and heads that a verifier holds until it reaches their entries.
pub const AWAITED_MAX: usize = 65_536;

/// The first integrity error that a verification found in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("entry {number}: {kind}")]
pub struct JournalIntegrityError {
    pub kind: JournalIntegrityErrorKind,
    /// The number of the first journal entry that is not verified. After a checkpoint mismatch, the number is that of
    /// the first entry after the last matching checkpoint.
    pub number: u64,
    /// The size of the checkpoint, or the entry number of the head, that caused the integrity error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
}

/// The kind of an integrity error of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum JournalIntegrityErrorKind {
    #[error("missing")]
    Missing,
    #[error("duplicate")]
    Duplicate,
    #[error("out of order")]
    OutOfOrder,
    /// The bytes of a journal entry and the previous hash do not give the recorded hash.
    #[error("its bytes do not match the recorded hash")]
    HashMismatch,
    #[error("its bytes are not a valid record")]
    Malformed,
    /// The index rows by which a store finds a journal entry are not those that the entry gives.
    #[error("its index rows do not match its bytes")]
    IndexMismatch,
    #[error("the entries do not match the root of the checkpoint")]
    RootMismatch,
    /// The chain hash of a journal entry differs from a checkpoint or from a head saved elsewhere.
    #[error("the chain hash differs from the saved one")]
    HeadMismatch,
    #[error("two signed checkpoints of one size differ")]
    Fork,
    #[error("the journal ends before a known checkpoint or head")]
    Truncated,
    #[error("the signature of a checkpoint is not valid")]
    BadSignature,
    #[error("a checkpoint is signed by an unknown key")]
    UnknownKey,
    #[error("a checkpoint is signed by a retired key")]
    RetiredKey,
    #[error("a checkpoint is signed by a key that is not active yet")]
    PrematureKey,
    #[error("the checkpoint belongs to another workspace")]
    WrongOrigin,
    #[error("a checkpoint cannot be parsed")]
    BadCheckpoint,
    #[error("a checkpoint or head was added after the entries that it covers")]
    Late,
    /// More than [`AWAITED_MAX`] checkpoints and heads wait for later entries.
    #[error("too many checkpoints and heads wait for later entries")]
    TooManyAwaited,
}

impl JournalIntegrityErrorKind {
    /// The integrity error of this kind at a journal entry.
    pub fn at_entry(self, number: u64) -> JournalIntegrityError {
        JournalIntegrityError { kind: self, number, checkpoint: None }
    }

    fn at_checkpoint(self, number: u64, size: u64) -> JournalIntegrityError {
        JournalIntegrityError { kind: self, number, checkpoint: Some(size) }
    }
}

impl JournalIntegrityError {
    fn from_checkpoint_error(error: JournalCheckpointVerifyError, number: u64) -> Self {
        let kind = match error {
            JournalCheckpointVerifyError::Malformed(_) => JournalIntegrityErrorKind::BadCheckpoint,
            JournalCheckpointVerifyError::WrongOrigin => JournalIntegrityErrorKind::WrongOrigin,
            JournalCheckpointVerifyError::BadSignature(_) => JournalIntegrityErrorKind::BadSignature,
            JournalCheckpointVerifyError::UnknownKey(_) => JournalIntegrityErrorKind::UnknownKey,
            JournalCheckpointVerifyError::RetiredKey(_) => JournalIntegrityErrorKind::RetiredKey,
            JournalCheckpointVerifyError::KeyNotYetActive(_) => JournalIntegrityErrorKind::PrematureKey,
        };
        Self { kind, number, checkpoint: error.size() }
    }
}

/// A verified prefix of a journal, from which verification can resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedJournalPrefix {
    /// The chain hash of the last entry of the prefix, or the genesis hash of an empty prefix.
    pub head: Digest,
    pub frontier: MerkleFrontier,
}

impl VerifiedJournalPrefix {
    /// Encodes the verified prefix for storage. An attacker can change a stored prefix, so a resumed verification also
    /// needs a trusted checkpoint of the prefix.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.frontier.to_bytes()[..]].concat()
    }

    /// Decodes the output of [`VerifiedJournalPrefix::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MerkleFrontierDecodeError> {
        let (head, frontier) = bytes.split_first_chunk().ok_or(MerkleFrontierDecodeError)?;
        Ok(Self { head: Digest(*head), frontier: MerkleFrontier::from_bytes(frontier)? })
    }
}

/// The result of the successful verification of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedJournalSummary {
    pub prefix: VerifiedJournalPrefix,
    /// The number of the last journal entry that a signed checkpoint covers. Only the hash chain covers entries after
    /// the last checkpoint.
    pub covered_by_checkpoint: u64,
    pub checkpoint_count: u64,
}

impl VerifiedJournalSummary {
    /// The number of verified journal entries.
    pub fn size(&self) -> u64 {
        self.prefix.frontier.size()
    }

    /// The Merkle root over all verified journal entries.
    pub fn root(&self) -> Digest {
        self.prefix.frontier.root()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CheckpointClaim {
    root: Digest,
    head: Digest,
}

/// A streaming verifier that checks a journal entry by entry.
#[derive(Debug)]
pub struct JournalVerifier {
    ring: JournalKeyTrustChain,
    frontier: MerkleFrontier,
    head: Digest,
    covered_by_checkpoint: u64,
    checkpoint_count: u64,
    /// The checkpoints that the verifier has not reached yet, by tree size.
    claims: BTreeMap<u64, CheckpointClaim>,
    /// The saved hashes of entries that the verifier has not reached yet, by entry number.
    expected_heads: BTreeMap<u64, Digest>,
    first_error: Option<JournalIntegrityError>,
}

impl JournalVerifier {
    /// Creates a verifier that starts at the first journal entry of the workspace of `ring`.
    pub fn new(ring: JournalKeyTrustChain) -> Self {
        let head = genesis_hash(ring.origin());
        Self::resume(ring, VerifiedJournalPrefix { head, frontier: MerkleFrontier::new() })
    }

    /// Resumes verification after a verified prefix. A caller that resumes must pass the trusted checkpoint of the
    /// prefix to [`JournalVerifier::push_checkpoint`]. The trusted checkpoint proves that the stored prefix was not
    /// changed.
    pub fn resume(ring: JournalKeyTrustChain, trusted: VerifiedJournalPrefix) -> Self {
        let VerifiedJournalPrefix { head, frontier } = trusted;
        Self {
            ring,
            frontier,
            head,
            covered_by_checkpoint: 0,
            checkpoint_count: 0,
            claims: BTreeMap::new(),
            expected_heads: BTreeMap::new(),
            first_error: None,
        }
    }

    /// Verifies the next entry of the journal and its recorded hash, and returns the entry.
    pub fn push_entry(
        &mut self,
        number: u64,
        canonical: &[u8],
        recorded: &Digest,
    ) -> Result<JournalEntry, JournalIntegrityError> {
        self.run_step(|verifier| {
            verifier.check_claims()?;
            let next = verifier.next();
            match number.cmp(&next) {
                // Every entry with a smaller number has already been verified.
                Ordering::Less => return Err(JournalIntegrityErrorKind::Duplicate.at_entry(number)),
                Ordering::Greater => return Err(JournalIntegrityErrorKind::Missing.at_entry(next)),
                Ordering::Equal => {}
            }
            let decoded = decode_entry(canonical);
            // If a valid record has a different number, it was moved to this position, even if its recorded hash matches.
            if decoded.as_ref().is_ok_and(|entry| entry.number != number) {
                return Err(JournalIntegrityErrorKind::OutOfOrder.at_entry(number));
            }
            let hash = chain_hash(&verifier.head, canonical);
            if hash != *recorded {
                return Err(JournalIntegrityErrorKind::HashMismatch.at_entry(number));
            }
            let entry = decoded.map_err(|_malformed| JournalIntegrityErrorKind::Malformed.at_entry(number))?;
            verifier.frontier.append(MerkleLeafHash::from_entry_hash(&hash));
            verifier.head = hash;
            Ok(entry)
        })
    }

    /// Adds a checkpoint, which is compared with the journal when verification reaches its size. A checkpoint must not
    /// be smaller than the number of entries verified so far.
    pub fn push_checkpoint(&mut self, note: &str) -> Result<(), JournalIntegrityError> {
        self.run_step(|verifier| {
            let suspect = verifier.covered_by_checkpoint + 1;
            let JournalCheckpoint { size, root, head, .. } = JournalCheckpoint::verify(note, &verifier.ring)
                .map_err(|error| JournalIntegrityError::from_checkpoint_error(error, suspect))?;
            if size < verifier.size() {
                return Err(JournalIntegrityErrorKind::Late.at_checkpoint(suspect, size));
            }
            let claim = CheckpointClaim { root, head };
            match verifier.claims.insert(size, claim) {
                Some(other) if other != claim => Err(JournalIntegrityErrorKind::Fork.at_checkpoint(suspect, size)),
                Some(_same) => Ok(()),
                None => verifier.check_awaited_limit(size),
            }
        })
    }

    /// Adds the number and hash of a journal entry that were saved elsewhere. Verification fails if the hash of the
    /// journal entry differs from the saved hash.
    pub fn expect_head(&mut self, number: u64, hash: Digest) -> Result<(), JournalIntegrityError> {
        self.run_step(|verifier| {
            if number < verifier.size() {
                return Err(JournalIntegrityErrorKind::Late.at_entry(number));
            }
            match verifier.expected_heads.insert(number, hash) {
                Some(other) if other != hash => Err(JournalIntegrityErrorKind::HeadMismatch.at_entry(number)),
                Some(_same) => Ok(()),
                None => verifier.check_awaited_limit(number),
            }
        })
    }

    /// Ends the verification; a journal that ends before an added checkpoint or head is an error.
    pub fn finish(mut self) -> Result<VerifiedJournalSummary, JournalIntegrityError> {
        self.run_step(Self::check_claims)?;
        let awaited = [self.claims.keys().next(), self.expected_heads.keys().next()].into_iter().flatten().min();
        if let Some(&size) = awaited {
            return Err(JournalIntegrityErrorKind::Truncated.at_checkpoint(self.next(), size));
        }
        Ok(VerifiedJournalSummary {
            prefix: VerifiedJournalPrefix { head: self.head, frontier: self.frontier },
            covered_by_checkpoint: self.covered_by_checkpoint,
            checkpoint_count: self.checkpoint_count,
        })
    }

    /// The number of journal entries verified so far.
    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    fn next(&self) -> u64 {
        self.size() + 1
    }

    /// Runs a step unless an earlier step failed, and remembers the first error.
    fn run_step<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, JournalIntegrityError>,
    ) -> Result<T, JournalIntegrityError> {
        let outcome = self.first_error.map_or_else(|| step(self), Err);
        self.first_error = outcome.as_ref().err().copied();
        outcome
    }

    fn check_awaited_limit(&self, size: u64) -> Result<(), JournalIntegrityError> {
        if self.claims.len() + self.expected_heads.len() <= AWAITED_MAX {
            Ok(())
        } else {
            Err(JournalIntegrityErrorKind::TooManyAwaited.at_checkpoint(self.next(), size))
        }
    }

    fn check_claims(&mut self) -> Result<(), JournalIntegrityError> {
        let size = self.size();
        let suspect = self.covered_by_checkpoint + 1;
        if let Some(claim) = self.claims.remove(&size) {
            if claim.root != self.frontier.root() {
                return Err(JournalIntegrityErrorKind::RootMismatch.at_checkpoint(suspect, size));
            }
            if claim.head != self.head {
                return Err(JournalIntegrityErrorKind::HeadMismatch.at_checkpoint(suspect, size));
            }
            self.covered_by_checkpoint = size;
            self.checkpoint_count += 1;
        }
        if self.expected_heads.remove(&size).is_some_and(|expected| expected != self.head) {
            return Err(JournalIntegrityErrorKind::HeadMismatch.at_entry(size));
        }
        Ok(())
    }
}
