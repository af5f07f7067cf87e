//! Hashing of large files in pieces, so that the call can be cancelled or reach its deadline meanwhile. Small files
//! are read at once.

use stead_path::RelPath;

use super::CallContext;
use crate::{
    errors::{Error, ErrorKind},
    version::VersionHasher,
    workspace::{BytesToRead, FileBytes, FileReader, FileStat},
};

/// Larger files are read in pieces.
const IN_MEMORY_BYTES_MAX: u64 = 64 << 20;
const PIECE_BYTES: usize = 1 << 20;

impl CallContext<'_> {
    /// Bytes of a file on disk, with the version of the whole file.
    pub(super) fn read_saved(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytes, Error> {
        let at_once = || self.workspace.read(path, want);
        let (BytesToRead::VersionOnly | BytesToRead::Range { .. }) = want else { return at_once() };
        // Stat before open: a change in between gives another identity, which the commit detects.
        let Some(stat) = self.workspace.stat(path)?.filter(|stat| stat.size > IN_MEMORY_BYTES_MAX) else {
            return at_once();
        };
        let Ok(file) = self.workspace.open_file(path) else { return at_once() };
        self.hash_in_pieces(&*file, stat, want)
    }

    /// Reads the whole file and keeps the wanted range.
    fn hash_in_pieces(&self, file: &dyn FileReader, stat: FileStat, want: BytesToRead) -> Result<FileBytes, Error> {
        let wanted = match want {
            BytesToRead::Whole { .. } | BytesToRead::VersionOnly => 0..0,
            BytesToRead::Range { offset, length } => offset..offset.saturating_add(length),
        };
        let (mut hasher, mut bytes) = (VersionHasher::default(), Vec::new());
        let mut buffer = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < file.size() {
            self.control.check()?;
            let left = usize::try_from(file.size() - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = file.read_at(at, &mut buffer[..left])?;
            if read == 0 {
                break;
            }
            hasher.add(&buffer[..read]);
            bytes.extend_from_slice(overlapping_part(&buffer[..read], at, &wanted)?);
            at += read as u64;
        }
        Ok(FileBytes { bytes, version: hasher.finish(), stat })
    }
}

/// The part of a piece that lies in a range of the file.
fn overlapping_part<'b>(piece: &'b [u8], at: u64, wanted: &std::ops::Range<u64>) -> Result<&'b [u8], Error> {
    let inside = |offset: u64| {
        let inside = offset.saturating_sub(at).min(piece.len() as u64);
        usize::try_from(inside).map_err(|_| Error::new(ErrorKind::TooLarge, "the range is too long"))
    };
    Ok(&piece[inside(wanted.start)?..inside(wanted.end)?.max(inside(wanted.start)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piecewise_range_equals_direct_slice() {
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
