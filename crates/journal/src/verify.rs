//! Streaming verification of a journal.
//!
//! The verifier reads every entry once, in order, with bounded memory. The first error of a verification is final, even
//! if a caller ignores it. Because entries are read only once, a head or checkpoint that was saved elsewhere must be
//! added before the entries that it covers.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    Digest, JournalCheckpoint, JournalCheckpointError, JournalKeyTrustChain, MerkleFrontier, MerkleLeafHash,
    chain_hash, decode_entry, genesis_hash, merkle::MerkleFrontierDecodeError,
};

/// The largest number of checkpoints and heads that may wait for later entries.
pub const AWAITED_MAX: usize = 65_536;

/// The first error found in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("entry {number}: {kind}")]
pub struct JournalIntegrityError {
    /// The kind of the integrity error.
    pub kind: JournalIntegrityErrorKind,
    /// The number of the first entry that is not verified. If a checkpoint does not match, any entry since the last
    /// matching checkpoint may be wrong, so the number is that of the first of these entries.
    pub number: u64,
    /// The size of the checkpoint that the error is about. For a head that still waits for its entry, the number of
    /// that entry. `None` for other errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
}

/// The kind of an integrity error of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum JournalIntegrityErrorKind {
    /// A journal entry is missing.
    #[error("missing")]
    Missing,
    /// A journal entry occurs twice.
    #[error("duplicate")]
    Duplicate,
    /// A journal entry is at the position of another entry.
    #[error("out of order")]
    OutOfOrder,
    /// The bytes of an entry do not match its hash, or its hash does not follow from the previous hash.
    #[error("its bytes do not match the recorded hash")]
    HashMismatch,
    /// The recorded hash matches, but the bytes cannot be decoded as a journal entry.
    #[error("its bytes are not a valid record")]
    Malformed,
    /// The Merkle root over the journal entries differs from the root in a checkpoint.
    #[error("the entries do not match the root of the checkpoint")]
    RootMismatch,
    /// The chain hash of an entry differs from the hash in a checkpoint, or from a head that was saved elsewhere.
    #[error("the chain hash differs from the saved one")]
    HeadMismatch,
    /// Two signed checkpoints of the same journal size differ.
    #[error("two signed checkpoints of one size differ")]
    Fork,
    /// The journal ends before a known checkpoint or head.
    #[error("the journal ends before a known checkpoint or head")]
    Truncated,
    /// The signature of a checkpoint is not valid.
    #[error("the signature of a checkpoint is not valid")]
    BadSignature,
    /// A checkpoint is signed by a key that does not belong to the workspace.
    #[error("a checkpoint is signed by an unknown key")]
    UnknownKey,
    /// A checkpoint is signed by a key that was already replaced.
    #[error("a checkpoint is signed by a retired key")]
    RetiredKey,
    /// A checkpoint is signed by a key that becomes active later.
    #[error("a checkpoint is signed by a key that is not active yet")]
    PrematureKey,
    /// A checkpoint belongs to another workspace.
    #[error("the checkpoint belongs to another workspace")]
    WrongOrigin,
    /// A checkpoint cannot be parsed.
    #[error("a checkpoint cannot be parsed")]
    BadCheckpoint,
    /// A checkpoint or head was added too late, after the entries that it covers, so it could not be compared with
    /// them.
    #[error("a checkpoint or head was added after the entries that it covers")]
    Late,
    /// More than [`AWAITED_MAX`] checkpoints and heads wait for later entries.
    #[error("too many checkpoints and heads wait for later entries")]
    TooManyAwaited,
}

impl JournalIntegrityError {
    pub(crate) fn at_entry(kind: JournalIntegrityErrorKind, number: u64) -> Self {
        Self { kind, number, checkpoint: None }
    }

    fn at_checkpoint(kind: JournalIntegrityErrorKind, number: u64, size: u64) -> Self {
        Self { kind, number, checkpoint: Some(size) }
    }

    fn from_checkpoint_error(error: JournalCheckpointError, number: u64) -> Self {
        let kind = match error {
            JournalCheckpointError::Malformed(_) => JournalIntegrityErrorKind::BadCheckpoint,
            JournalCheckpointError::WrongOrigin => JournalIntegrityErrorKind::WrongOrigin,
            JournalCheckpointError::BadSignature(_) => JournalIntegrityErrorKind::BadSignature,
            JournalCheckpointError::UnknownKey(_) => JournalIntegrityErrorKind::UnknownKey,
            JournalCheckpointError::RetiredKey(_) => JournalIntegrityErrorKind::RetiredKey,
            JournalCheckpointError::KeyNotYetActive(_) => JournalIntegrityErrorKind::PrematureKey,
        };
        Self { kind, number, checkpoint: error.size() }
    }
}

