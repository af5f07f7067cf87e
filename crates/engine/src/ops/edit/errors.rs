//! Each error of `edit` names the edit, shows the current text, gives the next step, and says that nothing was written.

use std::ops::{Range, RangeInclusive};

use stead_path::RelPath;
use stead_text::{
    edit::{
        AmbiguousQuoteCandidate, EditError, EditErrorKind, FindReplaceEdit, QuoteNotFoundDetails, RESULT_BYTES_MAX,
        StaleQuoteLineRanges,
    },
    lines,
    locate::{
        DisambiguatingContextPosition, MatchBoundaryRule, QuoteLineDifference, QuoteSearchHaystack,
        ReachedQuoteSearchLimit, SuggestedDisambiguatingLines,
    },
    merge::MergeConflictLineRanges,
    unified::{DiffLabels, unified_diff},
};

use crate::{
    call_context::CallContext,
    call_options::BeforeAfterContentInclusion,
    error_details::{
        ConflictingTexts, DistinguishingText, FurtherEditRefusal, QuotedCharacterDifference, TextMatchPlace,
    },
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::ResolvedTarget,
    ops::{
        ReadArgs, WriteArgs,
        edit::{FileToEdit, OlderFileText, bad_request},
        older_revisions::{self, CurrentFileText},
    },
    resolve,
};

pub(super) fn not_text_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::NotText, format!("{path} is not text; nothing was written"))
        .with_next_step(NextStep::call(WriteArgs::of_new_content(path), "replace the whole file"))
        .with_path(path.to_string())
}

pub(super) fn stale_base_error(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    current: &FileToEdit,
    old: Option<&OlderFileText>,
) -> Error {
    let path = &target.path;
    let error = Error::new(ErrorKind::Stale, format!("{path} changed since you read it; nothing was written"));
    let error = resolve::with_current_version(context, error, path, current.version);
    let repeat = resolve::repeat_with_base(context, path, current.version);
    match old {
        Some(old) => {
            with_diff(error, old, current).with_next_step(NextStep::from("read the diff since your base").then(repeat))
        }
        None => error.with_next_step(NextStep::call(ReadArgs::new(path), "see the current text").then(repeat)),
    }
}

pub(super) fn merge_conflict_error(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    current: &FileToEdit,
    old: &OlderFileText,
    ours: &str,
    ranges: &[MergeConflictLineRanges],
) -> Error {
    let path = &target.path;
    let part = |text: &str, range: &Range<usize>| {
        lines::slice_lines(text, range.start + 1..=range.end).unwrap_or_default().to_owned()
    };
    let describe = |range: &MergeConflictLineRanges| ConflictingTexts {
        line: range.theirs.start + 1,
        base: part(&old.text, &range.base),
        yours: part(ours, &range.ours),
        theirs: part(&current.text, &range.theirs),
    };
    let conflicts: Vec<ConflictingTexts> = ranges.iter().take(limits::ERROR_LOCATIONS_MAX).map(describe).collect();
    let detail =
        format!("your edits change lines of {path} that others changed since {}; nothing was written", old.rev);
    let error = resolve::with_current_version(context, Error::new(ErrorKind::Conflict, detail), path, current.version)
        .with_conflicts(conflicts)
        .with_conflicts_total(ranges.len());
    let repeat = resolve::repeat_with_base(context, path, current.version);
    with_diff(error, old, current)
        .with_next_step(NextStep::from("compare yours and theirs, and edit the current text").then(repeat))
}

pub(super) fn edits_refused_error(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    current: &FileToEdit,
    edits: &[FindReplaceEdit<'_>],
    refusals: &[EditError],
    old: Option<&OlderFileText>,
) -> Error {
    let Some(first) = refusals.first() else {
        return bad_request("internal error: the edits were rejected without a reason; nothing was written");
    };
    let error_context =
        EditErrorContext { context, target, current, edits, old, finder: QuoteSearchHaystack::new(&current.text) };
    let error = error_context.edit_error(first);
    let error =
        resolve::with_current_version(context, error, &target.path, current.version).with_edit(first.edit_index);
    if refusals.len() == 1 {
        return error;
    }
    let describe = |refusal: &EditError| {
        let Error { kind, message, details, .. } = error_context.edit_error(refusal);
        FurtherEditRefusal { edit: refusal.edit_index, kind, detail: message, details }
    };
    let others: Vec<FurtherEditRefusal> =
        refusals.iter().skip(1).take(limits::ERROR_LOCATIONS_MAX).map(describe).collect();
    error.with_also_refused(others)
}

struct EditErrorContext<'a> {
    context: &'a CallContext<'a>,
    target: &'a ResolvedTarget,
    current: &'a FileToEdit,
    edits: &'a [FindReplaceEdit<'a>],
    old: Option<&'a OlderFileText>,
    finder: QuoteSearchHaystack<'a>,
}

