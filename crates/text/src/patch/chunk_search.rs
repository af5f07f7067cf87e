//! Placement of chunks in a text. Owns the search: below the anchors, after the last chunk if possible, else anywhere;
//! with increasingly lenient passes and interpretations. Promises one position or an error. Never takes the first of
//! several.

use std::borrow::Cow;

use crate::distinctive;
use crate::locate::MatchPass;

use super::anchor::{AnchorFinder, AnchorLineRule, AnchorMatch};
use super::apply::{AmbiguityRule, InsertionPoint, PatchApplyErrorKind, PatchRules, PlacedChunk, PlacementBasis};
use super::interpretations::{ChunkInterpretation, ChunkLine, ResolvedLineKind, SlipRepair, interpretations};
use super::line_edits::LineEdits;
use super::line_index::{LineIndex, LinePattern, LineRunMatch, SearchBudgetExceeded};
use super::{DeclaredPosition, EndOfFileMarker, NoNewlineMarker, PatchChunk};

pub(super) struct PatchChunkLocator<'i, 't> {
    text: &'t str,
    index: &'i LineIndex<'t>,
    rules: &'i PatchRules<'i>,
    anchors: AnchorFinder<'i, 't>,
    /// The line after the last one that the previous chunk changed; its trailing context lines can be shared.
    cursor: usize,
    /// The distance of the last chunk from its declared position.
    line_offset: isize,
    number_trust: LineNumberTrust,
    order: ChunkOrder,
    /// The start of each line, counted by `\n`.
    numbered_line_starts: Vec<usize>,
}

/// Whether the declared line numbers fit the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineNumberTrust {
    /// Not contradicted by a chunk so far.
    Trusted,
    Untrusted,
}

/// Whether the chunks occur in the text in the order of the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkOrder {
    Ascending,
    Broken,
}

enum ChunkSearchResult {
    NotFound,
    Found {
        hit: LineRunMatch,
        /// All fitting lines, if only the order of the chunks distinguished them.
        candidate_starts: Vec<usize>,
    },
    Ambiguous(Vec<usize>),
    /// All positions overlap another chunk.
    Overlapping {
        other_chunk: usize,
        line: usize,
    },
}

impl From<SearchBudgetExceeded> for PatchApplyErrorKind {
    fn from(_: SearchBudgetExceeded) -> Self {
        PatchApplyErrorKind::Exhausted
    }
}

impl<'i, 't> PatchChunkLocator<'i, 't> {
    pub(super) fn new(text: &'t str, index: &'i LineIndex<'t>, rules: &'i PatchRules<'i>) -> Self {
        let ends = |at: &usize| index.lines[at - 1].terminator.ends_with('\n');
        let numbered_line_starts = std::iter::once(0).chain((1..index.lines.len()).filter(ends)).collect();
        let anchors = AnchorFinder::new(index, rules.passes);
        Self {
            text,
            index,
            rules,
            anchors,
            cursor: 0,
            line_offset: 0,
            number_trust: LineNumberTrust::Trusted,
            order: ChunkOrder::Ascending,
            numbered_line_starts,
        }
    }

