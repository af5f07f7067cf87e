//! Streaming verification of a journal.
//!
//! Owns the rules for a valid sequence of entries and checkpoints, and the error kinds. Reads every entry once, in
//! order; keeps the frontier, the head and the pending checks. Promises bounded memory, and that the first error is
//! final, even if a caller ignores it. Conditions for an earlier position (a head or a checkpoint saved elsewhere)
//! must be added before the entries, because a stream is not read twice.

mod errors;

use std::cmp::Ordering;
use std::collections::BTreeMap;

pub use errors::{IntegrityError, IntegrityErrorKind};

use crate::{
    Checkpoint, Digest, KeyRing, MerkleFrontier, MerkleLeaf, chain_hash, decode_entry, genesis_hash,
    merkle::FrontierDecodeError,
};

/// The most checkpoints and heads that may wait for later entries.
pub const AWAITED_MAX: usize = 65_536;

/// A verified prefix of a journal, from which verification can resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedPrefix {
    /// Hash of the last entry, or the genesis hash.
    pub head: Digest,
    /// The tree over all entries so far.
    pub frontier: MerkleFrontier,
}

impl VerifiedPrefix {
    /// The stored form. Storing it beside the journal proves nothing; resume with the checkpoint as well.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.frontier.to_bytes()[..]].concat()
    }

    /// Parses the output of [`VerifiedPrefix::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FrontierDecodeError> {
        let (head, frontier) = bytes.split_first_chunk().ok_or(FrontierDecodeError)?;
        Ok(Self { head: Digest(*head), frontier: MerkleFrontier::from_bytes(frontier)? })
    }
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationReport {
    /// The state at the end: size, root, head.
    pub prefix: VerifiedPrefix,
    /// Entries up to this number are covered by a signed checkpoint; those after it by the chain alone.
    pub covered_by_checkpoint: u64,
    /// The number of verified checkpoints.
    pub checkpoint_count: u64,
}

impl VerificationReport {
    /// Number of the last entry.
    pub fn size(&self) -> u64 {
        self.prefix.frontier.size()
    }

    /// Merkle root over all entries.
    pub fn root(&self) -> Digest {
        self.prefix.frontier.root()
    }
}

/// The root and head that a checkpoint claims for a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CheckpointClaim {
    root: Digest,
    head: Digest,
}

/// Verifies a journal entry by entry.
#[derive(Debug)]
pub struct JournalVerifier {
    ring: KeyRing,
    frontier: MerkleFrontier,
    head: Digest,
    covered_by_checkpoint: u64,
    checkpoint_count: u64,
    /// Checkpoints at or after the current size.
    claims: BTreeMap<u64, CheckpointClaim>,
    /// Heads saved elsewhere, at or after the current size.
    expected_heads: BTreeMap<u64, Digest>,
    first_error: Option<IntegrityError>,
}

impl JournalVerifier {
    /// Starts at the first entry of the ring's workspace.
    pub fn new(ring: KeyRing) -> Self {
        let head = genesis_hash(ring.origin());
        Self::resume(ring, VerifiedPrefix { head, frontier: MerkleFrontier::new() })
    }

