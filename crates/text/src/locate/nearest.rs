//! Where a quote most likely meant to be, for the answer to "not found".
//!
//! Owns the guess and what it is measured by: equal lines, rarer ones counting more, and shared words. Promises
//! bounded time and that it is only ever shown. Never decides where anything is changed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::RangeInclusive;

use super::align::{self, Known};
use super::{Finder, fold};
use crate::lines;

/// The lines of a quote that are looked at; a longer quote is known by its first ones.
const QUOTE_LINES_MAX: usize = 400;

/// A line or word that occurs more often than this in the text says nothing about a place.
const OCCURRENCES_MAX: usize = 200;

/// How much a shared word weighs beside an equal line.
const WORD_WEIGHT: f64 = 0.5;

/// The shortest word that counts.
const WORD_CHARS_MIN: usize = 2;

/// How far lines may have moved against each other within one place, at least and at most.
const DRIFT_MIN: i64 = 3;
const DRIFT_MAX: i64 = 12;

/// What an equal blank line, and an equal line without words, weigh beside one with words.
const BLANK_WEIGHT: f64 = 0.1;
const BRACKETS_WEIGHT: f64 = 0.3;

/// Places that are looked at closely.
const CANDIDATES_MAX: usize = 8;

/// Lines above and below a guess in which the start and the end of the place are looked for.
const ALIGN_SLACK_LINES: usize = 10;

/// Differing lines that are described.
const DIFFERENCES_MAX: usize = 5;

/// The current lines where a quote most likely belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The lines, 1-based.
    pub lines: RangeInclusive<usize>,
    /// What differs there, for the first few lines that differ.
    pub differences: Vec<Difference>,
}

/// One line of a quote beside the line of the text that stands in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The line of the quote, 1-based.
    pub quote_line: usize,
    /// The line of the text, 1-based.
    pub text_line: usize,
    /// The first character at which they part, 1-based.
    pub column: usize,
    /// What the quote has there; nothing at its end.
    pub quoted: Option<char>,
    /// What the text has there; nothing at its end.
    pub actual: Option<char>,
}

impl Finder<'_> {
    /// Where `quote` most likely belongs, unless nothing of it is in the text.
    #[must_use]
    pub fn nearest(&self, quote: &str) -> Option<Nearest> {
        let quote: Vec<&str> =
            lines::iter(quote).map(|line| lines::split_terminator(line).0).take(QUOTE_LINES_MAX).collect();
        let count = quote.len();
        let end = self.line_count().checked_sub(1)?;
        let (votes, weighed) = self.votes(&quote);
        let drift = i64::try_from(count / 4).unwrap_or(DRIFT_MAX).clamp(DRIFT_MIN, DRIFT_MAX);
        let fits = best(&votes, drift).into_iter().filter_map(|start| {
            let guess = usize::try_from(start.max(0)).ok()?.min(end);
            let from = guess.saturating_sub(count / 2 + ALIGN_SLACK_LINES);
            let to = (guess + count + count / 2 + ALIGN_SLACK_LINES).min(end + 1);
            let stretch: Vec<Known> = (from..to).map(|line| known(self.line(line + 1))).collect();
            let fit = align::fit(&weighed, &stretch)?;
            let line =
                |offset: i64| from.saturating_add_signed(isize::try_from(offset).unwrap_or(0)).min(end);
            Some((fit.score, line(fit.first), line(fit.last)))
        });
        let (_, first, last) = fits.reduce(|best, fit| if fit.0 > best.0 { fit } else { best })?;
        let differences = self.differences(&quote, first + 1);
        Some(Nearest { lines: first + 1..=last.max(first) + 1, differences })
    }

    /// For each first line (0-based, perhaps before the text) how much speaks for it, and the quote's lines weighed
    /// by how rare they are in the text.
    fn votes(&self, quote: &[&str]) -> (Vec<(i64, f64)>, Vec<Known>) {
        let mut wanted: Vec<Known> = quote.iter().map(|line| known(line)).collect();
        let mut sought: HashMap<u64, Sought> = HashMap::new();
        for mark in wanted.iter().flat_map(Known::marks) {
            sought.entry(mark).or_default();
        }
        for line in 0..self.line_count() {
            for mark in known(self.line(line + 1)).marks() {
                let Some(sought) = sought.get_mut(&mark) else { continue };
                sought.count += 1;
                if sought.at.len() < OCCURRENCES_MAX {
                    sought.at.push(line);
                }
            }
        }
        let total = self.line_count() as f64;
        let mut votes: HashMap<i64, f64> = HashMap::new();
        for (index, line) in wanted.iter_mut().enumerate() {
            let each = WORD_WEIGHT / (line.words.len().max(1) as f64).sqrt();
            for mark in line.marks() {
                let Some(sought) = sought.get(&mark).filter(|sought| sought.count > 0) else { continue };
                let often = sought.count as f64;
                let weight = if mark == line.whole { line.weight } else { each };
                let rarity = (1.0 + total / often).ln() / often.sqrt();
                for &at in sought.at.iter().filter(|_| sought.count <= OCCURRENCES_MAX) {
                    let start = i64::try_from(at).unwrap_or(0) - i64::try_from(index).unwrap_or(0);
                    *votes.entry(start).or_default() += weight * rarity;
                }
            }
            let often = sought.get(&line.whole).map_or(1, |sought| sought.count.max(1));
            line.weight *= (1.0 + total / often as f64).ln() / (1.0 + total).ln();
        }
        let mut votes: Vec<(i64, f64)> = votes.into_iter().collect();
        votes.sort_by_key(|&(start, _)| start);
        (votes, wanted)
    }

    fn differences(&self, quote: &[&str], first: usize) -> Vec<Difference> {
        let pairs = quote.iter().enumerate().filter_map(|(index, line)| {
            let text_line = first + index;
            (text_line <= self.line_count()).then(|| (index + 1, text_line, *line, self.line(text_line)))
        });
        pairs
            .filter(|(_, _, quoted, actual)| quoted != actual)
            .take(DIFFERENCES_MAX)
            .map(|(quote_line, text_line, quoted, actual)| {
                let same = quoted.chars().zip(actual.chars()).take_while(|(a, b)| a == b).count();
                Difference {
                    quote_line,
                    text_line,
                    column: same + 1,
                    quoted: quoted.chars().nth(same),
                    actual: actual.chars().nth(same),
                }
            })
            .collect()
    }
}

