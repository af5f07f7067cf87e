//! `watched`: events of the caller's watches since a cursor. Read from the journal like `changes`, so that no event
//! is lost between calls. Paths that the caller may not read are left out.

pub(crate) mod events;
pub(crate) mod follower;

use events::{WatchEvent, WatchMatcher};
use serde::Deserialize;
use serde_json::Value;

use super::{
    changed_lines::ChangedLineFinder,
    journal_cursor::{JournalCursor, JournalCursorArgument},
    journal_feed::{self, FeedPage},
    outcome_builder::{OutcomeBuilder, shorten_for_error},
};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    watches::Watch,
    workspace::StoredJournalEntry,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WatchedArgs {
    cursor: Option<JournalCursorArgument>,
    wait_ms: Option<u64>,
    watch: Option<String>,
    #[serde(default)]
    own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnChangeFilter {
    Include,
    Exclude,
}

impl Operation for WatchedArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        Ok(Vec::new())
    }

    fn plan(&self, context: &CallContext<'_>, _targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let watches = self.selected_watches(context)?;
        let start = match &self.cursor {
            Some(cursor) => JournalCursor::resolve(context.workspace(), cursor)?,
            // Start at the earliest watch.
            None => match watches.iter().map(|watch| watch.started_at_entry).min() {
                Some(number) => JournalCursor::resolve(context.workspace(), &JournalCursorArgument::Number(number))?,
                None => JournalCursor::at_end(context.workspace())?,
            },
        };
        let watchers: Vec<WatchMatcher<'_>> = watches.iter().map(WatchMatcher::new).collect();
        let own = if self.own { OwnChangeFilter::Include } else { OwnChangeFilter::Exclude };
        let page = journal_feed::wait_for_page(context, self.wait_ms, start, &mut |position| {
            collect_events(context, &watchers, own, position)
        })?;
        Ok(PlannedEffect::Read { outcome: watched_outcome(page, watches.len()), bytes: 0 })
    }
}

impl WatchedArgs {
    fn selected_watches(&self, context: &CallContext<'_>) -> Result<Vec<Watch>, Error> {
        let mut watches = context.workspace().watches(&context.caller.principal)?;
        if let Some(wanted) = &self.watch {
            watches.retain(|watch| watch.id == *wanted);
            if watches.is_empty() {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("you have no watch '{}'", shorten_for_error(wanted)),
                )
                .with_next_step("call watch to begin one"));
            }
        }
        Ok(watches)
    }
}

fn watched_outcome(page: FeedPage<WatchEvent>, watches: usize) -> crate::CallOutcome {
    let (cursor, end) = (page.position.to_string(), page.render_end("watched", "cursor"));
    let mut text: String = page.events.iter().map(WatchEvent::render_line).collect();
    match (page.events.is_empty(), watches) {
        (true, 0) => text.push_str("no watches; call watch first\n"),
        (true, _) => text.push_str("no events\n"),
        (false, _) => {}
    }
    let events: Vec<Value> = page.events.into_iter().map(|event| Value::Object(event.into_json())).collect();
    OutcomeBuilder::new()
        .with_field("events", events)
        .with_field("cursor", cursor)
        .with_field("watches", watches)
        .with_field("truncated", page.has_more)
        .build(text + &end)
}

/// The events of these watches after a position, up to one page.
pub(crate) fn collect_events(
    context: &CallContext<'_>,
    watchers: &[WatchMatcher<'_>],
    own: OwnChangeFilter,
    start: JournalCursor,
) -> Result<FeedPage<WatchEvent>, Error> {
    let mut ranges = ChangedLineFinder::new(context.workspace());
    journal_feed::scan_entries(
        context,
        start,
        &|after| journal_feed::changed_entries(context, after),
        &mut |stored, page| add_watch_events(context, watchers, own, stored, page, &mut ranges, &|event| event),
    )
}

/// Adds the events of one entry, as many as fit.
pub(super) fn add_watch_events<E>(
    context: &CallContext<'_>,
    watchers: &[WatchMatcher<'_>],
    own: OwnChangeFilter,
    stored: &StoredJournalEntry,
    page: &mut FeedPage<E>,
    ranges: &mut ChangedLineFinder<'_>,
    form: &dyn Fn(WatchEvent) -> E,
) -> Result<(), Error> {
    let entry = &stored.entry;
    let mine = entry.caller.principal == context.caller.principal.to_string()
        && entry.caller.session == context.caller.session;
    if !(mine && own == OwnChangeFilter::Exclude) {
        let skipped = page.position.delivered_within(entry.number);
        for (index, change) in entry.changes.iter().enumerate().skip(skipped) {
            if page.events.len() >= limits::CHANGES_PAGE_EVENTS {
                page.set_end(JournalCursor::within_entry(stored, index));
                return Ok(());
            }
            let mut events: Vec<WatchEvent> = Vec::new();
            for watcher in watchers {
                watcher.collect_events(context, stored, change, &mut events)?;
            }
            if !events.is_empty() {
                let lines = ranges.changed_ranges(change)?;
                events.iter_mut().for_each(|event| event.lines.clone_from(&lines));
            }
            page.events.extend(events.into_iter().map(form));
        }
    }
    page.position = JournalCursor::after_entry(stored);
    Ok(())
}
