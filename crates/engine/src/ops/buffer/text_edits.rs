//! Incremental editor changes: replaced ranges, applied one after the other as in the Language Server Protocol. Lines
//! and columns count from 1, columns in characters. Pure.

use serde::Deserialize;
use stead_text::lines;

use crate::{
    errors::{Error, ErrorKind},
    limits,
};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BufferTextEdit {
    /// Line and column of the first replaced character.
    from: [usize; 2],
    /// Line and column after the last replaced character; equal to `from` for an insertion.
    to: [usize; 2],
    text: String,
}

/// Applies the edits in order, each to the result of the previous one.
pub(super) fn apply_text_edits(text: &str, edits: &[BufferTextEdit]) -> Result<String, Error> {
    if edits.len() > limits::EDITS_MAX {
        return Err(Error::new(ErrorKind::TooMany, format!("at most {} edits in one call", limits::EDITS_MAX))
            .with_next_step("send the whole text"));
    }
    edits.iter().enumerate().try_fold(text.to_owned(), |text, (index, one)| {
        let (from, to) = (byte_offset(&text, one.from, index)?, byte_offset(&text, one.to, index)?);
        if from > to {
            return Err(outside_text_error(index, "its end is before its start"));
        }
        Ok(format!("{}{}{}", &text[..from], one.text, &text[to..]))
    })
}

/// Byte offset of a line and column. The line after the last one means the end of the text.
fn byte_offset(text: &str, [line, column]: [usize; 2], index: usize) -> Result<usize, Error> {
    let mut start = 0;
    for (number, content) in lines::iter(text).enumerate() {
        if number + 1 == line {
            return column_offset(content, column)
                .map(|at| start + at)
                .ok_or_else(|| outside_text_error(index, "there is no such column"));
        }
        start += content.len();
    }
    let last = lines::count_lines(text.as_bytes());
    let open = !text.is_empty() && !text.ends_with('\n');
    if column == 1 && line == last + 1 && !open {
        return Ok(text.len());
    }
    Err(outside_text_error(index, "there is no such line"))
}

/// Byte offset of a column in a line; the end of the line is before its terminator.
fn column_offset(content: &str, column: usize) -> Option<usize> {
    let body = content.trim_end_matches('\n').trim_end_matches('\r');
    let mut offsets = body.char_indices().map(|(at, _)| at).chain([body.len()]);
    offsets.nth(column.checked_sub(1)?)
}

fn outside_text_error(index: usize, why: &str) -> Error {
    Error::new(ErrorKind::BadRequest, format!("edit {index}: {why}"))
        .with_next_step("lines and columns count from 1, columns in characters; or send the whole text")
        .with_detail("edit", index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_edits(from: [usize; 2], to: [usize; 2], text: &str) -> BufferTextEdit {
        BufferTextEdit { from, to, text: text.to_owned() }
    }

    #[test]
    fn text_edits_apply_in_sequence() {
        for (text, edits, expected) in [
            ("", vec![text_edits([1, 1], [1, 1], "a\n")], "a\n"),
            ("ab\n", vec![text_edits([1, 3], [1, 3], "c")], "abc\n"),
            ("ab\n", vec![text_edits([2, 1], [2, 1], "c")], "ab\nc"),
            ("äöü\nx\n", vec![text_edits([1, 2], [1, 3], "o")], "äoü\nx\n"),
            ("a\nb\nc\n", vec![text_edits([1, 2], [3, 1], "")], "ac\n"),
            ("a\r\nb", vec![text_edits([1, 2], [1, 2], "x"), text_edits([2, 2], [2, 2], "y")], "ax\r\nby"),
        ] {
            assert_eq!(apply_text_edits(text, &edits).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn positions_outside_the_text_are_rejected() {
        for (text, edit) in [
            ("a\n", text_edits([3, 1], [3, 1], "x")),
            ("a\n", text_edits([1, 3], [1, 3], "x")),
            ("a", text_edits([2, 1], [2, 1], "x")),
            ("a\n", text_edits([0, 1], [1, 1], "x")),
            ("a\n", text_edits([1, 0], [1, 1], "x")),
            ("ab\n", text_edits([1, 2], [1, 1], "x")),
        ] {
            assert_eq!(
                apply_text_edits(text, std::slice::from_ref(&edit)).unwrap_err().kind,
                ErrorKind::BadRequest,
                "{edit:?}"
            );
        }
    }
}
