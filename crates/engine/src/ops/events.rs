//! `events`: what happened around a session since a cursor: what the caller's watches heard, and what people answered to
//! it. The session's own changes are not told back to it. Never silent about a gap, as `changes` is not.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    answer::{Facts, iso_utc},
    changes::{
        cursor::{Position, Since},
        ranges::Ranges,
    },
    feed::{self, BATCH, Batch, Page, Rest, Told},
    watched::{self, Own, story::Watcher},
};
use crate::{
    desk::TallyOf,
    failure::Failure,
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::{EntryFilter, Stored},
};

/// The arguments of `events`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Events {
    since: Option<Since>,
    wait_ms: Option<u64>,
}

/// Operations by which people answer.
const ANSWERING: &[&str] = &["respond", "approve", "deny"];

impl Operation for Events {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let start = match &self.since {
            Some(since) => Position::start(view.workspace(), since)?,
            None => beginning(view)?,
        };
        let watches = view.workspace().watches(&view.caller.principal)?;
        let watchers: Vec<Watcher<'_>> = watches.iter().map(Watcher::new).collect();
        let page = feed::wait(view, self.wait_ms, start, &mut |position| {
            let mut ranges = Ranges::new(view.workspace());
            feed::scan(view, position, &|after| batch(view, after), &mut |stored, page| {
                add(view, &watchers, stored, page, &mut ranges)
            })
        })?;
        Ok(Planned::Read { answer: page.answer("nothing happened", "events"), bytes: 0 })
    }
}

/// Where a session without a cursor starts: at its own first entry.
fn beginning(view: &View<'_>) -> Result<Position, Failure> {
    let (workspace, caller) = (view.workspace(), view.caller);
    if let Some(session) = workspace.session(&caller.session)? {
        return Position::before(workspace, session.first);
    }
    let of =
        TallyOf { principal: &caller.principal, session: &caller.session, from_entry: caller.since_entry };
    match workspace.tally(&of)?.first {
        Some((number, _)) => Position::before(workspace, number),
        None => Position::now(workspace),
    }
}

/// The next entries that may be events, in order.
fn batch(view: &View<'_>, after: u64) -> Result<Batch, Failure> {
    let (mut found, mut rest) = feed::changes(view, after)?;
    // What comes after the last entry of a full batch waits for the next one.
    let mut until = if rest == Rest::Nothing { u64::MAX } else { last(&found) };
    for operation in ANSWERING {
        let wanted = EntryFilter { operation: Some((*operation).to_owned()), ..feed::filter(after) };
        let answers = view.workspace().entries(&wanted)?;
        if answers.len() == BATCH {
            rest = Rest::Something;
            until = until.min(last(&answers));
        }
        found.extend(answers);
    }
    found.retain(|stored| stored.entry.number <= until);
    found.sort_by_key(|stored| stored.entry.number);
    found.dedup_by_key(|stored| stored.entry.number);
    Ok((found, rest))
}

fn last(entries: &[Stored]) -> u64 {
    entries.last().map_or(u64::MAX, |stored| stored.entry.number)
}

/// Adds what one entry is to this session, as much as fits.
fn add(
    view: &View<'_>,
    watchers: &[Watcher<'_>],
    stored: &Stored,
    page: &mut Page<Told>,
    ranges: &mut Ranges<'_>,
) -> Result<(), Failure> {
    let entry = &stored.entry;
    if let Some((kind, answered)) = answered(view, stored)? {
        if page.events.len() == limits::CHANGES_PAGE {
            page.full = true;
            return Ok(());
        }
        let words = kind.replace('_', " ");
        let line = format!("r{} {words} by {}\n", entry.number, entry.caller.principal);
        page.events.push((event(stored, kind, answered), line));
    }
    watched::add(view, watchers, Own::Left, stored, page, ranges, &|told| {
        let line = told.line();
        let facts = Facts::new().with("type", "file_changed").extended(told.object());
        (Value::Object(facts.object()), line)
    })
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
    let approval = workspace.approval(id)?.filter(|approval| approval.asked.principal == asked_by);
    Ok(approval.map(|approval| {
        let facts = Facts::new()
            .with("approval", approval.id)
            .with("answer", if entry.operation == "approve" { "approved" } else { "rejected" })
            .with("by", entry.caller.principal.clone())
            .maybe("reason", approval.answered.and_then(|answered| answered.reason));
        ("approval_resolved", facts.object())
    }))
}
