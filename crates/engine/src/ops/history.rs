//! `history`: what changed, newest first, by page. Shows only what the caller may read: entries about other places
//! are left out as if they were not there.

use path::RelPath;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    answer::{Facts, iso_utc},
    recorded::{EntryName, Shown, history_lost},
};
use crate::{
    failure::Failure,
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::{EntryFilter, Order, Stored, Which},
};

/// The arguments of `history`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    path: Option<String>,
    since: Option<EntryName>,
    cursor: Option<EntryName>,
}

/// Entries asked for at a time.
const BATCH: usize = 200;

impl Operation for History {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(self.path.iter().map(|path| Ask::read(path)).collect())
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let path = targets.first().map(|target| &target.path);
        let since = self.since.as_ref().map(EntryName::number).transpose()?;
        let cursor = self.cursor.as_ref().map(EntryName::number).transpose()?;
        let head = view.workspace().head()?.number;
        if let Some(known) = since.filter(|known| *known > head) {
            return Err(history_lost(known, head));
        }
        let page = gather(view, path, since, cursor)?;
        let next = page.next.map(|number| {
            Facts::new()
                .maybe("path", path.map(RelPath::to_string))
                .maybe("since", since.map(|number| format!("r{number}")))
                .with("cursor", format!("r{number}"))
                .object()
        });
        let mut text = page.text;
        match (page.next, page.entries.is_empty()) {
            (Some(number), _) => text.push_str(&format!("… more: call history with cursor \"r{number}\"")),
            (None, true) => text.push_str("no changes"),
            (None, false) => text.truncate(text.trim_end().len()),
        }
        let answer = Facts::new()
            .maybe("path", path.map(RelPath::to_string))
            .with("entries", page.entries)
            .with("truncated", next.is_some())
            .maybe("next", next)
            .answer(text);
        Ok(Planned::Read { answer, bytes: 0 })
    }
}

/// One page of entries.
#[derive(Default)]
struct Page {
    entries: Vec<Value>,
    text: String,
    /// The last entry looked at, when there may be more before it.
    next: Option<u64>,
}

fn gather(
    view: &View<'_>,
    path: Option<&RelPath>,
    since: Option<u64>,
    cursor: Option<u64>,
) -> Result<Page, Failure> {
    let mut page = Page { next: cursor, ..Page::default() };
    let (mut scanned, mut chars) = (0, 0);
    while scanned < limits::ENTRIES_SCANNED_MAX {
        view.control.check()?;
        let filter = EntryFilter {
            path: path.cloned(),
            after: since,
            before: page.next,
            what: Which::Changes,
            order: Order::NewestFirst,
            limit: BATCH,
            ..EntryFilter::default()
        };
        let batch = view.workspace().entries(&filter)?;
        scanned += batch.len();
        let last_batch = batch.len() < BATCH;
        for stored in &batch {
            let Some(Item { object, text }) = shown(view, stored, path)? else {
                page.next = Some(stored.entry.number);
                continue;
            };
            chars += text.chars().count();
            let full = page.entries.len() == limits::HISTORY_PAGE || chars > limits::PAGE_CHARS;
            if full && !page.entries.is_empty() {
                return Ok(page);
            }
            page.entries.push(Value::Object(object));
            page.text.push_str(&text);
            page.next = Some(stored.entry.number);
        }
        if last_batch {
            page.next = None;
            return Ok(page);
        }
    }
    Ok(page)
}

/// One entry, for machines and for models.
struct Item {
    object: Map<String, Value>,
    text: String,
}

/// One entry as this caller may see it; nothing when none of its changes is about a place it may read.
fn shown(view: &View<'_>, stored: &Stored, path: Option<&RelPath>) -> Result<Option<Item>, Failure> {
    let entry = &stored.entry;
    let seen: Vec<Shown> = entry.changes.iter().filter_map(|change| Shown::seen_by(view, change)).collect();
    if seen.is_empty() {
        return Ok(None);
    }
    let total = seen.len();
    // What the caller asked about comes first, so that the limit never hides it behind its neighbours.
    let (mut first, rest): (Vec<Shown>, Vec<Shown>) =
        seen.into_iter().partition(|shown| path.is_none_or(|path| shown.is_within(path)));
    first.extend(rest);
    first.truncate(limits::HISTORY_CHANGES_MAX);
    let omitted = total - first.len();
    let undone = view.workspace().undone(entry.number)?;
    let time = iso_utc(entry.time_ms);
    let mut text = format!("r{} {time} {} {}", entry.number, entry.caller.principal, entry.operation);
    if let Some(by) = undone {
        text.push_str(&format!(" (undone by r{by})"));
    }
    text.push('\n');
    for change in &first {
        text.push_str(&format!("  {}\n", change.line()));
    }
    if omitted > 0 {
        let before = entry.number.saturating_sub(1);
        text.push_str(&format!("  … and {omitted} more: call changes with since \"r{before}\"\n"));
    }
    let changes: Vec<Value> = first.into_iter().map(|change| Value::Object(change.object())).collect();
    let object = Facts::new()
        .with("entry", entry.number)
        .with("time", time)
        .with("principal", entry.caller.principal.clone())
        .with("operation", entry.operation.clone())
        .with("changes", changes)
        .maybe("changes_omitted", (omitted > 0).then_some(omitted))
        .with("undone", undone.is_some());
    Ok(Some(Item { object: with_link(object, &entry.link).object(), text }))
}

/// Adds which earlier entry or thing this one answers.
fn with_link(facts: Facts, link: &journal::Link) -> Facts {
    match link {
        journal::Link::None => facts,
        journal::Link::Undoes(number) => facts.with("undoes", *number),
        journal::Link::Redoes(number) => facts.with("redoes", *number),
        journal::Link::Restores(trash) => facts.with("restores", trash.clone()),
        journal::Link::Amends(number) => facts.with("amends", *number),
    }
}
