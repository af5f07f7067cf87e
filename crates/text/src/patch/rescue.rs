//! What a chunk can mean. Owns the readings of one chunk, from the letter to those that undo a known slip of a model;
//! each is tried only when the ones before are nowhere in the file. A reading finds or does not find: whatever it
//! quotes must be in the file, line by line.

use crate::lines;

use super::{Chunk, Line, Newline, Rules, Side};

/// A slip that was undone to find a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rescue {
    /// Lines had no sign, or lacked the space that is one.
    Unsigned,
    /// Empty lines at the end of a chunk were not part of it.
    TrailingBlank,
    /// The first line was a remark that names the file.
    PathRemark,
    /// Tabs in front of lines were written as `\t`.
    TabEscapes,
    /// Line ends inside a line were written as `\n`.
    LineEscapes,
}

impl Rescue {
    /// The name shown to callers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned_lines",
            Self::TrailingBlank => "trailing_blank_lines",
            Self::PathRemark => "path_remark",
            Self::TabEscapes => "tab_escapes",
            Self::LineEscapes => "line_escapes",
        }
    }
}

/// What becomes of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Keep,
    Remove,
    Add,
}

/// What a patch says about the end of a line, besides that it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Cr,
    Crlf,
    Missing,
}

/// One line of a file, as a chunk has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) part: Part,
    pub(super) text: String,
    /// What the text may be as well, in the file.
    pub(super) other: Option<String>,
    pub(super) said: Said,
}

impl Piece {
    pub(super) fn is_old(&self) -> bool {
        self.part != Part::Add
    }

    fn is_blank_keep(&self) -> bool {
        self.part == Part::Keep && self.text.trim().is_empty()
    }
}

/// One reading of a chunk.
pub(super) struct ChunkReading {
    pub(super) rescue: Option<Rescue>,
    pub(super) pieces: Vec<Piece>,
}

/// Whether slips are undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slips {
    /// A chunk means what it says.
    Stay,
    /// Known ones are.
    Undone,
}

/// The readings of a chunk, most literal first.
pub(super) fn readings(chunk: &Chunk, rules: &Rules<'_>) -> Vec<ChunkReading> {
    let literal = pieces(&chunk.lines);
    let bare = chunk.lines.iter().any(|line| line.side == Side::Bare).then_some(Rescue::Unsigned);
    let mut readings = vec![ChunkReading { rescue: bare, pieces: literal.clone() }];
    if rules.slips == Slips::Stay {
        return readings;
    }
    let mut push = |rescue, pieces: Option<Vec<Piece>>| {
        if let Some(pieces) = pieces.filter(|pieces| pieces.iter().any(Piece::is_old)) {
            readings.push(ChunkReading { rescue: Some(rescue), pieces });
        }
    };
    push(Rescue::TrailingBlank, without_trailing_blank(&literal));
    let literal = without_trailing_blank(&literal).unwrap_or(literal);
    push(Rescue::Unsigned, signed(chunk));
    push(Rescue::PathRemark, without_remark(&literal, rules.name));
    push(Rescue::TabEscapes, with_tabs(&literal, rules.name));
    push(Rescue::LineEscapes, with_line_ends(&literal));
    readings
}

/// The lines of a chunk, cut where the file would have them cut.
fn pieces(lines: &[Line]) -> Vec<Piece> {
    lines.iter().flat_map(pieces_of).collect()
}

fn pieces_of(line: &Line) -> Vec<Piece> {
    let part = match line.side {
        Side::Keep | Side::Bare => Part::Keep,
        Side::Remove => Part::Remove,
        Side::Add => Part::Add,
    };
    let piece = |text: &str, said| Piece { part, text: text.to_owned(), other: None, said };
    let end = match line.newline {
        Newline::Unsaid => Said::Nothing,
        Newline::Missing => Said::Missing,
    };
    let mut pieces: Vec<Piece> = lines::iter(&line.text)
        .map(|line| match lines::split_terminator(line) {
            (body, "") => piece(body, end),
            (body, _) => piece(body, Said::Cr),
        })
        .collect();
    match pieces.last_mut() {
        None => pieces.push(piece("", end)),
        // The carriage return and the newline that ends the line of the patch are one terminator.
        Some(last) if last.said == Said::Cr && end == Said::Nothing => last.said = Said::Crlf,
        Some(_) => {}
    }
    pieces
}

