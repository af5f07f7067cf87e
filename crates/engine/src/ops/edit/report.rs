//! The outcome of `edit`: the new version, the size and location of the change, and, for inexact matches only, how
//! each was found, with the resulting lines.

use serde_json::{Value, json};
use stead_text::{
    diff::{self, Hunk},
    edit::{AppliedEdit, MatchMethod},
    locate::SearchableText,
    unified::{DiffLabels, unified_diff},
};

use super::{EditResult, EditedFile, base_text::OlderFileText};
use crate::{
    call_context::CallContext,
    call_options::BeforeAfterInclusion,
    engine::{BeforeAfterBytes, CallOutcome},
    limits,
    operation::ResolvedTarget,
    ops::{encode_content::EncodedContent, match_locations, older_revisions, outcome_builder::OutcomeBuilder},
    plan::CommitExpectation,
    version::Version,
    workspace::CommitReceipt,
};

/// Relation of the edits to the current version.
pub(super) enum EditRebaseStatus {
    /// The base is current.
    NotNeeded,
    /// The base is older; so many lines changed since.
    Rebased { from: String, changed: diff::DiffStat },
    /// The base is older, and the changes since were merged.
    Merged { from: String, changed: diff::DiffStat },
    /// The base is not stored; every quote matched exactly.
    Unverified { from: String },
}

impl EditRebaseStatus {
    pub(super) fn rebased(old: &OlderFileText, current: &str) -> Self {
        Self::Rebased { from: old.rev.clone(), changed: diff::diff_stat(&old.text, current) }
    }

    pub(super) fn merged(old: &OlderFileText, current: &str) -> Self {
        Self::Merged { from: old.rev.clone(), changed: diff::diff_stat(&old.text, current) }
    }

    fn to_json(&self, to: &str) -> Option<Value> {
        match self {
            Self::NotNeeded => None,
            Self::Rebased { from, changed } => {
                Some(json!({ "from": from, "to": to, "added": changed.added, "removed": changed.removed }))
            }
            Self::Merged { from, changed } => Some(json!({ "from": from, "to": to, "added": changed.added,
                "removed": changed.removed, "merged": true })),
            Self::Unverified { from } => Some(json!({ "from": from, "to": to, "unverified": true })),
        }
    }

    fn describe(&self, to: &str) -> Option<String> {
        match self {
            Self::NotNeeded => None,
            Self::Rebased { from, changed } => {
                Some(format!("rebased over {from}→{to} (+{} -{} lines by others)", changed.added, changed.removed))
            }
            Self::Merged { from, changed } => {
                Some(format!("merged with {from}→{to} (+{} -{} lines by others)", changed.added, changed.removed))
            }
            Self::Unverified { from } => {
                Some(format!("{from} is no longer stored; every quoted text still matches {to}"))
            }
        }
    }
}

/// Data of the outcome, without a borrow of the workspace.
pub(super) struct EditReport {
    path: String,
    version: Version,
    size: usize,
    created: bool,
    change: diff::DiffStat,
    /// New lines of the result, each as first and last.
    ranges: Vec<(usize, usize)>,
    edits: Vec<Value>,
    already_applied: Vec<usize>,
    notes: Vec<String>,
    rebased: Option<Value>,
    window: Option<String>,
    non_utf8_encoding: Option<&'static str>,
    before_after: Option<BeforeAfterBytes>,
}

/// Lines shown above and below an inexact match.
const WINDOW_LINES: usize = 3;

/// Maximum number of changed ranges in an outcome; the last one covers the rest.
const RANGES_MAX: usize = 32;

