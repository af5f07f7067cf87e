//! Where the chunks of a patch belong. Owns the search: below the anchors, behind the last chunk if it is there at all,
//! else anywhere; by ever more forgiving passes and readings. Promises one place or a reason. Never takes the first of
//! several.

use std::borrow::Cow;

use crate::locate::Pass;
use crate::proof;

use super::anchor::{Anchored, Anchors, Own};
use super::apply::{Ground, Insertion, Placed, Reason, Repeats, Rules};
use super::index::{Exhausted, Hit, Index, Sought};
use super::rescue::{ChunkReading, Part, Piece, Slips, readings};
use super::splice::Splice;
use super::{Chunk, End, Near, Newline};

/// The state of a search through one text.
pub(super) struct Search<'i, 't> {
    text: &'t str,
    index: &'i Index<'t>,
    rules: &'i Rules<'i>,
    anchors: Anchors<'i, 't>,
    /// The line behind the last one that the chunk before changed; the lines it only quotes at its end can be shared.
    cursor: usize,
    /// How far the last chunk was from where its numbers said.
    drift: isize,
    numbers: Numbers,
    order: Order,
    /// Where each line starts that is counted by `\n`.
    numbered: Vec<usize>,
}

/// Whether the numbers of the patch are those of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// As far as chunks showed.
    Fit,
    Off,
}

/// Whether the chunks stand in the text in the order they were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// So far.
    Kept,
    Broken,
}

