//! Rebuilds the outcome of an earlier call from the journal, for a call that repeats the idempotency key.

use serde::Serialize;
use stead_journal::ChangeKind;

use super::visible_change::{VisibleChange, recorded_file};
use crate::{
    limits,
    outcome::{FileVersionFields, RecordedEntryFields, is_default},
    version::Version,
    workspace::StoredJournalEntry,
};

#[derive(Debug, Serialize, JsonSchema)]
pub struct ReplayedCallOutcome {
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
    /// Always true, so that a program can recognize an outcome that was rebuilt from the journal.
    pub replayed: bool,
    pub operation: String,
    #[serde(flatten)]
    pub version: Option<FileVersionFields>,
    pub changes: Vec<VisibleChange>,
    #[serde(skip_serializing_if = "is_default")]
    pub changes_omitted: usize,
}

impl From<&StoredJournalEntry> for ReplayedCallOutcome {
    fn from(stored: &StoredJournalEntry) -> Self {
        let entry = &stored.entry;
        let changes: Vec<VisibleChange> =
            entry.changes.iter().take(limits::HISTORY_CHANGES_MAX).filter_map(VisibleChange::unfiltered).collect();
        Self {
            recorded: RecordedEntryFields { entry: entry.number, hash: stored.hash, notices: Vec::new() },
            replayed: true,
            operation: entry.operation.clone(),
            version: resulting_version(stored)
                .map(|version| FileVersionFields::new(version, format!("r{}", entry.number))),
            changes_omitted: entry.changes.len() - changes.len(),
            changes,
        }
    }
}

fn resulting_version(stored: &StoredJournalEntry) -> Option<Version> {
    let changes = stored.entry.changes.iter().filter(|change| change.kind != ChangeKind::Remove);
    let mut files = changes.filter_map(|change| recorded_file(&change.after));
    let first = files.next()?;
    files.next().is_none().then_some(first.version)
}
