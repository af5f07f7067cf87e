//! Which places of a text one edit means.
//!
//! Owns the order in which a quote is looked for and the counting of what is found. Promises as many places as were
//! wanted or a reason. Never changes anything.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use super::splice::Shift;
use super::{
    Applied, Changed, Edit, EmptyOld, How, Reason, Rescue, Rules, Terminators, Wanted, elision, fallback,
    refusal, typing,
};
use crate::locate::{self, Borders, Counting, Finder, Found, Limit, Matching, Pass, Place};
use crate::proof;

/// The fewest characters, white space aside, of a new text that is worth telling where it stands.
const ALREADY_CHARS_MIN: usize = 3;

/// The places where a new text already stands that are listed.
const NEW_PLACES_MAX: usize = 5;

/// What an edit will do.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Replace these places.
    Replace(Selected),
    /// Nothing: old and new are the same.
    Unchanged,
    /// Nothing: the new text is already there.
    Already(Vec<RangeInclusive<usize>>),
}

/// The places that one edit replaces.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) how: How,
    pub(super) places: Vec<Place>,
    /// The quote as it was found by its pass.
    pub(super) old: String,
    /// The new text that goes with it.
    pub(super) new: String,
    pub(super) terminators: Terminators,
}

impl Selected {
    /// The pass that found the places, if one did.
    pub(super) fn pass(&self) -> Option<Pass> {
        match &self.how {
            How::Pass(pass) | How::Unnumbered(pass) | How::Unescaped(pass) => Some(*pass),
            How::Fallback(_) | How::Unchanged | How::AlreadyApplied => None,
        }
    }
}

impl Outcome {
    /// What is told about it.
    pub(super) fn applied(&self, finder: &Finder<'_>, shift: &Shift<'_>) -> Applied {
        let nothing = |how| Applied { how, places: Vec::new(), look_alikes: Vec::new(), matched: None };
        match self {
            Self::Unchanged => nothing(How::Unchanged),
            Self::Already(lines) => {
                let there =
                    |lines: &RangeInclusive<usize>| Changed { before: lines.clone(), after: lines.clone() };
                Applied { places: lines.iter().map(there).collect(), ..nothing(How::AlreadyApplied) }
            }
            Self::Replace(selected) => {
                let matched = selected.places.first().map(|place| &finder.text()[place.bytes.clone()]);
                Applied {
                    how: selected.how.clone(),
                    places: selected.places.iter().map(|place| shift.changed(place)).collect(),
                    look_alikes: matched.map(|text| look_alikes(&selected.old, text)).unwrap_or_default(),
                    matched: matched.filter(|text| *text != selected.old).map(str::to_owned),
                }
            }
        }
    }
}

