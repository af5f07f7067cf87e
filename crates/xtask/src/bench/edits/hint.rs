//! How near the hint of a failed edit comes to the truth.
//!
//! Owns the quotes: each place where a commit replaced up to three lines, quoted with one to three lines around it as
//! it was before. The truth is where the lines of the quote went according to the difference of the two texts. Promises
//! to ask only for quotes that no pass finds any more, and to leave none of those out.

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

/// What the hints were worth.
#[derive(Debug, Default)]
pub(super) struct Hints {
    asked: usize,
    exact: usize,
    within_two: usize,
    within_five: usize,
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
            let context = 1 + self.asked % CONTEXT_LINES_MAX;
            let quoted = hunk.old.start.saturating_sub(context) + 1..=(hunk.old.end + context).min(last);
            let Some(quote) = lines::slice(&pair.old, quoted.clone()) else { continue };
            let Some(truth) = edit::whereabouts(&pair.old, &pair.new, &quoted) else { continue };
            if finder.find(quote, Matching::LENIENT).places.is_empty() {
                self.count(pair, &finder, quote, truth);
            }
        }
    }

    fn count(&mut self, pair: &Pair, finder: &Finder<'_>, quote: &str, truth: RangeInclusive<usize>) {
        let started = Instant::now();
        let hint = finder.nearest(quote).map(|nearest| nearest.lines);
        self.slowest = self.slowest.max(started.elapsed());
        self.asked += 1;
        let off = hint.as_ref().map_or(usize::MAX, |hint| hint.start().abs_diff(*truth.start()));
        self.exact += usize::from(off == 0);
        self.within_two += usize::from(off <= 2);
        self.within_five += usize::from(off <= 5);
        if off > 5 {
            let text = |lines: RangeInclusive<usize>| lines::slice(&pair.new, lines).unwrap_or("").to_owned();
            self.misses.push(Miss {
                name: pair.name.clone(),
                quote: quote.to_owned(),
                true_text: text(truth.clone()),
                hint_text: hint.clone().map_or(String::new(), text),
                truth,
                hint,
            });
        }
    }

    /// Prints what the hints were worth.
    pub(super) fn report(&self, shows: Shows) {
        let part = |count: usize| 100.0 * count as f64 / self.asked.max(1) as f64;
        println!(
            "hints: {} quotes that are gone; exact {:.1} %, within 2 lines {:.1} %, within 5 lines {:.1} %; slowest {:.1} ms",
            self.asked,
            part(self.exact),
            part(self.within_two),
            part(self.within_five),
            1000.0 * self.slowest.as_secs_f64(),
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
