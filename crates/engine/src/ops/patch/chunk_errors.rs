//! Errors for chunks that cannot be placed: the nearest current lines, every matching location, and the stored
//! revision that the chunk was written for.

use serde_json::Value;
use stead_text::{
    edit::{MatchDescription, describe_matches},
    locate::{MatchBoundary, QuoteMatch, SearchableText},
    patch::{PatchApplyError, PatchApplyErrorKind},
};

use super::errors::PatchSectionRef;
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    ops::{
        match_locations::{difference_json, location_json, render_location, render_numbered_lines, shorten_text},
        older_revisions::{self, CurrentFileText},
    },
};

pub(super) fn chunk_not_placed_error(
    context: &CallContext<'_>,
    now: CurrentFileText<'_>,
    error: &PatchApplyError,
    at: PatchSectionRef,
) -> Error {
    let error_context = PatchChunkErrorContext { context, now, error, finder: SearchableText::new(now.text) };
    let failure = error_context.placement_error();
    let path = now.path.to_string();
    at.with_section(failure.with_detail("path", path).with_detail("chunk", error.chunk).with_detail("line", error.line))
}

struct PatchChunkErrorContext<'a> {
    context: &'a CallContext<'a>,
    now: CurrentFileText<'a>,
    error: &'a PatchApplyError,
    finder: SearchableText<'a>,
}

impl PatchChunkErrorContext<'_> {
    fn error_message(&self, what: &str) -> String {
        let PatchApplyError { chunk, line, .. } = self.error;
        format!("{}, chunk {chunk} (line {line} of the patch): {what}", self.now.path)
    }

    fn placement_error(&self) -> Error {
        let new = |kind, what: &str| Error::new(kind, self.error_message(what));
        match &self.error.reason {
            PatchApplyErrorKind::NotFound { already: Some(line), .. } => {
                new(ErrorKind::AlreadyApplied, &format!("the chunk is already applied at line {line}"))
                    .with_next_step("remove the chunk")
                    .with_detail("at", *line)
            }
            PatchApplyErrorKind::NotFound { quoted, already: None } => self.not_found_error(quoted),
            PatchApplyErrorKind::AnchorNotFound { anchor } => self.anchor_not_found_error(anchor),
            PatchApplyErrorKind::Ambiguous { lines, count } => self.ambiguous_error(lines, *count),
            PatchApplyErrorKind::Overlap { other, line } => {
                new(ErrorKind::Overlap, &format!("chunk {other} already changes line {line}"))
                    .with_next_step("put both changes in one chunk")
                    .with_detail("other_chunk", *other)
                    .with_detail("at", *line)
            }
            PatchApplyErrorKind::NumberOnly { line } => {
                let what = format!("it has no context lines, and its line number {line} does not fit this file");
                new(ErrorKind::Ambiguous, &what)
                    .with_next_step("add the line before the new ones as context")
                    .with_detail("at", *line)
                    .with_detail("reason", "number_only")
            }
            PatchApplyErrorKind::Exhausted => {
                new(ErrorKind::TooLarge, "the file is too repetitive").with_next_step("add more context lines")
            }
        }
    }

    fn ambiguous_error(&self, lines: &[usize], count: usize) -> Error {
        let to_match = |first: &usize| {
            let last = (*first + count.max(1) - 1).min(self.finder.line_count());
            let bytes = self.finder.line_bytes(*first).start..self.finder.line_bytes(last).end;
            QuoteMatch { bytes, lines: *first..=last, indentation_shift: None }
        };
        let matches: Vec<QuoteMatch> = lines.iter().map(to_match).collect();
        let mut locations: Vec<MatchDescription> = describe_matches(&self.finder, &matches);
        locations.truncate(limits::ERROR_LOCATIONS_MAX);
        let next_step = if locations.iter().any(|location| location.disambiguating_context.is_some()) {
            "add the line that makes the match unique as context, or the line of its definition after @@"
        } else {
            "add more context lines, or the line of its definition after @@"
        };
        let what = format!("it fits at lines {}", list_line_numbers(lines));
        Error::new(ErrorKind::Ambiguous, self.error_message(&what))
            .with_next_step(next_step)
            .with_excerpt(locations.iter().map(render_location).collect::<String>())
            .with_detail("places", locations.iter().map(location_json).collect::<Vec<Value>>())
            .with_detail("places_total", lines.len())
    }

    fn not_found_error(&self, quoted: &str) -> Error {
        let mut what = format!("its lines, starting with {:?}, are not in the file", shorten_text(quoted));
        let older = older_revisions::find_older_revision(self.context, self.now, quoted, MatchBoundary::WholeLines);
        if let Some(older) = &older {
            what.push_str(&format!("; {}", older.describe()));
        }
        let error =
            Error::new(ErrorKind::TextNotFound, self.error_message(&what)).with_detail("quoted", shorten_quote(quoted));
        let Some(older) = older else {
            return self.with_nearest_lines(error, quoted, "the file has no similar lines; read it again");
        };
        // If the journal knows the new text of the lines, no similarity search is needed.
        let mut shown = String::new();
        let mut error = error.with_detail("older", older.to_json());
        if let Some(lines) = older.lines() {
            shown = render_numbered_lines(&self.finder, lines, limits::ERROR_LINES_MAX);
            error = error
                .with_detail("nearest", shown.clone())
                .with_detail("nearest_from", *lines.start())
                .with_detail("nearest_to", *lines.end());
        }
        shown.push_str(older.diff());
        error
            .with_excerpt(shown)
            .with_next_step(format!("see the diff since {}, then quote the current text", older.rev()))
    }

    fn anchor_not_found_error(&self, anchor: &str) -> Error {
        let error = Error::new(ErrorKind::TextNotFound, self.error_message(&format!("no line matches {anchor:?}")));
        self.with_nearest_lines(error, anchor, "put a whole line of the file after @@, or nothing")
    }

    /// Adds the current lines that are most similar to a quote; otherwise only the next step.
    fn with_nearest_lines(&self, error: Error, quoted: &str, otherwise: &str) -> Error {
        let Some(nearest) = self.finder.nearest_candidate(quoted) else {
            return error.with_next_step(otherwise);
        };
        let (first, last) = nearest.lines.clone().into_inner();
        let shown = render_numbered_lines(&self.finder, &nearest.lines, limits::ERROR_LINES_MAX);
        let mut error = error
            .with_excerpt(&shown)
            .with_detail("nearest", shown)
            .with_detail("nearest_from", first)
            .with_detail("nearest_to", last);
        let differs: Vec<Value> = nearest.differences.iter().map(difference_json).collect();
        if !differs.is_empty() {
            error = error.with_detail("differs", differs);
        }
        error.with_next_step(format!("the nearest lines are {first}-{last}, shown here; quote them as they are"))
    }
}

fn list_line_numbers(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(limits::ERROR_LOCATIONS_MAX).map(ToString::to_string).collect();
    let more = if lines.len() > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}

fn shorten_quote(quoted: &str) -> String {
    let mut lines: Vec<&str> = quoted.lines().take(limits::ERROR_LINES_MAX).collect();
    if quoted.lines().count() > lines.len() {
        lines.push("…");
    }
    lines.join("\n")
}
