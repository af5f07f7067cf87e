//! Content versions and their short forms.

use std::fmt;

use sha2::{Digest as _, Sha256};
use stead_journal::Digest;

use crate::errors::{Error, ErrorKind};

/// The sha256 of a file's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub Digest);

impl Version {
    /// The version of these bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self(Digest(Sha256::digest(bytes).into()))
    }

    /// The short form of a version that no entry made: the first hex digits of the sha256.
    pub fn short_form(&self) -> String {
        format!("{SHORT_VERSION_PREFIX}{}", &self.to_string()[..SHORT_VERSION_DIGITS])
    }
}

/// Hashes content incrementally.
#[derive(Default)]
pub(crate) struct VersionHasher(Sha256);

impl VersionHasher {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Version {
        Version(Digest(self.0.finalize().into()))
    }
}

const SHORT_VERSION_PREFIX: &str = "sha:";
const SHORT_VERSION_DIGITS: usize = 12;

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The version that a caller claims to have seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseVersion {
    /// `""`: the file must not exist.
    Absent,
    /// A full sha256.
    Version(Version),
    /// `r17`: the version after entry 17.
    Rev(u64),
    /// `sha:…`: the first hex digits of the sha256.
    HashPrefix(String),
}

impl BaseVersion {
    /// Parses a base version.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let malformed = || {
            Error::new(ErrorKind::BadRequest, format!("'{text}' is not a version")).with_next_step(
                "pass the version or rev of your last read or write; \"\" means the file must not exist",
            )
        };
        if text.is_empty() {
            return Ok(BaseVersion::Absent);
        }
        if let Some(number) = text.strip_prefix('r').and_then(|digits| digits.parse().ok()) {
            return Ok(BaseVersion::Rev(number));
        }
        if let Some(digits) = text.strip_prefix(SHORT_VERSION_PREFIX) {
            let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            return if hex && digits.len() >= SHORT_VERSION_DIGITS && digits.len() <= 64 {
                Ok(BaseVersion::HashPrefix(digits.to_ascii_lowercase()))
            } else {
                Err(malformed())
            };
        }
        text.to_ascii_lowercase().parse().map(|digest| BaseVersion::Version(Version(digest))).map_err(|_| malformed())
    }
}
