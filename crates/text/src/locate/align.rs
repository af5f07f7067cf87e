//! How well a quote fits a stretch of text, line against line.
//!
//! Owns the weighing of one alignment (Smith and Waterman's, on lines). Promises the best-weighed alignment of the two
//! and where it would put the quote's first and last line. Time is the product of both lengths, so callers keep both
//! short.

/// What a line is known by.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// The line itself, without indentation, as a hash; 0 for a blank line.
    pub(super) whole: u64,
    /// Its words as sorted, distinct hashes.
    pub(super) words: Vec<u64>,
}

/// A line of a quote, and how much its parts say about a place: little if they are everywhere, 1 at most.
#[derive(Debug, Clone, Default)]
pub(super) struct Weighed {
    pub(super) whole: u64,
    pub(super) weight: f64,
    pub(super) words: Vec<(u64, f64)>,
}

/// An alignment: how good, and the lines it puts the quote's first and last line on (from the stretch's first line).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit {
    pub(super) score: f64,
    pub(super) first: i64,
    pub(super) last: i64,
}

/// What leaving out a line costs, on either side.
const GAP: f64 = 0.08;

/// Lines that share less than this part of their words are strangers.
const KIN_MIN: f64 = 0.34;

/// What an equal line is worth beside one that merely shares its words.
const KIN_WEIGHT: f64 = 0.7;

/// Where a cell of the table came from.
#[derive(Debug, Clone, Copy)]
struct Cell {
    score: f64,
    /// The first aligned pair of the best alignment that ends here.
    start: (usize, usize),
}

/// The best alignment of `quote` with a part of `stretch`, unless nothing aligns.
pub(super) fn fit(quote: &[Weighed], stretch: &[Known]) -> Option<Fit> {
    let nothing = Cell { score: 0.0, start: (0, 0) };
    let mut above = vec![nothing; stretch.len() + 1];
    let mut best: Option<(Cell, (usize, usize))> = None;
    for (line, quoted) in quote.iter().enumerate() {
        let mut row = vec![nothing; stretch.len() + 1];
        for (at, there) in stretch.iter().enumerate() {
            let worth = likeness(quoted, there);
            let mut cell = if worth > 0.0 {
                let before = above[at];
                let start = if before.score > 0.0 { before.start } else { (line, at) };
                Cell { score: before.score + worth, start }
            } else {
                Cell { score: above[at].score - 2.0 * GAP, start: above[at].start }
            };
            for other in [above[at + 1], row[at]] {
                if other.score - GAP > cell.score {
                    cell = Cell { score: other.score - GAP, start: other.start };
                }
            }
            if cell.score <= 0.0 {
                cell = nothing;
            }
            if worth > 0.0 && best.is_none_or(|(high, _)| cell.score > high.score) {
                best = Some((cell, (line, at)));
            }
            row[at + 1] = cell;
        }
        above = row;
    }
    let (cell, (line, at)) = best?;
    let signed = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    Some(Fit {
        score: cell.score,
        first: signed(cell.start.1) - signed(cell.start.0),
        last: signed(at + quote.len() - 1 - line),
    })
}

/// How much speaks for two lines being the same one.
fn likeness(quoted: &Weighed, there: &Known) -> f64 {
    if quoted.whole == there.whole {
        return quoted.weight;
    }
    let (mut shared, mut shared_weight, mut weight) = (0_usize, 0.0, 0.0);
    for (word, word_weight) in &quoted.words {
        weight += word_weight;
        if there.words.binary_search(word).is_ok() {
            shared += 1;
            shared_weight += word_weight;
        }
    }
    if shared == 0 {
        return 0.0;
    }
    let (of_quoted, of_there) = (shared_weight / weight, shared as f64 / there.words.len() as f64);
    // Shared beside all words; and beside those of the shorter one, as a line that was split or joined shares those.
    let all = 1.0 / (1.0 / of_quoted + 1.0 / of_there - 1.0);
    let part = all.midpoint(of_quoted.max(of_there));
    if part < KIN_MIN { 0.0 } else { part * KIN_WEIGHT * quoted.weight }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(lines: &[u64]) -> Vec<Known> {
        lines.iter().map(|&whole| Known { whole, words: Vec::new() }).collect()
    }

    fn weighed(lines: &[u64]) -> Vec<Weighed> {
        lines.iter().map(|&whole| Weighed { whole, words: Vec::new(), weight: 1.0 }).collect()
    }

    #[test]
    fn a_rare_word_makes_kin_and_a_frequent_one_does_not() {
        let quoted = Weighed { whole: 1, weight: 1.0, words: vec![(10, 0.1), (11, 1.0)] };
        let there = |words: &[u64]| Known { whole: 2, words: words.to_vec() };
        assert!(likeness(&quoted, &there(&[11, 12, 13])) > 0.3);
        assert!(likeness(&quoted, &there(&[10, 12, 13])) == 0.0);
    }

    #[test]
    fn lines_that_came_or_went_do_not_part_an_alignment() {
        let fit_of = |quote: &[u64], stretch: &[u64]| {
            fit(&weighed(quote), &known(stretch)).map(|fit| (fit.first, fit.last))
        };
        assert_eq!(fit_of(&[1, 2, 3], &[9, 1, 2, 3, 9]), Some((1, 3)));
        assert_eq!(fit_of(&[1, 2, 3, 4], &[9, 1, 2, 7, 7, 3, 4]), Some((1, 6)));
        assert_eq!(fit_of(&[5, 2, 3, 6], &[9, 9, 2, 3, 9]), Some((1, 4)));
        assert_eq!(fit_of(&[2], &[1]), None);
    }
}
