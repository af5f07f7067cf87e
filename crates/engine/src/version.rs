//! A content version is the hash of a file's bytes. Large files are hashed in pieces, and the call checks its cancel
//! token and deadline between the pieces.

use std::{fmt, ops::Range};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use stead_journal::Digest;
use stead_path::RelPath;

use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    workspace::{BytesToRead, FileBytesWithVersion, FileReader, FileStat},
};

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

const IN_MEMORY_BYTES_MAX: u64 = 64 << 20;
const PIECE_BYTES: usize = 1 << 20;

impl CallContext<'_> {
    pub(crate) fn read_saved(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytesWithVersion, Error> {
        let at_once = || self.workspace().read(path, want);
        let (BytesToRead::VersionOnly | BytesToRead::Range { .. }) = want else { return at_once() };
        // The stat is taken before the file is opened, so that the commit detects a change between the two steps.
        let Some(stat) = self.workspace().stat(path)?.filter(|stat| stat.size > IN_MEMORY_BYTES_MAX) else {
            return at_once();
        };
        let Ok(file) = self.workspace().open_file(path) else { return at_once() };
        self.hash_in_pieces(&*file, stat, want)
    }

    fn hash_in_pieces(
        &self,
        file: &dyn FileReader,
        stat: FileStat,
        want: BytesToRead,
    ) -> Result<FileBytesWithVersion, Error> {
        let wanted = match want {
            BytesToRead::Whole { .. } | BytesToRead::VersionOnly => 0..0,
            BytesToRead::Range { offset, length } => offset..offset.saturating_add(length),
        };
        let (mut hasher, mut bytes) = (Sha256::new(), Vec::new());
        let mut buffer = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < file.size() {
            self.control.check()?;
            let left = usize::try_from(file.size() - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = file.read_at(at, &mut buffer[..left])?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            bytes.extend_from_slice(overlapping_part(&buffer[..read], at, &wanted)?);
            at += read as u64;
        }
        Ok(FileBytesWithVersion { bytes, version: Version(Digest(hasher.finalize().into())), stat })
    }
}

fn overlapping_part<'b>(piece: &'b [u8], at: u64, wanted: &Range<u64>) -> Result<&'b [u8], Error> {
    let inside = |offset: u64| {
        let inside = offset.saturating_sub(at).min(piece.len() as u64);
        usize::try_from(inside).map_err(|_| {
            Error::new(ErrorKind::TooLarge, "the byte range is too long to read at once")
                .with_next_step("request a shorter range")
        })
    };
    Ok(&piece[inside(wanted.start)?..inside(wanted.end)?.max(inside(wanted.start)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_read_in_pieces_equals_direct_slice() {
        let whole: Vec<u8> = (0..=99).collect();
        for (start, end) in [(0, 100), (3, 7), (9, 21), (20, 20), (95, 200), (100, 120), (7, 3)] {
            let mut found = Vec::new();
            for (number, piece) in whole.chunks(10).enumerate() {
                found.extend_from_slice(overlapping_part(piece, number as u64 * 10, &(start..end)).unwrap());
            }
            let wanted: Vec<u8> =
                whole.iter().copied().filter(|byte| (start..end).contains(&u64::from(*byte))).collect();
            assert_eq!(found, wanted, "{start}..{end}");
        }
    }
}
