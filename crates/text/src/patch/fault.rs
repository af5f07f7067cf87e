//! What is wrong with a patch that cannot be read. Owns the closed list of faults, each with what was expected; nobody
//! needs to read a message to know which one it is.

use super::envelope::{BEGIN, END};

/// A patch that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct ParseError {
    /// The 1-based line of the patch.
    pub line: usize,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The patch has no beginning.
    #[error("the first line of a patch is {BEGIN:?}")]
    NoBegin,
    /// Something stands before the beginning.
    #[error("something stands before {BEGIN:?}")]
    BeforeBegin,
    /// The patch has no end.
    #[error("the last line of a patch is {END:?}")]
    NoEnd,
    /// Something stands behind the end.
    #[error("something stands behind {END:?}")]
    AfterEnd,
    /// No file is named.
    #[error("the patch changes no file")]
    NoSections,
    /// A section starts with something else than a header.
    #[error(
        "{got:?} is not a header; write *** Add File:, *** Update File:, *** Delete File: or *** Move File:"
    )]
    UnknownHeader {
        /// The line.
        got: String,
    },
    /// A header names no path.
    #[error("the header names no file")]
    NoPath {
        /// The line.
        got: String,
    },
    /// A move does not say where to.
    #[error("a move is written *** Move File: old -> new")]
    NoArrow {
        /// The line.
        got: String,
    },
    /// A file is to be changed and no change follows.
    #[error("no chunk follows the header of a file to be changed")]
    NoChunk,
    /// A chunk holds nothing.
    #[error("no lines follow @@")]
    EmptyChunk,
    /// A chunk must start and does not.
    #[error("{got:?} is not the start of a chunk; write @@ before it")]
    NotChunkHeader {
        /// The line.
        got: String,
    },
    /// A line of a new file does not start with a plus.
    #[error("{got:?} does not start with +, as the lines of a new file do")]
    NotAddLine {
        /// The line.
        got: String,
    },
    /// The name of the environment is missing or given twice.
    #[error("*** Environment ID: stands once, with a name")]
    Environment,
    /// A heredoc around the patch is not closed as it was opened.
    #[error("the heredoc around the patch is not closed as it was opened")]
    Wrapper,
    /// The numbers of a hunk cannot be read.
    #[error("{got:?} is not the header of a hunk")]
    NotHunkHeader {
        /// The line.
        got: String,
    },
    /// A unified diff asks for something that cannot be done from text.
    #[error("{got:?} cannot be applied from a text")]
    Unsupported {
        /// The line.
        got: String,
    },
}

impl Fault {
    /// The word that machines compare.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoBegin => "no_begin",
            Self::BeforeBegin => "before_begin",
            Self::NoEnd => "no_end",
            Self::AfterEnd => "after_end",
            Self::NoSections => "no_sections",
            Self::UnknownHeader { .. } => "unknown_header",
            Self::NoPath { .. } => "no_path",
            Self::NoArrow { .. } => "no_arrow",
            Self::NoChunk => "no_chunk",
            Self::EmptyChunk => "empty_chunk",
            Self::NotChunkHeader { .. } => "not_chunk_header",
            Self::NotAddLine { .. } => "not_add_line",
            Self::Environment => "environment",
            Self::Wrapper => "wrapper",
            Self::NotHunkHeader { .. } => "not_hunk_header",
            Self::Unsupported { .. } => "unsupported",
        }
    }

    /// What the grammar has at that place.
    #[must_use]
    pub fn expected(&self) -> &'static str {
        match self {
            Self::NoBegin | Self::BeforeBegin | Self::Wrapper => BEGIN,
            Self::NoEnd => END,
            Self::AfterEnd => "(end of input)",
            Self::NoSections | Self::UnknownHeader { .. } => "*** Add/Update/Delete/Move File",
            Self::NoPath { .. } => "a path",
            Self::NoArrow { .. } => "*** Move File: <from> -> <to>",
            Self::NoChunk | Self::NotChunkHeader { .. } => "@@",
            Self::EmptyChunk => "\" \"/\"-\"/\"+\" content",
            Self::NotAddLine { .. } => "\"+<content>\"",
            Self::Environment => "*** Environment ID: <name>",
            Self::NotHunkHeader { .. } => "@@ -<line>,<count> +<line>,<count> @@",
            Self::Unsupported { .. } => "a hunk",
        }
    }

    /// The line as written, where it matters.
    #[must_use]
    pub fn got(&self) -> Option<&str> {
        match self {
            Self::UnknownHeader { got }
            | Self::NoPath { got }
            | Self::NoArrow { got }
            | Self::NotChunkHeader { got }
            | Self::NotAddLine { got }
            | Self::NotHunkHeader { got }
            | Self::Unsupported { got } => Some(got),
            Self::NoBegin
            | Self::BeforeBegin
            | Self::NoEnd
            | Self::AfterEnd
            | Self::NoSections
            | Self::NoChunk
            | Self::EmptyChunk
            | Self::Environment
            | Self::Wrapper => None,
        }
    }

    /// The fault at a line.
    pub(super) fn at(self, line: usize) -> ParseError {
        ParseError { line, fault: self }
    }
}
