//! Finds the places of chunks in a text. A chunk is searched below its anchors, and matches after the previous chunk
//! are preferred. If a chunk is not found, the search repeats with more lenient passes and with typing slips repaired.
//! If several positions of a chunk remain, the result is an error.

use std::borrow::Cow;

use crate::edit::is_distinctive;
use crate::locate::FuzzyTextMatchPass;

use super::PatchChunk;
use super::anchor::{PatchAnchorFinder, PatchAnchorMatch};
use super::apply::{
    PatchApplyErrorKind, PatchChunkMatching, PatchChunkPlacementRules, PatchPlacementBasis, PlacedPatchChunk,
};
use super::interpretations::{PatchChunkInterpretation, PatchChunkLine, ResolvedLineKind, interpretations};
use super::line_edits::PatchLineEdits;
use super::line_index::{LineLookupIndex, LineRunMatch, LineToFind, PatchSearchBudgetExceeded};

pub(super) struct PatchChunkLocator<'i, 't> {
    text: &'t str,
    index: &'i LineLookupIndex<'t>,
    rules: &'i PatchChunkPlacementRules<'i>,
    anchors: PatchAnchorFinder<'i, 't>,
    /// The line after the last line that the previous chunk changed.
    cursor: usize,
    /// The number of lines by which the previous chunk was found below its stated line; negative if above.
    line_offset: isize,
    has_wrong_line_number: bool,
    is_out_of_order: bool,
    /// A patch counts only `\n` as a line end, but lines of the text may also end with `\r`.
    numbered_line_starts: Vec<usize>,
}

enum PatchChunkSearchResult {
    NotFound,
    Found {
        hit: LineRunMatch,
        /// The 1-based lines of all matches, if one match was chosen only because it follows the previous chunk.
        candidate_starts: Vec<usize>,
    },
    Ambiguous(Vec<usize>),
    Overlapping {
        other_chunk: usize,
        line: usize,
    },
}

impl From<PatchSearchBudgetExceeded> for PatchApplyErrorKind {
    fn from(_: PatchSearchBudgetExceeded) -> Self {
        PatchApplyErrorKind::Exhausted
    }
}

impl<'i, 't> PatchChunkLocator<'i, 't> {
    pub(super) fn new(text: &'t str, index: &'i LineLookupIndex<'t>, rules: &'i PatchChunkPlacementRules<'i>) -> Self {
        let ends = |at: &usize| index.lines[at - 1].terminator.ends_with('\n');
        let numbered_line_starts = std::iter::once(0).chain((1..index.lines.len()).filter(ends)).collect();
        let anchors = PatchAnchorFinder::new(index, rules.passes);
        Self {
            text,
            index,
            rules,
            anchors,
            cursor: 0,
            line_offset: 0,
            has_wrong_line_number: false,
            is_out_of_order: false,
            numbered_line_starts,
        }
    }

    /// Finds the place of a chunk in the text; `edits` holds the changes of the earlier chunks.
    pub(super) fn place_chunk(
        &mut self,
        chunk: &PatchChunk,
        edits: &PatchLineEdits,
    ) -> Result<PlacedPatchChunk, PatchApplyErrorKind> {
        let interpretations = interpretations(chunk, self.rules);
        if chunk.only_adds() {
            let (start, basis) = self.insertion_line(chunk)?;
            let lines = interpretations.into_iter().next().map(|literal| literal.lines).unwrap_or_default();
            return Ok(PlacedPatchChunk {
                start,
                lines,
                pass: FuzzyTextMatchPass::Exact,
                repair: None,
                basis,
                candidate_starts: Vec::new(),
            });
        }
        let anchored = self.anchors.find_nested(&chunk.anchors)?;
        if anchored.is_empty() && !chunk.anchors.is_empty() {
            return Err(self.anchor_not_found(chunk));
        }
        let mut reason = None;
        for interpretation in interpretations {
            for &pass in self.rules.passes {
                match self.search_pass(chunk, &interpretation, pass, &anchored, edits)? {
                    PatchChunkSearchResult::NotFound => {}
                    PatchChunkSearchResult::Found { hit, candidate_starts } => {
                        return Ok(self.accept_match(chunk, interpretation, pass, hit, candidate_starts));
                    }
                    PatchChunkSearchResult::Ambiguous(lines) => {
                        let count = old_lines(&interpretation.lines).count();
                        return Err(PatchApplyErrorKind::Ambiguous { lines, count });
                    }
                    PatchChunkSearchResult::Overlapping { other_chunk: other, line } => {
                        reason.get_or_insert(PatchApplyErrorKind::Overlap { other, line });
                    }
                }
            }
        }
        Err(reason.unwrap_or_else(|| self.chunk_not_found(chunk)))
    }

