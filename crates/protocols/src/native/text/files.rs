//! Renders the outcomes of the operations that read, list and change files as text.

use stead_engine::{
    FileKind, limits,
    ops::{
        AppendOutcome, AppliedEditRow, CopiedFile, CopiedTree, CopyOutcome, EditOutcome, EditRebaseFields, FindOutcome,
        InexactPatchChunkRow, ListOutcome, MoveOutcome, MoveOutcomeTreeFields, PatchOutcome, PatchedFileChangeKind,
        PatchedFileRow, PatchedFinalNewlineChange, ReadArgs, ReadBytesFields, ReadLinesFields, ReadOutcome,
        ReadPartFields, RemoveOutcome, RestoreFromTrashArgs, RestoreFromTrashOutcome, StatOutcome, WriteOutcome,
        describe_size, file_kind_name, format_line_span,
    },
};
use stead_text::{edit::QuoteMatchMethod, locate::FuzzyTextMatchPass, visible::escape_deceptive_line};

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::{json_string::LONG_TEXT_BYTES_MIN, native::CallStyle};

impl RenderableOutcome for ReadOutcome {
    /// Renders the result of `read` as text; the file content is not escaped.
    fn native_text(&self, style: CallStyle) -> String {
        let next_line = |word, next: &ReadArgs| format!("\n… {word}: {}", style.render_call(next.clone()));
        match &self.part {
            ReadPartFields::Lines(part) => {
                let next = part.completeness.next_call().map(|next| next_line("truncated", next));
                render_content(self, &self.content, &describe_lines(self, part), next)
            }
            ReadPartFields::Bytes(part) => {
                let truncated = part.completeness.next_call().map(|next| next_line("truncated", next));
                let next = truncated.or_else(|| part.following.as_ref().map(|next| next_line("more", next)));
                let content = if exceeds_page(&self.content) { CONTENT_OMITTED } else { &self.content };
                render_content(self, content, &describe_bytes(self, part), next)
            }
            ReadPartFields::RawBytes(part) => escape_one_line(format!("{} bytes of {}", part.length, self.path)),
        }
    }

    fn take_long_text(&mut self) -> Option<(&'static str, String)> {
        let is_long = self.content.len() >= LONG_TEXT_BYTES_MIN;
        is_long.then(|| (r#""content":"""#, std::mem::take(&mut self.content)))
    }
}

const CONTENT_OMITTED: &str = "the content is long: it is only in the field content of the structured outcome";

fn describe_lines(outcome: &ReadOutcome, part: &ReadLinesFields) -> String {
    let ReadLinesFields { encoding, ending, lines, .. } = part;
    let shown = match lines.total {
        0 => "empty".to_owned(),
        total => format!("lines {}-{} of {total}", lines.from, lines.to),
    };
    format!(
        "{shown}, {}, {} bytes, {encoding}{}, {ending}{}",
        outcome.version.rev,
        outcome.size,
        if part.bom { " with byte-order mark" } else { "" },
        if part.ends_without_newline { ", no newline at the end" } else { "" },
    )
}

fn describe_bytes(outcome: &ReadOutcome, part: &ReadBytesFields) -> String {
    let shown = match part.bytes.total {
        0 => "empty".to_owned(),
        total => format!("bytes {}-{} of {total}", part.bytes.from, part.bytes.to),
    };
    format!("{shown}, {}, {}", outcome.version.rev, part.encoding)
}

fn render_content(outcome: &ReadOutcome, content: &str, description: &str, next: Option<String>) -> String {
    let separator = if content.is_empty() || content.ends_with(['\n', '\r']) { "" } else { "\n" };
    let path = outcome.path.to_wire();
    let next = next.unwrap_or_default();
    format!("{content}{separator}[{}: {description}]{next}", escape_deceptive_line(&path))
}

fn exceeds_page(content: &str) -> bool {
    content.len() > limits::OUTCOME_PAGE_CHARS && content.chars().nth(limits::OUTCOME_PAGE_CHARS).is_some()
}

impl RenderableOutcome for StatOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { path, kind, size, modified, mode, .. } = self;
        let mut text = format!("{}: {}", escape_deceptive_line(&path.to_wire()), file_kind_name(*kind));
        if *kind == FileKind::File {
            text.push_str(&format!(", {size} bytes"));
        }
        text.push_str(&format!(", mode {mode}, modified {modified}"));
        match &self.version {
            Some(version) => text.push_str(&format!(", {}", version.rev)),
            None if *kind == FileKind::File => text.push_str(", too large to hash: read it to get its version"),
            None => {}
        }
        text.extend(self.links.map(|count| format!(", {count} hard links")));
        text.extend(self.target.iter().map(|target| format!(", points to {}", escape_deceptive_line(target))));
        escape_lines(text)
    }
}

