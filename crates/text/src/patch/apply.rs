//! Application of the chunks of a patch to one text. Owns the rules and the report. All chunks are placed before the
//! text is rebuilt; if one cannot be placed, none is applied.

use std::borrow::Cow;

use crate::locate::MatchPass;

use super::chunk_search::PatchChunkLocator;
use super::interpretations::{ChunkLine, ResolvedLineKind, SlipRepair, StatedTerminator};
use super::line_edits::{FileEndRule, InsertedLine, LineEdits, default_terminator, static_terminator};
use super::line_index::{FileLine, LineIndex};
use super::{ChunkRepair, PatchChunk};

/// When a chunk that fits several positions is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AmbiguityRule {
    /// When its lines occur several times after the last chunk, and nothing else distinguishes them.
    RepeatedLines,
    /// When its text occurs more than once, also within lines.
    RepeatedText,
}

/// The position of added lines without context and anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InsertionPoint {
    /// After the last line.
    AtEnd,
    /// Before the first line.
    AtTop,
}

/// The text that a chunk is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkBase {
    /// The original text: chunks do not see each other's lines.
    OriginalText,
    /// The result of the previous chunks.
    PreviousResult,
}

/// How chunks are placed.
#[derive(Debug, Clone, Copy)]
pub struct PatchRules<'a> {
    /// The file name, for rules that depend on it.
    pub name: &'a str,
    /// The passes to try, in this order.
    pub passes: &'static [MatchPass],
    /// Whether known typing slips in a chunk are undone.
    pub slip_repair: SlipRepair,
    /// When a chunk that fits several positions is rejected.
    pub ambiguity: AmbiguityRule,
    /// The position of added lines without context.
    pub insertion: InsertionPoint,
    /// The text that a chunk is applied to.
    pub chunk_base: ChunkBase,
    /// The end of the text after its last line was replaced.
    pub file_end: FileEndRule,
}

impl<'a> PatchRules<'a> {
    /// Finds every unambiguous match.
    #[must_use]
    pub fn tolerant(name: &'a str) -> Self {
        Self {
            name,
            passes: &[MatchPass::LineEndings, MatchPass::TrailingSpace, MatchPass::LookAlike, MatchPass::Indentation],
            slip_repair: SlipRepair::Undo,
            ambiguity: AmbiguityRule::RepeatedLines,
            insertion: InsertionPoint::AtEnd,
            chunk_base: ChunkBase::OriginalText,
            file_end: FileEndRule::FromPatch,
        }
    }

    /// Lines must match exactly, except for their terminators.
    #[must_use]
    pub fn strict(name: &'a str) -> Self {
        Self {
            name,
            passes: &[MatchPass::LineEndings],
            slip_repair: SlipRepair::Off,
            ambiguity: AmbiguityRule::RepeatedText,
            insertion: InsertionPoint::AtTop,
            chunk_base: ChunkBase::PreviousResult,
            file_end: FileEndRule::FromFile,
        }
    }
}

/// A text after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedText {
    /// The patched text.
    pub text: String,
    /// The match of each chunk, in the order of the patch.
    pub matches: Vec<ChunkMatch>,
    /// The number of added lines.
    pub added: usize,
    /// The number of removed lines.
    pub removed: usize,
    /// The change of the final newline.
    pub final_newline: FinalNewlineChange,
}

/// The change of the final newline of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinalNewlineChange {
    /// Present or missing as before.
    Unchanged,
    /// It was missing and is now present.
    TerminatorAdded,
    /// It was present and is now missing.
    TerminatorDropped,
}

/// The match of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkMatch {
    /// The first 1-based line in the text.
    pub line: usize,
    /// The pass that matched.
    pub pass: MatchPass,
    /// The typing slip that was undone, if any.
    pub repair: Option<ChunkRepair>,
    /// The basis of the position.
    pub basis: PlacementBasis,
}

/// The basis of the position of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlacementBasis {
    /// Its content: the quoted lines, its anchor, or its end-of-file marker.
    Content,
    /// It quotes no line and follows the line with its number.
    LineNumber,
    /// It quotes no line and is placed by [`InsertionPoint`].
    Default,
}

