//! What an editor typed, piece by piece: ranges of its text that are replaced, one after the other, as editors tell each
//! other. Lines and columns count from 1, columns in characters. Pure.

use serde::Deserialize;
use text::lines;

use crate::{
    failure::{Failure, Kind},
    limits,
};

/// One range that is replaced.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Typed {
    /// Line and column of the first character that goes.
    from: [usize; 2],
    /// Line and column behind the last one; where nothing goes, the same place.
    to: [usize; 2],
    text: String,
}

/// The text after all of them, each applied to what the one before it left.
pub(super) fn apply(text: &str, typed: &[Typed]) -> Result<String, Failure> {
    if typed.len() > limits::EDITS_MAX {
        return Err(Failure::new(Kind::TooMany, format!("at most {} edits in one call", limits::EDITS_MAX))
            .hint("send the whole text"));
    }
    typed.iter().enumerate().try_fold(text.to_owned(), |text, (index, one)| {
        let (from, to) = (place(&text, one.from, index)?, place(&text, one.to, index)?);
        if from > to {
            return Err(outside(index, "its end is before its start"));
        }
        Ok(format!("{}{}{}", &text[..from], one.text, &text[to..]))
    })
}

/// Where a line and column are, in bytes. One line more than there are means the end of the text.
fn place(text: &str, [line, column]: [usize; 2], index: usize) -> Result<usize, Failure> {
    let mut start = 0;
    for (number, content) in lines::iter(text).enumerate() {
        if number + 1 == line {
            return inside(content, column)
                .map(|at| start + at)
                .ok_or_else(|| outside(index, "there is no such column"));
        }
        start += content.len();
    }
    let last = lines::count(text.as_bytes());
    let open = !text.is_empty() && !text.ends_with('\n');
    if column == 1 && line == last + 1 && !open {
        return Ok(text.len());
    }
    Err(outside(index, "there is no such line"))
}

/// Where a column is in a line; the end of the line is before its terminator.
fn inside(content: &str, column: usize) -> Option<usize> {
    let body = content.trim_end_matches('\n').trim_end_matches('\r');
    let mut places = body.char_indices().map(|(at, _)| at).chain([body.len()]);
    places.nth(column.checked_sub(1)?)
}

fn outside(index: usize, why: &str) -> Failure {
    Failure::new(Kind::BadRequest, format!("edit {index}: {why}"))
        .hint("lines and columns count from 1, columns in characters; or send the whole text")
        .fact("edit", index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(from: [usize; 2], to: [usize; 2], text: &str) -> Typed {
        Typed { from, to, text: text.to_owned() }
    }

    #[test]
    fn ranges_are_replaced_one_after_the_other() {
        for (text, edits, expected) in [
            ("", vec![typed([1, 1], [1, 1], "a\n")], "a\n"),
            ("ab\n", vec![typed([1, 3], [1, 3], "c")], "abc\n"),
            ("ab\n", vec![typed([2, 1], [2, 1], "c")], "ab\nc"),
            ("äöü\nx\n", vec![typed([1, 2], [1, 3], "o")], "äoü\nx\n"),
            ("a\nb\nc\n", vec![typed([1, 2], [3, 1], "")], "ac\n"),
            ("a\r\nb", vec![typed([1, 2], [1, 2], "x"), typed([2, 2], [2, 2], "y")], "ax\r\nby"),
        ] {
            assert_eq!(apply(text, &edits).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_outside_is_refused() {
        for (text, edit) in [
            ("a\n", typed([3, 1], [3, 1], "x")),
            ("a\n", typed([1, 3], [1, 3], "x")),
            ("a", typed([2, 1], [2, 1], "x")),
            ("a\n", typed([0, 1], [1, 1], "x")),
            ("a\n", typed([1, 0], [1, 1], "x")),
            ("ab\n", typed([1, 2], [1, 1], "x")),
        ] {
            assert_eq!(
                apply(text, std::slice::from_ref(&edit)).unwrap_err().kind,
                Kind::BadRequest,
                "{edit:?}"
            );
        }
    }
}
