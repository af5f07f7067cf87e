//! Describes the context of a match: the enclosing definition, and the lines that distinguish the match from others.
//!
//! The context of a match is only displayed and never decides where a change is made. Definitions are recognised by
//! indentation and keywords, without a parser.

use std::ops::RangeInclusive;

use super::{QuoteMatch, QuoteSearchHaystack};
use crate::is_listed;

const DEFINITION_SEARCH_LINES_MAX: usize = 20_000;

const CONTEXT_LINES_MAX: usize = 10;

const COMPARED_MATCHES_MAX: usize = 1_000;

const DEFINITION_KEYWORDS: &str = "\
    fn def class struct enum trait impl interface function func fun module mod namespace type union record object \
    protocol extension sub proc procedure macro macro_rules! defmodule defp describe contract service message \
    package method constructor init test section";

const MODIFIERS: &str = "\
    pub async const unsafe extern export default static public private protected internal final abstract override \
    virtual inline open sealed data local declare suspend partial readonly friend template typedef volatile @ crate) \
    super)";

/// A control-flow block looks like a function with a body, but is not a definition.
const CONTROL_FLOW_KEYWORDS: &str = "\
    if else for while switch match loop try catch do return with elif except finally unless until when case select \
    foreach using lock }";

/// The function, class or other definition that encloses a line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnclosingDefinition {
    /// The 1-based number of the first line of the definition.
    pub line: usize,
    /// The text of the first line of the definition, without its indentation.
    pub text: String,
}

/// The position of the lines that distinguish a match from the other matches of the same quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DisambiguatingContextPosition {
    /// The whole lines of the match are unique, although the quote itself is not.
    SameLines,
    /// The distinguishing lines are directly above the match.
    Before,
    /// The distinguishing lines are directly below the match.
    After,
}

/// The lines to add to an ambiguous quote so that the quote matches only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedDisambiguatingLines {
    pub side: DisambiguatingContextPosition,
    /// The 1-based range of the lines to add to the quote.
    pub lines: RangeInclusive<usize>,
    /// The text of the lines to add to the quote, without the last line terminator.
    pub text: String,
}

