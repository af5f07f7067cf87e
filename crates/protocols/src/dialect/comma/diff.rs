//! Diffs in the document's form, from the bytes in an outcome.

use std::borrow::Cow;

use stead_engine::{BeforeAfterBytes, CallOutcome};
use stead_text::unified::jsdiff;

pub(super) fn first_before_after(outcome: &CallOutcome) -> Option<&BeforeAfterBytes> {
    outcome.before_after.first()
}

pub(super) fn diff_exact(name: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    jsdiff::jsdiff_patch(name, &lossy_text(before), &lossy_text(after))
}

/// The diff of two texts without CRLF and byte order mark.
pub(super) fn diff_normalized(name: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    jsdiff::jsdiff_patch(name, &normalize_text(&lossy_text(before)), &normalize_text(&lossy_text(after)))
}

/// Replaces CRLF by LF and removes the byte order mark.
pub(super) fn normalize_text(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

fn lossy_text(bytes: Option<&[u8]>) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.unwrap_or_default())
}
