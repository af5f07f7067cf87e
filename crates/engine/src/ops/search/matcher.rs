//! Finds the lines of one text that match a pattern. The pattern matcher never backtracks, so the search time is
//! proportional to the length of the text.

use std::{
    collections::VecDeque,
    io::{self, Read},
    sync::Arc,
};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use serde::{Serialize, Serializer};
use stead_text::{
    rank::{SearchHitScore, SearchHitScorer, SymbolRole},
    visible::escape_deceptive_line,
};

use super::interruptible::{InterruptibleMatcher, SearchPatternCostClass};
use crate::{
    control::CallControl,
    errors::{Error, ErrorKind},
    index::RequiredTrigrams,
    limits,
    next_step::NextStep,
};

pub(super) struct SearchPattern {
    matcher: RegexMatcher,
    cost: SearchPatternCostClass,
    required_trigrams: RequiredTrigrams,
}

pub(super) struct SearchHitsInOneText {
    pub(super) hits: Vec<SearchHit>,
    /// The number of all matching lines of a text, including lines that are not in `hits`.
    pub(super) hits_total: usize,
    /// Whether long lines were skipped or truncated, so that hits in them may be missing.
    pub(super) skipped_long_lines: bool,
}

/// A line that matches a search.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchHit {
    pub line: u64,
    /// The column of a search hit's first match in the line, in characters counted from 1.
    pub column: usize,
    /// The matching line of a search hit without its line ending; a long line is truncated around the match.
    pub text: String,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_lines")]
    pub before: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_lines")]
    pub after: Vec<Arc<str>>,
    #[serde(skip)]
    pub weight: SearchHitScore,
}

