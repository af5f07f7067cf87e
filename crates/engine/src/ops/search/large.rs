//! Files that are too large to be held: looked through as they flow by, in bounded memory and time. A dialect with a limit
//! of its own has them counted instead.

use path::RelPath;
use text::encoding::Encoding;

use super::{
    Found, Look, Source,
    flow::{self, Bounds, End, Flow},
    left::Why,
    lines::Matched,
};
use crate::{failure::Failure, limits, terms::Evidence, workspace::Pieces};

/// What came of one way through a file.
enum Way {
    Done(Matched, u64),
    /// Again, in this encoding.
    Again(Encoding),
    NotText,
    Left(Why),
    Unreadable,
}

impl Look<'_> {
    /// Looks through a large file, or says why not.
    pub(super) fn at_large(&self, found: &mut Found, source: &Source<'_, '_, '_>) -> Result<(), Failure> {
        let path = source.path();
        if self.view.terms.evidence == Evidence::Bytes {
            found.left.add(path, Why::Size);
            return Ok(());
        }
        match self.ways(path, source)? {
            Way::Done(matched, bytes) => {
                found.scanned += 1;
                found.bytes += bytes;
                self.keep(found, path, matched);
            }
            Way::NotText | Way::Again(_) => found.binary += 1,
            Way::Left(why) => found.left.add(path, why),
            Way::Unreadable => found.unreadable += 1,
        }
        Ok(())
    }

    fn ways(&self, path: &RelPath, source: &Source<'_, '_, '_>) -> Result<Way, Failure> {
        let Ok(pieces) = source.pieces(self.view) else { return Ok(Way::Unreadable) };
        let pieces = &*pieces;
        if pieces.size() > limits::SEARCH_LARGE_BYTES_MAX {
            return Ok(Way::Left(Why::Size));
        }
        let encoding = match flow::encoding(pieces) {
            Ok(Some(encoding)) => encoding,
            Ok(None) => return Ok(Way::NotText),
            Err(_) => return Ok(Way::Unreadable),
        };
        match self.way(path, pieces, encoding)? {
            Way::Again(other) => self.way(path, pieces, other),
            way @ (Way::Done(..) | Way::NotText | Way::Left(_) | Way::Unreadable) => Ok(way),
        }
    }

    /// One way through a file in one encoding.
    fn way(&self, path: &RelPath, pieces: &dyn Pieces, encoding: Encoding) -> Result<Way, Failure> {
        let control = self.view.control;
        let bounds = Bounds { control, until: self.until };
        let place = self.place(path);
        let mut take = self.take(place.as_ref());
        loop {
            let mut flow = Flow::new(pieces, encoding, bounds);
            let matched = self.pattern.hits_in(&mut flow, take, control);
            // The call may have ended while the pattern was at work.
            control.check()?;
            let bytes = flow.bytes();
            if let Some(End::NotText(at)) = flow.stopped() {
                let other = flow.other_encoding(*at).unwrap_or(None);
                return Ok(other.map_or(Way::NotText, Way::Again));
            }
            return match (matched, flow.end()) {
                (Some(matched), End::Whole) => Ok(Way::Done(matched, bytes)),
                (Some(matched), End::Cut) => Ok(Way::Done(Matched { passed: true, ..matched }, bytes)),
                (_, End::Left(why)) => Ok(Way::Left(why)),
                (_, End::NotText(_)) => Ok(Way::NotText),
                (_, End::Failed(failure)) if flow::is_of_file(&failure) => Ok(Way::Unreadable),
                (_, End::Failed(failure)) => Err(failure),
                // Lines around a hit have no room beside it: then it stands alone.
                (None, End::Whole | End::Cut) if take.context > 0 => {
                    take.context = 0;
                    continue;
                }
                (None, End::Whole | End::Cut) => Ok(Way::Left(Why::Line)),
            };
        }
    }
}
