//! Where a quote most likely meant to be, for the answer to "not found".
//!
//! Owns the guess and what it is measured by: equal lines, rarer ones counting more, and shared words. Promises
//! bounded time and that it is only ever shown. Never decides where anything is changed.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::align::{self, Known, Weighed};
use super::{Finder, fold};
use crate::lines;

/// The lines of a quote that are looked at; a longer quote is known by its first ones.
const QUOTE_LINES_MAX: usize = 400;

/// A line or word that occurs more often than this in the text says nothing about a place: for a long quote, which has
/// others, and for a short one.
const OCCURRENCES_MIN: usize = 200;
const OCCURRENCES_MAX: usize = 2000;

/// The occurrences that are counted for all of a quote, if the least for each is not more.
const VOTES_MAX: usize = 200_000;

/// How much a shared word weighs beside an equal line.
const WORD_WEIGHT: f64 = 0.5;

/// The shortest word that counts.
const WORD_BYTES_MIN: usize = 2;

/// How far lines may have moved against each other within one place, at least and at most.
const DRIFT_MIN: i64 = 3;
const DRIFT_MAX: i64 = 12;

/// Places that are looked at closely: fewer for a long quote, of which votes say more and closer looks take longer.
const CANDIDATES_MIN: usize = 2;
const CANDIDATES_MAX: usize = 8;

