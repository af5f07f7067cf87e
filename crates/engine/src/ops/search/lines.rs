//! The lines of one text that match a pattern. Built on a searcher made for it, which never backtracks: time grows with
//! the text and with the pattern, and a call can end between two pieces of a text.

use std::{
    collections::VecDeque,
    io::{self, Read},
    sync::Arc,
};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use serde_json::{Map, Value};
use text::{
    rank::{Place, Role, Weight},
    visible::visible_line,
};

use super::pace::{Cost, Paced};
use crate::{
    control::Control,
    failure::{Failure, Kind},
    index::Need,
    limits,
    ops::answer::Facts,
};

/// What is looked for.
pub(super) struct Pattern {
    matcher: RegexMatcher,
    cost: Cost,
    need: Need,
}

/// The lines of a text that match.
pub(super) struct Matched {
    /// The first of them.
    pub(super) hits: Vec<Hit>,
    /// How many there are.
    pub(super) total: usize,
    /// Whether lines were passed over as too long for the pattern.
    pub(super) passed: bool,
}

/// One line that matches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// Its number, from 1.
    pub(super) line: u64,
    /// Where the first match begins in it, in characters from 1.
    pub(super) column: usize,
    /// The line without its terminator, cut around the match when it is long.
    pub(super) text: String,
    /// Lines around it, shared with other hits near by.
    pub(super) before: Vec<Arc<str>>,
    pub(super) after: Vec<Arc<str>>,
    /// What the line is to what was looked for, and how much it counts.
    pub(super) weight: Weight,
}

/// How much of a text is taken.
#[derive(Clone, Copy)]
pub(super) struct Take<'a> {
    /// Lines around each hit.
    pub(super) context: usize,
    /// Hits that are kept; all are counted.
    pub(super) room: usize,
    /// Characters of a line.
    pub(super) chars_max: usize,
    /// The file, if hits are weighed.
    pub(super) place: Option<&'a Place>,
}

/// What a hit is when nobody asks.
const UNWEIGHED: Weight = Weight { role: Role::Usage, points: 0 };

/// How a query is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// The text itself.
    Literal,
    /// A regular expression, judged line by line.
    Regex,
}

/// Where a match may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// Anywhere.
    Parts,
    /// Where a word does.
    Whole,
}

/// Whether large and small letters are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cases {
    Differ,
    Same,
}

impl Pattern {
    /// Any of these queries.
    pub(super) fn new(queries: &[&str], syntax: Syntax, words: Words, cases: Cases) -> Result<Self, Failure> {
        let built = |bytes_max: usize| {
            RegexMatcherBuilder::new()
                .fixed_strings(syntax == Syntax::Literal)
                .word(words == Words::Whole)
                .case_insensitive(cases == Cases::Same)
                .multi_line(true)
                .line_terminator(Some(b'\n'))
                .size_limit(bytes_max)
                .dfa_size_limit(limits::SEARCH_MEMO_BYTES_MAX)
                .build_many(queries)
        };
        let light = match (syntax, words, cases) {
            (Syntax::Literal, Words::Parts, Cases::Differ) => Cost::Text,
            (Syntax::Literal | Syntax::Regex, _, _) => Cost::Light,
        };
        let (matcher, cost) = match built(limits::SEARCH_LIGHT_BYTES_MAX) {
            Ok(matcher) => (Ok(matcher), light),
            Err(_) if light == Cost::Text => (built(limits::SEARCH_PATTERN_BYTES_MAX), light),
            Err(_) => (built(limits::SEARCH_PATTERN_BYTES_MAX), Cost::Heavy),
        };
        let unreadable = |error: grep_regex::Error| match queries.iter().find_map(|query| misread(query)) {
            Some(failure) if syntax == Syntax::Regex => failure,
            Some(_) | None => bad_pattern(format!("the pattern cannot be read: {error}")),
        };
        Ok(Self { matcher: matcher.map_err(unreadable)?, cost, need: need(queries, syntax, cases) })
    }

    /// What a text with a match holds.
    pub(super) fn need(&self) -> &Need {
        &self.need
    }

    /// The first `room` lines that match, and how many there are.
    pub(super) fn hits(&self, text: &str, take: Take<'_>, control: &Control<'_>) -> Result<Matched, Failure> {
        let paced = Paced::new(&self.matcher, self.cost, control);
        let broke = || paced.failure().unwrap_or_else(|| Failure::new(Kind::Io, "the search broke off"));
        let mut collect = Collect::new(&self.matcher, take);
        // Most files hold nothing, and a searcher costs more than such a look.
        if paced.find_candidate_line(text.as_bytes()).map_err(|_| broke())?.is_some() {
            let mut searcher = searcher(take).build();
            searcher.search_slice(&paced, text.as_bytes(), &mut collect).map_err(|_| broke())?;
        }
        Ok(collect.matched(&paced))
    }

