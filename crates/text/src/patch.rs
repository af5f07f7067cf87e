//! Patches: many changes to many files in one text.
//!
//! Owns two formats, the envelope `*** Begin Patch … *** End Patch` in both of its published grammars and the unified
//! diff, and the application of their chunks to a text ([`apply_chunks`]). [`PatchGrammar`] sets the leniency of the
//! parser and [`PatchRules`] that of the search. Promises that parsing and applying end in bounded time and never
//! panic, that bytes outside the changed lines stay as they are, and that every error names a line of the patch. Never
//! touches a file and never guesses between two matches.

mod already_applied;
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
mod wrapper;

pub use already_applied::find_already_applied;
pub use apply::{
    AmbiguityRule, ChunkBase, ChunkMatch, FinalNewlineChange, InsertionPoint, PatchApplyError, PatchApplyErrorKind,
    PatchRules, PatchedText, PlacementBasis, apply_chunks,
};
pub use errors::{PatchParseError, PatchParseErrorKind};
pub use interpretations::{ChunkRepair, SlipRepair};
pub use line_edits::FileEndRule;

/// Whether a syntax deviation is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchSyntaxRule {
    /// Accepted.
    Accept,
    /// An error.
    Reject,
}

/// The meaning of the text after `@@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeadingMeaning {
    /// A line that must be found before the chunk; it narrows the search.
    Anchors,
    /// A comment.
    Comments,
}

/// How strictly a patch is parsed. Every combination is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PatchGrammar {
    /// Space around markers.
    pub space_around_markers: PatchSyntaxRule,
    /// A heredoc or a code fence around the patch.
    pub outer_wrapper: PatchSyntaxRule,
    /// A missing `*** End Patch`.
    pub missing_end_marker: PatchSyntaxRule,
    /// A first chunk without `@@`.
    pub chunk_without_header: PatchSyntaxRule,
    /// A line of a chunk that starts with none of the three signs.
    pub line_without_sign: PatchSyntaxRule,
    /// `*** Move to:`.
    pub move_to_header: PatchSyntaxRule,
    /// `*** End of File`.
    pub end_of_file_marker: PatchSyntaxRule,
    /// A leading `*** Environment ID:`.
    pub environment_header: PatchSyntaxRule,
    /// A unified diff instead of the envelope.
    pub unified_diff: PatchSyntaxRule,
    /// The meaning of the text after `@@`.
    pub headings: HeadingMeaning,
}

impl PatchGrammar {
    /// Accepts everything unambiguous.
    pub const TOLERANT: Self = Self {
        space_around_markers: PatchSyntaxRule::Accept,
        outer_wrapper: PatchSyntaxRule::Accept,
        missing_end_marker: PatchSyntaxRule::Accept,
        chunk_without_header: PatchSyntaxRule::Accept,
        line_without_sign: PatchSyntaxRule::Accept,
        move_to_header: PatchSyntaxRule::Accept,
        end_of_file_marker: PatchSyntaxRule::Accept,
        environment_header: PatchSyntaxRule::Accept,
        unified_diff: PatchSyntaxRule::Accept,
        headings: HeadingMeaning::Anchors,
    };

    /// The exact envelope, with the headers for moves and end of file.
    pub const STRICT: Self =
        Self { move_to_header: PatchSyntaxRule::Accept, end_of_file_marker: PatchSyntaxRule::Accept, ..Self::EXACT };

    /// The exact envelope, with one way to write each change.
    pub const EXACT: Self = Self {
        space_around_markers: PatchSyntaxRule::Reject,
        outer_wrapper: PatchSyntaxRule::Reject,
        missing_end_marker: PatchSyntaxRule::Reject,
        chunk_without_header: PatchSyntaxRule::Reject,
        line_without_sign: PatchSyntaxRule::Reject,
        move_to_header: PatchSyntaxRule::Reject,
        end_of_file_marker: PatchSyntaxRule::Reject,
        environment_header: PatchSyntaxRule::Reject,
        unified_diff: PatchSyntaxRule::Reject,
        headings: HeadingMeaning::Comments,
    };
}

/// A parsed patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPatch {
    /// The changes of each file, in order. Never empty.
    pub sections: Vec<FilePatch>,
}

/// The changes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The 1-based line of the patch that starts it.
    pub line: usize,
    /// The kind of change.
    pub kind: PatchSectionKind,
}

/// The kind of change of one file. Paths are as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchSectionKind {
    /// A new file.
    Add {
        /// Path of the new file.
        path: String,
        /// Its whole content.
        content: String,
    },
    /// Changes a file.
    Update {
        /// Path of the file.
        path: String,
        /// Its changes; never empty.
        chunks: Vec<PatchChunk>,
    },
    /// Deletes a file.
    Delete {
        /// Path of the file.
        path: String,
        /// The expected content, in a unified diff; may be empty.
        chunks: Vec<PatchChunk>,
    },
    /// Renames a file, and may change it.
    Move {
        /// The old path.
        from: String,
        /// The new path.
        to: String,
        /// Its changes; may be empty.
        chunks: Vec<PatchChunk>,
    },
}

/// Consecutive lines of a file and their changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchChunk {
    /// The 1-based line of the patch that starts it.
    pub line: usize,
    /// Lines to find first, outermost first.
    pub anchors: Vec<String>,
    /// The position in a unified diff header, 1-based, counted by `\n`.
    pub declared_position: Option<DeclaredPosition>,
    /// Whether the chunk is marked as the end of the file.
    pub end_of_file: EndOfFileMarker,
    /// The lines; never empty.
    pub lines: Vec<PatchLine>,
}

/// The position that a unified diff states for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeclaredPosition {
    /// The written number: the first line or, for a chunk without old lines, the line before it.
    pub start: usize,
}

/// Whether a chunk is marked as the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfFileMarker {
    /// Not marked.
    Absent,
    /// Marked.
    Present,
}

/// One line of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLine {
    /// The role of the line.
    pub kind: PatchLineKind,
    /// The text, without sign and terminator.
    pub text: String,
    /// Whether the line is marked as having no newline.
    pub no_newline_marker: NoNewlineMarker,
}

/// The role of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchLineKind {
    /// Present and unchanged.
    Context,
    /// Removed.
    Remove,
    /// Added.
    Add,
    /// Without a sign: context, or, between added lines, an added line.
    Unmarked,
}

/// Whether a line is marked as having no newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoNewlineMarker {
    /// Not marked.
    Absent,
    /// Followed by `\ No newline at end of file`.
    Present,
}

impl PatchChunk {
    /// Whether the chunk has no existing lines.
    #[must_use]
    pub fn only_adds(&self) -> bool {
        self.lines.iter().all(|line| line.kind == PatchLineKind::Add)
    }
}

/// Parses a patch.
///
/// # Errors
///
/// [`PatchParseError`] with the line that cannot be parsed and the expected syntax.
pub fn parse_patch(text: &str, grammar: PatchGrammar) -> Result<ParsedPatch, PatchParseError> {
    let lines = wrapper::lines(text, grammar)?;
    let sections = match envelope::find_begin(&lines, grammar) {
        Ok(first) => envelope::parse_sections(&lines, first, grammar)?,
        Err(_) if grammar.unified_diff == PatchSyntaxRule::Accept && unified_diff::looks_like_unified_diff(&lines) => {
            unified_diff::parse_sections(&lines)?
        }
        Err(fault) => return Err(fault),
    };
    Ok(ParsedPatch { sections })
}

/// One line of the patch text.
#[derive(Debug, Clone, Copy)]
struct PatchSourceLine<'a> {
    number: usize,
    text: &'a str,
}
