//! Errors of `edit`. Each names the edit, the current text, the next step, and that nothing was written.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};
use stead_path::RelPath;
use stead_text::{
    edit::{EditError, EditErrorKind, MatchDescription, QuoteNotFound, QuotedEdit, StaleQuote},
    lines,
    locate::{LocateLimit, MatchBoundary, SearchableText},
    merge::ConflictRange,
    unified::{DiffLabels, unified_diff},
};

use super::{EditedFile, bad_request, base_text::OlderFileText};
use crate::{
    call_context::CallContext,
    call_options::BeforeAfterInclusion,
    errors::{Error, ErrorKind},
    limits,
    operation::ResolvedTarget,
    ops::{
        match_locations::{self, difference_json, render_numbered_lines, shorten_text},
        older_revisions::{self, CurrentFileText, OlderRevisionMatch},
    },
    resolve,
};

pub(super) fn not_text_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::NotText, format!("{path} is not text; nothing was written"))
        .with_next_step("write the whole file with encoding base64")
        .with_detail("path", path.to_string())
}

/// The base is outdated and the mode requires the current one.
pub(super) fn stale_base_error(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    current: &EditedFile,
    old: Option<&OlderFileText>,
) -> Error {
    let path = &target.path;
    let error = Error::new(ErrorKind::Stale, format!("{path} changed since you read it; nothing was written"));
    let error = resolve::with_current_version(context, error, path, current.version);
    match old {
        Some(old) => with_diff(error, old, current)
            .with_next_step("see the diff since your base, then repeat with the current version as base"),
        None => error.with_next_step(format!("the version you read is no longer stored: read {path} again")),
    }
}

pub(super) fn merge_conflict_error(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    current: &EditedFile,
    old: &OlderFileText,
    ours: &str,
    ranges: &[ConflictRange],
) -> Error {
    let path = &target.path;
    let part = |text: &str, range: &std::ops::Range<usize>| {
        lines::slice_lines(text, range.start + 1..=range.end).unwrap_or_default().to_owned()
    };
    let shown: Vec<Value> = ranges
        .iter()
        .take(limits::ERROR_LOCATIONS_MAX)
        .map(|range| {
            json!({ "line": range.theirs.start + 1, "base": part(&old.text, &range.base),
                "yours": part(ours, &range.ours), "theirs": part(&current.text, &range.theirs) })
        })
        .collect();
    let detail =
        format!("your edits conflict with changes made to {path} since {} (same lines); nothing was written", old.rev);
    let error = resolve::with_current_version(context, Error::new(ErrorKind::Conflict, detail), path, current.version)
        .with_detail("conflicts", shown)
        .with_detail("conflicts_total", ranges.len());
    with_diff(error, old, current)
        .with_next_step("see theirs, then edit the current text with the current version as base")
}

/// The error for rejected edits: the message covers the first, the details cover all.
pub(super) fn edits_refused_error(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    current: &EditedFile,
    edits: &[QuotedEdit<'_>],
    refusals: &[EditError],
    old: Option<&OlderFileText>,
) -> Error {
    let Some(first) = refusals.first() else { return bad_request("no edit can be applied") };
    let error_context =
        EditErrorContext { context, target, current, edits, old, finder: SearchableText::new(&current.text) };
    let error = error_context.edit_error(first);
    let error = resolve::with_current_version(context, error, &target.path, current.version)
        .with_detail("edit", first.edit_index);
    if refusals.len() == 1 {
        return error;
    }
    let others: Vec<Value> = refusals
        .iter()
        .skip(1)
        .take(limits::ERROR_LOCATIONS_MAX)
        .map(|refusal| {
            let other = error_context.edit_error(refusal);
            let mut fact = Map::from_iter([
                ("edit".to_owned(), json!(refusal.edit_index)),
                ("kind".to_owned(), json!(other.kind.code())),
                ("detail".to_owned(), json!(other.message)),
            ]);
            fact.extend(other.details);
            Value::Object(fact)
        })
        .collect();
    error.with_detail("also_refused", others)
}

struct EditErrorContext<'a> {
    context: &'a CallContext<'a>,
    target: &'a ResolvedTarget,
    current: &'a EditedFile,
    edits: &'a [QuotedEdit<'a>],
    old: Option<&'a OlderFileText>,
    finder: SearchableText<'a>,
}