/// A verified prefix of a journal, from which verification can resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedJournalPrefix {
    /// The hash of the last entry of the prefix; for an empty prefix, the genesis hash.
    pub head: Digest,
    /// The Merkle frontier over all entries of the prefix.
    pub frontier: MerkleFrontier,
}

impl VerifiedJournalPrefix {
    /// The bytes in which the verified prefix is stored. An attacker who changes the journal can also change a prefix
    /// that is stored beside it, so a verifier that resumes also needs the checkpoint of the prefix.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.frontier.to_bytes()[..]].concat()
    }

    /// Parses the output of [`VerifiedJournalPrefix::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MerkleFrontierDecodeError> {
        let (head, frontier) = bytes.split_first_chunk().ok_or(MerkleFrontierDecodeError)?;
        Ok(Self { head: Digest(*head), frontier: MerkleFrontier::from_bytes(frontier)? })
    }
}

/// The result of the successful verification of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedJournalSummary {
    /// The verified prefix at the end of the journal.
    pub prefix: VerifiedJournalPrefix,
    /// The number of the last entry that a signed checkpoint covers; only the hash chain covers later entries.
    pub covered_by_checkpoint: u64,
    /// The number of verified checkpoints.
    pub checkpoint_count: u64,
}

impl VerifiedJournalSummary {
    /// The number of verified entries.
    pub fn size(&self) -> u64 {
        self.prefix.frontier.size()
    }

    /// The Merkle root over all verified entries.
    pub fn root(&self) -> Digest {
        self.prefix.frontier.root()
    }
}

/// The Merkle root and the head that a checkpoint states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CheckpointClaim {
    root: Digest,
    head: Digest,
}

/// Verifies a journal entry by entry.
#[derive(Debug)]
pub struct JournalVerifier {
    ring: JournalKeyTrustChain,
    frontier: MerkleFrontier,
    head: Digest,
    covered_by_checkpoint: u64,
    checkpoint_count: u64,
    /// Checkpoints that wait for later entries, by their size.
    claims: BTreeMap<u64, CheckpointClaim>,
    /// Hashes of entries that were saved elsewhere and wait for later entries, by entry number.
    expected_heads: BTreeMap<u64, Digest>,
    first_error: Option<JournalIntegrityError>,
}

impl JournalVerifier {
    /// Creates a verifier for the workspace of `ring`, which starts at the first entry.
    pub fn new(ring: JournalKeyTrustChain) -> Self {
        let head = genesis_hash(ring.origin());
        Self::resume(ring, VerifiedJournalPrefix { head, frontier: MerkleFrontier::new() })
    }

    /// Resumes verification after a verified prefix. After resuming, pass the trusted checkpoint of the prefix to
    /// [`JournalVerifier::push_checkpoint`], to prove that the stored prefix was not changed.
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

    /// Verifies the next entry of the journal and its recorded hash.
    pub fn push_entry(
        &mut self,
        number: u64,
        canonical: &[u8],
        recorded: &Digest,
    ) -> Result<(), JournalIntegrityError> {
        let outcome = self.ensure_not_failed().and_then(|()| self.try_push_entry(number, canonical, recorded));
        self.remember_error(outcome)
    }

    /// Adds a checkpoint, which is compared with the journal when verification reaches its size. The checkpoint must
    /// not be smaller than the number of entries verified so far, because these cannot be compared again.
    pub fn push_checkpoint(&mut self, note: &str) -> Result<(), JournalIntegrityError> {
        let outcome = self.ensure_not_failed().and_then(|()| self.try_push_checkpoint(note));
        self.remember_error(outcome)
    }

    /// Adds the number and hash of an entry that were saved elsewhere; verification fails if the journal has another
    /// hash.
    pub fn expect_head(&mut self, number: u64, hash: Digest) -> Result<(), JournalIntegrityError> {
        let outcome = self.ensure_not_failed().and_then(|()| self.try_expect_head(number, hash));
        self.remember_error(outcome)
    }

    /// Ends the verification, with an error if the journal ends before an added checkpoint or head.
    pub fn finish(mut self) -> Result<VerifiedJournalSummary, JournalIntegrityError> {
        self.ensure_not_failed()?;
        self.check_claims()?;
        let awaited = [self.claims.keys().next(), self.expected_heads.keys().next()].into_iter().flatten().min();
        if let Some(&size) = awaited {
            return Err(JournalIntegrityError::at_checkpoint(JournalIntegrityErrorKind::Truncated, self.next(), size));
        }
        Ok(VerifiedJournalSummary {
            prefix: VerifiedJournalPrefix { head: self.head, frontier: self.frontier },
            covered_by_checkpoint: self.covered_by_checkpoint,
            checkpoint_count: self.checkpoint_count,
        })
    }

