//! `events`: what happened around a session since a cursor: what others changed, and what people answered to it. The
//! session's own changes are not told back to it. Never silent about a gap, as `changes` is not.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    answer::{Facts, iso_utc},
    changes::cursor::{Position, Since},
    recorded::Shown,
};
use crate::{
    desk::TallyOf,
    failure::Failure,
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::{EntryFilter, Order, Stored, Which},
};

/// The arguments of `events`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Events {
    since: Option<Since>,
    wait_ms: Option<u64>,
}

/// Entries asked for at a time.
const BATCH: usize = 200;
/// How long a wait goes on before cancellation is looked at again.
const WAIT_SLICE: Duration = Duration::from_millis(250);
/// How long before the call's deadline a wait ends, so that there is time to answer.
const ANSWER_TIME: Duration = Duration::from_millis(250);
/// Operations by which people answer.
const ANSWERING: &[&str] = &["respond", "approve", "deny"];

impl Operation for Events {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let wait_ms = self.wait_ms.unwrap_or(0).min(limits::CHANGES_WAIT_MS_MAX);
        let started = Instant::now();
        let left = view.control.deadline().saturating_duration_since(started).saturating_sub(ANSWER_TIME);
        let until = started + Duration::from_millis(wait_ms).min(left);
        let mut position = match &self.since {
            Some(since) => Position::start(view.workspace(), since)?,
            None => beginning(view)?,
        };
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

/// Where a session without a cursor starts: at its own first entry.
fn beginning(view: &View<'_>) -> Result<Position, Failure> {
    let (workspace, caller) = (view.workspace(), view.caller);
    if let Some(session) = workspace.session(&caller.session)? {
        return Position::before(workspace, session.first);
    }
    let of = TallyOf {
        principal: &caller.principal,
        session: &caller.session,
        from_entry: 0,
        since_ms: caller.since_ms,
    };
    match workspace.tally(&of)?.first {
        Some((number, _)) => Position::before(workspace, number),
        None => Position::now(workspace),
    }
}

/// Events in order, and where the next page starts.
struct Page {
    events: Vec<Value>,
    text: String,
    position: Position,
    /// Whether more may follow at once.
    full: bool,
}

impl Page {
    fn answer(self) -> crate::Answer {
        let cursor = self.position.to_string();
        let mut text = self.text;
        if self.events.is_empty() {
            text.push_str("nothing happened\n");
        }
        text.push_str(&format!("[cursor {cursor}]"));
        Facts::new()
            .with("events", self.events)
            .with("cursor", cursor)
            .with("truncated", self.full)
            .answer(text)
    }
}

fn gather(view: &View<'_>, start: Position) -> Result<Page, Failure> {
    let mut page = Page { events: Vec::new(), text: String::new(), position: start, full: false };
    let mut scanned = 0;
    while scanned < limits::ENTRIES_SCANNED_MAX {
        view.control.check()?;
        let (batch, whole) = batch(view, page.position.after())?;
        scanned += batch.len();
        for stored in &batch {
            add(view, stored, &mut page)?;
            if page.full {
                return Ok(page);
            }
        }
        if whole {
            return Ok(page);
        }
    }
    page.full = true;
    Ok(page)
}

/// The next entries that may be events, in order, and whether these are all.
fn batch(view: &View<'_>, after: u64) -> Result<(Vec<Stored>, bool), Failure> {
    let filter =
        EntryFilter { after: Some(after), order: Order::OldestFirst, limit: BATCH, ..EntryFilter::default() };
    let changes = view.workspace().entries(&EntryFilter { what: Which::Changes, ..filter.clone() })?;
    let mut all_here = changes.len() < BATCH;
    // What comes after the last change of a full batch waits for the next one.
    let mut until = if all_here { u64::MAX } else { last(&changes) };
    let mut found = changes;
    for operation in ANSWERING {
        let answers = view
            .workspace()
            .entries(&EntryFilter { operation: Some((*operation).to_owned()), ..filter.clone() })?;
        if answers.len() == BATCH {
            all_here = false;
            until = until.min(last(&answers));
        }
        found.extend(answers);
    }
    found.retain(|stored| stored.entry.number <= until);
    found.sort_by_key(|stored| stored.entry.number);
    found.dedup_by_key(|stored| stored.entry.number);
    Ok((found, all_here))
}

fn last(entries: &[Stored]) -> u64 {
    entries.last().map_or(u64::MAX, |stored| stored.entry.number)
}

/// Adds what one entry is to this session, as much as fits.
fn add(view: &View<'_>, stored: &Stored, page: &mut Page) -> Result<(), Failure> {
    let (entry, caller) = (&stored.entry, view.caller);
    let own =
        entry.caller.principal == caller.principal.to_string() && entry.caller.session == caller.session;
    if let Some((kind, answered)) = answered(view, stored)? {
        if page.events.len() == limits::CHANGES_PAGE {
            page.full = true;
            return Ok(());
        }
        let words = kind.replace('_', " ");
        page.text.push_str(&format!("r{} {words} by {}\n", entry.number, entry.caller.principal));
        page.events.push(event(stored, kind, answered));
    }
    let skipped = page.position.delivered_of(entry.number);
    for (index, change) in entry.changes.iter().enumerate().skip(skipped).filter(|_| !own) {
        let Some(shown) = Shown::seen_by(view, change) else { continue };
        if page.events.len() == limits::CHANGES_PAGE {
            page.position = Position::inside(stored, index);
            page.full = true;
            return Ok(());
        }
        let line = format!("r{} {} {}\n", entry.number, entry.caller.principal, shown.line());
        page.text.push_str(&line);
        page.events.push(event(stored, "file_changed", shown.object()));
    }
    page.position = Position::past(stored);
    Ok(())
}

fn event(stored: &Stored, kind: &str, more: Map<String, Value>) -> Value {
    let entry = &stored.entry;
    let facts = Facts::new()
        .with("type", kind)
        .with("entry", entry.number)
        .with("time", iso_utc(entry.time_ms))
        .with("principal", entry.caller.principal.clone())
        .with("operation", entry.operation.clone())
        .extended(more);
    Value::Object(facts.object())
}

/// The type of an event and what belongs to it.
type Heard = (&'static str, Map<String, Value>);

/// What a person answered to this caller, if the entry is that.
fn answered(view: &View<'_>, stored: &Stored) -> Result<Option<Heard>, Failure> {
    let entry = &stored.entry;
    if !ANSWERING.contains(&entry.operation.as_str()) || entry.decision != journal::Decision::Allowed {
        return Ok(None);
    }
    let arguments: Map<String, Value> = serde_json::from_str(&entry.arguments).unwrap_or_default();
    let named = |name: &str| arguments.get(name).and_then(Value::as_str);
    let (workspace, asked_by) = (view.workspace(), view.caller.principal.to_string());
    if let Some(id) = named("alert") {
        let alert = workspace.alert(id)?.filter(|alert| alert.from == asked_by);
        return Ok(alert.and_then(|alert| {
            let said = alert.answer?;
            let facts = Facts::new().with("alert", alert.id).with("by", said.by).with("text", said.text);
            Some(("alert_answered", facts.object()))
        }));
    }
    let Some(id) = named("id") else { return Ok(None) };
    let approval = workspace.approval(id)?.filter(|approval| approval.principal == asked_by);
    Ok(approval.map(|approval| {
        let facts = Facts::new()
            .with("approval", approval.id)
            .with("answer", if entry.operation == "approve" { "approved" } else { "rejected" })
            .with("by", entry.caller.principal.clone())
            .maybe("reason", approval.answered.and_then(|answered| answered.reason));
        ("approval_resolved", facts.object())
    }))
}
