//! Selects the matches that one edit replaces.
//!
//! A quote is first searched for with the matching passes, and then recovered as the edit rules allow. The selection
//! fails if the number of matches is not the number that the edit requires.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::splice::LineMapping;
use super::{
    AppliedEdit, EditErrorKind, EditMatchingRules, EmptyQuoteRule, FindReplaceEdit, NewTextLineTerminatorRule,
    OccurrenceSelector, QuoteMatchMethod, QuoteNotFoundPolicy, ReplacedMatchLineRanges, elision, errors, similarity,
    typing_slips,
};
use crate::locate::{
    self, FuzzyTextMatchPass, MatchBoundaryRule, MatchOverlapRule, QuoteMatch, QuoteMatches, QuoteSearchHaystack,
    QuoteSearchOptions, ReachedQuoteSearchLimit,
};

/// The least number of characters, without white space, of a new text that counts as already applied.
const ALREADY_APPLIED_CHARS_MIN: usize = 3;

/// The least number of characters, without white space, of a text that [`is_distinctive`] accepts.
const DISTINCTIVE_CHARS_MIN: usize = 10;

/// The least number of characters of a shared word that makes a new text distinctive.
const DISTINCTIVE_WORD_CHARS_MIN: usize = 3;

const NEW_PLACES_MAX: usize = 5;

#[derive(Debug)]
pub(super) enum PlannedTextEditEffect {
    Replace(PlannedEditReplacement),
    Unchanged,
    /// The text already contains the new text of the edit, in the listed lines.
    AlreadyApplied(Vec<RangeInclusive<usize>>),
}

#[derive(Debug)]
pub(super) struct PlannedEditReplacement {
    pub(super) method: QuoteMatchMethod,
    pub(super) matches: Vec<QuoteMatch>,
    /// The quote that was found, after typing slips in the given quote were undone.
    pub(super) old: String,
    /// The new text of the edit, after typing slips were undone.
    pub(super) new: String,
    pub(super) terminators: NewTextLineTerminatorRule,
}

impl PlannedEditReplacement {
    pub(super) fn match_pass(&self) -> Option<FuzzyTextMatchPass> {
        match &self.method {
            QuoteMatchMethod::Pass(pass)
            | QuoteMatchMethod::LineNumbersStripped(pass)
            | QuoteMatchMethod::EscapesDecoded(pass) => Some(*pass),
            QuoteMatchMethod::Similarity(_) | QuoteMatchMethod::NoChange | QuoteMatchMethod::AlreadyApplied => None,
        }
    }
}

impl PlannedTextEditEffect {
    fn replace(
        method: QuoteMatchMethod,
        matches: Vec<QuoteMatch>,
        edit: FindReplaceEdit<'_>,
        rules: EditMatchingRules,
    ) -> Self {
        let (old, new) = (edit.old.to_owned(), edit.new.to_owned());
        Self::Replace(PlannedEditReplacement { method, matches, old, new, terminators: rules.terminator_rule })
    }

    pub(super) fn to_applied_edit(&self, finder: &QuoteSearchHaystack<'_>, shift: &LineMapping<'_>) -> AppliedEdit {
        let without_effect =
            |method, changed_lines| AppliedEdit { method, changed_lines, look_alikes: Vec::new(), matched_text: None };
        match self {
            Self::Unchanged => without_effect(QuoteMatchMethod::NoChange, Vec::new()),
            Self::AlreadyApplied(lines) => {
                let same_lines = |lines: &RangeInclusive<usize>| ReplacedMatchLineRanges {
                    before: lines.clone(),
                    after: lines.clone(),
                };
                without_effect(QuoteMatchMethod::AlreadyApplied, lines.iter().map(same_lines).collect())
            }
            Self::Replace(selected) => {
                let matched = selected.matches.first().map(|hit| &finder.text()[hit.bytes.clone()]);
                AppliedEdit {
                    method: selected.method.clone(),
                    changed_lines: selected.matches.iter().map(|hit| shift.changed_lines(hit)).collect(),
                    look_alikes: matched.map(|text| differing_look_alikes(&selected.old, text)).unwrap_or_default(),
                    matched_text: matched.filter(|text| *text != selected.old).map(str::to_owned),
                }
            }
        }
    }
}