/// A chunk that cannot be placed. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("chunk {chunk} (line {line} of the patch): {reason}")]
pub struct PatchApplyError {
    /// The 0-based index of the chunk.
    pub chunk: usize,
    /// The 1-based line of the patch that starts it.
    pub line: usize,
    /// Why it cannot be placed.
    pub reason: PatchApplyErrorKind,
}

/// Why a chunk cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchApplyErrorKind {
    /// Its lines are not in the text.
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
        /// The anchor.
        anchor: String,
    },
    /// It fits several positions.
    #[error("it matches in {} places; add context lines", lines.len())]
    Ambiguous {
        /// The possible first lines, 1-based.
        lines: Vec<usize>,
        /// The number of quoted lines.
        count: usize,
    },
    /// Another chunk changes the same lines.
    #[error("it changes the same lines as chunk {other}")]
    Overlap {
        /// The 0-based index of the other chunk.
        other: usize,
        /// The 1-based line that both change.
        line: usize,
    },
    /// It quotes no line, and its line number refers to another text.
    #[error("it has no context lines, and line {line} does not fit this file; add context lines")]
    NumberOnly {
        /// The 1-based line that it would follow.
        line: usize,
    },
    /// The search exceeds the work limit.
    #[error("the search takes too long: the text repeats too many lines")]
    Exhausted,
}

/// `text` with `chunks` applied.
///
/// # Errors
///
/// [`PatchApplyError`] for the first chunk that cannot be placed.
pub fn apply_chunks(text: &str, chunks: &[PatchChunk], rules: &PatchRules<'_>) -> Result<PatchedText, PatchApplyError> {
    let mut applied = match rules.chunk_base {
        ChunkBase::OriginalText => apply_to_original(text, chunks, 0, rules)?,
        ChunkBase::PreviousResult => {
            let mut running = apply_to_original(text, &[], 0, rules)?;
            for (number, chunk) in chunks.iter().enumerate() {
                let next = apply_to_original(&running.text, std::slice::from_ref(chunk), number, rules)?;
                running.matches.extend(next.matches);
                running.added += next.added;
                running.removed += next.removed;
                running.text = next.text;
            }
            running
        }
    };
    let is_open = |text: &str| !text.is_empty() && !text.ends_with(['\n', '\r']);
    applied.final_newline = match (is_open(text), is_open(&applied.text)) {
        (true, false) if !applied.text.is_empty() => FinalNewlineChange::TerminatorAdded,
        (false, true) if !text.is_empty() => FinalNewlineChange::TerminatorDropped,
        (true | false, true | false) => FinalNewlineChange::Unchanged,
    };
    Ok(applied)
}

/// Applies chunks to one text; `first` is the index of the first chunk.
fn apply_to_original(
    text: &str,
    chunks: &[PatchChunk],
    first: usize,
    rules: &PatchRules<'_>,
) -> Result<PatchedText, PatchApplyError> {
    let index = LineIndex::new(text);
    let mut search = PatchChunkLocator::new(text, &index, rules);
    let mut splice = LineEdits::new(index.lines.len());
    let mut placed = Vec::with_capacity(chunks.len());
    let failed = |(chunk, at): (usize, &PatchChunk), reason| PatchApplyError { chunk, line: at.line, reason };
    for (number, chunk) in (first..).zip(chunks) {
        let here = search.place_chunk(chunk, &splice).map_err(|reason| failed((number, chunk), reason))?;
        record_chunk_edits(&mut splice, number, &index.lines, &here);
        placed.push(here);
    }
    for (chunk, placed) in (first..).zip(chunks).zip(&placed) {
        if let Some(reason) = search.recheck_placement(placed) {
            return Err(failed(chunk, reason));
        }
    }
    let matched = placed
        .iter()
        .map(|&PlacedChunk { start, pass, repair: rescue, basis: ground, .. }| ChunkMatch {
            line: start + 1,
            pass,
            repair: rescue,
            basis: ground,
        })
        .collect();
    let (added, removed) = (splice.added_count(), splice.removed_count());
    let text = splice.text(&index.lines, rules.file_end);
    Ok(PatchedText { text, matches: matched, added, removed, final_newline: FinalNewlineChange::Unchanged })
}

