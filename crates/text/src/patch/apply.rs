//! The chunks of a patch applied to one text. Owns the rules by which that is done, as values, and what is told about
//! it. All chunks are judged before the text is put together; one that cannot be placed fails them all.

use std::borrow::Cow;

use crate::locate::Pass;

use super::find::Search;
use super::index::{FileLine, Index};
use super::rescue::{Part, Piece, Said, Slips};
use super::splice::{Ending, NewLine, Splice, constant, default_terminator};
use super::{Chunk, Rescue};

/// When a chunk that fits several places is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repeats {
    /// When its lines stand in several places behind the last chunk, and nothing else tells them apart.
    OfLines,
    /// When its text is more than once in the text, also within lines.
    OfText,
}

/// Where lines go that come without any that are there, and without an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Insertion {
    /// Behind the last line.
    AtEnd,
    /// Before the first line.
    AtTop,
}

/// What a chunk is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sequence {
    /// The text as it was: chunks cannot see each other's lines.
    Together,
    /// The text as the chunks before left it.
    OneByOne,
}

/// How chunks are placed.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The name of the file, for what depends on it.
    pub name: &'a str,
    /// How lines are compared, in this order.
    pub passes: &'static [Pass],
    /// Whether known slips of a chunk's writer are undone.
    pub slips: Slips,
    /// When a chunk that fits several places is refused.
    pub repeats: Repeats,
    /// Where lines go that come alone.
    pub insertion: Insertion,
    /// What a chunk is applied to.
    pub sequence: Sequence,
    /// How the text ends once its last line was replaced.
    pub ending: Ending,
}

impl<'a> Rules<'a> {
    /// Whatever has one meaning is found.
    #[must_use]
    pub fn tolerant(name: &'a str) -> Self {
        Self {
            name,
            passes: &[Pass::Endings, Pass::TrailingSpace, Pass::LookAlike, Pass::Indentation],
            slips: Slips::Undone,
            repeats: Repeats::OfLines,
            insertion: Insertion::AtEnd,
            sequence: Sequence::Together,
            ending: Ending::OfPatch,
        }
    }

    /// Lines are as quoted, but for their terminators.
    #[must_use]
    pub fn strict(name: &'a str) -> Self {
        Self {
            name,
            passes: &[Pass::Endings],
            slips: Slips::Stay,
            repeats: Repeats::OfText,
            insertion: Insertion::AtTop,
            sequence: Sequence::OneByOne,
            ending: Ending::OfFile,
        }
    }
}

/// A text after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The text.
    pub text: String,
    /// How each chunk was found, in the order of the patch.
    pub matched: Vec<Matched>,
    /// Lines that came.
    pub added: usize,
    /// Lines that went.
    pub removed: usize,
    /// What became of the newline at the end.
    pub final_newline: FinalNewline,
}

/// What became of the newline at the end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinalNewline {
    /// It is there as before, or missing as before.
    Same,
    /// It was missing and is there.
    Added,
    /// It was there and is missing.
    Dropped,
}

/// How a chunk was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matched {
    /// The 1-based line of the text that it starts at.
    pub line: usize,
    /// How its lines were compared.
    pub pass: Pass,
    /// The slip that was undone, if any.
    pub rescue: Option<Rescue>,
    /// What said where it goes.
    pub ground: Ground,
}

/// What said where a chunk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ground {
    /// What it says itself: the lines it quotes, its anchor, that it is the end.
    Said,
    /// It quotes nothing, and comes behind the line of this number.
    Number,
    /// It quotes nothing, and comes where such lines come: [`Insertion`].
    Nothing,
}

/// A chunk that cannot be placed. Nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("chunk {chunk} (line {line} of the patch): {reason}")]
pub struct ApplyError {
    /// Which chunk, 0-based.
    pub chunk: usize,
    /// The 1-based line of the patch that starts it.
    pub line: usize,
    /// Why.
    pub reason: Reason,
}

/// Why a chunk cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Its lines are not in the text.
    #[error("its lines are not in the text")]
    NotFound {
        /// The lines it quotes, each ended by a newline.
        quoted: String,
        /// The line where the text already is as the chunk would make it.
        already: Option<usize>,
    },
    /// A line behind `@@` is not in the text.
    #[error("the line {anchor:?} behind @@ is not in the text")]
    AnchorNotFound {
        /// The line.
        anchor: String,
    },
    /// It fits several places.
    #[error("it fits {} places", lines.len())]
    Ambiguous {
        /// The lines it could start at, 1-based.
        lines: Vec<usize>,
        /// How many lines it quotes.
        count: usize,
    },
    /// It and another chunk want the same lines.
    #[error("it wants lines that chunk {other} changes")]
    Overlap {
        /// The other one, 0-based.
        other: usize,
        /// The 1-based line that both want.
        line: usize,
    },
    /// It quotes nothing, and the number that says where it goes counts the lines of another text.
    #[error("only the number {line} says where its lines go, and this is not the text that was numbered")]
    NumberOnly {
        /// The 1-based line that they would come behind.
        line: usize,
    },
    /// Finding it would take too long.
    #[error("the text repeats too much to look for it")]
    Exhausted,
}

