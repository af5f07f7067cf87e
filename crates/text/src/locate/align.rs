//! Aligns a quote with a few lines of text, line by line (Smith–Waterman).
//!
//! The time grows with the number of quote lines times the number of text lines, so callers keep both numbers small.

#[derive(Debug, Clone, Default)]
pub(super) struct HashesOfLineAndItsWords {
    /// The hash of the line of text without indentation; a blank line has the hash 0.
    pub(super) line_hash: u64,
    /// The hashes of the line's words are sorted and distinct.
    pub(super) word_hashes: Vec<u64>,
}

/// A line of a quote, with a weight for the line and for each of its words. A line or word that is frequent in the text
/// has a low weight.
#[derive(Debug, Clone, Default)]
pub(super) struct WeightedQuoteLine {
    pub(super) line_hash: u64,
    pub(super) weight: f64,
    pub(super) words: Vec<(u64, f64)>,
}

/// The text lines that correspond to the first and the last line of a quote, possibly outside the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct QuoteAlignment {
    pub(super) score: f64,
    pub(super) first: i64,
    pub(super) last: i64,
}

const GAP_PENALTY: f64 = 0.08;

/// The least share of common words that two lines need to count as similar.
const SIMILARITY_MIN: f64 = 0.34;

/// The factor for the score of two lines that are similar but not equal.
const SIMILAR_LINE_WEIGHT: f64 = 0.7;

#[derive(Debug, Clone, Copy)]
struct AlignmentCell {
    score: f64,
    /// The first pair of a quote line and a text line in the best alignment that ends in the cell.
    start: (usize, usize),
}

/// Finds the best alignment; `None` if no line of the quote resembles a line of the text.
pub(super) fn align(quote: &[WeightedQuoteLine], text: &[HashesOfLineAndItsWords]) -> Option<QuoteAlignment> {
    let empty = AlignmentCell { score: 0.0, start: (0, 0) };
    let mut above = vec![empty; text.len() + 1];
    let mut best: Option<(AlignmentCell, (usize, usize))> = None;
    for (line, quoted) in quote.iter().enumerate() {
        let mut row = vec![empty; text.len() + 1];
        for (at, actual) in text.iter().enumerate() {
            let similarity = line_similarity(quoted, actual);
            let mut cell = if similarity > 0.0 {
                let before = above[at];
                let start = if before.score > 0.0 { before.start } else { (line, at) };
                AlignmentCell { score: before.score + similarity, start }
            } else {
                AlignmentCell { score: above[at].score - 2.0 * GAP_PENALTY, start: above[at].start }
            };
            for other in [above[at + 1], row[at]] {
                if other.score - GAP_PENALTY > cell.score {
                    cell = AlignmentCell { score: other.score - GAP_PENALTY, start: other.start };
                }
            }
            if cell.score <= 0.0 {
                cell = empty;
            }
            if similarity > 0.0 && best.is_none_or(|(high, _)| cell.score > high.score) {
                best = Some((cell, (line, at)));
            }
            row[at + 1] = cell;
        }
        above = row;
    }
    let (cell, (line, at)) = best?;
    let signed = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    Some(QuoteAlignment {
        score: cell.score,
        first: signed(cell.start.1) - signed(cell.start.0),
        last: signed(at + quote.len() - 1 - line),
    })
}

fn line_similarity(quoted: &WeightedQuoteLine, actual: &HashesOfLineAndItsWords) -> f64 {
    if quoted.line_hash == actual.line_hash {
        return quoted.weight;
    }
    let (mut shared, mut shared_weight, mut weight) = (0_usize, 0.0, 0.0);
    for (word, word_weight) in &quoted.words {
        weight += word_weight;
        if actual.word_hashes.binary_search(word).is_ok() {
            shared += 1;
            shared_weight += word_weight;
        }
    }
    if shared == 0 {
        return 0.0;
    }
    let (of_quoted, of_actual) = (shared_weight / weight, shared as f64 / actual.word_hashes.len() as f64);
    // The similarity is the mean of two shares: the shared part of all words, and the shared part of the shorter line's
    // words. If a line was split or joined, the second share stays high.
    let all = 1.0 / (1.0 / of_quoted + 1.0 / of_actual - 1.0);
    let part = all.midpoint(of_quoted.max(of_actual));
    if part < SIMILARITY_MIN { 0.0 } else { part * SIMILAR_LINE_WEIGHT * quoted.weight }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprints(lines: &[u64]) -> Vec<HashesOfLineAndItsWords> {
        lines.iter().map(|&whole| HashesOfLineAndItsWords { line_hash: whole, word_hashes: Vec::new() }).collect()
    }

    fn weighted_lines(lines: &[u64]) -> Vec<WeightedQuoteLine> {
        lines.iter().map(|&whole| WeightedQuoteLine { line_hash: whole, words: Vec::new(), weight: 1.0 }).collect()
    }

    #[test]
    fn only_rare_words_make_lines_similar() {
        let quoted = WeightedQuoteLine { line_hash: 1, weight: 1.0, words: vec![(10, 0.1), (11, 1.0)] };
        let actual = |words: &[u64]| HashesOfLineAndItsWords { line_hash: 2, word_hashes: words.to_vec() };
        assert!(line_similarity(&quoted, &actual(&[11, 12, 13])) > 0.3);
        assert!(line_similarity(&quoted, &actual(&[10, 12, 13])) == 0.0);
    }

    #[test]
    fn alignment_survives_inserted_and_removed_lines() {
        let align_lines = |quote: &[u64], text: &[u64]| {
            align(&weighted_lines(quote), &fingerprints(text)).map(|alignment| (alignment.first, alignment.last))
        };
        assert_eq!(align_lines(&[1, 2, 3], &[9, 1, 2, 3, 9]), Some((1, 3)));
        assert_eq!(align_lines(&[1, 2, 3, 4], &[9, 1, 2, 7, 7, 3, 4]), Some((1, 6)));
        assert_eq!(align_lines(&[5, 2, 3, 6], &[9, 9, 2, 3, 9]), Some((1, 4)));
        assert_eq!(align_lines(&[2], &[1]), None);
    }
}
