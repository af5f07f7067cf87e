//! Application of the chunks of a patch to one text, and detection of patches that are already applied. All chunks are
//! placed before the text is rebuilt. If one chunk cannot be placed, then no chunk is applied.

use std::borrow::Cow;

use crate::edit::is_distinctive;
use crate::locate::FuzzyTextMatchPass;

use super::chunk_search::PatchChunkLocator;
use super::interpretations::{PatchChunkLine, PatchStatedLineTerminator, PatchTypingSlipRepairMode, ResolvedLineKind};
use super::line_edits::{
    PatchFinalNewlineRule, PatchInsertedLine, PatchLineEdits, default_terminator, static_terminator,
};
use super::line_index::{LineLookupIndex, LineWithTerminator};
use super::{PatchChunk, PatchChunkRepair, PatchLine, PatchLineKind};

/// The condition under which the place of a chunk in the text is ambiguous, which is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchAmbiguityCriterion {
    /// The place is ambiguous if the lines of the chunk match several times after the previous chunk, and no anchor,
    /// line number or end-of-file marker selects one match.
    RepeatedLines,
    /// The place is ambiguous if the old lines of the chunk occur more than once in the text, even within longer lines.
    RepeatedText,
}

/// Where a chunk without context and anchor inserts its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnanchoredInsertionPoint {
    /// A chunk without context and anchor inserts its lines after the last line of the text.
    AtEnd,
    /// A chunk without context and anchor inserts its lines before the first line of the text.
    AtTop,
}

/// Whether a chunk of a patch is applied to the original text or to the result of the previous chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchChunkBaseTextPolicy {
    /// Every chunk is applied to the original text, so a chunk cannot quote lines that other chunks add.
    OriginalText,
    /// Each chunk is applied to the result of the previous chunks.
    PreviousResult,
}

/// The rules for finding the place of each chunk of a patch in the text.
#[derive(Debug, Clone, Copy)]
pub struct PatchChunkPlacementRules<'a> {
    /// The name of the file; some repairs of typing slips depend on it.
    pub name: &'a str,
    /// The passes of the search for a chunk, in order: each pass ignores more differences.
    pub passes: &'static [FuzzyTextMatchPass],
    /// Whether the search repairs known typing slips in a chunk.
    pub slip_repair: PatchTypingSlipRepairMode,
    /// The condition under which the place of a chunk in the text is ambiguous, which is an error.
    pub ambiguity: PatchAmbiguityCriterion,
    /// Where a chunk without context and anchor inserts its lines.
    pub insertion: UnanchoredInsertionPoint,
    /// Whether a chunk of a patch is applied to the original text or to the result of the previous chunks.
    pub chunk_base: PatchChunkBaseTextPolicy,
    /// Whether the text ends with a newline if the patch replaces its last line.
    pub file_end: PatchFinalNewlineRule,
}

impl<'a> PatchChunkPlacementRules<'a> {
    /// Lenient rules for placing chunks: every unambiguous match is accepted.
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
            file_end: PatchFinalNewlineRule::FromPatch,
        }
    }

    /// Strict rules for placing chunks: lines must match exactly, except for their terminators.
    #[must_use]
    pub fn strict(name: &'a str) -> Self {
        Self {
            name,
            passes: &[FuzzyTextMatchPass::LineEndings],
            slip_repair: PatchTypingSlipRepairMode::Off,
            ambiguity: PatchAmbiguityCriterion::RepeatedText,
            insertion: UnanchoredInsertionPoint::AtTop,
            chunk_base: PatchChunkBaseTextPolicy::PreviousResult,
            file_end: PatchFinalNewlineRule::FromFile,
        }
    }
}

/// The result of applying a patch to a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedText {
    /// The patched text.
    pub text: String,
    /// The place where each chunk was applied, in the order of the patch.
    pub matches: Vec<PatchChunkMatch>,
    /// The number of lines that the patch added.
    pub added: usize,
    /// The number of lines that the patch removed.
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
    /// The 1-based line of the text where the chunk was applied.
    pub line: usize,
    /// The search pass that found the place of the chunk.
    pub pass: FuzzyTextMatchPass,
    /// The typing slip in the chunk that was repaired to find its place.
    pub repair: Option<PatchChunkRepair>,
    /// Whether the chunk was placed by its content, by a line number, or by default.
    pub basis: PatchPlacementBasis,
}

/// Whether a chunk was placed by its content, by a line number, or by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchPlacementBasis {
    /// The chunk was placed by its quoted lines, its anchor, or its end-of-file marker.
    Content,
    /// The chunk was placed by the line number that it states, because it quotes no line.
    LineNumber,
    /// The chunk quotes no line and states no line number, so it was placed at the [`UnanchoredInsertionPoint`].
    Default,
}

