//! Parses the envelope: `*** Begin Patch`, sections with a header each, and `*** End Patch`. This module also removes a
//! heredoc or a code fence that a model added around the patch.

use super::{
    FilePatch, PatchChunk, PatchGrammar, PatchParseError, PatchParseErrorKind, PatchSectionKind, PatchSourceLine,
    chunk_parser,
};

pub(super) const BEGIN: &str = "*** Begin Patch";
pub(super) const END: &str = "*** End Patch";
pub(super) const MARKER: &str = "***";

const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move File:";
const MOVE_TO: &str = "*** Move to:";
const ENVIRONMENT: &str = "*** Environment ID:";
const ARROW: &str = " -> ";

/// If the first line of the patch ends in `\r\n`, the patch was sent with CRLF, so each line loses one `\r`. In a patch
/// whose first line ends in `\n` only, a `\r` at the end of a line is part of the line.
pub(super) fn split_patch_lines(
    text: &str,
    grammar: PatchGrammar,
) -> Result<Vec<PatchSourceLine<'_>>, PatchParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.split('\n').find(|line| !line.trim().is_empty());
    let is_crlf = first.is_some_and(|line| line.ends_with('\r'));
    let mut lines: Vec<PatchSourceLine<'_>> = text
        .split_terminator('\n')
        .zip(1..)
        .map(|(line, number)| {
            let text = if is_crlf { line.strip_suffix('\r').unwrap_or(line) } else { line };
            PatchSourceLine { number, text }
        })
        .collect();
    if grammar.is_tolerant() {
        strip_outer_wrapper(&mut lines)?;
    }
    Ok(lines)
}

fn is_filled(line: &PatchSourceLine<'_>) -> bool {
    !line.text.trim().is_empty()
}

fn strip_outer_wrapper(lines: &mut Vec<PatchSourceLine<'_>>) -> Result<(), PatchParseError> {
    let Some(first) = lines.iter().position(is_filled) else { return Ok(()) };
    let last = lines.iter().rposition(is_filled).unwrap_or(first);
    let opening = lines[first];
    let closing = lines[last].text.trim();
    let delimiter = match opening.text.trim() {
        fence if fence.starts_with("```") && !fence[3..].contains('`') => "```",
        text => match heredoc_delimiter(text) {
            Some(Ok(word)) => word,
            Some(Err(())) => return Err(PatchParseErrorKind::MalformedWrapper.at_line(opening.number)),
            None => return Ok(()),
        },
    };
    if last == first || closing != delimiter {
        return Err(PatchParseErrorKind::MalformedWrapper.at_line(opening.number));
    }
    lines.truncate(last);
    lines.drain(..=first);
    // If the patch in a heredoc has no end marker, the patch was truncated.
    match lines.iter().rfind(|line| is_filled(line)) {
        Some(end) if delimiter != "```" && end.text.trim() != END => {
            Err(PatchParseErrorKind::MissingEnd.at_line(end.number))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the delimiter of the heredoc that the line opens; `Some(Err)` means a malformed delimiter.
fn heredoc_delimiter(line: &str) -> Option<Result<&str, ()>> {
    let rest = line.strip_prefix("apply_patch").unwrap_or(line).trim_start().strip_prefix("<<")?;
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start();
    let (quote, rest) = match rest.chars().next() {
        Some(quote @ ('\'' | '"')) => (Some(quote), &rest[1..]),
        Some(_) | None => (None, rest),
    };
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (word, tail) = rest.split_at(end);
    let is_closed = match quote {
        Some(quote) => tail.strip_prefix(quote) == Some(""),
        None => tail.is_empty(),
    };
    Some(if is_closed && !word.is_empty() { Ok(word) } else { Err(()) })
}

pub(super) fn marker_text<'a>(line: &PatchSourceLine<'a>, grammar: PatchGrammar) -> &'a str {
    if grammar.is_tolerant() { line.text.trim() } else { line.text }
}

pub(super) fn find_begin(lines: &[PatchSourceLine<'_>], grammar: PatchGrammar) -> Result<usize, PatchParseError> {
    let first = lines.iter().find(|line| is_filled(line));
    let number = first.map_or(1, |line| line.number);
    let Some(at) = lines.iter().position(|line| marker_text(line, grammar) == BEGIN) else {
        return Err(PatchParseErrorKind::MissingBegin.at_line(number));
    };
    match first {
        Some(first) if first.number < lines[at].number => {
            Err(PatchParseErrorKind::TextBeforeBegin.at_line(first.number))
        }
        Some(_) | None => Ok(at + 1),
    }
}

pub(super) struct PatchParseCursor<'l, 'a> {
    pub(super) lines: &'l [PatchSourceLine<'a>],
    pub(super) position: usize,
    pub(super) grammar: PatchGrammar,
}

impl<'a> PatchParseCursor<'_, 'a> {
    pub(super) fn peek(&self) -> Option<PatchSourceLine<'a>> {
        self.lines.get(self.position).copied()
    }

    pub(super) fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| !is_filled(&line)) {
            self.position += 1;
        }
    }

    /// Returns the path in the current line if the line starts with `header`.
    fn path(&self, header: &str) -> Option<Result<&'a str, PatchParseError>> {
        let line = self.peek()?;
        let rest = marker_text(&line, self.grammar).strip_prefix(header)?;
        let path = if self.grammar.is_tolerant() { rest.trim() } else { rest.strip_prefix(' ').unwrap_or(rest) };
        if path.trim().is_empty() {
            return Some(Err(PatchParseErrorKind::MissingPath(line.text.to_owned()).at_line(line.number)));
        }
        Some(Ok(path))
    }
}

