//! Ed25519 keys and signatures.
//!
//! This module defines the text forms of keys (hexadecimal) and signatures (base64). Verification is strict: weak keys
//! are rejected, and a signature has only one valid form. Secret keys are created from seeds that callers pass in, and
//! are never printed.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use serde::{Deserialize, Serialize};

use crate::digest::{from_hex, text_conversions, to_hex};

pub(crate) const SIGNATURE_BYTES: usize = 64;

/// A secret key, with which signatures are made.
pub struct Signer(SigningKey);

/// A public key, with which signatures are verified.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VerifyingKey(ed25519_dalek::VerifyingKey);

/// An Ed25519 signature that is not verified yet.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ed25519Signature([u8; SIGNATURE_BYTES]);

/// The error for bytes or text that are not a usable public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a usable Ed25519 public key")]
pub struct PublicKeyParseError;

/// The error for text that is not a signature, and for an invalid signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid Ed25519 signature")]
pub struct InvalidSignatureError;

impl Signer {
    /// Derives a secret key from a secret seed.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The public key that belongs to this secret key.
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key())
    }

    /// Messages for different purposes must have different prefixes, so that a signature is valid for only one purpose.
    pub(crate) fn sign_bytes(&self, message: &[u8]) -> Ed25519Signature {
        Ed25519Signature(self.0.sign(message).to_bytes())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Signer({:?})", self.verifying_key())
    }
}

impl VerifyingKey {
    /// Parses the 32 bytes of a public key, and rejects weak keys.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, PublicKeyParseError> {
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_invalid| PublicKeyParseError)?;
        if key.is_weak() { Err(PublicKeyParseError) } else { Ok(Self(key)) }
    }

    /// The 32 bytes of the public key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    pub(crate) fn verify_bytes(
        &self,
        message: &[u8],
        signature: &Ed25519Signature,
    ) -> Result<(), InvalidSignatureError> {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.0.verify_strict(message, &signature).map_err(|_invalid| InvalidSignatureError)
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&to_hex(self.as_bytes()))
    }
}

impl FromStr for VerifyingKey {
    type Err = PublicKeyParseError;

    fn from_str(text: &str) -> Result<Self, PublicKeyParseError> {
        Self::from_bytes(&from_hex(text).ok_or(PublicKeyParseError)?)
    }
}

text_conversions!(VerifyingKey, PublicKeyParseError);

impl Ed25519Signature {
    /// Wraps the 64 bytes of a signature without verifying the signature.
    pub fn from_bytes(bytes: [u8; SIGNATURE_BYTES]) -> Self {
        Self(bytes)
    }

    /// The 64 bytes of the signature.
    pub fn as_bytes(&self) -> &[u8; SIGNATURE_BYTES] {
        &self.0
    }
}

impl fmt::Display for Ed25519Signature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&STANDARD.encode(self.0))
    }
}

impl FromStr for Ed25519Signature {
    type Err = InvalidSignatureError;

    fn from_str(text: &str) -> Result<Self, InvalidSignatureError> {
        let bytes = STANDARD.decode(text).map_err(|_invalid| InvalidSignatureError)?;
        bytes.try_into().map(Self).map_err(|_length| InvalidSignatureError)
    }
}

text_conversions!(Ed25519Signature, InvalidSignatureError);

#[cfg(test)]
mod tests {
    use super::*;

    /// The test data is that of RFC 8032, section 7.1, test 1.
    #[test]
    fn signature_matches_the_rfc() {
        let seed = from_hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
        let signer = Signer::from_seed(&seed);
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(signer.verifying_key().to_string(), public);
        let signature = signer.sign_bytes(b"");
        assert_eq!(
            to_hex(signature.as_bytes()),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b\
             d25bf5f0595bbe24655141438e7a100b"
        );
        let key: VerifyingKey = public.parse().unwrap();
        assert_eq!(key.verify_bytes(b"", &signature), Ok(()));
        assert_eq!(key.verify_bytes(b"x", &signature), Err(InvalidSignatureError));
        assert_eq!(signature.to_string().parse(), Ok(signature));
    }

    #[test]
    fn weak_keys_are_rejected() {
        let mut identity = [0; 32];
        identity[0] = 1;
        assert_eq!(VerifyingKey::from_bytes(&identity), Err(PublicKeyParseError));
        assert_eq!("00".parse::<VerifyingKey>(), Err(PublicKeyParseError));
    }

    #[test]
    fn the_secret_is_never_printed() {
        let signer = Signer::from_seed(&[7; 32]);
        assert_eq!(format!("{signer:?}"), format!("Signer({})", signer.verifying_key()));
    }
}
