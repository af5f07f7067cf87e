//! The keys that may sign checkpoints, and key rotation.
//!
//! The first key of a workspace is trusted as given, and each later key is endorsed by its predecessor. The endorsement
//! is a signature over the workspace, the new key and the smallest tree size that the new key signs. A replaced key is
//! not accepted for later checkpoints, so a stolen old key cannot forge them. Every [`JournalKeyTrustChain`] has been
//! verified from its first key to its last.

use serde::{Deserialize, Serialize};

use crate::signed_note::{self, SignedNoteKeyId};
use crate::{Ed25519Signature, JournalWorkspaceId, Signer, VerifyingKey};

/// The NUL in the endorsement prefix ensures that the signature of a signed note is never a valid endorsement.
const ENDORSEMENT_DOMAIN: &[u8; 16] = b"stead endorse 1\0";

/// A key of a workspace, with the smallest tree size that the key signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalKeyRecord {
    pub public: VerifyingKey,
    /// The smallest tree size that the key signs; 0 for the first key of the workspace.
    pub from_entry: u64,
    /// The signature over the key by the previous key; `None` for the first key of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endorsement: Option<Ed25519Signature>,
}

impl JournalKeyRecord {
    /// The record of the first key of a workspace.
    pub fn first_key(public: VerifyingKey) -> Self {
        Self { public, from_entry: 0, endorsement: None }
    }

    /// The record of a new key of a workspace, endorsed by the current key.
    pub fn next(current: &Signer, origin: &JournalWorkspaceId, public: VerifyingKey, from_entry: u64) -> Self {
        let endorsement = current.sign_bytes(&endorsement_message(origin, &public, from_entry));
        Self { public, from_entry, endorsement: Some(endorsement) }
    }
}

fn endorsement_message(origin: &JournalWorkspaceId, public: &VerifyingKey, from_entry: u64) -> Vec<u8> {
    // All parts but the origin have a fixed length, so the concatenation is unambiguous.
    [ENDORSEMENT_DOMAIN, &public.as_bytes()[..], &from_entry.to_be_bytes(), origin.line().as_bytes()].concat()
}

/// The reason why a list of keys is not a chain of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JournalKeyTrustChainError {
    #[error("there is no key")]
    NoKeys,
    /// The first key has an endorsement, or its smallest tree size is not 0.
    #[error("the first key must start at entry 0 and have no endorsement")]
    InvalidFirstKey,
    /// The 0-based index of the key in the list.
    #[error("key {0} does not start at a later entry than the key before it")]
    NotAscending(usize),
    /// The 0-based index of the key in the list.
    #[error("key {0} is not endorsed by the key before it")]
    NotEndorsed(usize),
}

/// Whether a key may sign a checkpoint of a certain tree size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SigningKeyValidityAtCheckpoint {
    Active,
    Retired,
    NotYetActive,
}

/// The verified keys of one workspace, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalKeyTrustChain {
    origin: JournalWorkspaceId,
    records: Vec<JournalKeyRecord>,
}

impl JournalKeyTrustChain {
    /// Verifies the endorsements of all keys, starting at the first key. The first key is trusted as given, so compare
    /// [`JournalKeyTrustChain::first_key`] with a known value.
    pub fn new(origin: JournalWorkspaceId, records: Vec<JournalKeyRecord>) -> Result<Self, JournalKeyTrustChainError> {
        let first = records.first().ok_or(JournalKeyTrustChainError::NoKeys)?;
        if first.from_entry != 0 || first.endorsement.is_some() {
            return Err(JournalKeyTrustChainError::InvalidFirstKey);
        }
        for (before, pair) in records.windows(2).enumerate() {
            let place = before + 1;
            let (old, new) = (&pair[0], &pair[1]);
            if new.from_entry <= old.from_entry {
                return Err(JournalKeyTrustChainError::NotAscending(place));
            }
            let message = endorsement_message(&origin, &new.public, new.from_entry);
            let endorsement = new.endorsement.ok_or(JournalKeyTrustChainError::NotEndorsed(place))?;
            old.public
                .verify_bytes(&message, &endorsement)
                .map_err(|_invalid| JournalKeyTrustChainError::NotEndorsed(place))?;
        }
        Ok(Self { origin, records })
    }

    /// The workspace that the keys belong to.
    pub fn origin(&self) -> &JournalWorkspaceId {
        &self.origin
    }

