//! Patches: many changes to many files in one text.
//!
//! Owns two written forms, the envelope `*** Begin Patch … *** End Patch` in both of its published grammars and the
//! unified diff, and how their chunks are applied to a text ([`apply()`]). How much is forgiven in writing is one value,
//! [`Grammar`], and how much in finding another, [`Rules`]; the code is the same for all of them. Promises that parsing
//! and applying end in bounded time and never panic, that bytes outside the changed lines stay as they are, and that
//! every error names a line of the patch. Never touches a file and never guesses between two places.

mod again;
mod anchor;
mod apply;
mod chunk;
mod diff_form;
mod envelope;
mod fault;
mod find;
mod index;
mod rescue;
mod splice;
mod wrapper;

pub use again::standing;
pub use apply::{
    Applied, ApplyError, FinalNewline, Ground, Insertion, Matched, Reason, Repeats, Rules, Sequence, apply,
};
pub use fault::{Fault, ParseError};
pub use rescue::{Rescue, Slips};
pub use splice::Ending;

/// Whether a way of writing is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Leave {
    /// It is read as what it means.
    Given,
    /// It is an error.
    Refused,
}

/// What the text behind `@@` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Headings {
    /// A line that must be found before the chunk; it narrows the search.
    Anchors,
    /// A remark.
    Remarks,
}

/// How strictly a patch is read. Chosen by the caller; every combination works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grammar {
    /// Space around markers.
    pub padding: Leave,
    /// A heredoc or a code fence around the whole.
    pub wrapper: Leave,
    /// No `*** End Patch`.
    pub open_end: Leave,
    /// A first chunk without `@@`.
    pub bare_chunk: Leave,
    /// A line of a chunk that starts with none of the three signs.
    pub bare_line: Leave,
    /// `*** Move to:`.
    pub move_to: Leave,
    /// `*** End of File`.
    pub end_of_file: Leave,
    /// `*** Environment ID:` in front.
    pub environment: Leave,
    /// A unified diff instead of the envelope.
    pub unified: Leave,
    /// What the text behind `@@` is.
    pub headings: Headings,
}

impl Grammar {
    /// Everything that has one meaning is accepted.
    pub const TOLERANT: Self = Self {
        padding: Leave::Given,
        wrapper: Leave::Given,
        open_end: Leave::Given,
        bare_chunk: Leave::Given,
        bare_line: Leave::Given,
        move_to: Leave::Given,
        end_of_file: Leave::Given,
        environment: Leave::Given,
        unified: Leave::Given,
        headings: Headings::Anchors,
    };

    /// The envelope to the letter, with either way to write a move and an end of file.
    pub const STRICT: Self = Self { move_to: Leave::Given, end_of_file: Leave::Given, ..Self::EXACT };

    /// The envelope to the letter: one way to write each thing.
    pub const EXACT: Self = Self {
        padding: Leave::Refused,
        wrapper: Leave::Refused,
        open_end: Leave::Refused,
        bare_chunk: Leave::Refused,
        bare_line: Leave::Refused,
        move_to: Leave::Refused,
        end_of_file: Leave::Refused,
        environment: Leave::Refused,
        unified: Leave::Refused,
        headings: Headings::Remarks,
    };
}

/// A patch, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// What happens to each file, in the order written. Never empty.
    pub sections: Vec<Section>,
}

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The 1-based line of the patch that starts it.
    pub line: usize,
    /// What happens.
    pub action: Action,
}

/// What happens to one file. Paths are as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A new file.
    Add {
        /// Where.
        path: String,
        /// Its whole content.
        content: String,
    },
    /// A file changes.
    Update {
        /// Which.
        path: String,
        /// Its changes; never empty.
        chunks: Vec<Chunk>,
    },
    /// A file goes.
    Delete {
        /// Which.
        path: String,
        /// What it is said to hold, in a unified diff; may be empty.
        chunks: Vec<Chunk>,
    },
    /// A file gets another name, and may change.
    Move {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
        /// Its changes; may be empty.
        chunks: Vec<Chunk>,
    },
}

/// Lines that stand together in a file, and what becomes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The 1-based line of the patch that starts it.
    pub line: usize,
    /// Lines to be found first, outermost first.
    pub anchors: Vec<String>,
    /// The line of the file where a unified diff says it is, 1-based, counted by `\n`.
    pub near: Option<Near>,
    /// Whether it is said to stand at the end of the file.
    pub end: End,
    /// The lines; never empty.
    pub lines: Vec<Line>,
}

/// Where a unified diff says a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Near {
    /// The number written: the first line, or, for a chunk without old lines, the line before it.
    pub start: usize,
}

/// Whether a chunk is said to stand at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing is said.
    Anywhere,
    /// It is.
    OfFile,
}

/// One line of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What becomes of it.
    pub side: Side,
    /// The text, without the sign and without the line's end.
    pub text: String,
    /// Whether a newline ends it.
    pub newline: Newline,
}

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// It is there and stays.
    Keep,
    /// It is there and goes.
    Remove,
    /// It comes.
    Add,
    /// Written without a sign: a line that stays, or, between lines that come, one that comes.
    Bare,
}

/// Whether a newline ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Newline {
    /// Nothing is said.
    Unsaid,
    /// `\ No newline at end of file` stands behind it.
    Missing,
}

impl Chunk {
    /// Whether it quotes nothing that is there.
    #[must_use]
    pub fn only_adds(&self) -> bool {
        self.lines.iter().all(|line| line.side == Side::Add)
    }
}

/// Takes a patch apart.
///
/// # Errors
///
/// [`ParseError`] with the line that cannot be read and what was expected there.
pub fn parse(text: &str, grammar: Grammar) -> Result<Patch, ParseError> {
    let lines = wrapper::lines(text, grammar)?;
    let sections = match envelope::begin(&lines, grammar) {
        Ok(first) => envelope::sections(&lines, first, grammar)?,
        Err(_) if grammar.unified == Leave::Given && diff_form::looks_like_one(&lines) => {
            diff_form::sections(&lines)?
        }
        Err(fault) => return Err(fault),
    };
    Ok(Patch { sections })
}

/// One line of the patch text.
#[derive(Debug, Clone, Copy)]
struct Written<'a> {
    number: usize,
    text: &'a str,
}
