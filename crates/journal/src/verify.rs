//! Streaming verification of a journal.
//!
//! Owns the rules by which a sequence of entries and checkpoints is believed or not, and the names of what can be
//! wrong. Reads every entry once, in order; keeps the frontier, the head and what is still awaited.
//! Promises: bounded memory; the first fault found is final, even if a caller overlooks it. What must hold at an
//! earlier place (a head or a checkpoint kept elsewhere) is given before the entries, because a stream is not read
//! twice.

mod tamper;

use std::cmp::Ordering;
use std::collections::BTreeMap;

pub use tamper::{Tamper, TamperKind};

use crate::{Checkpoint, Digest, Frontier, KeyRing, Leaf, decode, genesis, link_hash, merkle::BadFrontier};

/// Most checkpoints and heads that may wait for entries that have not come yet.
pub const MAX_AWAITED: usize = 65_536;

/// A verified beginning of a journal, from which verification can go on later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// Hash of the last entry, or the genesis hash.
    pub head: Digest,
    /// The tree over all entries so far.
    pub frontier: Frontier,
}

impl Trusted {
    /// Compact bytes to store. Storing them beside the journal proves nothing; resume with the checkpoint as well.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.frontier.to_bytes()[..]].concat()
    }

    /// Reads what [`Trusted::to_bytes`] made.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadFrontier> {
        let (head, frontier) = bytes.split_first_chunk().ok_or(BadFrontier)?;
        Ok(Self { head: Digest(*head), frontier: Frontier::from_bytes(frontier)? })
    }
}

/// What a finished verification has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The state at the end: size, root, head.
    pub trusted: Trusted,
    /// Entries up to this number are covered by a signed checkpoint; those after it by the chain alone.
    pub covered: u64,
    /// How many checkpoints were verified.
    pub checkpoints: u64,
}

impl Verified {
    /// Number of the last entry.
    pub fn size(&self) -> u64 {
        self.trusted.frontier.size()
    }

    /// Merkle root over all entries.
    pub fn root(&self) -> Digest {
        self.trusted.frontier.root()
    }
}

/// The roots and heads that a checkpoint has promised for a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Promise {
    root: Digest,
    head: Digest,
}

/// Verifies a journal entry by entry.
#[derive(Debug)]
pub struct Verifier {
    ring: KeyRing,
    frontier: Frontier,
    head: Digest,
    covered: u64,
    checkpoints: u64,
    /// Checkpoints at or after the present size.
    promised: BTreeMap<u64, Promise>,
    /// Heads that others hold, at or after the present size.
    held: BTreeMap<u64, Digest>,
    failed: Option<Tamper>,
}

impl Verifier {
    /// Begins at the first entry of the ring's workspace.
    pub fn new(ring: KeyRing) -> Self {
        let head = genesis(ring.origin());
        Self::resume(ring, Trusted { head, frontier: Frontier::new() })
    }

    /// Goes on after entries that were verified before. Give the trusted checkpoint of that size to
    /// [`Verifier::checkpoint`] first: it proves that the stored state is the one that was verified.
    pub fn resume(ring: KeyRing, trusted: Trusted) -> Self {
        let Trusted { head, frontier } = trusted;
        Self {
            ring,
            frontier,
            head,
            covered: 0,
            checkpoints: 0,
            promised: BTreeMap::new(),
            held: BTreeMap::new(),
            failed: None,
        }
    }

    /// Takes the next entry with the hash that was recorded for it.
    pub fn push(&mut self, number: u64, canonical: &[u8], recorded: &Digest) -> Result<(), Tamper> {
        let outcome = self.alive().and_then(|()| self.try_push(number, canonical, recorded));
        self.keep(outcome)
    }

    /// Takes a checkpoint, the journal's own or one that was kept elsewhere. Its size must not lie behind the entries
    /// already taken. It is compared when the entries go past its size, or at the end.
    pub fn checkpoint(&mut self, note: &str) -> Result<(), Tamper> {
        let outcome = self.alive().and_then(|()| self.try_checkpoint(note));
        self.keep(outcome)
    }

    /// Takes the hash of an entry that was kept elsewhere; the journal must still have it at that number.
    pub fn expect_head(&mut self, number: u64, hash: Digest) -> Result<(), Tamper> {
        let outcome = self.alive().and_then(|()| self.try_expect_head(number, hash));
        self.keep(outcome)
    }

