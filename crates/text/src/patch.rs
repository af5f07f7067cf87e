//! Patches: changes to one or more files, written as one text.
//!
//! Owns two formats and the application of their chunks to a text ([`apply_chunks`]). The formats are the unified diff
//! and the envelope `*** Begin Patch … *** End Patch`, in both of its published grammars. [`PatchParseOptions`] sets
//! how lenient the parser is, and [`PatchChunkPlacementRules`] how lenient the search is. Promises that parsing and
//! applying end in bounded time and never panic, that bytes outside the changed lines stay as they are, and that every
//! error names a line of the patch. If a chunk matches in several places, the result is an error; no place is guessed.

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
    FinalNewlineChange, PatchAmbiguityCriterion, PatchApplyError, PatchApplyErrorKind, PatchChunkBaseTextPolicy,
    PatchChunkMatch, PatchChunkPlacementRules, PatchPlacementBasis, PatchedText, UnanchoredInsertionPoint,
    apply_chunks, find_already_applied,
};
pub use errors::{PatchParseError, PatchParseErrorKind};
pub use interpretations::{PatchChunkRepair, PatchTypingSlipRepairMode};
pub use line_edits::FinalNewlineRule;

/// Whether an optional form of patch syntax is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchSyntaxTolerance {
    /// The form is accepted.
    Accept,
    /// The form is an error.
    Reject,
}

/// The meaning of the text after `@@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HunkHeadingMeaning {
    /// The text is an anchor: a line of the file above the chunk, which narrows the search.
    Anchors,
    /// The text is a comment.
    Comments,
}

/// How strictly a patch is parsed. Every combination is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PatchParseOptions {
    /// Whether there may be white space around markers.
    pub space_around_markers: PatchSyntaxTolerance,
    /// Whether there may be a heredoc or a code fence around the patch.
    pub outer_wrapper: PatchSyntaxTolerance,
    /// Whether `*** End Patch` may be missing.
    pub missing_end_marker: PatchSyntaxTolerance,
    /// Whether the first chunk may start without `@@`.
    pub chunk_without_header: PatchSyntaxTolerance,
    /// Whether a line of a chunk may lack its sign (`+`, `-` or a space).
    pub line_without_sign: PatchSyntaxTolerance,
    /// Whether the header `*** Move to:` is accepted.
    pub move_to_header: PatchSyntaxTolerance,
    /// Whether the marker `*** End of File` is accepted.
    pub end_of_file_marker: PatchSyntaxTolerance,
    /// Whether a leading header `*** Environment ID:` is accepted.
    pub environment_header: PatchSyntaxTolerance,
    /// Whether a unified diff is accepted instead of the envelope.
    pub unified_diff: PatchSyntaxTolerance,
    /// The meaning of the text after `@@`.
    pub headings: HunkHeadingMeaning,
}

impl PatchParseOptions {
    /// Accepts every form that is unambiguous.
    pub const TOLERANT: Self = Self {
        space_around_markers: PatchSyntaxTolerance::Accept,
        outer_wrapper: PatchSyntaxTolerance::Accept,
        missing_end_marker: PatchSyntaxTolerance::Accept,
        chunk_without_header: PatchSyntaxTolerance::Accept,
        line_without_sign: PatchSyntaxTolerance::Accept,
        move_to_header: PatchSyntaxTolerance::Accept,
        end_of_file_marker: PatchSyntaxTolerance::Accept,
        environment_header: PatchSyntaxTolerance::Accept,
        unified_diff: PatchSyntaxTolerance::Accept,
        headings: HunkHeadingMeaning::Anchors,
    };

    /// Accepts the exact envelope, with the optional markers for moves and for the end of the file.
    pub const STRICT: Self = Self {
        move_to_header: PatchSyntaxTolerance::Accept,
        end_of_file_marker: PatchSyntaxTolerance::Accept,
        ..Self::EXACT
    };

    /// Accepts only the exact envelope without the optional markers, so that each change can be written in only one
    /// way.
    pub const EXACT: Self = Self {
        space_around_markers: PatchSyntaxTolerance::Reject,
        outer_wrapper: PatchSyntaxTolerance::Reject,
        missing_end_marker: PatchSyntaxTolerance::Reject,
        chunk_without_header: PatchSyntaxTolerance::Reject,
        line_without_sign: PatchSyntaxTolerance::Reject,
        move_to_header: PatchSyntaxTolerance::Reject,
        end_of_file_marker: PatchSyntaxTolerance::Reject,
        environment_header: PatchSyntaxTolerance::Reject,
        unified_diff: PatchSyntaxTolerance::Reject,
        headings: HunkHeadingMeaning::Comments,
    };
}

