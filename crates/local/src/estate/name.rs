//! How a workspace of an estate is called: by a name that people choose, and by an id that nobody can guess. Only ids
//! reach the file system, so no name can be a way out.

use std::fmt;

use engine::{Failure, Kind};
use path::Name;

use crate::failure;

/// Longest name.
const NAME_BYTES_MAX: usize = 63;
/// Bytes of an id.
const ID_BYTES: usize = 8;

/// The name of a workspace: small letters, digits and dashes, beginning and ending with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkspaceName(String);

impl WorkspaceName {
    /// Checks a name.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends =
            bytes.first().is_some_and(|byte| plain(*byte)) && bytes.last().is_some_and(|byte| plain(*byte));
        if ends && bytes.len() <= NAME_BYTES_MAX && bytes.iter().all(|byte| plain(*byte) || *byte == b'-') {
            return Ok(Self(text.to_owned()));
        }
        let rule = format!(
            "the name of a workspace has 1 to {NAME_BYTES_MAX} of a-z, 0-9 and -, and neither begins nor ends with -"
        );
        Err(Failure::new(Kind::InvalidName, rule))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A fresh id: the name of the workspace's directory, too.
pub(crate) fn fresh_id() -> Result<String, Failure> {
    let bytes: [u8; ID_BYTES] = disk::random_bytes().map_err(|error| failure::own(&error))?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

/// An id as the name of a directory.
pub(crate) fn directory_name(id: &str) -> Result<Name, Failure> {
    let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let malformed = || Failure::new(Kind::AuditUnavailable, "the estate holds a malformed id");
    if id.len() != 2 * ID_BYTES || !id.bytes().all(digits) {
        return Err(malformed());
    }
    Name::new(id.as_bytes()).map_err(|_| malformed())
}

/// The slot of the lock file that stands for a workspace.
pub(crate) fn slot(id: &str) -> u64 {
    // Two bits less: the kernel counts offsets signed, and the end of the range must fit as well.
    u64::from_str_radix(id, 16).unwrap_or_default() >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        let long = "a".repeat(NAME_BYTES_MAX);
        for good in ["a", "7", "agent-17", "a--b", long.as_str()] {
            assert_eq!(WorkspaceName::parse(good).unwrap().as_str(), good);
        }
        let longer = "a".repeat(NAME_BYTES_MAX + 1);
        for bad in
            ["", "-a", "a-", ".", "..", "a/b", "a.b", "A", "ä", "a b", "a\0", "a_b", "%2e", longer.as_str()]
        {
            assert_eq!(WorkspaceName::parse(bad).unwrap_err().kind, Kind::InvalidName, "{bad:?}");
        }
    }

    #[test]
    fn only_ids_become_directories() {
        let id = fresh_id().unwrap();
        assert_eq!(directory_name(&id).unwrap().as_bytes(), id.as_bytes());
        for bad in ["", "..", "0123", "0123456789abcdeF", "0123456789abcde/"] {
            assert!(directory_name(bad).is_err(), "{bad:?}");
        }
    }
}
