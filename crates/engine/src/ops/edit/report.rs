//! The outcome of `edit`: the new version, and the size and the lines of the change. For a quoted text that matched
//! inexactly, the outcome of `edit` also shows the resulting lines.

use serde_json::{Value, json};
use stead_text::{
    diff::{self, DiffHunkRanges},
    edit::{AppliedEdit, QuoteMatchMethod},
    locate::{FuzzyTextMatchPass, QuoteSearchHaystack},
    unified::{DiffLabels, unified_diff},
};

use super::{AppliedEditsResult, FileToEdit, OlderFileText, errors};
use crate::{
    call_context::CallContext,
    call_options::BeforeAfterContentInclusion,
    engine::{BeforeAfterBytes, CallOutcome},
    limits,
    limits::EDIT_RANGES_MAX,
    operation::ResolvedTarget,
    ops::{
        encode_content::EncodedBytesToWrite,
        older_revisions,
        outcome_builder::{OutcomeBuilder, format_line_span},
    },
    plan::CommitExpectation,
    version::Version,
    workspace::CommitReceipt,
};

pub(super) enum EditRebaseStatus {
    NotNeeded,
    Rebased { from: String, changed: diff::DiffStat },
    Merged { from: String, changed: diff::DiffStat },
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
        Some(match self {
            Self::NotNeeded => return None,
            Self::Rebased { from, changed } => {
                json!({ "from": from, "to": to, "added": changed.added, "removed": changed.removed })
            }
            Self::Merged { from, changed } => json!({ "from": from, "to": to, "added": changed.added,
                "removed": changed.removed, "merged": true }),
            Self::Unverified { from } => json!({ "from": from, "to": to, "unverified": true }),
        })
    }

    fn describe(&self, to: &str) -> Option<String> {
        let lines = |changed: &diff::DiffStat| format!("(+{} -{} lines by others)", changed.added, changed.removed);
        Some(match self {
            Self::NotNeeded => return None,
            Self::Rebased { from, changed } => format!("rebased over {from}→{to} {}", lines(changed)),
            Self::Merged { from, changed } => format!("merged with {from}→{to} {}", lines(changed)),
            Self::Unverified { from } => format!("{from} is no longer stored; every quoted text still matches {to}"),
        })
    }
}

pub(super) struct EditReport {
    path: String,
    version: Version,
    size: usize,
    created: bool,
    change: diff::DiffStat,
    ranges: Vec<(usize, usize)>,
    edits: Vec<Value>,
    already_applied: Vec<usize>,
    notes: Vec<String>,
    rebased: Option<Value>,
    window: Option<String>,
    non_utf8_encoding: Option<&'static str>,
    before_after: Option<BeforeAfterBytes>,
}

const WINDOW_LINES: usize = 3;

impl EditReport {
    pub(super) fn new(
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        current: &FileToEdit,
        result: &AppliedEditsResult,
        encoded: &EncodedBytesToWrite,
        version: Version,
    ) -> Self {
        let hunks = diff::hunks(&current.text, &result.text);
        let applied = result.per_edit.as_ref().map_or(&[][..], |edited| &edited.applied);
        let is_inexact = |applied: &&(usize, &AppliedEdit)| {
            !applied.1.method.is_literal_match() || context.options.before_after == BeforeAfterContentInclusion::Include
        };
        let numbered: Vec<(usize, &AppliedEdit)> = applied.iter().enumerate().collect();
        let rev = context.revision_name(&target.path, &current.version);
        let mut notes: Vec<String> =
            numbered.iter().filter_map(|(index, applied)| applied_edit_note(*index, applied)).collect();
        notes.extend(result.rebase.describe(&rev));
        let already = |&(index, applied): &(usize, &AppliedEdit)| {
            (applied.method == QuoteMatchMethod::AlreadyApplied).then_some(index)
        };
        Self {
            path: target.path.to_string(),
            version,
            size: encoded.bytes.len(),
            created: current.expectation == CommitExpectation::Absent,
            change: diff::count_changed_lines(&hunks),
            ranges: changed_ranges(&hunks),
            edits: numbered.iter().filter(is_inexact).map(|(at, applied)| applied_edit_json(*at, applied)).collect(),
            already_applied: numbered.iter().filter_map(already).collect(),
            notes,
            rebased: result.rebase.to_json(&rev),
            window: render_window(&result.text, applied),
            non_utf8_encoding: encoded.non_utf8_encoding,
            before_after: context.before_after(&target.path, Some(&current.bytes), Some(&encoded.bytes)),
        }
    }

    fn outcome_fields(&self, rev: String, changed: EditChangedFileFlag) -> OutcomeBuilder {
        let ranges: Vec<Value> = self.ranges.iter().map(|(from, to)| json!(format!("{from}-{to}"))).collect();
        OutcomeBuilder::new()
            .with_field("path", self.path.clone())
            .with_version(&self.version, rev)
            .with_field("size", self.size)
            .with_some("created", self.created.then_some(true))
            .with_field("changed", changed == EditChangedFileFlag::Yes)
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
        self.outcome_fields(rev, EditChangedFileFlag::Yes)
            .with_receipt(receipt)
            .build(text)
            .with_before_after(self.before_after)
    }

