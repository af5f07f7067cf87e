//! Renders the outcomes of `write`, `edit` and `patch` as text.

use stead_engine::ops::{
    AppliedEditRow, EditOutcome, EditRebaseFields, InexactPatchChunkRow, PatchOutcome, PatchedFileChangeKind,
    PatchedFileRow, PatchedFinalNewlineChange, WriteOutcome, format_line_span,
};
use stead_text::{edit::QuoteMatchMethod, locate::FuzzyTextMatchPass};

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for WriteOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { path, version, size, .. } = self;
        let rev = &version.rev;
        if !self.changed {
            return escape_one_line(format!("{path} already has this content ({rev}); nothing was changed"));
        }
        let verb = if self.created { "created" } else { "wrote" };
        let lines = self.diff.map(|lines| format!(", +{} -{}", lines.added, lines.removed)).unwrap_or_default();
        escape_one_line(format!("{verb} {path} ({rev}, {size} bytes{lines})"))
    }
}

impl RenderableOutcome for EditOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let mut text = render_edit_summary(self);
        let mut edits: Vec<&AppliedEditRow> = self.edits.iter().chain(&self.literal_edits).collect();
        edits.sort_by_key(|row| row.edit);
        let notes = edits.into_iter().filter_map(render_edit_note).chain(self.rebased.as_ref().map(render_rebase));
        let window = self.window.as_ref().map(|window| window.trim_end_matches('\n').to_owned());
        for line in notes.chain(window).chain(self.preview.clone()) {
            text.push('\n');
            text.push_str(&line);
        }
        escape_lines(text)
    }
}

fn render_edit_summary(outcome: &EditOutcome) -> String {
    let EditOutcome { path, version, size, diff, .. } = outcome;
    let (verb, rev) = match outcome {
        EditOutcome { dry_run: true, .. } => ("would edit", "dry run"),
        EditOutcome { changed: true, created: true, .. } => ("created", version.rev.as_str()),
        EditOutcome { changed: true, created: false, .. } => ("edited", version.rev.as_str()),
        EditOutcome { changed: false, already_applied, .. } => {
            let had = if already_applied.is_empty() { "this content" } else { "these edits" };
            return format!("{path} already has {had} ({}); nothing was changed", version.rev);
        }
    };
    let lines: Vec<String> = outcome.lines.iter().map(|lines| format_line_span(*lines.start(), *lines.end())).collect();
    let lines = if lines.is_empty() { String::new() } else { format!(", lines {}", lines.join(", ")) };
    format!("{verb} {path} ({rev}, {size} bytes, +{} -{}{lines})", diff.added, diff.removed)
}

fn render_edit_note(row: &AppliedEditRow) -> Option<String> {
    let AppliedEditRow { edit, first_line_before: line, .. } = row;
    let method = match &row.how {
        QuoteMatchMethod::Pass(FuzzyTextMatchPass::Exact) => return None,
        QuoteMatchMethod::Pass(FuzzyTextMatchPass::LineEndings) => "matched with other line endings",
        QuoteMatchMethod::Pass(FuzzyTextMatchPass::TrailingSpace) => "matched ignoring trailing spaces",
        QuoteMatchMethod::Pass(FuzzyTextMatchPass::LookAlike) => "matched by look-alike characters",
        QuoteMatchMethod::Pass(FuzzyTextMatchPass::Indentation) => {
            "matched at another indentation; new text was re-indented"
        }
        QuoteMatchMethod::LineNumbersStripped(_) => "matched after removing line numbers",
        QuoteMatchMethod::EscapesDecoded(_) => "matched after decoding \\n and \\t",
        QuoteMatchMethod::Similarity(_) => "matched by similarity",
        QuoteMatchMethod::NoChange => return Some(format!("edit {edit} changes nothing: old and new are the same")),
        QuoteMatchMethod::AlreadyApplied => {
            return Some(format!("edit {edit} was already applied: new is at line {line}"));
        }
    };
    let points = row.look_alikes.join(", ");
    let points = if points.is_empty() { points } else { format!(" ({points})") };
    Some(format!("edit {edit} {method}{points} at line {line}"))
}

fn render_rebase(rebase: &EditRebaseFields) -> String {
    let EditRebaseFields { from, to, changed, merged, .. } = rebase;
    let verb = if *merged { "merged with" } else { "rebased over" };
    match changed {
        Some(lines) => format!("{verb} {from}→{to} (+{} -{} lines by others)", lines.added, lines.removed),
        None => format!("{from} is no longer stored; every quoted text still matches {to}"),
    }
}

impl RenderableOutcome for PatchOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let files = if self.files.len() == 1 { "1 file".to_owned() } else { format!("{} files", self.files.len()) };
        let mut text = match &self.rev {
            _ if self.dry_run => format!("would patch {files}; nothing was written"),
            Some(rev) => format!("patched {files} ({rev})"),
            None => "the patch is already applied; nothing was written".to_owned(),
        };
        text.extend(self.files.iter().map(render_patched_file));
        escape_lines(text)
    }
}

fn render_patched_file(row: &PatchedFileRow) -> String {
    let letter = match row.operation {
        PatchedFileChangeKind::Add => 'A',
        PatchedFileChangeKind::Update => 'M',
        PatchedFileChangeKind::Delete => 'D',
        PatchedFileChangeKind::Move => 'R',
    };
    let mut text = format!("\n  {letter} {}", row.path);
    if let Some(to) = &row.to {
        text.push_str(&format!(" -> {to}"));
    }
    if row.already_applied {
        text.push_str("; already applied");
    }
    if row.added + row.removed > 0 {
        text.push_str(&format!(" +{} -{}", row.added, row.removed));
    }
    text.extend(row.matched.iter().map(render_inexact_chunk));
    text.push_str(match row.final_newline {
        None => "",
        Some(PatchedFinalNewlineChange::Added) => "; now ends with a newline",
        Some(PatchedFinalNewlineChange::Dropped) => "; no longer ends with a newline",
    });
    text
}

fn render_inexact_chunk(row: &InexactPatchChunkRow) -> String {
    let InexactPatchChunkRow { chunk, line, by, reading } = row;
    match reading.or(by.map(FuzzyTextMatchPass::name)) {
        Some(by) => format!("; chunk {chunk} matched at line {line} by {by}"),
        None => format!("; chunk {chunk} has no context and was inserted at line {line}"),
    }
}