/// A parsed patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPatch {
    /// The changes of each file, in the order of the patch; never empty.
    pub sections: Vec<FilePatch>,
}

/// The section of a patch that changes one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The 1-based line of the patch where the section starts.
    pub line: usize,
    /// The change of the file.
    pub kind: PatchSectionKind,
}

/// The change of one file. Paths are as written in the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchSectionKind {
    /// The file is created.
    Add {
        /// The path of the new file.
        path: String,
        /// The whole content of the file.
        content: String,
    },
    /// The file is changed.
    Update {
        /// The path of the file.
        path: String,
        /// The changes of the file; never empty.
        chunks: Vec<PatchChunk>,
    },
    /// The file is deleted.
    Delete {
        /// The path of the file.
        path: String,
        /// The expected content of the file, if a unified diff states the content; may be empty.
        chunks: Vec<PatchChunk>,
    },
    /// The file is renamed, and perhaps changed.
    Move {
        /// The old path.
        from: String,
        /// The new path.
        to: String,
        /// The changes of the file; may be empty.
        chunks: Vec<PatchChunk>,
    },
}

/// Consecutive lines of a file and their changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchChunk {
    /// The 1-based line of the patch where the chunk starts.
    pub line: usize,
    /// The anchors: lines of the file above the chunk, outermost first.
    pub anchors: Vec<String>,
    /// The position that the header of a unified diff states.
    pub declared_position: Option<DeclaredChunkPosition>,
    /// Whether the chunk is marked as the end of the file.
    pub end_of_file: EndOfFileMarker,
    /// The lines of the chunk; never empty.
    pub lines: Vec<PatchLine>,
}

/// The position that a unified diff states for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeclaredChunkPosition {
    /// The 1-based number of the first old line, counted by `\n`. If the chunk has no old lines, this is the number of
    /// the line before the inserted lines.
    pub start: usize,
}

/// Whether a chunk is marked as the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfFileMarker {
    /// The chunk is not marked.
    Absent,
    /// The chunk is marked.
    Present,
}

/// One line of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLine {
    /// Whether the line is context, removed or added.
    pub kind: PatchLineKind,
    /// The text of the line, without sign and terminator.
    pub text: String,
    /// Whether the line is marked as having no newline.
    pub no_newline_marker: NoNewlineMarkerPresence,
}

/// Whether a line of a chunk is context, removed or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchLineKind {
    /// The line is in the file and stays unchanged.
    Context,
    /// The line is removed.
    Remove,
    /// The line is added.
    Add,
    /// The line has no sign. Between added lines it is an added line, otherwise a context line.
    Unmarked,
}

/// Whether a line is marked as having no newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoNewlineMarkerPresence {
    /// The line is not marked.
    Absent,
    /// The line is followed by `\ No newline at end of file`.
    Present,
}

impl PatchChunk {
    /// Whether the chunk has only added lines.
    #[must_use]
    pub fn only_adds(&self) -> bool {
        self.lines.iter().all(|line| line.kind == PatchLineKind::Add)
    }
}

/// Parses a patch. The error states the line that cannot be parsed and the expected syntax.
pub fn parse_patch(text: &str, grammar: PatchParseOptions) -> Result<ParsedPatch, PatchParseError> {
    let lines = envelope::split_patch_lines(text, grammar)?;
    let sections = match envelope::find_begin(&lines, grammar) {
        Ok(first) => envelope::parse_sections(&lines, first, grammar)?,
        Err(_)
            if grammar.unified_diff == PatchSyntaxTolerance::Accept
                && unified_diff::looks_like_unified_diff(&lines) =>
        {
            unified_diff::parse_sections(&lines)?
        }
        Err(error) => return Err(error),
    };
    Ok(ParsedPatch { sections })
}

/// One line of the patch text.
#[derive(Debug, Clone, Copy)]
struct PatchSourceLine<'a> {
    number: usize,
    text: &'a str,
}