pub(super) fn select_matches(
    finder: &QuoteSearchHaystack<'_>,
    edits: &[FindReplaceEdit<'_>],
    index: usize,
    rules: EditMatchingRules,
) -> Result<PlannedTextEditEffect, EditErrorKind> {
    let edit = edits[index];
    if edit.old.is_empty() && (rules.empty_quote == EmptyQuoteRule::MatchEverywhere || finder.text().is_empty()) {
        return match_empty_quote(finder, edit, rules);
    }
    if edit.old.is_empty() {
        return Err(EditErrorKind::EmptyOld);
    }
    if rules.recovery == QuoteNotFoundPolicy::UndoTypingSlips {
        if edit.old == edit.new {
            return Ok(PlannedTextEditEffect::Unchanged);
        }
        if let Some((line, text)) = elision::find_elision(edit.new, edit.old)
            && !finder.text().contains(&text)
        {
            return Err(EditErrorKind::ElisionInNewText { line, text });
        }
    }
    let matching = match_options(edit.occurrence, rules);
    let found = finder.find(edit.old, matching);
    if !found.matches.is_empty() {
        return choose_matches(finder, found, edit, QuoteMatchMethod::Pass, rules);
    }
    match rules.recovery {
        QuoteNotFoundPolicy::None => {}
        QuoteNotFoundPolicy::AcceptSimilar => {
            if matches!(edit.occurrence, OccurrenceSelector::Only | OccurrenceSelector::Exactly(1))
                && let Some(outcome) = match_similar_text(finder, edit, rules)
            {
                return outcome;
            }
        }
        QuoteNotFoundPolicy::UndoTypingSlips => {
            if let Some(outcome) = retry_without_typing_slips(finder, edit, matching, rules) {
                return outcome;
            }
        }
    }
    quote_not_found(finder, edits, index, found.limit, rules)
}

fn accepts_count(occurrence: OccurrenceSelector, matches: usize) -> bool {
    match occurrence {
        OccurrenceSelector::Only | OccurrenceSelector::NearestToLine(_) => matches == 1,
        OccurrenceSelector::Exactly(count) => matches == count,
        OccurrenceSelector::All => matches > 0,
    }
}

fn match_options(occurrence: OccurrenceSelector, rules: EditMatchingRules) -> QuoteSearchOptions {
    // All matches are replaced from left to right, so they must not overlap.
    let is_all = occurrence == OccurrenceSelector::All;
    let overlap_rule = if is_all { MatchOverlapRule::NonOverlapping } else { rules.overlap_rule };
    QuoteSearchOptions { passes: rules.passes, overlap_rule, boundary: MatchBoundaryRule::Anywhere }
}

/// An empty quote matches before every character and at the end of the text.
fn match_empty_quote(
    finder: &QuoteSearchHaystack<'_>,
    edit: FindReplaceEdit<'_>,
    rules: EditMatchingRules,
) -> Result<PlannedTextEditEffect, EditErrorKind> {
    let total = finder.text().chars().count() + 1;
    let borders = || finder.text().char_indices().map(|(at, _)| at).chain([finder.text().len()]);
    let hit =
        |at| QuoteMatch { bytes: at..at, lines: finder.line_at(at)..=finder.line_at(at), indentation_shift: None };
    if !accepts_count(edit.occurrence, total) {
        let described: Vec<QuoteMatch> = borders().take(errors::DESCRIBED_MATCHES_MAX).map(hit).collect();
        let described = errors::describe_matches(finder, &described);
        return Err(if let OccurrenceSelector::Exactly(expected) = edit.occurrence {
            EditErrorKind::WrongCount { expected, total, matches: described }
        } else {
            EditErrorKind::Ambiguous { pass: FuzzyTextMatchPass::Exact, total, matches: described }
        });
    }
    let matches = borders().take(locate::MATCHES_MAX).map(hit).collect();
    Ok(PlannedTextEditEffect::replace(QuoteMatchMethod::Pass(FuzzyTextMatchPass::Exact), matches, edit, rules))
}

fn choose_matches(
    finder: &QuoteSearchHaystack<'_>,
    found: QuoteMatches,
    edit: FindReplaceEdit<'_>,
    method: impl Fn(FuzzyTextMatchPass) -> QuoteMatchMethod,
    rules: EditMatchingRules,
) -> Result<PlannedTextEditEffect, EditErrorKind> {
    let total = found.matches.len();
    let described = || errors::describe_matches(finder, &found.matches);
    let ambiguous = || EditErrorKind::Ambiguous { pass: found.pass, total, matches: described() };
    let hits = match edit.occurrence {
        OccurrenceSelector::Only if total > 1 => return Err(ambiguous()),
        OccurrenceSelector::Exactly(expected) if total != expected || has_overlaps(&found.matches) => {
            return Err(EditErrorKind::WrongCount { expected, total, matches: described() });
        }
        OccurrenceSelector::All if found.limit == Some(ReachedQuoteSearchLimit::Matches) => {
            return Err(EditErrorKind::WrongCount { expected: total, total: total + 1, matches: described() });
        }
        OccurrenceSelector::NearestToLine(line) => {
            vec![nearest_to_line(&found.matches, line).ok_or_else(ambiguous)?]
        }
        OccurrenceSelector::Only | OccurrenceSelector::Exactly(_) | OccurrenceSelector::All => found.matches,
    };
    Ok(PlannedTextEditEffect::replace(method(found.pass), hits, edit, rules))
}

fn has_overlaps(hits: &[QuoteMatch]) -> bool {
    hits.windows(2).any(|pair| pair[1].bytes.start < pair[0].bytes.end)
}

/// Returns the match nearest to a line, or `None` if two matches are equally near.
fn nearest_to_line(hits: &[QuoteMatch], line: usize) -> Option<QuoteMatch> {
    let distance = |hit: &QuoteMatch| hit.lines.start().saturating_sub(line).max(line.saturating_sub(*hit.lines.end()));
    let nearest = hits.iter().min_by_key(|hit| distance(hit))?;
    let equally_near = hits.iter().filter(|hit| distance(hit) == distance(nearest)).count();
    (equally_near == 1).then(|| nearest.clone())
}

fn retry_without_typing_slips(
    finder: &QuoteSearchHaystack<'_>,
    edit: FindReplaceEdit<'_>,
    matching: QuoteSearchOptions,
    rules: EditMatchingRules,
) -> Option<Result<PlannedTextEditEffect, EditErrorKind>> {
    for (old, new) in typing_slips::strip_line_numbers(edit.old, edit.new) {
        let found = finder.find(&old, matching);
        if !found.matches.is_empty() {
            let edit = FindReplaceEdit { old: &old, new: &new, occurrence: edit.occurrence };
            return Some(choose_matches(finder, found, edit, QuoteMatchMethod::LineNumbersStripped, rules));
        }
    }
    let (old, new) = typing_slips::decode_escapes(edit.old, edit.new)?;
    let found = finder.find(&old, matching);
    let edit = FindReplaceEdit { old: &old, new: &new, occurrence: edit.occurrence };
    (!found.matches.is_empty()).then(|| choose_matches(finder, found, edit, QuoteMatchMethod::EscapesDecoded, rules))
}

fn match_similar_text(
    finder: &QuoteSearchHaystack<'_>,
    edit: FindReplaceEdit<'_>,
    rules: EditMatchingRules,
) -> Option<Result<PlannedTextEditEffect, EditErrorKind>> {
    let (method, hits) = similarity::find_similar(finder, edit.old)?;
    if hits.len() > 1 {
        let (total, matches) = (hits.len(), errors::describe_matches(finder, &hits));
        return Some(Err(EditErrorKind::Ambiguous { pass: FuzzyTextMatchPass::Exact, total, matches }));
    }
    Some(Ok(PlannedTextEditEffect::replace(QuoteMatchMethod::Similarity(method), hits, edit, rules)))
}

fn quote_not_found(
    finder: &QuoteSearchHaystack<'_>,
    edits: &[FindReplaceEdit<'_>],
    index: usize,
    limit: Option<ReachedQuoteSearchLimit>,
    rules: EditMatchingRules,
) -> Result<PlannedTextEditEffect, EditErrorKind> {
    let edit = edits[index];
    let mut new_text_lines = Vec::new();
    if rules.recovery == QuoteNotFoundPolicy::UndoTypingSlips {
        let (old, new) = typing_slips::strip_line_numbers(edit.old, edit.new)
            .into_iter()
            .next()
            .map_or((Cow::Borrowed(edit.old), Cow::Borrowed(edit.new)), |(old, new)| (old.into(), new.into()));
        let hits = find_already_applied(finder, edit.old, &new);
        let is_applied = accepts_count(edit.occurrence, hits.len())
            && is_distinctive(&old, &new)
            && hits.iter().all(|hit| covers_whole_lines(finder, hit));
        new_text_lines = hits.into_iter().map(|hit| hit.lines).collect();
        if is_applied {
            return Ok(PlannedTextEditEffect::AlreadyApplied(new_text_lines));
        }
        new_text_lines.truncate(NEW_PLACES_MAX);
    }
    Err(EditErrorKind::NotFound(Box::new(errors::describe_missing_quote(finder, edits, index, new_text_lines, limit))))
}

/// Finds the occurrences of the new text that begin and end at word borders; a very short new text has none.
fn find_already_applied(finder: &QuoteSearchHaystack<'_>, old: &str, new: &str) -> Vec<QuoteMatch> {
    let weight = new.chars().filter(|c| !c.is_whitespace()).count();
    // If the quote contains the new text, finding the new text does not show that the edit was applied.
    if weight < ALREADY_APPLIED_CHARS_MIN || old.contains(new.trim()) {
        return Vec::new();
    }
    let passes = &[FuzzyTextMatchPass::Exact, FuzzyTextMatchPass::LineEndings, FuzzyTextMatchPass::TrailingSpace];
    let options = QuoteSearchOptions {
        passes,
        overlap_rule: MatchOverlapRule::NonOverlapping,
        boundary: MatchBoundaryRule::Anywhere,
    };
    let text = finder.text();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let has_word_borders = |hit: &QuoteMatch| {
        let before = text[..hit.bytes.start].chars().next_back().is_some_and(is_word);
        let after = text[hit.bytes.end..].chars().next().is_some_and(is_word);
        let (first, last) = (new.chars().next().is_some_and(is_word), new.chars().next_back().is_some_and(is_word));
        !(before && first || after && last)
    };
    let mut hits = finder.find(new, options).matches;
    hits.retain(has_word_borders);
    hits
}

/// Whether `new` is so unusual that a file probably contains it only because `old` was changed into `new`. A
/// distinctive text is long enough and shares a word with the old text.
pub(crate) fn is_distinctive(old: &str, new: &str) -> bool {
    let length = new.chars().filter(|c| !c.is_whitespace()).count();
    let old_words: HashSet<&str> = long_words(old).collect();
    length >= DISTINCTIVE_CHARS_MIN && long_words(new).any(|word| old_words.contains(word))
}

fn long_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= DISTINCTIVE_WORD_CHARS_MIN)
}

/// Whether only blanks precede and follow a match on its lines.
fn covers_whole_lines(finder: &QuoteSearchHaystack<'_>, hit: &QuoteMatch) -> bool {
    let matched = &finder.text()[hit.bytes.clone()];
    let start = hit.bytes.end - matched.trim_start().len();
    let end = hit.bytes.start + matched.trim_end().len();
    let (before, after) = finder.text().split_at(start);
    let before = before.rsplit(['\n', '\r']).next().unwrap_or_default();
    let after = after[end - start..].split(['\n', '\r']).next().unwrap_or_default();
    before.trim().is_empty() && after.trim().is_empty()
}

/// Returns the look-alike characters, such as typographic quotation marks, that only one of two texts has.
fn differing_look_alikes(quote: &str, text: &str) -> Vec<char> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_distinctive_by_length_and_shared_words() {
        for (old, new, expected) in [
            ("let limit = 10;", "let limit = 20;", true),
            ("limit = 10", "limit = 20", false),
            ("gamma delta", "something else", false),
            ("a = b + c", "a = b + c + d + e + f", false),
            ("größe = 1; // x", "größe = 22; // y", true),
        ] {
            assert_eq!(is_distinctive(old, new), expected, "{old} {new}");
        }
    }
}