pub(super) fn parse_sections(
    lines: &[PatchSourceLine<'_>],
    first: usize,
    grammar: PatchGrammar,
) -> Result<Vec<FilePatch>, PatchParseError> {
    let end = find_end(lines, first, grammar)?;
    let mut cursor = PatchParseCursor { lines: &lines[..end], position: first, grammar };
    if grammar.is_tolerant() {
        skip_environment(&mut cursor)?;
    }
    let mut sections = Vec::new();
    loop {
        if grammar.is_tolerant() {
            cursor.skip_blank();
        }
        let Some(line) = cursor.peek() else { break };
        sections.push(FilePatch { line: line.number, kind: parse_section(&mut cursor)? });
    }
    if sections.is_empty() {
        return Err(PatchParseErrorKind::NoSections.at_line(lines[first - 1].number));
    }
    Ok(sections)
}

/// Returns the index of the line where the sections of the patch end.
fn find_end(lines: &[PatchSourceLine<'_>], first: usize, grammar: PatchGrammar) -> Result<usize, PatchParseError> {
    // An indented end marker may be a line of the patched file, so only white space after the marker is ignored.
    let is_end = |line: &PatchSourceLine<'_>| line.text == END || grammar.is_tolerant() && line.text.trim_end() == END;
    if let Some(at) = lines[first..].iter().position(is_end) {
        return match lines[first + at + 1..].iter().find(|line| is_filled(line)) {
            Some(line) => Err(PatchParseErrorKind::TextAfterEnd.at_line(line.number)),
            None => Ok(first + at),
        };
    }
    let last = lines[first..].iter().rposition(is_filled).map(|at| first + at);
    match last {
        Some(last) if marker_text(&lines[last], grammar) == END => Ok(last),
        Some(_) | None if grammar.is_tolerant() => Ok(lines.len()),
        Some(_) | None => Err(PatchParseErrorKind::MissingEnd.at_line(lines.last().map_or(1, |line| line.number))),
    }
}

/// The value of the optional header `*** Environment ID:` is ignored.
fn skip_environment(cursor: &mut PatchParseCursor<'_, '_>) -> Result<(), PatchParseError> {
    let mut count = 0;
    cursor.skip_blank();
    while let Some(line) = cursor.peek() {
        let Some(path) = cursor.path(ENVIRONMENT) else { break };
        count += 1;
        if path.is_err() || count > 1 {
            return Err(PatchParseErrorKind::InvalidEnvironment.at_line(line.number));
        }
        cursor.position += 1;
        cursor.skip_blank();
    }
    Ok(())
}

fn parse_section(cursor: &mut PatchParseCursor<'_, '_>) -> Result<PatchSectionKind, PatchParseError> {
    let Some(line) = cursor.peek() else { return Err(PatchParseErrorKind::NoSections.at_line(1)) };
    if let Some(path) = cursor.path(ADD) {
        let path = path?.to_owned();
        cursor.position += 1;
        return Ok(PatchSectionKind::Add { path, content: parse_added_content(cursor)? });
    }
    if let Some(path) = cursor.path(DELETE) {
        let path = path?.to_owned();
        cursor.position += 1;
        return Ok(PatchSectionKind::Delete { path, chunks: Vec::new() });
    }
    if let Some(path) = cursor.path(UPDATE) {
        return parse_update_section(cursor, line.number, path?);
    }
    if let Some(names) = cursor.path(MOVE) {
        let names = names?;
        let no_arrow = || PatchParseErrorKind::MissingArrow(line.text.to_owned()).at_line(line.number);
        let (from, to) = names.split_once(ARROW).ok_or_else(no_arrow)?;
        let (from, to) = (from.trim().to_owned(), to.trim().to_owned());
        if from.is_empty() || to.is_empty() {
            return Err(no_arrow());
        }
        cursor.position += 1;
        return Ok(PatchSectionKind::Move { from, to, chunks: chunk_parser::parse_chunks(cursor)? });
    }
    Err(PatchParseErrorKind::UnknownHeader(line.text.to_owned()).at_line(line.number))
}

fn parse_update_section(
    cursor: &mut PatchParseCursor<'_, '_>,
    header: usize,
    path: &str,
) -> Result<PatchSectionKind, PatchParseError> {
    cursor.position += 1;
    let mut to = None;
    if cursor.grammar != PatchGrammar::Exact
        && let Some(found) = cursor.path(MOVE_TO)
    {
        to = Some(found?.to_owned());
        cursor.position += 1;
    }
    let chunks: Vec<PatchChunk> = chunk_parser::parse_chunks(cursor)?;
    match to {
        Some(to) => Ok(PatchSectionKind::Move { from: path.to_owned(), to, chunks }),
        None if chunks.is_empty() => Err(PatchParseErrorKind::MissingChunks.at_line(header)),
        None => Ok(PatchSectionKind::Update { path: path.to_owned(), chunks }),
    }
}

/// Every line of a new file ends with a newline unless a no-newline marker follows.
fn parse_added_content(cursor: &mut PatchParseCursor<'_, '_>) -> Result<String, PatchParseError> {
    let mut content = String::new();
    while let Some(line) = cursor.peek() {
        if let Some(text) = line.text.strip_prefix('+') {
            content.push_str(text);
            content.push('\n');
        } else if chunk_parser::is_no_newline_marker(line.text) && content.ends_with('\n') {
            content.pop();
        } else if marker_text(&line, cursor.grammar).starts_with(MARKER) {
            break;
        } else if cursor.grammar.is_tolerant() && !is_filled(&line) {
            // An empty line between signed lines is part of the file, but not an empty line after the last signed line.
            let next = cursor.lines[cursor.position..].iter().find(|line| is_filled(line));
            if next.is_some_and(|line| line.text.starts_with('+')) {
                content.push('\n');
            }
        } else {
            return Err(PatchParseErrorKind::NotAddLine(line.text.to_owned()).at_line(line.number));
        }
        cursor.position += 1;
    }
    Ok(content)
}
