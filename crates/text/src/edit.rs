//! Several quoted edits of one text, judged against the same snapshot.
//!
//! Owns what an edit is, when it may be applied, and what is said when it may not. Promises that all edits apply or
//! none does, that bytes outside the replaced spans stay as they are, that order does not matter, and that no place is
//! chosen by similarity. A refusal holds everything a caller needs to get the next call right. Never reads or writes
//! files, and never changes what was not quoted: lines of a quote that an edit leaves alone keep their bytes.

mod anchor;
mod elision;
mod fallback;
mod refusal;
mod replacement;
mod select;
mod splice;
mod typing;

use std::ops::RangeInclusive;

pub use anchor::{Touched, anchored, reformatted, whereabouts};
pub use fallback::Fallback;
pub use refusal::{Missing, Reason, Refusal, SPOTS_MAX, Spot, spots};
pub use splice::{Splice, apply, inverse};

use crate::locate::{Counting, Finder, Pass};
use replacement::Unmade;
use select::{Outcome, Selected};

/// One edit: what is there, and what shall be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit<'a> {
    /// The quoted text.
    pub old: &'a str,
    /// What takes its place.
    pub new: &'a str,
    /// Which of its places are meant.
    pub wanted: Wanted,
}

impl<'a> Edit<'a> {
    /// An edit of the one place that holds `old`.
    #[must_use]
    pub fn new(old: &'a str, new: &'a str) -> Self {
        Self { old, new, wanted: Wanted::One }
    }
}

/// Which places of a quote are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The only one.
    One,
    /// All of them, and there must be this many.
    Count(usize),
    /// All of them, however many; at least one.
    All,
    /// The one nearest to this line, 1-based.
    Near(usize),
}

/// What happens when no pass finds a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rescue {
    /// It is not found.
    None,
    /// Slips of typing are undone if the quote is then found: pasted line numbers, escapes written out. A new text
    /// that is already there is recognised, and one that leaves code out is refused.
    Typing,
    /// Blocks that merely resemble the quote are taken, if only one does. Not safe: for vocabularies that ask for it.
    Resemblance,
}

/// What an empty quote means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmptyOld {
    /// Nothing: refused, except in an empty text.
    Refused,
    /// Every place between two characters, and both ends.
    Everywhere,
}

/// How lines of the new text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Terminators {
    /// Like the line they stand beside; where whole lines are replaced, the last one ends too, whatever was forgotten.
    OfLines,
    /// Like the line they stand beside.
    OfNeighbours,
    /// As they are given.
    AsGiven,
}

/// How strict edits are judged: the one place where vocabularies differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The passes by which a quote may be found.
    pub passes: &'static [Pass],
    /// How its places are counted.
    pub counting: Counting,
    /// What happens when no pass finds it.
    pub rescue: Rescue,
    /// What an empty quote means.
    pub empty_old: EmptyOld,
    /// How lines of the new text end.
    pub terminators: Terminators,
}

impl Rules {
    /// Every pass, overlaps counted, slips of typing undone.
    pub const NATIVE: Self = Self {
        passes: Pass::ALL,
        counting: Counting::Overlapping,
        rescue: Rescue::Typing,
        empty_old: EmptyOld::Refused,
        terminators: Terminators::OfLines,
    };

    /// Byte for byte, counted left to right, written as given.
    pub const LITERAL: Self = Self {
        passes: &[Pass::Exact],
        counting: Counting::Separate,
        rescue: Rescue::None,
        empty_old: EmptyOld::Everywhere,
        terminators: Terminators::AsGiven,
    };

    /// As if the text had only `\n`, counted left to right; the text's own terminators stay.
    pub const PLAIN: Self = Self {
        passes: &[Pass::Exact, Pass::Endings],
        counting: Counting::Separate,
        rescue: Rescue::None,
        empty_old: EmptyOld::Refused,
        terminators: Terminators::OfNeighbours,
    };
}

impl Default for Rules {
    fn default() -> Self {
        Self::NATIVE
    }
}

/// How the quote of an edit was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// By a pass.
    Pass(Pass),
    /// By a pass, after line numbers were taken off its lines.
    Unnumbered(Pass),
    /// By a pass, after escapes written out (`\n`, `\t`) were read as what they stand for.
    Unescaped(Pass),
    /// By resemblance.
    Fallback(Fallback),
    /// Not looked for: the edit changes nothing.
    Unchanged,
    /// Not there, but the new text is.
    AlreadyApplied,
}

impl How {
    /// Whether the quote was found as it was given, or nothing was to be found.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Pass(pass) => *pass == Pass::Exact,
            Self::Unchanged | Self::AlreadyApplied => true,
            Self::Unnumbered(_) | Self::Unescaped(_) | Self::Fallback(_) => false,
        }
    }

    /// The name shown to callers.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass(pass) => pass.name(),
            Self::Unnumbered(_) => "line_numbers_removed",
            Self::Unescaped(_) => "escapes_read",
            Self::Fallback(fallback) => fallback.name(),
            Self::Unchanged => "unchanged",
            Self::AlreadyApplied => "already_applied",
        }
    }
}

