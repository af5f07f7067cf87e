//! `history` returns the journal entries with changes by page, newest first. `history` omits changes of paths that the
//! caller may not read. An entry without visible changes is omitted without notice.

use serde::{Deserialize, Serialize};
use stead_journal::JournalEntryRelation;
use stead_path::RelPath;

use super::visible_change::{JournalEntryArgument, VisibleChange, history_lost_error};
use crate::{
    call_context::CallContext,
    errors::Error,
    limits,
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    outcome::{Completeness, OperationOutcome, UtcTime, is_default},
    workspace::{JournalEntryOrder, JournalEntryQuery, StoredJournalEntry},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<JournalEntryArgument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<JournalEntryArgument>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryOutcome {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<RelPath>,
    pub entries: Vec<HistoryEntryRow>,
    #[serde(flatten)]
    pub completeness: Completeness<HistoryArgs>,
}

impl OperationOutcome for HistoryOutcome {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryEntryRow {
    pub entry: u64,
    pub time: UtcTime,
    pub principal: String,
    pub operation: String,
    pub changes: Vec<VisibleChange>,
    #[serde(skip_serializing_if = "is_default")]
    pub changes_omitted: usize,
    pub undone: bool,
    #[serde(skip)]
    pub undone_by: Option<u64>,
    #[serde(flatten)]
    pub relation: EntryRelationFields,
}

/// The earlier journal entry or trash item to which a journal entry refers; at most one field is set.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct EntryRelationFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redoes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restores: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amends: Option<u64>,
}

impl From<&JournalEntryRelation> for EntryRelationFields {
    fn from(relation: &JournalEntryRelation) -> Self {
        let none = Self::default();
        match relation {
            JournalEntryRelation::None => none,
            JournalEntryRelation::Undoes(number) => Self { undoes: Some(*number), ..none },
            JournalEntryRelation::Redoes(number) => Self { redoes: Some(*number), ..none },
            JournalEntryRelation::Restores(trash) => Self { restores: Some(trash.clone()), ..none },
            JournalEntryRelation::Amends(number) => Self { amends: Some(*number), ..none },
        }
    }
}

const HISTORY_BATCH_ENTRIES: usize = 200;
/// The maximum length of the line in the `history` text that gives the number of omitted changes.
const OMITTED_CHANGES_LINE_CHARS: usize = 64;

impl Operation for HistoryArgs {
    type Paths = Option<PathAccessRequest>;
    type Outcome = HistoryOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        Ok(self.path.as_deref().map(PathAccessRequest::read))
    }

    fn plan(&self, context: &CallContext<'_>, target: Option<&ResolvedTarget>) -> PlanResult<Self> {
        let since = self.since.as_ref().map(JournalEntryArgument::entry_number).transpose()?;
        let cursor = self.cursor.as_ref().map(JournalEntryArgument::entry_number).transpose()?;
        let head = context.workspace().head()?.number;
        if let Some(number) = since.filter(|number| *number > head) {
            return Err(history_lost_error(number, head));
        }
        let query = JournalEntryQuery {
            path: target.map(|target| target.path.clone()),
            after: since,
            before: cursor,
            ..JournalEntryQuery::changes(JournalEntryOrder::NewestFirst, HISTORY_BATCH_ENTRIES)
        };
        Ok(OperationPlanningResult::Read { outcome: collect_page(context, query)?, bytes: 0 })
    }
}

fn collect_page(context: &CallContext<'_>, mut query: JournalEntryQuery) -> Result<HistoryOutcome, Error> {
    let (mut entries, mut scanned, mut chars): (Vec<HistoryEntryRow>, _, _) = (Vec::new(), 0, 0);
    let mut reached_limit = Some("ENTRIES_SCANNED_MAX");
    'scan: while scanned < limits::ENTRIES_SCANNED_MAX {
        context.control.check()?;
        let batch = context.workspace().entries(&query)?;
        scanned += batch.len();
        for stored in &batch {
            if let Some(row) = history_entry(context, stored, query.path.as_ref())? {
                chars += row.text_chars();
                let full = if entries.len() == limits::HISTORY_PAGE_ENTRIES {
                    Some("HISTORY_PAGE_ENTRIES")
                } else {
                    (chars > limits::OUTCOME_PAGE_CHARS && !entries.is_empty()).then_some("OUTCOME_PAGE_CHARS")
                };
                if full.is_some() {
                    reached_limit = full;
                    break 'scan;
                }
                entries.push(row);
            }
            query.before = Some(stored.entry.number);
        }
        if batch.len() < HISTORY_BATCH_ENTRIES {
            reached_limit = None;
            break;
        }
    }
    let completeness = reached_limit.map_or(Completeness::Complete, |limit| {
        let next = HistoryArgs {
            path: query.path.as_ref().map(RelPath::to_string),
            since: query.after.map(JournalEntryArgument::from_number),
            cursor: query.before.map(JournalEntryArgument::from_number),
        };
        Completeness::continued_by(next, limit)
    });
    Ok(HistoryOutcome { path: query.path, entries, completeness })
}

fn history_entry(
    context: &CallContext<'_>,
    stored: &StoredJournalEntry,
    path: Option<&RelPath>,
) -> Result<Option<HistoryEntryRow>, Error> {
    let entry = &stored.entry;
    let visible = entry.changes.iter().filter_map(|change| VisibleChange::visible_to(context, change));
    // Changes at the requested path come first, so that the limit on the number of changes never hides them.
    let (mut changes, rest): (Vec<VisibleChange>, Vec<VisibleChange>) =
        visible.partition(|change| path.is_none_or(|path| change.is_within(path)));
    changes.extend(rest);
    if changes.is_empty() {
        return Ok(None);
    }
    let changes_omitted = changes.len().saturating_sub(limits::HISTORY_CHANGES_MAX);
    changes.truncate(limits::HISTORY_CHANGES_MAX);
    let undone_by = context.workspace().undone_by(entry.number)?;
    Ok(Some(HistoryEntryRow {
        entry: entry.number,
        time: UtcTime { unix_ms: entry.time_ms },
        principal: entry.caller.principal.clone(),
        operation: entry.operation.clone(),
        changes,
        changes_omitted,
        undone: undone_by.is_some(),
        undone_by,
        relation: (&entry.relation).into(),
    }))
}

impl HistoryEntryRow {
    pub fn render_heading(&self) -> String {
        let Self { entry, time, principal, operation, undone_by, .. } = self;
        let undone = undone_by.map_or_else(String::new, |by| format!(" (undone by r{by})"));
        format!("r{entry} {time} {principal} {operation}{undone}")
    }

    fn text_chars(&self) -> usize {
        let changes = self.changes.iter().map(|change| change.render_line().chars().count() + "  \n".len());
        let omitted = if self.changes_omitted > 0 { OMITTED_CHANGES_LINE_CHARS } else { 0 };
        self.render_heading().chars().count() + "\n".len() + changes.sum::<usize>() + omitted
    }
}