/// `text` with `chunks` applied.
///
/// # Errors
///
/// [`ApplyError`] for the first chunk that cannot be placed.
pub fn apply(text: &str, chunks: &[Chunk], rules: &Rules<'_>) -> Result<Applied, ApplyError> {
    let mut applied = match rules.sequence {
        Sequence::Together => together(text, chunks, 0, rules)?,
        Sequence::OneByOne => {
            let mut running = together(text, &[], 0, rules)?;
            for (number, chunk) in chunks.iter().enumerate() {
                let next = together(&running.text, std::slice::from_ref(chunk), number, rules)?;
                running.matched.extend(next.matched);
                running.added += next.added;
                running.removed += next.removed;
                running.text = next.text;
            }
            running
        }
    };
    let is_open = |text: &str| !text.is_empty() && !text.ends_with(['\n', '\r']);
    applied.final_newline = match (is_open(text), is_open(&applied.text)) {
        (true, false) if !applied.text.is_empty() => FinalNewline::Added,
        (false, true) if !text.is_empty() => FinalNewline::Dropped,
        (true | false, true | false) => FinalNewline::Same,
    };
    Ok(applied)
}

/// Applies chunks to one text; `first` is the number of the first one.
fn together(text: &str, chunks: &[Chunk], first: usize, rules: &Rules<'_>) -> Result<Applied, ApplyError> {
    let index = Index::new(text);
    let mut search = Search::new(text, &index, rules);
    let mut splice = Splice::new(index.lines.len());
    let mut placed = Vec::with_capacity(chunks.len());
    let failed = |(chunk, at): (usize, &Chunk), reason| ApplyError { chunk, line: at.line, reason };
    for (number, chunk) in (first..).zip(chunks) {
        let here = search.place(chunk, &splice).map_err(|reason| failed((number, chunk), reason))?;
        claim(&mut splice, number, &index.lines, &here);
        placed.push(here);
    }
    for (chunk, placed) in (first..).zip(chunks).zip(&placed) {
        if let Some(reason) = search.doubt(placed) {
            return Err(failed(chunk, reason));
        }
    }
    let matched = placed
        .iter()
        .map(|&Placed { start, pass, rescue, ground, .. }| Matched { line: start + 1, pass, rescue, ground })
        .collect();
    let (added, removed) = (splice.added(), splice.removed());
    let text = splice.text(&index.lines, rules.ending);
    Ok(Applied { text, matched, added, removed, final_newline: FinalNewline::Same })
}

/// A chunk with its place.
pub(super) struct Placed<'c> {
    /// The 0-based line it starts at, or that its lines come before.
    pub(super) start: usize,
    pub(super) pieces: Cow<'c, [Piece]>,
    pub(super) pass: Pass,
    pub(super) rescue: Option<Rescue>,
    pub(super) ground: Ground,
    /// The 1-based lines it fits at, if only the order of the chunks chose among them.
    pub(super) rivals: Vec<usize>,
}

/// Writes down what a placed chunk does to the lines.
fn claim(splice: &mut Splice, number: usize, lines: &[FileLine<'_>], placed: &Placed<'_>) {
    let literal = is_literal(lines, placed);
    let outspoken = placed.pieces.iter().any(|piece| piece.said == Said::Missing);
    let is_alone = !placed.pieces.iter().any(Piece::is_old);
    let mut at = placed.start;
    // The terminators of the lines that went, for those that come in their stead.
    let mut gone: Vec<&'static str> = Vec::new();
    let mut came = 0;
    for piece in placed.pieces.iter() {
        match piece.part {
            Part::Keep => {
                splice.quoted_by[at] = Some(number);
                at += 1;
                gone.clear();
                came = 0;
            }
            Part::Remove => {
                splice.quoted_by[at] = Some(number);
                splice.removed_by[at] = Some(number);
                gone.extend(constant(lines[at].terminator));
                at += 1;
            }
            Part::Add => {
                let beside = gone.get(came).or(gone.last()).copied();
                let terminator = match (piece.said, literal) {
                    (Said::Cr, _) => "\r",
                    (Said::Crlf, Literal::Yes) => "\r\n",
                    (Said::Nothing | Said::Missing, Literal::Yes) => "\n",
                    (Said::Crlf | Said::Nothing | Said::Missing, Literal::No) => {
                        beside.unwrap_or_else(|| neighbour(lines, at))
                    }
                };
                came += 1;
                let new = NewLine { text: piece.text.clone(), terminator, said: piece.said, outspoken };
                // What comes alone at the end comes behind whatever becomes of the last lines.
                let slot = if at == lines.len() && is_alone { at + 1 } else { at };
                splice.inserted.entry(slot).or_default().push(new);
            }
        }
    }
}

/// Whether a chunk's own terminators are those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Literal {
    Yes,
    No,
}

/// A chunk that shows other terminators than newlines, and shows those that are there, means them.
fn is_literal(lines: &[FileLine<'_>], placed: &Placed<'_>) -> Literal {
    let shown = placed.pieces.iter().any(|piece| matches!(piece.said, Said::Cr | Said::Crlf));
    let old = placed.pieces.iter().filter(|piece| piece.is_old());
    let fits = old.zip(&lines[placed.start.min(lines.len())..]).all(|(piece, line)| {
        let written = match piece.said {
            Said::Nothing => "\n",
            Said::Cr => "\r",
            Said::Crlf => "\r\n",
            Said::Missing => "",
        };
        written == line.terminator
    });
    if shown && fits { Literal::Yes } else { Literal::No }
}

/// The terminator of the nearest line: the one before, else the one behind.
fn neighbour(lines: &[FileLine<'_>], at: usize) -> &'static str {
    let before = lines[..at].iter().rev().find_map(|line| constant(line.terminator));
    let behind = || lines.get(at).and_then(|line| constant(line.terminator));
    before.or_else(behind).unwrap_or_else(|| default_terminator(lines))
}
