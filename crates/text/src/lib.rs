//! Text processing without input or output.
//!
//! Owns encodings ([`encoding`]), lines and their endings ([`lines`]), line differences ([`diff`], [`unified`]),
//! three-way merging ([`merge`]), ranking of search hits ([`rank`]) and safe display ([`visible`]). Promises that
//! bytes outside a requested change stay as they are: nothing is repaired, normalised or replaced silently. Never
//! reads a file or a clock; of a file it knows only the name it is given.

pub mod diff;
mod distinctive;
pub mod edit;
pub mod encoding;
pub mod endings;
pub mod lines;
pub mod locate;
pub mod merge;
pub mod patch;
pub mod rank;
pub mod unified;
pub mod visible;
