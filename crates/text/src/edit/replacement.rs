//! Adapts the new text of an edit to the lines of the match that it replaces.
//!
//! Lines that are the same in the quote and in the new text keep the bytes that they have in the file. Added lines get
//! the terminator of a neighbouring line and the indentation of the matched text.

use std::ops::Range;

use super::select::PlannedEditReplacement;
use super::splice::TextSplice;
use super::{EditErrorKind, NewTextLineTerminatorRule, QuoteMatchMethod};
use crate::locate::{FuzzyTextMatchPass, QuoteMatch, QuoteSearchHaystack};
use crate::{diff, lines};

/// A splice, preceded by the byte range of the quote match that the splice belongs to.
pub(super) type PlacedSplice = (Range<usize>, TextSplice);

/// Builds the splices of one edit; `room` is the number of bytes that may still be inserted. The number of inserted
/// bytes is limited, because one short edit can replace a million matches.
pub(super) fn build_splices(
    finder: &QuoteSearchHaystack<'_>,
    selected: &PlannedEditReplacement,
    room: &mut usize,
) -> Result<Vec<PlacedSplice>, EditErrorKind> {
    let template = EditSpliceBuilder::new(selected);
    let mut splices = Vec::with_capacity(selected.matches.len());
    for found in &selected.matches {
        let count = splices.len();
        template
            .build_splices_for_match(finder, found, &mut splices)
            .map_err(|line| EditErrorKind::Unindentable { line, method: selected.method.clone() })?;
        let inserted: usize = splices[count..].iter().map(|(_, splice): &PlacedSplice| splice.text.len()).sum();
        *room = room.checked_sub(inserted).ok_or(EditErrorKind::TooLong)?;
    }
    Ok(splices)
}

/// A builder that splits the quote and the new text of an edit into lines only once.
struct EditSpliceBuilder<'a> {
    new: &'a str,
    new_lines: Vec<&'a str>,
    old_count: usize,
    hunks: Vec<diff::DiffHunkRanges>,
    quote_ends_with_newline: bool,
    quote_is_only_terminators: bool,
    verbatim: bool,
    /// Whether a missing final terminator is added to a new text that replaces whole lines.
    whole_lines: bool,
}

impl<'a> EditSpliceBuilder<'a> {
    fn new(selected: &'a PlannedEditReplacement) -> Self {
        let old: Vec<Vec<u8>> = lines::iter(&selected.old).map(comparable_line).collect();
        let new_lines: Vec<&str> = lines::iter(&selected.new).collect();
        let new: Vec<Vec<u8>> = new_lines.iter().map(|line| comparable_line(line)).collect();
        let old_slices: Vec<&[u8]> = old.iter().map(Vec::as_slice).collect();
        let new_slices: Vec<&[u8]> = new.iter().map(Vec::as_slice).collect();
        // If a quote with `\r` matches byte for byte, its author sees terminators. The terminators of the new text are
        // then written as given.
        let quotes_cr = selected.match_pass() == Some(FuzzyTextMatchPass::Exact) && selected.old.contains('\r');
        Self {
            new: &selected.new,
            hunks: if matches!(selected.method, QuoteMatchMethod::Similarity(_)) {
                vec![diff::DiffHunkRanges { old: 0..old.len(), new: 0..new.len() }]
            } else {
                diff::line_hunks(&old_slices, &new_slices)
            },
            old_count: old.len(),
            quote_ends_with_newline: selected.old.ends_with(['\n', '\r']),
            quote_is_only_terminators: selected.old.chars().all(|c| matches!(c, '\n' | '\r')),
            new_lines,
            whole_lines: selected.terminators == NewTextLineTerminatorRule::ReplacedLines,
            verbatim: quotes_cr || selected.terminators == NewTextLineTerminatorRule::AsGiven,
        }
    }

