//! Guesses which lines of a text a quote is meant to match, if the quote does not occur in the text.
//!
//! Each line or word of the quote votes for the line of the text where the quote would start. The start lines with the
//! most votes are aligned with the quote line by line. The guess takes bounded time and is used only in error messages.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::align::{self, HashesOfLineAndItsWords, WeightedQuoteLine};
use super::{QuoteSearchHaystack, fold};
use crate::lines;

const QUOTE_LINES_MAX: usize = 400;

/// The limit for long quotes: a line or word that occurs in more lines of the text does not vote.
const OCCURRENCES_MIN: usize = 200;
/// The limit for short quotes: a line or word that occurs in more lines of the text does not vote.
const OCCURRENCES_MAX: usize = 2000;

/// The target for the total number of votes of all lines and words of a quote.
const VOTES_MAX: usize = 200_000;

/// The weight of a shared word relative to the weight of an equal line.
const WORD_WEIGHT: f64 = 0.5;

const WORD_BYTES_MIN: usize = 2;

/// The distance in lines within which votes for start lines are added up for a short quote.
const DRIFT_MIN: i64 = 3;
const DRIFT_MAX: i64 = 12;

/// The number of candidates that are aligned with a long quote.
const CANDIDATES_MIN: usize = 2;
const CANDIDATES_MAX: usize = 8;

/// The target for the number of line pairs that the alignments of one quote compare.
const PAIRS_MAX: usize = 1_000_000;

/// The number of additional lines above and below a candidate that are aligned with the quote.
const ALIGN_SLACK_LINES: usize = 10;

const DIFFERENCES_MAX: usize = 5;

/// The lines of a text where a quote most likely belongs, although the text differs from the quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestQuoteCandidate {
    /// The 1-based lines of the text where the quote most likely belongs.
    pub lines: RangeInclusive<usize>,
    pub differences: Vec<QuoteLineDifference>,
}

/// The first difference between a line of a quote and the corresponding line of the text. Lines and columns are counted
/// from 1. The differing character is `None` in the line that ends at the column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteLineDifference {
    pub quote_line: usize,
    pub text_line: usize,
    pub column: usize,
    pub quoted: Option<char>,
    pub actual: Option<char>,
}

