//! Renders the outcomes of `history`, `diff`, `undo` and `redo`, and of completed calls, as text.
use stead_engine::{
    limits,
    ops::{
        ChangesArgs, DiffOutcome, HistoryEntryRow, HistoryOutcome, JournalCursorArgument, ReplayedCallOutcome,
        UndoOrRedoOutcome, UndoneOrRedoneEntry, VisibleChange, first_page,
    },
};

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for HistoryOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let entries: String = self.entries.iter().map(|entry| render_history_entry(entry, style)).collect();
        escape_lines(match self.completeness.next_call() {
            Some(next) => format!("{entries}… more: {}", style.render_call(next.clone())),
            None if entries.is_empty() => "no changes".to_owned(),
            None => entries.trim_end().to_owned(),
        })
    }
}

fn render_history_entry(entry: &HistoryEntryRow, style: CallStyle) -> String {
    let mut text = entry.render_heading() + "\n";
    for change in &entry.changes {
        text.push_str(&format!("  {}\n", change.render_line()));
    }
    if entry.changes_omitted > 0 {
        let since = JournalCursorArgument::Text(format!("r{}", entry.entry.saturating_sub(1)));
        let call = style.render_call(ChangesArgs { since, wait_ms: None });
        text.push_str(&format!("  … and {} more: {call}\n", entry.changes_omitted));
    }
    text
}

impl RenderableOutcome for DiffOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { path, diff, lines, same_bytes, .. } = self;
        // Escapes make the text longer, so that the text can exceed the limit although the diff does not.
        let escaped = escape_lines(diff);
        let mut text = match (first_page(&escaped, limits::OUTCOME_PAGE_CHARS).text, same_bytes) {
            ("", true) => "no differences".to_owned(),
            ("", false) => "only the encoding differs".to_owned(),
            (page, true | false) => format!("{page}[+{} -{} lines]", lines.added, lines.removed),
        };
        if self.completeness.is_truncated() {
            text.push_str(&format!("\n… truncated: read {path} to see the whole file"));
        }
        escape_lines(text)
    }
}

impl RenderableOutcome for ReplayedCallOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let mut text = format!("already done by {} r{}; nothing was done again", self.operation, self.recorded.entry);
        for change in &self.changes {
            text.push_str(&format!("\n  {}", change.render_line()));
        }
        if self.changes_omitted > 0 {
            text.push_str(&format!("\n  … and {} more changes", self.changes_omitted));
        }
        escape_lines(text)
    }
}

impl RenderableOutcome for UndoOrRedoOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let (verb, number) = match (self.entry, self.dry_run) {
            (UndoneOrRedoneEntry::Undone(number), false) => ("reverted", number),
            (UndoneOrRedoneEntry::Undone(number), true) => ("would revert", number),
            (UndoneOrRedoneEntry::Redone(number), false) => ("redid", number),
            (UndoneOrRedoneEntry::Redone(number), true) => ("would redo", number),
        };
        let (changed, kept) = (self.changed.len() + self.changed_omitted, self.kept.len() + self.kept_omitted);
        let files = if changed == 1 { "file" } else { "files" };
        let skipped = if kept > 0 { format!(", {kept} skipped") } else { String::new() };
        let recorded = self.recorded.as_ref().map_or_else(String::new, |new| format!(", recorded as r{}", new.entry));
        let changed_lines = self.changed.iter().map(VisibleChange::render_line);
        let merged_lines = self.merged.iter().map(|path| format!("merged {path} with later changes"));
        let skipped_lines = self.kept.iter().map(|file| format!("skipped {}: {}", file.path, file.reason));
        let lines = changed_lines.chain(merged_lines).chain(skipped_lines);
        let lines: String = lines.map(|line| format!("\n  {}", escape_one_line(line))).collect();
        escape_lines(format!("{verb} r{number} ({changed} {files}{skipped}){recorded}{lines}"))
    }
}
