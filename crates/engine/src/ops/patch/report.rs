//! The outcome of `patch`, after a commit or for a dry run, with one row per section in the order of the patch.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use stead_path::RelPath;
use stead_text::{
    locate::FuzzyTextMatchPass,
    patch::{FinalNewlineChange, PatchPlacementBasis, PatchedText},
};

use crate::{
    call_context::CallContext,
    engine::{BeforeAfterBytes, CallOutcome},
    ops::outcome_builder::{OutcomeBuilder, format_iso_utc},
    plan::{Plan, PlannedChange},
    version::Version,
    workspace::CommitReceipt,
};

/// The value of the outcome field `by` for a patch chunk without context lines and without an anchor.
const NO_CONTEXT: &str = "no_context";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchedFileChangeKind {
    Add,
    Update,
    Delete,
    Move,
}

impl PatchedFileChangeKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Move => "move",
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Add => 'A',
            Self::Update => 'M',
            Self::Delete => 'D',
            Self::Move => 'R',
        }
    }
}

pub(super) struct PatchReportRow {
    kind: PatchedFileChangeKind,
    path: RelPath,
    to: Option<RelPath>,
    version: Option<Version>,
    added: usize,
    removed: usize,
    chunks: usize,
    matched: Vec<Value>,
    final_newline: FinalNewlineChange,
    status: FilePatchAlreadyAppliedFlag,
    before_after: Option<BeforeAfterBytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilePatchAlreadyAppliedFlag {
    Applied,
    AlreadyApplied,
}

impl PatchReportRow {
    pub(super) fn new(kind: PatchedFileChangeKind, path: &RelPath) -> Self {
        Self {
            kind,
            path: path.clone(),
            to: None,
            version: None,
            added: 0,
            removed: 0,
            chunks: 0,
            matched: Vec::new(),
            final_newline: FinalNewlineChange::Unchanged,
            status: FilePatchAlreadyAppliedFlag::Applied,
            before_after: None,
        }
    }

    pub(super) fn with_destination(mut self, to: &RelPath) -> Self {
        self.to = Some(to.clone());
        self
    }

    pub(super) fn already_applied(kind: PatchedFileChangeKind, path: &RelPath) -> Self {
        Self { status: FilePatchAlreadyAppliedFlag::AlreadyApplied, ..Self::new(kind, path) }
    }

    pub(super) fn is_already_applied(&self) -> bool {
        self.status == FilePatchAlreadyAppliedFlag::AlreadyApplied
    }

    pub(super) fn with_line_counts(mut self, added: usize, removed: usize) -> Self {
        (self.added, self.removed) = (added, removed);
        self
    }

    pub(super) fn with_version(mut self, version: Version) -> Self {
        self.version = Some(version);
        self
    }

    pub(super) fn with_bytes(self, bytes: &[u8]) -> Self {
        self.with_version(Version::hash_bytes(bytes))
    }

    /// Records only the patch chunks that matched inexactly or have no context.
    pub(super) fn with_chunks(mut self, applied: &PatchedText) -> Self {
        let inexact = applied.matches.iter().enumerate().filter(|(_, matched)| {
            let has_no_context = matched.basis == PatchPlacementBasis::Default;
            matched.pass > FuzzyTextMatchPass::LineEndings || matched.repair.is_some() || has_no_context
        });
        self.matched = inexact
            .map(|(chunk, matched)| {
                let by = if matched.basis == PatchPlacementBasis::Default { NO_CONTEXT } else { matched.pass.name() };
                let mut object = json!({ "chunk": chunk, "line": matched.line, "by": by });
                if let (Value::Object(fields), Some(repair)) = (&mut object, matched.repair) {
                    fields.insert("reading".to_owned(), repair.name().into());
                }
                object
            })
            .collect();
        self.final_newline = applied.final_newline;
        self.chunks = applied.matches.len();
        self.with_line_counts(applied.added, applied.removed)
    }

    pub(super) fn with_before_after(
        mut self,
        context: &CallContext<'_>,
        before: Option<Vec<u8>>,
        after: Option<&[u8]>,
    ) -> Self {
        let path = self.to.as_ref().unwrap_or(&self.path);
        self.before_after = context.before_after(path, before.as_deref(), after);
        self
    }

    fn to_json(&self, rev: Option<&str>, trash: Option<&str>) -> Map<String, Value> {
        let newline = match self.final_newline {
            FinalNewlineChange::Unchanged => None,
            FinalNewlineChange::TerminatorAdded => Some("added"),
            FinalNewlineChange::TerminatorDropped => Some("dropped"),
        };
        OutcomeBuilder::new()
            .with_field("operation", self.kind.as_str())
            .with_field("path", self.path.to_string())
            .with_some("to", self.to.as_ref().map(ToString::to_string))
            .with_some("version", self.version.map(|version| version.to_string()))
            .with_some("rev", self.version.and(rev))
            .with_field("added", self.added)
            .with_field("removed", self.removed)
            .with_field("chunks", self.chunks)
            .with_some("matched", (!self.matched.is_empty()).then(|| self.matched.clone()))
            .with_some("final_newline", newline)
            .with_some("already_applied", self.is_already_applied().then_some(true))
            .with_some("trash", trash)
            .into_json()
    }

