//! Parses unified diffs of git and `diff -u`. The line counts in hunk headers are only a hint, because models count
//! badly. Text before the first header, such as a commit message, is skipped.

use super::chunk_parser::{is_no_newline_marker, parse_signed_line};
use super::{
    FilePatch, PatchChunk, PatchLineKind, PatchParseError, PatchParseErrorKind, PatchSectionKind, PatchSourceLine,
};

const GIT: &str = "diff --git ";
const OLD: &str = "--- ";
const NEW: &str = "+++ ";
const DEV_NULL: &str = "/dev/null";

/// The file modes that stand for a plain file that is not executable.
const PLAIN_MODES: [&str; 5] = ["", "100644", "100664", "0644", "644"];

const OCTAL_DIGITS: usize = 3;

pub(super) fn looks_like_unified_diff(lines: &[PatchSourceLine<'_>]) -> bool {
    (0..lines.len()).any(|at| lines[at].text.starts_with(GIT) || is_header_pair(lines, at))
}

fn is_header_pair(lines: &[PatchSourceLine<'_>], at: usize) -> bool {
    lines[at].text.starts_with(OLD) && lines.get(at + 1).is_some_and(|line| line.text.starts_with(NEW))
}

#[derive(Default)]
struct ParsedUnifiedDiffHeaders {
    old: Option<String>,
    new: Option<String>,
    renamed_from: Option<String>,
    renamed_to: Option<String>,
    git_path: Option<String>,
    is_new_file: bool,
    is_deleted_file: bool,
}

pub(super) fn parse_sections(lines: &[PatchSourceLine<'_>]) -> Result<Vec<FilePatch>, PatchParseError> {
    let mut sections = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if !lines[at].text.starts_with(GIT) && !is_header_pair(lines, at) {
            at += 1;
            continue;
        }
        let line = lines[at].number;
        let mut headers = ParsedUnifiedDiffHeaders::default();
        at = headers.parse_headers(lines, at)?;
        let mut chunks = Vec::new();
        while lines.get(at).is_some_and(|line| line.text.starts_with("@@")) {
            let (chunk, next) = parse_hunk(lines, at)?;
            chunks.push(chunk);
            at = next;
        }
        sections.push(FilePatch { line, kind: headers.into_section_kind(chunks, &lines[..at], line)? });
    }
    if sections.is_empty() {
        return Err(PatchParseErrorKind::NoSections.at_line(lines.first().map_or(1, |line| line.number)));
    }
    Ok(sections)
}

impl ParsedUnifiedDiffHeaders {
    /// Parses the headers of one file and returns the index of the first line after the headers.
    fn parse_headers(&mut self, lines: &[PatchSourceLine<'_>], start: usize) -> Result<usize, PatchParseError> {
        let mut at = start;
        while let Some(line) = lines.get(at) {
            let text = line.text;
            if let Some(names) = text.strip_prefix(GIT) {
                if at > start {
                    break;
                }
                self.git_path = path_from_git_header(names);
            } else if is_header_pair(lines, at) {
                self.old = parse_path(&text[OLD.len()..]);
                self.new = parse_path(&lines[at + 1].text[NEW.len()..]);
                return Ok(at + 2);
            } else if let Some(from) = text.strip_prefix("rename from ") {
                self.renamed_from = parse_path(from);
            } else if let Some(to) = text.strip_prefix("rename to ") {
                self.renamed_to = parse_path(to);
            } else if let Some(mode) = text.strip_prefix("new file mode")
                && PLAIN_MODES.contains(&mode.trim())
            {
                self.is_new_file = true;
            } else if text.starts_with("deleted file mode") {
                self.is_deleted_file = true;
            } else if is_unsupported_header(text) {
                return Err(PatchParseErrorKind::Unsupported(text.to_owned()).at_line(line.number));
            } else if !["index ", "similarity ", "dissimilarity "].iter().any(|it| text.starts_with(it)) {
                break;
            }
            at += 1;
        }
        Ok(at)
    }

    fn into_section_kind(
        self,
        chunks: Vec<PatchChunk>,
        parsed_lines: &[PatchSourceLine<'_>],
        line: usize,
    ) -> Result<PatchSectionKind, PatchParseError> {
        let no_path = || {
            let got = parsed_lines.last().map_or("", |line| line.text).to_owned();
            PatchParseErrorKind::MissingPath(got).at_line(line)
        };
        if let (Some(from), Some(to)) = (self.renamed_from, self.renamed_to) {
            return Ok(PatchSectionKind::Move { from, to, chunks });
        }
        let (old, new) = strip_path_prefixes(self.old, self.new);
        let is_new = self.is_new_file || old.as_deref() == Some(DEV_NULL);
        let is_deleted = self.is_deleted_file || new.as_deref() == Some(DEV_NULL);
        let real_path = |path: Option<String>| path.filter(|path| path != DEV_NULL);
        let path = real_path(new).or(real_path(old)).or(self.git_path).ok_or_else(no_path)?;
        if is_deleted {
            return Ok(PatchSectionKind::Delete { path, chunks });
        }
        if is_new {
            return Ok(PatchSectionKind::Add { path, content: added_content(&chunks) });
        }
        if chunks.is_empty() {
            return Err(PatchParseErrorKind::MissingChunks.at_line(line));
        }
        Ok(PatchSectionKind::Update { path, chunks })
    }
}

/// A patch cannot set file modes, so headers that set a mode are rejected. If a mode were ignored, a symbolic link or
/// an executable would become a plain file.
fn is_unsupported_header(text: &str) -> bool {
    let is_unsupported = ["copy from ", "GIT binary patch", "Binary files ", "new file mode", "old mode ", "new mode "]
        .iter()
        .any(|header| text.starts_with(header));
    // The mode after the hashes is the mode of a file whose mode does not change.
    let mode = text.strip_prefix("index ").and_then(|index| index.split_whitespace().nth(1));
    is_unsupported || mode.is_some_and(|mode| ["120000", "160000"].contains(&mode))
}

fn added_content(chunks: &[PatchChunk]) -> String {
    let mut content = String::new();
    for line in chunks.iter().flat_map(|chunk| &chunk.lines).filter(|line| line.kind == PatchLineKind::Add) {
        content.push_str(&line.text);
        if !line.has_no_newline_marker {
            content.push('\n');
        }
    }
    content
}

/// The path in a header line ends at a tab and may be quoted.
fn parse_path(text: &str) -> Option<String> {
    let text = text.trim_end_matches('\r');
    let path = match text.strip_prefix('"') {
        Some(quoted) => unquote_path(quoted),
        None => text.split('\t').next().unwrap_or_default().trim_end().to_owned(),
    };
    (!path.is_empty()).then_some(path)
}

/// The prefixes `a/` and `b/` are removed only if the old path has `a/` and the new path has `b/`.
fn strip_path_prefixes(old: Option<String>, new: Option<String>) -> (Option<String>, Option<String>) {
    let has_prefix = |path: &Option<String>, prefix: &str| {
        path.as_deref().is_none_or(|path| path == DEV_NULL || path.starts_with(prefix))
    };
    if !(has_prefix(&old, "a/") && has_prefix(&new, "b/")) {
        return (old, new);
    }
    let strip =
        |path: Option<String>| path.map(|path| if path == DEV_NULL { path } else { path.chars().skip(2).collect() });
    (strip(old), strip(new))
}

/// Returns the path in a `diff --git` header only if both files have the same path.
fn path_from_git_header(names: &str) -> Option<String> {
    let names = names.trim_end_matches('\r');
    let middle = names.len() / 2;
    let (old, new) = (names.get(..middle)?, names.get(middle + 1..)?);
    let (old, new) = (old.strip_prefix("a/")?, new.strip_prefix("b/")?);
    (old == new && !old.is_empty()).then(|| old.to_owned())
}

fn unquote_path(quoted: &str) -> String {
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

#[derive(Debug, Clone, Copy)]
pub(super) struct HunkHeaderRanges {
    start: usize,
    old: usize,
    new: usize,
}

/// Parses the numbers of a hunk header, such as `-1,2 +3,4`.
pub(super) fn parse_hunk_header(text: &str) -> Option<HunkHeaderRanges> {
    let (old, new) = text.trim().strip_prefix('-')?.split_once(" +")?;
    let pair = |text: &str| match text.trim().split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.trim().parse().ok()?, 1)),
    };
    let ((start, old), (_, new)): ((usize, usize), (usize, usize)) = (pair(old)?, pair(new)?);
    Some(HunkHeaderRanges { start, old, new })
}

/// Parses one hunk and returns the chunk with the index of the line after the hunk.
fn parse_hunk(lines: &[PatchSourceLine<'_>], start: usize) -> Result<(PatchChunk, usize), PatchParseError> {
    let header = lines[start];
    let numbers = header.text.trim_start_matches('@').split("@@").next().unwrap_or_default();
    let range = parse_hunk_header(numbers);
    if range.is_none() && !numbers.trim().is_empty() {
        return Err(PatchParseErrorKind::NotHunkHeader(header.text.to_owned()).at_line(header.number));
    }
    let declared_start = range.map(|range| range.start);
    let mut chunk = PatchChunk { declared_start, ..PatchChunk::new(header.number) };
    let mut remaining = range.map_or((0, 0), |range| (range.old, range.new));
    let mut at = start + 1;
    while let Some(line) = lines.get(at) {
        if is_no_newline_marker(line.text) {
            if let Some(last) = chunk.lines.last_mut() {
                last.has_no_newline_marker = true;
            }
            at += 1;
            continue;
        }
        let is_complete = range.is_some() && remaining == (0, 0);
        let is_after_hunk = line.text.trim().is_empty() || line.text.trim_end() == "--";
        let may_end = is_complete || range.is_none();
        if may_end && is_header_pair(lines, at) || is_complete && is_after_hunk {
            break;
        }
        let Some(line) = parse_signed_line(line.text) else { break };
        if line.kind != PatchLineKind::Add {
            remaining.0 = remaining.0.saturating_sub(1);
        }
        if line.kind != PatchLineKind::Remove {
            remaining.1 = remaining.1.saturating_sub(1);
        }
        chunk.lines.push(line);
        at += 1;
    }
    if chunk.lines.is_empty() {
        return Err(PatchParseErrorKind::EmptyChunk.at_line(header.number));
    }
    Ok((chunk, at))
}
