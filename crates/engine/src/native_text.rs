//! The text of typed results, for models and people. The text is rendered from the same value as the object for
//! programs and states nothing that the value does not contain.

mod alerts;
mod copy;
mod lock;
mod moved_files;
pub(crate) mod usage;

use stead_text::visible::{escape_deceptive, escape_deceptive_line};

use crate::call_notation::CallNotation;

/// A result that can be rendered as text.
pub(crate) trait NativeText {
    /// The text, in which characters that could deceive a reader are escaped. Calls that the text suggests are written
    /// in the given notation.
    fn native_text(&self, notation: CallNotation) -> String;
}

/// Escapes control characters in a text of several lines, because file names may contain any character.
fn escape_lines(text: impl AsRef<str>) -> String {
    escape_deceptive(text.as_ref()).into_owned()
}

/// Escapes control characters and line breaks in a text of one line.
fn escape_one_line(text: impl AsRef<str>) -> String {
    escape_deceptive_line(text.as_ref()).into_owned()
}
