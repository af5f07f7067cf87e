//! Archives in `tar` format, limited to regular files and directories. Symlinks, devices, sparse files and compression are
//! not supported, and every ambiguity about the end or the name of an entry is an error.

mod read;
mod write;

pub(super) use read::{TarEntry, TarReader};
pub(super) use write::TarWriter;

const BLOCK_BYTES: usize = 512;
/// Positions of the header fields.
const NAME_FIELD: std::ops::Range<usize> = 0..100;
const MODE_FIELD: std::ops::Range<usize> = 100..108;
const SIZE_FIELD: std::ops::Range<usize> = 124..136;
const MODIFIED_FIELD: std::ops::Range<usize> = 136..148;
const CHECKSUM_FIELD: std::ops::Range<usize> = 148..156;
const KIND_FIELD: usize = 156;
const MAGIC_FIELD: std::ops::Range<usize> = 257..265;
const PREFIX_FIELD: std::ops::Range<usize> = 345..500;
/// The two forms of the magic.
const POSIX_MAGIC: &[u8] = b"ustar\x0000";
const GNU_MAGIC: &[u8] = b"ustar  \0";
/// Name of the entry that contains a GNU long name.
const GNU_LONG_LINK_NAME: &[u8] = b"././@LongLink";

/// The checksum of a header; its own field counts as spaces.
fn header_checksum(header: &[u8; BLOCK_BYTES]) -> u64 {
    let at = |(at, byte): (usize, &u8)| {
        if CHECKSUM_FIELD.contains(&at) { u64::from(b' ') } else { u64::from(*byte) }
    };
    header.iter().enumerate().map(at).sum()
}

/// Bytes up to the next block.
fn block_padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK_BYTES as u64).unwrap_or_default();
    if over == 0 { 0 } else { BLOCK_BYTES - over }
}
