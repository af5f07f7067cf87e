//! Randomness from the operating system, and the short random names made of it.

use path::Name;

use crate::{DiskError, ErrorKind, stage::TEMP_PREFIX};

/// Letters of a random name: 32 of them, so that one is five bits; lower case and digits only, so that they differ
/// on every file system.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Random letters in a temporary name: 50 bits.
const TEMP_LETTERS: usize = 10;

/// Bytes that nobody can guess.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], DiskError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| DiskError {
        kind: ErrorKind::Io,
        call: "random",
        errno: error.raw_os_error(),
    })?;
    Ok(bytes)
}

/// A temporary name that nobody can guess.
pub(crate) fn temp_name() -> Result<Name, DiskError> {
    let bytes = random_bytes::<TEMP_LETTERS>()?;
    let mut name = TEMP_PREFIX.as_bytes().to_vec();
    name.extend(bytes.iter().map(|byte| LETTERS[usize::from(byte % 32)]));
    Name::new(&name).map_err(|_| DiskError::new(ErrorKind::NameTooLong, "random"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_have_the_prefix() {
        let (one, two) = (temp_name().unwrap(), temp_name().unwrap());
        assert_ne!(one, two);
        assert!(one.as_bytes().starts_with(TEMP_PREFIX.as_bytes()));
        assert_eq!(one.as_bytes().len(), TEMP_PREFIX.len() + TEMP_LETTERS);
    }
}
