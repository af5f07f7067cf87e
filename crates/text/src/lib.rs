//! Text processing that does no input or output.
//!
//! This crate owns encodings, lines, diffs, edits, patches, three-way merging, ranking of search hits and safe display.
//! Functions of this crate keep bytes outside a requested change as they are. The crate does not read files or a clock;
//! callers pass in texts and file names.

pub mod diff;
pub mod edit;
pub mod encoding;
pub mod lines;
pub mod locate;
pub mod merge;
pub mod patch;
pub mod rank;
pub mod unified;
pub mod visible;

/// Whether `word` is one of the blank-separated words of `list`.
pub(crate) fn is_listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}
