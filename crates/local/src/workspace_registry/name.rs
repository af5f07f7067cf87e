//! Names and ids of workspaces: people choose the name, the id is random. Only ids reach the file system, so a name cannot
//! escape from the directory.

use std::fmt;

use stead_engine::{Error, ErrorKind};
use stead_path::FileName;

const NAME_BYTES_MAX: usize = 63;
const ID_BYTES: usize = 8;

/// The name of a workspace: lowercase letters, digits and dashes, not beginning or ending with a dash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkspaceName(String);

impl WorkspaceName {
    /// Checks a name.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends = bytes.first().is_some_and(|byte| plain(*byte)) && bytes.last().is_some_and(|byte| plain(*byte));
        if ends && bytes.len() <= NAME_BYTES_MAX && bytes.iter().all(|byte| plain(*byte) || *byte == b'-') {
            return Ok(Self(text.to_owned()));
        }
        let rule = format!(
            "a workspace name has 1 to {NAME_BYTES_MAX} characters of a-z, 0-9 and -, and neither begins nor ends with -"
        );
        Err(Error::new(ErrorKind::InvalidName, rule))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A new id, which also names the workspace's directory.
pub(crate) fn generate_id() -> Result<String, Error> {
    let bytes: [u8; ID_BYTES] = crate::random::random_bytes()?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

pub(crate) fn directory_name_of_id(id: &str) -> Result<FileName, Error> {
    let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let malformed = || Error::new(ErrorKind::AuditUnavailable, "malformed workspace id in the registry");
    if id.len() != 2 * ID_BYTES || !id.bytes().all(digits) {
        return Err(malformed());
    }
    FileName::new(id.as_bytes()).map_err(|_| malformed())
}

/// The slot of a workspace in the lock file.
pub(crate) fn lock_slot(id: &str) -> u64 {
    // Two bits less: file offsets are signed, and the end of the range must fit too.
    u64::from_str_radix(id, 16).unwrap_or_default() >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_short_plain_names() {
        let long = "a".repeat(NAME_BYTES_MAX);
        for good in ["a", "7", "agent-17", "a--b", long.as_str()] {
            assert_eq!(WorkspaceName::parse(good).unwrap().as_str(), good);
        }
        let longer = "a".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", "-a", "a-", ".", "..", "a/b", "a.b", "A", "ä", "a b", "a\0", "a_b", "%2e", longer.as_str()] {
            assert_eq!(WorkspaceName::parse(bad).unwrap_err().kind, ErrorKind::InvalidName, "{bad:?}");
        }
    }

    #[test]
    fn only_ids_become_directory_names() {
        let id = generate_id().unwrap();
        assert_eq!(directory_name_of_id(&id).unwrap().as_bytes(), id.as_bytes());
        for bad in ["", "..", "0123", "0123456789abcdeF", "0123456789abcde/"] {
            assert!(directory_name_of_id(bad).is_err(), "{bad:?}");
        }
    }
}
