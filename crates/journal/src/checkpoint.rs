//! Signed checkpoints of the journal (C2SP tlog-checkpoint).
//!
//! The text of a checkpoint states the workspace, the number of entries, the Merkle root, the last hash and the time.
//! [`JournalCheckpoint::verify`] rejects a checkpoint that is signed only by a replaced or a future key. A checkpoint
//! has only one text form. Signature lines of witnesses on a checkpoint are allowed and ignored.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::key_ring::SigningKeyValidityAtCheckpoint;
use crate::signed_note::{self, SignedNote, SignedNoteParseError, SignedNoteSignature};
use crate::{Digest, JournalKeyTrustChain, JournalWorkspaceId, Signer};

/// A checkpoint states the hashes of a journal at a certain size and is signed with the journal's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalCheckpoint {
    pub origin: JournalWorkspaceId,
    pub size: u64,
    /// The Merkle root over the hashes of the entries that the checkpoint covers.
    pub root: Digest,
    /// The chain hash of the last entry that the checkpoint covers.
    pub head: Digest,
    pub time_ms: i64,
}

/// The reason why a checkpoint is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JournalCheckpointVerifyError {
    /// The error message names the rule that the text violates.
    #[error("{0}")]
    Malformed(&'static str),
    #[error("the checkpoint belongs to another workspace")]
    WrongOrigin,
    #[error("the signature on checkpoint {0} is not valid")]
    BadSignature(u64),
    #[error("checkpoint {0} is signed by an unknown key")]
    UnknownKey(u64),
    #[error("checkpoint {0} is signed by a retired key")]
    RetiredKey(u64),
    #[error("checkpoint {0} is signed by a key that is not active yet")]
    KeyNotYetActive(u64),
}

impl JournalCheckpointVerifyError {
    /// The number of entries that the rejected checkpoint covers; `None` for a malformed or foreign checkpoint.
    pub fn size(&self) -> Option<u64> {
        match *self {
            Self::Malformed(_) | Self::WrongOrigin => None,
            Self::BadSignature(size)
            | Self::UnknownKey(size)
            | Self::RetiredKey(size)
            | Self::KeyNotYetActive(size) => Some(size),
        }
    }
}

impl From<SignedNoteParseError> for JournalCheckpointVerifyError {
    fn from(SignedNoteParseError(detail): SignedNoteParseError) -> Self {
        Self::Malformed(detail)
    }
}

/// The displayed text of a checkpoint is the text that is signed.
impl fmt::Display for JournalCheckpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, size, root, head, time_ms } = self;
        let root = STANDARD.encode(root.as_bytes());
        write!(out, "{}\n{size}\n{root}\nhead {head}\ntime {time_ms}\n", origin.line())
    }
}

impl JournalCheckpoint {
    /// Signs the checkpoint and returns the signed note to store and publish.
    pub fn sign(&self, signer: &Signer) -> String {
        let text = self.to_string();
        let signature = signer.sign_bytes(text.as_bytes());
        signed_note::compose_note(&text, &self.origin, &signer.verifying_key(), &signature)
    }

    /// Parses the signed note of a checkpoint for display, **without** verifying its signature.
    pub fn parse(note: &str) -> Result<Self, JournalCheckpointVerifyError> {
        Self::from_text(signed_note::parse_note(note)?.text)
    }

    /// Parses the signed note of a checkpoint and verifies its signature by the key active at its size.
    pub fn verify(note: &str, ring: &JournalKeyTrustChain) -> Result<Self, JournalCheckpointVerifyError> {
        let note = signed_note::parse_note(note)?;
        let checkpoint = Self::from_text(note.text)?;
        if checkpoint.origin != *ring.origin() {
            return Err(JournalCheckpointVerifyError::WrongOrigin);
        }
        checkpoint.check_signatures(&note, ring)?;
        Ok(checkpoint)
    }

