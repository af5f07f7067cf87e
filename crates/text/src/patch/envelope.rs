//! The envelope: `*** Begin Patch`, sections with a header each, `*** End Patch`. Owns the order of its parts and
//! where each ends. Chunks are read by [`super::chunk`].

use super::{Action, Chunk, Fault, Grammar, Leave, ParseError, Section, Written, chunk};

/// The first line of a patch.
pub(super) const BEGIN: &str = "*** Begin Patch";
/// The last line of a patch.
pub(super) const END: &str = "*** End Patch";
/// What every marker starts with.
pub(super) const MARKER: &str = "***";

const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move File:";
const MOVE_TO: &str = "*** Move to:";
const ENVIRONMENT: &str = "*** Environment ID:";
/// What stands between the two names of a move.
const ARROW: &str = " -> ";

/// A line as a marker is compared with it.
pub(super) fn marker<'a>(line: &Written<'a>, grammar: Grammar) -> &'a str {
    match grammar.padding {
        Leave::Given => line.text.trim(),
        Leave::Refused => line.text,
    }
}

/// The index of the line behind the beginning.
pub(super) fn begin(lines: &[Written<'_>], grammar: Grammar) -> Result<usize, ParseError> {
    let first = lines.iter().find(|line| !line.text.trim().is_empty());
    let number = first.map_or(1, |line| line.number);
    let Some(at) = lines.iter().position(|line| marker(line, grammar) == BEGIN) else {
        return Err(Fault::NoBegin.at(number));
    };
    match first {
        Some(first) if first.number < lines[at].number => Err(Fault::BeforeBegin.at(first.number)),
        Some(_) | None => Ok(at + 1),
    }
}

/// A place in the lines of a patch.
pub(super) struct Cursor<'l, 'a> {
    pub(super) lines: &'l [Written<'a>],
    pub(super) at: usize,
    pub(super) grammar: Grammar,
}

impl<'a> Cursor<'_, 'a> {
    pub(super) fn peek(&self) -> Option<Written<'a>> {
        self.lines.get(self.at).copied()
    }

    /// The line as a marker.
    fn marker(&self) -> Option<&'a str> {
        self.lines.get(self.at).map(|line| marker(line, self.grammar))
    }

    pub(super) fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.text.trim().is_empty()) {
            self.at += 1;
        }
    }

    /// The path behind a header, if the line is that header.
    fn path(&self, header: &str) -> Option<Result<&'a str, ParseError>> {
        let line = self.peek()?;
        let rest = marker(&line, self.grammar).strip_prefix(header)?;
        let path = match self.grammar.padding {
            Leave::Given => rest.trim(),
            Leave::Refused => rest.strip_prefix(' ').unwrap_or(rest),
        };
        if path.trim().is_empty() {
            return Some(Err(Fault::NoPath { got: line.text.to_owned() }.at(line.number)));
        }
        Some(Ok(path))
    }
}

