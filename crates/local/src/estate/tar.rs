//! Archives as `tar` writes them: what is needed to carry plain files, and nothing else. Links, devices, sparse files and
//! compression are not read, and every doubt about where an entry ends or what it is called is a refusal.

mod read;
mod write;

pub(super) use read::{Entry, Reader};
pub(super) use write::Writer;

/// Everything in an archive comes in blocks of this size.
const BLOCK: usize = 512;
/// Where the parts of a header are.
const NAME: std::ops::Range<usize> = 0..100;
const MODE: std::ops::Range<usize> = 100..108;
const SIZE: std::ops::Range<usize> = 124..136;
const MODIFIED: std::ops::Range<usize> = 136..148;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: std::ops::Range<usize> = 257..265;
const PREFIX: std::ops::Range<usize> = 345..500;
/// The two forms of the magic.
const POSIX: &[u8] = b"ustar\x0000";
const GNU: &[u8] = b"ustar  \0";
/// What an entry with a long name of GNU is called itself.
const LONG_LINK: &[u8] = b"././@LongLink";

/// The sum over a header, in which the place of the sum counts as spaces.
fn checksum(header: &[u8; BLOCK]) -> u64 {
    let at =
        |(at, byte): (usize, &u8)| if CHECKSUM.contains(&at) { u64::from(b' ') } else { u64::from(*byte) };
    header.iter().enumerate().map(at).sum()
}

/// Bytes up to the next block.
fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    if over == 0 { 0 } else { BLOCK - over }
}
