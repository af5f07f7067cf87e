//! Converts between the text of an editor and the bytes of a file, and applies the incremental changes of an editor.
//! The text of an editor may have other line endings and another encoding than the file.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use stead_text::lines;

use crate::{
    buffers::EditorSentTextLineEndings,
    errors::{Error, ErrorKind},
    limits,
    ops::{decode_diff_text, encode_like},
};

pub(super) fn encode_editor_text(
    text: &str,
    saved: Option<&[u8]>,
) -> Result<(Vec<u8>, EditorSentTextLineEndings), Error> {
    let Some(saved) = saved else {
        return check_buffer_size(text.as_bytes().to_vec()).map(|bytes| (bytes, EditorSentTextLineEndings::SameAsFile));
    };
    let before = decode_diff_text(saved).ok_or_else(|| {
        Error::new(ErrorKind::NotText, "the file on disk is not text, so it cannot be opened as a buffer")
            .with_next_step("edit this file without a buffer: write its bytes with encoding base64")
    })?;
    let endings = lines::count_endings(before.as_bytes());
    // If the file uses only CRLF and the text has no carriage return, then the editor removed the carriage returns.
    let stripped = endings.crlf > 0 && endings.lf == 0 && !text.contains('\r') && text.contains('\n');
    let (text, line_endings) = if stripped {
        (text.replace('\n', "\r\n"), EditorSentTextLineEndings::LfOnly)
    } else {
        (text.to_owned(), EditorSentTextLineEndings::SameAsFile)
    };
    Ok((check_buffer_size(encode_like(&text, saved)?)?, line_endings))
}

fn check_buffer_size(bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    if bytes.len() as u64 <= limits::BUFFER_BYTES_MAX {
        return Ok(bytes);
    }
    Err(Error::new(
        ErrorKind::TooLarge,
        format!("the buffer has {} bytes; the limit is {}", bytes.len(), limits::BUFFER_BYTES_MAX),
    )
    .with_next_step("save the text with the editor; agents then read the file")
    .with_limit_bytes(limits::BUFFER_BYTES_MAX))
}

pub(super) fn conflict_lines<'r>(ranges: impl Iterator<Item = &'r Range<usize>>) -> Vec<[usize; 2]> {
    let lines = |range: &Range<usize>| [range.start + 1, range.end.max(range.start + 1)];
    ranges.take(limits::ERROR_LOCATIONS_MAX).map(lines).collect()
}

pub(super) fn decode_for_editor(bytes: &[u8], endings: EditorSentTextLineEndings) -> Result<String, Error> {
    let text = decode_diff_text(bytes).ok_or_else(|| {
        Error::new(ErrorKind::NotText, "the stored bytes of the buffer are not text")
            .with_next_step("close the buffer and open the file again")
    })?;
    Ok(match endings {
        EditorSentTextLineEndings::SameAsFile => text.into_owned(),
        EditorSentTextLineEndings::LfOnly => text.replace("\r\n", "\n"),
    })
}

/// A range of a buffer's text and its replacement, like a text edit of the Language Server Protocol. The lines and
/// columns of a text edit are counted from 1, and columns count characters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferTextEdit {
    pub from: [usize; 2],
    /// The line and column before which the replaced range ends; `from` and `to` are equal for an insertion.
    pub to: [usize; 2],
    pub text: String,
}

pub(super) fn apply_text_edits(text: &str, edits: &[BufferTextEdit]) -> Result<String, Error> {
    if edits.len() > limits::EDITS_MAX {
        return Err(Error::new(
            ErrorKind::TooMany,
            format!("{} edits exceed the limit of {} per call", edits.len(), limits::EDITS_MAX),
        )
        .with_next_step("send the whole text instead of edits"));
    }
    edits.iter().enumerate().try_fold(text.to_owned(), |text, (index, edit)| {
        let (from, to) = (byte_offset(&text, edit.from, index)?, byte_offset(&text, edit.to, index)?);
        if from > to {
            return Err(outside_text_error(index, "its end is before its start"));
        }
        Ok(format!("{}{}{}", &text[..from], edit.text, &text[to..]))
    })
}