fn without_trailing_blank(pieces: &[Piece]) -> Option<Vec<Piece>> {
    let kept = pieces.iter().rposition(|piece| !piece.is_blank_keep())? + 1;
    (kept < pieces.len()).then(|| pieces[..kept].to_vec())
}

/// Lines without a sign between lines that come are taken to come; the space in front of a line that stays may have
/// been its own.
fn signed(chunk: &Chunk) -> Option<Vec<Piece>> {
    let mut sides: Vec<Side> = chunk.lines.iter().map(|line| line.side).collect();
    for at in 0..sides.len() {
        let before = at.checked_sub(1).and_then(|before| sides.get(before));
        let after = sides[at..].iter().find(|side| **side != Side::Bare);
        if sides[at] == Side::Bare && before == Some(&Side::Add) && after == Some(&Side::Add) {
            sides[at] = Side::Add;
        }
    }
    let mut pieces = Vec::new();
    for (line, side) in chunk.lines.iter().zip(sides) {
        let cut = pieces_of(&Line { side, ..line.clone() });
        pieces.extend(cut.into_iter().map(|piece| match side {
            Side::Keep => Piece { other: Some(format!(" {}", piece.text)), ..piece },
            Side::Remove | Side::Add | Side::Bare => piece,
        }));
    }
    while pieces.last().is_some_and(Piece::is_blank_keep) {
        pieces.pop();
    }
    Some(pieces)
}

/// Without a first line that stays and is a remark with the file's name.
fn without_remark(pieces: &[Piece], name: &str) -> Option<Vec<Piece>> {
    const REMARKS: [&str; 7] = ["//", "#", "--", "/*", "<!--", ";", "%"];
    let first = pieces.first().filter(|piece| piece.part == Part::Keep)?;
    let text = first.text.trim();
    let file = name.rsplit('/').next().filter(|file| !file.is_empty())?;
    (REMARKS.iter().any(|remark| text.starts_with(remark)) && text.contains(file))
        .then(|| pieces[1..].to_vec())
}

/// With `\t` in front of lines read as tabs; in TeX that is a command.
fn with_tabs(pieces: &[Piece], name: &str) -> Option<Vec<Piece>> {
    const TEX: [&str; 5] = [".tex", ".sty", ".cls", ".ltx", ".dtx"];
    let is_escaped = |piece: &Piece| piece.text.trim_start().starts_with("\\t");
    if TEX.iter().any(|end| name.ends_with(end))
        || !pieces.iter().any(|piece| piece.is_old() && is_escaped(piece))
    {
        return None;
    }
    let tabbed = |piece: &Piece| {
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
        Piece { text: front + rest, ..piece.clone() }
    };
    Some(pieces.iter().map(tabbed).collect())
}

/// With `\n` inside lines read as line ends, when a single line is quoted.
fn with_line_ends(pieces: &[Piece]) -> Option<Vec<Piece>> {
    let mut old = pieces.iter().filter(|piece| piece.is_old());
    let (only, None) = (old.next()?, old.next()) else { return None };
    if !only.text.contains("\\n") {
        return None;
    }
    let cut = |piece: &Piece| {
        let texts: Vec<String> = piece.text.split("\\n").map(str::to_owned).collect();
        let piece = piece.clone();
        texts.into_iter().map(move |text| Piece { text, ..piece.clone() })
    };
    Some(pieces.iter().flat_map(cut).collect())
}