    /// The number of verified entries.
    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    fn next(&self) -> u64 {
        self.size() + 1
    }

    fn ensure_not_failed(&self) -> Result<(), JournalIntegrityError> {
        self.first_error.map_or(Ok(()), Err)
    }

    fn remember_error(&mut self, outcome: Result<(), JournalIntegrityError>) -> Result<(), JournalIntegrityError> {
        self.first_error = outcome.err();
        outcome
    }

    fn try_push_entry(
        &mut self,
        number: u64,
        canonical: &[u8],
        recorded: &Digest,
    ) -> Result<(), JournalIntegrityError> {
        self.check_claims()?;
        let next = self.next();
        match number.cmp(&next) {
            // Every entry with a smaller number has already been verified.
            Ordering::Less => {
                return Err(JournalIntegrityError::at_entry(JournalIntegrityErrorKind::Duplicate, number));
            }
            Ordering::Greater => return Err(JournalIntegrityError::at_entry(JournalIntegrityErrorKind::Missing, next)),
            Ordering::Equal => {}
        }
        let decoded = decode_entry(canonical);
        // If a valid record has a different number, it was moved to this position, even if its recorded hash matches.
        if decoded.as_ref().is_ok_and(|entry| entry.number != number) {
            return Err(JournalIntegrityError::at_entry(JournalIntegrityErrorKind::OutOfOrder, number));
        }
        let hash = chain_hash(&self.head, canonical);
        if hash != *recorded {
            return Err(JournalIntegrityError::at_entry(JournalIntegrityErrorKind::HashMismatch, number));
        }
        decoded.map_err(|_malformed| JournalIntegrityError::at_entry(JournalIntegrityErrorKind::Malformed, number))?;
        self.frontier.append(MerkleLeafHash::from_entry_hash(&hash));
        self.head = hash;
        Ok(())
    }

    fn try_push_checkpoint(&mut self, note: &str) -> Result<(), JournalIntegrityError> {
        let suspect = self.covered_by_checkpoint + 1;
        let JournalCheckpoint { size, root, head, .. } = JournalCheckpoint::verify(note, &self.ring)
            .map_err(|error| JournalIntegrityError::from_checkpoint_error(error, suspect))?;
        if size < self.size() {
            return Err(JournalIntegrityError::at_checkpoint(JournalIntegrityErrorKind::Late, suspect, size));
        }
        let claim = CheckpointClaim { root, head };
        match self.claims.insert(size, claim) {
            Some(other) if other != claim => {
                Err(JournalIntegrityError::at_checkpoint(JournalIntegrityErrorKind::Fork, suspect, size))
            }
            Some(_same) => Ok(()),
            None => self.check_awaited_limit(size),
        }
    }

    fn try_expect_head(&mut self, number: u64, hash: Digest) -> Result<(), JournalIntegrityError> {
        if number < self.size() {
            return Err(JournalIntegrityError::at_entry(JournalIntegrityErrorKind::Late, number));
        }
        match self.expected_heads.insert(number, hash) {
            Some(other) if other != hash => {
                Err(JournalIntegrityError::at_entry(JournalIntegrityErrorKind::HeadMismatch, number))
            }
            Some(_same) => Ok(()),
            None => self.check_awaited_limit(number),
        }
    }

    fn check_awaited_limit(&self, size: u64) -> Result<(), JournalIntegrityError> {
        if self.claims.len() + self.expected_heads.len() <= AWAITED_MAX {
            Ok(())
        } else {
            Err(JournalIntegrityError::at_checkpoint(JournalIntegrityErrorKind::TooManyAwaited, self.next(), size))
        }
    }

    /// If a checkpoint or a head was added for exactly this number of entries, compares it with the verified entries.
    fn check_claims(&mut self) -> Result<(), JournalIntegrityError> {
        let size = self.size();
        let suspect = self.covered_by_checkpoint + 1;
        if let Some(claim) = self.claims.remove(&size) {
            if claim.root != self.frontier.root() {
                return Err(JournalIntegrityError::at_checkpoint(
                    JournalIntegrityErrorKind::RootMismatch,
                    suspect,
                    size,
                ));
            }
            if claim.head != self.head {
                return Err(JournalIntegrityError::at_checkpoint(
                    JournalIntegrityErrorKind::HeadMismatch,
                    suspect,
                    size,
                ));
            }
            self.covered_by_checkpoint = size;
            self.checkpoint_count += 1;
        }
        if self.expected_heads.remove(&size).is_some_and(|expected| expected != self.head) {
            return Err(JournalIntegrityError::at_entry(JournalIntegrityErrorKind::HeadMismatch, size));
        }
        Ok(())
    }
}