impl QuoteSearchHaystack<'_> {
    /// Finds the definition that contains the 1-based `line`, by indentation and keywords.
    pub fn enclosing_definition(&self, line: usize) -> Option<EnclosingDefinition> {
        let mut depth = usize::MAX;
        let lowest = line.saturating_sub(DEFINITION_SEARCH_LINES_MAX);
        for number in (lowest.max(1)..=line.min(self.line_count())).rev() {
            let text = self.line(number);
            let body = text.trim_start();
            let indent = text.len() - body.len();
            if body.is_empty() || indent >= depth {
                continue;
            }
            if is_definition(body) {
                return Some(EnclosingDefinition { line: number, text: body.trim_end().to_owned() });
            }
            // A bracket alone on its line belongs to the line above.
            if body.trim_end() != "{" || number == line {
                depth = indent;
            }
            if depth == 0 {
                return None;
            }
        }
        None
    }

    /// Finds the shortest context that distinguishes the match `hit` from all other `hits`. The function returns `None`
    /// if no short context distinguishes the match.
    pub fn disambiguating_context(
        &self,
        hit: &QuoteMatch,
        hits: &[QuoteMatch],
    ) -> Option<SuggestedDisambiguatingLines> {
        let others: Vec<&QuoteMatch> =
            hits.iter().filter(|other| other.bytes != hit.bytes).take(COMPARED_MATCHES_MAX).collect();
        let unique = |context: &dyn Fn(&QuoteMatch) -> Option<RangeInclusive<usize>>| {
            let lines = context(hit)?;
            let text = self.lines_text(&lines);
            let is_same = |other: &&QuoteMatch| context(other).is_some_and(|lines| self.lines_text(&lines) == text);
            (!others.iter().any(is_same)).then(|| (lines, text.to_owned()))
        };
        if let Some((lines, text)) = unique(&|hit| Some(hit.lines.clone())) {
            return Some(SuggestedDisambiguatingLines { side: DisambiguatingContextPosition::SameLines, lines, text });
        }
        for count in 1..=CONTEXT_LINES_MAX {
            let before = unique(&|hit| {
                let first = hit.lines.start().checked_sub(count).filter(|&first| first > 0)?;
                Some(first..=hit.lines.start() - 1)
            });
            let after = unique(&|hit| {
                let last = hit.lines.end() + count;
                (last <= self.line_count()).then(|| hit.lines.end() + 1..=last)
            });
            let context_on = |side| move |(lines, text)| SuggestedDisambiguatingLines { side, lines, text };
            let sides = [
                before.map(context_on(DisambiguatingContextPosition::Before)),
                after.map(context_on(DisambiguatingContextPosition::After)),
            ];
            let shortest = sides.into_iter().flatten().min_by_key(|context| context.text.len());
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

fn is_definition(body: &str) -> bool {
    let mut words = body.split(|c: char| c.is_whitespace() || matches!(c, '(' | '{' | '<' | ':'));
    let Some(first) = words.by_ref().find(|word| !is_listed(MODIFIERS, word)) else { return false };
    if is_listed(DEFINITION_KEYWORDS, first) {
        return true;
    }
    // A name with a parameter list and an opening brace, such as `main(void) {`, is also a definition.
    let opens_body = body.trim_end().ends_with('{') && body.contains('(') && !body.contains('=');
    opens_body && !is_listed(CONTROL_FLOW_KEYWORDS, first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::QuoteSearchOptions;

    const RUST: &str = "impl A {\n    fn one() {\n        if x {\n            stop();\n        }\n        go();\n    }\n\n    fn two() {\n        go();\n    }\n}\ngo();\n";

    #[test]
    fn finds_the_enclosing_definition() {
        let finder = QuoteSearchHaystack::new(RUST);
        let within = |line| finder.enclosing_definition(line).map(|definition| (definition.line, definition.text));
        assert_eq!(within(4), Some((2, "fn one() {".to_owned())));
        assert_eq!(within(6), Some((2, "fn one() {".to_owned())));
        assert_eq!(within(9), Some((9, "fn two() {".to_owned())));
        assert_eq!(within(10), Some((9, "fn two() {".to_owned())));
        assert_eq!(within(13), None);
    }

    #[test]
    fn recognises_definitions_of_many_languages() {
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
        for line in ["if (x) {", "} else if (y) {", "let f = g(1);", "call(a, b);", "for (;;) {", "x = (a) {"] {
            assert!(!is_definition(line), "{line}");
        }
    }

    #[test]
    fn finds_the_shortest_disambiguating_context() {
        let extras = |text: &str, quote: &str| -> Vec<Option<(DisambiguatingContextPosition, String)>> {
            let finder = QuoteSearchHaystack::new(text);
            let found = finder.find(quote, QuoteSearchOptions::LENIENT);
            let extra = |hit| finder.disambiguating_context(hit, &found.matches).map(|extra| (extra.side, extra.text));
            found.matches.iter().map(extra).collect()
        };
        let some = |side, text: &str| Some((side, text.to_owned()));
        assert_eq!(
            extras("one\nx\nlong line\ntwo\nx\nb\n", "x"),
            [some(DisambiguatingContextPosition::Before, "one"), some(DisambiguatingContextPosition::After, "b")]
        );
        assert_eq!(
            extras("ax\nbx\n", "x"),
            [
                some(DisambiguatingContextPosition::SameLines, "ax"),
                some(DisambiguatingContextPosition::SameLines, "bx")
            ]
        );
        assert_eq!(extras("a\nx\nb\na\nx\nb\n", "x")[0], some(DisambiguatingContextPosition::After, "b\na"));
        assert_eq!(extras("xx", "x"), [None, None]);
    }
}
