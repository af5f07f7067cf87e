//! Applies the chunks of a patch to one text, and detects patches that are already applied. If one chunk cannot be
//! placed, then no chunk is applied.

use crate::edit::is_distinctive;
use crate::locate::FuzzyTextMatchPass;

use super::chunk_search::PatchChunkLocator;
use super::interpretations::{PatchChunkLine, PatchStatedLineTerminator, PatchTypingSlipRepairMode, ResolvedLineKind};
use super::line_edits::{PatchInsertedLine, PatchLineEdits, default_terminator, static_terminator};
use super::line_index::{LineLookupIndex, LineWithTerminator};
use super::{PatchChunk, PatchChunkRepair, PatchLine, PatchLineKind};

/// How strictly the chunks of a patch are matched with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchChunkMatching {
    /// Every unambiguous match is accepted. Every chunk is applied to the original text, so a chunk cannot quote lines
    /// that other chunks add. The place of a chunk is ambiguous if its lines match several times after the previous
    /// chunk; an anchor, a line number or an end-of-file marker of the chunk can select one of several matches. A chunk
    /// without context and anchor inserts its lines after the last line of the text. A new last line gets a newline
    /// unless a no-newline marker follows it, but a line appended to a text without a final newline gets none.
    Tolerant,
    /// Lines must match exactly, except for their terminators. Each chunk is applied to the result of the previous
    /// chunks. The place of a chunk is ambiguous if its old lines occur more than once in the text, even within longer
    /// lines. A chunk without context and anchor inserts its lines before the first line of the text. The text ends
    /// with a newline if it did before the patch; a no-newline marker in the patch overrides this rule.
    Strict,
}

/// The rules for finding the place of each chunk of a patch in the text.
#[derive(Debug, Clone, Copy)]
pub struct PatchChunkPlacementRules<'a> {
    /// The name of the patched file decides about some repairs of typing slips.
    pub(super) name: &'a str,
    pub(super) matching: PatchChunkMatching,
    pub(super) passes: &'static [FuzzyTextMatchPass],
    pub(super) slip_repair: PatchTypingSlipRepairMode,
}

impl<'a> PatchChunkPlacementRules<'a> {
    /// Returns the rules for placing chunks in the file `name`.
    pub fn new(name: &'a str, matching: PatchChunkMatching) -> Self {
        let passes = &FuzzyTextMatchPass::ALL[1..];
        let tolerant = Self { name, matching, passes, slip_repair: PatchTypingSlipRepairMode::Undo };
        match matching {
            PatchChunkMatching::Tolerant => tolerant,
            PatchChunkMatching::Strict => tolerant.without_leniency(),
        }
    }

    pub(super) fn without_leniency(self) -> Self {
        Self { passes: &[FuzzyTextMatchPass::LineEndings], slip_repair: PatchTypingSlipRepairMode::Off, ..self }
    }
}

/// The result of applying a patch to a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedText {
    pub text: String,
    /// The place where each chunk was applied, in the order of the patch.
    pub matches: Vec<PatchChunkMatch>,
    pub added: usize,
    pub removed: usize,
    pub final_newline: FinalNewlineChange,
}

/// Whether a patch added or removed the final newline of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinalNewlineChange {
    Unchanged,
    TerminatorAdded,
    TerminatorDropped,
}

/// The place in the text where a chunk of a patch was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchChunkMatch {
    /// The 1-based line of the text where the chunk was applied.
    pub line: usize,
    pub pass: FuzzyTextMatchPass,
    pub repair: Option<PatchChunkRepair>,
    pub basis: PatchPlacementBasis,
}

/// Whether a chunk was placed by its content, by a line number, or by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchPlacementBasis {
    /// The chunk was placed by its quoted lines, its anchor, or its end-of-file marker.
    Content,
    /// The chunk quotes no line and was placed by the line number that it states.
    LineNumber,
    /// The chunk quotes no line and states no line number, so it was placed at the start or the end of the text.
    Default,
}

/// The error for a chunk that cannot be placed; no chunk of the patch was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("chunk {chunk} (line {line} of the patch): {reason}")]
pub struct PatchApplyError {
    /// The 0-based index of the chunk that cannot be placed.
    pub chunk: usize,
    /// The 1-based line of the patch where the failed chunk starts.
    pub line: usize,
    pub reason: PatchApplyErrorKind,
}

/// The reason why a chunk cannot be placed in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchApplyErrorKind {
    #[error("its lines are not in the text")]
    NotFound {
        /// The context and removed lines of the chunk, each with a newline.
        quoted: String,
        /// The only 1-based line where the text already contains the new lines of the chunk.
        already: Option<usize>,
    },
    #[error("the line {anchor:?} after @@ is not in the text")]
    AnchorNotFound { anchor: String },
    #[error("it matches in {} places; add context lines", lines.len())]
    Ambiguous {
        /// The 1-based first lines of all places where the chunk matches.
        lines: Vec<usize>,
        /// The number of lines of the text that the ambiguous chunk quotes.
        count: usize,
    },
    #[error("it changes the same lines as chunk {other}")]
    Overlap {
        /// The 0-based index of the other chunk that changes the same lines.
        other: usize,
        /// The 1-based line of the text that both chunks quote and at least one of the chunks removes.
        line: usize,
    },
    #[error("it has no context lines, and line {line} does not fit this file; add context lines")]
    NumberOnly {
        /// The 1-based line after which the chunk should insert its lines, as the patch states.
        line: usize,
    },
    #[error("the search takes too long: the text repeats too many lines")]
    Exhausted,
}

