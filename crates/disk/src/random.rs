//! Random bytes from the operating system, and random names.

use stead_path::FileName;

use crate::{DiskError, DiskErrorKind, TEMPORARY_PREFIX};

/// Characters of a random name: 32, so that each is five bits; lower case and digits, so that they differ on every
/// file system.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Random characters in a temporary name: 50 bits.
const TEMP_NAME_LETTERS: usize = 10;

/// Cryptographically secure random bytes.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], DiskError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| DiskError {
        kind: DiskErrorKind::Io,
        step: "random",
        errno: error.raw_os_error(),
    })?;
    Ok(bytes)
}

/// An unpredictable temporary name.
pub(crate) fn random_temp_name() -> Result<FileName, DiskError> {
    let bytes = random_bytes::<TEMP_NAME_LETTERS>()?;
    let mut name = TEMPORARY_PREFIX.as_bytes().to_vec();
    name.extend(bytes.iter().map(|byte| LETTERS[usize::from(byte % 32)]));
    FileName::new(&name).map_err(|_| DiskError::new(DiskErrorKind::NameTooLong, "random"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_have_the_prefix() {
        let (one, two) = (random_temp_name().unwrap(), random_temp_name().unwrap());
        assert_ne!(one, two);
        assert!(one.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()));
        assert_eq!(one.as_bytes().len(), TEMPORARY_PREFIX.len() + TEMP_NAME_LETTERS);
    }
}