    fn render_text(&self) -> String {
        let mut text = format!("  {} {}", self.kind.letter(), self.path);
        if let Some(to) = &self.to {
            text.push_str(&format!(" -> {to}"));
        }
        if self.is_already_applied() {
            text.push_str("; already applied");
        }
        if self.added + self.removed > 0 {
            text.push_str(&format!(" +{} -{}", self.added, self.removed));
        }
        for matched in &self.matched {
            let by = matched.get("reading").or(matched.get("by")).and_then(Value::as_str).unwrap_or_default();
            let (chunk, line) = (&matched["chunk"], &matched["line"]);
            let how = if by == NO_CONTEXT { "has no context and was inserted" } else { "matched" };
            let by = if by == NO_CONTEXT { String::new() } else { format!(" by {by}") };
            // Writing to a `String` cannot fail.
            write!(text, "; chunk {chunk} {how} at line {line}{by}").unwrap_or_default();
        }
        match self.final_newline {
            FinalNewlineChange::Unchanged => {}
            FinalNewlineChange::TerminatorAdded => text.push_str("; now ends with a newline"),
            FinalNewlineChange::TerminatorDropped => text.push_str("; no longer ends with a newline"),
        }
        text
    }
}

pub(super) struct PatchReport {
    rows: Vec<PatchReportRow>,
    removed: Vec<RelPath>,
    recoverable_until_ms: Option<i64>,
    revs: Vec<Option<String>>,
}

impl PatchReport {
    pub(super) fn new(context: &CallContext<'_>, rows: Vec<PatchReportRow>, plan: &Plan) -> Self {
        let mut removed = Vec::new();
        let mut recoverable_until_ms = None;
        for change in &plan.changes {
            if let PlannedChange::Remove { path, retain_until_ms, .. } = change {
                removed.push(path.clone());
                recoverable_until_ms = Some(*retain_until_ms);
            }
        }
        let rev = |row: &PatchReportRow| {
            row.version.filter(|_| plan.is_empty()).map(|version| context.revision_name(&row.path, &version))
        };
        let revs = rows.iter().map(rev).collect();
        Self { rows, removed, recoverable_until_ms, revs }
    }

    pub(super) fn committed_outcome(self, receipt: &CommitReceipt) -> CallOutcome {
        let rev = format!("r{}", receipt.entry);
        let trash = |row: &PatchReportRow| {
            let at =
                self.removed.iter().position(|path| row.kind == PatchedFileChangeKind::Delete && *path == row.path)?;
            receipt.trash_ids.get(at).map(String::as_str)
        };
        let files = self.rows.iter().map(|row| row.to_json(Some(&rev), trash(row))).collect();
        let text = format!("patched {} ({rev})", render_file_count(self.rows.len()));
        let until = self.recoverable_until_ms.map(format_iso_utc);
        let fields = OutcomeBuilder::new()
            .with_field("changed", true)
            .with_some("recoverable_until", until)
            .with_field("rev", rev)
            .with_receipt(receipt);
        self.into_outcome(files, fields, &text)
    }

    pub(super) fn preview_outcome(self) -> CallOutcome {
        let files = self.rows.iter().map(|row| row.to_json(None, None)).collect();
        let text = format!("would patch {}; nothing was written", render_file_count(self.rows.len()));
        self.into_outcome(files, OutcomeBuilder::new().with_field("dry_run", true), &text)
    }

    pub(super) fn unchanged_outcome(self) -> CallOutcome {
        let files = self.rows.iter().zip(&self.revs).map(|(row, rev)| row.to_json(rev.as_deref(), None)).collect();
        let fields = OutcomeBuilder::new().with_field("changed", false);
        self.into_outcome(files, fields, "the patch is already applied; nothing was written")
    }

    fn into_outcome(self, files: Vec<Map<String, Value>>, fields: OutcomeBuilder, first_line: &str) -> CallOutcome {
        let mut text = first_line.to_owned();
        for row in &self.rows {
            text.push('\n');
            text.push_str(&row.render_text());
        }
        OutcomeBuilder::new()
            .with_field("files", files)
            .with_fields(fields.into_json())
            .build(text)
            .with_before_after(self.rows.into_iter().filter_map(|row| row.before_after))
    }
}

fn render_file_count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}
