//! What a search index must know of the engine: what counts as text and what a text is made of, what a pattern needs of
//! a file, which places a walk takes. An index that rests on these gives the same answers as a look into every file.
//!
//! Pure: it is given bytes and patterns, and keeps nothing.

mod grams;
mod ignored;
mod need;

use std::borrow::Cow;

use text::encoding::{Detected, begins_binary, decode, detect};

pub use grams::{Gram, Grams};
pub use ignored::Ignored;
pub use need::Need;

/// Changes whenever the same bytes count otherwise, or have other grams: an index made under another number is not used.
pub const MEANING: u32 = 1;

/// The text of a file as a search reads it; nothing when it is no text.
#[must_use]
pub fn text_of(bytes: &[u8]) -> Option<Cow<'_, str>> {
    match detect(bytes) {
        Detected::Text { encoding } => decode(bytes, encoding).ok(),
        Detected::Binary => None,
    }
}

/// Whether the rest of a file that begins like this is worth reading: without it the file is known to be no text.
#[must_use]
pub fn goes_on(first: &[u8]) -> bool {
    !begins_binary(first)
}

/// A text with a longer line is looked into every time: a search may have no time for such a line, and then says so.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 10;

/// Whether a text can be ruled out by what it holds.
#[must_use]
pub fn can_be_ruled_out(text: &str) -> bool {
    text.split('\n').all(|line| line.len() < LINE_BYTES_MAX)
}

/// What is known of a file that was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// A text of so many bytes, in which nothing can match.
    Text {
        /// Bytes of the file.
        bytes: u64,
    },
    /// No text.
    Binary,
}

/// What an index says about files while one pattern is looked for.
pub trait Sieve: Send + Sync {
    /// What it says about the files of one directory; nothing when it knows none of them.
    fn shelf(&self, directory: &path::RelPath) -> Option<Box<dyn Shelf + '_>>;
}

/// What an index says about the files of one directory.
pub trait Shelf: Send {
    /// Whether asking about a name can be of use.
    fn has(&self, name: &path::Name) -> bool;

    /// What is known of a file that has this stamp now; nothing when it must be looked into.
    fn known(&self, name: &path::Name, stamp: &crate::Stamp) -> Option<Known>;
}

/// Everything a walk of plain names would have met below a place, by an index that is told of every change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Files that must be looked into, in any order.
    pub candidates: Vec<path::RelPath>,
    /// Texts among the others.
    pub texts: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Files among the others that are no text.
    pub binary: u64,
    /// Entries left out by ignore files or for their leading dot.
    pub ignored: u64,
    /// Directories that could not be listed.
    pub closed: u64,
}