pub(super) fn serialize_lines<S: Serializer>(lines: &[Arc<str>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(lines.iter().map(|line| &**line))
}

/// A numbered line in the text of a search result: a hit or a line of its context.
#[derive(Debug)]
pub struct SearchTextLine {
    pub number: u64,
    pub text: Arc<str>,
    pub kind: SearchTextLineKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchTextLineKind {
    Hit,
    Context,
}

impl SearchTextLine {
    pub fn render(&self) -> String {
        let mark = match self.kind {
            SearchTextLineKind::Hit => ":",
            SearchTextLineKind::Context => "-",
        };
        format!("{}{mark} {}", self.number, escape_deceptive_line(self.text.trim_end_matches('\r')))
    }
}

#[derive(Clone, Copy)]
pub(super) struct SearchHitCollectionOptions<'a> {
    pub(super) context_lines: usize,
    pub(super) hits_max: usize,
    pub(super) chars_max: usize,
    pub(super) ranker: Option<&'a SearchHitScorer>,
}

const UNRANKED_WEIGHT: SearchHitScore = SearchHitScore { role: SymbolRole::Usage, points: 0 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuerySyntax {
    Literal,
    Regex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordMatchMode {
    Anywhere,
    WholeWord,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchCaseSensitivity {
    Sensitive,
    Insensitive,
}

impl SearchPattern {
    pub(super) fn new(
        queries: &[&str],
        syntax: QuerySyntax,
        words: WordMatchMode,
        cases: SearchCaseSensitivity,
    ) -> Result<Self, Error> {
        let compile = |bytes_max: usize| {
            RegexMatcherBuilder::new()
                .fixed_strings(syntax == QuerySyntax::Literal)
                .word(words == WordMatchMode::WholeWord)
                .case_insensitive(cases == SearchCaseSensitivity::Insensitive)
                .multi_line(true)
                .line_terminator(Some(b'\n'))
                .size_limit(bytes_max)
                .dfa_size_limit(limits::SEARCH_DFA_BYTES_MAX)
                .build_many(queries)
        };
        let light = match (syntax, words, cases) {
            (QuerySyntax::Literal, WordMatchMode::Anywhere, SearchCaseSensitivity::Sensitive) => {
                SearchPatternCostClass::Literal
            }
            (QuerySyntax::Literal | QuerySyntax::Regex, _, _) => SearchPatternCostClass::Light,
        };
        let (matcher, cost) = match compile(limits::SEARCH_LIGHT_REGEX_BYTES_MAX) {
            Ok(matcher) => (Ok(matcher), light),
            Err(_) if light == SearchPatternCostClass::Literal => (compile(limits::SEARCH_PATTERN_BYTES_MAX), light),
            Err(_) => (compile(limits::SEARCH_PATTERN_BYTES_MAX), SearchPatternCostClass::Heavy),
        };
        let describe = |error: grep_regex::Error| match queries.iter().find_map(|query| regex_syntax_error(query)) {
            Some(failure) if syntax == QuerySyntax::Regex => failure,
            Some(_) | None => bad_pattern_error(format!("invalid pattern: {error}")),
        };
        Ok(Self {
            matcher: matcher.map_err(describe)?,
            cost,
            required_trigrams: required_trigrams(queries, syntax, cases),
        })
    }

    pub(super) fn required_trigrams(&self) -> &RequiredTrigrams {
        &self.required_trigrams
    }

    pub(super) fn find_hits(
        &self,
        text: &str,
        limits: SearchHitCollectionOptions<'_>,
        control: &CallControl<'_>,
    ) -> Result<SearchHitsInOneText, Error> {
        let interruptible = InterruptibleMatcher::new(&self.matcher, self.cost, control);
        let stopped_error = || {
            interruptible.interruption_error().unwrap_or_else(|| {
                Error::new(ErrorKind::Io, "internal error: the search of a file stopped without a reason")
            })
        };
        let mut collector = HitCollector::new(&self.matcher, limits);
        // Most files have no match, and this check takes less time than building a searcher.
        if interruptible.find_candidate_line(text.as_bytes()).map_err(|_| stopped_error())?.is_some() {
            let mut searcher = build_searcher(limits).build();
            searcher.search_slice(&interruptible, text.as_bytes(), &mut collector).map_err(|_| stopped_error())?;
        }
        Ok(collector.into_matches(&interruptible))
    }

    /// Searches a stream; returns `None` if the search did not reach the end of the stream.
    pub(super) fn find_hits_in_stream(
        &self,
        reader: &mut impl Read,
        limits: SearchHitCollectionOptions<'_>,
        control: &CallControl<'_>,
    ) -> Option<SearchHitsInOneText> {
        let interruptible = InterruptibleMatcher::new(&self.matcher, self.cost, control);
        let mut collector = HitCollector::new(&self.matcher, limits);
        let mut searcher = build_searcher(limits).heap_limit(Some(STREAM_BUFFER_BYTES_MAX)).build();
        searcher.search_reader(&interruptible, reader, &mut collector).ok()?;
        Some(collector.into_matches(&interruptible))
    }
}

fn bad_pattern_error(detail: String) -> Error {
    Error::new(ErrorKind::BadRequest, detail).with_next_step(
        NextStep::repeat_without("regex")
            .or("correct the pattern; patterns match within one line and have no look-around or back-references"),
    )
}

/// An invalid regular expression is parsed again, because the matcher's own error has several lines.
fn regex_syntax_error(query: &str) -> Option<Error> {
    let (reason, span) = match regex_syntax::Parser::new().parse(query).err()? {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), *error.span()),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), *error.span()),
        // The enum is non-exhaustive. For other variants, the caller reports the error of the matcher.
        _ => return None,
    };
    let at = span.start.column;
    let detail = format!("invalid pattern: {reason}, at character {at}");
    Some(bad_pattern_error(detail).with_reason(reason).with_column(at))
}

/// The maximum size of a stream search's buffer, which holds the longest line and some context lines.
const STREAM_BUFFER_BYTES_MAX: usize = limits::SEARCH_LINE_BYTES_MAX + (1 << 20);

