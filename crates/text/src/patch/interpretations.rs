//! This module interprets the lines of a chunk, first exactly as written. If the literal chunk does not match,
//! interpretations with repaired typing slips are tried one after another.

use crate::edit::decode_leading_tabs;
use crate::lines;

use super::{PatchChunk, PatchChunkPlacementRules, PatchLine, PatchLineKind};

/// The repair of a typing slip in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchChunkRepair {
    /// The chunk had lines without a sign, or context lines without a space as their sign.
    MissingSigns,
    /// The chunk ended with empty lines that do not belong to it.
    TrailingBlankLine,
    /// The first line of the chunk was a comment with the file name.
    PathComment,
    /// The chunk had leading tabs that were written as `\t`.
    EscapedTabs,
    /// The chunk had newlines inside a line that were written as `\n`.
    EscapedNewlines,
}

impl PatchChunkRepair {
    /// Returns the name of the chunk repair in replies to callers.
    pub fn name(self) -> &'static str {
        match self {
            Self::MissingSigns => "unsigned_lines",
            Self::TrailingBlankLine => "trailing_blank_lines",
            Self::PathComment => "path_remark",
            Self::EscapedTabs => "tab_escapes",
            Self::EscapedNewlines => "line_escapes",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResolvedLineKind {
    Context,
    Remove,
    Add,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchStatedLineTerminator {
    Unstated,
    Cr,
    Crlf,
    NoNewline,
}

impl PatchStatedLineTerminator {
    /// Returns the terminator of the line, which is a newline unless the patch states another one.
    pub(super) fn characters(self) -> &'static str {
        match self {
            Self::Cr => "\r",
            Self::Crlf => "\r\n",
            Self::Unstated | Self::NoNewline => "\n",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchChunkLine {
    pub(super) kind: ResolvedLineKind,
    pub(super) text: String,
    /// A context line also matches with its leading space, because the space may be text instead of a sign.
    pub(super) alternative: Option<String>,
    pub(super) stated_terminator: PatchStatedLineTerminator,
}

impl PatchChunkLine {
    pub(super) fn is_in_old_text(&self) -> bool {
        self.kind != ResolvedLineKind::Add
    }

    fn is_blank_context(&self) -> bool {
        self.kind == ResolvedLineKind::Context && self.text.trim().is_empty()
    }
}

pub(super) struct PatchChunkInterpretation {
    pub(super) repair: Option<PatchChunkRepair>,
    pub(super) lines: Vec<PatchChunkLine>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchTypingSlipRepairMode {
    Off,
    Undo,
}

pub(super) fn interpretations(
    chunk: &PatchChunk,
    rules: &PatchChunkPlacementRules<'_>,
) -> Vec<PatchChunkInterpretation> {
    let literal: Vec<PatchChunkLine> = chunk.lines.iter().flat_map(split_patch_line).collect();
    let is_unmarked = |line: &PatchLine| line.kind == PatchLineKind::Unmarked;
    let repair = chunk.lines.iter().any(is_unmarked).then_some(PatchChunkRepair::MissingSigns);
    let mut found = vec![PatchChunkInterpretation { repair, lines: literal.clone() }];
    if rules.slip_repair == PatchTypingSlipRepairMode::Off {
        return found;
    }
    let mut push = |repair, lines: Option<Vec<PatchChunkLine>>| {
        if let Some(lines) = lines.filter(|lines| lines.iter().any(PatchChunkLine::is_in_old_text)) {
            found.push(PatchChunkInterpretation { repair: Some(repair), lines });
        }
    };
    push(PatchChunkRepair::TrailingBlankLine, without_trailing_blank(&literal));
    let literal = without_trailing_blank(&literal).unwrap_or(literal);
    push(PatchChunkRepair::MissingSigns, infer_signs(chunk));
    push(PatchChunkRepair::PathComment, without_path_comment(&literal, rules.name));
    push(PatchChunkRepair::EscapedTabs, decode_tab_escapes(&literal, rules.name));
    push(PatchChunkRepair::EscapedNewlines, decode_newline_escapes(&literal));
    found
}

/// A chunk line with lone carriage returns stands for several lines of the file.
fn split_patch_line(line: &PatchLine) -> Vec<PatchChunkLine> {
    let kind = match line.kind {
        PatchLineKind::Context | PatchLineKind::Unmarked => ResolvedLineKind::Context,
        PatchLineKind::Remove => ResolvedLineKind::Remove,
        PatchLineKind::Add => ResolvedLineKind::Add,
    };
    let chunk_line = |text: &str, stated_terminator| PatchChunkLine {
        kind,
        text: text.to_owned(),
        alternative: None,
        stated_terminator,
    };
    let end = if line.has_no_newline_marker {
        PatchStatedLineTerminator::NoNewline
    } else {
        PatchStatedLineTerminator::Unstated
    };
    let mut result: Vec<PatchChunkLine> = lines::iter(&line.text)
        .map(|line| match lines::split_terminator(line) {
            (body, "") => chunk_line(body, end),
            (body, _) => chunk_line(body, PatchStatedLineTerminator::Cr),
        })
        .collect();
    match result.last_mut() {
        None => result.push(chunk_line("", end)),
        // A carriage return at the end of the patch line and the newline after it are one terminator.
        Some(last)
            if last.stated_terminator == PatchStatedLineTerminator::Cr
                && end == PatchStatedLineTerminator::Unstated =>
        {
            last.stated_terminator = PatchStatedLineTerminator::Crlf
        }
        Some(_) => {}
    }
    result
}

fn without_trailing_blank(lines: &[PatchChunkLine]) -> Option<Vec<PatchChunkLine>> {
    let length = lines.iter().rposition(|line| !line.is_blank_context())? + 1;
    (length < lines.len()).then(|| lines[..length].to_vec())
}

/// Treats lines without a sign between added lines as added lines.
fn infer_signs(chunk: &PatchChunk) -> Option<Vec<PatchChunkLine>> {
    let mut kinds: Vec<PatchLineKind> = chunk.lines.iter().map(|line| line.kind).collect();
    for at in 0..kinds.len() {
        let before = at.checked_sub(1).and_then(|before| kinds.get(before));
        let after = kinds[at..].iter().find(|kind| **kind != PatchLineKind::Unmarked);
        if kinds[at] == PatchLineKind::Unmarked
            && before == Some(&PatchLineKind::Add)
            && after == Some(&PatchLineKind::Add)
        {
            kinds[at] = PatchLineKind::Add;
        }
    }
    let mut result = Vec::new();
    for (line, kind) in chunk.lines.iter().zip(kinds) {
        let lines = split_patch_line(&PatchLine { kind, ..line.clone() });
        result.extend(lines.into_iter().map(|line| match kind {
            PatchLineKind::Context => PatchChunkLine { alternative: Some(format!(" {}", line.text)), ..line },
            PatchLineKind::Remove | PatchLineKind::Add | PatchLineKind::Unmarked => line,
        }));
    }
    while result.last().is_some_and(PatchChunkLine::is_blank_context) {
        result.pop();
    }
    Some(result)
}

fn without_path_comment(lines: &[PatchChunkLine], name: &str) -> Option<Vec<PatchChunkLine>> {
    const COMMENT_STARTS: [&str; 7] = ["//", "#", "--", "/*", "<!--", ";", "%"];
    let first = lines.first().filter(|line| line.kind == ResolvedLineKind::Context)?;
    let text = first.text.trim();
    let file = name.rsplit('/').next().filter(|file| !file.is_empty())?;
    (COMMENT_STARTS.iter().any(|start| text.starts_with(start)) && text.contains(file)).then(|| lines[1..].to_vec())
}

/// Decodes `\t` at the start of lines as tabs, except in TeX, where `\t` starts a command.
fn decode_tab_escapes(lines: &[PatchChunkLine], name: &str) -> Option<Vec<PatchChunkLine>> {
    const TEX: [&str; 5] = [".tex", ".sty", ".cls", ".ltx", ".dtx"];
    let is_escaped = |line: &PatchChunkLine| line.text.trim_start().starts_with("\\t");
    if TEX.iter().any(|end| name.ends_with(end)) || !lines.iter().any(|line| line.is_in_old_text() && is_escaped(line))
    {
        return None;
    }
    Some(lines.iter().map(|line| PatchChunkLine { text: decode_leading_tabs(&line.text), ..line.clone() }).collect())
}

/// Decodes `\n` inside lines as newlines only if the chunk quotes a single line.
fn decode_newline_escapes(lines: &[PatchChunkLine]) -> Option<Vec<PatchChunkLine>> {
    let mut old = lines.iter().filter(|line| line.is_in_old_text());
    let (only, None) = (old.next()?, old.next()) else { return None };
    if !only.text.contains("\\n") {
        return None;
    }
    let split = |line: &PatchChunkLine| -> Vec<PatchChunkLine> {
        line.text.split("\\n").map(|text| PatchChunkLine { text: text.to_owned(), ..line.clone() }).collect()
    };
    Some(lines.iter().flat_map(split).collect())
}
