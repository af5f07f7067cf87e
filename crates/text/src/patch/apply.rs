//! Application of the chunks of a patch to one text, and detection of patches that are already applied. All chunks are
//! placed before the text is rebuilt. If one chunk cannot be placed, then no chunk is applied.

use std::borrow::Cow;

use crate::edit::is_distinctive;
use crate::locate::FuzzyTextMatchPass;

use super::chunk_search::PatchChunkLocator;
use super::interpretations::{PatchChunkLine, PatchTypingSlipRepairMode, ResolvedLineKind, StatedTerminator};
use super::line_edits::{FinalNewlineRule, InsertedLine, PatchLineEdits, default_terminator, static_terminator};
use super::line_index::{LineLookupIndex, LineWithTerminator};
use super::{PatchChunk, PatchChunkRepair, PatchLine, PatchLineKind};

/// The condition under which the place of a chunk is ambiguous. An ambiguous place is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchAmbiguityCriterion {
    /// The place is ambiguous if the lines of the chunk occur several times after the previous chunk, and nothing else
    /// distinguishes the occurrences.
    RepeatedLines,
    /// The place is ambiguous if the text of the chunk occurs more than once, also within lines.
    RepeatedText,
}

/// Where added lines are inserted if the chunk has no context and no anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnanchoredInsertionPoint {
    /// The lines are inserted after the last line of the text.
    AtEnd,
    /// The lines are inserted before the first line of the text.
    AtTop,
}

/// The text that a chunk is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchChunkBaseTextPolicy {
    /// Every chunk is applied to the original text, so a chunk cannot quote lines that other chunks add.
    OriginalText,
    /// Each chunk is applied to the result of the previous chunks.
    PreviousResult,
}

/// How chunks are placed.
#[derive(Debug, Clone, Copy)]
pub struct PatchChunkPlacementRules<'a> {
    /// The name of the file; some repairs of typing slips depend on it.
    pub name: &'a str,
    /// The matching passes to try, in this order.
    pub passes: &'static [FuzzyTextMatchPass],
    /// Whether known typing slips in a chunk are undone.
    pub slip_repair: PatchTypingSlipRepairMode,
    /// The condition under which the place of a chunk is ambiguous.
    pub ambiguity: PatchAmbiguityCriterion,
    /// Where added lines without context are inserted.
    pub insertion: UnanchoredInsertionPoint,
    /// The text that a chunk is applied to.
    pub chunk_base: PatchChunkBaseTextPolicy,
    /// Whether the text ends with a newline if the patch replaces its last line.
    pub file_end: FinalNewlineRule,
}

impl<'a> PatchChunkPlacementRules<'a> {
    /// Accepts every unambiguous match.
    #[must_use]
    pub fn tolerant(name: &'a str) -> Self {
        Self {
            name,
            passes: &[
                FuzzyTextMatchPass::LineEndings,
                FuzzyTextMatchPass::TrailingSpace,
                FuzzyTextMatchPass::LookAlike,
                FuzzyTextMatchPass::Indentation,
            ],
            slip_repair: PatchTypingSlipRepairMode::Undo,
            ambiguity: PatchAmbiguityCriterion::RepeatedLines,
            insertion: UnanchoredInsertionPoint::AtEnd,
            chunk_base: PatchChunkBaseTextPolicy::OriginalText,
            file_end: FinalNewlineRule::FromPatch,
        }
    }

    /// Accepts only lines that match exactly, except for their terminators.
    #[must_use]
    pub fn strict(name: &'a str) -> Self {
        Self {
            name,
            passes: &[FuzzyTextMatchPass::LineEndings],
            slip_repair: PatchTypingSlipRepairMode::Off,
            ambiguity: PatchAmbiguityCriterion::RepeatedText,
            insertion: UnanchoredInsertionPoint::AtTop,
            chunk_base: PatchChunkBaseTextPolicy::PreviousResult,
            file_end: FinalNewlineRule::FromFile,
        }
    }
}

/// The result of applying a patch to a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedText {
    /// The patched text.
    pub text: String,
    /// The match of each chunk, in the order of the patch.
    pub matches: Vec<PatchChunkMatch>,
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// Whether the final newline was added or removed.
    pub final_newline: FinalNewlineChange,
}

/// Whether a patch added or removed the final newline of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinalNewlineChange {
    /// The final newline is present or missing as before.
    Unchanged,
    /// The final newline was missing and is now present.
    TerminatorAdded,
    /// The final newline was present and is now missing.
    TerminatorDropped,
}

