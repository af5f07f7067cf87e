//! The outcome of `edit`: the new version, and the size and the lines of the change. For a quoted text that matched
//! inexactly, the outcome of `edit` also shows the resulting lines.

use std::ops::RangeInclusive;

use serde::{Serialize, Serializer};
use stead_path::RelPath;
use stead_text::{
    diff::{self, DiffHunkRanges},
    edit::{AppliedEdit, QuoteMatchMethod},
    locate::QuoteSearchHaystack,
    unified::{DiffLabels, unified_diff},
};

use super::{AppliedEditsResult, FileToEdit, OlderFileText, errors};
use crate::{
    call_context::CallContext,
    call_options::BeforeAfterContentInclusion,
    engine::BeforeAfterBytes,
    limits,
    limits::EDIT_RANGES_MAX,
    operation::ResolvedTarget,
    ops::{ChangedLineCounts, encode_content::EncodedBytesToWrite, older_revisions, text_pages::format_line_span},
    outcome::{FileShownInOutcome, FileVersionFields, OperationOutcome, RecordedEntryFields, is_default},
    plan::CommitExpectation,
    version::Version,
    workspace::CommitReceipt,
};

#[derive(Debug, Serialize, JsonSchema)]
pub struct EditOutcome {
    pub path: RelPath,
    #[serde(flatten)]
    pub version: FileVersionFields,
    pub size: usize,
    #[serde(skip_serializing_if = "is_default")]
    pub created: bool,
    pub changed: bool,
    pub diff: ChangedLineCounts,
    #[serde(serialize_with = "serialize_line_ranges")]
    #[schemars(with = "Vec<String>")]
    pub lines: Vec<RangeInclusive<usize>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub already_applied: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<AppliedEditRow>,
    /// The edits that matched exactly or needed no match; empty for callers who asked for all edits.
    #[serde(skip)]
    pub literal_edits: Vec<AppliedEditRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebased: Option<EditRebaseFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "is_default")]
    pub dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    #[serde(flatten)]
    pub recorded: Option<RecordedEntryFields>,
    #[serde(skip)]
    pub before_after: Option<BeforeAfterBytes>,
}

/// How the quoted text of one edit was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AppliedEditRow {
    pub edit: usize,
    #[serde(serialize_with = "serialize_match_method")]
    #[schemars(with = "String")]
    pub how: QuoteMatchMethod,
    #[serde(serialize_with = "serialize_line_spans")]
    #[schemars(with = "Vec<String>")]
    pub lines: Vec<RangeInclusive<usize>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub look_alikes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    #[serde(skip)]
    pub first_line_before: usize,
}

/// The changes of others that an edit with an older base was applied over.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EditRebaseFields {
    pub from: String,
    pub to: String,
    /// The lines that others changed; `None` if the base is no longer stored.
    #[serde(flatten)]
    pub changed: Option<ChangedLineCounts>,
    #[serde(skip_serializing_if = "is_default")]
    pub merged: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub unverified: bool,
}

impl EditRebaseFields {
    pub(super) fn rebased(old: &OlderFileText, current: &FileToEdit) -> Self {
        let changed = Some(diff::diff_stat(&old.text, &current.text).into());
        Self { from: old.rev.clone(), to: current.rev.clone(), changed, merged: false, unverified: false }
    }

    pub(super) fn merged(old: &OlderFileText, current: &FileToEdit) -> Self {
        Self { merged: true, ..Self::rebased(old, current) }
    }

    pub(super) fn unverified(from: String, current: &FileToEdit) -> Self {
        Self { from, to: current.rev.clone(), changed: None, merged: false, unverified: true }
    }
}

const WINDOW_LINES: usize = 3;