    /// The same for text that flows by. Nothing when it could not be searched to its end: the flow or the control knows
    /// why, or a line and those around it have no room.
    pub(super) fn hits_in(
        &self,
        flow: &mut impl Read,
        take: Take<'_>,
        control: &Control<'_>,
    ) -> Option<Matched> {
        let paced = Paced::new(&self.matcher, self.cost, control);
        let mut collect = Collect::new(&self.matcher, take);
        let mut searcher = searcher(take).heap_limit(Some(FLOW_BYTES_MAX)).build();
        searcher.search_reader(&paced, flow, &mut collect).ok()?;
        Some(collect.matched(&paced))
    }
}

fn bad_pattern(detail: String) -> Failure {
    Failure::new(Kind::BadRequest, detail)
        .hint("a pattern is one line; regular expressions have no look-around and no back-references")
}

/// What is wrong with a regular expression, and where. Asked of the parser itself: the matcher shows the expression as it
/// was wrapped, over several lines.
fn misread(query: &str) -> Option<Failure> {
    let (reason, span) = match regex_syntax::Parser::new().parse(query).err()? {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), *error.span()),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), *error.span()),
        // The enumeration may grow; what the matcher says is shown then.
        _ => return None,
    };
    let at = span.start.column;
    let detail = format!("the pattern cannot be read: {reason}, at character {at}");
    Some(bad_pattern(detail).fact("reason", reason).fact("column", at))
}

/// Bytes of a text that flows by that are held: a line, and some more around it.
const FLOW_BYTES_MAX: usize = limits::SEARCH_LINE_BYTES_MAX + (1 << 20);

fn searcher(take: Take<'_>) -> SearcherBuilder {
    let mut searcher = SearcherBuilder::new();
    searcher.line_number(true).bom_sniffing(false);
    searcher.before_context(take.context).after_context(take.context);
    searcher
}

/// What a match of any of these queries needs. Whole words need no less than parts, so that is not looked at.
fn need(queries: &[&str], syntax: Syntax, cases: Cases) -> Need {
    match (syntax, cases) {
        (Syntax::Literal, Cases::Differ) => {
            Need::any(queries.iter().map(|query| Need::of_text(query)).collect())
        }
        (Syntax::Literal | Syntax::Regex, _) => {
            // Put together as the matcher does it: a bracket of one query may close that of another.
            let one = |query: &&str| match syntax {
                Syntax::Literal => format!("(?:{})", regex_syntax::escape(query)),
                Syntax::Regex => format!("(?:{query})"),
            };
            let expression: Vec<String> = queries.iter().map(one).collect();
            Need::of_expression(&expression.join("|"), cases)
        }
    }
}

/// Gathers what the searcher meets.
struct Collect<'a> {
    pattern: &'a RegexMatcher,
    take: Take<'a>,
    hits: Vec<Hit>,
    total: usize,
    /// Lines before the next hit, those of earlier hits included.
    before: VecDeque<(u64, Arc<str>)>,
}

impl<'a> Collect<'a> {
    fn new(pattern: &'a RegexMatcher, take: Take<'a>) -> Self {
        Self { pattern, take, hits: Vec::new(), total: 0, before: VecDeque::new() }
    }

    fn matched(self, paced: &Paced<'_>) -> Matched {
        Matched { hits: self.hits, total: self.total, passed: paced.passed() > 0 }
    }

    /// Lines that stand right before a line.
    fn leading(&self, line: u64) -> Vec<Arc<str>> {
        let first = line.saturating_sub(self.take.context as u64);
        let near = |(number, text): &(u64, Arc<str>)| (*number >= first).then(|| Arc::clone(text));
        self.before.iter().filter_map(near).collect()
    }

    /// A line as it is shown around hits; nothing when none is.
    fn around(&self, text: &str) -> Option<Arc<str>> {
        (self.take.context > 0).then(|| cut(text, 1, self.take.chars_max).into())
    }

    /// A line that stands after earlier hits, near enough to be shown with them.
    fn trail(&mut self, line: u64, text: &Arc<str>) {
        let near = |hit: &&mut Hit| line.saturating_sub(hit.line) <= self.take.context as u64;
        for hit in self.hits.iter_mut().rev().take_while(near) {
            hit.after.push(Arc::clone(text));
        }
    }

