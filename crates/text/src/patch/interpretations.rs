//! Interpretations of a chunk. Owns the readings of one chunk, from literal to those that undo a known slip of a
//! model; each is tried only if the earlier ones do not match. Every quoted line of an interpretation must be in the
//! file.

use crate::lines;

use super::{NoNewlineMarker, PatchChunk, PatchLine, PatchLineKind, PatchRules};

/// A typing slip that was undone to find a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkRepair {
    /// Lines lacked a sign, or the space that is one.
    MissingSigns,
    /// Trailing empty lines were not part of the chunk.
    TrailingBlankLine,
    /// The first line was a comment with the file name.
    PathComment,
    /// Leading tabs were written as `\t`.
    EscapedTabs,
    /// Newlines inside a line were written as `\n`.
    EscapedNewlines,
}

impl ChunkRepair {
    /// The name shown to callers.
    #[must_use]
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

/// The terminator that a patch states for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatedTerminator {
    Unstated,
    Cr,
    Crlf,
    NoNewline,
}

/// One line of a file, as the chunk has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChunkLine {
    pub(super) kind: ResolvedLineKind,
    pub(super) text: String,
    /// An alternative text in the file.
    pub(super) alternative: Option<String>,
    pub(super) stated_terminator: StatedTerminator,
}

impl ChunkLine {
    pub(super) fn is_in_old_text(&self) -> bool {
        self.kind != ResolvedLineKind::Add
    }

    fn is_blank_context(&self) -> bool {
        self.kind == ResolvedLineKind::Context && self.text.trim().is_empty()
    }
}

pub(super) struct ChunkInterpretation {
    pub(super) repair: Option<ChunkRepair>,
    pub(super) lines: Vec<ChunkLine>,
}

/// Whether typing slips are undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlipRepair {
    /// Chunks are taken literally.
    Off,
    /// Known slips are undone.
    Undo,
}

/// The interpretations of a chunk, most literal first.
pub(super) fn interpretations(chunk: &PatchChunk, rules: &PatchRules<'_>) -> Vec<ChunkInterpretation> {
    let literal = chunk_lines(&chunk.lines);
    let bare = chunk.lines.iter().any(|line| line.kind == PatchLineKind::Unmarked).then_some(ChunkRepair::MissingSigns);
    let mut readings = vec![ChunkInterpretation { repair: bare, lines: literal.clone() }];
    if rules.slip_repair == SlipRepair::Off {
        return readings;
    }
    let mut push = |rescue, pieces: Option<Vec<ChunkLine>>| {
        if let Some(pieces) = pieces.filter(|pieces| pieces.iter().any(ChunkLine::is_in_old_text)) {
            readings.push(ChunkInterpretation { repair: Some(rescue), lines: pieces });
        }
    };
    push(ChunkRepair::TrailingBlankLine, without_trailing_blank(&literal));
    let literal = without_trailing_blank(&literal).unwrap_or(literal);
    push(ChunkRepair::MissingSigns, infer_signs(chunk));
    push(ChunkRepair::PathComment, without_path_comment(&literal, rules.name));
    push(ChunkRepair::EscapedTabs, decode_tab_escapes(&literal, rules.name));
    push(ChunkRepair::EscapedNewlines, decode_newline_escapes(&literal));
    readings
}

/// The lines of a chunk, split where the file splits them.
fn chunk_lines(lines: &[PatchLine]) -> Vec<ChunkLine> {
    lines.iter().flat_map(chunk_lines_of).collect()
}

fn chunk_lines_of(line: &PatchLine) -> Vec<ChunkLine> {
    let part = match line.kind {
        PatchLineKind::Context | PatchLineKind::Unmarked => ResolvedLineKind::Context,
        PatchLineKind::Remove => ResolvedLineKind::Remove,
        PatchLineKind::Add => ResolvedLineKind::Add,
    };
    let piece = |text: &str, stated| ChunkLine {
        kind: part,
        text: text.to_owned(),
        alternative: None,
        stated_terminator: stated,
    };
    let end = match line.no_newline_marker {
        NoNewlineMarker::Absent => StatedTerminator::Unstated,
        NoNewlineMarker::Present => StatedTerminator::NoNewline,
    };
    let mut pieces: Vec<ChunkLine> = lines::iter(&line.text)
        .map(|line| match lines::split_terminator(line) {
            (body, "") => piece(body, end),
            (body, _) => piece(body, StatedTerminator::Cr),
        })
        .collect();
    match pieces.last_mut() {
        None => pieces.push(piece("", end)),
        // The carriage return and the newline that ends the patch line are one terminator.
        Some(last) if last.stated_terminator == StatedTerminator::Cr && end == StatedTerminator::Unstated => {
            last.stated_terminator = StatedTerminator::Crlf
        }
        Some(_) => {}
    }
    pieces
}