/// Pairs of lines that are compared in closer looks, if that allows the fewest candidates.
const PAIRS_MAX: usize = 1_000_000;

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
        let pairs = count * 2 * (count + ALIGN_SLACK_LINES);
        let candidates = (PAIRS_MAX / pairs.max(1)).clamp(CANDIDATES_MIN, CANDIDATES_MAX);
        let fits = best(&votes, drift, candidates).into_iter().filter_map(|start| {
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
    fn votes(&self, quote: &[&str]) -> (Vec<(i64, f64)>, Vec<Weighed>) {
        let wanted: Vec<Known> = quote.iter().map(|line| known(line)).collect();
        let marks = wanted.iter().flat_map(Known::marks).count().max(1);
        let most = (VOTES_MAX / marks).clamp(OCCURRENCES_MIN, OCCURRENCES_MAX);
        let sought = self.sought(&wanted, most);
        let total = self.line_count() as f64;
        let often = |mark: &u64| sought.get(mark).map_or(0, |sought| sought.count);
        let weight = |mark: &u64| (1.0 + total / often(mark).max(1) as f64).ln() / (1.0 + total).ln();
        let mut votes: HashMap<i64, f64> = HashMap::new();
        let mut weighed = Vec::with_capacity(wanted.len());
        for (index, line) in wanted.iter().enumerate() {
            let each = WORD_WEIGHT / (line.words.len().max(1) as f64).sqrt();
            for mark in line.marks() {
                let Some(sought) = sought.get(&mark).filter(|sought| sought.count <= most) else { continue };
                let share = if mark == line.whole { 1.0 } else { each };
                let vote = share * weight(&mark) / (sought.count.max(1) as f64).sqrt();
                for &at in &sought.at {
                    let start = i64::try_from(at).unwrap_or(0) - i64::try_from(index).unwrap_or(0);
                    *votes.entry(start).or_default() += vote;
                }
            }
            let words = line.words.iter().map(|word| (*word, weight(word))).collect();
            weighed.push(Weighed { whole: line.whole, weight: weight(&line.whole), words });
        }
        let mut votes: Vec<(i64, f64)> = votes.into_iter().collect();
        votes.sort_by_key(|&(start, _)| start);
        (votes, weighed)
    }

    /// Where the lines and words of a quote are in the text, the first `most` of each.
    fn sought(&self, wanted: &[Known], most: usize) -> HashMap<u64, Sought> {
        let mut sought: HashMap<u64, Sought> =
            wanted.iter().flat_map(Known::marks).map(|mark| (mark, Sought::default())).collect();
        for line in 0..self.line_count() {
            for_each_mark(self.line(line + 1), |_, mark| {
                let Some(sought) = sought.get_mut(&mark).filter(|sought| sought.seen != Some(line)) else {
                    return;
                };
                sought.seen = Some(line);
                sought.count += 1;
                if sought.at.len() < most {
                    sought.at.push(line);
                }
            });
        }
        sought
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
    /// In how many lines it is, and in which one it was last.
    count: usize,
    seen: Option<usize>,
}

/// The first lines for which most speaks, at most `most` of them; lines that moved a little against each other included.
fn best(votes: &[(i64, f64)], drift: i64, most: usize) -> Vec<i64> {
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
        if kept.len() == most {
            break;
        }
    }
    kept
}

impl Known {
    /// The line and its words. That a line is blank says nothing about a place.
    fn marks(&self) -> impl Iterator<Item = u64> {
        let whole = (self.whole != 0).then_some(self.whole);
        whole.into_iter().chain(self.words.iter().copied())
    }
}

/// What a line is known by.
fn known(line: &str) -> Known {
    let mut known = Known::default();
    for_each_mark(line, |kind, mark| match kind {
        Mark::Line => known.whole = mark,
        Mark::Word => known.words.push(mark),
    });
    known.words.sort_unstable();
    known.words.dedup();
    known
}

#[derive(Debug, Clone, Copy)]
enum Mark {
    Line,
    Word,
}

/// Gives what a line is known by: itself, folded and without its indentation, its words, and the parts of names:
/// `read_all` and `readAll` both have `read` and `all`.
fn for_each_mark(line: &str, mut give: impl FnMut(Mark, u64)) {
    let folded;
    let mut line = line.trim();
    if !line.is_ascii() {
        folded = fold::plain_body(line);
        line = &folded;
    }
    let (mut whole, mut word, mut part) = (Mark::Line.start(), Mark::Word.start(), Mark::Word.start());
    let mut before = b' ';
    for byte in line.bytes().chain([b'\n']) {
        let is_letter = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        let is_next_part = byte == b'_' || (byte.is_ascii_uppercase() && before.is_ascii_lowercase());
        if is_next_part || !is_letter {
            let ended = std::mem::replace(&mut part, Mark::Word.start());
            // What ends with its word, and began with it, is no part.
            if ended.bytes >= WORD_BYTES_MIN && (is_letter || ended.bytes < word.bytes) {
                give(Mark::Word, ended.hash);
            }
        }
        if is_letter {
            word.read(byte);
            if byte != b'_' {
                part.read(byte);
            }
        } else {
            let ended = std::mem::replace(&mut word, Mark::Word.start());
            if ended.bytes >= WORD_BYTES_MIN {
                give(Mark::Word, ended.hash);
            }
        }
        whole.read(byte);
        before = byte;
    }
    if !line.is_empty() {
        give(Mark::Line, whole.hash);
    }
}

/// A hash of bytes whatever their case (FNV-1a): quick, and a collision does no more than a wrong guess.
#[derive(Debug, Clone, Copy)]
struct Hash {
    hash: u64,
    bytes: usize,
}

impl Mark {
    /// Lines and words start apart: a line that is one word is not that word.
    fn start(self) -> Hash {
        let hash = match self {
            Self::Line => 0xcbf2_9ce4_8422_2325,
            Self::Word => 0x9ae1_6a3b_2f90_404f,
        };
        Hash { hash, bytes: 0 }
    }
}

impl Hash {
    fn read(&mut self, byte: u8) {
        self.hash = (self.hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3);
        self.bytes += 1;
    }
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
    fn names_are_known_by_their_parts() {
        let marks = |line: &str| known(line).words.len();
        assert_eq!([marks("read"), marks("x"), marks("_x")], [1, 0, 1]);
        assert_eq!([marks("read_all"), marks("readAll"), marks("read all")], [3, 3, 2]);
        let text = "fn first() {}\n\nfn read_everything() {}\n";
        assert_eq!(Finder::new(text).nearest("fn readAll() {}\n").map(|near| near.lines), Some(3..=3));
    }

    #[test]
    fn a_rare_line_says_more_than_a_frequent_one() {
        let text = "a()\n}\nb()\n}\nc()\n})+\nd()\n}\n";
        let nearest = Finder::new(text).nearest("gone(x)\n})+\n").unwrap();
        assert_eq!(nearest.lines, 5..=6);
    }

    #[test]
    fn nothing_alike_is_near_nothing() {
        assert_eq!(Finder::new(TEXT).nearest("quite other words"), None);
        assert_eq!(Finder::new(TEXT).nearest("quite other words\n\n"), None);
        assert_eq!(Finder::new("").nearest("x"), None);
        assert_eq!(Finder::new(TEXT).nearest(""), None);
    }

    #[test]
    fn the_nearest_place_never_lies_outside() {
        let nearest = Finder::new("end\n").nearest("a\nb\nend\nc\nd\n").unwrap();
        assert_eq!(nearest.lines, 1..=1);
    }
}