impl RenderableOutcome for ListOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let Self { path, entries, total, hidden, completeness } = self;
        let mut text = String::new();
        for entry in entries {
            text.push_str(&entry.render_line(path));
            text.extend(entry.error.map(|code| format!("  ({code})")));
            text.push('\n');
        }
        let count = match total {
            Some(total) if completeness.is_truncated() => format!("{} of {total} entries", entries.len()),
            Some(_) | None if entries.is_empty() && *hidden == 0 => "empty".to_owned(),
            Some(_) | None => format!("{} entries", entries.len()),
        };
        text.push_str(&format!("[{}: {count}", escape_deceptive_line(&path.to_wire())));
        if *hidden > 0 {
            text.push_str(&format!(", {hidden} hidden ({} shows them)", style.render_switch("all")));
        }
        text.push(']');
        if let Some(next) = completeness.next_call() {
            text.push_str(&format!("\n… truncated: {}", style.render_call(next.clone())));
        }
        escape_lines(text)
    }
}

impl RenderableOutcome for FindOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let mut text = String::new();
        for found in &self.matches {
            text.push_str(&escape_deceptive_line(&found.path.to_wire()));
            match found.kind {
                FileKind::Directory => text.push('/'),
                FileKind::Link => text.push('@'),
                FileKind::File | FileKind::Special => text.push_str(&format!("  {}", found.size)),
            }
            text.push('\n');
        }
        let (pattern, count) = (escape_deceptive_line(&self.pattern), self.matches.len());
        text.push_str(&match (&self.nearest, self.partial) {
            (Some(_), _) => format!("[no match for {pattern}"),
            (None, true) => format!("[no match for {pattern}; {count} contain it"),
            (None, false) => format!("[{count} match {pattern}"),
        });
        for (at, path) in self.nearest.iter().flatten().enumerate() {
            text.push_str(if at == 0 { "; did you mean " } else { ", " });
            text.push_str(&escape_deceptive_line(&path.to_wire()));
        }
        let omitted = self.total.saturating_sub(count as u64);
        if omitted > 0 {
            text.push_str(&format!(
                "; truncated, {omitted} more: pass a narrower path, or raise {} up to {}",
                style.render_argument_name("max"),
                limits::FIND_MATCHES_MAX
            ));
        }
        text.extend(render_ignored_note(self.ignored, style).map(|note| format!("; {note}")));
        text.push(']');
        escape_lines(text)
    }
}

fn render_ignored_note(ignored: Option<u64>, style: CallStyle) -> Option<String> {
    ignored.map(|count| format!("{count} ignored ({} includes them)", style.render_switch("all")))
}

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

impl RenderableOutcome for MoveOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { from, path, rev, moved, .. } = self;
        escape_one_line(match moved {
            Some(MoveOutcomeTreeFields { files, bytes, .. }) => {
                let rev = rev.as_deref().unwrap_or_default();
                format!("moved {from} to {path} ({}, {rev})", describe_size(*files, *bytes))
            }
            None => format!("source and destination are both {path}; nothing was changed"),
        })
    }
}

impl RenderableOutcome for RemoveOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let Self { path, recoverable_until: until, files, bytes, recorded, .. } = self;
        let id = self.trash.as_deref().unwrap_or("unknown");
        let restore = match style
            .render_command(RestoreFromTrashArgs { trash: id.to_owned(), ..RestoreFromTrashArgs::default() })
        {
            Some(command) => format!("to restore it until {until}, run: {command}"),
            None => format!("restore with trash {id} until {until}"),
        };
        escape_one_line(format!("removed {path} ({}, r{}); {restore}", describe_size(*files, *bytes), recorded.entry))
    }
}

impl RenderableOutcome for RestoreFromTrashOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_one_line(format!("restored {} ({}, {})", self.path, describe_size(self.files, self.bytes), self.rev))
    }
}

impl RenderableOutcome for AppendOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { path, version, size, changed, added_bytes, .. } = self;
        escape_one_line(if *changed {
            format!("appended {added_bytes} bytes to {path} ({}, {size} bytes)", version.rev)
        } else {
            format!("nothing to append to {path}; nothing was changed")
        })
    }
}

impl RenderableOutcome for CopyOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        match self {
            CopyOutcome::File(CopiedFile { path, changed: false, .. }) => {
                escape_one_line(format!("{path} already has this content; nothing was changed"))
            }
            CopyOutcome::File(CopiedFile { from, path, version, size, .. }) => {
                escape_one_line(format!("copied {from} to {path} ({}, {size} bytes)", version.rev))
            }
            CopyOutcome::Tree(copied) => escape_lines(render_tree(copied)),
        }
    }
}

fn render_tree(copied: &CopiedTree) -> String {
    let CopiedTree { from, path, rev, files, bytes, skipped, skipped_omitted, .. } = copied;
    let mut text = format!("copied {from} to {path} ({}, {rev})", describe_size(*files, *bytes));
    let not_copied = skipped.len() + skipped_omitted;
    if not_copied > 0 {
        text.push_str(&format!("; {not_copied} not copied:"));
    }
    for entry in skipped {
        text.push_str(&format!("\n  {}: {}", escape_deceptive_line(&entry.path.to_wire()), entry.reason));
    }
    text
}