    fn remember(&mut self, line: u64, text: Arc<str>) {
        self.before.push_back((line, text));
        if self.before.len() > self.take.context {
            self.before.pop_front();
        }
    }
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.total += 1;
        let line = found.line_number().unwrap_or(0);
        let whole = plain(found.bytes());
        let around = self.around(whole);
        if let Some(around) = &around {
            self.trail(line, around);
        }
        if self.hits.len() < self.take.room {
            let at = self.pattern.find(whole.as_bytes())?.map_or(0..0, |found| found.start()..found.end());
            let column = whole.get(..at.start).map_or(0, |start| start.chars().count()) + 1;
            let weight = self.take.place.map_or(UNWEIGHED, |place| place.weigh(whole, &at));
            let text = cut(whole, column, self.take.chars_max);
            let before = self.leading(line);
            self.hits.push(Hit { line, column, text, before, after: Vec::new(), weight });
        }
        if let Some(around) = around {
            self.remember(line, around);
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let line = context.line_number().unwrap_or(0);
        let Some(around) = self.around(plain(context.bytes())) else { return Ok(true) };
        if *context.kind() != SinkContextKind::Before {
            self.trail(line, &around);
        }
        self.remember(line, around);
        Ok(true)
    }
}

/// A line without its terminator. It is a slice of valid text between two line feeds.
fn plain(bytes: &[u8]) -> &str {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    text.strip_suffix('\n').unwrap_or(text)
}

/// A long line, cut around the column that matters.
pub(super) fn cut(line: &str, column: usize, chars_max: usize) -> String {
    if line.len() <= chars_max || line.chars().count() <= chars_max {
        return line.to_owned();
    }
    let first = column.saturating_sub(chars_max / 4);
    let middle: String = line.chars().skip(first).take(chars_max).collect();
    let lead = if first > 0 { "…" } else { "" };
    let rest = if line.chars().nth(first + chars_max).is_some() { "…" } else { "" };
    format!("{lead}{middle}{rest}")
}

impl Hit {
    /// Adds the empty line behind the last line feed, for vocabularies that count it, if it is near enough.
    pub(super) fn ends_at(&mut self, last: u64, context: usize) {
        let follows = self.line + self.after.len() as u64 + 1 == last;
        if follows && self.after.len() < context {
            self.after.push("".into());
        }
    }

