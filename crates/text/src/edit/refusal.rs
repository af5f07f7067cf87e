//! Why an edit is refused, with what its author needs to do better.
//!
//! Owns the shape of a refusal; the words are the caller's. Promises indices as given, lines as people count them, and
//! a bound on everything listed.

use std::ops::RangeInclusive;

use super::{Edit, How};
use crate::locate::{Definition, Extra, Finder, Limit, Nearest, Pass, Place};

/// The most places that a refusal describes; the rest is counted.
pub const SPOTS_MAX: usize = 20;

/// One edit that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which edit, from 0.
    pub edit: usize,
    /// Why.
    pub reason: Reason,
}

/// Why an edit cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It quotes nothing.
    EmptyOld,
    /// What it quotes is not there.
    NotFound(Box<Missing>),
    /// What it quotes is there more than once, and one place is wanted.
    Ambiguous {
        /// The pass that found the places.
        pass: Pass,
        /// How many there are.
        total: usize,
        /// The first of them.
        spots: Vec<Spot>,
    },
    /// What it quotes is there, but not as often as the edit says.
    WrongCount {
        /// How often the edit says.
        expected: usize,
        /// How often it is.
        total: usize,
        /// The first places.
        spots: Vec<Spot>,
    },
    /// It shares text with an earlier edit.
    Overlap {
        /// The other edit.
        other: usize,
        /// The lines they share a place on.
        lines: RangeInclusive<usize>,
    },
    /// Its new text leaves code out where it should spell it out.
    Elided {
        /// The line of the new text, 1-based.
        line: usize,
        /// What it says.
        text: String,
    },
    /// Its quote stands deeper than the text, and a line of its new text cannot be moved left by as much.
    Unindentable {
        /// The line of the new text, 1-based.
        line: usize,
        /// How the quote was found.
        how: How,
    },
    /// It would make the text longer than a text may be.
    TooLong,
    /// The lines it quotes have changed since the base.
    Touched(super::Touched),
}

/// What is known about a quote that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Where it most likely belongs.
    pub nearest: Option<Nearest>,
    /// Another edit of the same call whose new text holds it: edits do not see each other.
    pub made_by: Option<usize>,
    /// The lines where the new text stands, if it is there though not clearly in its place.
    pub new_at: Vec<RangeInclusive<usize>>,
    /// A line of the quote that stands for others instead of quoting them.
    pub elided: Option<String>,
    /// The limit that ended the search early.
    pub limit: Option<Limit>,
}

/// One of several places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// Its bytes in the text.
    pub bytes: std::ops::Range<usize>,
    /// Its lines.
    pub lines: RangeInclusive<usize>,
    /// The definition around it.
    pub within: Option<Definition>,
    /// What to add to the quote so that it means this place only.
    pub extra: Option<Extra>,
}

/// The first of `places`, described.
#[must_use]
pub fn spots(finder: &Finder<'_>, places: &[Place]) -> Vec<Spot> {
    let describe = |place: &Place| Spot {
        bytes: place.bytes.clone(),
        lines: place.lines.clone(),
        within: finder.definition(*place.lines.start()),
        extra: finder.extra(place, places),
    };
    places.iter().take(SPOTS_MAX).map(describe).collect()
}

/// What is known about the quote of edit `index`, which is not there.
pub(super) fn missing(
    finder: &Finder<'_>,
    edits: &[Edit<'_>],
    index: usize,
    new_at: Vec<RangeInclusive<usize>>,
    limit: Option<Limit>,
) -> Missing {
    let old = edits[index].old;
    let makes = |(other, edit): (usize, &Edit<'_>)| {
        (other != index && !old.trim().is_empty() && edit.new.contains(old)).then_some(other)
    };
    Missing {
        nearest: finder.nearest(old),
        made_by: edits.iter().enumerate().find_map(makes),
        new_at,
        elided: super::elision::find(old, "").map(|(_, line)| line),
        limit,
    }
}