/// The sections from `first` to the end, and nothing behind it.
pub(super) fn sections(
    lines: &[Written<'_>],
    first: usize,
    grammar: Grammar,
) -> Result<Vec<Section>, ParseError> {
    let end = end(lines, first, grammar)?;
    let mut cursor = Cursor { lines: &lines[..end], at: first, grammar };
    if grammar.environment == Leave::Given {
        environment(&mut cursor)?;
    }
    let mut sections = Vec::new();
    loop {
        if grammar.padding == Leave::Given {
            cursor.skip_blank();
        }
        let Some(line) = cursor.peek() else { break };
        sections.push(Section { line: line.number, action: action(&mut cursor)? });
    }
    if sections.is_empty() {
        return Err(Fault::NoSections.at(lines[first - 1].number));
    }
    Ok(sections)
}

/// The index of the end marker, which nothing follows.
fn end(lines: &[Written<'_>], first: usize, grammar: Grammar) -> Result<usize, ParseError> {
    let is_end = |line: &Written<'_>| match grammar.padding {
        // Indented, it may be a line of a file.
        Leave::Given => line.text.trim_end() == END,
        Leave::Refused => line.text == END,
    };
    let filled = |line: &Written<'_>| !line.text.trim().is_empty();
    if let Some(at) = lines[first..].iter().position(is_end) {
        return match lines[first + at + 1..].iter().find(|line| filled(line)) {
            Some(line) => Err(Fault::AfterEnd.at(line.number)),
            None => Ok(first + at),
        };
    }
    let last = lines[first..].iter().rposition(filled).map(|at| first + at);
    match last {
        Some(last) if marker(&lines[last], grammar) == END => Ok(last),
        Some(_) | None if grammar.open_end == Leave::Given => Ok(lines.len()),
        Some(_) | None => Err(Fault::NoEnd.at(lines.last().map_or(1, |line| line.number))),
    }
}

/// Reads over the name of the environment; it has no meaning here.
fn environment(cursor: &mut Cursor<'_, '_>) -> Result<(), ParseError> {
    let mut seen = 0;
    cursor.skip_blank();
    while let Some(line) = cursor.peek() {
        let Some(path) = cursor.path(ENVIRONMENT) else { break };
        seen += 1;
        if path.is_err() || seen > 1 {
            return Err(Fault::Environment.at(line.number));
        }
        cursor.at += 1;
        cursor.skip_blank();
    }
    Ok(())
}

fn action(cursor: &mut Cursor<'_, '_>) -> Result<Action, ParseError> {
    let Some(line) = cursor.peek() else { return Err(Fault::NoSections.at(1)) };
    if let Some(path) = cursor.path(ADD) {
        let path = path?.to_owned();
        cursor.at += 1;
        return Ok(Action::Add { path, content: added(cursor)? });
    }
    if let Some(path) = cursor.path(DELETE) {
        let path = path?.to_owned();
        cursor.at += 1;
        return Ok(Action::Delete { path, chunks: Vec::new() });
    }
    if let Some(path) = cursor.path(UPDATE) {
        return updated(cursor, line.number, path?);
    }
    if let Some(names) = cursor.path(MOVE) {
        let names = names?;
        let no_arrow = || Fault::NoArrow { got: line.text.to_owned() }.at(line.number);
        let (from, to) = names.split_once(ARROW).ok_or_else(no_arrow)?;
        let (from, to) = (from.trim().to_owned(), to.trim().to_owned());
        if from.is_empty() || to.is_empty() {
            return Err(no_arrow());
        }
        cursor.at += 1;
        return Ok(Action::Move { from, to, chunks: chunk::chunks(cursor)? });
    }
    Err(Fault::UnknownHeader { got: line.text.to_owned() }.at(line.number))
}

/// The rest of a section that changes a file.
fn updated(cursor: &mut Cursor<'_, '_>, header: usize, path: &str) -> Result<Action, ParseError> {
    cursor.at += 1;
    let mut to = None;
    if cursor.grammar.move_to == Leave::Given
        && let Some(found) = cursor.path(MOVE_TO)
    {
        to = Some(found?.to_owned());
        cursor.at += 1;
    }
    let chunks: Vec<Chunk> = chunk::chunks(cursor)?;
    match to {
        Some(to) => Ok(Action::Move { from: path.to_owned(), to, chunks }),
        None if chunks.is_empty() => Err(Fault::NoChunk.at(header)),
        None => Ok(Action::Update { path: path.to_owned(), chunks }),
    }
}

/// The content of a new file. Every line ends with a newline unless the marker says otherwise.
fn added(cursor: &mut Cursor<'_, '_>) -> Result<String, ParseError> {
    let mut content = String::new();
    while let Some(line) = cursor.peek() {
        if let Some(text) = line.text.strip_prefix('+') {
            content.push_str(text);
            content.push('\n');
        } else if chunk::is_no_newline(line.text) && content.ends_with('\n') {
            content.pop();
        } else if cursor.marker().is_some_and(|text| text.starts_with(MARKER)) {
            break;
        } else if cursor.grammar.bare_line == Leave::Given && line.text.trim().is_empty() {
            // Between lines that have their sign an empty one is part of the file; at the end it is not.
            let next = cursor.lines[cursor.at..].iter().find(|line| !line.text.trim().is_empty());
            if next.is_some_and(|line| line.text.starts_with('+')) {
                content.push('\n');
            }
        } else {
            return Err(Fault::NotAddLine { got: line.text.to_owned() }.at(line.number));
        }
        cursor.at += 1;
    }
    Ok(content)
}