impl EditErrorContext<'_> {
    fn edit_error(&self, refusal: &EditError) -> Error {
        let index = refusal.edit_index;
        let detail = |what: String| format!("edit {index}: {what}; nothing was written");
        match &refusal.reason {
            EditErrorKind::EmptyOld => bad_request(detail("old is empty".to_owned()))
                .with_next_step("quote adjacent lines in old and repeat them in new, or use write for a whole file"),
            EditErrorKind::NotFound(missing) => self.quote_not_found_error(index, missing),
            EditErrorKind::Ambiguous { total, matches, .. } => {
                let what = format!("old matches {total} places, {}", line_numbers(matches));
                let next_step = format!(
                    "{}; or add to the edit near_line: LINE to replace the nearest place, or count: {total} to replace all",
                    suggest_distinction(matches)
                );
                let error = Error::new(ErrorKind::Ambiguous, detail(what));
                self.with_match_locations(error, *total, matches).with_next_step(next_step)
            }
            EditErrorKind::WrongCount { expected, total, matches } => {
                let what = format!("old matches {total} places, not {expected}, {}", line_numbers(matches));
                self.with_match_locations(Error::new(ErrorKind::Ambiguous, detail(what)), *total, matches)
                    .with_expected(*expected)
                    .with_next_step(format!("pass count: {total} to replace all of them, or quote more text"))
            }
            EditErrorKind::Overlap { other_edit: other, lines } => {
                let what = format!("it overlaps edit {other} at line {}", lines.start());
                Error::new(ErrorKind::Overlap, detail(what))
                    .with_next_step("combine them into one edit")
                    .with_edits([*other, index])
                    .with_line(*lines.start())
            }
            EditErrorKind::ElisionInNewText { line, text } => bad_request(detail(format!(
                "line {line} of new is a placeholder for omitted text: {}",
                shorten_text(text)
            )))
            .with_next_step("write the full new text; text not quoted in old stays unchanged")
            .with_line(*line)
            .with_reason("elided"),
            EditErrorKind::Unindentable { line, .. } => {
                let what = format!(
                    "old is indented more than the file, and line {line} of new has too little indentation to remove"
                );
                Error::new(ErrorKind::TextNotFound, detail(what))
                    .with_next_step("write old and new with the indentation of the file")
                    .with_reason("indentation")
            }
            EditErrorKind::TooLong => {
                let limit = RESULT_BYTES_MAX;
                Error::new(ErrorKind::TooLarge, detail(format!("the file would exceed {limit} bytes")))
                    .with_next_step("replace fewer places, or use shorter text")
                    .with_limit_bytes(limit as u64)
            }
            EditErrorKind::StaleQuote(quote) => self.lines_changed_error(index, quote),
        }
    }

    fn quote_not_found_error(&self, index: usize, missing: &QuoteNotFoundDetails) -> Error {
        let mut what = format!("edit {index}: the text in old is not in {}", self.target.path);
        if let Some(other) = missing.produced_by_edit {
            what.push_str(&format!(
                "; it is in the new text of edit {other}, but every edit applies to the text before the call"
            ));
        }
        if let Some(line) = &missing.elision_line {
            what.push_str(&format!("; its line {} is a placeholder for omitted text", shorten_text(line)));
        }
        let now = CurrentFileText { path: &self.target.path, version: self.current.version, text: &self.current.text };
        let older =
            older_revisions::find_older_revision(self.context, now, self.edits[index].old, MatchBoundaryRule::Anywhere);
        if let Some(older) = &older {
            what.push_str(&format!("; {}", older.describe()));
        }
        let mut error = Error::new(ErrorKind::TextNotFound, format!("{what}; nothing was written"));
        if let Some(other) = missing.produced_by_edit {
            error = error.with_made_by(other);
        }
        if !missing.new_text_lines.is_empty() {
            let at: Vec<usize> = missing.new_text_lines.iter().map(|lines| *lines.start()).collect();
            error = error.with_new_is_at(at);
        }
        if let Some(limit) = missing.limit {
            error = error.with_search_limit(limit_name(limit));
        }
        let mut excerpt = String::new();
        let mut next_step = NextStep::call(ReadArgs::new(&self.target.path), "see the current text").then("quote it");
        // If the journal shows the current form of the quoted lines, the error shows them instead of similar lines.
        let current_lines = older.as_ref().and_then(|older| older.lines.as_ref());
        if let Some(lines) = current_lines.or(missing.nearest.as_ref().map(|nearest| &nearest.lines)) {
            let (first, last) = (*lines.start(), *lines.end());
            let numbered = self.numbered_lines(lines);
            next_step = format!("the most similar lines are {first}-{last}: quote them as they are now").into();
            excerpt.push_str(&numbered);
            error = with_nearest(error, lines, numbered);
            let nearest = missing.nearest.as_ref().filter(|nearest| nearest.lines == *lines);
            let differs: Vec<QuotedCharacterDifference> =
                nearest.iter().flat_map(|nearest| &nearest.differences).map(describe_difference).collect();
            if !differs.is_empty() {
                error = error.with_differs(differs);
            }
        }
        if let Some(older) = &older {
            next_step = format!("read the diff since {}, then quote the current text", older.rev).into();
            excerpt.push_str(&older.diff);
            error = error.with_older(older.details());
        }
        error.with_next_step(next_step).with_excerpt(excerpt)
    }

    fn lines_changed_error(&self, index: usize, quote: &StaleQuoteLineRanges) -> Error {
        let rev = self.old.map_or("your base", |old| &old.rev);
        let what = match &quote.lines {
            Some(lines) => {
                format!("the text it quotes changed since {rev}, at lines {}-{}", lines.start(), lines.end())
            }
            None => format!("the text it quotes was removed since {rev}"),
        };
        let mut error = Error::new(ErrorKind::Stale, format!("edit {index}: {what}; nothing was written"))
            .with_next_step(
                NextStep::from("quote the current text")
                    .then(resolve::repeat_with_base(self.context, &self.target.path, self.current.version))
                    .or(NextStep::repeat_with("mode", "merge")),
            );
        if let Some(lines) = &quote.base_lines {
            error = error.with_base_lines([*lines.start(), *lines.end()]);
        }
        let mut excerpt = String::new();
        if let Some(lines) = &quote.lines {
            excerpt = self.numbered_lines(lines);
            error = with_nearest(error, lines, excerpt.clone());
        }
        match self.old {
            Some(old) => with_diff(error.with_excerpt(excerpt), old, self.current),
            None => error.with_excerpt(excerpt),
        }
    }

    fn with_match_locations(&self, error: Error, total: usize, locations: &[AmbiguousQuoteCandidate]) -> Error {
        let describe = |location: &AmbiguousQuoteCandidate| {
            let mut place = describe_place(location);
            if self.context.options.before_after == BeforeAfterContentInclusion::Include {
                place.to_line = Some(*location.lines.end());
                let text = &self.current.text;
                let units_before = |end: usize| count_utf16_units(&text[..end]);
                place.units = Some([units_before(location.bytes.start), units_before(location.bytes.end)]);
            }
            place
        };
        let places: Vec<TextMatchPlace> = locations.iter().take(limits::ERROR_LOCATIONS_MAX).map(describe).collect();
        let excerpt: String = locations.iter().take(limits::ERROR_LOCATIONS_MAX).map(render_location).collect();
        error.with_places(places).with_places_total(total).with_excerpt(excerpt)
    }

    fn numbered_lines(&self, lines: &RangeInclusive<usize>) -> String {
        render_numbered_lines(&self.finder, lines, limits::ERROR_LINES_MAX)
    }
}

