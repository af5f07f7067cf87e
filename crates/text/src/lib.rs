//! Text processing that does no input or output.
//!
//! This crate owns encodings ([`encoding`]), lines and their endings ([`lines`]), line differences ([`diff`],
//! [`unified`]), three-way merging ([`merge`]), ranking of search hits ([`rank`]) and safe display ([`visible`]).
//! Functions of this crate keep bytes outside a requested change as they are: nothing is repaired, normalised or
//! replaced silently. This crate does not read files or a clock; callers pass in texts and file names.

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

/// Whether a list of words, separated by blanks, contains this word.
pub(crate) fn is_listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}