    fn check_signatures(
        &self,
        note: &SignedNote<'_>,
        ring: &JournalKeyTrustChain,
    ) -> Result<(), JournalCheckpointVerifyError> {
        let size = self.size;
        let mut best = Err(JournalCheckpointVerifyError::UnknownKey(size));
        for line in note.signatures.iter().filter(|line| line.name == self.origin.line()) {
            let Some(validity) = signing_key_validity(line, note.text, size, ring)? else { continue };
            match validity {
                SigningKeyValidityAtCheckpoint::Active => best = Ok(()),
                SigningKeyValidityAtCheckpoint::Retired => {
                    best = best.or(Err(JournalCheckpointVerifyError::RetiredKey(size)))
                }
                SigningKeyValidityAtCheckpoint::NotYetActive => {
                    best = best.or(Err(JournalCheckpointVerifyError::KeyNotYetActive(size)))
                }
            }
        }
        best
    }

    fn from_text(text: &str) -> Result<Self, JournalCheckpointVerifyError> {
        let bad = JournalCheckpointVerifyError::Malformed;
        let mut lines = text.split('\n');
        let mut line = || lines.next().ok_or(bad("the text has too few lines"));
        let origin = JournalWorkspaceId::from_line(line()?).map_err(|_invalid| bad("the origin line is invalid"))?;
        let size = line()?.parse().map_err(|_invalid| bad("the size line is invalid"))?;
        let root = STANDARD.decode(line()?).ok().and_then(|bytes| bytes.try_into().ok());
        let root = root.map(Digest).ok_or(bad("the root line is invalid"))?;
        let head = line()?.strip_prefix("head ").and_then(|hex| hex.parse().ok());
        let head = head.ok_or(bad("the head line is invalid"))?;
        let time_ms = line()?.strip_prefix("time ").and_then(|ms| ms.parse().ok());
        let time_ms = time_ms.ok_or(bad("the time line is invalid"))?;
        let checkpoint = Self { origin, size, root, head, time_ms };
        // This comparison rejects every text that the parsers tolerate but that is not canonical, such as leading
        // zeros.
        if checkpoint.to_string() == text { Ok(checkpoint) } else { Err(bad("the text is not in canonical form")) }
    }
}

