//! Where the chunks of a patch belong. Owns the search: anchors first, then the chunk from behind the last one on, then
//! from the top; by ever more forgiving passes and readings. Promises one place or a reason. Never takes the first of
//! several.

use std::borrow::Cow;
use std::ops::Range;

use crate::locate::Pass;

use super::apply::{Insertion, Placed, Reason, Repeats, Rules};
use super::index::{Exhausted, Hit, Index, Sought};
use super::rescue::{ChunkReading, Part, Piece, Slips, readings};
use super::splice::Splice;
use super::{Chunk, End, Newline};

/// The state of a search through one text.
pub(super) struct Search<'i, 't> {
    text: &'t str,
    index: &'i Index<'t>,
    rules: &'i Rules<'i>,
    /// The line behind the last chunk.
    cursor: usize,
    /// How far the last chunk was from where its numbers said.
    drift: isize,
    /// Where each line starts that is counted by `\n`.
    numbered: Vec<usize>,
}

/// What one way of looking found.
enum Looked {
    Nowhere,
    Here(Hit),
    Several(Vec<usize>),
    /// Only where another chunk already is.
    Taken {
        other: usize,
        line: usize,
    },
}

impl From<Exhausted> for Reason {
    fn from(_: Exhausted) -> Self {
        Reason::Exhausted
    }
}

impl<'i, 't> Search<'i, 't> {
    pub(super) fn new(text: &'t str, index: &'i Index<'t>, rules: &'i Rules<'i>) -> Self {
        let ends = |at: &usize| index.lines[at - 1].terminator.ends_with('\n');
        let numbered = std::iter::once(0).chain((1..index.lines.len()).filter(ends)).collect();
        Self { text, index, rules, cursor: 0, drift: 0, numbered }
    }