    pub(super) fn unchanged_outcome(self, context: &CallContext<'_>, target: &ResolvedTarget) -> CallOutcome {
        let rev = context.revision_name(&target.path, &self.version);
        let why = if self.already_applied.is_empty() { "already has this content" } else { "already has these edits" };
        let text = self.render_text(format!("{} {why} ({rev}); nothing was changed", self.path));
        self.outcome_fields(rev, EditChangedFileFlag::No).build(text).with_before_after(self.before_after)
    }

    pub(super) fn preview_outcome(self, before: &str, after: &str) -> CallOutcome {
        let labels = DiffLabels { old: &self.path, new: &self.path };
        let diff = unified_diff(before, after, labels, limits::DIFF_CONTEXT_LINES, limits::DIFF_LINES_MAX);
        let preview = older_revisions::render_bounded_diff(&diff);
        let text = self.render_text(format!("would edit {}", self.render_size("dry run")));
        let text = format!("{text}\n{preview}");
        self.outcome_fields("dry_run".to_owned(), EditChangedFileFlag::No)
            .with_field("dry_run", true)
            .with_field("preview", preview)
            .build(text)
            .with_before_after(self.before_after)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EditChangedFileFlag {
    Yes,
    No,
}

fn changed_ranges(hunks: &[DiffHunkRanges]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> =
        hunks.iter().map(|hunk| (hunk.new.start + 1, hunk.new.end.max(hunk.new.start + 1))).collect();
    if let Some(&(_, last)) = ranges.last()
        && ranges.len() > EDIT_RANGES_MAX
    {
        ranges.truncate(EDIT_RANGES_MAX);
        if let Some(range) = ranges.last_mut() {
            range.1 = last;
        }
    }
    ranges
}

fn applied_edit_json(index: usize, applied: &AppliedEdit) -> Value {
    let lines: Vec<String> =
        applied.changed_lines.iter().map(|span| format_line_span(*span.after.start(), *span.after.end())).collect();
    let mut fact = json!({ "edit": index, "how": applied.method.name(), "lines": lines });
    if !applied.look_alikes.is_empty() {
        fact["look_alikes"] = json!(code_points(applied));
    }
    if let Some(matched) = &applied.matched_text {
        fact["matched"] = json!(matched);
    }
    fact
}

fn code_points(applied: &AppliedEdit) -> Vec<String> {
    applied.look_alikes.iter().copied().map(errors::format_code_point).collect()
}

fn applied_edit_note(index: usize, applied: &AppliedEdit) -> Option<String> {
    let line = applied.changed_lines.first().map_or(0, |span| *span.before.start());
    let method = match &applied.method {
        QuoteMatchMethod::Pass(pass) => match pass {
            FuzzyTextMatchPass::Exact => return None,
            FuzzyTextMatchPass::LineEndings => "matched with other line endings",
            FuzzyTextMatchPass::TrailingSpace => "matched ignoring trailing spaces",
            FuzzyTextMatchPass::LookAlike => "matched by look-alike characters",
            FuzzyTextMatchPass::Indentation => "matched at another indentation; new text was re-indented",
        },
        QuoteMatchMethod::LineNumbersStripped(_) => "matched after removing line numbers",
        QuoteMatchMethod::EscapesDecoded(_) => "matched after decoding \\n and \\t",
        QuoteMatchMethod::Similarity(_) => "matched by similarity",
        QuoteMatchMethod::NoChange => return Some(format!("edit {index} changes nothing: old and new are the same")),
        QuoteMatchMethod::AlreadyApplied => {
            return Some(format!("edit {index} was already applied: new is at line {line}"));
        }
    };
    let points = code_points(applied);
    let points = if points.is_empty() { String::new() } else { format!(" ({})", points.join(", ")) };
    Some(format!("edit {index} {method}{points} at line {line}"))
}

fn render_window(text: &str, applied: &[AppliedEdit]) -> Option<String> {
    let finder = QuoteSearchHaystack::new(text);
    let mut window = String::new();
    let mut remaining = limits::ERROR_LINES_MAX;
    for span in applied
        .iter()
        .filter(|applied| !applied.method.is_literal_match())
        .filter_map(|applied| applied.changed_lines.first())
    {
        let from = span.after.start().saturating_sub(WINDOW_LINES).max(1);
        let to = (span.after.end() + WINDOW_LINES).min(finder.line_count());
        if from > to || remaining == 0 {
            continue;
        }
        window.push_str(&errors::render_numbered_lines(&finder, &(from..=to), remaining));
        remaining = remaining.saturating_sub(to + 1 - from);
    }
    (!window.is_empty()).then_some(window)
}