    pub(super) fn object(&self) -> Map<String, Value> {
        let lines = |lines: &[Arc<str>]| {
            (!lines.is_empty()).then(|| lines.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        Facts::new()
            .with("line", self.line)
            .with("column", self.column)
            .with("text", self.text.clone())
            .maybe("before", lines(&self.before))
            .maybe("after", lines(&self.after))
            .object()
    }

    /// Where a hit is, and what it is if it is more than a use; without its text.
    pub(super) fn place(&self) -> Map<String, Value> {
        let kind = match self.weight.role {
            Role::Definition => Some("definition"),
            Role::Likely => Some("likely"),
            Role::Usage => None,
            Role::Import => Some("import"),
        };
        Facts::new().with("line", self.line).with("column", self.column).maybe("kind", kind).object()
    }

    /// How a hit reads: its number and its line, the lines around it marked otherwise.
    pub(super) fn write(&self, out: &mut String) {
        self.write_with(out, &mut |_| true);
    }

    /// The same with those lines around it that are wanted.
    pub(super) fn write_with(&self, out: &mut String, wanted: &mut dyn FnMut(u64) -> bool) {
        let shown = |line: &str| visible_line(line.trim_end_matches('\r')).into_owned();
        for (at, line) in self.before.iter().enumerate() {
            let number = self.line - (self.before.len() - at) as u64;
            if wanted(number) {
                out.push_str(&format!("{number}- {}\n", shown(line)));
            }
        }
        out.push_str(&format!("{}: {}\n", self.line, shown(&self.text)));
        for (number, line) in (self.line + 1..).zip(&self.after) {
            if wanted(number) {
                out.push_str(&format!("{number}- {}\n", shown(line)));
            }
        }
    }

    /// Whether no lines stand around it.
    pub(super) fn is_bare(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(query: &str) -> Result<Pattern, Failure> {
        Pattern::new(&[query], Syntax::Literal, Words::Parts, Cases::Differ)
    }

    fn regex(query: &str) -> Result<Pattern, Failure> {
        Pattern::new(&[query], Syntax::Regex, Words::Parts, Cases::Differ)
    }

    fn take(context: usize, room: usize, chars_max: usize) -> Take<'static> {
        Take { context, room, chars_max, place: None }
    }

    fn found(pattern: &Pattern, text: &str, context: usize) -> Vec<(u64, usize, String, usize, usize)> {
        let matched = pattern.hits(text, take(context, 100, 1000), &Control::default()).unwrap();
        let streamed = pattern.hits_in(&mut text.as_bytes(), take(context, 100, 1000), &Control::default());
        assert_eq!(matched.hits, streamed.unwrap().hits);
        matched
            .hits
            .into_iter()
            .map(|hit| (hit.line, hit.column, hit.text, hit.before.len(), hit.after.len()))
            .collect()
    }

    #[test]
    fn an_expression_that_cannot_be_read_says_what_and_where() {
        for (query, expected) in [
            ("a(b", "unclosed group, at character 2"),
            ("[z-a]", "invalid character class range, the start must be <= the end, at character 2"),
            (r"\p{Nothing}", "Unicode property not found, at character 1"),
        ] {
            let failure = regex(query).err().expect(query);
            assert_eq!(failure.detail, format!("the pattern cannot be read: {expected}"));
        }
        assert!(regex("a{100000}{100000}").is_err());
    }

    #[test]
    fn one_hit_a_line_with_its_column() {
        let text = "x\nfoo foo\n éfoo\r\nbar";
        let hit = |line, column, text: &str| (line, column, text.to_owned(), 0, 0);
        assert_eq!(found(&literal("foo").unwrap(), text, 0), [hit(2, 1, "foo foo"), hit(3, 3, " éfoo\r")]);
        assert_eq!(found(&regex("o\\r?$").unwrap(), text, 0), [hit(2, 7, "foo foo"), hit(3, 5, " éfoo\r")]);
        assert_eq!(found(&literal("f.o").unwrap(), text, 0), []);
    }

    #[test]
    fn words_cases_and_several_queries_are_one_pattern() {
        let text = "foo\nfood\nFoo\nbar foo\na.c abc\n";
        let lines = |queries: &[&str], syntax, words, cases| -> Vec<u64> {
            let pattern = Pattern::new(queries, syntax, words, cases).unwrap();
            found(&pattern, text, 0).into_iter().map(|hit| hit.0).collect()
        };
        use {Cases::*, Syntax::*, Words::*};
        assert_eq!(lines(&["foo"], Literal, Parts, Differ), [1, 2, 4]);
        assert_eq!(lines(&["foo"], Literal, Whole, Differ), [1, 4]);
        assert_eq!(lines(&["foo"], Literal, Whole, Same), [1, 3, 4]);
        assert_eq!(lines(&["food", "a.c"], Literal, Parts, Differ), [2, 5]);
        assert_eq!(lines(&["^food", "a.c$"], Regex, Parts, Differ), [2, 5]);
        assert_eq!(lines(&["fo+|b.r"], Regex, Whole, Differ), [1, 4]);
    }

    #[test]
    fn context_is_given_to_every_hit() {
        let text = "a\nhit\nhit\nb\nc\n";
        let pattern = literal("hit").unwrap();
        let Matched { hits, total, .. } =
            pattern.hits(text, take(1, 100, 1000), &Control::default()).unwrap();
        assert_eq!(total, 2);
        let one = |line: &str| -> Vec<Arc<str>> { vec![line.into()] };
        assert_eq!((&hits[0].before, &hits[0].after), (&one("a"), &one("hit")));
        assert_eq!((&hits[1].before, &hits[1].after), (&one("hit"), &one("b")));
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        let matched = literal("a").unwrap().hits("a\na\na\n", take(0, 2, 10), &Control::default()).unwrap();
        assert_eq!((matched.hits.len(), matched.total), (2, 3));
    }

    #[test]
    fn long_lines_are_cut_around_the_hit() {
        let line = format!("{}needle{}", "x".repeat(500), "y".repeat(500));
        let hits = literal("needle").unwrap().hits(&line, take(0, 9, 100), &Control::default()).unwrap().hits;
        assert_eq!(hits[0].column, 501);
        assert!(hits[0].text.contains("needle") && hits[0].text.starts_with('…'), "{}", hits[0].text);
        assert_eq!(hits[0].text.chars().count(), 102);
    }

    #[test]
    fn a_pattern_that_cannot_be_is_refused() {
        assert!(regex("(").is_err());
        assert!(regex("a\\nb").is_err());
        assert!(regex("(?=x)").is_err());
        assert!(regex("(a{1000}){1000}").is_err());
    }
}
