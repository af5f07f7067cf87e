//! Renders the outcomes of `changes`, `events` and `watched` as text.

use serde_json::{Map, Value};
use stead_engine::{
    Completeness,
    ops::{
        ChangeEventRow, ChangesOutcome, EventRowJournalEntryFields, JournalCursor, SessionEventRow,
        SessionEventsOutcome, WatchEventRow, WatchEventsOutcome, render_line_ranges,
    },
};
use stead_text::visible::escape_deceptive_line;

use super::{RenderableOutcome, escape_lines};
use crate::native::CallNotation;

impl RenderableOutcome for ChangesOutcome {
    fn native_text(&self, notation: CallNotation) -> String {
        let lines: String = self.events.iter().map(ChangeEventRow::render_line).collect();
        let lines = if lines.is_empty() { "no changes\n" } else { &lines };
        let end = render_page_end(&self.completeness, self.cursor, notation, ("changes", "since"));
        escape_lines(format!("{lines}{end}"))
    }
}

impl RenderableOutcome for SessionEventsOutcome {
    fn native_text(&self, notation: CallNotation) -> String {
        let lines: String = self.events.iter().map(render_session_event).collect();
        let lines = if lines.is_empty() { "no events\n" } else { &lines };
        let end = render_page_end(&self.completeness, self.cursor, notation, ("events", "since"));
        escape_lines(format!("{lines}{end}"))
    }
}

impl RenderableOutcome for WatchEventsOutcome {
    fn native_text(&self, notation: CallNotation) -> String {
        let lines: String = self.events.iter().map(render_watch_event).collect();
        let lines = match (self.events.is_empty(), self.watches, notation) {
            (false, _, _) => &lines,
            (true, 0, CallNotation::ToolCall) => "you have no watches; call watch to start one\n",
            (true, 0, CallNotation::Command(_)) => "you have no watches; to watch a path, run: stead watch PATH\n",
            (true, _, _) => "no events\n",
        };
        let end = render_page_end(&self.completeness, self.cursor, notation, ("watched", "cursor"));
        escape_lines(format!("{lines}{end}"))
    }
}

fn render_page_end<A>(
    completeness: &Completeness<A>,
    cursor: JournalCursor,
    notation: CallNotation,
    (operation, argument): (&str, &str),
) -> String {
    let arguments = Map::from_iter([(argument.to_owned(), Value::from(cursor.to_string()))]);
    match (completeness, notation) {
        (Completeness::Truncated { .. }, _) => format!("… more: {}", notation.render_call(operation, &arguments)),
        (Completeness::Complete, CallNotation::ToolCall) => format!("[cursor {cursor}]"),
        (Completeness::Complete, CallNotation::Command(render)) => {
            format!("[later events: {}]", render(operation, &arguments))
        }
    }
}

fn render_session_event(event: &SessionEventRow) -> String {
    let (what, EventRowJournalEntryFields { entry, principal, .. }) = match event {
        SessionEventRow::FileChanged(event) => return render_watch_event(event),
        SessionEventRow::AlertAnswered(event) => ("alert answered", &event.entry),
        SessionEventRow::ApprovalResolved(event) => ("approval resolved", &event.entry),
    };
    format!("r{entry} {what} by {principal}\n")
}

fn render_watch_event(event: &WatchEventRow) -> String {
    let WatchEventRow { entry, actor, event: kind, path, .. } = event;
    let mut line = format!("r{entry} {actor} {} {}", kind.as_str(), escape_deceptive_line(&path.to_wire()));
    if let Some(new_path) = &event.new_path {
        line.push_str(&format!(" -> {}", escape_deceptive_line(&new_path.to_wire())));
    }
    if let Some(lines) = event.lines.as_deref().filter(|lines| !lines.is_empty()) {
        line.push_str(&render_line_ranges(lines));
    }
    line + "\n"
}