/// In a position of a text edit, the line number after the last line means the end of the text.
fn byte_offset(text: &str, [line, column]: [usize; 2], index: usize) -> Result<usize, Error> {
    let mut start = 0;
    for (number, content) in lines::iter(text).enumerate() {
        if number + 1 == line {
            return column_offset(content, column)
                .map(|at| start + at)
                .ok_or_else(|| outside_text_error(index, "the line has no such column"));
        }
        start += content.len();
    }
    let last = lines::count_lines(text.as_bytes());
    let ends_inside_line = !text.is_empty() && !text.ends_with('\n');
    if column == 1 && line == last + 1 && !ends_inside_line {
        return Ok(text.len());
    }
    Err(outside_text_error(index, "the text has no such line"))
}

/// Returns the byte offset of a column; the column after the last character is also valid.
fn column_offset(content: &str, column: usize) -> Option<usize> {
    let body = content.trim_end_matches('\n').trim_end_matches('\r');
    let mut offsets = body.char_indices().map(|(at, _)| at).chain([body.len()]);
    offsets.nth(column.checked_sub(1)?)
}

fn outside_text_error(index: usize, reason: &str) -> Error {
    Error::new(ErrorKind::BadRequest, format!("edit {index}: {reason}"))
        .with_next_step("lines and columns count from 1, columns in characters; or send the whole text")
        .with_edit(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editor_text_round_trips_through_file_format() {
        for (text, saved, expected, endings) in [
            ("a\nb\n", &b"x\r\ny\r\n"[..], &b"a\r\nb\r\n"[..], EditorSentTextLineEndings::LfOnly),
            ("a\r\nb\n", b"x\r\ny\r\n", b"a\r\nb\n", EditorSentTextLineEndings::SameAsFile),
            ("a\nb\n", b"x\r\ny\n", b"a\nb\n", EditorSentTextLineEndings::SameAsFile),
            ("a", b"x\r\n", b"a", EditorSentTextLineEndings::SameAsFile),
            ("\u{e9}\n", b"\xff\xfea\0", b"\xff\xfe\xe9\0\n\0", EditorSentTextLineEndings::SameAsFile),
        ] {
            let (bytes, found) = encode_editor_text(text, Some(saved)).unwrap();
            assert_eq!((bytes.as_slice(), found), (expected, endings), "{text:?}");
            assert_eq!(decode_for_editor(&bytes, found).unwrap().trim_start_matches('\u{feff}'), text);
        }
        assert_eq!(encode_editor_text("a\n", Some(b"\0\x01")).unwrap_err().kind, ErrorKind::NotText);
    }

    fn text_edit(from: [usize; 2], to: [usize; 2], text: &str) -> BufferTextEdit {
        BufferTextEdit { from, to, text: text.to_owned() }
    }

    #[test]
    fn text_edits_apply_in_sequence() {
        for (text, edits, expected) in [
            ("", vec![text_edit([1, 1], [1, 1], "a\n")], "a\n"),
            ("ab\n", vec![text_edit([1, 3], [1, 3], "c")], "abc\n"),
            ("ab\n", vec![text_edit([2, 1], [2, 1], "c")], "ab\nc"),
            ("äöü\nx\n", vec![text_edit([1, 2], [1, 3], "o")], "äoü\nx\n"),
            ("a\nb\nc\n", vec![text_edit([1, 2], [3, 1], "")], "ac\n"),
            ("a\r\nb", vec![text_edit([1, 2], [1, 2], "x"), text_edit([2, 2], [2, 2], "y")], "ax\r\nby"),
        ] {
            assert_eq!(apply_text_edits(text, &edits).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn positions_outside_the_text_are_rejected() {
        for (text, edit) in [
            ("a\n", text_edit([3, 1], [3, 1], "x")),
            ("a\n", text_edit([1, 3], [1, 3], "x")),
            ("a", text_edit([2, 1], [2, 1], "x")),
            ("a\n", text_edit([0, 1], [1, 1], "x")),
            ("a\n", text_edit([1, 0], [1, 1], "x")),
            ("ab\n", text_edit([1, 2], [1, 1], "x")),
        ] {
            assert_eq!(
                apply_text_edits(text, std::slice::from_ref(&edit)).unwrap_err().kind,
                ErrorKind::BadRequest,
                "{edit:?}"
            );
        }
    }
}
