//! Finds blocks of text that resemble a quote.
//!
//! Similarity can select the wrong block, so it is used only for a dialect that requires it. The search returns all
//! candidates of the first similarity rule that finds one.

use crate::lines;
use crate::locate::{QuoteMatch, QuoteSearchHaystack, find_line_runs};

/// The least number of lines of a quote that can be found by its first and last line.
const ANCHORED_LINES_MIN: usize = 3;

/// A rule that decides whether a block of text resembles a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuoteSimilarityRule {
    /// All lines of the block equal the lines of the quote after white space at both ends is trimmed.
    TrimmedLines,
    /// The quote is one line that equals a line of the text except for the amount of white space.
    CollapsedSpace,
    /// The first and the last line of the block equal the first and the last line of the quote.
    BlockAnchor,
}

impl QuoteSimilarityRule {
    /// Returns the name of the similarity rule in replies to callers.
    pub fn name(self) -> &'static str {
        match self {
            Self::TrimmedLines => "trimmed_lines",
            Self::CollapsedSpace => "collapsed_space",
            Self::BlockAnchor => "block_anchor",
        }
    }
}

pub(super) fn find_similar(
    finder: &QuoteSearchHaystack<'_>,
    quote: &str,
) -> Option<(QuoteSimilarityRule, Vec<QuoteMatch>)> {
    let quoted: Vec<&str> = lines::iter(quote).map(str::trim).collect();
    if quoted.iter().all(|line| line.is_empty()) {
        return None;
    }
    let text: Vec<&str> = (1..=finder.line_count()).map(|line| finder.line(line).trim()).collect();
    let ends_with_newline = quote.ends_with('\n');
    let block = |first: usize, last: usize| {
        let last_line = finder.line_bytes(last + 1);
        let end = if ends_with_newline { last_line.end } else { last_line.start + finder.line(last + 1).len() };
        let start = finder.line_bytes(first + 1).start;
        QuoteMatch { bytes: start..end, lines: first + 1..=last + 1, indentation_shift: None }
    };
    let starts = find_line_runs(&text, &quoted);
    let trimmed: Vec<QuoteMatch> = starts.into_iter().map(|first| block(first, first + quoted.len() - 1)).collect();
    if !trimmed.is_empty() {
        return Some((QuoteSimilarityRule::TrimmedLines, trimmed));
    }
    if let [line] = quoted[..] {
        let collapsed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let target = collapsed(line);
        let same: Vec<QuoteMatch> = (0..text.len())
            .filter(|&at| text[at].contains(char::is_whitespace) && collapsed(text[at]) == target)
            .map(|at| block(at, at))
            .collect();
        return (!same.is_empty()).then_some((QuoteSimilarityRule::CollapsedSpace, same));
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
    (!anchored.is_empty()).then_some((QuoteSimilarityRule::BlockAnchor, anchored))
}

/// Finds the first line equal to `last` that is at least two lines below the line `at`. The argument `next_last` is the
/// first line below `at` that equals `last`.
fn find_closing_line(text: &[&str], at: usize, last: &str, next_last: Option<usize>) -> Option<usize> {
    let next_last = next_last?;
    if next_last >= at + 2 {
        return Some(next_last);
    }
    (at + 2..text.len()).find(|&line| text[line] == last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_similar_texts(text: &str, quote: &str) -> Option<(QuoteSimilarityRule, Vec<String>)> {
        let (method, matches) = find_similar(&QuoteSearchHaystack::new(text), quote)?;
        Some((method, matches.into_iter().map(|found| text[found.bytes].to_owned()).collect()))
    }

    #[test]
    fn each_method_finds_its_kind_of_match() {
        let one = |method, text: &str| Some((method, vec![text.to_owned()]));
        let text = "  if a:\n      b()\n";
        assert_eq!(
            find_similar_texts(text, "if a:\n  b()"),
            one(QuoteSimilarityRule::TrimmedLines, "  if a:\n      b()")
        );
        assert_eq!(
            find_similar_texts("let   x =  1;\n", "let x = 1;"),
            one(QuoteSimilarityRule::CollapsedSpace, "let   x =  1;")
        );
        let body = "f {\n  a;\n  b;\n  c;\n}\n";
        assert_eq!(
            find_similar_texts(body, "f {\n  other\n}"),
            one(QuoteSimilarityRule::BlockAnchor, "f {\n  a;\n  b;\n  c;\n}")
        );
        assert_eq!(find_similar_texts(" x\n  x\n", "\tx\n").unwrap().1, [" x\n", "  x\n"]);
        assert_eq!(find_similar_texts("a\nb\n", "a\nc"), None);
        assert_eq!(find_similar_texts("a\n", " \n"), None);
    }
}