    /// All keys of the workspace, oldest first.
    pub fn records(&self) -> &[JournalKeyRecord] {
        &self.records
    }

    /// The first key of the workspace, on which the trust in all later keys depends.
    pub fn first_key(&self) -> VerifyingKey {
        self.records[0].public
    }

    /// Key ids are short, so several keys may have the same id.
    pub(crate) fn keys_with_id(
        &self,
        id: SignedNoteKeyId,
        size: u64,
    ) -> impl Iterator<Item = (VerifyingKey, SigningKeyValidityAtCheckpoint)> + '_ {
        let has_id = move |key: &VerifyingKey| signed_note::key_id(self.origin.line(), key) == id;
        self.records.iter().enumerate().filter(move |(_, record)| has_id(&record.public)).map(move |(place, record)| {
            let retired = self.records.get(place + 1).is_some_and(|next| next.from_entry <= size);
            let validity = if retired {
                SigningKeyValidityAtCheckpoint::Retired
            } else if size < record.from_entry {
                SigningKeyValidityAtCheckpoint::NotYetActive
            } else {
                SigningKeyValidityAtCheckpoint::Active
            };
            (record.public, validity)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(seed: u8) -> Signer {
        Signer::from_seed(&[seed; 32])
    }

    fn origin() -> JournalWorkspaceId {
        JournalWorkspaceId::new("w1").unwrap()
    }

    fn three_key_records() -> Vec<JournalKeyRecord> {
        vec![
            JournalKeyRecord::first_key(signer(1).verifying_key()),
            JournalKeyRecord::next(&signer(1), &origin(), signer(2).verifying_key(), 10),
            JournalKeyRecord::next(&signer(2), &origin(), signer(3).verifying_key(), 20),
        ]
    }

    #[test]
    fn keys_become_active_and_then_retired() {
        let ring = JournalKeyTrustChain::new(origin(), three_key_records()).unwrap();
        assert_eq!(ring.first_key(), signer(1).verifying_key());
        let key = signer(2).verifying_key();
        let id = signed_note::key_id(origin().line(), &key);
        for (size, validity) in [
            (9, SigningKeyValidityAtCheckpoint::NotYetActive),
            (10, SigningKeyValidityAtCheckpoint::Active),
            (19, SigningKeyValidityAtCheckpoint::Active),
            (20, SigningKeyValidityAtCheckpoint::Retired),
        ] {
            assert_eq!(ring.keys_with_id(id, size).collect::<Vec<_>>(), [(key, validity)], "{size}");
        }
        assert_eq!(ring.keys_with_id([0; 4], 1).count(), 0);
    }

    #[test]
    fn broken_endorsement_chains_are_rejected() {
        let ring_with = |change: fn(&mut Vec<JournalKeyRecord>)| {
            let mut records = three_key_records();
            change(&mut records);
            JournalKeyTrustChain::new(origin(), records)
        };
        assert_eq!(ring_with(Vec::clear), Err(JournalKeyTrustChainError::NoKeys));
        assert_eq!(ring_with(|keys| keys[0].from_entry = 1), Err(JournalKeyTrustChainError::InvalidFirstKey));
        assert_eq!(
            ring_with(|keys| keys[0].endorsement = keys[1].endorsement),
            Err(JournalKeyTrustChainError::InvalidFirstKey)
        );
        assert_eq!(ring_with(|keys| keys[1].from_entry = 11), Err(JournalKeyTrustChainError::NotEndorsed(1)));
        assert_eq!(ring_with(|keys| keys[2].from_entry = 10), Err(JournalKeyTrustChainError::NotAscending(2)));
        assert_eq!(ring_with(|keys| keys[2].endorsement = None), Err(JournalKeyTrustChainError::NotEndorsed(2)));
        assert_eq!(ring_with(|keys| keys[1] = keys[2].clone()), Err(JournalKeyTrustChainError::NotEndorsed(1)));
        assert_eq!(
            ring_with(|keys| keys[2].public = signer(9).verifying_key()),
            Err(JournalKeyTrustChainError::NotEndorsed(2))
        );
    }

    #[test]
    fn endorsements_are_bound_to_the_workspace() {
        let other = JournalWorkspaceId::new("w2").unwrap();
        assert_eq!(
            JournalKeyTrustChain::new(other, three_key_records()),
            Err(JournalKeyTrustChainError::NotEndorsed(1))
        );
    }
}
