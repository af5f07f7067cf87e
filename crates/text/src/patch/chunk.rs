//! The chunks of one section of the envelope. Owns which line starts a chunk, which belongs to it and which ends it.

use super::envelope::{Cursor, MARKER, marker};
use super::{Chunk, End, Fault, Headings, Leave, Line, Newline, ParseError, Side, Written};

/// What starts a chunk.
const HEADING: &str = "@@";
const END_OF_FILE: &str = "*** End of File";

/// Whether a line says that the one before it has no newline.
pub(super) fn is_no_newline(text: &str) -> bool {
    text.starts_with("\\ ")
}

/// The chunks up to the next header or the end.
pub(super) fn chunks(cursor: &mut Cursor<'_, '_>) -> Result<Vec<Chunk>, ParseError> {
    let mut chunks: Vec<Chunk> = Vec::new();
    while let Some(line) = cursor.peek() {
        let headed = heading(&line, cursor).is_some();
        let may_be_bare = cursor.grammar.bare_chunk == Leave::Given && chunks.is_empty();
        if !headed && line.text.starts_with(MARKER) {
            break;
        }
        if !headed && cursor.grammar.padding == Leave::Given && is_between(&line, cursor, &chunks) {
            cursor.at += 1;
            continue;
        }
        if !headed && !may_be_bare {
            return Err(Fault::NotChunkHeader { got: line.text.to_owned() }.at(line.number));
        }
        chunks.push(chunk(cursor)?);
    }
    Ok(chunks)
}

/// Whether a line without content stands between two parts.
fn is_between(line: &Written<'_>, cursor: &Cursor<'_, '_>, chunks: &[Chunk]) -> bool {
    if !line.text.trim().is_empty() {
        return false;
    }
    // An empty line in front of the first chunk is one only if more of that chunk follows.
    let next = cursor.lines[cursor.at..].iter().find(|line| !line.text.trim().is_empty());
    let starts_anew =
        next.is_none_or(|next| next.text.starts_with(MARKER) || heading(next, cursor).is_some());
    starts_anew || !chunks.is_empty()
}

/// The text behind `@@`, if the line starts a chunk.
fn heading<'a>(line: &Written<'a>, cursor: &Cursor<'_, '_>) -> Option<&'a str> {
    let text = match cursor.grammar.padding {
        // With a sign in front it would be a line of the chunk.
        Leave::Given if line.text.starts_with(' ') => return None,
        Leave::Given | Leave::Refused => line.text,
    };
    text.strip_prefix(HEADING)
}

fn chunk(cursor: &mut Cursor<'_, '_>) -> Result<Chunk, ParseError> {
    let start = cursor.peek().map_or(1, |line| line.number);
    let mut chunk =
        Chunk { line: start, anchors: Vec::new(), near: None, end: End::Anywhere, lines: Vec::new() };
    while let Some(line) = cursor.peek()
        && let Some(text) = heading(&line, cursor)
    {
        if cursor.grammar.headings == Headings::Anchors {
            chunk.anchors.extend(anchor(text));
        } else if line.number != start {
            return Err(Fault::EmptyChunk.at(start));
        }
        cursor.at += 1;
    }
    while let Some(line) = cursor.peek() {
        if heading(&line, cursor).is_some() {
            break;
        }
        if line.text.starts_with(MARKER) {
            end_of_file(cursor, &line, &mut chunk);
            break;
        }
        if is_no_newline(line.text) && !chunk.lines.is_empty() {
            if let Some(last) = chunk.lines.last_mut() {
                last.newline = Newline::Missing;
            }
        } else {
            match signed(line.text) {
                Some(line) => chunk.lines.push(line),
                None if cursor.grammar.bare_line == Leave::Given => chunk.lines.push(Line {
                    side: Side::Bare,
                    text: line.text.to_owned(),
                    newline: Newline::Unsaid,
                }),
                None => break,
            }
        }
        cursor.at += 1;
    }
    if chunk.lines.is_empty() {
        return Err(Fault::EmptyChunk.at(start));
    }
    Ok(chunk)
}

/// Takes `*** End of File`, where it is one.
fn end_of_file(cursor: &mut Cursor<'_, '_>, line: &Written<'_>, chunk: &mut Chunk) {
    if cursor.grammar.end_of_file == Leave::Given && marker(line, cursor.grammar) == END_OF_FILE {
        chunk.end = End::OfFile;
        cursor.at += 1;
    }
}

/// A line with its sign taken off; nothing if it has none. An empty line is an empty line that stays.
pub(super) fn signed(text: &str) -> Option<Line> {
    let (side, text) = match text.as_bytes().first() {
        None => (Side::Keep, text),
        Some(b' ') => (Side::Keep, &text[1..]),
        Some(b'-') => (Side::Remove, &text[1..]),
        Some(b'+') => (Side::Add, &text[1..]),
        // A lone carriage return is an empty line too.
        Some(b'\r') if text.len() == 1 => (Side::Keep, text),
        Some(_) => return None,
    };
    Some(Line { side, text: text.to_owned(), newline: Newline::Unsaid })
}

/// The line that a heading names. Line numbers that a model copied from a unified diff are not one.
fn anchor(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_suffix(HEADING).unwrap_or(text).trim();
    let text = match text.split_once(HEADING) {
        Some((numbers, rest)) if super::diff_form::numbers(numbers).is_some() => rest.trim(),
        Some(_) | None => text,
    };
    let is_line = !text.is_empty() && super::diff_form::numbers(text).is_none();
    is_line.then(|| text.to_owned())
}