fn build_searcher(limits: SearchHitCollectionOptions<'_>) -> SearcherBuilder {
    let mut searcher = SearcherBuilder::new();
    searcher.line_number(true).bom_sniffing(false);
    searcher.before_context(limits.context_lines).after_context(limits.context_lines);
    searcher
}

/// Returns the trigrams that every matching text contains, regardless of whole-word matching.
fn required_trigrams(queries: &[&str], syntax: QuerySyntax, cases: SearchCaseSensitivity) -> RequiredTrigrams {
    match (syntax, cases) {
        (QuerySyntax::Literal, SearchCaseSensitivity::Sensitive) => {
            RequiredTrigrams::any(queries.iter().map(|query| RequiredTrigrams::for_literal(query)).collect())
        }
        (QuerySyntax::Literal | QuerySyntax::Regex, _) => {
            // The queries are joined as in the matcher, because a bracket in one query may close one in another query.
            let one = |query: &&str| match syntax {
                QuerySyntax::Literal => format!("(?:{})", regex_syntax::escape(query)),
                QuerySyntax::Regex => format!("(?:{query})"),
            };
            let expression: Vec<String> = queries.iter().map(one).collect();
            RequiredTrigrams::for_regex(&expression.join("|"), cases)
        }
    }
}

struct HitCollector<'a> {
    pattern: &'a RegexMatcher,
    limits: SearchHitCollectionOptions<'a>,
    hits: Vec<SearchHit>,
    total: usize,
    before: VecDeque<(u64, Arc<str>)>,
}

impl<'a> HitCollector<'a> {
    fn new(pattern: &'a RegexMatcher, limits: SearchHitCollectionOptions<'a>) -> Self {
        Self { pattern, limits, hits: Vec::new(), total: 0, before: VecDeque::new() }
    }

    fn into_matches(self, interruptible: &InterruptibleMatcher<'_>) -> SearchHitsInOneText {
        SearchHitsInOneText {
            hits: self.hits,
            hits_total: self.total,
            skipped_long_lines: interruptible.skipped_lines() > 0,
        }
    }

    fn leading_context(&self, line: u64) -> Vec<Arc<str>> {
        let first = line.saturating_sub(self.limits.context_lines as u64);
        let near = |(number, text): &(u64, Arc<str>)| (*number >= first).then(|| Arc::clone(text));
        self.before.iter().filter_map(near).collect()
    }

    fn context_line(&self, text: &str) -> Option<Arc<str>> {
        (self.limits.context_lines > 0).then(|| cut_around_column(text, 1, self.limits.chars_max).into())
    }

    fn add_trailing_context(&mut self, line: u64, text: &Arc<str>) {
        let near = |hit: &&mut SearchHit| line.saturating_sub(hit.line) <= self.limits.context_lines as u64;
        for hit in self.hits.iter_mut().rev().take_while(near) {
            hit.after.push(Arc::clone(text));
        }
    }

    fn remember_line(&mut self, line: u64, text: Arc<str>) {
        self.before.push_back((line, text));
        if self.before.len() > self.limits.context_lines {
            self.before.pop_front();
        }
    }
}

impl Sink for HitCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.total += 1;
        let line = found.line_number().unwrap_or(0);
        let whole = strip_terminator(found.bytes());
        let around = self.context_line(whole);
        if let Some(around) = &around {
            self.add_trailing_context(line, around);
        }
        if self.hits.len() < self.limits.hits_max {
            let at = self.pattern.find(whole.as_bytes())?.map_or(0..0, |found| found.start()..found.end());
            let column = whole.get(..at.start).map_or(0, |start| start.chars().count()) + 1;
            let weight = self.limits.ranker.map_or(UNRANKED_WEIGHT, |ranker| ranker.score_hit(whole, &at));
            let text = cut_around_column(whole, column, self.limits.chars_max);
            let before = self.leading_context(line);
            self.hits.push(SearchHit { line, column, text, before, after: Vec::new(), weight });
        }
        if let Some(around) = around {
            self.remember_line(line, around);
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let line = context.line_number().unwrap_or(0);
        let Some(around) = self.context_line(strip_terminator(context.bytes())) else { return Ok(true) };
        if *context.kind() != SinkContextKind::Before {
            self.add_trailing_context(line, &around);
        }
        self.remember_line(line, around);
        Ok(true)
    }
}

