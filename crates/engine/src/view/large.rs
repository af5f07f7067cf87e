//! Files that take long to read through: the version of one is found piece by piece, so that a call ends when its time is over
//! or its caller goes. Small ones are read at once, as ever.

use path::RelPath;

use super::View;
use crate::{
    failure::{Failure, Kind},
    version::Versioning,
    workspace::{FileBytes, Node, Pieces, Want},
};

/// Above this a file is read piece by piece.
const AT_ONCE_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a piece.
const PIECE_BYTES: usize = 1 << 20;

impl View<'_> {
    /// Bytes of a file on the disk, with the version of the whole.
    pub(super) fn saved(&self, path: &RelPath, want: Want) -> Result<FileBytes, Failure> {
        let at_once = || self.workspace.read(path, want);
        let (Want::Nothing | Want::Range { .. }) = want else { return at_once() };
        // Looked at before it is opened: what changes in between has another stamp when the change is made.
        let Some(node) = self.workspace.stat(path)?.filter(|node| node.size > AT_ONCE_BYTES_MAX) else {
            return at_once();
        };
        let Ok(pieces) = self.workspace.pieces(path) else { return at_once() };
        self.through(&*pieces, node, want)
    }

    /// Reads all of it and keeps what is wanted.
    fn through(&self, pieces: &dyn Pieces, node: Node, want: Want) -> Result<FileBytes, Failure> {
        let wanted = match want {
            Want::Whole { .. } | Want::Nothing => 0..0,
            Want::Range { offset, length } => offset..offset.saturating_add(length),
        };
        let (mut versioning, mut bytes) = (Versioning::default(), Vec::new());
        let mut buffer = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < pieces.size() {
            self.control.check()?;
            let left = usize::try_from(pieces.size() - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = pieces.read_at(at, &mut buffer[..left])?;
            if read == 0 {
                break;
            }
            versioning.add(&buffer[..read]);
            bytes.extend_from_slice(part(&buffer[..read], at, &wanted)?);
            at += read as u64;
        }
        Ok(FileBytes { bytes, version: versioning.end(), node })
    }
}

/// What of a piece lies in a range of the file.
fn part<'b>(piece: &'b [u8], at: u64, wanted: &std::ops::Range<u64>) -> Result<&'b [u8], Failure> {
    let inside = |place: u64| {
        let inside = place.saturating_sub(at).min(piece.len() as u64);
        usize::try_from(inside).map_err(|_| Failure::new(Kind::TooLarge, "the range is too long"))
    };
    Ok(&piece[inside(wanted.start)?..inside(wanted.end)?.max(inside(wanted.start)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_the_same_in_pieces() {
        let whole: Vec<u8> = (0..=99).collect();
        for (start, end) in [(0, 100), (3, 7), (9, 21), (20, 20), (95, 200), (100, 120), (7, 3)] {
            let mut found = Vec::new();
            for (number, piece) in whole.chunks(10).enumerate() {
                found.extend_from_slice(part(piece, number as u64 * 10, &(start..end)).unwrap());
            }
            let wanted: Vec<u8> =
                whole.iter().copied().filter(|byte| (start..end).contains(&u64::from(*byte))).collect();
            assert_eq!(found, wanted, "{start}..{end}");
        }
    }
}
