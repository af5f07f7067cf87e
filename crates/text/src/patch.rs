//! Patches: changes to one or more files, written as one text.
//!
//! A patch is a unified diff, or the envelope `*** Begin Patch … *** End Patch` in one of its two published grammars.
//! Parsing and applying a patch take bounded time and never panic. If a chunk of a patch matches in several places, the
//! result is an error; no place is guessed.

mod anchor;
mod apply;
mod chunk_parser;
mod chunk_search;
mod envelope;
mod errors;
mod interpretations;
mod line_edits;
mod line_index;
mod unified_diff;

pub use apply::{
    FinalNewlineChange, PatchApplyError, PatchApplyErrorKind, PatchChunkMatch, PatchChunkMatching,
    PatchChunkPlacementRules, PatchPlacementBasis, PatchedText, apply_chunks, find_already_applied,
};
pub use errors::{PatchParseError, PatchParseErrorKind};
pub use interpretations::PatchChunkRepair;

/// How strictly a patch is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PatchGrammar {
    /// The parser accepts every optional patch syntax that is unambiguous: a heredoc or a code fence around the patch,
    /// white space around markers, a missing end marker, a leading `*** Environment ID:`, a first chunk without `@@`,
    /// lines without a sign, and a unified diff instead of the envelope. The text after `@@` is an anchor: a line of
    /// the file above the chunk, which narrows the search.
    #[default]
    Tolerant,
    /// The parser accepts only the exact envelope, `*** Move to:` and `*** End of File`. The text after `@@` is a
    /// comment without meaning.
    Strict,
    /// The parser accepts only the exact envelope without `*** Move to:` and `*** End of File`. The text after `@@` is
    /// a comment without meaning.
    Exact,
}

impl PatchGrammar {
    fn is_tolerant(self) -> bool {
        self == Self::Tolerant
    }
}

/// The section of a patch that changes one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The 1-based line of the patch where the section starts.
    pub line: usize,
    pub kind: PatchSectionKind,
}

/// The change that a patch makes to one file, with paths as written in the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchSectionKind {
    Add {
        path: String,
        content: String,
    },
    Update {
        path: String,
        /// The chunks of the patch that change the file; the list is never empty.
        chunks: Vec<PatchChunk>,
    },
    Delete {
        path: String,
        /// The chunks with the lines that a unified diff removes. The removed lines must be the whole content of the
        /// deleted file. The list of chunks is empty if the patch does not state the removed lines.
        chunks: Vec<PatchChunk>,
    },
    /// The patch renames a file, and may also change the file's content.
    Move {
        from: String,
        to: String,
        /// The chunks of the patch that change the renamed file; the list may be empty.
        chunks: Vec<PatchChunk>,
    },
}

/// A chunk of a patch: consecutive lines of a file and their changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchChunk {
    /// The 1-based line of the patch where the chunk starts.
    line: usize,
    /// The anchors of the chunk, outermost first. An anchor is a line of the file above the chunk.
    anchors: Vec<String>,
    /// The 1-based number of the first old line of the chunk that a unified diff states, counting only `\n` as a line
    /// end. For a chunk that only inserts lines, the number is that of the line before the insertion.
    declared_start: Option<usize>,
    has_end_of_file_marker: bool,
    /// The context, removed and added lines of the chunk; the list is never empty.
    lines: Vec<PatchLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PatchLine {
    kind: PatchLineKind,
    /// The text of the line in the chunk, without sign and terminator.
    text: String,
    /// Whether the line is followed by the marker `\ No newline at end of file`.
    has_no_newline_marker: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PatchLineKind {
    Context,
    Remove,
    Add,
    /// A line without a sign is treated as context. The repair of typing slips turns an unsigned line between added
    /// lines into an added line.
    Unmarked,
}

impl PatchChunk {
    fn new(line: usize) -> Self {
        Self { line, anchors: Vec::new(), declared_start: None, has_end_of_file_marker: false, lines: Vec::new() }
    }

    fn only_adds(&self) -> bool {
        self.lines.iter().all(|line| line.kind == PatchLineKind::Add)
    }
}

impl PatchLine {
    fn new(kind: PatchLineKind, text: &str) -> Self {
        Self { kind, text: text.to_owned(), has_no_newline_marker: false }
    }
}

/// Parses a patch and returns its sections, at least one. A syntax error is reported with the number of the erroneous
/// line.
pub fn parse_patch(text: &str, grammar: PatchGrammar) -> Result<Vec<FilePatch>, PatchParseError> {
    let lines = envelope::split_patch_lines(text, grammar)?;
    match envelope::find_begin(&lines, grammar) {
        Ok(first) => envelope::parse_sections(&lines, first, grammar),
        Err(_) if grammar.is_tolerant() && unified_diff::looks_like_unified_diff(&lines) => {
            unified_diff::parse_sections(&lines)
        }
        Err(error) => Err(error),
    }
}

#[derive(Debug, Clone, Copy)]
struct PatchSourceLine<'a> {
    number: usize,
    text: &'a str,
}
