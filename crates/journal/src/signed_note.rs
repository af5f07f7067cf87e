//! The signed-note format (C2SP signed-note): a text, a blank line, signature lines.
//!
//! This module parses and composes notes; it does not interpret the text of a note or verify signatures. Each note has
//! only one form and contains no control characters. The size of a note and its number of signatures are bounded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::keys::{Ed25519Signature, SIGNATURE_BYTES, VerifyingKey};
use crate::{Digest, JournalWorkspaceId};

/// The length in bytes of the longest signed note that is parsed.
pub const MAX_NOTE_BYTES: usize = 64 * 1024;
/// The largest number of signature lines of a signed note, including those of witnesses.
pub const MAX_SIGNATURES: usize = 64;

const SIGNATURE_LINE_PREFIX: &str = "\u{2014} ";
const KEY_ID_BYTES: usize = 4;
const ED25519_KEY_TYPE: u8 = 0x01;

pub(crate) type SignedNoteKeyId = [u8; KEY_ID_BYTES];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignedNoteParseError(pub(crate) &'static str);

/// The signatures of a parsed note are not verified yet.
#[derive(Debug)]
pub(crate) struct SignedNote<'a> {
    /// Includes the final newline.
    pub(crate) text: &'a str,
    pub(crate) signatures: Vec<SignedNoteSignature<'a>>,
}

#[derive(Debug)]
pub(crate) struct SignedNoteSignature<'a> {
    pub(crate) name: &'a str,
    pub(crate) key_id: SignedNoteKeyId,
    /// The Ed25519 signature; `None` if the signature line holds a signature of a different length.
    pub(crate) signature: Option<Ed25519Signature>,
}

pub(crate) fn key_id(name: &str, key: &VerifyingKey) -> SignedNoteKeyId {
    let Digest(hash) = Digest::sha256_of_parts(&[name.as_bytes(), b"\n", &[ED25519_KEY_TYPE], key.as_bytes()]);
    [hash[0], hash[1], hash[2], hash[3]]
}

pub(crate) fn compose_note(
    text: &str,
    origin: &JournalWorkspaceId,
    key: &VerifyingKey,
    signature: &Ed25519Signature,
) -> String {
    let name = origin.line();
    let bytes = [&key_id(name, key)[..], signature.as_bytes()].concat();
    format!("{text}\n{SIGNATURE_LINE_PREFIX}{name} {}\n", STANDARD.encode(bytes))
}

pub(crate) fn parse_note(note: &str) -> Result<SignedNote<'_>, SignedNoteParseError> {
    if note.len() > MAX_NOTE_BYTES {
        return Err(SignedNoteParseError("the text is too long"));
    }
    if note.bytes().any(|byte| byte < 0x20 && byte != b'\n') {
        return Err(SignedNoteParseError("the text contains a control character"));
    }
    let blank = note.rfind("\n\n").ok_or(SignedNoteParseError("the text has no signature"))?;
    let (text, rest) = note.split_at(blank + 1);
    let lines = rest.strip_prefix('\n').and_then(|lines| lines.strip_suffix('\n'));
    let lines = lines.ok_or(SignedNoteParseError("the text does not end with a newline"))?;
    let signatures = lines.split('\n').take(MAX_SIGNATURES + 1).map(parse_signature);
    let signatures = signatures.collect::<Result<Vec<_>, _>>()?;
    if signatures.len() > MAX_SIGNATURES {
        return Err(SignedNoteParseError("the text has too many signatures"));
    }
    Ok(SignedNote { text, signatures })
}

fn parse_signature(line: &str) -> Result<SignedNoteSignature<'_>, SignedNoteParseError> {
    let bad = SignedNoteParseError("a signature line is invalid");
    let (name, encoded) = line.strip_prefix(SIGNATURE_LINE_PREFIX).and_then(|rest| rest.split_once(' ')).ok_or(bad)?;
    if name.is_empty() || name.contains(|letter: char| letter.is_whitespace() || letter == '+') {
        return Err(bad);
    }
    let bytes = STANDARD.decode(encoded).map_err(|_invalid| bad)?;
    let (key_id, signature) = bytes.split_first_chunk::<KEY_ID_BYTES>().ok_or(bad)?;
    let signature = <[u8; SIGNATURE_BYTES]>::try_from(signature).ok().map(Ed25519Signature::from_bytes);
    Ok(SignedNoteSignature { name, key_id: *key_id, signature })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected key id comes from the tests of the Go implementation of signed notes.
    #[test]
    fn key_id_matches_other_implementations() {
        let encoded = STANDARD.decode("ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW").unwrap();
        let key = VerifyingKey::from_bytes(encoded[1..].try_into().unwrap()).unwrap();
        assert_eq!(encoded[0], ED25519_KEY_TYPE);
        assert_eq!(key_id("PeterNeumann", &key), [0xc7, 0x4f, 0x20, 0xa3]);
    }

    #[test]
    fn the_text_ends_at_the_last_blank_line() {
        let note = parse_note("a\n\nb\n\n\u{2014} w AAAAAAA=\n").unwrap();
        assert_eq!(note.text, "a\n\nb\n");
        assert_eq!(note.signatures.len(), 1);
        assert_eq!(note.signatures[0].name, "w");
        assert!(note.signatures[0].signature.is_none());
    }

    #[test]
    fn malformed_notes_are_rejected() {
        let many = format!("a\n\n{}", "\u{2014} w AAAAAAA=\n".repeat(MAX_SIGNATURES + 1));
        let long = format!("{}\n\n\u{2014} w AAAAAAA=\n", "a".repeat(MAX_NOTE_BYTES));
        for note in [
            "",
            "a\n",
            "a\n\n",
            "a\n\n\n",
            "a\n\n\u{2014} w AAAAAAA=",
            "a\n\n- w AAAAAAA=\n",
            "a\n\n\u{2014} w+ AAAAAAA=\n",
            "a\n\n\u{2014}  AAAAAAA=\n",
            "a\n\n\u{2014} w AAAAAAB=\n",
            "a\n\n\u{2014} w AAAA\n",
            "a\r\n\n\u{2014} w AAAAAAA=\n",
            &many,
            &long,
        ] {
            assert!(parse_note(note).is_err(), "{note:?}");
        }
    }
}
