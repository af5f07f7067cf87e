//! The interface between the engine and a search index. The interface defines text files, trigrams, the trigrams that a
//! pattern requires, and the files that a walk visits. With an index that follows the definitions of the interface, a
//! search finds the same hits as without an index.

mod required_trigrams;

use std::{borrow::Cow, sync::Arc};

pub use required_trigrams::RequiredTrigrams;
use stead_path::{FileName, RelPath};
use stead_text::encoding::{decode_detected, starts_like_binary};

use crate::{
    limits::INDEXED_LINE_BYTES_MAX,
    ops::walk::{IgnoreRules, is_included},
    plan::FileKind,
    tree::{DirectoryEntry, FileStamp},
};

/// The format version of the trigram index, which must increase when text detection or trigram extraction changes.
/// Indexes with an older format version are ignored.
pub const INDEX_FORMAT_VERSION: u32 = 1;

/// The text of a file as a search reads it; `None` if the file is binary.
#[must_use]
pub fn decode_indexable_text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    decode_detected(bytes)
}

/// Whether a file that starts with these bytes may be a text file; if so, the rest of the file must be read to decide.
#[must_use]
pub fn may_be_text(first: &[u8]) -> bool {
    !starts_like_binary(first)
}

/// Whether the index may exclude a text from a search; a text with a very long line may not be excluded.
#[must_use]
pub fn is_indexable(text: &str) -> bool {
    text.split('\n').all(|line| line.len() < INDEXED_LINE_BYTES_MAX)
}

/// The reason for which the search index lets a search skip a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexBasedFileSkipReason {
    /// The file is a text file that cannot match the search pattern, so a search skips it.
    TextWithoutMatch {
        bytes: u64,
    },
    Binary,
}

/// The search index of a workspace.
pub trait FileSearchIndex {
    /// Returns an index filter with which a search skips files that lack the required trigrams. The filter is `None` if
    /// the index is missing or cannot exclude any file.
    fn filter(&self, need: &RequiredTrigrams) -> Option<Box<dyn IndexBasedSearchFilter + '_>>;

    /// The files below a directory that may match a search. The caller of a search by index must have full read access,
    /// because the search index checks no access. The result is `None` if the search index may be incomplete or a walk
    /// would be faster.
    fn walk(&self, start: &RelPath, need: &RequiredTrigrams) -> Option<IndexedSearchCandidates>;

    /// Reports the number of files that a search read, so that the workspace can decide to build an index.
    fn report_files_searched(&self, files: u64);
}

/// A filter that uses the index to exclude files from a search for one pattern.
pub trait IndexBasedSearchFilter: Send + Sync {
    /// Returns an index filter for the files of one directory; `None` if the index contains no file of the directory.
    fn directory_index(&self, directory: &RelPath) -> Option<Box<dyn IndexBasedFileFilter + '_>>;
}

/// A filter that uses the index to exclude files of one directory from a search.
pub trait IndexBasedFileFilter: Send {
    /// Whether the index may contain a file with the given name. A search reads a file that is missing in the index
    /// without calling [`IndexBasedFileFilter::verdict`].
    fn may_know(&self, name: &FileName) -> bool;

    /// Returns the reason to skip the file with the given name and stamp; `None` if a search must read the file.
    fn verdict(&self, name: &FileName, stamp: &FileStamp) -> Option<IndexBasedFileSkipReason>;
}

/// The files below a directory that a search must read according to a live index, and the numbers of skipped files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexedSearchCandidates {
    /// The paths of the files that the search must read, in any order.
    pub candidates: Vec<RelPath>,
    /// The number of text files that cannot match the search pattern.
    pub text_files: u64,
    /// The total size in bytes of the text files that cannot match the search pattern.
    pub bytes: u64,
    pub binary_files: u64,
    /// The number of directory entries that ignore files or a leading dot exclude from the search.
    pub ignored: u64,
    pub unlistable_directories: u64,
}

/// The ignore rules of a directory and its parents, with which an index includes the same files as a walk.
#[derive(Debug, Clone, Default)]
pub struct IndexIgnoreRules(Arc<IgnoreRules>);

impl IndexIgnoreRules {
    /// Returns the ignore rules of a subdirectory together with the rules of its parent directories. The argument
    /// `listed` has the entries of the subdirectory in byte order, and `read` reads an ignore file.
    #[must_use]
    pub fn enter_directory(
        &self,
        directory: &RelPath,
        listed: &[DirectoryEntry],
        read: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
    ) -> Self {
        Self(Arc::clone(&self.0).enter_directory(read, directory, listed))
    }

    /// Whether the ignore rules let a walk include the entry with this path, name and kind.
    #[must_use]
    pub fn includes(&self, path: &RelPath, name: &FileName, kind: FileKind) -> bool {
        is_included(&self.0, path, name, kind)
    }
}

/// A trigram: three consecutive bytes of a line, as a number whose most significant byte is the first byte. ASCII
/// letters of trigrams are in lower case, so that one index serves case-sensitive and case-insensitive searches.
pub type Trigram = u32;

const TRIGRAM_COUNT: usize = 1 << 24;
const WORD_BITS: usize = 64;

/// An extractor of the distinct trigrams of texts; one extractor serves many texts, because its bit set is large.
pub struct TrigramExtractor {
    seen: Vec<u64>,
    found: Vec<Trigram>,
}

impl Default for TrigramExtractor {
    fn default() -> Self {
        Self { seen: vec![0; TRIGRAM_COUNT / WORD_BITS], found: Vec::new() }
    }
}

impl TrigramExtractor {
    /// The distinct trigrams of a text, in order of first occurrence.
    pub fn extract(&mut self, text: &str) -> &[Trigram] {
        for gram in self.found.drain(..) {
            self.seen[gram as usize / WORD_BITS] = 0;
        }
        let (seen, found) = (&mut self.seen, &mut self.found);
        for_each_trigram(text.as_bytes(), |gram| {
            let (word, bit) = (gram as usize / WORD_BITS, 1_u64 << (gram as usize % WORD_BITS));
            if seen[word] & bit == 0 {
                seen[word] |= bit;
                found.push(gram);
            }
        });
        &self.found
    }
}

fn for_each_trigram(bytes: &[u8], mut visit: impl FnMut(Trigram)) {
    let (mut run, mut length) = (0_u32, 0_u8);
    for byte in bytes {
        if *byte == b'\n' {
            length = 0;
            continue;
        }
        run = (run << 8 | u32::from(byte.to_ascii_lowercase())) & 0xff_ffff;
        length = (length + 1).min(3);
        if length == 3 {
            visit(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigrams_as_text(text: &str) -> Vec<String> {
        let mut grams = TrigramExtractor::default();
        // The trigrams of the previous text must not appear in the result for the next text.
        grams.extract("abcdef unrelated\n");
        let show = |gram: &Trigram| String::from_utf8_lossy(&gram.to_be_bytes()[1..]).into_owned();
        grams.extract(text).iter().map(show).collect()
    }

    #[test]
    fn trigrams_are_distinct_and_do_not_cross_lines() {
        assert_eq!(trigrams_as_text("aBcab\ncabc\r\n\nab"), ["abc", "bca", "cab", "bc\r"]);
        assert_eq!(trigrams_as_text("ab"), Vec::<String>::new());
        assert_eq!(trigrams_as_text("é1"), ["é1"]);
    }
}
