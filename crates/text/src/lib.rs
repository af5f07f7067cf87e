//! Pure text: what bytes say and how two texts differ.
//!
//! Owns encodings ([`encoding`]), lines and their endings ([`lines`]), line differences ([`diff`], [`unified`]),
//! three-way merging ([`merge`]), what counts among many hits ([`rank`]) and safe display ([`visible`]). Promises that
//! bytes nobody asked to change stay as they are: nothing here repairs, normalises or replaces in silence. Never does
//! input or output, never reads a clock, and knows of files no more than the name it is told.

pub mod diff;
pub mod edit;
pub mod encoding;
pub mod endings;
pub mod lines;
pub mod locate;
pub mod merge;
pub mod patch;
mod proof;
pub mod rank;
pub mod unified;
pub mod visible;