fn with_diff(error: Error, old: &OlderFileText, current: &FileToEdit) -> Error {
    let labels = DiffLabels { old: &old.rev, new: "now" };
    let lines = limits::ERROR_LINES_MAX;
    let diff = unified_diff(&old.text, &current.text, labels, limits::DIFF_CONTEXT_LINES, lines);
    let diff = older_revisions::render_bounded_diff(&diff);
    let excerpt = format!("{}{diff}", error.excerpt().unwrap_or_default());
    error.with_base_version(old.version.to_string()).with_diff(diff).with_excerpt(excerpt)
}

fn suggest_distinction(locations: &[AmbiguousQuoteCandidate]) -> &'static str {
    let has_context = locations.iter().any(|location| location.disambiguating_context.is_some());
    if has_context {
        "add the lines that make the match unique to old and new"
    } else {
        "quote more of the text around it"
    }
}

fn line_numbers(locations: &[AmbiguousQuoteCandidate]) -> String {
    let listed: Vec<String> = locations.iter().map(|location| location.lines.start().to_string()).collect();
    format!("at lines {}", listed.join(", "))
}

fn limit_name(limit: ReachedQuoteSearchLimit) -> &'static str {
    match limit {
        ReachedQuoteSearchLimit::Bytes => "the file is too large for anything but an exact search",
        ReachedQuoteSearchLimit::Matches => "there are too many matches",
        ReachedQuoteSearchLimit::Work => "the file is too repetitive to compare every place",
    }
}