/// Returns a searched line, which is always valid UTF-8, without its line feed.
fn strip_terminator(bytes: &[u8]) -> &str {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    text.strip_suffix('\n').unwrap_or(text)
}

pub(super) fn cut_around_column(line: &str, column: usize, chars_max: usize) -> String {
    if line.len() <= chars_max || line.chars().count() <= chars_max {
        return line.to_owned();
    }
    let first = column.saturating_sub(chars_max / 4);
    let middle: String = line.chars().skip(first).take(chars_max).collect();
    let lead = if first > 0 { "…" } else { "" };
    let rest = if line.chars().nth(first + chars_max).is_some() { "…" } else { "" };
    format!("{lead}{middle}{rest}")
}

impl SearchHit {
    /// Adds the empty line after a file's last line feed as context line, because some dialects count it.
    pub(super) fn add_final_empty_line(&mut self, last: u64, context: usize) {
        let follows = self.line + self.after.len() as u64 + 1 == last;
        if follows && self.after.len() < context {
            self.after.push("".into());
        }
    }

    /// Returns the matching line of a hit with its context lines before and after it.
    pub fn text_lines(&self) -> impl Iterator<Item = SearchTextLine> {
        let context = |(number, text): (u64, &Arc<str>)| SearchTextLine {
            number,
            text: Arc::clone(text),
            kind: SearchTextLineKind::Context,
        };
        let hit = SearchTextLine { number: self.line, text: self.text.as_str().into(), kind: SearchTextLineKind::Hit };
        let before = (self.line - self.before.len() as u64..).zip(&self.before).map(context);
        before.chain([hit]).chain((self.line + 1..).zip(&self.after).map(context))
    }

    pub(super) fn has_no_context(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal_pattern(query: &str) -> Result<SearchPattern, Error> {
        SearchPattern::new(&[query], QuerySyntax::Literal, WordMatchMode::Anywhere, SearchCaseSensitivity::Sensitive)
    }

    fn regex_pattern(query: &str) -> Result<SearchPattern, Error> {
        SearchPattern::new(&[query], QuerySyntax::Regex, WordMatchMode::Anywhere, SearchCaseSensitivity::Sensitive)
    }

    fn test_hit_limits(context: usize, hits_max: usize, chars_max: usize) -> SearchHitCollectionOptions<'static> {
        SearchHitCollectionOptions { context_lines: context, hits_max, chars_max, ranker: None }
    }

    fn hits_as_text(pattern: &SearchPattern, text: &str, context: usize) -> Vec<(u64, usize, String, usize, usize)> {
        let matched = pattern.find_hits(text, test_hit_limits(context, 100, 1000), &CallControl::default()).unwrap();
        let limits = test_hit_limits(context, 100, 1000);
        let streamed = pattern.find_hits_in_stream(&mut text.as_bytes(), limits, &CallControl::default());
        assert_eq!(matched.hits, streamed.unwrap().hits);
        let fields = |hit: SearchHit| (hit.line, hit.column, hit.text, hit.before.len(), hit.after.len());
        matched.hits.into_iter().map(fields).collect()
    }

    #[test]
    fn invalid_regex_error_names_problem_and_position() {
        for (query, expected) in [
            ("a(b", "unclosed group, at character 2"),
            ("[z-a]", "invalid character class range, the start must be <= the end, at character 2"),
            (r"\p{Nothing}", "Unicode property not found, at character 1"),
        ] {
            let error = regex_pattern(query).err().expect(query);
            assert_eq!(error.message, format!("invalid pattern: {expected}"));
        }
        assert!(regex_pattern("a{100000}{100000}").is_err());
    }

