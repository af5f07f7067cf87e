//! SHA-256 digests. The text form of a digest is 64 lower-case hexadecimal characters. Upper-case digits are rejected,
//! so that each digest has only one text form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The 32 bytes of a SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Digest(pub [u8; 32]);

/// The error for text that is not 64 lower-case hexadecimal characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not 64 lower-case hexadecimal characters")]
pub struct DigestParseError;

impl Digest {
    /// Computes the SHA-256 hash of some bytes.
    pub fn sha256(bytes: &[u8]) -> Self {
        Self::sha256_of_parts(&[bytes])
    }

    pub(crate) fn sha256_of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The 32 bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&to_hex(&self.0))
    }
}

impl FromStr for Digest {
    type Err = DigestParseError;

    fn from_str(text: &str) -> Result<Self, DigestParseError> {
        from_hex(text).map(Self).ok_or(DigestParseError)
    }
}

/// Implements `Debug` and serde's string conversions for a type with `Display` and `FromStr`.
macro_rules! text_conversions {
    ($type:ty, $error:ty) => {
        impl fmt::Debug for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, out)
            }
        }

        impl TryFrom<String> for $type {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}
pub(crate) use text_conversions;

text_conversions!(Digest, DigestParseError);

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0x0f])
        .map(|nibble| char::from(HEX_DIGITS[usize::from(nibble)]))
        .collect()
}

pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
    }
    Some(bytes)
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn formats_the_digest_of_empty_input() {
        assert_eq!(Digest::sha256(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse(), Ok(Digest::sha256(b"")));
    }

    #[test]
    fn parts_hash_like_their_concatenation() {
        assert_eq!(Digest::sha256_of_parts(&[b"ab", b"", b"c"]), Digest::sha256(b"abc"));
    }

    #[test]
    fn rejects_other_digest_formats() {
        for text in ["", "e3", &EMPTY.to_uppercase(), &EMPTY[..63], &format!("{EMPTY}0"), &EMPTY.replace('e', "g")] {
            assert_eq!(text.parse::<Digest>(), Err(DigestParseError), "{text}");
        }
        assert_eq!("é".repeat(32).parse::<Digest>(), Err(DigestParseError));
    }

    #[test]
    fn json_is_the_hexadecimal_string() {
        let json = serde_json::to_string(&Digest::sha256(b"")).unwrap();
        assert_eq!(json, format!("\"{EMPTY}\""));
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), Digest::sha256(b""));
    }
}