    /// The place of a chunk, given what the ones before have claimed.
    pub(super) fn place<'c>(&mut self, chunk: &'c Chunk, splice: &Splice) -> Result<Placed<'c>, Reason> {
        let readings = readings(chunk, self.rules);
        if chunk.only_adds() {
            let start = self.insertion(chunk)?;
            let pieces = readings.into_iter().next().map(|reading| reading.pieces).unwrap_or_default();
            return Ok(Placed { start, pieces: Cow::Owned(pieces), pass: Pass::Exact, rescue: None });
        }
        let groups = self.regions(chunk)?;
        let mut reason = None;
        for reading in readings {
            for &pass in self.rules.passes {
                for regions in &groups {
                    match self.look(chunk, &reading, pass, regions, splice)? {
                        Looked::Nowhere => {}
                        Looked::Here(hit) => return Ok(self.found(chunk, reading, pass, hit)),
                        Looked::Several(lines) => {
                            let count = reading.pieces.iter().filter(|piece| piece.is_old()).count();
                            return Err(Reason::Ambiguous { lines, count });
                        }
                        Looked::Taken { other, line } => {
                            reason.get_or_insert(Reason::Overlap { other, line });
                        }
                    }
                }
            }
        }
        match reason {
            Some(reason) => Err(reason),
            None => Err(self.nowhere(chunk)),
        }
    }

    fn found<'c>(&mut self, chunk: &Chunk, reading: ChunkReading, pass: Pass, hit: Hit) -> Placed<'c> {
        let mut pieces = reading.pieces;
        if let Some(delta) = &hit.delta {
            for piece in pieces.iter_mut().filter(|piece| piece.part == Part::Add) {
                // A place where this is not possible was not taken.
                if let Some(text) = delta.apply(&piece.text) {
                    piece.text = text.into_owned();
                }
            }
        }
        let count = pieces.iter().filter(|piece| piece.is_old()).count();
        self.cursor = hit.start + count;
        if let Some(expected) = self.expected(chunk) {
            self.drift += hit.start.cast_signed() - expected.cast_signed();
        }
        Placed { start: hit.start, pieces: Cow::Owned(pieces), pass, rescue: reading.rescue }
    }

    /// Where a chunk's number says it is, 0-based, given how far the last one was off.
    fn expected(&self, chunk: &Chunk) -> Option<usize> {
        let number = chunk.near?.start.checked_sub(1)?;
        let line = self.numbered.get(number).copied().unwrap_or(self.index.lines.len());
        line.checked_add_signed(self.drift)
    }

    /// Where lines go that come alone.
    fn insertion(&self, chunk: &Chunk) -> Result<usize, Reason> {
        let end = self.index.lines.len();
        if let Some(near) = chunk.near {
            let line = self.numbered.get(near.start).copied().unwrap_or(end);
            return Ok(if near.start == 0 { 0 } else { line });
        }
        if chunk.anchors.is_empty() {
            return Ok(match (self.rules.insertion, chunk.end) {
                (Insertion::AtTop, End::Anywhere) => 0,
                (Insertion::AtTop, End::OfFile) | (Insertion::AtEnd, End::Anywhere | End::OfFile) => end,
            });
        }
        if chunk.end == End::OfFile {
            return Ok(end);
        }
        let regions = self.anchored(chunk, self.cursor..end)?;
        let regions = if regions.is_empty() { self.anchored(chunk, 0..end)? } else { regions };
        match regions.as_slice() {
            [] => Err(self.anchor_missing(chunk)),
            [only] => Ok(only.start),
            several => Err(Reason::Ambiguous {
                // The anchor is the line before.
                lines: several.iter().map(|region| region.start).collect(),
                count: 1,
            }),
        }
    }

    /// The groups of regions to look through, each only when the ones before have nothing.
    fn regions(&self, chunk: &Chunk) -> Result<Vec<Vec<Range<usize>>>, Reason> {
        let end = self.index.lines.len();
        if chunk.anchors.is_empty() {
            return Ok(vec![std::iter::once(self.cursor..end).collect(), std::iter::once(0..end).collect()]);
        }
        let mut groups = vec![self.anchored(chunk, self.cursor..end)?, self.anchored(chunk, 0..end)?];
        if groups.iter().all(Vec::is_empty) {
            return Err(self.anchor_missing(chunk));
        }
        // A chunk may quote the line that it is anchored to.
        let with_anchor = |group: &Vec<Range<usize>>| {
            group.iter().map(|region| region.start - 1..region.end).collect::<Vec<_>>()
        };
        groups.extend(groups.iter().map(with_anchor).collect::<Vec<_>>());
        Ok(groups)
    }

    /// The stretches of `within` that stand behind the anchors. The outermost anchor may stand in several places; of
    /// the ones inside, the first counts.
    fn anchored(&self, chunk: &Chunk, within: Range<usize>) -> Result<Vec<Range<usize>>, Reason> {
        let mut regions = vec![within];
        for (depth, anchor) in chunk.anchors.iter().enumerate() {
            let mut inner = Vec::new();
            for region in regions {
                let at = self.anchor(anchor, &region)?;
                let taken = if depth == 0 { at.len() } else { at.len().min(1) };
                for (number, start) in at.iter().take(taken).enumerate() {
                    let end = at.get(number + 1).filter(|_| depth == 0).copied().unwrap_or(region.end);
                    inner.push(start + 1..end.max(start + 1));
                }
            }
            regions = inner;
        }
        Ok(regions)
    }

    /// The lines of a region that are an anchor: by the passes, in the end by how they begin.
    fn anchor(&self, anchor: &str, region: &Range<usize>) -> Result<Vec<usize>, Reason> {
        for &pass in self.rules.passes {
            let hits = self.index.find(&[Sought { text: anchor, other: None }], pass, region)?;
            if !hits.is_empty() {
                return Ok(hits.into_iter().map(|hit| hit.start).collect());
            }
        }
        let begins = |at: &usize| self.index.lines[*at].body.trim_start().starts_with(anchor.trim());
        Ok(region.clone().filter(begins).collect())
    }

    fn anchor_missing(&self, chunk: &Chunk) -> Reason {
        let end = self.index.lines.len();
        let is_missing = |anchor: &&String| self.anchor(anchor, &(0..end)).is_ok_and(|at| at.is_empty());
        let anchor = chunk.anchors.iter().find(is_missing).or(chunk.anchors.last());
        Reason::AnchorNotFound { anchor: anchor.cloned().unwrap_or_default() }
    }

    /// Looks for one reading of a chunk by one pass.
    fn look(
        &self,
        chunk: &Chunk,
        reading: &ChunkReading,
        pass: Pass,
        regions: &[Range<usize>],
        splice: &Splice,
    ) -> Result<Looked, Reason> {
        let old: Vec<&Piece> = reading.pieces.iter().filter(|piece| piece.is_old()).collect();
        let sought: Vec<Sought<'_>> =
            old.iter().map(|piece| Sought { text: &piece.text, other: piece.other.as_deref() }).collect();
        let mut groups: Vec<(usize, Vec<Hit>)> = Vec::new();
        let mut taken = None;
        for region in regions {
            let mut hits = self.index.find(&sought, pass, region)?;
            hits.retain(|hit| can_follow(hit, &reading.pieces));
            hits.retain(|hit| match conflict(hit.start, &old, splice) {
                None => true,
                Some((other, line)) => {
                    taken.get_or_insert(Looked::Taken { other, line });
                    false
                }
            });
            groups.push((region.start, hits));
        }
        if self.rules.repeats == Repeats::OfText && is_repeated(self.text, &sought) {
            let lines = groups.iter().flat_map(|(_, hits)| hits).map(|hit| hit.start + 1).collect();
            return Ok(Looked::Several(lines));
        }
        let chosen = self.choose(chunk, &reading.pieces, sought.len(), groups);
        Ok(match chosen {
            Looked::Nowhere => taken.unwrap_or(Looked::Nowhere),
            Looked::Here(_) | Looked::Several(_) | Looked::Taken { .. } => chosen,
        })
    }

    /// One of the places found, if something tells it from the others.
    fn choose(
        &self,
        chunk: &Chunk,
        pieces: &[Piece],
        count: usize,
        groups: Vec<(usize, Vec<Hit>)>,
    ) -> Looked {
        let is_anchored = !chunk.anchors.is_empty();
        let changes = pieces.iter().any(|piece| piece.part != Part::Keep);
        let mut hits: Vec<Hit> = Vec::new();
        for (start, mut group) in groups {
            if is_anchored && group.len() > 1 {
                // Of the places below what the anchor starts, all count; of those further on, the nearest.
                let end = self.scope_end(start, &group);
                group.truncate(group.iter().take_while(|hit| hit.start < end).count().max(1));
            }
            hits.append(&mut group);
        }
        let last = self.index.lines.len();
        let says_end =
            chunk.end == End::OfFile || chunk.lines.iter().any(|line| line.newline == Newline::Missing);
        let at_end = hits.iter().rposition(|hit| says_end && hit.start + count == last);
        let expected = self.expected(chunk);
        let as_numbered = hits.iter().position(|hit| Some(hit.start) == expected);
        let told = at_end.or(as_numbered).or((!changes && !hits.is_empty()).then_some(0));
        match (told, hits.len()) {
            (Some(at), _) => Looked::Here(hits.swap_remove(at)),
            (None, 0) => Looked::Nowhere,
            (None, 1) => Looked::Here(hits.swap_remove(0)),
            (None, _) => Looked::Several(hits.iter().map(|hit| hit.start + 1).collect()),
        }
    }

    /// The line behind what the anchor before `start` starts: the first that stands no deeper and opens something.
    fn scope_end(&self, start: usize, hits: &[Hit]) -> usize {
        const CLOSERS: [char; 4] = ['}', ')', ']', '{'];
        let depth = |body: &str| body.len() - body.trim_start().len();
        let lines = &self.index.lines;
        let anchor = depth(lines[start.saturating_sub(1)].body);
        let last = hits.last().map_or(start, |hit| hit.start + 1);
        let opens = |at: &usize| {
            let body = lines[*at].body;
            !body.trim().is_empty() && depth(body) <= anchor && !body.trim_start().starts_with(CLOSERS)
        };
        (start..last).find(opens).unwrap_or(last)
    }

    /// Why a chunk is nowhere.
    fn nowhere(&self, chunk: &Chunk) -> Reason {
        let mut literal = readings(chunk, &Rules { slips: Slips::Stay, ..*self.rules });
        let pieces = literal.pop().map(|reading| reading.pieces).unwrap_or_default();
        let quoted =
            pieces.iter().filter(|piece| piece.is_old()).flat_map(|piece| [piece.text.as_str(), "\n"]);
        let quoted = quoted.collect();
        let new = pieces.iter().filter(|piece| piece.part != Part::Remove);
        let new: Vec<Sought<'_>> = new.map(|piece| Sought { text: &piece.text, other: None }).collect();
        let end = self.index.lines.len();
        let comes = pieces.iter().any(|piece| piece.part == Part::Add);
        let there = self.index.find(&new, Pass::Endings, &(0..end)).unwrap_or_default();
        let already = match there.as_slice() {
            [only] if comes => Some(only.start + 1),
            [] | [_] | [_, ..] => None,
        };
        Reason::NotFound { quoted, already }
    }
}

/// Whether all lines that come can take on the indentation found.
fn can_follow(hit: &Hit, pieces: &[Piece]) -> bool {
    let Some(delta) = &hit.delta else { return true };
    pieces.iter().filter(|piece| piece.part == Part::Add).all(|piece| delta.apply(&piece.text).is_some())
}

/// The chunk that already has a line which this one wants, and the line.
fn conflict(start: usize, old: &[&Piece], splice: &Splice) -> Option<(usize, usize)> {
    (start..).zip(old).find_map(|(at, piece)| {
        let quoted = splice.quoted_by[at].filter(|_| piece.part == Part::Remove);
        splice.removed_by[at].or(quoted).map(|other| (other, at + 1))
    })
}

/// Whether lines stand more than once in a text, also within longer lines.
fn is_repeated(text: &str, sought: &[Sought<'_>]) -> bool {
    let quote: Vec<&str> = sought.iter().map(|line| line.text).collect();
    let quote = quote.join("\n");
    if quote.is_empty() {
        return false;
    }
    let text = if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
    let Some(first) = memchr::memmem::find(text.as_bytes(), quote.as_bytes()) else { return false };
    memchr::memmem::find(&text.as_bytes()[first + 1..], quote.as_bytes()).is_some()
}
