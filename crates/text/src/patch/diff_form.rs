//! Unified diffs, from git and from `diff -u`. Owns their headers: which names they give, what they say happens to the
//! file. Counts of lines are believed as far as they go: models count badly, so a hunk ends where the next thing
//! starts. Text in front of the first header, such as a message, is passed over.

use super::chunk::{is_no_newline, signed};
use super::{Action, Chunk, End, Fault, Line, Near, Newline, ParseError, Section, Side, Written};

const GIT: &str = "diff --git ";
const OLD: &str = "--- ";
const NEW: &str = "+++ ";
const NOWHERE: &str = "/dev/null";

/// The modes of a file that is nothing but text. Any other makes a link, a submodule or a program of it.
const PLAIN_MODES: [&str; 5] = ["", "100644", "100664", "0644", "644"];

/// The longest octal escape in a quoted name.
const OCTAL_DIGITS: usize = 3;

/// Whether the lines hold a unified diff.
pub(super) fn looks_like_one(lines: &[Written<'_>]) -> bool {
    (0..lines.len()).any(|at| lines[at].text.starts_with(GIT) || is_pair(lines, at))
}

/// Whether the names of a file start at this line.
fn is_pair(lines: &[Written<'_>], at: usize) -> bool {
    lines[at].text.starts_with(OLD) && lines.get(at + 1).is_some_and(|line| line.text.starts_with(NEW))
}

/// What the headers of one file say.
#[derive(Default)]
struct Headers {
    old: Option<String>,
    new: Option<String>,
    renamed_from: Option<String>,
    renamed_to: Option<String>,
    git: Option<String>,
    made: bool,
    gone: bool,
}

pub(super) fn sections(lines: &[Written<'_>]) -> Result<Vec<Section>, ParseError> {
    let mut sections = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if !lines[at].text.starts_with(GIT) && !is_pair(lines, at) {
            at += 1;
            continue;
        }
        let line = lines[at].number;
        let mut headers = Headers::default();
        at = headers.read(lines, at)?;
        let mut chunks = Vec::new();
        while lines.get(at).is_some_and(|line| line.text.starts_with("@@")) {
            let (chunk, next) = hunk(lines, at)?;
            chunks.push(chunk);
            at = next;
        }
        sections.push(Section { line, action: headers.action(chunks, &lines[..at], line)? });
    }
    if sections.is_empty() {
        return Err(Fault::NoSections.at(lines.first().map_or(1, |line| line.number)));
    }
    Ok(sections)
}

impl Headers {
    /// Reads the headers of one file and answers where its hunks start.
    fn read(&mut self, lines: &[Written<'_>], start: usize) -> Result<usize, ParseError> {
        let mut at = start;
        while let Some(line) = lines.get(at) {
            let text = line.text;
            if let Some(names) = text.strip_prefix(GIT) {
                if at > start {
                    break;
                }
                self.git = git_name(names);
            } else if is_pair(lines, at) {
                self.old = name(&text[OLD.len()..]);
                self.new = name(&lines[at + 1].text[NEW.len()..]);
                return Ok(at + 2);
            } else if let Some(from) = text.strip_prefix("rename from ") {
                self.renamed_from = name(from);
            } else if let Some(to) = text.strip_prefix("rename to ") {
                self.renamed_to = name(to);
            } else if let Some(mode) = text.strip_prefix("new file mode")
                && PLAIN_MODES.contains(&mode.trim())
            {
                self.made = true;
            } else if text.starts_with("deleted file mode") {
                self.gone = true;
            } else if is_unsupported(text) {
                return Err(Fault::Unsupported { got: text.to_owned() }.at(line.number));
            } else if !["index ", "similarity ", "dissimilarity "].iter().any(|it| text.starts_with(it)) {
                break;
            }
            at += 1;
        }
        Ok(at)
    }

    /// What happens to the file.
    fn action(self, chunks: Vec<Chunk>, read: &[Written<'_>], line: usize) -> Result<Action, ParseError> {
        let no_path = || {
            let got = read.last().map_or("", |line| line.text).to_owned();
            Fault::NoPath { got }.at(line)
        };
        if let (Some(from), Some(to)) = (self.renamed_from, self.renamed_to) {
            return Ok(Action::Move { from, to, chunks });
        }
        let (old, new) = unprefixed(self.old, self.new);
        let made = self.made || old.as_deref() == Some(NOWHERE);
        let gone = self.gone || new.as_deref() == Some(NOWHERE);
        let named = |name: Option<String>| name.filter(|name| name != NOWHERE);
        let path = named(new).or(named(old)).or(self.git).ok_or_else(no_path)?;
        if gone {
            return Ok(Action::Delete { path, chunks });
        }
        if made {
            return Ok(Action::Add { path, content: content(&chunks) });
        }
        if chunks.is_empty() {
            return Err(Fault::NoChunk.at(line));
        }
        Ok(Action::Update { path, chunks })
    }
}

/// Whether a header asks for more than text can do. What a patch cannot set it refuses: a mode that is passed over
/// would make a file of a link and a plain file of a program.
fn is_unsupported(text: &str) -> bool {
    let is_asked =
        ["copy from ", "GIT binary patch", "Binary files ", "new file mode", "old mode ", "new mode "]
            .iter()
            .any(|it| text.starts_with(it));
    // What stands behind the hashes is the mode of a file that stays what it is.
    let mode = text.strip_prefix("index ").and_then(|index| index.split_whitespace().nth(1));
    is_asked || mode.is_some_and(|mode| ["120000", "160000"].contains(&mode))
}

/// The content of a file that a diff makes.
fn content(chunks: &[Chunk]) -> String {
    let mut content = String::new();
    for line in chunks.iter().flat_map(|chunk| &chunk.lines).filter(|line| line.side == Side::Add) {
        content.push_str(&line.text);
        if line.newline == Newline::Unsaid {
            content.push('\n');
        }
    }
    content
}

/// The name on a header line: up to a tab, unquoted.
fn name(written: &str) -> Option<String> {
    let written = written.trim_end_matches('\r');
    let name = match written.strip_prefix('"') {
        Some(quoted) => unquoted(quoted),
        None => written.split('\t').next().unwrap_or_default().trim_end().to_owned(),
    };
    (!name.is_empty()).then_some(name)
}

/// The names without `a/` and `b/`, where both have them.
fn unprefixed(old: Option<String>, new: Option<String>) -> (Option<String>, Option<String>) {
    let bears = |name: &Option<String>, prefix: &str| {
        name.as_deref().is_none_or(|name| name == NOWHERE || name.starts_with(prefix))
    };
    if !(bears(&old, "a/") && bears(&new, "b/")) {
        return (old, new);
    }
    let bare = |name: Option<String>| {
        name.map(|name| if name == NOWHERE { name } else { name.chars().skip(2).collect() })
    };
    (bare(old), bare(new))
}

/// The one name behind `diff --git`, when both halves agree.
fn git_name(names: &str) -> Option<String> {
    let names = names.trim_end_matches('\r');
    let middle = names.len() / 2;
    let (old, new) = (names.get(..middle)?, names.get(middle + 1..)?);
    let (old, new) = (old.strip_prefix("a/")?, new.strip_prefix("b/")?);
    (old == new && !old.is_empty()).then(|| old.to_owned())
}

/// A name in the quotes of C.
fn unquoted(quoted: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = quoted.bytes().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => break,
            b'\\' => match rest.next() {
                Some(b'n') => bytes.push(b'\n'),
                Some(b't') => bytes.push(b'\t'),
                Some(digit @ b'0'..=b'3') => {
                    let mut value = digit - b'0';
                    for _ in 1..OCTAL_DIGITS {
                        let Some(next) = rest.next_if(|next| (b'0'..=b'7').contains(next)) else { break };
                        value = value.wrapping_mul(8).wrapping_add(next - b'0');
                    }
                    bytes.push(value);
                }
                Some(other) => bytes.push(other),
                None => break,
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The numbers of a hunk: where the old lines start, and how many there are on each side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    start: usize,
    old: usize,
    new: usize,
}

/// Reads `-1,2 +3,4`.
pub(super) fn numbers(text: &str) -> Option<Numbers> {
    let (old, new) = text.trim().strip_prefix('-')?.split_once(" +")?;
    let pair = |text: &str| match text.trim().split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.trim().parse().ok()?, 1)),
    };
    let ((start, old), (_, new)): ((usize, usize), (usize, usize)) = (pair(old)?, pair(new)?);
    Some(Numbers { start, old, new })
}

/// One hunk and where the next thing starts.
fn hunk(lines: &[Written<'_>], start: usize) -> Result<(Chunk, usize), ParseError> {
    let header = lines[start];
    let inside = header.text.trim_start_matches('@').split("@@").next().unwrap_or_default();
    let found = numbers(inside);
    if found.is_none() && !inside.trim().is_empty() {
        return Err(Fault::NotHunkHeader { got: header.text.to_owned() }.at(header.number));
    }
    let mut chunk = Chunk {
        line: header.number,
        anchors: Vec::new(),
        near: found.map(|numbers| Near { start: numbers.start }),
        end: End::Anywhere,
        lines: Vec::new(),
    };
    let mut left = found.map_or((0, 0), |numbers| (numbers.old, numbers.new));
    let mut at = start + 1;
    while let Some(line) = lines.get(at) {
        if is_no_newline(line.text) {
            if let Some(last) = chunk.lines.last_mut() {
                last.newline = Newline::Missing;
            }
            at += 1;
            continue;
        }
        let count = match (found, left) {
            (None, _) => Count::Unknown,
            (Some(_), (0, 0)) => Count::Full,
            (Some(_), _) => Count::Open,
        };
        let Some(found) = line_of(lines, at, count) else { break };
        match found.side {
            Side::Keep | Side::Bare => left = (left.0.saturating_sub(1), left.1.saturating_sub(1)),
            Side::Remove => left.0 = left.0.saturating_sub(1),
            Side::Add => left.1 = left.1.saturating_sub(1),
        }
        chunk.lines.push(found);
        at += 1;
    }
    if chunk.lines.is_empty() {
        return Err(Fault::EmptyChunk.at(header.number));
    }
    Ok((chunk, at))
}

/// Whether a hunk has the lines that its header counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    /// Not yet: whatever comes is part of it.
    Open,
    /// It has.
    Full,
    /// The header does not say.
    Unknown,
}

/// The line of a hunk at this place; nothing where the hunk ends.
fn line_of(lines: &[Written<'_>], at: usize, count: Count) -> Option<Line> {
    let text = lines[at].text;
    let ends = match count {
        Count::Open => false,
        Count::Full => is_pair(lines, at) || text.trim().is_empty() || text.trim_end() == "--",
        Count::Unknown => is_pair(lines, at),
    };
    if ends { None } else { signed(text) }
}