    /// Ends the journal: everything promised must have come.
    pub fn finish(mut self) -> Result<Verified, Tamper> {
        self.alive()?;
        self.settle()?;
        let awaited = [self.promised.keys().next(), self.held.keys().next()].into_iter().flatten().min();
        if let Some(&size) = awaited {
            return Err(Tamper::at_checkpoint(TamperKind::Truncated, self.next(), size));
        }
        let trusted = Trusted { head: self.head, frontier: self.frontier };
        Ok(Verified { trusted, covered: self.covered, checkpoints: self.checkpoints })
    }

    /// Number of entries taken so far.
    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    fn next(&self) -> u64 {
        self.size() + 1
    }

    fn alive(&self) -> Result<(), Tamper> {
        self.failed.map_or(Ok(()), Err)
    }

    fn keep(&mut self, outcome: Result<(), Tamper>) -> Result<(), Tamper> {
        self.failed = outcome.err();
        outcome
    }

    fn try_push(&mut self, number: u64, canonical: &[u8], recorded: &Digest) -> Result<(), Tamper> {
        self.settle()?;
        let next = self.next();
        match number.cmp(&next) {
            // Every smaller number has been taken already.
            Ordering::Less => return Err(Tamper::at_entry(TamperKind::Duplicate, number)),
            Ordering::Greater => return Err(Tamper::at_entry(TamperKind::Missing, next)),
            Ordering::Equal => {}
        }
        let decoded = decode(canonical);
        // An intact record of another place, whatever hash stands beside it, was moved here.
        if decoded.as_ref().is_ok_and(|entry| entry.number != number) {
            return Err(Tamper::at_entry(TamperKind::OutOfOrder, number));
        }
        let hash = link_hash(&self.head, canonical);
        if hash != *recorded {
            return Err(Tamper::at_entry(TamperKind::HashMismatch, number));
        }
        decoded.map_err(|_malformed| Tamper::at_entry(TamperKind::Malformed, number))?;
        self.frontier.append(Leaf::of_entry(&hash));
        self.head = hash;
        Ok(())
    }

    fn try_checkpoint(&mut self, note: &str) -> Result<(), Tamper> {
        let suspect = self.covered + 1;
        let Checkpoint { size, root, head, .. } =
            Checkpoint::verify(note, &self.ring).map_err(|error| Tamper::of_note(error, suspect))?;
        if size < self.size() {
            return Err(Tamper::at_checkpoint(TamperKind::Late, suspect, size));
        }
        let promise = Promise { root, head };
        match self.promised.insert(size, promise) {
            Some(other) if other != promise => Err(Tamper::at_checkpoint(TamperKind::Fork, suspect, size)),
            Some(_same) => Ok(()),
            None => self.bounded(size),
        }
    }

    fn try_expect_head(&mut self, number: u64, hash: Digest) -> Result<(), Tamper> {
        if number < self.size() {
            return Err(Tamper::at_entry(TamperKind::Late, number));
        }
        match self.held.insert(number, hash) {
            Some(other) if other != hash => Err(Tamper::at_entry(TamperKind::HeadMismatch, number)),
            Some(_same) => Ok(()),
            None => self.bounded(number),
        }
    }

    fn bounded(&self, size: u64) -> Result<(), Tamper> {
        if self.promised.len() + self.held.len() <= MAX_AWAITED {
            Ok(())
        } else {
            Err(Tamper::at_checkpoint(TamperKind::TooManyAwaited, self.next(), size))
        }
    }

    /// Compares what was promised for the present size, just before the entries go past it.
    fn settle(&mut self) -> Result<(), Tamper> {
        let size = self.size();
        let suspect = self.covered + 1;
        if let Some(promise) = self.promised.remove(&size) {
            if promise.root != self.frontier.root() {
                return Err(Tamper::at_checkpoint(TamperKind::RootMismatch, suspect, size));
            }
            if promise.head != self.head {
                return Err(Tamper::at_checkpoint(TamperKind::HeadMismatch, suspect, size));
            }
            self.covered = size;
            self.checkpoints += 1;
        }
        if self.held.remove(&size).is_some_and(|held| held != self.head) {
            return Err(Tamper::at_entry(TamperKind::HeadMismatch, size));
        }
        Ok(())
    }
}