    /// The position of a chunk, given the lines claimed by the earlier chunks.
    pub(super) fn place_chunk<'c>(
        &mut self,
        chunk: &'c PatchChunk,
        splice: &LineEdits,
    ) -> Result<PlacedChunk<'c>, PatchApplyErrorKind> {
        let readings = interpretations(chunk, self.rules);
        if chunk.only_adds() {
            let (start, ground) = self.insertion_line(chunk)?;
            let pieces = readings.into_iter().next().map(|reading| reading.lines).unwrap_or_default();
            let (pieces, rivals) = (Cow::Owned(pieces), Vec::new());
            return Ok(PlacedChunk {
                start,
                lines: pieces,
                pass: MatchPass::Exact,
                repair: None,
                basis: ground,
                candidate_starts: rivals,
            });
        }
        let anchored = self.anchors.find_nested(&chunk.anchors)?;
        if anchored.is_empty() && !chunk.anchors.is_empty() {
            return Err(self.anchor_not_found(chunk));
        }
        let mut reason = None;
        for reading in readings {
            for &pass in self.rules.passes {
                match self.search_pass(chunk, &reading, pass, &anchored, splice)? {
                    ChunkSearchResult::NotFound => {}
                    ChunkSearchResult::Found { hit, candidate_starts: rivals } => {
                        return Ok(PlacedChunk {
                            candidate_starts: rivals,
                            ..self.accept_match(chunk, reading, pass, hit)
                        });
                    }
                    ChunkSearchResult::Ambiguous(lines) => {
                        let count = reading.lines.iter().filter(|piece| piece.is_in_old_text()).count();
                        return Err(PatchApplyErrorKind::Ambiguous { lines, count });
                    }
                    ChunkSearchResult::Overlapping { other_chunk: other, line } => {
                        reason.get_or_insert(PatchApplyErrorKind::Overlap { other, line });
                    }
                }
            }
        }
        match reason {
            Some(reason) => Err(reason),
            None => Err(self.chunk_not_found(chunk)),
        }
    }

    fn accept_match<'c>(
        &mut self,
        chunk: &PatchChunk,
        reading: ChunkInterpretation,
        pass: MatchPass,
        hit: LineRunMatch,
    ) -> PlacedChunk<'c> {
        let mut pieces = reading.lines;
        if let Some(delta) = &hit.indentation_shift {
            for piece in pieces.iter_mut().filter(|piece| piece.kind == ResolvedLineKind::Add) {
                // Positions where the shift fails were not accepted.
                if let Some(text) = delta.apply_to_line(&piece.text) {
                    piece.text = text.into_owned();
                }
            }
        }
        let changed =
            pieces.iter().rposition(|piece| piece.kind != ResolvedLineKind::Context).map_or(0, |last| last + 1);
        let count = pieces[..changed].iter().filter(|piece| piece.is_in_old_text()).count();
        if hit.start < self.cursor {
            self.order = ChunkOrder::Broken;
        }
        self.cursor = hit.start + count;
        if let Some(expected) = self.expected_line(chunk) {
            self.line_offset += hit.start.cast_signed() - expected.cast_signed();
            self.number_trust = if self.line_offset == 0 { self.number_trust } else { LineNumberTrust::Untrusted };
        }
        let (start, rescue) = (hit.start, reading.repair);
        let (pieces, rivals) = (Cow::Owned(pieces), Vec::new());
        PlacedChunk {
            start,
            lines: pieces,
            pass,
            repair: rescue,
            basis: PlacementBasis::Content,
            candidate_starts: rivals,
        }
    }

    /// Rechecks a placement after later chunks: one wrong number makes all numbers doubtful, and one chunk out of
    /// order makes the order meaningless.
    pub(super) fn recheck_placement(&self, placed: &PlacedChunk<'_>) -> Option<PatchApplyErrorKind> {
        if placed.basis == PlacementBasis::LineNumber && self.number_trust == LineNumberTrust::Untrusted {
            return Some(PatchApplyErrorKind::NumberOnly { line: placed.start });
        }
        let count = placed.lines.iter().filter(|piece| piece.is_in_old_text()).count();
        (self.order == ChunkOrder::Broken && !placed.candidate_starts.is_empty())
            .then(|| PatchApplyErrorKind::Ambiguous { lines: placed.candidate_starts.clone(), count })
    }

    /// The declared line of a chunk, 0-based, corrected by the offset of the last chunk.
    fn expected_line(&self, chunk: &PatchChunk) -> Option<usize> {
        let number = chunk.declared_position?.start.checked_sub(1)?;
        let line = self.numbered_line_starts.get(number).copied().unwrap_or(self.index.lines.len());
        line.checked_add_signed(self.line_offset)
    }

    /// The position of added lines without context.
    fn insertion_line(&self, chunk: &PatchChunk) -> Result<(usize, PlacementBasis), PatchApplyErrorKind> {
        let end = self.index.lines.len();
        if let Some(DeclaredPosition { start }) = chunk.declared_position {
            let last = self.numbered_line_starts.len().min(end);
            return match self.numbered_line_starts.get(start).copied() {
                Some(line) => Ok((line, PlacementBasis::LineNumber)),
                None if start == last => Ok((end, PlacementBasis::LineNumber)),
                None => Err(PatchApplyErrorKind::NumberOnly { line: start }),
            };
        }
        if chunk.end_of_file == EndOfFileMarker::Present {
            return Ok((end, PlacementBasis::Content));
        }
        if chunk.anchors.is_empty() {
            return Ok(match self.rules.insertion {
                InsertionPoint::AtTop => (0, PlacementBasis::Default),
                InsertionPoint::AtEnd => (end, PlacementBasis::Default),
            });
        }
        match self.anchors.find_nested(&chunk.anchors)?.as_slice() {
            [] => Err(self.anchor_not_found(chunk)),
            [only] => Ok((only.line + 1, PlacementBasis::Content)),
            several => Err(PatchApplyErrorKind::Ambiguous {
                lines: several.iter().map(|anchored| anchored.line + 1).collect(),
                count: 1,
            }),
        }
    }

    fn anchor_not_found(&self, chunk: &PatchChunk) -> PatchApplyErrorKind {
        PatchApplyErrorKind::AnchorNotFound {
            anchor: self.anchors.first_missing(&chunk.anchors).cloned().unwrap_or_default(),
        }
    }

    /// Searches one interpretation of a chunk with one pass.
    fn search_pass(
        &self,
        chunk: &PatchChunk,
        reading: &ChunkInterpretation,
        pass: MatchPass,
        anchored: &[AnchorMatch],
        splice: &LineEdits,
    ) -> Result<ChunkSearchResult, PatchApplyErrorKind> {
        let old = reading.lines.iter().filter(|piece| piece.is_in_old_text());
        let pattern: Vec<LinePattern<'_>> =
            old.map(|piece| LinePattern { text: &piece.text, alternative: piece.alternative.as_deref() }).collect();
        let mut hits = self.index.find_line_run(&pattern, pass, &(0..self.index.lines.len()))?;
        hits.retain(|hit| matches_indentation(hit, &reading.lines));
        if !chunk.anchors.is_empty() {
            let starts: Vec<usize> = hits.iter().map(|hit| hit.start).collect();
            let below = |above: &AnchorMatch| self.anchors.lines_below(*above, AnchorLineRule::Included, &starts);
            let allowed: Vec<usize> = anchored.iter().flat_map(below).copied().collect();
            hits.retain(|hit| allowed.binary_search(&hit.start).is_ok());
        }
        if self.rules.ambiguity == AmbiguityRule::RepeatedText && occurs_repeatedly(self.text, &pattern) {
            return Ok(ChunkSearchResult::Ambiguous(hits.iter().map(|hit| hit.start + 1).collect()));
        }
        Ok(self.choose_match(chunk, &reading.lines, hits, splice))
    }

    /// The only match, or the one that anchor, position or order distinguishes.
    fn choose_match(
        &self,
        chunk: &PatchChunk,
        pieces: &[ChunkLine],
        mut hits: Vec<LineRunMatch>,
        splice: &LineEdits,
    ) -> ChunkSearchResult {
        let old: Vec<&ChunkLine> = pieces.iter().filter(|piece| piece.is_in_old_text()).collect();
        let last = self.index.lines.len();
        let says_end = chunk.end_of_file == EndOfFileMarker::Present
            || chunk.lines.iter().any(|line| line.no_newline_marker == NoNewlineMarker::Present);
        let at_end = hits.iter().rposition(|hit| says_end && hit.start + old.len() == last);
        let expected = self.expected_line(chunk);
        let as_numbered = hits.iter().position(|hit| Some(hit.start) == expected);
        if let Some(chosen) = at_end.or(as_numbered) {
            hits = vec![hits.swap_remove(chosen)];
        }
        let mut rivals = Vec::new();
        let behind = hits.iter().filter(|hit| hit.start >= self.cursor).count();
        if (1..hits.len()).contains(&behind) {
            rivals = hits.iter().map(|hit| hit.start + 1).collect();
            hits.retain(|hit| hit.start >= self.cursor);
        }
        let mut taken = ChunkSearchResult::NotFound;
        hits.retain(|hit| match find_overlap(hit.start, &old, splice) {
            None => true,
            Some((other, line)) => {
                taken = ChunkSearchResult::Overlapping { other_chunk: other, line };
                false
            }
        });
        if pieces.iter().all(|piece| piece.kind == ResolvedLineKind::Context) {
            // The chunk changes nothing, so any match will do.
            hits.truncate(1);
            rivals.clear();
        }
        match hits.len() {
            0 => taken,
            1 => ChunkSearchResult::Found { hit: hits.swap_remove(0), candidate_starts: rivals },
            _ => ChunkSearchResult::Ambiguous(hits.iter().map(|hit| hit.start + 1).collect()),
        }
    }

    fn chunk_not_found(&self, chunk: &PatchChunk) -> PatchApplyErrorKind {
        let mut literal = interpretations(chunk, &PatchRules { slip_repair: SlipRepair::Off, ..*self.rules });
        let pieces = literal.pop().map(|reading| reading.lines).unwrap_or_default();
        let quoted = pieces.iter().filter(|piece| piece.is_in_old_text()).flat_map(|piece| [piece.text.as_str(), "\n"]);
        let quoted: String = quoted.collect();
        let added = pieces.iter().filter(|piece| !piece.is_in_old_text());
        let added: String = added.flat_map(|piece| [piece.text.as_str(), "\n"]).collect();
        let new = pieces.iter().filter(|piece| piece.kind != ResolvedLineKind::Remove);
        let new: Vec<LinePattern<'_>> = new.map(|piece| LinePattern { text: &piece.text, alternative: None }).collect();
        let end = self.index.lines.len();
        let there = self.index.find_line_run(&new, MatchPass::LineEndings, &(0..end)).unwrap_or_default();
        let already = match there.as_slice() {
            [only] if distinctive::is_distinctive(&quoted, &added) => Some(only.start + 1),
            [] | [_] | [_, ..] => None,
        };
        PatchApplyErrorKind::NotFound { quoted, already }
    }
}

