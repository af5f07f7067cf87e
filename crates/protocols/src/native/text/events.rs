//! Renders the outcomes of `changes`, `events` and `watched` as text.

use stead_engine::{
    Completeness, NextStep, SuggestedCall,
    ops::{
        ChangeEventRow, ChangesArgs, ChangesOutcome, EventRowJournalEntryFields, JournalCursor, PollSessionEventsArgs,
        PollWatchEventsArgs, SessionEventRow, SessionEventsOutcome, WatchArgs, WatchEventRow, WatchEventsOutcome,
        render_line_ranges,
    },
};
use stead_text::visible::escape_deceptive_line;

use super::{RenderableOutcome, escape_lines};
use crate::native::CallStyle;

impl RenderableOutcome for ChangesOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let lines: String = self.events.iter().map(ChangeEventRow::render_line).collect();
        let lines = if lines.is_empty() { "no changes\n" } else { &lines };
        let end = render_page_end(&self.completeness, self.cursor, style, |cursor| {
            ChangesArgs { since: cursor.into(), wait_ms: None }.into()
        });
        escape_lines(format!("{lines}{end}"))
    }
}

impl RenderableOutcome for SessionEventsOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let lines: String = self.events.iter().map(render_session_event).collect();
        let lines = if lines.is_empty() { "no events\n" } else { &lines };
        let end = render_page_end(&self.completeness, self.cursor, style, |cursor| {
            PollSessionEventsArgs { since: Some(cursor.into()), wait_ms: None }.into()
        });
        escape_lines(format!("{lines}{end}"))
    }
}

impl RenderableOutcome for WatchEventsOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let lines: String = self.events.iter().map(render_watch_event).collect();
        let lines = match (self.events.is_empty(), self.watches) {
            (false, _) => lines,
            (true, 0) => {
                let step = NextStep::call(WatchArgs::default(), "start one");
                format!("you have no watches; {}\n", style.render_step(&step).unwrap_or_default())
            }
            (true, _) => "no events\n".to_owned(),
        };
        let end = render_page_end(&self.completeness, self.cursor, style, |cursor| {
            PollWatchEventsArgs { cursor: Some(cursor.into()), ..PollWatchEventsArgs::default() }.into()
        });
        escape_lines(format!("{lines}{end}"))
    }
}

fn render_page_end<A>(
    completeness: &Completeness<A>,
    cursor: JournalCursor,
    style: CallStyle,
    call_since: impl FnOnce(JournalCursor) -> SuggestedCall,
) -> String {
    match completeness {
        Completeness::Truncated { .. } => format!("… more: {}", style.render_call(call_since(cursor))),
        Completeness::Complete => match style.render_command(call_since(cursor)) {
            Some(command) => format!("[later events: {command}]"),
            None => format!("[cursor {cursor}]"),
        },
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
