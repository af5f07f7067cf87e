//! Measures how close the hint of a failed edit is to the lines that replaced the quoted lines.
//!
//! A quote is made from each place where a commit replaced up to three lines, with one to three lines of context. Only
//! quotes that do not occur in the new text are measured. The right lines for a hint are those that replaced the quoted
//! lines according to the diff. A quote whose right lines are more than three lines longer than the quote is counted
//! separately.

use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use stead_text::{
    diff, edit, lines,
    locate::{QuoteSearchHaystack, QuoteSearchOptions},
};

use super::{BenchOldAndNewText, HintBenchReportDetailLevel};

const REPLACED_LINES_MAX: usize = 3;

/// Quotes have one, two or three lines of context in turn.
const CONTEXT_LINES_MAX: usize = 3;

/// A hint counts as good if it is at most this many lines from the right line.
const NEAR_LINES_MAX: usize = 5;

#[derive(Debug, Default)]
pub(super) struct EditHintBenchStatistics {
    total: usize,
    exact: usize,
    within_two: usize,
    near: usize,
    /// The number of wrong hints at lines that resemble the quote at least as much as the right lines do.
    rival_misses: usize,
    /// The number of quotes that were replaced by many more lines.
    grown_quotes: usize,
    grown_near: usize,
    grown_at_start: usize,
    slowest: Duration,
    misses: Vec<EditHintBenchMiss>,
}

#[derive(Debug)]
struct EditHintBenchMiss {
    name: String,
    quote: String,
    true_lines: RangeInclusive<usize>,
    true_text: String,
    hinted_lines: Option<RangeInclusive<usize>>,
    hint_text: String,
}

impl EditHintBenchStatistics {
    /// Measures the hint for every place where up to three lines of a text were replaced.
    pub(super) fn measure(&mut self, pair: &BenchOldAndNewText) {
        let finder = QuoteSearchHaystack::new(&pair.new);
        let last = lines::count_lines(pair.old.as_bytes());
        for hunk in diff::hunks(&pair.old, &pair.new) {
            if !(1..=REPLACED_LINES_MAX).contains(&hunk.old.len()) || hunk.new.is_empty() {
                continue;
            }
            let context = 1 + (self.total + self.grown_quotes) % CONTEXT_LINES_MAX;
            let quoted = hunk.old.start.saturating_sub(context) + 1..=(hunk.old.end + context).min(last);
            let Some(quote) = lines::slice_lines(&pair.old, quoted.clone()) else { continue };
            let Some(truth) = edit::map_lines(&pair.old, &pair.new, &quoted) else { continue };
            if finder.find(quote, QuoteSearchOptions::LENIENT).matches.is_empty() {
                let started = Instant::now();
                let hint = finder.nearest_candidate(quote).map(|nearest| nearest.lines);
                self.slowest = self.slowest.max(started.elapsed());
                if truth.clone().count() > quoted.count() + REPLACED_LINES_MAX {
                    let far = truth.end().saturating_add(NEAR_LINES_MAX);
                    let near = truth.start().saturating_sub(NEAR_LINES_MAX)..=far;
                    self.grown_quotes += 1;
                    let hint = hint.map_or(usize::MAX, |hint| *hint.start());
                    self.grown_near += usize::from(near.contains(&hint));
                    self.grown_at_start += usize::from(hint.abs_diff(*truth.start()) <= NEAR_LINES_MAX);
                } else {
                    self.count_hint(pair, quote, truth, hint);
                }
            }
        }
    }

    fn count_hint(
        &mut self,
        pair: &BenchOldAndNewText,
        quote: &str,
        truth: RangeInclusive<usize>,
        hint: Option<RangeInclusive<usize>>,
    ) {
        self.total += 1;
        let off = hint.as_ref().map_or(usize::MAX, |hint| hint.start().abs_diff(*truth.start()));
        self.exact += usize::from(off == 0);
        self.within_two += usize::from(off <= 2);
        self.near += usize::from(off <= NEAR_LINES_MAX);
        if off > NEAR_LINES_MAX {
            let text = |lines: RangeInclusive<usize>| lines::slice_lines(&pair.new, lines).unwrap_or("").to_owned();
            let (true_text, hint_text) = (text(truth.clone()), hint.clone().map_or(String::new(), text));
            self.rival_misses += usize::from(is_rival(quote, &true_text, &hint_text));
            let (name, quote) = (pair.name.clone(), quote.to_owned());
            self.misses.push(EditHintBenchMiss {
                name,
                quote,
                true_lines: truth,
                true_text,
                hinted_lines: hint,
                hint_text,
            });
        }
    }

