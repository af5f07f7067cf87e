//! Blocks that stand deeper or shallower than they were quoted.
//!
//! Owns the one difference of indentation that is accepted: the same for every line that is not blank. Promises that
//! a block is found only if that holds, and that [`Delta::apply`] brings further lines to where the text stands.
//! Never guesses: a line that cannot be brought there is an answer of `None`.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{fold, occurrences};
use crate::lines;

/// The most lines looked at while the indentation of candidate blocks is compared.
pub(super) const WORK_MAX: usize = 20_000_000;

/// The tab widths tried when one side is indented by tabs and the other by spaces.
const TAB_WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// How the text's indentation differs from the quote's, the same for every line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// The text has this white space in front of what was quoted.
    Deeper(String),
    /// The quote has this white space in front of what the text has.
    Shallower(String),
    /// Each unit of the quote's indentation is another unit in the text: tabs for spaces or the reverse.
    Retabbed {
        /// The quote's unit.
        quote: String,
        /// The text's unit.
        text: String,
    },
}

impl Delta {
    /// The one difference between all pairs of (quote's, text's) indentation.
    pub(crate) fn uniform<'a, I: Iterator<Item = (&'a str, &'a str)>>(
        pairs: &impl Fn() -> I,
    ) -> Option<Self> {
        uniform(pairs)
    }

    /// `line`, written like the quote, as the text would have it. Blank lines stay as they are. `None` when the line
    /// stands further left than the difference reaches.
    #[must_use]
    pub fn apply<'l>(&self, line: &'l str) -> Option<Cow<'l, str>> {
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

/// The lines of a text, taken apart into indentation and the rest.
#[derive(Debug)]
pub(super) struct Indented<'t> {
    /// The indentation of each line, as it is.
    spaces: Vec<&'t str>,
    /// A number for each distinct rest; 0 is a blank line.
    bodies: Vec<u32>,
    numbers: HashMap<String, u32>,
}

/// What a search for an indented block found.
pub(super) struct Blocks {
    /// The first line (0-based) of each block, and how it differs.
    pub(super) found: Vec<(usize, Delta)>,
    /// Whether the search stopped at [`WORK_MAX`].
    pub(super) exhausted: bool,
}

impl<'t> Indented<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut all =
            Self { spaces: Vec::new(), bodies: Vec::new(), numbers: HashMap::from([(String::new(), 0)]) };
        for line in lines::iter(text) {
            let (space, body) = split(line);
            let next = u32::try_from(all.numbers.len()).unwrap_or(u32::MAX);
            all.spaces.push(space);
            all.bodies.push(*all.numbers.entry(body).or_insert(next));
        }
        all
    }

    /// Every block of lines that says what `quote` says, at one uniform difference of indentation.
    pub(super) fn find(&self, quote: &str, most: usize) -> Blocks {
        let mut blocks = Blocks { found: Vec::new(), exhausted: false };
        let mut spaces = Vec::new();
        let mut bodies = Vec::new();
        for line in lines::iter(quote) {
            let (space, body) = split(line);
            let Some(&number) = self.numbers.get(&body) else { return blocks };
            spaces.push(space);
            bodies.push(number);
        }
        if bodies.iter().all(|&body| body == 0) {
            return blocks;
        }
        let mut work = 0;
        for start in occurrences::in_sequence(&self.bodies, &bodies, usize::MAX) {
            work += bodies.len();
            if work > WORK_MAX || blocks.found.len() == most {
                blocks.exhausted = true;
                break;
            }
            let pairs = || {
                (0..bodies.len())
                    .filter(|&at| bodies[at] != 0)
                    .map(|at| (spaces[at], self.spaces[start + at]))
            };
            if let Some(delta) = uniform(&pairs) {
                blocks.found.push((start, delta));
            }
        }
        blocks
    }
}