/// The place where a chunk was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchChunkMatch {
    /// The first line of the place in the text, 1-based.
    pub line: usize,
    /// The pass that found the place.
    pub pass: FuzzyTextMatchPass,
    /// The typing slip that was undone, if any.
    pub repair: Option<PatchChunkRepair>,
    /// The basis on which the place was determined.
    pub basis: PatchPlacementBasis,
}

/// The basis on which the place of a chunk was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchPlacementBasis {
    /// The content of the chunk: the quoted lines, the anchor, or the end-of-file marker.
    Content,
    /// The stated line number, because the chunk quotes no line.
    LineNumber,
    /// The [`UnanchoredInsertionPoint`], because the chunk quotes no line and states no line number.
    Default,
}

/// A chunk that cannot be placed. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("chunk {chunk} (line {line} of the patch): {reason}")]
pub struct PatchApplyError {
    /// The 0-based index of the chunk.
    pub chunk: usize,
    /// The 1-based line of the patch where the chunk starts.
    pub line: usize,
    /// Why the chunk cannot be placed.
    pub reason: PatchApplyErrorKind,
}

/// Why a chunk cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchApplyErrorKind {
    /// The quoted lines of the chunk are not in the text.
    #[error("its lines are not in the text")]
    NotFound {
        /// The quoted lines, each with a newline.
        quoted: String,
        /// The line where the result of the chunk is already present.
        already: Option<usize>,
    },
    /// An anchor is not in the text.
    #[error("the line {anchor:?} after @@ is not in the text")]
    AnchorNotFound {
        /// The missing anchor.
        anchor: String,
    },
    /// The chunk matches in several places.
    #[error("it matches in {} places; add context lines", lines.len())]
    Ambiguous {
        /// The first line of each place, 1-based.
        lines: Vec<usize>,
        /// The number of quoted lines.
        count: usize,
    },
    /// Another chunk changes the same lines.
    #[error("it changes the same lines as chunk {other}")]
    Overlap {
        /// The 0-based index of the other chunk.
        other: usize,
        /// The 1-based line that both chunks change.
        line: usize,
    },
    /// The chunk quotes no line, and its line number does not fit the text.
    #[error("it has no context lines, and line {line} does not fit this file; add context lines")]
    NumberOnly {
        /// The 1-based line that the added lines would follow.
        line: usize,
    },
    /// The search exceeds the work limit.
    #[error("the search takes too long: the text repeats too many lines")]
    Exhausted,
}

/// Applies `chunks` to `text`. If a chunk cannot be placed, the result is the error of the first such chunk.
pub fn apply_chunks(
    text: &str,
    chunks: &[PatchChunk],
    rules: &PatchChunkPlacementRules<'_>,
) -> Result<PatchedText, PatchApplyError> {
    let mut applied = match rules.chunk_base {
        PatchChunkBaseTextPolicy::OriginalText => apply_to_original(text, chunks, 0, rules)?,
        PatchChunkBaseTextPolicy::PreviousResult => {
            let mut result = apply_to_original(text, &[], 0, rules)?;
            for (number, chunk) in chunks.iter().enumerate() {
                let next = apply_to_original(&result.text, std::slice::from_ref(chunk), number, rules)?;
                result.matches.extend(next.matches);
                result.added += next.added;
                result.removed += next.removed;
                result.text = next.text;
            }
            result
        }
    };
    let lacks_newline = |text: &str| !text.is_empty() && !text.ends_with(['\n', '\r']);
    applied.final_newline = match (lacks_newline(text), lacks_newline(&applied.text)) {
        (true, false) if !applied.text.is_empty() => FinalNewlineChange::TerminatorAdded,
        (false, true) if !text.is_empty() => FinalNewlineChange::TerminatorDropped,
        (true | false, true | false) => FinalNewlineChange::Unchanged,
    };
    Ok(applied)
}