/// Counts UTF-16 code units; a CRLF line ending counts as one unit, as in editors.
fn count_utf16_units(text: &str) -> usize {
    text.encode_utf16().count() - text.matches("\r\n").count()
}

pub(in crate::ops) fn with_nearest(error: Error, lines: &RangeInclusive<usize>, numbered: String) -> Error {
    error.with_nearest(numbered).with_nearest_from(*lines.start()).with_nearest_to(*lines.end())
}

pub(in crate::ops) fn describe_place(location: &AmbiguousQuoteCandidate) -> TextMatchPlace {
    let distinguish = |extra: &SuggestedDisambiguatingLines| match extra.side {
        DisambiguatingContextPosition::SameLines => DistinguishingText::WholeLine(extra.text.clone()),
        DisambiguatingContextPosition::Before => DistinguishingText::Before(extra.text.clone()),
        DisambiguatingContextPosition::After => DistinguishingText::After(extra.text.clone()),
    };
    TextMatchPlace {
        line: *location.lines.start(),
        enclosing_definition: location.enclosing_definition.as_ref().map(|definition| shorten_text(&definition.text)),
        unique_with: location.disambiguating_context.as_ref().map(distinguish),
        to_line: None,
        units: None,
    }
}

pub(in crate::ops) fn render_location(location: &AmbiguousQuoteCandidate) -> String {
    let within =
        location.enclosing_definition.as_ref().map(|definition| format!(" in {}", shorten_text(&definition.text)));
    let extra = location.disambiguating_context.as_ref().map(|extra| {
        let lines = match extra.lines.clone().count() {
            1 => "the line".to_owned(),
            count => format!("the {count} lines"),
        };
        let context = match extra.side {
            DisambiguatingContextPosition::SameLines => "as the whole line".to_owned(),
            DisambiguatingContextPosition::Before => format!("with {lines} before"),
            DisambiguatingContextPosition::After => format!("with {lines} after"),
        };
        format!(", unique {context}: {}", shorten_text(&extra.text))
    });
    let extra = extra.unwrap_or_else(|| ", not unique with the lines around it".to_owned());
    format!("line {}{}{extra}\n", location.lines.start(), within.unwrap_or_default())
}

pub(in crate::ops) fn render_numbered_lines(
    finder: &QuoteSearchHaystack<'_>,
    lines: &RangeInclusive<usize>,
    most: usize,
) -> String {
    let render = |number| format!("{number}\t{}\n", finder.line(number));
    let mut text: String = lines.clone().take(most).map(render).collect();
    if lines.clone().count() > most {
        text.push_str(&format!("… and {} more lines\n", lines.clone().count() - most));
    }
    text
}

pub(in crate::ops) fn describe_difference(difference: &QuoteLineDifference) -> QuotedCharacterDifference {
    QuotedCharacterDifference {
        line: difference.text_line,
        column: difference.column,
        quoted: difference.quoted.map(format_code_point),
        actual: difference.actual.map(format_code_point),
    }
}

pub(in crate::ops) fn format_code_point(character: char) -> String {
    let number = format!("U+{:04X}", u32::from(character));
    let is_visible = !character.is_whitespace() && !stead_text::visible::is_deceptive(character);
    if is_visible { format!("{number} {character}") } else { number }
}

pub(in crate::ops) fn shorten_text(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let cut: String = line.chars().take(CHARS_MAX).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}
