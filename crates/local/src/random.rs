//! Random bytes from the operating system, for names and secrets.

use stead_engine::{Error, ErrorKind};

pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    stead_disk::random_bytes().map_err(|error| Error::new(ErrorKind::Io, format!("no random bytes: {error}")))
}

/// The prefix followed by 16 random hexadecimal digits.
pub(crate) fn random_name(prefix: &str) -> Result<String, Error> {
    let bytes: [u8; 8] = random_bytes()?;
    Ok(format!("{prefix}{:016x}", u64::from_be_bytes(bytes)))
}
