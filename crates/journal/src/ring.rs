//! Which key may sign a checkpoint of which size.
//!
//! Owns key rotation: the first key is trusted as given; each later one is endorsed by the key before it, over the
//! workspace, the new public key and the first size it signs. From that size on the old key is retired, so a stolen
//! old key cannot sign the present.
//! Promises: a ring that exists has been verified from its first key to its last.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::digest::to_hex;
use crate::note::{self, ED25519, KeyId};
use crate::{Origin, Signature, Signer, VerifyingKey};

/// Domain of an endorsement. A note's text cannot hold a NUL, so no note is ever an endorsement.
const ENDORSEMENT_DOMAIN: &[u8; 16] = b"stead endorse 1\0";

/// One key of a workspace and since when it signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// The public key.
    pub public: VerifyingKey,
    /// The smallest tree size this key signs; 0 for the first key.
    pub from_entry: u64,
    /// Signature of the key before; none for the first key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endorsement: Option<Signature>,
}

impl KeyRecord {
    /// The record of a workspace's first key.
    pub fn first(public: VerifyingKey) -> Self {
        Self { public, from_entry: 0, endorsement: None }
    }

    /// The record of the next key, endorsed by the present one.
    pub fn next(present: &Signer, origin: &Origin, public: VerifyingKey, from_entry: u64) -> Self {
        let endorsement = present.sign_bytes(&endorsement_message(origin, &public, from_entry));
        Self { public, from_entry, endorsement: Some(endorsement) }
    }
}

fn endorsement_message(origin: &Origin, public: &VerifyingKey, from_entry: u64) -> Vec<u8> {
    // Everything but the origin has a fixed length, so the parts cannot run into each other.
    let numbers = from_entry.to_be_bytes();
    [ENDORSEMENT_DOMAIN, &public.as_bytes()[..], &numbers, origin.line().as_bytes()].concat()
}

/// Why a list of keys is not a chain of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRing {
    /// There is no key.
    #[error("no key")]
    Empty,
    /// The first key has an endorsement or does not begin at 0.
    #[error("the first key must begin at 0 and needs no endorsement")]
    First,
    /// A key begins no later than the one before it.
    #[error("key {place} does not begin after the one before it")]
    Order {
        /// Place in the list, from 0.
        place: usize,
    },
    /// A later key is not endorsed by the one before it.
    #[error("key {place} is not endorsed by the one before it")]
    NotEndorsed {
        /// Place in the list, from 0.
        place: usize,
    },
}

/// What a ring says about a key and a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The key signs this size.
    InForce,
    /// A later key has taken over by this size.
    Retired,
    /// The key only begins after this size.
    Premature,
}

/// The verified keys of one workspace, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRing {
    origin: Origin,
    records: Vec<KeyRecord>,
}

impl KeyRing {
    /// Verifies the endorsements from the first key on. The first key itself is trusted as given: compare
    /// [`KeyRing::first_key`] with what is known of the workspace.
    pub fn new(origin: Origin, records: Vec<KeyRecord>) -> Result<Self, BadRing> {
        let first = records.first().ok_or(BadRing::Empty)?;
        if first.from_entry != 0 || first.endorsement.is_some() {
            return Err(BadRing::First);
        }
        for (before, pair) in records.windows(2).enumerate() {
            let place = before + 1;
            let (old, new) = (&pair[0], &pair[1]);
            if new.from_entry <= old.from_entry {
                return Err(BadRing::Order { place });
            }
            let message = endorsement_message(&origin, &new.public, new.from_entry);
            let endorsement = new.endorsement.ok_or(BadRing::NotEndorsed { place })?;
            old.public
                .verify_bytes(&message, &endorsement)
                .map_err(|_invalid| BadRing::NotEndorsed { place })?;
        }
        Ok(Self { origin, records })
    }

    /// The workspace these keys belong to.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// All keys, oldest first.
    pub fn records(&self) -> &[KeyRecord] {
        &self.records
    }

    /// The key on which all trust rests.
    pub fn first_key(&self) -> VerifyingKey {
        self.records[0].public
    }

    /// The key that signs checkpoints of a size.
    pub fn key_for(&self, size: u64) -> VerifyingKey {
        let after = self.records.partition_point(|record| record.from_entry <= size);
        // The first key begins at 0, so at least one key does.
        self.records[after.saturating_sub(1)].public
    }

