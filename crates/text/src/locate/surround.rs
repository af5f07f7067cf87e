//! What stands around a place: the definition it is in, and the line that tells it from its twins.
//!
//! Owns two cheap readings of surroundings, both for display. Promises bounded time and no knowledge of any one
//! language: indentation and a short list of words. Never decides where anything is changed.

use std::ops::RangeInclusive;

use super::{Finder, Place};

/// How far up a definition is looked for.
const CLIMB_LINES_MAX: usize = 20_000;

/// How many lines of context are tried to tell twins apart.
const EXTRA_LINES_MAX: usize = 10;

/// The most twins that a place is compared with.
const TWINS_MAX: usize = 1_000;

/// Words that open a definition in most languages.
const DEFINES: &[&str] = &[
    "fn",
    "def",
    "class",
    "struct",
    "enum",
    "trait",
    "impl",
    "interface",
    "function",
    "func",
    "fun",
    "module",
    "mod",
    "namespace",
    "type",
    "union",
    "record",
    "object",
    "protocol",
    "extension",
    "sub",
    "proc",
    "procedure",
    "macro",
    "macro_rules!",
    "defmodule",
    "defp",
    "describe",
    "contract",
    "service",
    "message",
    "package",
    "method",
    "constructor",
    "init",
    "test",
    "section",
];

/// Words that may stand before them.
const MODIFIERS: &[&str] = &[
    "pub",
    "async",
    "const",
    "unsafe",
    "extern",
    "export",
    "default",
    "static",
    "public",
    "private",
    "protected",
    "internal",
    "final",
    "abstract",
    "override",
    "virtual",
    "inline",
    "open",
    "sealed",
    "data",
    "local",
    "declare",
    "suspend",
    "partial",
    "readonly",
    "friend",
    "template",
    "typedef",
    "volatile",
    "@",
    "crate)",
    "super)",
];

/// Words that open a block which is no definition, though it looks like a call with a body.
const FLOW: &[&str] = &[
    "if", "else", "for", "while", "switch", "match", "loop", "try", "catch", "do", "return", "with", "elif",
    "except", "finally", "unless", "until", "when", "case", "select", "foreach", "using", "lock", "}",
];

/// A definition around a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The line it starts on, 1-based.
    pub line: usize,
    /// That line without its indentation.
    pub text: String,
}

/// Where the line stands that makes a place unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The rest of the place's own lines.
    Within,
    /// Above the place.
    Before,
    /// Below the place.
    After,
}

/// What to add to a quote so that it fits one place only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// Which side it is on.
    pub side: Side,
    /// The lines to add, 1-based; nearly always one.
    pub lines: RangeInclusive<usize>,
    /// Their text, without the last terminator.
    pub text: String,
}

impl Finder<'_> {
    /// The definition that holds the 1-based `line`, by indentation and the usual words.
    #[must_use]
    pub fn definition(&self, line: usize) -> Option<Definition> {
        let mut depth = usize::MAX;
        let lowest = line.saturating_sub(CLIMB_LINES_MAX);
        for number in (lowest.max(1)..=line.min(self.line_count())).rev() {
            let text = self.line(number);
            let body = text.trim_start();
            let indent = text.len() - body.len();
            if body.is_empty() || indent >= depth {
                continue;
            }
            if is_definition(body) {
                return Some(Definition { line: number, text: body.trim_end().to_owned() });
            }
            // A bracket on a line of its own belongs to the line above it.
            if body.trim_end() != "{" || number == line {
                depth = indent;
            }
            if depth == 0 {
                return None;
            }
        }
        None
    }

    /// The shortest addition that tells `place` from every other of `places`, if few lines do.
    #[must_use]
    pub fn extra(&self, place: &Place, places: &[Place]) -> Option<Extra> {
        let others: Vec<&Place> =
            places.iter().filter(|other| other.bytes != place.bytes).take(TWINS_MAX).collect();
        let unique = |context: &dyn Fn(&Place) -> Option<RangeInclusive<usize>>| {
            let own = context(place)?;
            let text = self.lines_text(&own);
            let is_twin =
                |other: &&&Place| context(other).is_some_and(|lines| self.lines_text(&lines) == text);
            (!others.iter().any(|other| is_twin(&other))).then(|| (own, text.to_owned()))
        };
        if let Some((lines, text)) = unique(&|place| Some(place.lines.clone())) {
            return Some(Extra { side: Side::Within, lines, text });
        }
        for count in 1..=EXTRA_LINES_MAX {
            let before = unique(&|place| {
                let first = place.lines.start().checked_sub(count).filter(|&first| first > 0)?;
                Some(first..=place.lines.start() - 1)
            });
            let after = unique(&|place| {
                let last = place.lines.end() + count;
                (last <= self.line_count()).then(|| place.lines.end() + 1..=last)
            });
            let made = |side| move |(lines, text)| Extra { side, lines, text };
            let sides = [before.map(made(Side::Before)), after.map(made(Side::After))];
            let shortest = sides.into_iter().flatten().min_by_key(|extra| extra.text.len());
            if shortest.is_some() {
                return shortest;
            }
        }
        None
    }

    fn lines_text(&self, lines: &RangeInclusive<usize>) -> &str {
        let start = self.line_bytes(*lines.start()).start;
        let last = self.line_bytes(*lines.end());
        &self.text[start..last.start + self.line(*lines.end()).len()]
    }
}

