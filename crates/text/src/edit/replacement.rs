//! What is written at a place.
//!
//! Owns how a new text takes on the shape of its surroundings: lines that the edit leaves alone keep their bytes, new
//! ones end like their neighbours and follow the uniform difference of indentation. Everything else of the new text
//! is written as given. Never touches a byte outside the place.

use super::select::Selected;
use std::ops::Range;

use super::splice::Splice;
use super::{How, Terminators};
use crate::locate::{Finder, Pass, Place};
use crate::{diff, lines};

/// A splice and the place it belongs to.
pub(super) type Made = (Range<usize>, Splice);

/// Why the splices of an edit cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmade {
    /// This 1-based line of the new text cannot follow the indentation.
    Line(usize),
    /// They would be more than there is room for.
    TooLong,
}

/// The splices of one edit. What they add is taken from `room`, so that no edit makes more than a text may hold: a short
/// call can replace a million places.
pub(super) fn splices(
    finder: &Finder<'_>,
    selected: &Selected,
    room: &mut usize,
) -> Result<Vec<Made>, Unmade> {
    let shape = Shape::new(selected);
    let mut splices = Vec::with_capacity(selected.places.len());
    for place in &selected.places {
        let made = splices.len();
        shape.splice(finder, place, &mut splices).map_err(Unmade::Line)?;
        let grown: usize = splices[made..].iter().map(|(_, splice): &Made| splice.text.len()).sum();
        *room = room.checked_sub(grown).ok_or(Unmade::TooLong)?;
    }
    Ok(splices)
}

/// One edit, taken apart into lines once for all its places.
struct Shape<'a> {
    new: &'a str,
    new_lines: Vec<&'a str>,
    old_count: usize,
    hunks: Vec<diff::Hunk>,
    /// Whether the quote ends its last line.
    old_ends: bool,
    /// Whether the quote is nothing but ends of lines.
    old_is_ends: bool,
    verbatim: bool,
    /// Whether what replaces whole lines is whole lines.
    whole_lines: bool,
}

impl<'a> Shape<'a> {
    fn new(selected: &'a Selected) -> Self {
        let old: Vec<Vec<u8>> = lines::iter(&selected.old).map(plain).collect();
        let new_lines: Vec<&str> = lines::iter(&selected.new).collect();
        let new: Vec<Vec<u8>> = new_lines.iter().map(|line| plain(line)).collect();
        let old_slices: Vec<&[u8]> = old.iter().map(Vec::as_slice).collect();
        let new_slices: Vec<&[u8]> = new.iter().map(Vec::as_slice).collect();
        // Whoever quoted `\r\n` byte for byte sees terminators, and means those of the new text.
        let sees = selected.pass() == Some(Pass::Exact) && selected.old.contains('\r');
        Self {
            new: &selected.new,
            hunks: match selected.how {
                How::Fallback(_) => vec![diff::Hunk { old: 0..old.len(), new: 0..new.len() }],
                How::Pass(_)
                | How::Unnumbered(_)
                | How::Unescaped(_)
                | How::Unchanged
                | How::AlreadyApplied => diff::line_hunks(&old_slices, &new_slices),
            },
            old_count: old.len(),
            old_ends: selected.old.ends_with(['\n', '\r']),
            old_is_ends: selected.old.chars().all(|c| matches!(c, '\n' | '\r')),
            new_lines,
            whole_lines: selected.terminators == Terminators::OfLines,
            verbatim: sees || selected.terminators == Terminators::AsGiven,
        }
    }

