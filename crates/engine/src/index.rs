//! The contract between the engine and a search index: text detection, trigrams of a text, trigrams required by a
//! pattern, and the files of a walk. An index built on it gives the same results as reading every file.
//!
//! Pure: works on bytes and patterns and stores nothing.

mod ignore_rules;
mod required_trigrams;
mod trigrams;

use std::borrow::Cow;

use stead_text::encoding::{DetectedContent, decode, detect_content, starts_like_binary};

pub use ignore_rules::IndexIgnoreRules;
pub use required_trigrams::RequiredTrigrams;
pub use trigrams::{Trigram, TrigramExtractor};

/// Format version of the trigram index. Increase it when text detection or trigram extraction changes; older indexes
/// are then ignored.
pub const INDEX_FORMAT_VERSION: u32 = 1;

/// The text of a file as a search reads it; `None` if it is binary.
#[must_use]
pub fn decode_indexable_text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    match detect_content(bytes) {
        DetectedContent::Text { encoding } => decode(bytes, encoding).ok(),
        DetectedContent::Binary => None,
    }
}

/// Whether the rest of a file that starts with these bytes must be read to know if it is text.
#[must_use]
pub fn may_be_text(first: &[u8]) -> bool {
    !starts_like_binary(first)
}

/// A text with a longer line is never excluded by the index: a search may skip such a line and must report it.
pub(crate) const INDEXED_LINE_BYTES_MAX: usize = 16 << 10;

/// Whether the index may exclude a text.
#[must_use]
pub fn is_indexable(text: &str) -> bool {
    text.split('\n').all(|line| line.len() < INDEXED_LINE_BYTES_MAX)
}

/// The index's knowledge of a file that was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexVerdict {
    /// A text file without a match.
    TextWithoutMatch {
        /// Size of the file.
        bytes: u64,
    },
    /// A binary file.
    Binary,
}

/// The index's knowledge of files, for one pattern.
pub trait IndexFilter: Send + Sync {
    /// The files of one directory; `None` if the index has none of them.
    fn directory_index(&self, directory: &stead_path::RelPath) -> Option<Box<dyn DirectoryIndex + '_>>;
}

/// The index's knowledge of the files in one directory.
pub trait DirectoryIndex: Send {
    /// Whether the index may know a name.
    fn may_know(&self, name: &stead_path::FileName) -> bool;

    /// The verdict on a file with this identity; `None` if the file must be read.
    fn verdict(&self, name: &stead_path::FileName, stamp: &crate::FileIdentity) -> Option<IndexVerdict>;
}

/// The result of a walk below a path, by an index that receives every change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexedWalk {
    /// Files that must be read, in any order.
    pub candidates: Vec<stead_path::RelPath>,
    /// Number of other text files.
    pub text_files: u64,
    /// Total size of the other text files.
    pub bytes: u64,
    /// Number of other binary files.
    pub binary_files: u64,
    /// Entries omitted because of ignore files or a leading dot.
    pub ignored: u64,
    /// Directories that could not be listed.
    pub unlistable_directories: u64,
}