    fn build_splices_for_match(
        &self,
        finder: &QuoteSearchHaystack<'_>,
        found: &QuoteMatch,
        splices: &mut Vec<PlacedSplice>,
    ) -> Result<(), usize> {
        if self.verbatim {
            let mut text = self.new.to_owned();
            if !text.is_empty() && !text.ends_with(['\n', '\r']) && self.needs_terminator(finder, found) {
                text.push_str(terminator_of_line(finder, *found.lines.end()).unwrap_or("\n"));
            }
            splices.push((found.bytes.clone(), TextSplice { bytes: found.bytes.clone(), text }));
            return Ok(());
        }
        let mut starts = vec![found.bytes.start];
        starts.extend(lines::iter(&finder.text()[found.bytes.clone()]).scan(found.bytes.start, |at, line| {
            *at += line.len();
            Some(*at)
        }));
        // A block found by similarity may have another number of lines than the quote and is replaced as a whole.
        let is_aligned = starts.len() == self.old_count + 1;
        let whole = [diff::DiffHunkRanges { old: 0..starts.len() - 1, new: 0..self.new_lines.len() }];
        for hunk in if is_aligned { &self.hunks[..] } else { &whole[..] } {
            let mut text = String::new();
            if hunk.old.start == self.old_count && self.ends_without_terminator(finder, found) {
                // The unterminated last line of the text needs a terminator, because a new line follows.
                text.push_str(terminator_of_line(finder, *found.lines.end()).unwrap_or("\n"));
            }
            for line in hunk.new.clone() {
                text.push_str(&self.line(finder, found, hunk, line)?);
            }
            let splice = TextSplice { bytes: starts[hunk.old.start]..starts[hunk.old.end], text };
            splices.push((found.bytes.clone(), splice));
        }
        Ok(())
    }

    fn line(
        &self,
        finder: &QuoteSearchHaystack<'_>,
        found: &QuoteMatch,
        hunk: &diff::DiffHunkRanges,
        line: usize,
    ) -> Result<String, usize> {
        let (body, given) = lines::split_terminator(self.new_lines[line]);
        let body = match &found.indentation_shift {
            Some(delta) => delta.apply_to_line(body).ok_or(line + 1)?,
            None => body.into(),
        };
        let first = *found.lines.start();
        let beside = if hunk.old.is_empty() {
            first + hunk.old.start.saturating_sub(1)
        } else {
            first + (hunk.old.start + (line - hunk.new.start)).min(hunk.old.end - 1)
        };
        let is_last = line + 1 == self.new_lines.len();
        let terminator = match given {
            "\n" | "\r\n" if is_last && self.ends_without_terminator(finder, found) => "",
            "\n" | "\r\n" => terminator_of_line(finder, beside).unwrap_or(given),
            "" if is_last && self.needs_terminator(finder, found) => terminator_of_line(finder, beside).unwrap_or("\n"),
            _ => given,
        };
        Ok(format!("{body}{terminator}"))
    }

    /// Whether a terminator is added to the new text, so that its last line is not joined to the following line. An
    /// edit joins lines on purpose if its quote starts within a line or consists only of terminators.
    fn needs_terminator(&self, finder: &QuoteSearchHaystack<'_>, found: &QuoteMatch) -> bool {
        let (text, Range { start, end }) = (finder.text(), found.bytes.clone());
        let starts_line = start == 0 || text[..start].ends_with(['\n', '\r']);
        self.whole_lines
            && self.quote_ends_with_newline
            && !self.quote_is_only_terminators
            && starts_line
            && end < text.len()
            && !finder.splits_crlf(end)
    }

    /// Whether the match reaches the end of a text without a final newline, although the quote ends with a newline.
    fn ends_without_terminator(&self, finder: &QuoteSearchHaystack<'_>, found: &QuoteMatch) -> bool {
        let text = finder.text();
        self.quote_ends_with_newline && found.bytes.end == text.len() && !text.ends_with(['\n', '\r'])
    }
}

fn comparable_line(line: &str) -> Vec<u8> {
    let (body, terminator) = lines::split_terminator(line);
    let mut bytes = body.as_bytes().to_vec();
    if !terminator.is_empty() {
        bytes.push(b'\n');
    }
    bytes
}

fn terminator_of_line<'t>(finder: &QuoteSearchHaystack<'t>, line: usize) -> Option<&'t str> {
    let terminator = |line: usize| {
        let (_, terminator) = lines::split_terminator(&finder.text()[finder.line_bytes(line)]);
        (!terminator.is_empty()).then_some(terminator)
    };
    // Only the last line of a text can be unterminated, so the line above has a terminator.
    terminator(line).or_else(|| terminator(line.saturating_sub(1)))
}
