//! Signed statements of how far the journal had come (C2SP tlog-checkpoint).
//!
//! Owns the text of a checkpoint: origin, tree size, root, and two extension lines, `head` (hash of the last entry)
//! and `time`. Signing lays a signature line under it; opening takes only what the key in force has signed.
//! Promises: one spelling per checkpoint. Signature lines of witnesses are carried and ignored.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::note::{self, BadNote, Note, NoteSignature};
use crate::ring::Standing;
use crate::{Digest, KeyRing, Origin, Signer};

/// What a checkpoint states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The workspace.
    pub origin: Origin,
    /// Number of entries covered.
    pub size: u64,
    /// Merkle root over their hashes.
    pub root: Digest,
    /// Hash of the last of them in the chain.
    pub head: Digest,
    /// Wall clock when it was signed, in unix milliseconds.
    pub time_ms: i64,
}

/// Why a checkpoint is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// It is not the text of a checkpoint.
    #[error("not a checkpoint: {detail}")]
    Malformed {
        /// The rule it breaks.
        detail: &'static str,
    },
    /// It speaks of another workspace.
    #[error("a checkpoint of another workspace")]
    WrongOrigin,
    /// A known key's signature does not fit the text.
    #[error("the signature on checkpoint {size} is not valid")]
    BadSignature {
        /// Size it states.
        size: u64,
    },
    /// No signature is by a key of the workspace.
    #[error("checkpoint {size} is signed by an unknown key")]
    UnknownKey {
        /// Size it states.
        size: u64,
    },
    /// Signed by a key that a later one has replaced by this size.
    #[error("checkpoint {size} is signed by a retired key")]
    RetiredKey {
        /// Size it states.
        size: u64,
    },
    /// Signed by a key that only begins after this size.
    #[error("checkpoint {size} is signed by a key that begins later")]
    PrematureKey {
        /// Size it states.
        size: u64,
    },
}

impl CheckpointError {
    /// The size the checkpoint states, if it could be read.
    pub fn size(&self) -> Option<u64> {
        match *self {
            Self::Malformed { .. } | Self::WrongOrigin => None,
            Self::BadSignature { size }
            | Self::UnknownKey { size }
            | Self::RetiredKey { size }
            | Self::PrematureKey { size } => Some(size),
        }
    }
}

impl From<BadNote> for CheckpointError {
    fn from(BadNote(detail): BadNote) -> Self {
        Self::Malformed { detail }
    }
}

/// The text that is signed.
impl fmt::Display for Checkpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, size, root, head, time_ms } = self;
        let root = STANDARD.encode(root.as_bytes());
        write!(out, "{}\n{size}\n{root}\nhead {head}\ntime {time_ms}\n", origin.line())
    }
}

impl Checkpoint {
    /// Signs the checkpoint: the note to store and to hand out.
    pub fn sign(&self, signer: &Signer) -> String {
        let text = self.to_string();
        let signature = signer.sign_bytes(text.as_bytes());
        note::compose(&text, &self.origin, &signer.public(), &signature)
    }

    /// Reads what a note states **without** verifying it; for showing, never for trusting.
    pub fn parse(note: &str) -> Result<Self, CheckpointError> {
        Self::from_text(note::parse(note)?.text)
    }

    /// Reads a note and verifies that the key in force at its size has signed it.
    pub fn verify(note: &str, ring: &KeyRing) -> Result<Self, CheckpointError> {
        let note = note::parse(note)?;
        let checkpoint = Self::from_text(note.text)?;
        if checkpoint.origin != *ring.origin() {
            return Err(CheckpointError::WrongOrigin);
        }
        checkpoint.check_signatures(&note, ring)?;
        Ok(checkpoint)
    }

    fn check_signatures(&self, note: &Note<'_>, ring: &KeyRing) -> Result<(), CheckpointError> {
        let size = self.size;
        let mut best = Err(CheckpointError::UnknownKey { size });
        for line in note.signatures.iter().filter(|line| line.name == self.origin.line()) {
            let Some(standing) = standing(line, note.text, size, ring)? else { continue };
            match standing {
                Standing::InForce => best = Ok(()),
                Standing::Retired => best = best.or(Err(CheckpointError::RetiredKey { size })),
                Standing::Premature => best = best.or(Err(CheckpointError::PrematureKey { size })),
            }
        }
        best
    }

    fn from_text(text: &str) -> Result<Self, CheckpointError> {
        let bad = |detail| CheckpointError::Malformed { detail };
        let mut lines = text.split('\n');
        let mut line = || lines.next().ok_or(bad("too few lines"));
        let origin = Origin::from_line(line()?).map_err(|_invalid| bad("origin"))?;
        let size = line()?.parse().map_err(|_invalid| bad("size"))?;
        let root = STANDARD.decode(line()?).ok().and_then(|bytes| bytes.try_into().ok());
        let root = root.map(Digest).ok_or(bad("root"))?;
        let head = line()?.strip_prefix("head ").and_then(|hex| hex.parse().ok()).ok_or(bad("head"))?;
        let time_ms = line()?.strip_prefix("time ").and_then(|ms| ms.parse().ok()).ok_or(bad("time"))?;
        let checkpoint = Self { origin, size, root, head, time_ms };
        // One comparison refuses what the parsers let through: leading zeros, plus signs, further lines.
        if checkpoint.to_string() == text { Ok(checkpoint) } else { Err(bad("spelling")) }
    }
}