fn without_trailing_blank(pieces: &[ChunkLine]) -> Option<Vec<ChunkLine>> {
    let length = pieces.iter().rposition(|piece| !piece.is_blank_context())? + 1;
    (length < pieces.len()).then(|| pieces[..length].to_vec())
}

/// Unsigned lines between added lines are added; the leading space of a context line may be part of the line.
fn infer_signs(chunk: &PatchChunk) -> Option<Vec<ChunkLine>> {
    let mut sides: Vec<PatchLineKind> = chunk.lines.iter().map(|line| line.kind).collect();
    for at in 0..sides.len() {
        let before = at.checked_sub(1).and_then(|before| sides.get(before));
        let after = sides[at..].iter().find(|side| **side != PatchLineKind::Unmarked);
        if sides[at] == PatchLineKind::Unmarked
            && before == Some(&PatchLineKind::Add)
            && after == Some(&PatchLineKind::Add)
        {
            sides[at] = PatchLineKind::Add;
        }
    }
    let mut pieces = Vec::new();
    for (line, side) in chunk.lines.iter().zip(sides) {
        let cut = chunk_lines_of(&PatchLine { kind: side, ..line.clone() });
        pieces.extend(cut.into_iter().map(|piece| match side {
            PatchLineKind::Context => ChunkLine { alternative: Some(format!(" {}", piece.text)), ..piece },
            PatchLineKind::Remove | PatchLineKind::Add | PatchLineKind::Unmarked => piece,
        }));
    }
    while pieces.last().is_some_and(ChunkLine::is_blank_context) {
        pieces.pop();
    }
    Some(pieces)
}

/// Removes a first context line that is a comment with the file name.
fn without_path_comment(pieces: &[ChunkLine], name: &str) -> Option<Vec<ChunkLine>> {
    const COMMENT_STARTS: [&str; 7] = ["//", "#", "--", "/*", "<!--", ";", "%"];
    let first = pieces.first().filter(|piece| piece.kind == ResolvedLineKind::Context)?;
    let text = first.text.trim();
    let file = name.rsplit('/').next().filter(|file| !file.is_empty())?;
    (COMMENT_STARTS.iter().any(|remark| text.starts_with(remark)) && text.contains(file)).then(|| pieces[1..].to_vec())
}

/// Decodes `\t` at the start of lines as tabs, except in TeX, where it is a command.
fn decode_tab_escapes(pieces: &[ChunkLine], name: &str) -> Option<Vec<ChunkLine>> {
    const TEX: [&str; 5] = [".tex", ".sty", ".cls", ".ltx", ".dtx"];
    let is_escaped = |piece: &ChunkLine| piece.text.trim_start().starts_with("\\t");
    if TEX.iter().any(|end| name.ends_with(end))
        || !pieces.iter().any(|piece| piece.is_in_old_text() && is_escaped(piece))
    {
        return None;
    }
    let tabbed = |piece: &ChunkLine| {
        let mut rest = piece.text.as_str();
        let mut front = String::new();
        loop {
            if let Some(next) = rest.strip_prefix("\\t") {
                front.push('\t');
                rest = next;
            } else if let Some(next) = rest.strip_prefix([' ', '\t']) {
                front.push_str(&rest[..1]);
                rest = next;
            } else {
                break;
            }
        }
        ChunkLine { text: front + rest, ..piece.clone() }
    };
    Some(pieces.iter().map(tabbed).collect())
}

/// Decodes `\n` inside lines as newlines, if a single line is quoted.
fn decode_newline_escapes(pieces: &[ChunkLine]) -> Option<Vec<ChunkLine>> {
    let mut old = pieces.iter().filter(|piece| piece.is_in_old_text());
    let (only, None) = (old.next()?, old.next()) else { return None };
    if !only.text.contains("\\n") {
        return None;
    }
    let cut = |piece: &ChunkLine| {
        let texts: Vec<String> = piece.text.split("\\n").map(str::to_owned).collect();
        let piece = piece.clone();
        texts.into_iter().map(move |text| ChunkLine { text, ..piece.clone() })
    };
    Some(pieces.iter().flat_map(cut).collect())
}