    fn accept_match(
        &mut self,
        chunk: &PatchChunk,
        interpretation: PatchChunkInterpretation,
        pass: FuzzyTextMatchPass,
        hit: LineRunMatch,
        candidate_starts: Vec<usize>,
    ) -> PlacedPatchChunk {
        let mut lines = interpretation.lines;
        if let Some(shift) = &hit.indentation_shift {
            for line in lines.iter_mut().filter(|line| line.kind == ResolvedLineKind::Add) {
                // The shift of every added line succeeds, because `matches_indentation` rejected all other matches.
                if let Some(text) = shift.apply_to_line(&line.text) {
                    line.text = text.into_owned();
                }
            }
        }
        let changed = lines.iter().rposition(|line| line.kind != ResolvedLineKind::Context).map_or(0, |last| last + 1);
        self.is_out_of_order |= hit.start < self.cursor;
        self.cursor = hit.start + old_lines(&lines[..changed]).count();
        if let Some(expected) = self.expected_line(chunk) {
            self.line_offset += hit.start.cast_signed() - expected.cast_signed();
            self.has_wrong_line_number |= self.line_offset != 0;
        }
        PlacedPatchChunk {
            start: hit.start,
            lines,
            pass,
            repair: interpretation.repair,
            basis: PatchPlacementBasis::Content,
            candidate_starts,
        }
    }

    /// Checks the place of a chunk again after all chunks are placed. A chunk must not be placed by its line number if
    /// a line number in the patch was wrong. A match must not be chosen by the order of the chunks if the chunks are
    /// out of order.
    pub(super) fn recheck_placement(&self, placed: &PlacedPatchChunk) -> Option<PatchApplyErrorKind> {
        if placed.basis == PatchPlacementBasis::LineNumber && self.has_wrong_line_number {
            return Some(PatchApplyErrorKind::NumberOnly { line: placed.start });
        }
        let count = old_lines(&placed.lines).count();
        (self.is_out_of_order && !placed.candidate_starts.is_empty())
            .then(|| PatchApplyErrorKind::Ambiguous { lines: placed.candidate_starts.clone(), count })
    }

    /// Returns the 0-based line where a chunk is expected: the stated line plus the offset of the previous chunk.
    fn expected_line(&self, chunk: &PatchChunk) -> Option<usize> {
        let number = chunk.declared_start?.checked_sub(1)?;
        let line = self.numbered_line_starts.get(number).copied().unwrap_or(self.index.lines.len());
        line.checked_add_signed(self.line_offset)
    }

