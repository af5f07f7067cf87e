//! How near the hint of a failed edit comes to the truth.
//!
//! Owns the quotes: each place where a commit replaced up to three lines, quoted with one to three lines around it as
//! it was before. The truth is where the lines of the quote went according to the difference of the two texts. Where that
//! is longer than the quote by more than three lines there is no single true line, and it is counted apart. Promises to
//! ask only for quotes that no pass finds any more, and to leave none of those out.

use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use text::{
    diff, edit, lines,
    locate::{Finder, Matching},
};

use super::{Pair, Shows};

/// The most lines of a replaced region.
const REPLACED_LINES_MAX: usize = 3;

/// Regions are quoted with one line around them, two, three, one, and so on.
const CONTEXT_LINES_MAX: usize = 3;

/// How many lines beside the truth still is a good hint.
const NEAR_LINES: usize = 5;

/// What the hints were worth.
#[derive(Debug, Default)]
pub(super) struct Hints {
    asked: usize,
    exact: usize,
    within_two: usize,
    near: usize,
    /// Misses that show at least as much of the quote as the true place does: nothing in the text tells which is meant.
    rivals: usize,
    /// Quotes of lines that many lines came for, hints that start among those or near, and near the first of them.
    grown: usize,
    grown_near: usize,
    grown_at_start: usize,
    slowest: Duration,
    misses: Vec<Miss>,
}

/// A hint that named other lines.
#[derive(Debug)]
struct Miss {
    name: String,
    quote: String,
    truth: RangeInclusive<usize>,
    true_text: String,
    /// Nothing if there was no hint.
    hint: Option<RangeInclusive<usize>>,
    hint_text: String,
}

impl Hints {
    /// Asks for every replaced region of a text.
    pub(super) fn ask(&mut self, pair: &Pair) {
        let finder = Finder::new(&pair.new);
        let last = lines::count(pair.old.as_bytes());
        for hunk in diff::hunks(&pair.old, &pair.new) {
            if !(1..=REPLACED_LINES_MAX).contains(&hunk.old.len()) || hunk.new.is_empty() {
                continue;
            }
            let context = 1 + (self.asked + self.grown) % CONTEXT_LINES_MAX;
            let quoted = hunk.old.start.saturating_sub(context) + 1..=(hunk.old.end + context).min(last);
            let Some(quote) = lines::slice(&pair.old, quoted.clone()) else { continue };
            let Some(truth) = edit::whereabouts(&pair.old, &pair.new, &quoted) else { continue };
            if finder.find(quote, Matching::LENIENT).places.is_empty() {
                let started = Instant::now();
                let hint = finder.nearest(quote).map(|nearest| nearest.lines);
                self.slowest = self.slowest.max(started.elapsed());
                if truth.clone().count() > quoted.count() + REPLACED_LINES_MAX {
                    let far = truth.end().saturating_add(NEAR_LINES);
                    let near = truth.start().saturating_sub(NEAR_LINES)..=far;
                    self.grown += 1;
                    let hint = hint.map_or(usize::MAX, |hint| *hint.start());
                    self.grown_near += usize::from(near.contains(&hint));
                    self.grown_at_start += usize::from(hint.abs_diff(*truth.start()) <= NEAR_LINES);
                } else {
                    self.count(pair, quote, truth, hint);
                }
            }
        }
    }

    fn count(
        &mut self,
        pair: &Pair,
        quote: &str,
        truth: RangeInclusive<usize>,
        hint: Option<RangeInclusive<usize>>,
    ) {
        self.asked += 1;
        let off = hint.as_ref().map_or(usize::MAX, |hint| hint.start().abs_diff(*truth.start()));
        self.exact += usize::from(off == 0);
        self.within_two += usize::from(off <= 2);
        self.near += usize::from(off <= NEAR_LINES);
        if off > NEAR_LINES {
            let text = |lines: RangeInclusive<usize>| lines::slice(&pair.new, lines).unwrap_or("").to_owned();
            let (true_text, hint_text) = (text(truth.clone()), hint.clone().map_or(String::new(), text));
            self.rivals += usize::from(is_rival(quote, &true_text, &hint_text));
            let (name, quote) = (pair.name.clone(), quote.to_owned());
            self.misses.push(Miss { name, quote, truth, true_text, hint, hint_text });
        }
    }

    /// Prints what the hints were worth.
    pub(super) fn report(&self, shows: Shows) {
        let part = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
        println!(
            "hints: {} quotes that are gone; exact {:.1} %, within 2 lines {:.1} %, within {NEAR_LINES} lines {:.1} %; {} \
             missed, {} of them at lines that hold as much of the quote as the true ones; slowest {:.1} ms",
            self.asked,
            part(self.exact, self.asked),
            part(self.within_two, self.asked),
            part(self.near, self.asked),
            self.misses.len(),
            self.rivals,
            1000.0 * self.slowest.as_secs_f64(),
        );
        println!(
            "hints, where more than {REPLACED_LINES_MAX} lines came: {} quotes; among those or within {NEAR_LINES} lines \
             {:.1} %; within {NEAR_LINES} lines of the first {:.1} %",
            self.grown,
            part(self.grown_near, self.grown),
            part(self.grown_at_start, self.grown),
        );
        println!(
            "hints, all quotes: {}; within {NEAR_LINES} lines of the first true line {:.1} %",
            self.asked + self.grown,
            part(self.near + self.grown_at_start, self.asked + self.grown),
        );
        match shows {
            Shows::Figures => {}
            Shows::Misses => self.misses.iter().for_each(Miss::print),
        }
    }
}

impl Miss {
    fn print(&self) {
        println!("--- {}: quoted", self.name);
        print!("{}", self.quote);
        println!("--- truly {:?}", self.truth);
        print!("{}", self.true_text);
        println!("--- hint {:?}", self.hint);
        print!("{}", self.hint_text);
    }
}

/// Whether `hinted` shares no fewer lines and no fewer words with a quote than `truly` does.
fn is_rival(quote: &str, truly: &str, hinted: &str) -> bool {
    let lines = |text| shared(quote, text, |text| text.lines().map(str::trim).collect());
    let words = |text| shared(quote, text, |text| text.split(|c: char| !c.is_alphanumeric()).collect());
    lines(hinted) >= lines(truly) && words(hinted) >= words(truly)
}

/// How many pieces of `quote` that are not empty `text` has too.
fn shared<'t>(quote: &'t str, text: &'t str, pieces: impl Fn(&'t str) -> Vec<&'t str>) -> usize {
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
    fn a_quote_that_is_gone_is_asked_for() {
        let pair = |new: &str| Pair {
            name: "a".to_owned(),
            old: "a\nb\nc one two\nd\ne\n".to_owned(),
            new: new.to_owned(),
        };
        let mut hints = Hints::default();
        hints.ask(&pair("a\nb\nc one three\nd\ne\n"));
        hints.ask(&pair("x\na\nb\nc one two\nd\ne\n"));
        assert_eq!((hints.asked, hints.exact, hints.near, hints.grown), (1, 1, 1, 0));
        hints.ask(&pair("a\nb\n1\n2\n3\n4\n5\nd\ne\n"));
        assert_eq!((hints.asked, hints.grown, hints.grown_near), (1, 1, 1));
    }

    #[test]
    fn a_rival_holds_as_much_of_the_quote_as_the_truth() {
        assert!(is_rival("a\nb\n", "a\n", "b\n"));
        assert!(!is_rival("a\nb\n", "a\nb\n", "b\nb\n"));
    }
}
