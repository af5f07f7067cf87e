//! Renders the outcomes of `stat`, `list` and `find` as text.

use stead_engine::{
    FileKind, limits,
    ops::{FindOutcome, ListOutcome, StatOutcome, file_kind_name},
};
use stead_text::visible::escape_deceptive_line;

use super::{RenderableOutcome, escape_lines};
use crate::native::CallStyle;

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
