//! Patches: changes to one or more files, written as one text.
//!
//! Two patch formats are supported: the unified diff, and the envelope `*** Begin Patch … *** End Patch` in both of its
//! published grammars. The options [`PatchParseOptions`] set how lenient the parser is, and
//! [`PatchChunkPlacementRules`] how lenient the search for the changed lines is. Parsing and applying a patch take
//! bounded time and never panic. Bytes outside the changed lines stay as they are. Every error names a line of the
//! patch. If a chunk matches in several places, the result is an error; no place is guessed.

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
pub use line_edits::PatchFinalNewlineRule;

/// Whether an optional form of patch syntax is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchSyntaxTolerance {
    /// The parser accepts the optional syntax.
    Accept,
    /// The parser rejects the optional syntax as an error.
    Reject,
}

/// The meaning of the text after `@@` in a patch: an anchor or a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HunkHeadingMeaning {
    /// The text after `@@` is an anchor: a line of the file above the chunk, which narrows the search.
    Anchors,
    /// The text after `@@` is a comment without meaning.
    Comments,
}

/// How strictly a patch is parsed; every combination of these options is valid.
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
    /// The meaning of the text after `@@` in a patch: an anchor or a comment.
    pub headings: HunkHeadingMeaning,
}

impl PatchParseOptions {
    /// The most lenient patch parser: every optional syntax that is unambiguous is accepted.
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

    /// A strict patch parser: accepts only the exact envelope, with `*** Move to:` and `*** End of File`.
    pub const STRICT: Self = Self {
        move_to_header: PatchSyntaxTolerance::Accept,
        end_of_file_marker: PatchSyntaxTolerance::Accept,
        ..Self::EXACT
    };

    /// The strictest patch parser: accepts only the exact envelope, without `*** Move to:` and `*** End of File`.
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
    /// The sections of the patch, one per changed file and never empty.
    pub sections: Vec<FilePatch>,
}

/// The section of a patch that changes one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The 1-based line of the patch where the section starts.
    pub line: usize,
    /// Whether the section adds, updates, deletes or moves the file, with the details.
    pub kind: PatchSectionKind,
}

/// The change that a patch makes to one file, with paths as written in the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchSectionKind {
    /// The patch creates a file.
    Add {
        /// The path of the file that the patch creates.
        path: String,
        /// The whole content of the new file.
        content: String,
    },
    /// The patch changes an existing file.
    Update {
        /// The path of the file that the patch changes or deletes.
        path: String,
        /// The chunks that change the file; never empty.
        chunks: Vec<PatchChunk>,
    },
    /// The patch deletes a file.
    Delete {
        /// The path of the file that the patch changes or deletes.
        path: String,
        /// The lines that a unified diff removes, which must be the whole content of the file; empty if the patch
        /// states none.
        chunks: Vec<PatchChunk>,
    },
    /// The patch renames a file, and may also change it.
    Move {
        /// The old path.
        from: String,
        /// The new path.
        to: String,
        /// The chunks that change the renamed file; may be empty.
        chunks: Vec<PatchChunk>,
    },
}

/// Consecutive lines of a file and their changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchChunk {
    /// The 1-based line of the patch where the chunk starts.
    pub line: usize,
    /// The anchors, outermost first: lines of the file above the chunk, which narrow the search for it.
    pub anchors: Vec<String>,
    /// The line number that the hunk header of a unified diff states; `None` if the chunk states no line number.
    pub declared_position: Option<DeclaredChunkPosition>,
    /// Whether the chunk is marked as the end of the file.
    pub end_of_file: EndOfFileMarker,
    /// The context, removed and added lines of the chunk; never empty.
    pub lines: Vec<PatchLine>,
}

/// The position that a unified diff states for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeclaredChunkPosition {
    /// The 1-based number of the first old line; only `\n` ends a line. If the chunk only inserts lines, they belong
    /// after the line with this number.
    pub start: usize,
}

/// Whether a chunk is marked as the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfFileMarker {
    /// The chunk has no end-of-file marker.
    Absent,
    /// The chunk has an end-of-file marker.
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
    /// A context line, which is in the file and stays unchanged.
    Context,
    /// A line that the patch removes.
    Remove,
    /// A line that the patch adds.
    Add,
    /// A line without a sign. It is context, but the repair of typing slips makes it added if it is between added
    /// lines.
    Unmarked,
}

/// Whether a line is marked as having no newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoNewlineMarkerPresence {
    /// The line is not followed by `\ No newline at end of file`, so it ends with a newline.
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

/// Parses a patch. The error of a failed parse has the line of the patch and the expected syntax.
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

#[derive(Debug, Clone, Copy)]
struct PatchSourceLine<'a> {
    number: usize,
    text: &'a str,
}