/// The standing of the key that made a line, or nothing if no key of the ring claims it.
fn standing(
    line: &NoteSignature<'_>,
    text: &str,
    size: u64,
    ring: &KeyRing,
) -> Result<Option<Standing>, CheckpointError> {
    let claimed: Vec<_> = ring.keys_with(line.key_id, size).collect();
    if claimed.is_empty() {
        return Ok(None);
    }
    let bad = CheckpointError::BadSignature { size };
    let signature = line.signature.ok_or(bad)?;
    let signed = claimed.into_iter().filter(|(key, _)| key.verify_bytes(text.as_bytes(), &signature).is_ok());
    let standings: Vec<_> = signed.map(|(_, standing)| standing).collect();
    if standings.contains(&Standing::InForce) {
        return Ok(Some(Standing::InForce));
    }
    standings.first().copied().map(Some).ok_or(bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyRecord;

    fn signer(seed: u8) -> Signer {
        Signer::from_seed(&[seed; 32])
    }

    fn checkpoint(size: u64) -> Checkpoint {
        let origin = Origin::new("w1").unwrap();
        Checkpoint { origin, size, root: Digest([5; 32]), head: Digest([6; 32]), time_ms: 1_700_000_000_000 }
    }

    fn ring() -> KeyRing {
        let origin = Origin::new("w1").unwrap();
        let next = KeyRecord::next(&signer(1), &origin, signer(2).public(), 10);
        KeyRing::new(origin, vec![KeyRecord::first(signer(1).public()), next]).unwrap()
    }

    #[test]
    fn the_text_has_the_lines_of_the_specification() {
        let note = checkpoint(9).sign(&signer(1));
        let lines: Vec<&str> = note.split('\n').collect();
        assert_eq!(lines[..2], ["stead/w1", "9"]);
        assert_eq!(lines[2], "BQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU=");
        assert_eq!(lines[3], format!("head {}", "06".repeat(32)));
        assert_eq!(lines[4..6], ["time 1700000000000", ""]);
        assert!(lines[6].starts_with("\u{2014} stead/w1 "));
        assert_eq!(lines[7..], [""]);
        assert_eq!(Checkpoint::verify(&note, &ring()), Ok(checkpoint(9)));
    }

    #[test]
    fn only_the_key_in_force_is_believed() {
        let verify = |size, seed| Checkpoint::verify(&checkpoint(size).sign(&signer(seed)), &ring());
        assert!(verify(9, 1).is_ok());
        assert!(verify(10, 2).is_ok());
        assert_eq!(verify(10, 1), Err(CheckpointError::RetiredKey { size: 10 }));
        assert_eq!(verify(9, 2), Err(CheckpointError::PrematureKey { size: 9 }));
        assert_eq!(verify(9, 3), Err(CheckpointError::UnknownKey { size: 9 }));
    }

    #[test]
    fn witnesses_are_carried_and_a_false_known_signature_is_not() {
        let note = checkpoint(9).sign(&signer(1));
        let witnessed = format!("{note}\u{2014} witness.example/w AAAAAAA=\n");
        assert_eq!(Checkpoint::verify(&witnessed, &ring()), Ok(checkpoint(9)));
        let elsewhere = checkpoint(8).sign(&signer(1));
        let false_line = elsewhere.lines().last().unwrap();
        let doubled = format!("{note}{false_line}\n");
        assert_eq!(Checkpoint::verify(&doubled, &ring()), Err(CheckpointError::BadSignature { size: 9 }));
    }

    #[test]
    fn both_keys_may_sign_at_a_rotation() {
        let old = checkpoint(10).sign(&signer(1));
        let new = checkpoint(10).sign(&signer(2));
        let both = format!("{old}{}\n", new.lines().last().unwrap());
        assert_eq!(Checkpoint::verify(&both, &ring()), Ok(checkpoint(10)));
    }

    #[test]
    fn every_edit_of_the_text_breaks_it() {
        let note = checkpoint(9).sign(&signer(1));
        for (old, new) in
            [("\n9\n", "\n8\n"), ("time 17", "time 16"), ("head 06", "head 07"), ("\nBQ", "\nBA")]
        {
            let edited = note.replacen(old, new, 1);
            assert_ne!(edited, note);
            let error = Checkpoint::verify(&edited, &ring()).unwrap_err();
            assert!(matches!(error, CheckpointError::BadSignature { .. }), "{error}");
        }
        let moved = note.replace("stead/w1", "stead/w2");
        assert_eq!(Checkpoint::verify(&moved, &ring()), Err(CheckpointError::WrongOrigin));
    }

    #[test]
    fn a_second_spelling_is_refused_even_when_signed() {
        let plain = checkpoint(9);
        for (old, new) in [("\n9\n", "\n09\n"), ("\n9\n", "\n+9\n"), ("time 1", "time +1"), ("head", "Head")]
        {
            let text = plain.to_string().replacen(old, new, 1);
            let signature = signer(1).sign_bytes(text.as_bytes());
            let note = note::compose(&text, &plain.origin, &signer(1).public(), &signature);
            let error = Checkpoint::verify(&note, &ring()).unwrap_err();
            assert!(matches!(error, CheckpointError::Malformed { .. }), "{text}");
        }
    }
}
