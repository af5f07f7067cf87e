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
    FinalNewlineChange, PatchAmbiguityCriterion, PatchApplyError, PatchApplyErrorKind, PatchChunkBaseTextPolicy,
    PatchChunkMatch, PatchChunkPlacementRules, PatchPlacementBasis, PatchedText, UnanchoredInsertionPoint,
    apply_chunks, find_already_applied,
};
pub use errors::{PatchParseError, PatchParseErrorKind};
pub use interpretations::{PatchChunkRepair, PatchTypingSlipRepairMode};
pub use line_edits::PatchFinalNewlineRule;

/// Whether the patch parser accepts an optional form of patch syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchSyntaxTolerance {
    /// The patch parser accepts the optional syntax.
    Accept,
    /// The patch parser rejects the optional syntax as an error.
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

/// The options that set how strictly a patch is parsed. Every combination of the patch parse options is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PatchParseOptions {
    /// Whether white space is accepted around the markers of a patch.
    pub space_around_markers: PatchSyntaxTolerance,
    /// Whether a heredoc or a code fence is accepted around the patch.
    pub outer_wrapper: PatchSyntaxTolerance,
    /// Whether the end marker `*** End Patch` may be missing from a patch.
    pub missing_end_marker: PatchSyntaxTolerance,
    /// Whether the first chunk of a file may start without `@@`.
    pub chunk_without_header: PatchSyntaxTolerance,
    /// Whether a line of a chunk may lack its sign (`+`, `-` or a space).
    pub line_without_sign: PatchSyntaxTolerance,
    /// Whether the header `*** Move to:` is accepted in a patch.
    pub move_to_header: PatchSyntaxTolerance,
    /// Whether the marker `*** End of File` is accepted in a patch.
    pub end_of_file_marker: PatchSyntaxTolerance,
    /// Whether a leading header `*** Environment ID:` is accepted in a patch.
    pub environment_header: PatchSyntaxTolerance,
    /// Whether a unified diff is accepted instead of the envelope.
    pub unified_diff: PatchSyntaxTolerance,
    /// The meaning of the text after `@@` in a patch: an anchor or a comment.
    pub headings: HunkHeadingMeaning,
}

impl PatchParseOptions {
    /// The most lenient parse options: every optional patch syntax that is unambiguous is accepted.
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

    /// The strict parse options: only the exact envelope, `*** Move to:` and `*** End of File` are accepted.
    pub const STRICT: Self = Self {
        move_to_header: PatchSyntaxTolerance::Accept,
        end_of_file_marker: PatchSyntaxTolerance::Accept,
        ..Self::EXACT
    };

    /// The strictest parse options: only the exact envelope without `*** Move to:` and `*** End of File` is accepted.
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

/// A parsed patch, with one section per changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPatch {
    /// The sections of the patch, one per changed file; the list is never empty.
    pub sections: Vec<FilePatch>,
}

/// The section of a patch that changes one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The 1-based line of the patch where the section starts.
    pub line: usize,
    /// The change that the section makes to the file.
    pub kind: PatchSectionKind,
}

/// The change that a patch makes to one file, with paths as written in the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchSectionKind {
    /// The patch creates a file.
    Add {
        /// The path of the file that the patch creates.
        path: String,
        /// The whole content of the file that the patch creates.
        content: String,
    },
    /// The patch changes an existing file.
    Update {
        /// The path of the file that the patch changes.
        path: String,
        /// The chunks of the patch that change the file; the list is never empty.
        chunks: Vec<PatchChunk>,
    },
    /// The patch deletes a file.
    Delete {
        /// The path of the file that the patch deletes.
        path: String,
        /// The chunks with the lines that a unified diff removes. The removed lines must be the whole content of the
        /// deleted file. The list of chunks is empty if the patch does not state the removed lines.
        chunks: Vec<PatchChunk>,
    },
    /// The patch renames a file, and may also change the file's content.
    Move {
        /// The path of the file before the patch renames it.
        from: String,
        /// The path of the file after the patch renames it.
        to: String,
        /// The chunks of the patch that change the renamed file; the list may be empty.
        chunks: Vec<PatchChunk>,
    },
}

/// A chunk of a patch: consecutive lines of a file and their changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchChunk {
    /// The 1-based line of the patch where the chunk starts.
    pub line: usize,
    /// The anchors of the chunk, outermost first. An anchor is a line of the file above the chunk.
    pub anchors: Vec<String>,
    /// The position that a unified diff states for the chunk; `None` if the patch states no position.
    pub declared_position: Option<DeclaredChunkPosition>,
    /// Whether the chunk has an end-of-file marker.
    pub end_of_file: EndOfFileMarker,
    /// The context, removed and added lines of the chunk; the list is never empty.
    pub lines: Vec<PatchLine>,
}

/// The position that a unified diff states for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeclaredChunkPosition {
    /// The 1-based number of the first old line of the chunk, counting only `\n` as a line end. For a chunk that only
    /// inserts lines, the number is that of the line before the insertion.
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

/// A line of a chunk, which is context, removed or added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLine {
    /// Whether the line of the chunk is context, removed or added.
    pub kind: PatchLineKind,
    /// The text of the line in the chunk, without sign and terminator.
    pub text: String,
    /// Whether the line of the chunk is marked as having no newline.
    pub no_newline_marker: PatchLineNoNewlineMarker,
}

/// Whether a line of a chunk is context, removed or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchLineKind {
    /// The line is context: it is in the file and stays unchanged.
    Context,
    /// The line is removed from the file by the patch.
    Remove,
    /// The line is added to the file by the patch.
    Add,
    /// A line without a sign is treated as context. The repair of typing slips turns an unsigned line between added
    /// lines into an added line.
    Unmarked,
}

/// Whether a line of a chunk is marked as having no newline at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchLineNoNewlineMarker {
    /// The line ends with a newline, because no marker `\ No newline at end of file` follows the line.
    Absent,
    /// The line is followed by the marker `\ No newline at end of file`.
    Present,
}

impl PatchChunk {
    /// Whether the chunk has only added lines.
    #[must_use]
    pub fn only_adds(&self) -> bool {
        self.lines.iter().all(|line| line.kind == PatchLineKind::Add)
    }
}

/// Parses a patch. A syntax error is reported with the number of the erroneous line.
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
