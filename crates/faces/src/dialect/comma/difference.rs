//! Diffs as the document shows them, from the bytes that a call brought along.

use std::borrow::Cow;

use engine::{Answer, Held};
use text::unified::jsdiff;

/// The bytes of a file before and after the first change of an answer.
pub(super) fn held(answer: &Answer) -> Option<&Held> {
    answer.evidence.first()
}

/// The diff of two states as they are.
pub(super) fn exact(name: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    jsdiff::patch(name, &text_of(before), &text_of(after))
}

/// The diff of two states without their line endings and marks.
pub(super) fn plain(name: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    jsdiff::patch(name, &plain_text(&text_of(before)), &plain_text(&text_of(after)))
}

/// A text with LF for CRLF and without the mark.
pub(super) fn plain_text(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

fn text_of(bytes: Option<&[u8]>) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.unwrap_or_default())
}