/// The places that edit `index` means.
pub(super) fn select(
    finder: &Finder<'_>,
    edits: &[Edit<'_>],
    index: usize,
    rules: Rules,
) -> Result<Outcome, Reason> {
    let edit = edits[index];
    if edit.old.is_empty() && (rules.empty_old == EmptyOld::Everywhere || finder.text().is_empty()) {
        return everywhere(finder, edit, rules);
    }
    if edit.old.is_empty() {
        return Err(Reason::EmptyOld);
    }
    if rules.rescue == Rescue::Typing {
        if edit.old == edit.new {
            return Ok(Outcome::Unchanged);
        }
        if let Some((line, text)) = elision::find(edit.new, edit.old)
            && !finder.text().contains(&text)
        {
            return Err(Reason::Elided { line, text });
        }
    }
    let matching = matching(edit.wanted, rules);
    let found = finder.find(edit.old, matching);
    if !found.places.is_empty() {
        return chosen(finder, found, edit, How::Pass, rules);
    }
    match rules.rescue {
        Rescue::None => {}
        Rescue::Resemblance => {
            if matches!(edit.wanted, Wanted::One | Wanted::Count(1))
                && let Some(outcome) = resembling(finder, edit, rules)
            {
                return outcome;
            }
        }
        Rescue::Typing => {
            if let Some(outcome) = retyped(finder, edit, matching, rules) {
                return outcome;
            }
        }
    }
    not_there(finder, edits, index, found.limit, rules)
}

fn matching(wanted: Wanted, rules: Rules) -> Matching {
    let counting = match wanted {
        // Replacing all goes from left to right, as everybody expects.
        Wanted::All => Counting::Separate,
        Wanted::One | Wanted::Count(_) | Wanted::Near(_) => rules.counting,
    };
    Matching { passes: rules.passes, counting, borders: Borders::Anywhere }
}

/// The places of an empty quote: between all characters.
fn everywhere(finder: &Finder<'_>, edit: Edit<'_>, rules: Rules) -> Result<Outcome, Reason> {
    let total = finder.text().chars().count() + 1;
    let fits = match edit.wanted {
        Wanted::One | Wanted::Near(_) => total == 1,
        Wanted::Count(count) => total == count,
        Wanted::All => true,
    };
    let borders = || finder.text().char_indices().map(|(at, _)| at).chain([finder.text().len()]);
    let place = |at| Place { bytes: at..at, lines: finder.line_at(at)..=finder.line_at(at), delta: None };
    if !fits {
        let spots: Vec<Place> = borders().take(refusal::SPOTS_MAX).map(place).collect();
        let spots = refusal::spots(finder, &spots);
        return Err(match edit.wanted {
            Wanted::Count(expected) => Reason::WrongCount { expected, total, spots },
            Wanted::One | Wanted::Near(_) | Wanted::All => {
                Reason::Ambiguous { pass: Pass::Exact, total, spots }
            }
        });
    }
    Ok(Outcome::Replace(Selected {
        how: How::Pass(Pass::Exact),
        places: borders().take(locate::PLACES_MAX).map(place).collect(),
        old: String::new(),
        new: edit.new.to_owned(),
        terminators: rules.terminators,
    }))
}

/// Compares what was found with what was wanted.
fn chosen(
    finder: &Finder<'_>,
    found: Found,
    edit: Edit<'_>,
    how: impl Fn(Pass) -> How,
    rules: Rules,
) -> Result<Outcome, Reason> {
    let total = found.places.len();
    let spots = || refusal::spots(finder, &found.places);
    let places = match edit.wanted {
        Wanted::One if total > 1 => {
            return Err(Reason::Ambiguous { pass: found.pass, total, spots: spots() });
        }
        Wanted::Count(expected) if total != expected || overlapping(&found.places) => {
            return Err(Reason::WrongCount { expected, total, spots: spots() });
        }
        Wanted::All if found.limit == Some(Limit::Places) => {
            return Err(Reason::WrongCount { expected: total, total: total + 1, spots: spots() });
        }
        Wanted::Near(line) => match near(&found.places, line) {
            Some(place) => vec![place],
            None => return Err(Reason::Ambiguous { pass: found.pass, total, spots: spots() }),
        },
        Wanted::One | Wanted::Count(_) | Wanted::All => found.places,
    };
    Ok(Outcome::Replace(Selected {
        how: how(found.pass),
        places,
        old: edit.old.to_owned(),
        new: edit.new.to_owned(),
        terminators: rules.terminators,
    }))
}

fn overlapping(places: &[Place]) -> bool {
    places.windows(2).any(|pair| pair[1].bytes.start < pair[0].bytes.end)
}

/// The place nearest to a line, unless two are equally near.
fn near(places: &[Place], line: usize) -> Option<Place> {
    let away =
        |place: &Place| place.lines.start().saturating_sub(line).max(line.saturating_sub(*place.lines.end()));
    let nearest = places.iter().min_by_key(|place| away(place))?;
    let twins = places.iter().filter(|place| away(place) == away(nearest)).count();
    (twins == 1).then(|| nearest.clone())
}

/// Undoes slips of typing, if the quote is then there.
fn retyped(
    finder: &Finder<'_>,
    edit: Edit<'_>,
    matching: Matching,
    rules: Rules,
) -> Option<Result<Outcome, Reason>> {
    for (old, new) in typing::unnumbered(edit.old, edit.new) {
        let found = finder.find(&old, matching);
        if !found.places.is_empty() {
            let edit = Edit { old: &old, new: &new, wanted: edit.wanted };
            return Some(chosen(finder, found, edit, How::Unnumbered, rules));
        }
    }
    let (old, new) = typing::unescaped(edit.old, edit.new)?;
    let found = finder.find(&old, matching);
    let edit = Edit { old: &old, new: &new, wanted: edit.wanted };
    (!found.places.is_empty()).then(|| chosen(finder, found, edit, How::Unescaped, rules))
}

/// Takes the one block that resembles the quote.
fn resembling(finder: &Finder<'_>, edit: Edit<'_>, rules: Rules) -> Option<Result<Outcome, Reason>> {
    let (fallback, places) = fallback::find(finder, edit.old)?;
    if places.len() > 1 {
        let spots = refusal::spots(finder, &places);
        return Some(Err(Reason::Ambiguous { pass: Pass::Exact, total: places.len(), spots }));
    }
    Some(Ok(Outcome::Replace(Selected {
        how: How::Fallback(fallback),
        places,
        old: edit.old.to_owned(),
        new: edit.new.to_owned(),
        terminators: rules.terminators,
    })))
}

/// The quote is nowhere: perhaps because the edit was already made.
fn not_there(
    finder: &Finder<'_>,
    edits: &[Edit<'_>],
    index: usize,
    limit: Option<Limit>,
    rules: Rules,
) -> Result<Outcome, Reason> {
    let edit = edits[index];
    let mut new_at = Vec::new();
    if rules.rescue == Rescue::Typing {
        let (old, new) = typing::unnumbered(edit.old, edit.new)
            .into_iter()
            .next()
            .map_or((Cow::Borrowed(edit.old), Cow::Borrowed(edit.new)), |(old, new)| {
                (old.into(), new.into())
            });
        let places = already(finder, edit.old, &new);
        let fits = match edit.wanted {
            Wanted::One | Wanted::Near(_) => places.len() == 1,
            Wanted::Count(count) => places.len() == count,
            Wanted::All => !places.is_empty(),
        };
        let is_it =
            fits && proof::is_telling(&old, &new) && places.iter().all(|place| fills_lines(finder, place));
        new_at = places.into_iter().map(|place| place.lines).collect();
        if is_it {
            return Ok(Outcome::Already(new_at));
        }
        new_at.truncate(NEW_PLACES_MAX);
    }
    Err(Reason::NotFound(Box::new(refusal::missing(finder, edits, index, new_at, limit))))
}

/// Where the new text stands, if its presence says anything.
fn already(finder: &Finder<'_>, old: &str, new: &str) -> Vec<Place> {
    let weight = new.chars().filter(|c| !c.is_whitespace()).count();
    // A new text that is part of the quote is there whatever became of the rest.
    if weight < ALREADY_CHARS_MIN || old.contains(new.trim()) {
        return Vec::new();
    }
    let passes = &[Pass::Exact, Pass::Endings, Pass::TrailingSpace];
    let how = Matching { passes, counting: Counting::Separate, borders: Borders::Anywhere };
    let text = finder.text();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |place: &Place| {
        let before = text[..place.bytes.start].chars().next_back().is_some_and(is_word);
        let after = text[place.bytes.end..].chars().next().is_some_and(is_word);
        let (first, last) =
            (new.chars().next().is_some_and(is_word), new.chars().next_back().is_some_and(is_word));
        !(before && first || after && last)
    };
    let mut places = finder.find(new, how).places;
    places.retain(stands_alone);
    places
}

/// Whether nothing but blanks stands beside a place on its lines.
fn fills_lines(finder: &Finder<'_>, place: &Place) -> bool {
    let there = &finder.text()[place.bytes.clone()];
    let start = place.bytes.end - there.trim_start().len();
    let end = place.bytes.start + there.trim_end().len();
    let (before, behind) = finder.text().split_at(start);
    let before = before.rsplit(['\n', '\r']).next().unwrap_or_default();
    let behind = behind[end - start..].split(['\n', '\r']).next().unwrap_or_default();
    before.trim().is_empty() && behind.trim().is_empty()
}

/// The look-alikes that only one of both texts has.
fn look_alikes(quote: &str, text: &str) -> Vec<char> {
    if quote == text || (quote.is_ascii() && text.is_ascii()) {
        return Vec::new();
    }
    let mut differing: Vec<char> = Vec::new();
    for (one, other) in [(text, quote), (quote, text)] {
        for c in one.chars().filter(|c| locate::is_look_alike(*c)) {
            if !other.contains(c) && !differing.contains(&c) {
                differing.push(c);
            }
        }
    }
    differing
}