/// A chunk that cannot be placed. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("chunk {chunk} (line {line} of the patch): {reason}")]
pub struct PatchApplyError {
    /// The 0-based index of the chunk that cannot be placed.
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
        /// The context and removed lines of the chunk, each with a newline.
        quoted: String,
        /// The 1-based line of the text that already has the result of the chunk, if there is exactly one.
        already: Option<usize>,
    },
    /// An anchor of the chunk, given after `@@`, is not in the text.
    #[error("the line {anchor:?} after @@ is not in the text")]
    AnchorNotFound {
        /// The missing anchor.
        anchor: String,
    },
    /// The chunk matches in several places.
    #[error("it matches in {} places; add context lines", lines.len())]
    Ambiguous {
        /// The 1-based first lines of all places where the chunk matches.
        lines: Vec<usize>,
        /// The number of lines of the text that the chunk quotes.
        count: usize,
    },
    /// Another chunk changes the same lines.
    #[error("it changes the same lines as chunk {other}")]
    Overlap {
        /// The 0-based index of the overlapping chunk.
        other: usize,
        /// The 1-based line that both chunks quote and at least one of them removes.
        line: usize,
    },
    /// The chunk quotes no line, and its line number does not fit the text.
    #[error("it has no context lines, and line {line} does not fit this file; add context lines")]
    NumberOnly {
        /// The 1-based line after which, according to the chunk, its added lines belong.
        line: usize,
    },
    /// The search for the chunk compares too many lines and was stopped.
    #[error("the search takes too long: the text repeats too many lines")]
    Exhausted,
}

/// Applies `chunks` to `text`. Returns the error of the first chunk that cannot be placed, if any.
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

/// Applies `chunks`, which are numbered from `first`, to one text.
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
    /// The 0-based line where the chunk starts. A chunk that quotes no line inserts its lines before this line.
    pub(super) start: usize,
    pub(super) lines: Cow<'c, [PatchChunkLine]>,
    pub(super) pass: FuzzyTextMatchPass,
    pub(super) repair: Option<PatchChunkRepair>,
    pub(super) basis: PatchPlacementBasis,
    /// The 1-based lines of all matches of the chunk, if only the order of the chunks decided between them; or empty.
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
    let is_explicit = placed.lines.iter().any(|line| line.stated_terminator == PatchStatedLineTerminator::NoNewline);
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
                    (PatchStatedLineTerminator::Cr, _) => "\r",
                    (PatchStatedLineTerminator::Crlf, TerminatorSource::Chunk) => "\r\n",
                    (
                        PatchStatedLineTerminator::Unstated | PatchStatedLineTerminator::NoNewline,
                        TerminatorSource::Chunk,
                    ) => "\n",
                    (
                        PatchStatedLineTerminator::Crlf
                        | PatchStatedLineTerminator::Unstated
                        | PatchStatedLineTerminator::NoNewline,
                        TerminatorSource::File,
                    ) => replaced.unwrap_or_else(|| neighbouring_terminator(lines, at)),
                };
                added_count += 1;
                let (text, stated_terminator) = (line.text.clone(), line.stated_terminator);
                // If a chunk appends lines without context, its lines come after the lines that replace the last line
                // of the text.
                let slot = if at == lines.len() && quotes_no_line { at + 1 } else { at };
                let new = PatchInsertedLine { text, terminator, stated_terminator, is_explicit };
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

/// New lines take their terminators from the chunk in one case: the chunk has a `\r` or `\r\n` terminator, and its old
/// lines have the same terminators as in the file.
fn terminator_source(lines: &[LineWithTerminator<'_>], placed: &PlacedPatchChunk<'_>) -> TerminatorSource {
    let states_terminators = placed
        .lines
        .iter()
        .any(|line| matches!(line.stated_terminator, PatchStatedLineTerminator::Cr | PatchStatedLineTerminator::Crlf));
    let old = placed.lines.iter().filter(|line| line.is_in_old_text());
    let fits = old.zip(&lines[placed.start.min(lines.len())..]).all(|(quoted, line)| {
        let stated = match quoted.stated_terminator {
            PatchStatedLineTerminator::Unstated => "\n",
            PatchStatedLineTerminator::Cr => "\r",
            PatchStatedLineTerminator::Crlf => "\r\n",
            PatchStatedLineTerminator::NoNewline => "",
        };
        stated == line.terminator
    });
    if states_terminators && fits { TerminatorSource::Chunk } else { TerminatorSource::File }
}

/// The terminator for a new line at index `at`: that of the nearest line above that has one, otherwise that of the line
/// below.
fn neighbouring_terminator(lines: &[LineWithTerminator<'_>], at: usize) -> &'static str {
    let before = lines[..at].iter().rev().find_map(|line| static_terminator(line.terminator));
    let after = || lines.get(at).and_then(|line| static_terminator(line.terminator));
    before.or_else(after).unwrap_or_else(|| default_terminator(lines))
}

/// If the patch is already applied, the 1-based lines where the text has the result of each chunk; otherwise `None`.
/// The patch is already applied if the text contains the new lines of every chunk, in one place each, and the old lines
/// of none. The added lines must be distinctive, because common lines may be in the text by chance.
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

/// Whether the lines that a chunk adds are so distinctive that they are not in a text by chance.
fn is_distinctive_chunk(chunk: &PatchChunk) -> bool {
    let (added, old): (Vec<&PatchLine>, Vec<&PatchLine>) =
        chunk.lines.iter().partition(|line| line.kind == PatchLineKind::Add);
    let text = |lines: &[&PatchLine]| lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect::<String>();
    added.is_empty() || is_distinctive(&text(&old), &text(&added))
}

/// Whether the old lines of all chunks are missing from the text. Chunks with only context lines are not checked.
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

/// The reverse of a chunk. The reverse states no line number, because the number in the patch refers to the unpatched
/// text.
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
