//! Searches for blocks of lines that equal a quote except for their indentation.
//!
//! A block matches only if the difference of indentation is the same for every non-blank line.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{fold, occurrences};
use crate::lines;

pub(super) const WORK_MAX: usize = 20_000_000;

/// The tab widths that are tried if only one of quote and text is indented by tabs.
const TAB_WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// The uniform difference between the indentation of a text and the indentation of a quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndentationShift {
    /// The text is indented deeper than the quote, by this white space at the start of each line.
    Deeper(String),
    /// The text is indented less than the quote, by this white space at the start of each line.
    Shallower(String),
    /// The text has tabs where the quote has spaces, or the reverse.
    Retabbed {
        /// The white space of one indentation level in the quote.
        quote: String,
        /// The white space of one indentation level in the text.
        text: String,
    },
}

impl IndentationShift {
    /// Computes the shift from pairs that each hold the indentation of a quote line and of its text line.
    pub(crate) fn from_uniform_difference<'a, I: Iterator<Item = (&'a str, &'a str)>>(
        pairs: &impl Fn() -> I,
    ) -> Option<Self> {
        let (quote, text) = pairs().next()?;
        if let Some(space) = text.strip_suffix(quote)
            && pairs().all(|(quote, text)| text.strip_prefix(space) == Some(quote))
        {
            return Some(Self::Deeper(space.to_owned()));
        }
        if let Some(space) = quote.strip_suffix(text)
            && pairs().all(|(quote, text)| quote.strip_prefix(space) == Some(text))
        {
            return Some(Self::Shallower(space.to_owned()));
        }
        for width in TAB_WIDTHS {
            let spaces = " ".repeat(width);
            for (from, to) in [(spaces.as_str(), "\t"), ("\t", spaces.as_str())] {
                let shift = Self::Retabbed { quote: from.to_owned(), text: to.to_owned() };
                let is_same = |quote: &str, text: &str| {
                    // The letter after the indentation is needed because `apply_to_line` does not shift a blank line.
                    shift.apply_to_line(&format!("{quote}x")).is_some_and(|line| line == format!("{text}x"))
                };
                if pairs().all(|(quote, text)| is_same(quote, text)) {
                    return Some(shift);
                }
            }
        }
        None
    }

    /// Shifts a line that is indented like the quote to the indentation of the text. Blank lines are not shifted. The
    /// function returns `None` for a line with too little indentation.
    pub fn apply_to_line<'l>(&self, line: &'l str) -> Option<Cow<'l, str>> {
        if line.trim().is_empty() {
            return Some(Cow::Borrowed(line));
        }
        match self {
            Self::Deeper(space) => Some(Cow::Owned(format!("{space}{line}"))),
            Self::Shallower(space) => line.strip_prefix(space.as_str()).map(Cow::Borrowed),
            Self::Retabbed { quote, text } => {
                let mut rest = line;
                let mut indented = String::new();
                while let Some(next) = rest.strip_prefix(quote.as_str()) {
                    indented.push_str(text);
                    rest = next;
                }
                Some(Cow::Owned(indented + rest))
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct IndentedLines<'t> {
    indentations: Vec<&'t str>,
    /// The number of each line's text without indentation; a blank line has the number 0.
    body_numbers: Vec<u32>,
    number_by_body: HashMap<String, u32>,
}

pub(super) struct IndentationPassMatches {
    /// The 0-based first line and the indentation shift of each matching block.
    pub(super) found: Vec<(usize, IndentationShift)>,
    /// Whether the search stopped early, after [`WORK_MAX`] compared lines or the allowed number of matches.
    pub(super) exhausted: bool,
}

impl<'t> IndentedLines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut all = Self {
            indentations: Vec::new(),
            body_numbers: Vec::new(),
            number_by_body: HashMap::from([(String::new(), 0)]),
        };
        for line in lines::iter(text) {
            let (space, body) = split_indentation(line);
            let next = u32::try_from(all.number_by_body.len()).unwrap_or(u32::MAX);
            all.indentations.push(space);
            all.body_numbers.push(*all.number_by_body.entry(body).or_insert(next));
        }
        all
    }

    pub(super) fn find_matches(&self, quote: &str, most: usize) -> IndentationPassMatches {
        let mut blocks = IndentationPassMatches { found: Vec::new(), exhausted: false };
        let mut spaces = Vec::new();
        let mut bodies = Vec::new();
        for line in lines::iter(quote) {
            let (space, body) = split_indentation(line);
            let Some(&number) = self.number_by_body.get(&body) else { return blocks };
            spaces.push(space);
            bodies.push(number);
        }
        if bodies.iter().all(|&body| body == 0) {
            return blocks;
        }
        let mut work = 0;
        for start in occurrences::in_sequence(&self.body_numbers, &bodies, usize::MAX) {
            work += bodies.len();
            if work > WORK_MAX || blocks.found.len() == most {
                blocks.exhausted = true;
                break;
            }
            let pairs = || {
                (0..bodies.len()).filter(|&at| bodies[at] != 0).map(|at| (spaces[at], self.indentations[start + at]))
            };
            if let Some(shift) = IndentationShift::from_uniform_difference(&pairs) {
                blocks.found.push((start, shift));
            }
        }
        blocks
    }
}

