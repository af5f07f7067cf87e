//! Parses the chunks of one envelope section.

use super::envelope::{MARKER, PatchParseCursor, marker_text};
use super::{
    EndOfFileMarker, HunkHeadingMeaning, PatchChunk, PatchLine, PatchLineKind, PatchLineNoNewlineMarker,
    PatchParseError, PatchParseErrorKind, PatchSourceLine, PatchSyntaxTolerance,
};

const HEADING: &str = "@@";
const END_OF_FILE: &str = "*** End of File";

pub(super) fn is_no_newline_marker(text: &str) -> bool {
    text.starts_with("\\ ")
}

/// Parses the chunks up to the next section header or the end of the patch.
pub(super) fn parse_chunks(cursor: &mut PatchParseCursor<'_, '_>) -> Result<Vec<PatchChunk>, PatchParseError> {
    let mut chunks: Vec<PatchChunk> = Vec::new();
    while let Some(line) = cursor.peek() {
        let headed = parse_heading(&line, cursor).is_some();
        let may_be_bare = cursor.grammar.chunk_without_header == PatchSyntaxTolerance::Accept && chunks.is_empty();
        if !headed && line.text.starts_with(MARKER) {
            break;
        }
        if !headed
            && cursor.grammar.space_around_markers == PatchSyntaxTolerance::Accept
            && is_blank_between_chunks(&line, cursor, &chunks)
        {
            cursor.position += 1;
            continue;
        }
        if !headed && !may_be_bare {
            return Err(PatchParseErrorKind::NotChunkHeader(line.text.to_owned()).at_line(line.number));
        }
        chunks.push(parse_chunk(cursor)?);
    }
    Ok(chunks)
}

fn is_blank_between_chunks(
    line: &PatchSourceLine<'_>,
    cursor: &PatchParseCursor<'_, '_>,
    chunks: &[PatchChunk],
) -> bool {
    if !line.text.trim().is_empty() {
        return false;
    }
    // A blank line at the start of a chunk without heading belongs to it only if more lines follow.
    let next = cursor.lines[cursor.position..].iter().find(|line| !line.text.trim().is_empty());
    let nothing_follows =
        next.is_none_or(|next| next.text.starts_with(MARKER) || parse_heading(next, cursor).is_some());
    nothing_follows || !chunks.is_empty()
}

fn parse_heading<'a>(line: &PatchSourceLine<'a>, cursor: &PatchParseCursor<'_, '_>) -> Option<&'a str> {
    match cursor.grammar.space_around_markers {
        // A leading space is the sign of a context line.
        PatchSyntaxTolerance::Accept if line.text.starts_with(' ') => None,
        PatchSyntaxTolerance::Accept | PatchSyntaxTolerance::Reject => line.text.strip_prefix(HEADING),
    }
}

fn parse_chunk(cursor: &mut PatchParseCursor<'_, '_>) -> Result<PatchChunk, PatchParseError> {
    let start = cursor.peek().map_or(1, |line| line.number);
    let mut chunk = PatchChunk {
        line: start,
        anchors: Vec::new(),
        declared_position: None,
        end_of_file: EndOfFileMarker::Absent,
        lines: Vec::new(),
    };
    while let Some(line) = cursor.peek()
        && let Some(text) = parse_heading(&line, cursor)
    {
        if cursor.grammar.headings == HunkHeadingMeaning::Anchors {
            chunk.anchors.extend(anchor_from_heading(text));
        } else if line.number != start {
            return Err(PatchParseErrorKind::EmptyChunk.at_line(start));
        }
        cursor.position += 1;
    }
    while let Some(line) = cursor.peek() {
        if parse_heading(&line, cursor).is_some() {
            break;
        }
        if line.text.starts_with(MARKER) {
            parse_end_of_file(cursor, &line, &mut chunk);
            break;
        }
        if is_no_newline_marker(line.text) && !chunk.lines.is_empty() {
            if let Some(last) = chunk.lines.last_mut() {
                last.no_newline_marker = PatchLineNoNewlineMarker::Present;
            }
        } else {
            match parse_signed_line(line.text) {
                Some(line) => chunk.lines.push(line),
                None if cursor.grammar.line_without_sign == PatchSyntaxTolerance::Accept => {
                    chunk.lines.push(PatchLine {
                        kind: PatchLineKind::Unmarked,
                        text: line.text.to_owned(),
                        no_newline_marker: PatchLineNoNewlineMarker::Absent,
                    })
                }
                None => break,
            }
        }
        cursor.position += 1;
    }
    if chunk.lines.is_empty() {
        return Err(PatchParseErrorKind::EmptyChunk.at_line(start));
    }
    Ok(chunk)
}

fn parse_end_of_file(cursor: &mut PatchParseCursor<'_, '_>, line: &PatchSourceLine<'_>, chunk: &mut PatchChunk) {
    if cursor.grammar.end_of_file_marker == PatchSyntaxTolerance::Accept
        && marker_text(line, cursor.grammar) == END_OF_FILE
    {
        chunk.end_of_file = EndOfFileMarker::Present;
        cursor.position += 1;
    }
}

/// Parses a chunk line; `None` if the line has no sign (`+`, `-` or space). An empty line is an empty context line.
pub(super) fn parse_signed_line(text: &str) -> Option<PatchLine> {
    let (kind, text) = match text.as_bytes().first() {
        None => (PatchLineKind::Context, text),
        Some(b' ') => (PatchLineKind::Context, &text[1..]),
        Some(b'-') => (PatchLineKind::Remove, &text[1..]),
        Some(b'+') => (PatchLineKind::Add, &text[1..]),
        // A line that is only a carriage return is an empty context line.
        Some(b'\r') if text.len() == 1 => (PatchLineKind::Context, text),
        Some(_) => return None,
    };
    Some(PatchLine { kind, text: text.to_owned(), no_newline_marker: PatchLineNoNewlineMarker::Absent })
}

/// Line numbers after `@@` that were copied from a unified diff are not an anchor.
fn anchor_from_heading(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_suffix(HEADING).unwrap_or(text).trim();
    let text = match text.split_once(HEADING) {
        Some((numbers, rest)) if super::unified_diff::parse_hunk_header(numbers).is_some() => rest.trim(),
        Some(_) | None => text,
    };
    let is_line = !text.is_empty() && super::unified_diff::parse_hunk_header(text).is_none();
    is_line.then(|| text.to_owned())
}
