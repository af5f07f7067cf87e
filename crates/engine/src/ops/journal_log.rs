//! `log.show` returns the newest entries of the journal.

use serde::Serialize;
use stead_journal::{Digest, JournalEntry, JournaledCallOutcomeStatus};
use stead_path::RelPath;

use super::{
    ShowLogArgs,
    audit_rows::{AuditRow, audit_rows},
};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits::{LOG_ENTRIES_DEFAULT, LOG_ENTRIES_PER_PAGE},
    operation::{OperationPlanningResult, PathlessOperation, PlanResult},
    outcome::{Completeness, OperationOutcome},
    utc_time::{UtcSecond, parse_utc_time},
    workspace::{JournalEntryOrder, JournalEntryQuery, JournalNoChangeEntryFilter, StoredJournalEntry},
};

#[derive(Debug, Serialize, JsonSchema)]
pub struct ShowLogOutcome {
    pub entries: Vec<LoggedEntryRow>,
    #[serde(flatten)]
    pub completeness: Completeness<ShowLogArgs>,
}

impl OperationOutcome for ShowLogOutcome {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct LoggedEntryRow {
    #[schemars(with = "()", extend("type" = "object"))]
    pub entry: JournalEntry,
    pub hash: Digest,
    pub audit: Vec<AuditRow>,
    #[serde(skip)]
    pub time: UtcSecond,
    /// How the call ended, unless it succeeded.
    #[serde(skip)]
    pub failure: Option<&'static str>,
}

impl From<StoredJournalEntry> for LoggedEntryRow {
    fn from(stored: StoredJournalEntry) -> Self {
        let failure = match stored.entry.decision {
            JournaledCallOutcomeStatus::Allowed => None,
            JournaledCallOutcomeStatus::Refused => Some("refused"),
            JournaledCallOutcomeStatus::Failed => Some("failed"),
        };
        let (audit, time) = (audit_rows(&stored.entry), UtcSecond { unix_ms: stored.entry.time_ms });
        Self { entry: stored.entry, hash: stored.hash, audit, time, failure }
    }
}

impl ShowLogArgs {
    fn to_query(&self, now_ms: i64) -> Result<JournalEntryQuery, Error> {
        let parse_time = |text: &String| {
            parse_utc_time(text, now_ms).ok_or_else(|| {
                Error::new(ErrorKind::BadRequest, format!("'{text}' is not a time"))
                    .with_next_step("use a form such as 2026-05-09T07:29 or 2h")
            })
        };
        let parse_path = |text: &String| {
            RelPath::from_wire(text.strip_suffix('/').unwrap_or(text)).map_err(|error| {
                Error::new(ErrorKind::BadRequest, format!("{text}: {error}"))
                    .with_next_step("pass a path relative to the workspace")
            })
        };
        Ok(JournalEntryQuery {
            path: self.path.as_ref().map(parse_path).transpose()?,
            principal: self.principal.clone(),
            operation: self.operation.clone(),
            since_ms: self.since.as_ref().map(parse_time).transpose()?,
            until_ms: self.until.as_ref().map(parse_time).transpose()?,
            before: self.before,
            selection: if self.changes {
                JournalNoChangeEntryFilter::WithChanges
            } else {
                JournalNoChangeEntryFilter::All
            },
            order: JournalEntryOrder::NewestFirst,
            ..JournalEntryQuery::default()
        })
    }
}

impl PathlessOperation for ShowLogArgs {
    type Outcome = ShowLogOutcome;

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let mut query = self.to_query(context.workspace().now_ms())?;
        // The limit 0 stands for all entries, page by page.
        let wanted = self.limit.unwrap_or(LOG_ENTRIES_DEFAULT);
        query.limit = match usize::try_from(wanted) {
            Ok(wanted @ 1..=LOG_ENTRIES_PER_PAGE) => wanted,
            Ok(_) | Err(_) => LOG_ENTRIES_PER_PAGE,
        };
        let found = context.workspace().entries(&query)?;
        let rest = wanted.saturating_sub(found.len() as u64);
        let completeness = match found.last() {
            Some(last) if found.len() == query.limit && (wanted == 0 || rest > 0) => {
                let next = Self { limit: Some(rest), before: Some(last.entry.number), ..self.clone() };
                Completeness::continued_by(next, "LOG_ENTRIES_PER_PAGE")
            }
            Some(_) | None => Completeness::Complete,
        };
        let outcome = ShowLogOutcome { entries: found.into_iter().map(Into::into).collect(), completeness };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}
