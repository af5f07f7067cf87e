//! Parses the chunks of one envelope section.

use super::envelope::{MARKER, PatchParseCursor, marker_text};
use super::{
    PatchChunk, PatchGrammar, PatchLine, PatchLineKind, PatchParseError, PatchParseErrorKind, PatchSourceLine,
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
        let headed = line.text.starts_with(HEADING);
        let may_be_bare = cursor.grammar.is_tolerant() && chunks.is_empty();
        if !headed && line.text.starts_with(MARKER) {
            break;
        }
        if !headed && cursor.grammar.is_tolerant() && is_blank_between_chunks(&line, cursor, &chunks) {
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
    let nothing_follows = next.is_none_or(|next| next.text.starts_with(MARKER) || next.text.starts_with(HEADING));
    nothing_follows || !chunks.is_empty()
}

fn parse_chunk(cursor: &mut PatchParseCursor<'_, '_>) -> Result<PatchChunk, PatchParseError> {
    let start = cursor.peek().map_or(1, |line| line.number);
    let mut chunk = PatchChunk::new(start);
    while let Some(line) = cursor.peek()
        && let Some(text) = line.text.strip_prefix(HEADING)
    {
        if cursor.grammar.is_tolerant() {
            chunk.anchors.extend(anchor_from_heading(text));
        } else if line.number != start {
            return Err(PatchParseErrorKind::EmptyChunk.at_line(start));
        }
        cursor.position += 1;
    }
    while let Some(line) = cursor.peek() {
        if line.text.starts_with(HEADING) {
            break;
        }
        if line.text.starts_with(MARKER) {
            if cursor.grammar != PatchGrammar::Exact && marker_text(&line, cursor.grammar) == END_OF_FILE {
                chunk.has_end_of_file_marker = true;
                cursor.position += 1;
            }
            break;
        }
        if is_no_newline_marker(line.text)
            && let Some(last) = chunk.lines.last_mut()
        {
            last.has_no_newline_marker = true;
        } else if let Some(line) = parse_signed_line(line.text) {
            chunk.lines.push(line);
        } else if cursor.grammar.is_tolerant() {
            chunk.lines.push(PatchLine::new(PatchLineKind::Unmarked, line.text));
        } else {
            break;
        }
        cursor.position += 1;
    }
    if chunk.lines.is_empty() {
        return Err(PatchParseErrorKind::EmptyChunk.at_line(start));
    }
    Ok(chunk)
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
    Some(PatchLine::new(kind, text))
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