impl EditErrorContext<'_> {
    fn edit_error(&self, refusal: &EditError) -> Error {
        let index = refusal.edit_index;
        let detail = |what: String| format!("edit {index}: {what}; nothing was written");
        match &refusal.reason {
            EditErrorKind::EmptyOld => bad_request(detail("old is empty".to_owned()))
                .with_next_step("quote adjacent lines in old and repeat them in new, or use write for a whole file"),
            EditErrorKind::NotFound(missing) => self.quote_not_found_error(index, missing),
            EditErrorKind::Ambiguous { total, matches: locations, .. } => {
                let what = format!("old matches {total} places, {}", line_numbers(locations));
                let next_step =
                    format!("{}; or pass near_line, count: {total} or all: true", suggest_distinction(locations));
                let error = Error::new(ErrorKind::Ambiguous, detail(what));
                self.with_match_locations(error, *total, locations).with_next_step(next_step)
            }
            EditErrorKind::WrongCount { expected, total, matches: locations } => {
                let what = format!("old matches {total} places, not {expected}, {}", line_numbers(locations));
                self.with_match_locations(Error::new(ErrorKind::Ambiguous, detail(what)), *total, locations)
                    .with_detail("expected", *expected)
                    .with_next_step(format!("pass count: {total} to replace all of them, or quote more"))
            }
            EditErrorKind::Overlap { other_edit: other, lines } => {
                let what = format!("it overlaps edit {other} at line {}", lines.start());
                Error::new(ErrorKind::Overlap, detail(what))
                    .with_next_step("combine them into one edit")
                    .with_detail("edits", json!([other, index]))
                    .with_detail("line", *lines.start())
            }
            EditErrorKind::ElisionInNewText { line, text } => {
                bad_request(detail(format!("line {line} of new elides text: {}", shorten_text(text))))
                    .with_next_step("write the full new text; text not quoted in old stays unchanged")
                    .with_detail("line", *line)
                    .with_detail("reason", "elided")
            }
            EditErrorKind::Unindentable { line, .. } => {
                let what =
                    format!("old is indented deeper than the file, and line {line} of new cannot be outdented as far");
                Error::new(ErrorKind::TextNotFound, detail(what))
                    .with_next_step("quote old and write new with the file's own indentation")
                    .with_detail("reason", "indentation")
            }
            EditErrorKind::TooLong => {
                let most = stead_text::edit::RESULT_BYTES_MAX;
                Error::new(ErrorKind::TooLarge, detail(format!("it would grow the file beyond {most} bytes")))
                    .with_next_step("replace fewer places, or use shorter text")
                    .with_detail("limit_bytes", most)
            }
            EditErrorKind::StaleQuote(touched) => self.lines_changed_error(index, touched),
        }
    }

    fn quote_not_found_error(&self, index: usize, missing: &QuoteNotFound) -> Error {
        let mut what = format!("edit {index}: old is not in {}", self.target.path);
        if let Some(other) = missing.produced_by_edit {
            what.push_str(&format!(
                "; it is in the new text of edit {other}, but all edits apply to the original text"
            ));
        }
        if let Some(line) = &missing.elision_line {
            what.push_str(&format!("; its line {} is a placeholder instead of quoted text", shorten_text(line)));
        }
        let now = CurrentFileText { path: &self.target.path, version: self.current.version, text: &self.current.text };
        let older =
            older_revisions::find_older_revision(self.context, now, self.edits[index].old, MatchBoundary::Anywhere);
        if let Some(older) = &older {
            what.push_str(&format!("; {}", older.describe()));
        }
        let mut error = Error::new(ErrorKind::TextNotFound, format!("{what}; nothing was written"));
        if let Some(other) = missing.produced_by_edit {
            error = error.with_detail("made_by", other);
        }
        if !missing.new_text_lines.is_empty() {
            let at: Vec<usize> = missing.new_text_lines.iter().map(|lines| *lines.start()).collect();
            error = error.with_detail("new_is_at", at);
        }
        if let Some(limit) = missing.limit {
            error = error.with_detail("search_limit", limit_name(limit));
        }
        let mut shown = String::new();
        let mut next_step = format!("read {} and quote the current text", self.target.path);
        // If the journal knows the new text of the quote, no similarity search is needed.
        let current_lines = older.as_ref().and_then(OlderRevisionMatch::lines);
        if let Some(lines) = current_lines.or(missing.nearest.as_ref().map(|nearest| &nearest.lines)) {
            let (first, last) = (*lines.start(), *lines.end());
            let numbered = self.numbered_lines(lines);
            next_step = format!("the nearest lines are {first}-{last}: quote them as they are now");
            shown.push_str(&numbered);
            error = error
                .with_detail("nearest", numbered)
                .with_detail("nearest_from", first)
                .with_detail("nearest_to", last);
            let nearest = missing.nearest.as_ref().filter(|nearest| nearest.lines == *lines);
            let differs: Vec<Value> =
                nearest.iter().flat_map(|nearest| &nearest.differences).map(difference_json).collect();
            if !differs.is_empty() {
                error = error.with_detail("differs", differs);
            }
        }
        if let Some(older) = &older {
            next_step = format!("see the diff since {}, then quote the current text", older.rev());
            shown.push_str(older.diff());
            error = error.with_detail("older", older.to_json());
        }
        error.with_next_step(next_step).with_excerpt(shown)
    }

    fn lines_changed_error(&self, index: usize, touched: &StaleQuote) -> Error {
        let rev = self.old.map_or("your base", |old| &old.rev);
        let what = match &touched.lines {
            Some(lines) => {
                format!("the text it quotes changed since {rev}, at lines {}-{}", lines.start(), lines.end())
            }
            None => format!("the text it quotes was removed since {rev}"),
        };
        let mut error = Error::new(ErrorKind::Stale, format!("edit {index}: {what}; nothing was written"))
            .with_next_step("quote the current text, with the current version as base; or pass mode: merge");
        if let Some(lines) = &touched.base_lines {
            error = error.with_detail("base_lines", json!([lines.start(), lines.end()]));
        }
        let mut shown = String::new();
        if let Some(lines) = &touched.lines {
            shown = self.numbered_lines(lines);
            error = error
                .with_detail("nearest", shown.clone())
                .with_detail("nearest_from", *lines.start())
                .with_detail("nearest_to", *lines.end());
        }
        match self.old {
            Some(old) => with_diff(error.with_excerpt(shown), old, self.current),
            None => error.with_excerpt(shown),
        }
    }

    fn with_match_locations(&self, error: Error, total: usize, locations: &[MatchDescription]) -> Error {
        let describe = |location: &MatchDescription| {
            let mut fact = match_locations::location_json(location);
            if self.context.options.before_after == BeforeAfterInclusion::Include {
                fact["to_line"] = json!(location.lines.end());
                let text = &self.current.text;
                fact["units"] = json!([
                    count_utf16_units(&text[..location.bytes.start]),
                    count_utf16_units(&text[..location.bytes.end])
                ]);
            }
            fact
        };
        let places: Vec<Value> = locations.iter().take(limits::ERROR_LOCATIONS_MAX).map(describe).collect();
        let shown: String =
            locations.iter().take(limits::ERROR_LOCATIONS_MAX).map(match_locations::render_location).collect();
        error.with_detail("places", places).with_detail("places_total", total).with_excerpt(shown)
    }

    fn numbered_lines(&self, lines: &RangeInclusive<usize>) -> String {
        render_numbered_lines(&self.finder, lines, limits::ERROR_LINES_MAX)
    }
}