/// Returns the indentation and the folded body of a line; both are empty for a blank line.
fn split_indentation(line: &str) -> (&str, String) {
    let (body, _) = lines::split_terminator(line);
    let rest = body.trim_start_matches([' ', '\t']);
    let folded = fold::replace_look_alikes(rest);
    if folded.trim().is_empty() {
        return ("", String::new());
    }
    (&body[..body.len() - rest.len()], folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_only_match(text: &str, quote: &str) -> Option<(usize, IndentationShift)> {
        let mut blocks = IndentedLines::new(text).find_matches(quote, usize::MAX);
        assert!(blocks.found.len() <= 1 && !blocks.exhausted);
        blocks.found.pop()
    }

    #[test]
    fn finds_a_uniform_indentation_difference() {
        let deeper = |space: &str| IndentationShift::Deeper(space.to_owned());
        let shallower = |space: &str| IndentationShift::Shallower(space.to_owned());
        assert_eq!(find_only_match("a\n    if x:\n\n      y\n", "if x:\n\n  y"), Some((1, deeper("    "))));
        assert_eq!(find_only_match("\tif\n\t\ty\r\n", "if\n\ty\n"), Some((0, deeper("\t"))));
        assert_eq!(find_only_match("if\n  y\n", "    if\n      y\n"), Some((0, shallower("    "))));
    }

    #[test]
    fn tabs_and_spaces_convert_as_units() {
        let quote = "if {\n    a\n        b\n}";
        let shift = IndentationShift::Retabbed { quote: "    ".to_owned(), text: "\t".to_owned() };
        assert_eq!(find_only_match("if {\n\ta\n\t\tb\n}\n", quote), Some((0, shift.clone())));
        assert_eq!(shift.apply_to_line("        c  d\n").unwrap(), "\t\tc  d\n");
        assert_eq!(find_only_match("if {\n  a\n    b\n}\n", "if {\n\ta\n\t\tb\n}\n").unwrap().0, 0);
    }

    #[test]
    fn rejects_an_irregular_indentation_difference() {
        assert_eq!(find_only_match("  a\n   b\n", "a\nb\n"), None);
        assert_eq!(find_only_match("  a\n  b\n", "a\n   b\n"), None);
        assert_eq!(find_only_match("  \n\n", "\n"), None);
    }

    #[test]
    fn applying_a_shift_fails_when_a_line_is_too_shallow() {
        let shallower = IndentationShift::Shallower("    ".to_owned());
        assert_eq!(shallower.apply_to_line("      a\n").unwrap(), "  a\n");
        assert_eq!(shallower.apply_to_line("  a\n"), None);
        assert_eq!(shallower.apply_to_line("  \n").unwrap(), "  \n");
    }

    #[test]
    fn repetitive_text_is_searched_in_bounded_time() {
        let text = "  x\n".repeat(50_000);
        let quote = "x\n".repeat(20_000) + " x\n";
        let blocks = IndentedLines::new(&text).find_matches(&quote, 1 << 20);
        assert!(blocks.found.is_empty() && blocks.exhausted);
    }
}
