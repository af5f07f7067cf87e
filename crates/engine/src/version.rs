//! A content version is the hash of a file's bytes.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use stead_journal::Digest;

use crate::errors::{Error, ErrorKind};

/// The version of a file, which is the sha256 of the file's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Version(pub Digest);

impl Version {
    /// Computes the version of the given bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self(Digest(Sha256::digest(bytes).into()))
    }

    /// Returns the short form of a version that no journal entry produced: `sha:` and the first hex digits of the hash.
    pub fn short_form(&self) -> String {
        format!("{SHORT_VERSION_PREFIX}{}", &self.to_string()[..SHORT_VERSION_DIGITS])
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

/// The version of a file that a caller claims to have seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseVersion {
    /// The base version is the text `""`, which means that the file must not exist.
    Absent,
    /// The base version is the full sha256 of the file's bytes.
    Version(Version),
    /// The base version is a revision such as `r17`, the version that journal entry 17 produced.
    Rev(u64),
    /// The base version is `sha:` and the first hex digits of the sha256 of the file's bytes.
    HashPrefix(String),
}

impl BaseVersion {
    /// Parses a base version from the argument `base` of a call.
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