    /// Resumes after verified entries. Pass the trusted checkpoint of that size to
    /// [`JournalVerifier::push_checkpoint`] first: it proves that the stored state is the verified one.
    pub fn resume(ring: KeyRing, trusted: VerifiedPrefix) -> Self {
        let VerifiedPrefix { head, frontier } = trusted;
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

    /// Verifies the next entry and its recorded hash.
    pub fn push_entry(&mut self, number: u64, canonical: &[u8], recorded: &Digest) -> Result<(), IntegrityError> {
        let outcome = self.ensure_not_failed().and_then(|()| self.try_push_entry(number, canonical, recorded));
        self.remember_error(outcome)
    }

    /// Adds a checkpoint, the journal's own or one saved elsewhere. Its size must not be below the number of verified
    /// entries. It is compared when the entries pass its size, or at the end.
    pub fn push_checkpoint(&mut self, note: &str) -> Result<(), IntegrityError> {
        let outcome = self.ensure_not_failed().and_then(|()| self.try_push_checkpoint(note));
        self.remember_error(outcome)
    }

    /// Adds the hash of an entry that was saved elsewhere; the journal must have it at that number.
    pub fn expect_head(&mut self, number: u64, hash: Digest) -> Result<(), IntegrityError> {
        let outcome = self.ensure_not_failed().and_then(|()| self.try_expect_head(number, hash));
        self.remember_error(outcome)
    }

    /// Ends the journal: all added checkpoints and heads must have been reached.
    pub fn finish(mut self) -> Result<VerificationReport, IntegrityError> {
        self.ensure_not_failed()?;
        self.check_claims()?;
        let awaited = [self.claims.keys().next(), self.expected_heads.keys().next()].into_iter().flatten().min();
        if let Some(&size) = awaited {
            return Err(IntegrityError::at_checkpoint(IntegrityErrorKind::Truncated, self.next(), size));
        }
        let trusted = VerifiedPrefix { head: self.head, frontier: self.frontier };
        Ok(VerificationReport {
            prefix: trusted,
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

    fn ensure_not_failed(&self) -> Result<(), IntegrityError> {
        self.first_error.map_or(Ok(()), Err)
    }

    fn remember_error(&mut self, outcome: Result<(), IntegrityError>) -> Result<(), IntegrityError> {
        self.first_error = outcome.err();
        outcome
    }

    fn try_push_entry(&mut self, number: u64, canonical: &[u8], recorded: &Digest) -> Result<(), IntegrityError> {
        self.check_claims()?;
        let next = self.next();
        match number.cmp(&next) {
            // Every smaller number has already been verified.
            Ordering::Less => return Err(IntegrityError::at_entry(IntegrityErrorKind::Duplicate, number)),
            Ordering::Greater => return Err(IntegrityError::at_entry(IntegrityErrorKind::Missing, next)),
            Ordering::Equal => {}
        }
        let decoded = decode_entry(canonical);
        // An intact record with another number was moved here, whatever its recorded hash is.
        if decoded.as_ref().is_ok_and(|entry| entry.number != number) {
            return Err(IntegrityError::at_entry(IntegrityErrorKind::OutOfOrder, number));
        }
        let hash = chain_hash(&self.head, canonical);
        if hash != *recorded {
            return Err(IntegrityError::at_entry(IntegrityErrorKind::HashMismatch, number));
        }
        decoded.map_err(|_malformed| IntegrityError::at_entry(IntegrityErrorKind::Malformed, number))?;
        self.frontier.append(MerkleLeaf::from_entry_hash(&hash));
        self.head = hash;
        Ok(())
    }

    fn try_push_checkpoint(&mut self, note: &str) -> Result<(), IntegrityError> {
        let suspect = self.covered_by_checkpoint + 1;
        let Checkpoint { size, root, head, .. } = Checkpoint::verify(note, &self.ring)
            .map_err(|error| IntegrityError::from_checkpoint_error(error, suspect))?;
        if size < self.size() {
            return Err(IntegrityError::at_checkpoint(IntegrityErrorKind::Late, suspect, size));
        }
        let promise = CheckpointClaim { root, head };
        match self.claims.insert(size, promise) {
            Some(other) if other != promise => {
                Err(IntegrityError::at_checkpoint(IntegrityErrorKind::Fork, suspect, size))
            }
            Some(_same) => Ok(()),
            None => self.check_awaited_limit(size),
        }
    }

    fn try_expect_head(&mut self, number: u64, hash: Digest) -> Result<(), IntegrityError> {
        if number < self.size() {
            return Err(IntegrityError::at_entry(IntegrityErrorKind::Late, number));
        }
        match self.expected_heads.insert(number, hash) {
            Some(other) if other != hash => Err(IntegrityError::at_entry(IntegrityErrorKind::HeadMismatch, number)),
            Some(_same) => Ok(()),
            None => self.check_awaited_limit(number),
        }
    }

    fn check_awaited_limit(&self, size: u64) -> Result<(), IntegrityError> {
        if self.claims.len() + self.expected_heads.len() <= AWAITED_MAX {
            Ok(())
        } else {
            Err(IntegrityError::at_checkpoint(IntegrityErrorKind::TooManyAwaited, self.next(), size))
        }
    }

    /// Compares the claims for the current size, before the entries pass it.
    fn check_claims(&mut self) -> Result<(), IntegrityError> {
        let size = self.size();
        let suspect = self.covered_by_checkpoint + 1;
        if let Some(promise) = self.claims.remove(&size) {
            if promise.root != self.frontier.root() {
                return Err(IntegrityError::at_checkpoint(IntegrityErrorKind::RootMismatch, suspect, size));
            }
            if promise.head != self.head {
                return Err(IntegrityError::at_checkpoint(IntegrityErrorKind::HeadMismatch, suspect, size));
            }
            self.covered_by_checkpoint = size;
            self.checkpoint_count += 1;
        }
        if self.expected_heads.remove(&size).is_some_and(|expected| expected != self.head) {
            return Err(IntegrityError::at_entry(IntegrityErrorKind::HeadMismatch, size));
        }
        Ok(())
    }
}