    fn splice(&self, finder: &Finder<'_>, place: &Place, splices: &mut Vec<Made>) -> Result<(), usize> {
        if self.verbatim {
            let mut text = self.new.to_owned();
            if !text.is_empty() && !text.ends_with(['\n', '\r']) && self.must_end(finder, place) {
                text.push_str(terminator(finder, *place.lines.end()).unwrap_or("\n"));
            }
            splices.push((place.bytes.clone(), Splice { bytes: place.bytes.clone(), text }));
            return Ok(());
        }
        let mut starts = vec![place.bytes.start];
        starts.extend(lines::iter(&finder.text()[place.bytes.clone()]).scan(
            place.bytes.start,
            |at, line| {
                *at += line.len();
                Some(*at)
            },
        ));
        // A resembling block may have other lines than the quote: then it goes as a whole.
        let is_aligned = starts.len() == self.old_count + 1;
        let whole = [diff::Hunk { old: 0..starts.len() - 1, new: 0..self.new_lines.len() }];
        for hunk in if is_aligned { &self.hunks[..] } else { &whole[..] } {
            let mut text = String::new();
            if hunk.old.start == self.old_count && self.ends_open(finder, place) {
                // The line above was the last one and did not end; now it must.
                text.push_str(terminator(finder, *place.lines.end()).unwrap_or("\n"));
            }
            for line in hunk.new.clone() {
                text.push_str(&self.line(finder, place, hunk, line)?);
            }
            let splice = Splice { bytes: starts[hunk.old.start]..starts[hunk.old.end], text };
            splices.push((place.bytes.clone(), splice));
        }
        Ok(())
    }

    /// One line of the new text as it is written at a place.
    fn line(
        &self,
        finder: &Finder<'_>,
        place: &Place,
        hunk: &diff::Hunk,
        line: usize,
    ) -> Result<String, usize> {
        let (body, given) = lines::split_terminator(self.new_lines[line]);
        let body = match &place.delta {
            Some(delta) => delta.apply(body).ok_or(line + 1)?,
            None => body.into(),
        };
        let first = *place.lines.start();
        // The line of the text that this one takes the place of, or else stands behind.
        let beside = if hunk.old.is_empty() {
            first + hunk.old.start.saturating_sub(1)
        } else {
            first + (hunk.old.start + (line - hunk.new.start)).min(hunk.old.end - 1)
        };
        let is_last = line + 1 == self.new_lines.len();
        let terminator = match given {
            "\n" | "\r\n" if is_last && self.ends_open(finder, place) => "",
            "\n" | "\r\n" => terminator(finder, beside).unwrap_or(given),
            "" if is_last && self.must_end(finder, place) => terminator(finder, beside).unwrap_or("\n"),
            _ => given,
        };
        Ok(format!("{body}{terminator}"))
    }

    /// Whether the new text must end its last line: whole lines were quoted, and the line that follows is not meant to
    /// move up. Whoever quotes from within a line, or its end alone, joins lines on purpose.
    fn must_end(&self, finder: &Finder<'_>, place: &Place) -> bool {
        let (text, Range { start, end }) = (finder.text(), place.bytes.clone());
        let starts_line = start == 0 || text[..start].ends_with(['\n', '\r']);
        self.whole_lines
            && self.old_ends
            && !self.old_is_ends
            && starts_line
            && end < text.len()
            && !finder.halves_pair(end)
    }

    /// Whether a quote that ends its last line was found at the end of a text that does not.
    fn ends_open(&self, finder: &Finder<'_>, place: &Place) -> bool {
        let text = finder.text();
        self.old_ends && place.bytes.end == text.len() && !text.ends_with(['\n', '\r'])
    }
}

/// A line as it is compared: any terminator is `\n`.
fn plain(line: &str) -> Vec<u8> {
    let (body, terminator) = lines::split_terminator(line);
    let mut bytes = body.as_bytes().to_vec();
    if !terminator.is_empty() {
        bytes.push(b'\n');
    }
    bytes
}

/// How the line ends, or the nearest one above or below it that ends at all.
fn terminator<'t>(finder: &Finder<'t>, line: usize) -> Option<&'t str> {
    let of = |line: usize| {
        let (_, terminator) = lines::split_terminator(&finder.text()[finder.line_bytes(line)]);
        (!terminator.is_empty()).then_some(terminator)
    };
    // Only the last line of a text can be open, so its neighbour above is the only one there is.
    of(line).or_else(|| of(line.saturating_sub(1)))
}