/// Whether all added lines can be shifted to the matched indentation.
fn matches_indentation(hit: &LineRunMatch, pieces: &[ChunkLine]) -> bool {
    let Some(delta) = &hit.indentation_shift else { return true };
    pieces
        .iter()
        .filter(|piece| piece.kind == ResolvedLineKind::Add)
        .all(|piece| delta.apply_to_line(&piece.text).is_some())
}

/// The chunk that already claims a line of this one, and the line.
fn find_overlap(start: usize, old: &[&ChunkLine], splice: &LineEdits) -> Option<(usize, usize)> {
    (start..).zip(old).find_map(|(at, piece)| {
        let quoted = splice.quoted_by[at].filter(|_| piece.kind == ResolvedLineKind::Remove);
        splice.removed_by[at].or(quoted).map(|other| (other, at + 1))
    })
}

/// Whether the lines occur more than once in a text, also within longer lines.
fn occurs_repeatedly(text: &str, pattern: &[LinePattern<'_>]) -> bool {
    let quote: Vec<&str> = pattern.iter().map(|line| line.text).collect();
    let quote = quote.join("\n");
    if quote.is_empty() {
        return false;
    }
    let text = if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
    let Some(first) = memchr::memmem::find(text.as_bytes(), quote.as_bytes()) else { return false };
    memchr::memmem::find(&text.as_bytes()[first + 1..], quote.as_bytes()).is_some()
}