/// What one way of looking found.
enum Looked {
    Nowhere,
    Here {
        hit: Hit,
        /// Where else it fits, with this one, when only the order of the chunks told them apart.
        rivals: Vec<usize>,
    },
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
        let anchors = Anchors::new(index, rules.passes);
        Self {
            text,
            index,
            rules,
            anchors,
            cursor: 0,
            drift: 0,
            numbers: Numbers::Fit,
            order: Order::Kept,
            numbered,
        }
    }

    /// The place of a chunk, given what the ones before have claimed.
    pub(super) fn place<'c>(&mut self, chunk: &'c Chunk, splice: &Splice) -> Result<Placed<'c>, Reason> {
        let readings = readings(chunk, self.rules);
        if chunk.only_adds() {
            let (start, ground) = self.insertion(chunk)?;
            let pieces = readings.into_iter().next().map(|reading| reading.pieces).unwrap_or_default();
            let (pieces, rivals) = (Cow::Owned(pieces), Vec::new());
            return Ok(Placed { start, pieces, pass: Pass::Exact, rescue: None, ground, rivals });
        }
        let anchored = self.anchors.all(&chunk.anchors)?;
        if anchored.is_empty() && !chunk.anchors.is_empty() {
            return Err(self.anchor_missing(chunk));
        }
        let mut reason = None;
        for reading in readings {
            for &pass in self.rules.passes {
                match self.look(chunk, &reading, pass, &anchored, splice)? {
                    Looked::Nowhere => {}
                    Looked::Here { hit, rivals } => {
                        return Ok(Placed { rivals, ..self.found(chunk, reading, pass, hit) });
                    }
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
        let changed = pieces.iter().rposition(|piece| piece.part != Part::Keep).map_or(0, |last| last + 1);
        let count = pieces[..changed].iter().filter(|piece| piece.is_old()).count();
        if hit.start < self.cursor {
            self.order = Order::Broken;
        }
        self.cursor = hit.start + count;
        if let Some(expected) = self.expected(chunk) {
            self.drift += hit.start.cast_signed() - expected.cast_signed();
            self.numbers = if self.drift == 0 { self.numbers } else { Numbers::Off };
        }
        let (start, rescue) = (hit.start, reading.rescue);
        let (pieces, rivals) = (Cow::Owned(pieces), Vec::new());
        Placed { start, pieces, pass, rescue, ground: Ground::Said, rivals }
    }

    /// Whether a place that seemed good is not, after what later chunks showed: one number that is off makes all of
    /// them doubtful, and one chunk that is out of order makes order tell nothing.
    pub(super) fn doubt(&self, placed: &Placed<'_>) -> Option<Reason> {
        if placed.ground == Ground::Number && self.numbers == Numbers::Off {
            return Some(Reason::NumberOnly { line: placed.start });
        }
        let count = placed.pieces.iter().filter(|piece| piece.is_old()).count();
        (self.order == Order::Broken && !placed.rivals.is_empty())
            .then(|| Reason::Ambiguous { lines: placed.rivals.clone(), count })
    }

    /// Where a chunk's number says it is, 0-based, given how far the last one was off.
    fn expected(&self, chunk: &Chunk) -> Option<usize> {
        let number = chunk.near?.start.checked_sub(1)?;
        let line = self.numbered.get(number).copied().unwrap_or(self.index.lines.len());
        line.checked_add_signed(self.drift)
    }

    /// Where lines go that come alone.
    fn insertion(&self, chunk: &Chunk) -> Result<(usize, Ground), Reason> {
        let end = self.index.lines.len();
        if let Some(Near { start }) = chunk.near {
            let last = self.numbered.len().min(end);
            return match self.numbered.get(start).copied() {
                Some(line) => Ok((line, Ground::Number)),
                None if start == last => Ok((end, Ground::Number)),
                None => Err(Reason::NumberOnly { line: start }),
            };
        }
        if chunk.end == End::OfFile {
            return Ok((end, Ground::Said));
        }
        if chunk.anchors.is_empty() {
            return Ok(match self.rules.insertion {
                Insertion::AtTop => (0, Ground::Nothing),
                Insertion::AtEnd => (end, Ground::Nothing),
            });
        }
        match self.anchors.all(&chunk.anchors)?.as_slice() {
            [] => Err(self.anchor_missing(chunk)),
            [only] => Ok((only.line + 1, Ground::Said)),
            several => Err(Reason::Ambiguous {
                lines: several.iter().map(|anchored| anchored.line + 1).collect(),
                count: 1,
            }),
        }
    }

    fn anchor_missing(&self, chunk: &Chunk) -> Reason {
        Reason::AnchorNotFound { anchor: self.anchors.missing(&chunk.anchors).cloned().unwrap_or_default() }
    }

    /// Looks for one reading of a chunk by one pass.
    fn look(
        &self,
        chunk: &Chunk,
        reading: &ChunkReading,
        pass: Pass,
        anchored: &[Anchored],
        splice: &Splice,
    ) -> Result<Looked, Reason> {
        let old = reading.pieces.iter().filter(|piece| piece.is_old());
        let sought: Vec<Sought<'_>> =
            old.map(|piece| Sought { text: &piece.text, other: piece.other.as_deref() }).collect();
        let mut hits = self.index.find(&sought, pass, &(0..self.index.lines.len()))?;
        hits.retain(|hit| can_follow(hit, &reading.pieces));
        if !chunk.anchors.is_empty() {
            let starts: Vec<usize> = hits.iter().map(|hit| hit.start).collect();
            let below = |above: &Anchored| self.anchors.below(*above, Own::Counts, &starts);
            let kept: Vec<usize> = anchored.iter().flat_map(below).copied().collect();
            hits.retain(|hit| kept.binary_search(&hit.start).is_ok());
        }
        if self.rules.repeats == Repeats::OfText && is_repeated(self.text, &sought) {
            return Ok(Looked::Several(hits.iter().map(|hit| hit.start + 1).collect()));
        }
        Ok(self.choose(chunk, &reading.pieces, hits, splice))
    }

    /// One of the places found, if something tells it from the others.
    fn choose(&self, chunk: &Chunk, pieces: &[Piece], mut hits: Vec<Hit>, splice: &Splice) -> Looked {
        let old: Vec<&Piece> = pieces.iter().filter(|piece| piece.is_old()).collect();
        let last = self.index.lines.len();
        let says_end =
            chunk.end == End::OfFile || chunk.lines.iter().any(|line| line.newline == Newline::Missing);
        let at_end = hits.iter().rposition(|hit| says_end && hit.start + old.len() == last);
        let expected = self.expected(chunk);
        let as_numbered = hits.iter().position(|hit| Some(hit.start) == expected);
        if let Some(told) = at_end.or(as_numbered) {
            hits = vec![hits.swap_remove(told)];
        }
        let mut rivals = Vec::new();
        let behind = hits.iter().filter(|hit| hit.start >= self.cursor).count();
        if (1..hits.len()).contains(&behind) {
            rivals = hits.iter().map(|hit| hit.start + 1).collect();
            hits.retain(|hit| hit.start >= self.cursor);
        }
        let mut taken = Looked::Nowhere;
        hits.retain(|hit| match conflict(hit.start, &old, splice) {
            None => true,
            Some((other, line)) => {
                taken = Looked::Taken { other, line };
                false
            }
        });
        if pieces.iter().all(|piece| piece.part == Part::Keep) {
            // It changes nothing, wherever it is.
            hits.truncate(1);
            rivals.clear();
        }
        match hits.len() {
            0 => taken,
            1 => Looked::Here { hit: hits.swap_remove(0), rivals },
            _ => Looked::Several(hits.iter().map(|hit| hit.start + 1).collect()),
        }
    }

    /// Why a chunk is nowhere.
    fn nowhere(&self, chunk: &Chunk) -> Reason {
        let mut literal = readings(chunk, &Rules { slips: Slips::Stay, ..*self.rules });
        let pieces = literal.pop().map(|reading| reading.pieces).unwrap_or_default();
        let quoted =
            pieces.iter().filter(|piece| piece.is_old()).flat_map(|piece| [piece.text.as_str(), "\n"]);
        let quoted: String = quoted.collect();
        let added = pieces.iter().filter(|piece| !piece.is_old());
        let added: String = added.flat_map(|piece| [piece.text.as_str(), "\n"]).collect();
        let new = pieces.iter().filter(|piece| piece.part != Part::Remove);
        let new: Vec<Sought<'_>> = new.map(|piece| Sought { text: &piece.text, other: None }).collect();
        let end = self.index.lines.len();
        let there = self.index.find(&new, Pass::Endings, &(0..end)).unwrap_or_default();
        let already = match there.as_slice() {
            [only] if proof::is_telling(&quoted, &added) => Some(only.start + 1),
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
