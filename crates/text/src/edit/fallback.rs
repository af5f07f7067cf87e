//! Blocks that resemble a quote, for vocabularies that promise to take them.
//!
//! Owns three published ways to resemble: lines equal but for white space at both ends, one line equal but for the
//! amount of white space, and a block between the quote's first and last line. None is safe, so none is used unless
//! a vocabulary asks for it. Promises all candidates of the first way that has any. Never picks one of several.

use crate::lines;
use crate::locate::{Finder, Place};

/// The fewest lines of a quote that is found by its first and last.
const ANCHORED_LINES_MIN: usize = 3;

/// A way to resemble a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// Lines equal but for white space at both ends.
    TrimmedLines,
    /// One line equal but for the amount of white space.
    CollapsedSpace,
    /// A block between the first and the last line of the quote.
    BlockAnchor,
}

impl Fallback {
    /// The name shown to callers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TrimmedLines => "trimmed_lines",
            Self::CollapsedSpace => "collapsed_space",
            Self::BlockAnchor => "block_anchor",
        }
    }
}

/// The candidates of the first way that has any.
pub(super) fn find(finder: &Finder<'_>, quote: &str) -> Option<(Fallback, Vec<Place>)> {
    let quoted: Vec<&str> = lines::iter(quote).map(str::trim).collect();
    if quoted.iter().all(|line| line.is_empty()) {
        return None;
    }
    let text: Vec<&str> = (1..=finder.line_count()).map(|line| finder.line(line).trim()).collect();
    let ends = quote.ends_with('\n');
    let block = |first: usize, last: usize| {
        let end = finder.line_bytes(last + 1);
        let end = if ends { end.end } else { end.start + finder.line(last + 1).len() };
        Place { bytes: finder.line_bytes(first + 1).start..end, lines: first + 1..=last + 1, delta: None }
    };
    let trimmed: Vec<Place> = crate::locate::blocks(&text, &quoted)
        .into_iter()
        .map(|first| block(first, first + quoted.len() - 1))
        .collect();
    if !trimmed.is_empty() {
        return Some((Fallback::TrimmedLines, trimmed));
    }
    if let [line] = quoted[..] {
        let collapsed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = collapsed(line);
        let same: Vec<Place> = (0..text.len())
            .filter(|&at| text[at].contains(char::is_whitespace) && collapsed(text[at]) == wanted)
            .map(|at| block(at, at))
            .collect();
        return (!same.is_empty()).then_some((Fallback::CollapsedSpace, same));
    }
    if quoted.len() < ANCHORED_LINES_MIN {
        return None;
    }
    let (first, last) = (quoted[0], quoted[quoted.len() - 1]);
    let mut anchored = Vec::new();
    let mut next_last = None;
    for at in (0..text.len()).rev() {
        if text[at] == first
            && let Some(end) = closing(&text, at, last, next_last)
        {
            anchored.push(block(at, end));
        }
        if text[at] == last {
            next_last = Some(at);
        }
    }
    anchored.reverse();
    (!anchored.is_empty()).then_some((Fallback::BlockAnchor, anchored))
}

/// The first line from two below `at` on that equals `last`, given the first one below `at`.
fn closing(text: &[&str], at: usize, last: &str, below: Option<usize>) -> Option<usize> {
    let below = below?;
    if below >= at + 2 {
        return Some(below);
    }
    (at + 2..text.len()).find(|&line| text[line] == last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, quote: &str) -> Option<(Fallback, Vec<String>)> {
        let (fallback, places) = find(&Finder::new(text), quote)?;
        Some((fallback, places.into_iter().map(|place| text[place.bytes].to_owned()).collect()))
    }

    #[test]
    fn each_way_finds_its_kind() {
        let one = |fallback, text: &str| Some((fallback, vec![text.to_owned()]));
        let text = "  if a:\n      b()\n";
        assert_eq!(found(text, "if a:\n  b()"), one(Fallback::TrimmedLines, "  if a:\n      b()"));
        assert_eq!(found("let   x =  1;\n", "let x = 1;"), one(Fallback::CollapsedSpace, "let   x =  1;"));
        let body = "f {\n  a;\n  b;\n  c;\n}\n";
        assert_eq!(found(body, "f {\n  other\n}"), one(Fallback::BlockAnchor, "f {\n  a;\n  b;\n  c;\n}"));
        assert_eq!(found(" x\n  x\n", "\tx\n").unwrap().1, [" x\n", "  x\n"]);
        assert_eq!(found("a\nb\n", "a\nc"), None);
        assert_eq!(found("a\n", " \n"), None);
    }
}