fn with_diff(error: Error, old: &OlderFileText, current: &EditedFile) -> Error {
    let labels = DiffLabels { old: &old.rev, new: "now" };
    let lines = limits::ERROR_LINES_MAX;
    let diff = unified_diff(&old.text, &current.text, labels, limits::DIFF_CONTEXT_LINES, lines);
    let diff = older_revisions::render_bounded_diff(&diff);
    let shown = format!("{}{diff}", error.excerpt().unwrap_or_default());
    error.with_detail("base_version", old.version.to_string()).with_detail("diff", diff).with_excerpt(shown)
}

fn suggest_distinction(locations: &[MatchDescription]) -> &'static str {
    let has_context = locations.iter().any(|location| location.disambiguating_context.is_some());
    if has_context {
        "add the line that makes the match unique to old and new"
    } else {
        "quote more of the text around it"
    }
}

fn line_numbers(locations: &[MatchDescription]) -> String {
    let listed: Vec<String> = locations.iter().map(|location| location.lines.start().to_string()).collect();
    format!("at lines {}", listed.join(", "))
}

fn limit_name(limit: LocateLimit) -> &'static str {
    match limit {
        LocateLimit::Bytes => "the file is too large for more than an exact search",
        LocateLimit::Matches => "there are too many places",
        LocateLimit::Work => "the file is too repetitive to compare every place",
    }
}

/// The length in UTF-16 code units, with each line ending counted as one, as editors count.
fn count_utf16_units(text: &str) -> usize {
    text.encode_utf16().count() - text.matches("\r\n").count()
}