/// Whether a line, without its indentation, opens a definition.
fn is_definition(body: &str) -> bool {
    let mut words = body.split(|c: char| c.is_whitespace() || matches!(c, '(' | '{' | '<' | ':'));
    let Some(first) = words.by_ref().find(|word| !MODIFIERS.contains(word)) else { return false };
    if DEFINES.contains(&first) {
        return true;
    }
    // A name with a parameter list that opens a body: `main(void) {`.
    let opens = body.trim_end().ends_with('{') && body.contains('(') && !body.contains('=');
    opens && !FLOW.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::{Matching, locate};

    const RUST: &str = "impl A {\n    fn one() {\n        if x {\n            stop();\n        }\n        go();\n    }\n\n    fn two() {\n        go();\n    }\n}\ngo();\n";

    #[test]
    fn a_line_knows_its_definition() {
        let finder = Finder::new(RUST);
        let within = |line| finder.definition(line).map(|definition| (definition.line, definition.text));
        assert_eq!(within(4), Some((2, "fn one() {".to_owned())));
        assert_eq!(within(6), Some((2, "fn one() {".to_owned())));
        assert_eq!(within(9), Some((9, "fn two() {".to_owned())));
        assert_eq!(within(10), Some((9, "fn two() {".to_owned())));
        assert_eq!(within(13), None);
    }

    #[test]
    fn definitions_of_many_languages_are_known() {
        for line in [
            "pub(crate) fn x()",
            "async def run(self):",
            "export default class A {",
            "int main(void) {",
            "func (s *Server) Close() error {",
            "public static void main(String[] args) {",
            "type X struct {",
        ] {
            assert!(is_definition(line), "{line}");
        }
        for line in ["if (x) {", "} else if (y) {", "let f = g(1);", "call(a, b);", "for (;;) {", "x = (a) {"]
        {
            assert!(!is_definition(line), "{line}");
        }
    }

    #[test]
    fn the_shortest_addition_makes_a_place_unique() {
        let extras = |text: &str, quote: &str| -> Vec<Option<(Side, String)>> {
            let found = locate(text, quote, Matching::LENIENT);
            let finder = Finder::new(text);
            let extra = |place| finder.extra(place, &found.places).map(|extra| (extra.side, extra.text));
            found.places.iter().map(extra).collect()
        };
        let some = |side, text: &str| Some((side, text.to_owned()));
        assert_eq!(
            extras("one\nx\nlong line\ntwo\nx\nb\n", "x"),
            [some(Side::Before, "one"), some(Side::After, "b")]
        );
        assert_eq!(extras("ax\nbx\n", "x"), [some(Side::Within, "ax"), some(Side::Within, "bx")]);
        assert_eq!(extras("a\nx\nb\na\nx\nb\n", "x")[0], some(Side::After, "b\na"));
        assert_eq!(extras("xx", "x"), [None, None]);
    }
}