/// Applies chunks to one text; `first` is the index of the first chunk in the patch.
fn apply_to_original(
    text: &str,
    chunks: &[PatchChunk],
    first: usize,
    rules: &PatchChunkPlacementRules<'_>,
) -> Result<PatchedText, PatchApplyError> {
    let index = LineLookupIndex::new(text);
    let mut search = PatchChunkLocator::new(text, &index, rules);
    let mut edits = PatchLineEdits::new(index.lines.len());
    let mut placed = Vec::with_capacity(chunks.len());
    let failed = |(chunk, at): (usize, &PatchChunk), reason| PatchApplyError { chunk, line: at.line, reason };
    for (number, chunk) in (first..).zip(chunks) {
        let place = search.place_chunk(chunk, &edits).map_err(|reason| failed((number, chunk), reason))?;
        record_chunk_edits(&mut edits, number, &index.lines, &place);
        placed.push(place);
    }
    for (chunk, placed) in (first..).zip(chunks).zip(&placed) {
        if let Some(reason) = search.recheck_placement(placed) {
            return Err(failed(chunk, reason));
        }
    }
    let to_match = |&PlacedPatchChunk { start, pass, repair, basis, .. }: &PlacedPatchChunk<'_>| PatchChunkMatch {
        line: start + 1,
        pass,
        repair,
        basis,
    };
    Ok(PatchedText {
        text: edits.text(&index.lines, rules.file_end),
        matches: placed.iter().map(to_match).collect(),
        added: edits.added_count(),
        removed: edits.removed_count(),
        final_newline: FinalNewlineChange::Unchanged,
    })
}

/// A chunk with its place in the file.
pub(super) struct PlacedPatchChunk<'c> {
    /// The 0-based line where the chunk starts. If the chunk quotes no line, its lines are inserted before this line.
    pub(super) start: usize,
    pub(super) lines: Cow<'c, [PatchChunkLine]>,
    pub(super) pass: FuzzyTextMatchPass,
    pub(super) repair: Option<PatchChunkRepair>,
    pub(super) basis: PatchPlacementBasis,
    /// All 1-based lines where the chunk matches, if only the order of the chunks decided the place.
    pub(super) candidate_starts: Vec<usize>,
}

/// Adds the removed and inserted lines of a placed chunk to `edits`.
fn record_chunk_edits(
    edits: &mut PatchLineEdits,
    number: usize,
    lines: &[LineWithTerminator<'_>],
    placed: &PlacedPatchChunk<'_>,
) {
    let source = terminator_source(lines, placed);
    let is_explicit = placed.lines.iter().any(|line| line.stated_terminator == StatedTerminator::NoNewline);
    let quotes_no_line = !placed.lines.iter().any(PatchChunkLine::is_in_old_text);
    let mut at = placed.start;
    // The terminators of the removed lines. The lines that replace them get the same terminators.
    let mut removed_terminators: Vec<&'static str> = Vec::new();
    let mut added_count = 0;
    for line in placed.lines.iter() {
        match line.kind {
            ResolvedLineKind::Context => {
                edits.quoted_by[at] = Some(number);
                at += 1;
                removed_terminators.clear();
                added_count = 0;
            }
            ResolvedLineKind::Remove => {
                edits.quoted_by[at] = Some(number);
                edits.removed_by[at] = Some(number);
                removed_terminators.extend(static_terminator(lines[at].terminator));
                at += 1;
            }
            ResolvedLineKind::Add => {
                let replaced = removed_terminators.get(added_count).or(removed_terminators.last()).copied();
                let terminator = match (line.stated_terminator, source) {
                    (StatedTerminator::Cr, _) => "\r",
                    (StatedTerminator::Crlf, TerminatorSource::Chunk) => "\r\n",
                    (StatedTerminator::Unstated | StatedTerminator::NoNewline, TerminatorSource::Chunk) => "\n",
                    (
                        StatedTerminator::Crlf | StatedTerminator::Unstated | StatedTerminator::NoNewline,
                        TerminatorSource::File,
                    ) => replaced.unwrap_or_else(|| neighbouring_terminator(lines, at)),
                };
                added_count += 1;
                let (text, stated_terminator) = (line.text.clone(), line.stated_terminator);
                // If a chunk appends lines without context, its lines come after the lines that replace the last line
                // of the text.
                let slot = if at == lines.len() && quotes_no_line { at + 1 } else { at };
                let new = InsertedLine { text, terminator, stated_terminator, is_explicit };
                edits.inserted.entry(slot).or_default().push(new);
            }
        }
    }
}

/// Whether new lines take their terminators from the chunk or from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TerminatorSource {
    Chunk,
    File,
}

