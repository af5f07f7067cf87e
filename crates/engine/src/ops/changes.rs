//! `changes`: the journal read forward from a cursor. Never silent about a gap: a cursor that does not fit this
//! journal is answered with `history_lost`, and a page that is full says so.

pub(super) mod cursor;
pub(super) mod ranges;

use std::time::{Duration, Instant};

use cursor::{Position, Since};
use ranges::Ranges;
use serde::Deserialize;
use serde_json::Value;

use super::{
    answer::{Facts, iso_utc},
    recorded::Shown,
};
use crate::{
    failure::Failure,
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::{EntryFilter, Order, Stored, Which},
};

/// The arguments of `changes`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changes {
    since: Since,
    wait_ms: Option<u64>,
}

/// Entries asked for at a time.
const BATCH: usize = 200;
/// How long a wait goes on before cancellation is looked at again.
pub(super) const WAIT_SLICE: Duration = Duration::from_millis(250);
/// How long before the call's deadline a wait ends, so that there is time to answer.
pub(super) const ANSWER_TIME: Duration = Duration::from_millis(250);

impl Operation for Changes {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let wait_ms = self.wait_ms.unwrap_or(0).min(limits::CHANGES_WAIT_MS_MAX);
        let started = Instant::now();
        let left = view.control.deadline().saturating_duration_since(started).saturating_sub(ANSWER_TIME);
        let until = started + Duration::from_millis(wait_ms).min(left);
        let mut position = Position::start(view.workspace(), &self.since)?;
        loop {
            // Taken before looking, so that an entry made meanwhile ends the wait below.
            let head = view.workspace().head()?.number;
            let page = gather(view, position)?;
            let now = Instant::now();
            if !page.events.is_empty() || page.full || now >= until {
                return Ok(Planned::Read { answer: page.answer(), bytes: 0 });
            }
            position = page.position;
            view.control.check()?;
            view.workspace().wait_after(head, until.min(now + WAIT_SLICE))?;
        }
    }
}

/// Events in order, and where the next page starts.
struct Page {
    events: Vec<Value>,
    text: String,
    chars: usize,
    position: Position,
    /// Whether more may follow at once.
    full: bool,
}

impl Page {
    fn answer(self) -> crate::Answer {
        let cursor = self.position.to_string();
        let mut text = self.text;
        if self.events.is_empty() {
            text.push_str("no changes\n");
        }
        if self.full {
            text.push_str(&format!("… more: call changes with since \"{cursor}\""));
        } else {
            text.push_str(&format!("[cursor {cursor}]"));
        }
        Facts::new()
            .with("events", self.events)
            .with("cursor", cursor)
            .with("truncated", self.full)
            .answer(text)
    }
}

fn gather(view: &View<'_>, start: Position) -> Result<Page, Failure> {
    let mut page = Page { events: Vec::new(), text: String::new(), chars: 0, position: start, full: false };
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
            add(view, stored, &mut page, &mut ranges)?;
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

/// Adds the changes of one entry, as many as fit.
fn add(view: &View<'_>, stored: &Stored, page: &mut Page, ranges: &mut Ranges<'_>) -> Result<(), Failure> {
    let entry = &stored.entry;
    let skipped = page.position.delivered_of(entry.number);
    for (index, change) in entry.changes.iter().enumerate().skip(skipped) {
        let Some(shown) = Shown::seen_by(view, change) else { continue };
        let lines = ranges.of(change)?;
        let mut line =
            format!("r{} {} {}: {}", entry.number, entry.caller.principal, entry.operation, shown.line());
        if let Some(lines) = &lines {
            let spans: Vec<String> = lines.iter().map(|[from, to]| format!("{from}-{to}")).collect();
            line.push_str(&format!(" lines {}", spans.join(",")));
        }
        line.push('\n');
        page.chars += line.chars().count();
        let crowded = page.events.len() == limits::CHANGES_PAGE || page.chars > limits::PAGE_CHARS;
        if crowded && !page.events.is_empty() {
            page.position = Position::inside(stored, index);
            page.full = true;
            return Ok(());
        }
        page.text.push_str(&line);
        let rev = shown.left.map(|_| format!("r{}", entry.number));
        let event = Facts::new()
            .with("entry", entry.number)
            .with("time", iso_utc(entry.time_ms))
            .with("principal", entry.caller.principal.clone())
            .with("operation", entry.operation.clone())
            .extended(shown.object())
            .maybe("rev", rev)
            .maybe(
                "lines",
                lines.map(|lines| lines.into_iter().map(|span| span.to_vec()).collect::<Vec<_>>()),
            );
        page.events.push(Value::Object(event.object()));
    }
    page.position = Position::past(stored);
    Ok(())
}
