//! `watched`: what happened at the places the caller watches, from a cursor, whoever did it. Read from the journal like
//! `changes`, so nothing is lost between two calls, and nothing is told of places the caller may not read.

pub(crate) mod follow;
pub(crate) mod story;

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use story::{Told, Watcher};

use super::{
    answer::{Facts, excerpt},
    changes::{
        ANSWER_TIME, WAIT_SLICE,
        cursor::{Position, Since},
        ranges::Ranges,
    },
};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    watching::Watch,
    workspace::{EntryFilter, Order, Stored, Which},
};

/// The arguments of `watched`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watched {
    cursor: Option<Since>,
    wait_ms: Option<u64>,
    watch: Option<String>,
    #[serde(default)]
    own: bool,
}

/// Entries asked for at a time.
const BATCH: usize = 200;

/// Whether the listener hears of its own changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Told,
    Left,
}

impl Operation for Watched {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let watches = self.watches(view)?;
        let wait_ms = self.wait_ms.unwrap_or(0).min(limits::CHANGES_WAIT_MS_MAX);
        let started = Instant::now();
        let left = view.control.deadline().saturating_duration_since(started).saturating_sub(ANSWER_TIME);
        let until = started + Duration::from_millis(wait_ms).min(left);
        let mut position = match &self.cursor {
            Some(cursor) => Position::start(view.workspace(), cursor)?,
            // From the first thing that any of them could tell.
            None => match watches.iter().map(|watch| watch.started).min() {
                Some(number) => Position::start(view.workspace(), &Since::Number(number))?,
                None => Position::now(view.workspace())?,
            },
        };
        let watchers: Vec<Watcher<'_>> = watches.iter().map(Watcher::new).collect();
        let own = if self.own { Own::Told } else { Own::Left };
        loop {
            // Taken before looking, so that an entry made meanwhile ends the wait below.
            let head = view.workspace().head()?.number;
            let page = gather(view, &watchers, own, position)?;
            let now = Instant::now();
            if !page.events.is_empty() || page.full || now >= until {
                return Ok(Planned::Read { answer: page.answer(watches.len()), bytes: 0 });
            }
            position = page.position;
            view.control.check()?;
            view.workspace().wait_after(head, until.min(now + WAIT_SLICE))?;
        }
    }
}

impl Watched {
    fn watches(&self, view: &View<'_>) -> Result<Vec<Watch>, Failure> {
        let mut watches = view.workspace().watches(&view.caller.principal)?;
        if let Some(wanted) = &self.watch {
            watches.retain(|watch| watch.id == *wanted);
            if watches.is_empty() {
                return Err(Failure::new(Kind::NotFound, format!("you have no watch '{}'", excerpt(wanted)))
                    .hint("call watch to begin one"));
            }
        }
        Ok(watches)
    }
}

/// Events in order, and where the next page starts.
pub(crate) struct Page {
    pub(crate) events: Vec<Told>,
    pub(crate) position: Position,
    /// Whether more may follow at once.
    pub(crate) full: bool,
}

impl Page {
    fn answer(self, watches: usize) -> crate::Answer {
        let cursor = self.position.to_string();
        let mut text: String = self.events.iter().map(Told::line).collect();
        match (self.events.is_empty(), watches) {
            (true, 0) => text.push_str("you watch nothing; call watch first\n"),
            (true, _) => text.push_str("no events\n"),
            (false, _) => {}
        }
        if self.full {
            text.push_str(&format!("… more: call watched with cursor \"{cursor}\""));
        } else {
            text.push_str(&format!("[cursor {cursor}]"));
        }
        let events: Vec<Value> = self.events.into_iter().map(|told| Value::Object(told.object())).collect();
        Facts::new()
            .with("events", events)
            .with("cursor", cursor)
            .with("watches", watches)
            .with("truncated", self.full)
            .answer(text)
    }
}

/// What these watchers hear after a position, as much as one page holds.
pub(crate) fn gather(
    view: &View<'_>,
    watchers: &[Watcher<'_>],
    own: Own,
    start: Position,
) -> Result<Page, Failure> {
    let mut page = Page { events: Vec::new(), position: start, full: false };
    let mut ranges = Ranges::new(view.workspace());
    let mut scanned = 0;
    while scanned < limits::ENTRIES_SCANNED_MAX {
        view.control.check()?;
        let filter = EntryFilter {
            after: Some(page.position.after()),
            what: Which::Changes,
            order: Order::OldestFirst,
            limit: BATCH,
            ..EntryFilter::default()
        };
        let batch = view.workspace().entries(&filter)?;
        scanned += batch.len();
        for stored in &batch {
            add(view, watchers, own, stored, &mut page, &mut ranges)?;
            if page.full {
                return Ok(page);
            }
        }
        if batch.len() < BATCH {
            return Ok(page);
        }
    }
    page.full = true;
    Ok(page)
}

/// Adds what one entry tells, as much as fits.
fn add(
    view: &View<'_>,
    watchers: &[Watcher<'_>],
    own: Own,
    stored: &Stored,
    page: &mut Page,
    ranges: &mut Ranges<'_>,
) -> Result<(), Failure> {
    let entry = &stored.entry;
    let mine = entry.caller.principal == view.caller.principal.to_string()
        && entry.caller.session == view.caller.session;
    if !(mine && own == Own::Left) {
        let skipped = page.position.delivered_of(entry.number);
        for (index, change) in entry.changes.iter().enumerate().skip(skipped) {
            if page.events.len() >= limits::CHANGES_PAGE {
                page.position = Position::inside(stored, index);
                page.full = true;
                return Ok(());
            }
            let mut told: Vec<Told> = Vec::new();
            for watcher in watchers {
                watcher.hear(view, stored, change, &mut told)?;
            }
            if !told.is_empty() {
                let lines = ranges.of(change)?;
                told.iter_mut().for_each(|told| told.lines.clone_from(&lines));
            }
            page.events.append(&mut told);
        }
    }
    page.position = Position::past(stored);
    Ok(())
}