    /// The key of a size in the verifier-key text that witnesses and other note tools read.
    pub fn note_key(&self, size: u64) -> String {
        let key = self.key_for(size);
        let name = self.origin.line();
        let id = to_hex(&note::key_id(name, &key));
        let encoded = [&[ED25519][..], key.as_bytes()].concat();
        format!("{name}+{id}+{}", STANDARD.encode(encoded))
    }

    /// The keys with an id, each with its standing at a size. Ids are short, so there may be more than one.
    pub(crate) fn keys_with(
        &self,
        id: KeyId,
        size: u64,
    ) -> impl Iterator<Item = (VerifyingKey, Standing)> + '_ {
        let named = move |key: &VerifyingKey| note::key_id(self.origin.line(), key) == id;
        self.records.iter().enumerate().filter(move |(_, record)| named(&record.public)).map(
            move |(place, record)| {
                let retired = self.records.get(place + 1).is_some_and(|next| next.from_entry <= size);
                let standing = if retired {
                    Standing::Retired
                } else if size < record.from_entry {
                    Standing::Premature
                } else {
                    Standing::InForce
                };
                (record.public, standing)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(seed: u8) -> Signer {
        Signer::from_seed(&[seed; 32])
    }

    fn origin() -> Origin {
        Origin::new("w1").unwrap()
    }

    fn three() -> Vec<KeyRecord> {
        vec![
            KeyRecord::first(signer(1).public()),
            KeyRecord::next(&signer(1), &origin(), signer(2).public(), 10),
            KeyRecord::next(&signer(2), &origin(), signer(3).public(), 20),
        ]
    }

    #[test]
    fn each_size_has_one_key() {
        let ring = KeyRing::new(origin(), three()).unwrap();
        assert_eq!(ring.first_key(), signer(1).public());
        for (size, seed) in [(0, 1), (9, 1), (10, 2), (19, 2), (20, 3), (u64::MAX, 3)] {
            assert_eq!(ring.key_for(size), signer(seed).public(), "{size}");
        }
    }

    #[test]
    fn a_key_is_premature_then_in_force_then_retired() {
        let ring = KeyRing::new(origin(), three()).unwrap();
        let key = signer(2).public();
        let id = note::key_id(origin().line(), &key);
        for (size, standing) in [
            (9, Standing::Premature),
            (10, Standing::InForce),
            (19, Standing::InForce),
            (20, Standing::Retired),
        ] {
            assert_eq!(ring.keys_with(id, size).collect::<Vec<_>>(), [(key, standing)], "{size}");
        }
        assert_eq!(ring.keys_with([0; 4], 1).count(), 0);
    }

    #[test]
    fn a_broken_chain_of_endorsements_is_refused() {
        let made = |change: fn(&mut Vec<KeyRecord>)| {
            let mut records = three();
            change(&mut records);
            KeyRing::new(origin(), records)
        };
        assert_eq!(made(Vec::clear), Err(BadRing::Empty));
        assert_eq!(made(|keys| keys[0].from_entry = 1), Err(BadRing::First));
        assert_eq!(made(|keys| keys[0].endorsement = keys[1].endorsement), Err(BadRing::First));
        assert_eq!(made(|keys| keys[1].from_entry = 11), Err(BadRing::NotEndorsed { place: 1 }));
        assert_eq!(made(|keys| keys[2].from_entry = 10), Err(BadRing::Order { place: 2 }));
        assert_eq!(made(|keys| keys[2].endorsement = None), Err(BadRing::NotEndorsed { place: 2 }));
        assert_eq!(made(|keys| keys[1] = keys[2].clone()), Err(BadRing::NotEndorsed { place: 1 }));
        assert_eq!(made(|keys| keys[2].public = signer(9).public()), Err(BadRing::NotEndorsed { place: 2 }));
    }

    #[test]
    fn an_endorsement_does_not_serve_another_workspace() {
        let other = Origin::new("w2").unwrap();
        assert_eq!(KeyRing::new(other, three()), Err(BadRing::NotEndorsed { place: 1 }));
    }

    #[test]
    fn note_key_has_name_id_and_type() {
        let ring = KeyRing::new(origin(), three()).unwrap();
        let key = ring.note_key(0);
        let parts: Vec<&str> = key.split('+').collect();
        assert_eq!(parts[0], "stead/w1");
        assert_eq!(parts[1].len(), 8);
        let encoded = STANDARD.decode(&key["stead/w1+00000000+".len()..]).unwrap();
        assert_eq!(encoded, [&[1][..], signer(1).public().as_bytes()].concat());
    }
}