impl EditReport {
    pub(super) fn new(
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        current: &EditedFile,
        outcome: &EditResult,
        encoded: &EncodedContent,
        version: Version,
    ) -> Self {
        let hunks = diff::hunks(&current.text, &outcome.text);
        let applied = outcome.per_edit.as_ref().map_or(&[][..], |edited| &edited.applied);
        let is_inexact = |applied: &&(usize, &AppliedEdit)| {
            !applied.1.method.is_literal_match() || context.options.before_after == BeforeAfterInclusion::Include
        };
        let numbered: Vec<(usize, &AppliedEdit)> = applied.iter().enumerate().collect();
        let rev = context.revision_name(&target.path, &current.version);
        let mut notes: Vec<String> =
            numbered.iter().filter_map(|(index, applied)| applied_edit_note(*index, applied)).collect();
        notes.extend(outcome.rebase.describe(&rev));
        let already = |&(index, applied): &(usize, &AppliedEdit)| {
            (applied.method == MatchMethod::AlreadyApplied).then_some(index)
        };
        Self {
            path: target.path.to_string(),
            version,
            size: encoded.bytes.len(),
            created: current.expectation == CommitExpectation::Absent,
            change: diff::count_changed_lines(&hunks),
            ranges: changed_ranges(&hunks),
            edits: numbered
                .iter()
                .filter(is_inexact)
                .map(|(index, applied)| applied_edit_json(*index, applied))
                .collect(),
            already_applied: numbered.iter().filter_map(already).collect(),
            notes,
            rebased: outcome.rebase.to_json(&rev),
            window: render_window(&outcome.text, applied),
            non_utf8_encoding: encoded.non_utf8_encoding,
            before_after: context.before_after(&target.path, Some(&current.bytes), Some(&encoded.bytes)),
        }
    }

    fn outcome_fields(&self, rev: String, changed: FileChanged) -> OutcomeBuilder {
        let ranges: Vec<Value> = self.ranges.iter().map(|(from, to)| json!(format!("{from}-{to}"))).collect();
        OutcomeBuilder::new()
            .with_field("path", self.path.clone())
            .with_version(&self.version, rev)
            .with_field("size", self.size)
            .with_some("created", self.created.then_some(true))
            .with_field("changed", changed == FileChanged::Yes)
            .with_field("diff", json!({ "added": self.change.added, "removed": self.change.removed }))
            .with_field("lines", ranges)
            .with_some("already_applied", (!self.already_applied.is_empty()).then(|| self.already_applied.clone()))
            .with_some("edits", (!self.edits.is_empty()).then(|| self.edits.clone()))
            .with_some("rebased", self.rebased.clone())
            .with_some("window", self.window.clone())
            .with_some("encoding", self.non_utf8_encoding)
    }

    fn render_text(&self, head: String) -> String {
        let mut text = head;
        for note in &self.notes {
            text.push('\n');
            text.push_str(note);
        }
        if let Some(window) = &self.window {
            text.push('\n');
            text.push_str(window.trim_end_matches('\n'));
        }
        text
    }

    fn render_size(&self, rev: &str) -> String {
        let ranges: Vec<String> = self.ranges.iter().map(|(from, to)| format_line_span(*from, *to)).collect();
        let at = if ranges.is_empty() { String::new() } else { format!(", lines {}", ranges.join(", ")) };
        let (added, removed) = (self.change.added, self.change.removed);
        format!("{} ({rev}, {} bytes, +{added} -{removed}{at})", self.path, self.size)
    }

    pub(super) fn committed_outcome(self, receipt: &CommitReceipt) -> CallOutcome {
        let rev = format!("r{}", receipt.entry);
        let verb = if self.created { "created" } else { "edited" };
        let text = self.render_text(format!("{verb} {}", self.render_size(&rev)));
        self.outcome_fields(rev, FileChanged::Yes)
            .with_receipt(receipt)
            .build(text)
            .with_before_after(self.before_after)
    }

    pub(super) fn unchanged_outcome(self, context: &CallContext<'_>, target: &ResolvedTarget) -> CallOutcome {
        let rev = context.revision_name(&target.path, &self.version);
        let why = if self.already_applied.is_empty() { "already has this content" } else { "already has these edits" };
        let text = self.render_text(format!("{} {why} ({rev}); nothing was changed", self.path));
        self.outcome_fields(rev, FileChanged::No).build(text).with_before_after(self.before_after)
    }