    pub(super) fn report(&self, shows: HintBenchReportDetailLevel) {
        let part = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
        println!(
            "hints: {} quotes that are gone; exact {:.1} %, within 2 lines {:.1} %, within {NEAR_LINES_MAX} lines {:.1} %; {} \
             missed, {} of them at lines that hold as much of the quote as the true ones; slowest {:.1} ms",
            self.total,
            part(self.exact, self.total),
            part(self.within_two, self.total),
            part(self.near, self.total),
            self.misses.len(),
            self.rival_misses,
            1000.0 * self.slowest.as_secs_f64(),
        );
        println!(
            "hints, where more than {REPLACED_LINES_MAX} lines came: {} quotes; among those or within {NEAR_LINES_MAX} lines \
             {:.1} %; within {NEAR_LINES_MAX} lines of the first {:.1} %",
            self.grown_quotes,
            part(self.grown_near, self.grown_quotes),
            part(self.grown_at_start, self.grown_quotes),
        );
        println!(
            "hints, all quotes: {}; within {NEAR_LINES_MAX} lines of the first true line {:.1} %",
            self.total + self.grown_quotes,
            part(self.near + self.grown_at_start, self.total + self.grown_quotes),
        );
        match shows {
            HintBenchReportDetailLevel::Summary => {}
            HintBenchReportDetailLevel::WithMisses => self.misses.iter().for_each(EditHintBenchMiss::print),
        }
    }
}

impl EditHintBenchMiss {
    fn print(&self) {
        println!("--- {}: quoted", self.name);
        print!("{}", self.quote);
        println!("--- truly {:?}", self.true_lines);
        print!("{}", self.true_text);
        println!("--- hint {:?}", self.hinted_lines);
        print!("{}", self.hint_text);
    }
}

/// Whether the text `hinted` shares at least as many lines and words with the quote as the text `truly` does.
fn is_rival(quote: &str, truly: &str, hinted: &str) -> bool {
    let lines = |text| count_shared(quote, text, |text| text.lines().map(str::trim).collect());
    let words = |text| count_shared(quote, text, |text| text.split(|c: char| !c.is_alphanumeric()).collect());
    lines(hinted) >= lines(truly) && words(hinted) >= words(truly)
}

/// The number of non-empty pieces of `quote` that `text` also has.
fn count_shared<'t>(quote: &'t str, text: &'t str, pieces: impl Fn(&'t str) -> Vec<&'t str>) -> usize {
    let mut left = pieces(text);
    let mut count = 0;
    for piece in pieces(quote).into_iter().filter(|piece| !piece.is_empty()) {
        if let Some(at) = left.iter().position(|other| *other == piece) {
            left.swap_remove(at);
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_quote_is_measured() {
        let pair = |new: &str| BenchOldAndNewText {
            name: "a".to_owned(),
            old: "a\nb\nc one two\nd\ne\n".to_owned(),
            new: new.to_owned(),
        };
        let mut hints = EditHintBenchStatistics::default();
        hints.measure(&pair("a\nb\nc one three\nd\ne\n"));
        hints.measure(&pair("x\na\nb\nc one two\nd\ne\n"));
        assert_eq!((hints.total, hints.exact, hints.near, hints.grown_quotes), (1, 1, 1, 0));
        hints.measure(&pair("a\nb\n1\n2\n3\n4\n5\nd\ne\n"));
        assert_eq!((hints.total, hints.grown_quotes, hints.grown_near), (1, 1, 1));
    }

    #[test]
    fn rival_shares_as_much_of_the_quote_as_the_truth() {
        assert!(is_rival("a\nb\n", "a\n", "b\n"));
        assert!(!is_rival("a\nb\n", "a\nb\n", "b\nb\n"));
    }
}