/// Returns whether the key of a signature line may sign at tree size `size`; `None` means an unknown key.
fn signing_key_validity(
    line: &SignedNoteSignature<'_>,
    text: &str,
    size: u64,
    ring: &JournalKeyTrustChain,
) -> Result<Option<SigningKeyValidityAtCheckpoint>, JournalCheckpointVerifyError> {
    let claimed: Vec<_> = ring.keys_with_id(line.key_id, size).collect();
    if claimed.is_empty() {
        return Ok(None);
    }
    let bad = JournalCheckpointVerifyError::BadSignature(size);
    let signature = line.signature.ok_or(bad)?;
    let signed = claimed.into_iter().filter(|(key, _)| key.verify_bytes(text.as_bytes(), &signature).is_ok());
    let validities: Vec<_> = signed.map(|(_, validity)| validity).collect();
    if validities.contains(&SigningKeyValidityAtCheckpoint::Active) {
        return Ok(Some(SigningKeyValidityAtCheckpoint::Active));
    }
    validities.first().copied().map(Some).ok_or(bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JournalKeyRecord;

    fn signer(seed: u8) -> Signer {
        Signer::from_seed(&[seed; 32])
    }

    fn checkpoint(size: u64) -> JournalCheckpoint {
        let origin = JournalWorkspaceId::new("w1").unwrap();
        JournalCheckpoint { origin, size, root: Digest([5; 32]), head: Digest([6; 32]), time_ms: 1_700_000_000_000 }
    }

    fn ring() -> JournalKeyTrustChain {
        let origin = JournalWorkspaceId::new("w1").unwrap();
        let next = JournalKeyRecord::next(&signer(1), &origin, signer(2).verifying_key(), 10);
        JournalKeyTrustChain::new(origin, vec![JournalKeyRecord::first_key(signer(1).verifying_key()), next]).unwrap()
    }

    #[test]
    fn checkpoint_text_follows_the_specification() {
        let note = checkpoint(9).sign(&signer(1));
        let lines: Vec<&str> = note.split('\n').collect();
        assert_eq!(lines[..2], ["stead/w1", "9"]);
        assert_eq!(lines[2], "BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU=");
        assert_eq!(lines[3], format!("head {}", "06".repeat(32)));
        assert_eq!(lines[4..6], ["time 1700000000000", ""]);
        assert!(lines[6].starts_with("\u{2014} stead/w1 "));
        assert_eq!(lines[7..], [""]);
        assert_eq!(JournalCheckpoint::verify(&note, &ring()), Ok(checkpoint(9)));
    }

    #[test]
    fn only_the_active_key_is_accepted() {
        let verify = |size, seed| JournalCheckpoint::verify(&checkpoint(size).sign(&signer(seed)), &ring());
        assert!(verify(9, 1).is_ok());
        assert!(verify(10, 2).is_ok());
        assert_eq!(verify(10, 1), Err(JournalCheckpointVerifyError::RetiredKey(10)));
        assert_eq!(verify(9, 2), Err(JournalCheckpointVerifyError::KeyNotYetActive(9)));
        assert_eq!(verify(9, 3), Err(JournalCheckpointVerifyError::UnknownKey(9)));
    }

    #[test]
    fn unknown_witnesses_are_ignored_and_false_known_signatures_rejected() {
        let note = checkpoint(9).sign(&signer(1));
        let witnessed = format!("{note}\u{2014} witness.example/w AAAAAAA=\n");
        assert_eq!(JournalCheckpoint::verify(&witnessed, &ring()), Ok(checkpoint(9)));
        let elsewhere = checkpoint(8).sign(&signer(1));
        let false_line = elsewhere.lines().last().unwrap();
        let doubled = format!("{note}{false_line}\n");
        assert_eq!(JournalCheckpoint::verify(&doubled, &ring()), Err(JournalCheckpointVerifyError::BadSignature(9)));
    }

    #[test]
    fn both_keys_can_sign_at_a_rotation() {
        let old = checkpoint(10).sign(&signer(1));
        let new = checkpoint(10).sign(&signer(2));
        let both = format!("{old}{}\n", new.lines().last().unwrap());
        assert_eq!(JournalCheckpoint::verify(&both, &ring()), Ok(checkpoint(10)));
    }

    #[test]
    fn any_edit_of_the_text_invalidates_the_signature() {
        let note = checkpoint(9).sign(&signer(1));
        for (old, new) in [("\n9\n", "\n8\n"), ("time 17", "time 16"), ("head 06", "head 07"), ("\nBQ", "\nBA")] {
            let edited = note.replacen(old, new, 1);
            assert_ne!(edited, note);
            let error = JournalCheckpoint::verify(&edited, &ring()).unwrap_err();
            assert!(matches!(error, JournalCheckpointVerifyError::BadSignature(_)), "{error}");
        }
        let moved = note.replace("stead/w1", "stead/w2");
        assert_eq!(JournalCheckpoint::verify(&moved, &ring()), Err(JournalCheckpointVerifyError::WrongOrigin));
    }

    #[test]
    fn non_canonical_text_is_rejected_even_when_signed() {
        let plain = checkpoint(9);
        for (old, new) in [("\n9\n", "\n09\n"), ("\n9\n", "\n+9\n"), ("time 1", "time +1"), ("head", "Head")] {
            let text = plain.to_string().replacen(old, new, 1);
            let signature = signer(1).sign_bytes(text.as_bytes());
            let note = signed_note::compose_note(&text, &plain.origin, &signer(1).verifying_key(), &signature);
            let error = JournalCheckpoint::verify(&note, &ring()).unwrap_err();
            assert!(matches!(error, JournalCheckpointVerifyError::Malformed(_)), "{text}");
        }
    }
}