pub(super) struct PlacedChunk<'c> {
    /// The 0-based line it starts at, or that its lines are inserted before.
    pub(super) start: usize,
    pub(super) lines: Cow<'c, [ChunkLine]>,
    pub(super) pass: MatchPass,
    pub(super) repair: Option<ChunkRepair>,
    pub(super) basis: PlacementBasis,
    /// The 1-based lines it fits at, if only the order of the chunks distinguished them.
    pub(super) candidate_starts: Vec<usize>,
}

/// Records the line edits of a placed chunk.
fn record_chunk_edits(splice: &mut LineEdits, number: usize, lines: &[FileLine<'_>], placed: &PlacedChunk<'_>) {
    let literal = terminator_source(lines, placed);
    let outspoken = placed.lines.iter().any(|piece| piece.stated_terminator == StatedTerminator::NoNewline);
    let is_alone = !placed.lines.iter().any(ChunkLine::is_in_old_text);
    let mut at = placed.start;
    // The terminators of the removed lines, for the lines that replace them.
    let mut removed_terminators: Vec<&'static str> = Vec::new();
    let mut added_count = 0;
    for piece in placed.lines.iter() {
        match piece.kind {
            ResolvedLineKind::Context => {
                splice.quoted_by[at] = Some(number);
                at += 1;
                removed_terminators.clear();
                added_count = 0;
            }
            ResolvedLineKind::Remove => {
                splice.quoted_by[at] = Some(number);
                splice.removed_by[at] = Some(number);
                removed_terminators.extend(static_terminator(lines[at].terminator));
                at += 1;
            }
            ResolvedLineKind::Add => {
                let beside = removed_terminators.get(added_count).or(removed_terminators.last()).copied();
                let terminator = match (piece.stated_terminator, literal) {
                    (StatedTerminator::Cr, _) => "\r",
                    (StatedTerminator::Crlf, TerminatorSource::Chunk) => "\r\n",
                    (StatedTerminator::Unstated | StatedTerminator::NoNewline, TerminatorSource::Chunk) => "\n",
                    (
                        StatedTerminator::Crlf | StatedTerminator::Unstated | StatedTerminator::NoNewline,
                        TerminatorSource::File,
                    ) => beside.unwrap_or_else(|| neighbouring_terminator(lines, at)),
                };
                added_count += 1;
                let new = InsertedLine {
                    text: piece.text.clone(),
                    terminator,
                    stated_terminator: piece.stated_terminator,
                    is_explicit: outspoken,
                };
                // An insertion without context at the end follows any replacement of the last lines.
                let slot = if at == lines.len() && is_alone { at + 1 } else { at };
                splice.inserted.entry(slot).or_default().push(new);
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

/// A chunk with terminators other than newlines that match those of the file determines the terminators.
fn terminator_source(lines: &[FileLine<'_>], placed: &PlacedChunk<'_>) -> TerminatorSource {
    let has_shown = placed
        .lines
        .iter()
        .any(|piece| matches!(piece.stated_terminator, StatedTerminator::Cr | StatedTerminator::Crlf));
    let old = placed.lines.iter().filter(|piece| piece.is_in_old_text());
    let fits = old.zip(&lines[placed.start.min(lines.len())..]).all(|(piece, line)| {
        let written = match piece.stated_terminator {
            StatedTerminator::Unstated => "\n",
            StatedTerminator::Cr => "\r",
            StatedTerminator::Crlf => "\r\n",
            StatedTerminator::NoNewline => "",
        };
        written == line.terminator
    });
    if has_shown && fits { TerminatorSource::Chunk } else { TerminatorSource::File }
}

/// The terminator of the nearest line: the previous one, else the next.
fn neighbouring_terminator(lines: &[FileLine<'_>], at: usize) -> &'static str {
    let before = lines[..at].iter().rev().find_map(|line| static_terminator(line.terminator));
    let behind = || lines.get(at).and_then(|line| static_terminator(line.terminator));
    before.or_else(behind).unwrap_or_else(|| default_terminator(lines))
}