/// One place that an edit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The lines it took up before.
    pub before: RangeInclusive<usize>,
    /// The lines of the result that stand there now; where everything went away, the line that follows.
    pub after: RangeInclusive<usize>,
}

/// What became of one edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// How its quote was found.
    pub how: How,
    /// Where; for [`How::AlreadyApplied`], where the new text stands.
    pub places: Vec<Changed>,
    /// Characters in which the quote and the text differed though they look alike.
    pub look_alikes: Vec<char>,
    /// The text that was matched at the first place, when that is not the quote itself.
    pub matched: Option<String>,
}

/// The most bytes that edits of one call put into a text.
pub const RESULT_BYTES_MAX: usize = 64 << 20;

/// The result of all edits together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The text with every edit applied.
    pub text: String,
    /// What was replaced by what, in order.
    pub splices: Vec<Splice>,
    /// What became of each edit, in the order given.
    pub applied: Vec<Applied>,
}

/// Applies every edit to `text`, or none.
///
/// # Errors
///
/// What is wrong with each edit that cannot be applied, in the order given.
pub fn edit(text: &str, edits: &[Edit<'_>], rules: Rules) -> Result<Edited, Vec<Refusal>> {
    let finder = Finder::new(text);
    let selected = select_all(&finder, edits, rules)?;
    finish(&finder, &selected)
}

/// Chooses the places of every edit.
fn select_all(finder: &Finder<'_>, edits: &[Edit<'_>], rules: Rules) -> Result<Vec<Outcome>, Vec<Refusal>> {
    let mut outcomes = Vec::new();
    let mut refusals = Vec::new();
    for index in 0..edits.len() {
        match select::select(finder, edits, index, rules) {
            Ok(outcome) => outcomes.push(outcome),
            Err(reason) => refusals.push(Refusal { edit: index, reason }),
        }
    }
    if refusals.is_empty() { Ok(outcomes) } else { Err(refusals) }
}

/// Makes the result from chosen places.
fn finish(finder: &Finder<'_>, outcomes: &[Outcome]) -> Result<Edited, Vec<Refusal>> {
    refuse_overlaps(outcomes)?;
    let mut splices = Vec::new();
    let mut refusals = Vec::new();
    let mut room = RESULT_BYTES_MAX;
    for (index, outcome) in outcomes.iter().enumerate() {
        let Outcome::Replace(selected) = outcome else { continue };
        match replacement::splices(finder, selected, &mut room) {
            Ok(made) => splices.extend(made),
            Err(Unmade::Line(line)) => {
                let reason = Reason::Unindentable { line, how: selected.how.clone() };
                refusals.push(Refusal { edit: index, reason });
            }
            Err(Unmade::TooLong) => {
                refusals.push(Refusal { edit: index, reason: Reason::TooLong });
                break;
            }
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    // Two places that touch may both insert where they meet: the one in front goes first.
    splices.sort_by_key(|(place, splice)| (splice.bytes.start, splice.bytes.end, place.start, place.end));
    let splices: Vec<Splice> = splices.into_iter().map(|(_, splice)| splice).collect();
    let text = apply(finder.text(), &splices);
    let lines = splice::Shift::new(&text, &splices);
    let applied = outcomes.iter().map(|outcome| outcome.applied(finder, &lines)).collect();
    Ok(Edited { text, splices, applied })
}

fn refuse_overlaps(outcomes: &[Outcome]) -> Result<(), Vec<Refusal>> {
    let mut spans: Vec<(usize, &Selected, usize)> = Vec::new();
    for (index, outcome) in outcomes.iter().enumerate() {
        if let Outcome::Replace(selected) = outcome {
            spans.extend((0..selected.places.len()).map(|place| (index, selected, place)));
        }
    }
    spans.sort_by_key(|(index, selected, place)| {
        let bytes = &selected.places[*place].bytes;
        (bytes.start, bytes.end, *index)
    });
    let mut refusals: Vec<Refusal> = Vec::new();
    for pair in spans.windows(2) {
        let [(first, one, a), (second, other, b)] = pair else { continue };
        let (one, other) = (&one.places[*a], &other.places[*b]);
        let is_same_point = one.bytes == other.bytes;
        if other.bytes.start < one.bytes.end || is_same_point {
            let (low, high) = (*first.min(second), *first.max(second));
            let reason = Reason::Overlap { other: low, lines: other.lines.clone() };
            if refusals.iter().all(|refusal| refusal.edit != high || refusal.reason != reason) {
                refusals.push(Refusal { edit: high, reason });
            }
        }
    }
    if refusals.is_empty() { Ok(()) } else { Err(refusals) }
}

#[cfg(test)]
mod tests;