impl EditOutcome {
    /// The outcome of edits that leave the file as it is.
    pub(super) fn unchanged(
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        current: &FileToEdit,
        result: &AppliedEditsResult,
        encoded: &EncodedBytesToWrite,
    ) -> Self {
        let hunks = diff::hunks(&current.text, &result.text);
        let applied = result.per_edit.as_ref().map_or(&[][..], |edited| &edited.applied);
        let rows = applied.iter().enumerate().map(|(index, applied)| AppliedEditRow::new(index, applied));
        let rows: Vec<AppliedEditRow> = rows.collect();
        let already_applied = rows.iter().filter(|row| row.how == QuoteMatchMethod::AlreadyApplied);
        let already_applied = already_applied.map(|row| row.edit).collect();
        let (edits, literal_edits) = rows.into_iter().partition(|row| {
            !row.how.is_literal_match() || context.options.before_after == BeforeAfterContentInclusion::Include
        });
        Self {
            path: target.path.clone(),
            version: FileVersionFields::new(current.version, current.rev.clone()),
            size: encoded.bytes.len(),
            created: current.expectation == CommitExpectation::Absent,
            changed: false,
            diff: diff::count_changed_lines(&hunks).into(),
            lines: changed_ranges(&hunks),
            already_applied,
            edits,
            literal_edits,
            rebased: result.rebased.clone(),
            window: render_window(&result.text, applied),
            encoding: encoded.non_utf8_encoding,
            dry_run: false,
            preview: None,
            recorded: None,
            before_after: context.before_after(&target.path, Some(&current.bytes), Some(&encoded.bytes)),
        }
    }

    pub(super) fn committed(self, version: Version, receipt: &CommitReceipt) -> Self {
        let version = FileVersionFields::written(version, receipt);
        Self { version, changed: true, recorded: Some(receipt.into()), ..self }
    }

    pub(super) fn preview(self, version: Version, before: &str, after: &str) -> Self {
        let path = self.path.to_string();
        let labels = DiffLabels { old: &path, new: &path };
        let diff = unified_diff(before, after, labels, limits::DIFF_CONTEXT_LINES, limits::DIFF_LINES_MAX);
        let version = FileVersionFields::new(version, "dry_run".to_owned());
        Self { version, dry_run: true, preview: Some(older_revisions::render_bounded_diff(&diff)), ..self }
    }
}

impl OperationOutcome for EditOutcome {
    fn take_before_after(&mut self) -> Vec<BeforeAfterBytes> {
        self.before_after.take().into_iter().collect()
    }

    fn main_file(&mut self) -> Option<FileShownInOutcome<'_>> {
        Some(FileShownInOutcome::new(&self.path, &mut self.version))
    }
}

impl AppliedEditRow {
    fn new(edit: usize, applied: &AppliedEdit) -> Self {
        Self {
            edit,
            how: applied.method.clone(),
            lines: applied.changed_lines.iter().map(|span| span.after.clone()).collect(),
            look_alikes: applied.look_alikes.iter().copied().map(errors::format_code_point).collect(),
            matched: applied.matched_text.clone(),
            first_line_before: applied.changed_lines.first().map_or(0, |span| *span.before.start()),
        }
    }
}

fn serialize_line_ranges<S: Serializer>(lines: &[RangeInclusive<usize>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(lines.iter().map(|lines| format!("{}-{}", lines.start(), lines.end())))
}

fn serialize_line_spans<S: Serializer>(lines: &[RangeInclusive<usize>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(lines.iter().map(|lines| format_line_span(*lines.start(), *lines.end())))
}

fn serialize_match_method<S: Serializer>(method: &QuoteMatchMethod, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.name())
}

fn changed_ranges(hunks: &[DiffHunkRanges]) -> Vec<RangeInclusive<usize>> {
    let range = |hunk: &DiffHunkRanges| hunk.new.start + 1..=hunk.new.end.max(hunk.new.start + 1);
    let mut ranges: Vec<_> = hunks.iter().take(EDIT_RANGES_MAX).map(range).collect();
    // The last range covers all further changes.
    if let (Some(last), Some(hunk)) = (ranges.last_mut(), hunks.last()) {
        *last = *last.start()..=*range(hunk).end();
    }
    ranges
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