impl QuoteSearchHaystack<'_> {
    /// Guesses the most likely position of `quote` in the text. No position is returned if the quote and the text share
    /// no line or word.
    pub fn nearest_candidate(&self, quote: &str) -> Option<NearestQuoteCandidate> {
        let quote: Vec<&str> =
            lines::iter(quote).map(|line| lines::split_terminator(line).0).take(QUOTE_LINES_MAX).collect();
        let count = quote.len();
        let end = self.line_count().checked_sub(1)?;
        let (votes, weighted) = self.vote_for_starts(&quote);
        let drift = i64::try_from(count / 4).unwrap_or(DRIFT_MAX).clamp(DRIFT_MIN, DRIFT_MAX);
        let pairs = count * 2 * (count + ALIGN_SLACK_LINES);
        let candidates = (PAIRS_MAX / pairs.max(1)).clamp(CANDIDATES_MIN, CANDIDATES_MAX);
        let alignments = best_starts(&votes, drift, candidates).into_iter().filter_map(|start| {
            let guess = usize::try_from(start.max(0)).ok()?.min(end);
            let from = guess.saturating_sub(count / 2 + ALIGN_SLACK_LINES);
            let to = (guess + count + count / 2 + ALIGN_SLACK_LINES).min(end + 1);
            let text: Vec<HashesOfLineAndItsWords> =
                (from..to).map(|line| fingerprint_line(self.line(line + 1))).collect();
            let alignment = align::align(&weighted, &text)?;
            let line = |offset: i64| from.saturating_add_signed(isize::try_from(offset).unwrap_or(0)).min(end);
            Some((alignment.score, line(alignment.first), line(alignment.last)))
        });
        let (_, first, last) = alignments.reduce(|best, other| if other.0 > best.0 { other } else { best })?;
        let differences = self.differences(&quote, first + 1);
        Some(NearestQuoteCandidate { lines: first + 1..=last.max(first) + 1, differences })
    }

    /// Collects votes for the 0-based text lines where the quote could start; a negative line is before the text. A
    /// line or word that is rarer in the text has a higher weight.
    fn vote_for_starts(&self, quote: &[&str]) -> (Vec<(i64, f64)>, Vec<WeightedQuoteLine>) {
        let lines: Vec<HashesOfLineAndItsWords> = quote.iter().map(|line| fingerprint_line(line)).collect();
        let features = lines.iter().flat_map(HashesOfLineAndItsWords::features).count().max(1);
        let most = (VOTES_MAX / features).clamp(OCCURRENCES_MIN, OCCURRENCES_MAX);
        let found = self.find_features(&lines, most);
        let total = self.line_count() as f64;
        let count = |feature: &u64| found.get(feature).map_or(0, |found| found.count);
        let weight = |feature: &u64| (1.0 + total / count(feature).max(1) as f64).ln() / (1.0 + total).ln();
        let mut votes: HashMap<i64, f64> = HashMap::new();
        let mut weighted = Vec::with_capacity(lines.len());
        for (index, line) in lines.iter().enumerate() {
            let word_share = WORD_WEIGHT / (line.word_hashes.len().max(1) as f64).sqrt();
            for feature in line.features() {
                let Some(found) = found.get(&feature).filter(|found| found.count <= most) else {
                    continue;
                };
                let share = if feature == line.line_hash { 1.0 } else { word_share };
                let vote = share * weight(&feature) / (found.count.max(1) as f64).sqrt();
                for &at in &found.lines {
                    let start = i64::try_from(at).unwrap_or(0) - i64::try_from(index).unwrap_or(0);
                    *votes.entry(start).or_default() += vote;
                }
            }
            let words = line.word_hashes.iter().map(|word| (*word, weight(word))).collect();
            weighted.push(WeightedQuoteLine { line_hash: line.line_hash, weight: weight(&line.line_hash), words });
        }
        let mut votes: Vec<(i64, f64)> = votes.into_iter().collect();
        votes.sort_by_key(|&(start, _)| start);
        (votes, weighted)
    }

    fn find_features(&self, lines: &[HashesOfLineAndItsWords], most: usize) -> HashMap<u64, QuoteTermMatchingLines> {
        let features = lines.iter().flat_map(HashesOfLineAndItsWords::features);
        let mut found: HashMap<u64, QuoteTermMatchingLines> =
            features.map(|feature| (feature, QuoteTermMatchingLines::default())).collect();
        for line in 0..self.line_count() {
            for_each_feature(self.line(line + 1), |_, feature| {
                let Some(found) = found.get_mut(&feature).filter(|found| found.last_line != Some(line)) else {
                    return;
                };
                found.last_line = Some(line);
                found.count += 1;
                if found.lines.len() < most {
                    found.lines.push(line);
                }
            });
        }
        found
    }

    fn differences(&self, quote: &[&str], first: usize) -> Vec<QuoteLineDifference> {
        let pairs = quote.iter().enumerate().filter_map(|(index, line)| {
            let text_line = first + index;
            (text_line <= self.line_count()).then(|| (index + 1, text_line, *line, self.line(text_line)))
        });
        pairs
            .filter(|(_, _, quoted, actual)| quoted != actual)
            .take(DIFFERENCES_MAX)
            .map(|(quote_line, text_line, quoted, actual)| {
                let same = quoted.chars().zip(actual.chars()).take_while(|(a, b)| a == b).count();
                QuoteLineDifference {
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

#[derive(Debug, Default)]
struct QuoteTermMatchingLines {
    /// The first lines of the text that contain the line or word of the quote, up to a limit.
    lines: Vec<usize>,
    /// The number of lines of the text that contain the line or word of the quote.
    count: usize,
    last_line: Option<usize>,
}

/// Returns the start lines with the most votes, including votes for lines at most `drift` lines away.
fn best_starts(votes: &[(i64, f64)], drift: i64, most: usize) -> Vec<i64> {
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
    let mut starts: Vec<i64> = Vec::new();
    for (_, start) in scored {
        if starts.iter().all(|other| (other - start).abs() > drift) {
            starts.push(start);
        }
        if starts.len() == most {
            break;
        }
    }
    starts
}

impl HashesOfLineAndItsWords {
    fn features(&self) -> impl Iterator<Item = u64> {
        let whole = (self.line_hash != 0).then_some(self.line_hash);
        whole.into_iter().chain(self.word_hashes.iter().copied())
    }
}

fn fingerprint_line(line: &str) -> HashesOfLineAndItsWords {
    let mut fingerprint = HashesOfLineAndItsWords::default();
    for_each_feature(line, |kind, feature| match kind {
        LineOrWordHashKind::Line => fingerprint.line_hash = feature,
        LineOrWordHashKind::Word => fingerprint.word_hashes.push(feature),
    });
    fingerprint.word_hashes.sort_unstable();
    fingerprint.word_hashes.dedup();
    fingerprint
}

#[derive(Debug, Clone, Copy)]
enum LineOrWordHashKind {
    Line,
    Word,
}

/// Visits the hashes of the folded line, of its words, and of the parts of its words. Both `read_all` and `readAll`
/// have the parts `read` and `all`.
fn for_each_feature(line: &str, mut visit: impl FnMut(LineOrWordHashKind, u64)) {
    let folded;
    let mut line = line.trim();
    if !line.is_ascii() {
        folded = fold::replace_look_alikes(line);
        line = &folded;
    }
    let (mut whole, mut word, mut part) = (
        LineOrWordHashKind::Line.start_hash(),
        LineOrWordHashKind::Word.start_hash(),
        LineOrWordHashKind::Word.start_hash(),
    );
    let mut before = b' ';
    for byte in line.bytes().chain([b'\n']) {
        let is_letter = byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
        let is_next_part = byte == b'_' || (byte.is_ascii_uppercase() && before.is_ascii_lowercase());
        if is_next_part || !is_letter {
            let ended = std::mem::replace(&mut part, LineOrWordHashKind::Word.start_hash());
            // If a word has only one part, the part equals the word and is not passed again.
            if ended.bytes >= WORD_BYTES_MIN && (is_letter || ended.bytes < word.bytes) {
                visit(LineOrWordHashKind::Word, ended.hash);
            }
        }
        if is_letter {
            word.add_byte(byte);
            if byte != b'_' {
                part.add_byte(byte);
            }
        } else {
            let ended = std::mem::replace(&mut word, LineOrWordHashKind::Word.start_hash());
            if ended.bytes >= WORD_BYTES_MIN {
                visit(LineOrWordHashKind::Word, ended.hash);
            }
        }
        whole.add_byte(byte);
        before = byte;
    }
    if !line.is_empty() {
        visit(LineOrWordHashKind::Line, whole.hash);
    }
}

/// A case-insensitive FNV-1a hash of lines and words; a collision only causes a wrong guess.
#[derive(Debug, Clone, Copy)]
struct CaseFoldingTextHasher {
    hash: u64,
    bytes: usize,
}

impl LineOrWordHashKind {
    /// A line of one word and the word itself have different hashes, because their seeds differ.
    fn start_hash(self) -> CaseFoldingTextHasher {
        let hash = match self {
            Self::Line => 0xcbf2_9ce4_8422_2325,
            Self::Word => 0x9ae1_6a3b_2f90_404f,
        };
        CaseFoldingTextHasher { hash, bytes: 0 }
    }
}

impl CaseFoldingTextHasher {
    fn add_byte(&mut self, byte: u8) {
        self.hash = (self.hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3);
        self.bytes += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn one() {\n    start();\n}\n\nfn two() {\n    begin();\n    middle(1);\n    end();\n}\n";

    #[test]
    fn finds_a_block_that_was_changed() {
        let quote = "fn two() {\n    begin();\n    middle(2);\n    end();\n}\n";
        let nearest = QuoteSearchHaystack::new(TEXT).nearest_candidate(quote).unwrap();
        assert_eq!(nearest.lines, 5..=9);
        let difference =
            QuoteLineDifference { quote_line: 3, text_line: 7, column: 12, quoted: Some('2'), actual: Some('1') };
        assert_eq!(nearest.differences, [difference]);
    }

    #[test]
    fn compound_names_match_by_their_words() {
        let words = |line: &str| fingerprint_line(line).word_hashes.len();
        assert_eq!([words("read"), words("x"), words("_x")], [1, 0, 1]);
        assert_eq!([words("read_all"), words("readAll"), words("read all")], [3, 3, 2]);
        let text = "fn first() {}\n\nfn read_everything() {}\n";
        assert_eq!(
            QuoteSearchHaystack::new(text).nearest_candidate("fn readAll() {}\n").map(|near| near.lines),
            Some(3..=3)
        );
    }

    #[test]
    fn rare_lines_outweigh_frequent_ones() {
        let text = "a()\n}\nb()\n}\nc()\n})+\nd()\n}\n";
        let nearest = QuoteSearchHaystack::new(text).nearest_candidate("gone(x)\n})+\n").unwrap();
        assert_eq!(nearest.lines, 5..=6);
    }

    #[test]
    fn unrelated_quotes_have_no_candidate() {
        assert_eq!(QuoteSearchHaystack::new(TEXT).nearest_candidate("quite other words"), None);
        assert_eq!(QuoteSearchHaystack::new(TEXT).nearest_candidate("quite other words\n\n"), None);
        assert_eq!(QuoteSearchHaystack::new("").nearest_candidate("x"), None);
        assert_eq!(QuoteSearchHaystack::new(TEXT).nearest_candidate(""), None);
    }

    #[test]
    fn candidates_lie_within_the_text() {
        let nearest = QuoteSearchHaystack::new("end\n").nearest_candidate("a\nb\nend\nc\nd\n").unwrap();
        assert_eq!(nearest.lines, 1..=1);
    }
}