/// Where a mark of the quote is in the text.
#[derive(Debug, Default)]
struct Sought {
    at: Vec<usize>,
    count: usize,
}

/// The first lines for which most speaks, lines that moved a little against each other included.
fn best(votes: &[(i64, f64)], drift: i64) -> Vec<i64> {
    let mut from = 0;
    let mut scored: Vec<(f64, i64)> = Vec::with_capacity(votes.len());
    for &(start, _) in votes {
        while votes[from].0 < start - drift {
            from += 1;
        }
        let near = votes[from..].iter().take_while(|(other, _)| *other <= start + drift);
        let faded = |other: i64| 1.0 - (other - start).abs() as f64 / (drift as f64 + 1.0);
        scored.push((near.map(|&(other, weight)| weight * faded(other)).sum(), start));
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut kept: Vec<i64> = Vec::new();
    for (_, start) in scored {
        if kept.iter().all(|other| (other - start).abs() > drift) {
            kept.push(start);
        }
        if kept.len() == CANDIDATES_MAX {
            break;
        }
    }
    kept
}

impl Known {
    fn marks(&self) -> impl Iterator<Item = u64> + use<> {
        let whole = (self.whole != 0).then_some(self.whole);
        let words = self.words.clone();
        whole.into_iter().chain(words)
    }
}

/// What a line is known by: itself, folded and without its indentation, and its words.
fn known(line: &str) -> Known {
    let whole = line.trim();
    if whole.is_empty() {
        return Known { weight: BLANK_WEIGHT, ..Known::default() };
    }
    let folded;
    let whole = if whole.is_ascii() {
        whole
    } else {
        folded = fold::plain_body(whole);
        &folded
    };
    let mut words: Vec<u64> = whole
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| word.len() >= WORD_CHARS_MIN)
        .map(|word| hash("word", word))
        .collect();
    words.sort_unstable();
    words.dedup();
    // A line of brackets says less than one with words in it.
    let weight = if words.is_empty() { BRACKETS_WEIGHT } else { 1.0 };
    Known { whole: hash("line", whole), words, weight }
}

fn hash(kind: &str, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, text).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "fn one() {\n    start();\n}\n\nfn two() {\n    begin();\n    middle(1);\n    end();\n}\n";

    #[test]
    fn a_changed_block_is_nearest_to_what_it_became() {
        let quote = "fn two() {\n    begin();\n    middle(2);\n    end();\n}\n";
        let nearest = Finder::new(TEXT).nearest(quote).unwrap();
        assert_eq!(nearest.lines, 5..=9);
        let difference =
            Difference { quote_line: 3, text_line: 7, column: 12, quoted: Some('2'), actual: Some('1') };
        assert_eq!(nearest.differences, [difference]);
    }

    #[test]
    fn nothing_alike_is_near_nothing() {
        assert_eq!(Finder::new(TEXT).nearest("quite other words"), None);
        assert_eq!(Finder::new("").nearest("x"), None);
        assert_eq!(Finder::new(TEXT).nearest(""), None);
    }

    #[test]
    fn the_nearest_place_never_lies_outside() {
        let nearest = Finder::new("end\n").nearest("a\nb\nend\nc\nd\n").unwrap();
        assert_eq!(nearest.lines, 1..=1);
    }
}
