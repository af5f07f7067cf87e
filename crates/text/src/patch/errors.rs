//! The syntax errors of patches. Each error has a code and the expected syntax, so no caller needs to parse a message.

use super::envelope::{BEGIN, END};

/// The error for a patch that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct PatchParseError {
    /// The 1-based line of the patch that has the syntax error.
    pub line: usize,
    pub fault: PatchParseErrorKind,
}

/// The kind of syntax error of a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchParseErrorKind {
    #[error("the first line of a patch must be {BEGIN:?}")]
    MissingBegin,
    #[error("text before {BEGIN:?} is not allowed")]
    TextBeforeBegin,
    #[error("the last line of a patch must be {END:?}")]
    MissingEnd,
    #[error("text after {END:?} is not allowed")]
    TextAfterEnd,
    #[error("the patch changes no file")]
    NoSections,
    #[error("{0:?} is not a header; write *** Add File:, *** Update File:, *** Delete File: or *** Move File:")]
    UnknownHeader(String),
    #[error("the header has no path")]
    MissingPath(String),
    #[error("write a move as *** Move File: old -> new")]
    MissingArrow(String),
    #[error("the update has no chunk")]
    MissingChunks,
    #[error("no lines follow @@")]
    EmptyChunk,
    #[error("{0:?} is not the start of a chunk; write @@ before it")]
    NotChunkHeader(String),
    #[error("{0:?} does not start with +; every line of a new file must")]
    NotAddLine(String),
    #[error("*** Environment ID: must be given once, with a name")]
    InvalidEnvironment,
    #[error("the heredoc around the patch is not closed as it was opened")]
    MalformedWrapper,
    #[error("{0:?} is not a hunk header")]
    NotHunkHeader(String),
    /// A unified diff requests a change that a text patch cannot make, such as a binary change.
    #[error("{0:?} is not supported in a patch")]
    Unsupported(String),
}

impl PatchParseErrorKind {
    /// Returns the stable code of the syntax error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingBegin => "no_begin",
            Self::TextBeforeBegin => "before_begin",
            Self::MissingEnd => "no_end",
            Self::TextAfterEnd => "after_end",
            Self::NoSections => "no_sections",
            Self::UnknownHeader(_) => "unknown_header",
            Self::MissingPath(_) => "no_path",
            Self::MissingArrow(_) => "no_arrow",
            Self::MissingChunks => "no_chunk",
            Self::EmptyChunk => "empty_chunk",
            Self::NotChunkHeader(_) => "not_chunk_header",
            Self::NotAddLine(_) => "not_add_line",
            Self::InvalidEnvironment => "environment",
            Self::MalformedWrapper => "wrapper",
            Self::NotHunkHeader(_) => "not_hunk_header",
            Self::Unsupported(_) => "unsupported",
        }
    }

    /// Returns the patch syntax that the parser expected instead of the erroneous line.
    pub fn expected(&self) -> &'static str {
        match self {
            Self::MissingBegin | Self::TextBeforeBegin | Self::MalformedWrapper => BEGIN,
            Self::MissingEnd => END,
            Self::TextAfterEnd => "(end of input)",
            Self::NoSections | Self::UnknownHeader(_) => "*** Add/Update/Delete/Move File",
            Self::MissingPath(_) => "a path",
            Self::MissingArrow(_) => "*** Move File: <from> -> <to>",
            Self::MissingChunks | Self::NotChunkHeader(_) => "@@",
            Self::EmptyChunk => "\" \"/\"-\"/\"+\" content",
            Self::NotAddLine(_) => "\"+<content>\"",
            Self::InvalidEnvironment => "*** Environment ID: <name>",
            Self::NotHunkHeader(_) => "@@ -<line>,<count> +<line>,<count> @@",
            Self::Unsupported(_) => "a hunk",
        }
    }

    /// Returns the text of the erroneous line, if the error quotes the line.
    pub fn got(&self) -> Option<&str> {
        if let Self::UnknownHeader(got)
        | Self::MissingPath(got)
        | Self::MissingArrow(got)
        | Self::NotChunkHeader(got)
        | Self::NotAddLine(got)
        | Self::NotHunkHeader(got)
        | Self::Unsupported(got) = self
        {
            return Some(got);
        }
        None
    }

    pub(super) fn at_line(self, line: usize) -> PatchParseError {
        PatchParseError { line, fault: self }
    }
}
