//! Blocks that resemble a quote, for dialects that accept them.
//!
//! Owns three published rules: lines equal except for white space at both ends, one line equal except for the amount
//! of white space, and a block between the quote's first and last line. None is safe, so each is used only where a
//! dialect asks for it. Promises all candidates of the first rule that has any. Never picks one of several.

use crate::lines;
use crate::locate::{QuoteMatch, SearchableText};

/// The fewest lines of a quote that may be found by its first and last line.
const ANCHORED_LINES_MIN: usize = 3;

/// A rule by which a block resembles a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SimilarityMethod {
    /// Lines equal except for white space at both ends.
    TrimmedLines,
    /// One line equal except for the amount of white space.
    CollapsedSpace,
    /// A block between the first and the last line of the quote.
    BlockAnchor,
}

impl SimilarityMethod {
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

/// The candidates of the first rule that has any.
pub(super) fn find_similar(finder: &SearchableText<'_>, quote: &str) -> Option<(SimilarityMethod, Vec<QuoteMatch>)> {
    let quoted: Vec<&str> = lines::iter(quote).map(str::trim).collect();
    if quoted.iter().all(|line| line.is_empty()) {
        return None;
    }
    let text: Vec<&str> = (1..=finder.line_count()).map(|line| finder.line(line).trim()).collect();
    let ends = quote.ends_with('\n');
    let block = |first: usize, last: usize| {
        let end = finder.line_bytes(last + 1);
        let end = if ends { end.end } else { end.start + finder.line(last + 1).len() };
        QuoteMatch {
            bytes: finder.line_bytes(first + 1).start..end,
            lines: first + 1..=last + 1,
            indentation_shift: None,
        }
    };
    let trimmed: Vec<QuoteMatch> = crate::locate::find_line_runs(&text, &quoted)
        .into_iter()
        .map(|first| block(first, first + quoted.len() - 1))
        .collect();
    if !trimmed.is_empty() {
        return Some((SimilarityMethod::TrimmedLines, trimmed));
    }
    if let [line] = quoted[..] {
        let collapsed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let target = collapsed(line);
        let same: Vec<QuoteMatch> = (0..text.len())
            .filter(|&at| text[at].contains(char::is_whitespace) && collapsed(text[at]) == target)
            .map(|at| block(at, at))
            .collect();
        return (!same.is_empty()).then_some((SimilarityMethod::CollapsedSpace, same));
    }
    if quoted.len() < ANCHORED_LINES_MIN {
        return None;
    }
    let (first, last) = (quoted[0], quoted[quoted.len() - 1]);
    let mut anchored = Vec::new();
    let mut next_last = None;
    for at in (0..text.len()).rev() {
        if text[at] == first
            && let Some(end) = find_closing_line(&text, at, last, next_last)
        {
            anchored.push(block(at, end));
        }
        if text[at] == last {
            next_last = Some(at);
        }
    }
    anchored.reverse();
    (!anchored.is_empty()).then_some((SimilarityMethod::BlockAnchor, anchored))
}

/// The first line, at least two below `at`, that equals `last`; `below` is the first one below `at`.
fn find_closing_line(text: &[&str], at: usize, last: &str, below: Option<usize>) -> Option<usize> {
    let below = below?;
    if below >= at + 2 {
        return Some(below);
    }
    (at + 2..text.len()).find(|&line| text[line] == last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_similar_texts(text: &str, quote: &str) -> Option<(SimilarityMethod, Vec<String>)> {
        let (fallback, places) = find_similar(&SearchableText::new(text), quote)?;
        Some((fallback, places.into_iter().map(|place| text[place.bytes].to_owned()).collect()))
    }

    #[test]
    fn each_method_finds_its_kind_of_match() {
        let one = |fallback, text: &str| Some((fallback, vec![text.to_owned()]));
        let text = "  if a:\n      b()\n";
        assert_eq!(find_similar_texts(text, "if a:\n  b()"), one(SimilarityMethod::TrimmedLines, "  if a:\n      b()"));
        assert_eq!(
            find_similar_texts("let   x =  1;\n", "let x = 1;"),
            one(SimilarityMethod::CollapsedSpace, "let   x =  1;")
        );
        let body = "f {\n  a;\n  b;\n  c;\n}\n";
        assert_eq!(
            find_similar_texts(body, "f {\n  other\n}"),
            one(SimilarityMethod::BlockAnchor, "f {\n  a;\n  b;\n  c;\n}")
        );
        assert_eq!(find_similar_texts(" x\n  x\n", "\tx\n").unwrap().1, [" x\n", "  x\n"]);
        assert_eq!(find_similar_texts("a\nb\n", "a\nc"), None);
        assert_eq!(find_similar_texts("a\n", " \n"), None);
    }
}