    fn insertion_line(&self, chunk: &PatchChunk) -> Result<(usize, PatchPlacementBasis), PatchApplyErrorKind> {
        let end = self.index.lines.len();
        if let Some(start) = chunk.declared_start {
            let last = self.numbered_line_starts.len().min(end);
            return match self.numbered_line_starts.get(start).copied() {
                Some(line) => Ok((line, PatchPlacementBasis::LineNumber)),
                None if start == last => Ok((end, PatchPlacementBasis::LineNumber)),
                None => Err(PatchApplyErrorKind::NumberOnly { line: start }),
            };
        }
        if chunk.has_end_of_file_marker {
            return Ok((end, PatchPlacementBasis::Content));
        }
        if chunk.anchors.is_empty() {
            let line = if self.rules.matching == PatchChunkMatching::Strict { 0 } else { end };
            return Ok((line, PatchPlacementBasis::Default));
        }
        match self.anchors.find_nested(&chunk.anchors)?.as_slice() {
            [] => Err(self.anchor_not_found(chunk)),
            [only] => Ok((only.line + 1, PatchPlacementBasis::Content)),
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

    fn search_pass(
        &self,
        chunk: &PatchChunk,
        interpretation: &PatchChunkInterpretation,
        pass: FuzzyTextMatchPass,
        anchored: &[PatchAnchorMatch],
        edits: &PatchLineEdits,
    ) -> Result<PatchChunkSearchResult, PatchApplyErrorKind> {
        let pattern: Vec<LineToFind<'_>> = old_lines(&interpretation.lines)
            .map(|line| LineToFind { text: &line.text, alternative: line.alternative.as_deref() })
            .collect();
        let mut hits = self.index.find_line_run(&pattern, pass)?;
        hits.retain(|hit| matches_indentation(hit, &interpretation.lines));
        if !chunk.anchors.is_empty() {
            let starts: Vec<usize> = hits.iter().map(|hit| hit.start).collect();
            let below = |above: &PatchAnchorMatch| self.anchors.lines_below(above, above.line, &starts);
            let allowed: Vec<usize> = anchored.iter().flat_map(below).copied().collect();
            hits.retain(|hit| allowed.binary_search(&hit.start).is_ok());
        }
        if self.rules.matching == PatchChunkMatching::Strict && occurs_repeatedly(self.text, &pattern) {
            return Ok(PatchChunkSearchResult::Ambiguous(hits.iter().map(|hit| hit.start + 1).collect()));
        }
        Ok(self.choose_match(chunk, &interpretation.lines, hits, edits))
    }

    /// Chooses the match at the marked end of the file, at the stated line, or after the previous chunk.
    fn choose_match(
        &self,
        chunk: &PatchChunk,
        lines: &[PatchChunkLine],
        mut hits: Vec<LineRunMatch>,
        edits: &PatchLineEdits,
    ) -> PatchChunkSearchResult {
        let old: Vec<&PatchChunkLine> = old_lines(lines).collect();
        let line_count = self.index.lines.len();
        let marks_end = chunk.has_end_of_file_marker || chunk.lines.iter().any(|line| line.has_no_newline_marker);
        let at_end = hits.iter().rposition(|hit| marks_end && hit.start + old.len() == line_count);
        let expected = self.expected_line(chunk);
        let at_expected_line = hits.iter().position(|hit| Some(hit.start) == expected);
        if let Some(chosen) = at_end.or(at_expected_line) {
            hits = vec![hits.swap_remove(chosen)];
        }
        let mut candidate_starts = Vec::new();
        let after_previous = hits.iter().filter(|hit| hit.start >= self.cursor).count();
        if (1..hits.len()).contains(&after_previous) {
            candidate_starts = hits.iter().map(|hit| hit.start + 1).collect();
            hits.retain(|hit| hit.start >= self.cursor);
        }
        let mut overlap = PatchChunkSearchResult::NotFound;
        hits.retain(|hit| match find_overlap(hit.start, &old, edits) {
            None => true,
            Some((other_chunk, line)) => {
                overlap = PatchChunkSearchResult::Overlapping { other_chunk, line };
                false
            }
        });
        if lines.iter().all(|line| line.kind == ResolvedLineKind::Context) {
            // The chunk changes nothing, so the choice of the match does not matter.
            hits.truncate(1);
            candidate_starts.clear();
        }
        match hits.len() {
            0 => overlap,
            1 => PatchChunkSearchResult::Found { hit: hits.swap_remove(0), candidate_starts },
            _ => PatchChunkSearchResult::Ambiguous(hits.iter().map(|hit| hit.start + 1).collect()),
        }
    }

    fn chunk_not_found(&self, chunk: &PatchChunk) -> PatchApplyErrorKind {
        let mut literal = interpretations(chunk, &self.rules.without_leniency());
        let lines = literal.pop().map(|interpretation| interpretation.lines).unwrap_or_default();
        let quoted: String = old_lines(&lines).flat_map(|line| [line.text.as_str(), "\n"]).collect();
        let added = lines.iter().filter(|line| !line.is_in_old_text());
        let added: String = added.flat_map(|line| [line.text.as_str(), "\n"]).collect();
        let new = lines.iter().filter(|line| line.kind != ResolvedLineKind::Remove);
        let new: Vec<LineToFind<'_>> = new.map(|line| LineToFind { text: &line.text, alternative: None }).collect();
        let hits = self.index.find_line_run(&new, FuzzyTextMatchPass::LineEndings).unwrap_or_default();
        let already = match hits.as_slice() {
            [only] if is_distinctive(&quoted, &added) => Some(only.start + 1),
            [] | [_] | [_, ..] => None,
        };
        PatchApplyErrorKind::NotFound { quoted, already }
    }
}

fn old_lines(lines: &[PatchChunkLine]) -> impl Iterator<Item = &PatchChunkLine> {
    lines.iter().filter(|line| line.is_in_old_text())
}

fn matches_indentation(hit: &LineRunMatch, lines: &[PatchChunkLine]) -> bool {
    let Some(shift) = &hit.indentation_shift else { return true };
    let mut added = lines.iter().filter(|line| line.kind == ResolvedLineKind::Add);
    added.all(|line| shift.apply_to_line(&line.text).is_some())
}

/// Finds the first line of a chunk that an earlier chunk also quotes and that one of the two removes. The overlap is
/// returned as the index of the earlier chunk and the 1-based line of the text.
fn find_overlap(start: usize, old: &[&PatchChunkLine], edits: &PatchLineEdits) -> Option<(usize, usize)> {
    (start..).zip(old).find_map(|(at, line)| {
        let quoted = edits.quoted_by[at].filter(|_| line.kind == ResolvedLineKind::Remove);
        edits.removed_by[at].or(quoted).map(|other| (other, at + 1))
    })
}

/// Whether the text contains the lines of `pattern` more than once, even within longer lines.
fn occurs_repeatedly(text: &str, pattern: &[LineToFind<'_>]) -> bool {
    let quote: Vec<&str> = pattern.iter().map(|line| line.text).collect();
    let quote = quote.join("\n");
    if quote.is_empty() {
        return false;
    }
    let text = if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
    let Some(first) = memchr::memmem::find(text.as_bytes(), quote.as_bytes()) else { return false };
    memchr::memmem::find(&text.as_bytes()[first + 1..], quote.as_bytes()).is_some()
}
