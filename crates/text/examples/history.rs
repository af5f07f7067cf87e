//! Measures stale edits on real history.
//!
//! Reads pairs of texts from standard input, each as `<bytes of old> <bytes of new>\n` followed by both.
//!
//! The hint: every changed block of the old text, with two lines of context, is a stale quote of the new one. How often
//! does the nearest-place search land on the true place?
//!
//! The rebase: the changes between old and new are dealt out in turn, one to a caller that edits the old text by quotes,
//! one to others. The caller's edits are applied to what the others left. The new text is the right result.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::time::{Duration, Instant};

use text::diff::{self, Hunk};
use text::edit::{Edit, Rules, Splice, anchored, apply};
use text::lines;
use text::locate::{Finder, Matching};
use text::merge::{Merged, merge};

const CONTEXT_LINES: usize = 2;

#[derive(Default)]
struct Tally {
    blocks: usize,
    rewritten: usize,
    exact: usize,
    within_two: usize,
    within_five: usize,
    slowest: Duration,
    files: usize,
    anchored: usize,
    anchored_wrong: usize,
    merged: usize,
    merged_wrong: usize,
    either: usize,
}

fn main() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut tally = Tally::default();
    let mut header = String::new();
    while input.read_line(&mut header)? > 0 {
        let mut sizes = header.split_whitespace().map_while(|size| size.parse::<usize>().ok());
        let (Some(old), Some(new)) = (sizes.next(), sizes.next()) else { break };
        let mut bytes = vec![0; old + new];
        input.read_exact(&mut bytes)?;
        let (old, new) = bytes.split_at(old);
        if let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) {
            hint(old, new, &mut tally);
            rebase(old, new, &mut tally);
        }
        header.clear();
    }
    let part = |count: usize| 100.0 * count as f64 / (tally.blocks - tally.rewritten).max(1) as f64;
    let mut output = io::stdout().lock();
    writeln!(
        output,
        "hint: {} blocks, {} of them mostly rewritten and left out; exact {:.1} %, within 2 lines {:.1} %, within 5 lines {:.1} %; slowest {:?}",
        tally.blocks,
        tally.rewritten,
        part(tally.exact),
        part(tally.within_two),
        part(tally.within_five),
        tally.slowest
    )?;
    writeln!(
        output,
        "rebase: {} files; anchored {} ({} not as expected), merged {} ({} not as expected), one or the other {}",
        tally.files, tally.anchored, tally.anchored_wrong, tally.merged, tally.merged_wrong, tally.either
    )
}

fn hint(old: &str, new: &str, tally: &mut Tally) {
    let hunks = diff::hunks(old, new);
    let count = lines::count(old.as_bytes());
    let finder = Finder::new(new);
    for hunk in hunks.iter().filter(|hunk| !hunk.old.is_empty() && !hunk.new.is_empty()) {
        let first = hunk.old.start.saturating_sub(CONTEXT_LINES);
        let last = (hunk.old.end + CONTEXT_LINES).min(count);
        let Some(quote) = lines::slice(old, first + 1..=last) else { continue };
        if !finder.find(quote, Matching::LENIENT).places.is_empty() {
            continue;
        }
        tally.blocks += 1;
        // More than half of the block must be left: what was rewritten or moved away has no true place.
        if 2 * hunk.old.len() > last - first {
            tally.rewritten += 1;
            continue;
        }
        let truth = hunk.new.start.saturating_sub(hunk.old.start - first) + 1;
        let started = Instant::now();
        let nearest = finder.nearest(quote);
        tally.slowest = tally.slowest.max(started.elapsed());
        let Some(nearest) = nearest else { continue };
        let off = nearest.lines.start().abs_diff(truth);
        tally.exact += usize::from(off == 0);
        tally.within_two += usize::from(off <= 2);
        tally.within_five += usize::from(off <= 5);
    }
}

fn rebase(old: &str, new: &str, tally: &mut Tally) {
    let hunks = diff::hunks(old, new);
    if hunks.len() < 2 {
        return;
    }
    tally.files += 1;
    let theirs: Vec<Splice> = hunks.iter().skip(1).step_by(2).map(|hunk| splice(old, new, hunk)).collect();
    let ours: Vec<Splice> = hunks.iter().step_by(2).map(|hunk| splice(old, new, hunk)).collect();
    let current = apply(old, &theirs);
    let quotes: Vec<(String, String)> = hunks.iter().step_by(2).map(|hunk| quoted(old, new, hunk)).collect();
    let edits: Vec<Edit<'_>> = quotes.iter().map(|(old, new)| Edit::new(old, new)).collect();
    let by_anchor = anchored(old, &current, &edits, Rules::NATIVE).map(|edited| edited.text).ok();
    tally.anchored += usize::from(by_anchor.is_some());
    tally.anchored_wrong += usize::from(by_anchor.as_ref().is_some_and(|text| text != new));
    let by_merge = match merge(old, &apply(old, &ours), &current) {
        Merged::Clean(text) => Some(text),
        Merged::Conflict(_) => None,
    };
    tally.merged += usize::from(by_merge.is_some());
    tally.merged_wrong += usize::from(by_merge.as_ref().is_some_and(|text| text != new));
    tally.either += usize::from(by_anchor.is_some() || by_merge.is_some());
}

fn bytes(text: &str, from: usize, to: usize) -> std::ops::Range<usize> {
    let finder = Finder::new(text);
    finder.line_bytes(from + 1).start..finder.line_bytes(to + 1).start
}

fn splice(old: &str, new: &str, hunk: &Hunk) -> Splice {
    let text = new[bytes(new, hunk.new.start, hunk.new.end)].to_owned();
    Splice { bytes: bytes(old, hunk.old.start, hunk.old.end), text }
}

/// A hunk as a caller would quote it: with as few lines around it as make it unique.
fn quoted(old: &str, new: &str, hunk: &Hunk) -> (String, String) {
    let finder = Finder::new(old);
    let count = finder.line_count();
    let mut pair = (String::new(), String::new());
    for context in 0..=20 {
        let first = hunk.old.start.saturating_sub(context);
        let last = (hunk.old.end + context).min(count);
        let before = &old[bytes(old, first, hunk.old.start)];
        let after = &old[bytes(old, hunk.old.end, last)];
        let quote = &old[bytes(old, first, last)];
        pair =
            (quote.to_owned(), format!("{before}{}{after}", &new[bytes(new, hunk.new.start, hunk.new.end)]));
        if !quote.trim().is_empty() && finder.find(quote, Matching::LENIENT).places.len() == 1 {
            break;
        }
    }
    pair
}