/// New lines take their terminators from the chunk if the chunk has a terminator other than `\n` and all its quoted
/// terminators equal those of the file.
fn terminator_source(lines: &[LineWithTerminator<'_>], placed: &PlacedPatchChunk<'_>) -> TerminatorSource {
    let states_terminators =
        placed.lines.iter().any(|line| matches!(line.stated_terminator, StatedTerminator::Cr | StatedTerminator::Crlf));
    let old = placed.lines.iter().filter(|line| line.is_in_old_text());
    let fits = old.zip(&lines[placed.start.min(lines.len())..]).all(|(quoted, line)| {
        let stated = match quoted.stated_terminator {
            StatedTerminator::Unstated => "\n",
            StatedTerminator::Cr => "\r",
            StatedTerminator::Crlf => "\r\n",
            StatedTerminator::NoNewline => "",
        };
        stated == line.terminator
    });
    if states_terminators && fits { TerminatorSource::Chunk } else { TerminatorSource::File }
}

/// The terminator of the nearest line above that has a terminator. If there is none, the result is the terminator of
/// the next line.
fn neighbouring_terminator(lines: &[LineWithTerminator<'_>], at: usize) -> &'static str {
    let before = lines[..at].iter().rev().find_map(|line| static_terminator(line.terminator));
    let after = || lines.get(at).and_then(|line| static_terminator(line.terminator));
    before.or_else(after).unwrap_or_else(|| default_terminator(lines))
}

/// The 1-based lines where the results of all chunks are, if the patch is already applied. The patch is already applied
/// if the text contains the old lines of no chunk, and the new lines of every chunk in exactly one place. The added
/// lines must be distinctive, because other lines prove nothing.
#[must_use]
pub fn find_already_applied(
    text: &str,
    chunks: &[PatchChunk],
    rules: &PatchChunkPlacementRules<'_>,
) -> Option<Vec<usize>> {
    let adds_text = |line: &PatchLine| line.kind == PatchLineKind::Add && !line.text.trim().is_empty();
    if !chunks.iter().any(|chunk| chunk.lines.iter().any(adds_text))
        || !chunks.iter().all(is_distinctive_chunk)
        || !are_old_lines_absent(text, chunks, rules)
    {
        return None;
    }
    let reversed: Vec<PatchChunk> = chunks.iter().map(reverse_chunk).collect();
    if reversed.iter().any(PatchChunk::only_adds) {
        return None;
    }
    let exact = PatchChunkPlacementRules {
        passes: &[FuzzyTextMatchPass::LineEndings],
        slip_repair: PatchTypingSlipRepairMode::Off,
        ..*rules
    };
    let undone = apply_chunks(text, &reversed, &exact).ok()?;
    Some(undone.matches.iter().map(|matched| matched.line).collect())
}

/// Whether the added lines of a chunk, if any, are distinctive.
fn is_distinctive_chunk(chunk: &PatchChunk) -> bool {
    let (added, old): (Vec<&PatchLine>, Vec<&PatchLine>) =
        chunk.lines.iter().partition(|line| line.kind == PatchLineKind::Add);
    let text = |lines: &[&PatchLine]| lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect::<String>();
    added.is_empty() || is_distinctive(&text(&old), &text(&added))
}

/// Whether the text contains the old lines of no chunk. Chunks that change nothing are not checked.
fn are_old_lines_absent(text: &str, chunks: &[PatchChunk], rules: &PatchChunkPlacementRules<'_>) -> bool {
    let index = LineLookupIndex::new(text);
    let mut search = PatchChunkLocator::new(text, &index, rules);
    let no_edits = PatchLineEdits::new(index.lines.len());
    let changes = |chunk: &&PatchChunk| {
        chunk.lines.iter().any(|line| matches!(line.kind, PatchLineKind::Add | PatchLineKind::Remove))
    };
    chunks
        .iter()
        .filter(changes)
        .all(|chunk| matches!(search.place_chunk(chunk, &no_edits), Err(PatchApplyErrorKind::NotFound { .. })))
}

/// The reverse of a chunk. The declared position is omitted, because it refers to the text before the patch.
fn reverse_chunk(chunk: &PatchChunk) -> PatchChunk {
    let reverse = |line: &PatchLine| {
        let kind = match line.kind {
            PatchLineKind::Add => PatchLineKind::Remove,
            PatchLineKind::Remove => PatchLineKind::Add,
            PatchLineKind::Context | PatchLineKind::Unmarked => line.kind,
        };
        PatchLine { kind, ..line.clone() }
    };
    PatchChunk { lines: chunk.lines.iter().map(reverse).collect(), declared_position: None, ..chunk.clone() }
}