/// The indentation of a line and, folded, the rest of it. A blank line has neither.
fn split(line: &str) -> (&str, String) {
    let (body, _) = lines::split_terminator(line);
    let rest = body.trim_start_matches([' ', '\t']);
    let folded = fold::plain_body(rest);
    if folded.trim().is_empty() {
        return ("", String::new());
    }
    (&body[..body.len() - rest.len()], folded)
}

/// The one difference between all pairs of (quote's, text's) indentation.
fn uniform<'a, I: Iterator<Item = (&'a str, &'a str)>>(pairs: &impl Fn() -> I) -> Option<Delta> {
    let (quote, text) = pairs().next()?;
    if let Some(space) = text.strip_suffix(quote)
        && pairs().all(|(quote, text)| text.strip_prefix(space) == Some(quote))
    {
        return Some(Delta::Deeper(space.to_owned()));
    }
    if let Some(space) = quote.strip_suffix(text)
        && pairs().all(|(quote, text)| quote.strip_prefix(space) == Some(text))
    {
        return Some(Delta::Shallower(space.to_owned()));
    }
    for width in TAB_WIDTHS {
        let spaces = " ".repeat(width);
        for (from, to) in [(spaces.as_str(), "\t"), ("\t", spaces.as_str())] {
            let delta = Delta::Retabbed { quote: from.to_owned(), text: to.to_owned() };
            let is_same = |quote: &str, text: &str| {
                // A letter behind the indentation keeps `apply` from taking the line for blank.
                delta.apply(&format!("{quote}x")).is_some_and(|line| line == format!("{text}x"))
            };
            if pairs().all(|(quote, text)| is_same(quote, text)) {
                return Some(delta);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str, quote: &str) -> Option<(usize, Delta)> {
        let mut blocks = Indented::new(text).find(quote, usize::MAX);
        assert!(blocks.found.len() <= 1 && !blocks.exhausted);
        blocks.found.pop()
    }

    #[test]
    fn one_difference_for_all_lines_is_found() {
        let deeper = |space: &str| Delta::Deeper(space.to_owned());
        let shallower = |space: &str| Delta::Shallower(space.to_owned());
        assert_eq!(only("a\n    if x:\n\n      y\n", "if x:\n\n  y"), Some((1, deeper("    "))));
        assert_eq!(only("\tif\n\t\ty\r\n", "if\n\ty\n"), Some((0, deeper("\t"))));
        assert_eq!(only("if\n  y\n", "    if\n      y\n"), Some((0, shallower("    "))));
    }

    #[test]
    fn tabs_and_spaces_change_places_as_units() {
        let quote = "if {\n    a\n        b\n}";
        let delta = Delta::Retabbed { quote: "    ".to_owned(), text: "\t".to_owned() };
        assert_eq!(only("if {\n\ta\n\t\tb\n}\n", quote), Some((0, delta.clone())));
        assert_eq!(delta.apply("        c  d\n").unwrap(), "\t\tc  d\n");
        assert_eq!(only("if {\n  a\n    b\n}\n", "if {\n\ta\n\t\tb\n}\n").unwrap().0, 0);
    }

    #[test]
    fn an_irregular_difference_is_not() {
        assert_eq!(only("  a\n   b\n", "a\nb\n"), None);
        assert_eq!(only("  a\n  b\n", "a\n   b\n"), None);
        assert_eq!(only("  \n\n", "\n"), None);
    }

    #[test]
    fn lines_follow_the_difference_or_say_that_they_cannot() {
        let shallower = Delta::Shallower("    ".to_owned());
        assert_eq!(shallower.apply("      a\n").unwrap(), "  a\n");
        assert_eq!(shallower.apply("  a\n"), None);
        assert_eq!(shallower.apply("  \n").unwrap(), "  \n");
    }

    #[test]
    fn repetition_does_not_make_it_slow() {
        let text = "  x\n".repeat(50_000);
        let quote = "x\n".repeat(20_000) + " x\n";
        let blocks = Indented::new(&text).find(&quote, 1 << 20);
        assert!(blocks.found.is_empty() && blocks.exhausted);
    }
}