    #[test]
    fn each_line_hits_once_with_its_column() {
        let text = "x\nfoo foo\n éfoo\r\nbar";
        let hit = |line, column, text: &str| (line, column, text.to_owned(), 0, 0);
        assert_eq!(
            hits_as_text(&literal_pattern("foo").unwrap(), text, 0),
            [hit(2, 1, "foo foo"), hit(3, 3, " éfoo\r")]
        );
        assert_eq!(
            hits_as_text(&regex_pattern("o\\r?$").unwrap(), text, 0),
            [hit(2, 7, "foo foo"), hit(3, 5, " éfoo\r")]
        );
        assert_eq!(hits_as_text(&literal_pattern("f.o").unwrap(), text, 0), []);
    }

    #[test]
    fn word_case_and_multiple_queries_combine() {
        let text = "foo\nfood\nFoo\nbar foo\na.c abc\n";
        let lines = |queries: &[&str], syntax, words, cases| -> Vec<u64> {
            let pattern = SearchPattern::new(queries, syntax, words, cases).unwrap();
            hits_as_text(&pattern, text, 0).into_iter().map(|hit| hit.0).collect()
        };
        use {QuerySyntax::*, SearchCaseSensitivity::*, WordMatchMode::*};
        assert_eq!(lines(&["foo"], Literal, Anywhere, Sensitive), [1, 2, 4]);
        assert_eq!(lines(&["foo"], Literal, WholeWord, Sensitive), [1, 4]);
        assert_eq!(lines(&["foo"], Literal, WholeWord, Insensitive), [1, 3, 4]);
        assert_eq!(lines(&["food", "a.c"], Literal, Anywhere, Sensitive), [2, 5]);
        assert_eq!(lines(&["^food", "a.c$"], Regex, Anywhere, Sensitive), [2, 5]);
        assert_eq!(lines(&["fo+|b.r"], Regex, WholeWord, Sensitive), [1, 4]);
    }

    #[test]
    fn every_hit_gets_its_context_lines() {
        let text = "a\nhit\nhit\nb\nc\n";
        let pattern = literal_pattern("hit").unwrap();
        let SearchHitsInOneText { hits, hits_total: total, .. } =
            pattern.find_hits(text, test_hit_limits(1, 100, 1000), &CallControl::default()).unwrap();
        assert_eq!(total, 2);
        let one = |line: &str| -> Vec<Arc<str>> { vec![line.into()] };
        assert_eq!((&hits[0].before, &hits[0].after), (&one("a"), &one("hit")));
        assert_eq!((&hits[1].before, &hits[1].after), (&one("hit"), &one("b")));
    }

    #[test]
    fn hits_beyond_the_limit_are_counted() {
        let matched = literal_pattern("a")
            .unwrap()
            .find_hits("a\na\na\n", test_hit_limits(0, 2, 10), &CallControl::default())
            .unwrap();
        assert_eq!((matched.hits.len(), matched.hits_total), (2, 3));
    }

    #[test]
    fn long_lines_are_truncated_around_the_hit() {
        let line = format!("{}needle{}", "x".repeat(500), "y".repeat(500));
        let hits = literal_pattern("needle")
            .unwrap()
            .find_hits(&line, test_hit_limits(0, 9, 100), &CallControl::default())
            .unwrap()
            .hits;
        assert_eq!(hits[0].column, 501);
        assert!(hits[0].text.contains("needle") && hits[0].text.starts_with('…'), "{}", hits[0].text);
        assert_eq!(hits[0].text.chars().count(), 102);
    }

    #[test]
    fn invalid_patterns_are_rejected() {
        assert!(regex_pattern("(").is_err());
        assert!(regex_pattern("a\\nb").is_err());
        assert!(regex_pattern("(?=x)").is_err());
        assert!(regex_pattern("(a{1000}){1000}").is_err());
    }
}