/// Applies `chunks` to `text`, or returns the error of the first chunk that cannot be placed.
pub fn apply_chunks(
    text: &str,
    chunks: &[PatchChunk],
    rules: &PatchChunkPlacementRules<'_>,
) -> Result<PatchedText, PatchApplyError> {
    let mut applied = match rules.matching {
        PatchChunkMatching::Tolerant => apply_to_original(text, chunks, 0, rules)?,
        PatchChunkMatching::Strict => {
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
    let to_match = |&PlacedPatchChunk { start, pass, repair, basis, .. }: &PlacedPatchChunk| PatchChunkMatch {
        line: start + 1,
        pass,
        repair,
        basis,
    };
    Ok(PatchedText {
        text: edits.text(&index.lines, rules.matching),
        matches: placed.iter().map(to_match).collect(),
        added: edits.added_count(),
        removed: edits.removed_count(),
        final_newline: FinalNewlineChange::Unchanged,
    })
}

pub(super) struct PlacedPatchChunk {
    /// The 0-based line of the text where the chunk starts or inserts its lines.
    pub(super) start: usize,
    pub(super) lines: Vec<PatchChunkLine>,
    pub(super) pass: FuzzyTextMatchPass,
    pub(super) repair: Option<PatchChunkRepair>,
    pub(super) basis: PatchPlacementBasis,
    /// The 1-based lines of all matches, if one match was chosen only because it follows the previous chunk.
    pub(super) candidate_starts: Vec<usize>,
}

fn record_chunk_edits(
    edits: &mut PatchLineEdits,
    number: usize,
    lines: &[LineWithTerminator<'_>],
    placed: &PlacedPatchChunk,
) {
    let states_terminators = states_terminators(lines, placed);
    let is_explicit = placed.lines.iter().any(|line| line.stated_terminator == PatchStatedLineTerminator::NoNewline);
    let quotes_no_line = !placed.lines.iter().any(PatchChunkLine::is_in_old_text);
    let mut at = placed.start;
    // The lines that replace removed lines get the terminators of the removed lines.
    let mut removed_terminators: Vec<&'static str> = Vec::new();
    let mut added_count = 0;
    for line in &placed.lines {
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
                let terminator = if line.stated_terminator != PatchStatedLineTerminator::Cr && !states_terminators {
                    replaced.unwrap_or_else(|| neighbouring_terminator(lines, at))
                } else {
                    line.stated_terminator.characters()
                };
                added_count += 1;
                let (text, stated_terminator) = (line.text.clone(), line.stated_terminator);
                // Lines that a chunk appends without context come after the lines that replace the last line.
                let slot = if at == lines.len() && quotes_no_line { at + 1 } else { at };
                let new = PatchInsertedLine { text, terminator, stated_terminator, is_explicit };
                edits.inserted.entry(slot).or_default().push(new);
            }
        }
    }
}

/// Whether new lines take their terminators from the chunk and not from the file.
fn states_terminators(lines: &[LineWithTerminator<'_>], placed: &PlacedPatchChunk) -> bool {
    let states_carriage_return = placed
        .lines
        .iter()
        .any(|line| matches!(line.stated_terminator, PatchStatedLineTerminator::Cr | PatchStatedLineTerminator::Crlf));
    let old = placed.lines.iter().filter(|line| line.is_in_old_text());
    let fits = old.zip(&lines[placed.start.min(lines.len())..]).all(|(quoted, line)| {
        let has_no_newline = quoted.stated_terminator == PatchStatedLineTerminator::NoNewline;
        line.terminator == if has_no_newline { "" } else { quoted.stated_terminator.characters() }
    });
    states_carriage_return && fits
}

/// Returns the terminator of the nearest terminated line above, or of the line below if no line above has one.
fn neighbouring_terminator(lines: &[LineWithTerminator<'_>], at: usize) -> &'static str {
    let before = lines[..at].iter().rev().find_map(|line| static_terminator(line.terminator));
    let after = || lines.get(at).and_then(|line| static_terminator(line.terminator));
    before.or_else(after).unwrap_or_else(|| default_terminator(lines))
}

/// Finds the 1-based lines where the text already has the result of each chunk. A patch counts as already applied if
/// the text has the new lines of every chunk and no old lines. A chunk that adds only common lines does not count as
/// applied, because common lines occur by chance.
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
    let undone = apply_chunks(text, &reversed, &rules.without_leniency()).ok()?;
    Some(undone.matches.iter().map(|matched| matched.line).collect())
}

fn is_distinctive_chunk(chunk: &PatchChunk) -> bool {
    let (added, old): (Vec<&PatchLine>, Vec<&PatchLine>) =
        chunk.lines.iter().partition(|line| line.kind == PatchLineKind::Add);
    let text = |lines: &[&PatchLine]| lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect::<String>();
    added.is_empty() || is_distinctive(&text(&old), &text(&added))
}

/// Whether the text lacks the old lines of every chunk that changes something.
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

/// Swaps the added and the removed lines of a chunk, and drops the stated line number.
fn reverse_chunk(chunk: &PatchChunk) -> PatchChunk {
    let reverse = |line: &PatchLine| {
        let kind = match line.kind {
            PatchLineKind::Add => PatchLineKind::Remove,
            PatchLineKind::Remove => PatchLineKind::Add,
            PatchLineKind::Context | PatchLineKind::Unmarked => line.kind,
        };
        PatchLine { kind, ..line.clone() }
    };
    PatchChunk { lines: chunk.lines.iter().map(reverse).collect(), declared_start: None, ..chunk.clone() }
}
