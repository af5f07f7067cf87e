//! Versions of content and the short names for them.

use std::fmt;

use journal::Digest;
use sha2::{Digest as _, Sha256};

use crate::failure::{Failure, Kind};

/// The sha256 of a file's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub Digest);

impl Version {
    /// The version of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Digest(Sha256::digest(bytes).into()))
    }

    /// The short name for content that no entry made: the first hex digits of the sha256.
    pub fn short(&self) -> String {
        format!("{SHORT_PREFIX}{}", &self.to_string()[..SHORT_DIGITS])
    }
}

/// The version of bytes that come one after the other.
#[derive(Default)]
pub(crate) struct Versioning(Sha256);

impl Versioning {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn end(self) -> Version {
        Version(Digest(self.0.finalize().into()))
    }
}

/// What a version's short name starts with when no entry made it.
const SHORT_PREFIX: &str = "sha:";
/// Hex digits in a short name.
const SHORT_DIGITS: usize = 12;

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

/// Which version a caller says it has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// `""`: nothing may be there.
    Absent,
    /// A full sha256.
    Version(Version),
    /// `r17`: what entry 17 left there.
    Rev(u64),
    /// `sha:…`: the first hex digits of the sha256.
    Prefix(String),
}

impl Base {
    /// Reads a base as callers write it.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let malformed = || {
            Failure::new(Kind::BadRequest, format!("'{text}' is not a version")).hint(
                "pass the version or rev of your last read or write; \"\" means the file must not exist",
            )
        };
        if text.is_empty() {
            return Ok(Base::Absent);
        }
        if let Some(number) = text.strip_prefix('r').and_then(|digits| digits.parse().ok()) {
            return Ok(Base::Rev(number));
        }
        if let Some(digits) = text.strip_prefix(SHORT_PREFIX) {
            let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            return if hex && digits.len() >= SHORT_DIGITS && digits.len() <= 64 {
                Ok(Base::Prefix(digits.to_ascii_lowercase()))
            } else {
                Err(malformed())
            };
        }
        text.to_ascii_lowercase()
            .parse()
            .map(|digest| Base::Version(Version(digest)))
            .map_err(|_| malformed())
    }
}