    pub(super) fn preview_outcome(self, before: &str, after: &str) -> CallOutcome {
        let labels = DiffLabels { old: &self.path, new: &self.path };
        let diff = unified_diff(before, after, labels, limits::DIFF_CONTEXT_LINES, limits::DIFF_LINES_MAX);
        let shown = older_revisions::render_bounded_diff(&diff);
        let text = self.render_text(format!("would edit {}", self.render_size("dry run")));
        let text = format!("{text}\n{shown}");
        self.outcome_fields("dry_run".to_owned(), FileChanged::No)
            .with_field("dry_run", true)
            .with_field("preview", shown)
            .build(text)
            .with_before_after(self.before_after)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileChanged {
    Yes,
    No,
}

fn changed_ranges(hunks: &[Hunk]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> =
        hunks.iter().map(|hunk| (hunk.new.start + 1, hunk.new.end.max(hunk.new.start + 1))).collect();
    if let Some(&(_, last)) = ranges.last()
        && ranges.len() > RANGES_MAX
    {
        ranges.truncate(RANGES_MAX);
        if let Some(range) = ranges.last_mut() {
            range.1 = last;
        }
    }
    ranges
}

fn format_line_span(from: usize, to: usize) -> String {
    if from == to { from.to_string() } else { format!("{from}-{to}") }
}

fn applied_edit_json(index: usize, applied: &AppliedEdit) -> Value {
    let lines: Vec<String> =
        applied.changed_lines.iter().map(|span| format_line_span(*span.after.start(), *span.after.end())).collect();
    let mut fact = json!({ "edit": index, "how": applied.method.name(), "lines": lines });
    if !applied.look_alikes.is_empty() {
        let points: Vec<String> = applied.look_alikes.iter().map(|c| match_locations::format_code_point(*c)).collect();
        fact["look_alikes"] = json!(points);
    }
    if let Some(matched) = &applied.matched_text {
        fact["matched"] = json!(matched);
    }
    fact
}

/// Describes how an edit was found; `None` for an exact match.
fn applied_edit_note(index: usize, applied: &AppliedEdit) -> Option<String> {
    let line = applied.changed_lines.first().map_or(0, |span| *span.before.start());
    let way = match &applied.method {
        MatchMethod::Pass(pass) => match pass {
            stead_text::locate::MatchPass::Exact => return None,
            stead_text::locate::MatchPass::LineEndings => "matched with other line endings",
            stead_text::locate::MatchPass::TrailingSpace => "matched ignoring trailing spaces",
            stead_text::locate::MatchPass::LookAlike => "matched by look-alike characters",
            stead_text::locate::MatchPass::Indentation => "matched at another indentation; new text was re-indented",
        },
        MatchMethod::LineNumbersStripped(_) => "matched after removing line numbers",
        MatchMethod::EscapesDecoded(_) => "matched after decoding \\n and \\t",
        MatchMethod::Similarity(_) => "matched by similarity",
        MatchMethod::NoChange => {
            return Some(format!("edit {index} changes nothing: old and new are the same"));
        }
        MatchMethod::AlreadyApplied => {
            return Some(format!("edit {index} was already applied: new is at line {line}"));
        }
    };
    let points: Vec<String> = applied.look_alikes.iter().map(|c| match_locations::format_code_point(*c)).collect();
    let points = if points.is_empty() { String::new() } else { format!(" ({})", points.join(", ")) };
    Some(format!("edit {index} {way}{points} at line {line}"))
}

/// The resulting lines around inexact matches.
fn render_window(text: &str, applied: &[AppliedEdit]) -> Option<String> {
    let finder = SearchableText::new(text);
    let mut shown = String::new();
    let mut left = limits::ERROR_LINES_MAX;
    for span in applied
        .iter()
        .filter(|applied| !applied.method.is_literal_match())
        .filter_map(|applied| applied.changed_lines.first())
    {
        let from = span.after.start().saturating_sub(WINDOW_LINES).max(1);
        let to = (span.after.end() + WINDOW_LINES).min(finder.line_count());
        if from > to || left == 0 {
            continue;
        }
        shown.push_str(&match_locations::render_numbered_lines(&finder, &(from..=to), left));
        left = left.saturating_sub(to + 1 - from);
    }
    (!shown.is_empty()).then_some(shown)
}
