//! `history` returns the journal entries with changes by page, newest first. `history` omits changes to paths that the
//! caller may not read, and omits an entry with only such changes without notice.

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_journal::JournalEntryRelation;
use stead_path::RelPath;

use super::{
    outcome_builder::{OutcomeBuilder, format_iso_utc},
    visible_change::{JournalEntryArgument, VisibleChange, history_lost_error},
};
use crate::{
    call_context::CallContext,
    engine::CallOutcome,
    errors::Error,
    limits,
    operation::{
        Operation, OperationPlanningResult, PlanResult, RequestedPath, RequestedPathIndex, RequestedPaths,
        ResolvedTargets,
    },
    workspace::{JournalEntryOrder, JournalEntryQuery, JournalNoChangeEntryFilter, StoredJournalEntry},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryArgs {
    path: Option<String>,
    since: Option<JournalEntryArgument>,
    cursor: Option<JournalEntryArgument>,
}

const HISTORY_BATCH_ENTRIES: usize = 200;

impl Operation for HistoryArgs {
    type Resolved = Option<RequestedPathIndex>;
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        Ok(self.path.as_deref().map(|path| paths.add(RequestedPath::read(path))))
    }

    fn plan(
        &self,
        context: &CallContext<'_>,
        path: Option<RequestedPathIndex>,
        targets: &ResolvedTargets,
    ) -> PlanResult<Self> {
        let path = path.map(|slot| &targets[slot].path);
        let since = self.since.as_ref().map(JournalEntryArgument::entry_number).transpose()?;
        let cursor = self.cursor.as_ref().map(JournalEntryArgument::entry_number).transpose()?;
        let head = context.workspace().head()?.number;
        if let Some(number) = since.filter(|number| *number > head) {
            return Err(history_lost_error(number, head));
        }
        let page = collect_page(context, path, since, cursor)?;
        let next = page.next.map(|number| {
            OutcomeBuilder::new()
                .with_some("path", path.map(RelPath::to_string))
                .with_some("since", since.map(|number| format!("r{number}")))
                .with_field("cursor", format!("r{number}"))
                .into_json()
        });
        let mut text = page.text;
        match (&next, page.entries.is_empty()) {
            (Some(next), _) => {
                text.push_str(&format!("… more: {}", context.options.call_notation.render_call("history", next)));
            }
            (None, true) => text.push_str("no changes"),
            (None, false) => text.truncate(text.trim_end().len()),
        }
        let outcome = OutcomeBuilder::new()
            .with_some("path", path.map(RelPath::to_string))
            .with_field("entries", page.entries)
            .with_field("truncated", next.is_some())
            .with_some("next", next)
            .build(text);
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

#[derive(Default)]
struct HistoryPage {
    entries: Vec<Map<String, Value>>,
    text: String,
    /// The oldest journal entry that a page of `history` examined; `None` on the last page.
    next: Option<u64>,
}

fn collect_page(
    context: &CallContext<'_>,
    path: Option<&RelPath>,
    since: Option<u64>,
    cursor: Option<u64>,
) -> Result<HistoryPage, Error> {
    let mut page = HistoryPage { next: cursor, ..HistoryPage::default() };
    let (mut scanned, mut chars) = (0, 0);
    while scanned < limits::ENTRIES_SCANNED_MAX {
        context.control.check()?;
        let filter = JournalEntryQuery {
            path: path.cloned(),
            after: since,
            before: page.next,
            selection: JournalNoChangeEntryFilter::WithChanges,
            order: JournalEntryOrder::NewestFirst,
            limit: HISTORY_BATCH_ENTRIES,
            ..JournalEntryQuery::default()
        };
        let batch = context.workspace().entries(&filter)?;
        scanned += batch.len();
        let last_batch = batch.len() < HISTORY_BATCH_ENTRIES;
        for stored in &batch {
            let Some(RenderedHistoryItem { json, text }) = history_item(context, stored, path)? else {
                page.next = Some(stored.entry.number);
                continue;
            };
            chars += text.chars().count();
            let full = page.entries.len() == limits::HISTORY_PAGE_ENTRIES || chars > limits::OUTCOME_PAGE_CHARS;
            if full && !page.entries.is_empty() {
                return Ok(page);
            }
            page.entries.push(json);
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

struct RenderedHistoryItem {
    json: Map<String, Value>,
    text: String,
}

fn history_item(
    context: &CallContext<'_>,
    stored: &StoredJournalEntry,
    path: Option<&RelPath>,
) -> Result<Option<RenderedHistoryItem>, Error> {
    let entry = &stored.entry;
    let visible: Vec<VisibleChange> =
        entry.changes.iter().filter_map(|change| VisibleChange::visible_to(context, change)).collect();
    if visible.is_empty() {
        return Ok(None);
    }
    let total = visible.len();
    // Changes at the requested path come first, so that the limit on the number of changes never hides them.
    let (mut first, rest): (Vec<VisibleChange>, Vec<VisibleChange>) =
        visible.into_iter().partition(|change| path.is_none_or(|path| change.is_within(path)));
    first.extend(rest);
    first.truncate(limits::HISTORY_CHANGES_MAX);
    let omitted = total - first.len();
    let undone = context.workspace().undone_by(entry.number)?;
    let time = format_iso_utc(entry.time_ms);
    let mut text = format!("r{} {time} {} {}", entry.number, entry.caller.principal, entry.operation);
    if let Some(by) = undone {
        text.push_str(&format!(" (undone by r{by})"));
    }
    text.push('\n');
    for change in &first {
        text.push_str(&format!("  {}\n", change.render_line()));
    }
    if omitted > 0 {
        let before = format!("r{}", entry.number.saturating_sub(1));
        let arguments = OutcomeBuilder::new().with_field("since", before).into_json();
        let call = context.options.call_notation.render_call("changes", &arguments);
        text.push_str(&format!("  … and {omitted} more: {call}\n"));
    }
    let changes: Vec<_> = first.into_iter().map(VisibleChange::into_json).collect();
    let object = OutcomeBuilder::new()
        .with_field("entry", entry.number)
        .with_field("time", time)
        .with_field("principal", entry.caller.principal.clone())
        .with_field("operation", entry.operation.clone())
        .with_field("changes", changes)
        .with_some("changes_omitted", (omitted > 0).then_some(omitted))
        .with_field("undone", undone.is_some());
    Ok(Some(RenderedHistoryItem { json: with_relation(object, &entry.relation).into_json(), text }))
}

fn with_relation(fields: OutcomeBuilder, relation: &JournalEntryRelation) -> OutcomeBuilder {
    match relation {
        JournalEntryRelation::None => fields,
        JournalEntryRelation::Undoes(number) => fields.with_field("undoes", *number),
        JournalEntryRelation::Redoes(number) => fields.with_field("redoes", *number),
        JournalEntryRelation::Restores(trash) => fields.with_field("restores", trash.clone()),
        JournalEntryRelation::Amends(number) => fields.with_field("amends", *number),
    }
}
