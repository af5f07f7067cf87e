//! How a chunk fails that has no place. Owns the words and facts: what is there instead, every place it fits, and the
//! revision that it was written for, if that is kept.

use serde_json::Value;
use text::{
    edit::{Spot, spots},
    locate::{Borders, Finder, Place},
    patch::{ApplyError, Reason},
};

use super::refusal::At;
use crate::{
    failure::{Failure, Kind},
    limits,
    ops::{
        older::{self, Now},
        spots::{cut, difference, fact, numbered, told},
    },
    view::View,
};

/// The failure of a chunk of the section `at`.
pub(super) fn unplaced(view: &View<'_>, now: Now<'_>, error: &ApplyError, at: At) -> Failure {
    let scene = Scene { view, now, error, finder: Finder::new(now.text) };
    let failure = scene.failure();
    let path = now.path.to_string();
    at.named(failure.fact("path", path).fact("chunk", error.chunk).fact("line", error.line))
}

/// Everything a failure is told from.
struct Scene<'a> {
    view: &'a View<'a>,
    now: Now<'a>,
    error: &'a ApplyError,
    finder: Finder<'a>,
}

impl Scene<'_> {
    fn detail(&self, what: &str) -> String {
        let ApplyError { chunk, line, .. } = self.error;
        format!("{}, chunk {chunk} (line {line} of the patch): {what}", self.now.path)
    }

    fn failure(&self) -> Failure {
        let new = |kind, what: &str| Failure::new(kind, self.detail(what));
        match &self.error.reason {
            Reason::NotFound { already: Some(line), .. } => {
                new(Kind::AlreadyApplied, &format!("line {line} already is as the chunk would make it"))
                    .hint("leave the chunk out")
                    .fact("at", *line)
            }
            Reason::NotFound { quoted, already: None } => self.not_found(quoted),
            Reason::AnchorNotFound { anchor } => self.anchor_not_found(anchor),
            Reason::Ambiguous { lines, count } => self.ambiguous(lines, *count),
            Reason::Overlap { other, line } => {
                new(Kind::Overlap, &format!("chunk {other} already changes line {line}"))
                    .hint("put both changes in one chunk")
                    .fact("other_chunk", *other)
                    .fact("at", *line)
            }
            Reason::NumberOnly { line } => {
                let what =
                    format!("it quotes no line, and the file is not the one whose line {line} it counts");
                new(Kind::Ambiguous, &what)
                    .hint("write the line before the new ones as context")
                    .fact("at", *line)
                    .fact("reason", "number_only")
            }
            Reason::Exhausted => {
                new(Kind::TooLarge, "the file repeats too much").hint("write more lines around the change")
            }
        }
    }

    fn ambiguous(&self, lines: &[usize], count: usize) -> Failure {
        let place = |first: &usize| {
            let last = (*first + count.max(1) - 1).min(self.finder.line_count());
            let bytes = self.finder.line_bytes(*first).start..self.finder.line_bytes(last).end;
            Place { bytes, lines: *first..=last, delta: None }
        };
        let places: Vec<Place> = lines.iter().map(place).collect();
        let mut spots: Vec<Spot> = spots(&self.finder, &places);
        spots.truncate(limits::FAILURE_PLACES_MAX);
        let hint = if spots.iter().any(|spot| spot.extra.is_some()) {
            "write the line that makes yours unique as context, or the line of its definition behind @@"
        } else {
            "write more lines around the change, or the line of its definition behind @@"
        };
        let what = format!("it fits at lines {}", listed(lines));
        Failure::new(Kind::Ambiguous, self.detail(&what))
            .hint(hint)
            .shows(spots.iter().map(told).collect::<String>())
            .fact("places", spots.iter().map(fact).collect::<Vec<Value>>())
            .fact("places_total", lines.len())
    }

    fn not_found(&self, quoted: &str) -> Failure {
        let mut what = format!("its lines, from {:?} on, are not in the file", cut(quoted));
        let older = older::holding(self.view, self.now, quoted, Borders::WholeLines);
        if let Some(older) = &older {
            what.push_str(&format!("; {}", older.sentence()));
        }
        let failure = Failure::new(Kind::TextNotFound, self.detail(&what)).fact("quoted", shortened(quoted));
        let Some(older) = older else {
            return self.with_nearest(failure, quoted, "nothing like it is in the file; read it again");
        };
        // Where the journal knows what the lines became, nothing has to be guessed.
        let mut shown = String::new();
        let mut failure = failure.fact("older", older.fact());
        if let Some(lines) = older.lines() {
            shown = numbered(&self.finder, lines, limits::FAILURE_LINES_MAX);
            failure = failure
                .fact("nearest", shown.clone())
                .fact("nearest_from", *lines.start())
                .fact("nearest_to", *lines.end());
        }
        shown.push_str(older.diff());
        failure
            .shows(shown)
            .hint(format!("look at the diff since {}, then quote what is there now", older.rev()))
    }

    fn anchor_not_found(&self, anchor: &str) -> Failure {
        let failure = Failure::new(Kind::TextNotFound, self.detail(&format!("no line is {anchor:?}")));
        self.with_nearest(failure, anchor, "write a whole line of the file behind @@, or nothing")
    }

    /// Adds the current lines where a quote most likely belongs; else only the hint.
    fn with_nearest(&self, failure: Failure, quoted: &str, otherwise: &str) -> Failure {
        let Some(nearest) = self.finder.nearest(quoted) else { return failure.hint(otherwise) };
        let (first, last) = nearest.lines.clone().into_inner();
        let shown = numbered(&self.finder, &nearest.lines, limits::FAILURE_LINES_MAX);
        let mut failure =
            failure.shows(&shown).fact("nearest", shown).fact("nearest_from", first).fact("nearest_to", last);
        let differs: Vec<Value> = nearest.differences.iter().map(difference).collect();
        if !differs.is_empty() {
            failure = failure.fact("differs", differs);
        }
        failure.hint(format!("the nearest lines are {first}-{last}, given here; quote those that are there"))
    }
}

fn listed(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(limits::FAILURE_PLACES_MAX).map(ToString::to_string).collect();
    let more = if lines.len() > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}

fn shortened(quoted: &str) -> String {
    let mut lines: Vec<&str> = quoted.lines().take(limits::FAILURE_LINES_MAX).collect();
    if quoted.lines().count() > lines.len() {
        lines.push("…");
    }
    lines.join("\n")
}
