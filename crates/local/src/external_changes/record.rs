//! Writes changes by other programs to the journal. The transaction checks each change against newer journal entries,
//! so that no change is recorded twice or in the wrong order.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use rusqlite::params;
use stead_engine::{Error, ErrorKind, Principal};
use stead_journal::{ChangeKind, PathState, RecordedChange};
use stead_path::RelPath;

use super::{
    classify::UnrecordedExternalChange,
    event_batch::UnclassifiedFsEvent,
    recorded_state::{self, RESCAN_OPERATION},
};
use crate::{
    group_commit::{JournalAppendOutcome, TransactionBodyFn},
    limits::{EXTERNAL_CHANGES_PER_ENTRY_MAX, RETAINED_BYTES_PER_ENTRY_MAX},
    open::LocalWorkspace,
    store::{self, TransactionSyncPolicy, UnnumberedJournalEntry, lock_ignoring_poison, to_sql_integer},
};

/// How many pending journal entries are read to find the first one that is not applied to the files.
const PENDING_ENTRIES_CHECKED_MAX: usize = 1_000;
const EXTERNAL_OPERATION: &str = "outside";
const WATCH_PROTOCOL: &str = "watch";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissedFsEventsReason {
    Overflow,
    /// No process recorded changes for some time, because the recorder restarted or another process took over.
    ListeningGap,
    WatchLimit,
    PermissionDenied,
}

impl MissedFsEventsReason {
    fn as_str(self) -> &'static str {
        match self {
            MissedFsEventsReason::Overflow => "overflow",
            MissedFsEventsReason::ListeningGap => "gap",
            MissedFsEventsReason::WatchLimit => "limit",
            MissedFsEventsReason::PermissionDenied => "denied",
        }
    }
}

impl LocalWorkspace {
    /// Returns the events that must be classified again, because a call changed their paths after the classification.
    /// If a move is returned, all events after the move are returned with it.
    pub(crate) fn record_external_changes(
        &self,
        changes: Vec<UnrecordedExternalChange>,
        head: u64,
    ) -> Result<Vec<UnclassifiedFsEvent>, Error> {
        let returned = Arc::new(Mutex::new(RequeuedEvents { last_entry: head, ..RequeuedEvents::default() }));
        let mut changes = changes.into_iter().peekable();
        while changes.peek().is_some() {
            let some: Vec<UnrecordedExternalChange> = changes.by_ref().take(EXTERNAL_CHANGES_PER_ENTRY_MAX).collect();
            if lock_ignoring_poison(&returned).is_stopped {
                lock_ignoring_poison(&returned).items.extend(some.into_iter().map(|change| change.event));
                continue;
            }
            let draft = self.pending_external_entry(EXTERNAL_OPERATION, "{}".to_owned());
            let outcome = self.submit(TransactionSyncPolicy::Now, record_body(draft, some, Arc::clone(&returned)))?;
            if let JournalAppendOutcome::Recorded(..) = outcome {
                self.announce_entry();
            }
        }
        Ok(std::mem::take(&mut lock_ignoring_poison(&returned).items))
    }

    pub(crate) fn last_entry_number(&self) -> Result<u64, Error> {
        Ok(self.store.run_query(|connection| store::load_tip(connection, &self.store.origin))?.number)
    }

    /// All journal entries up to the returned number are applied to the files.
    pub(crate) fn last_settled_number(&self) -> Result<u64, Error> {
        let (head, pending) = self.store.run_query(|connection| {
            let head = store::load_tip(connection, &self.store.origin)?.number;
            Ok((head, recorded_state::first_pending_entries(connection, PENDING_ENTRIES_CHECKED_MAX)?))
        })?;
        // The entries in `applied_entries` are applied by this process; they only wait for the sync.
        let applied: HashSet<u64> = lock_ignoring_poison(&self.applied_entries).iter().copied().collect();
        let beyond = pending.last().copied().filter(|_| pending.len() == PENDING_ENTRIES_CHECKED_MAX);
        let open = pending.into_iter().find(|number| !applied.contains(number)).or(beyond);
        Ok(open.map_or(head, |number| head.min(number.saturating_sub(1))))
    }

    /// A rescan entry states that everything at and below the paths may have changed.
    pub(crate) fn record_rescan(&self, paths: &[RelPath], missed: MissedFsEventsReason) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut draft =
            self.pending_external_entry(RESCAN_OPERATION, format!("{{\"reason\":\"{}\"}}", missed.as_str()));
        for item_path in paths {
            let unknown = PathState::Unknown { size: None };
            let (path, kind) = (item_path.to_string(), ChangeKind::Rescan);
            draft.entry.changes.push(RecordedChange { path, kind, to: None, before: unknown.clone(), after: unknown });
        }
        self.append_with_rows(draft, TransactionSyncPolicy::Now, |_, _| Ok(()))?;
        self.announce_entry();
        Ok(())
    }

    fn pending_external_entry(&self, operation: &str, arguments: String) -> UnnumberedJournalEntry {
        let mut draft = self.pending_system_entry(operation, arguments);
        draft.entry.caller.principal = Principal::External.to_string();
        WATCH_PROTOCOL.clone_into(&mut draft.entry.caller.protocol);
        draft
    }
}

#[derive(Default)]
struct RequeuedEvents {
    items: Vec<UnclassifiedFsEvent>,
    /// After a move is requeued, all later events are requeued too, to keep their order.
    is_stopped: bool,
    /// The numbers of the journal entries that record the batch, which are not changes by calls.
    own_entries: Vec<u64>,
    /// The number of the last journal entry when the batch was classified.
    last_entry: u64,
}

fn moves_recent_changes(since: Option<&HashSet<RelPath>>, item: &UnclassifiedFsEvent) -> bool {
    match (item, since) {
        (UnclassifiedFsEvent::Touched { .. }, _) => false,
        (UnclassifiedFsEvent::Moved(_), None) => true,
        (UnclassifiedFsEvent::Moved(moved), Some(paths)) => paths.iter().any(|path| path.is_within(&moved.from)),
    }
}

fn record_body(
    mut draft: UnnumberedJournalEntry,
    changes: Vec<UnrecordedExternalChange>,
    returned: Arc<Mutex<RequeuedEvents>>,
) -> TransactionBodyFn {
    Box::new(move |transaction, tip| {
        let mut returned = lock_ignoring_poison(&returned);
        let last = returned.own_entries.last().copied().unwrap_or(returned.last_entry);
        let since =
            if tip.number > last { recorded_state::changed_since(transaction, last)? } else { Some(HashSet::new()) };
        if returned.own_entries.last().is_some_and(|own| *own != tip.number) {
            // Another process has appended an entry after the last entry of this batch, perhaps about the same paths.
            returned.own_entries.clear();
        }
        let mut kept_bytes = 0;
        let mut retained = Vec::new();
        let mut looked_up = HashMap::new();
        for external in changes {
            let mut fits = !returned.is_stopped && !moves_recent_changes(since.as_ref(), &external.event);
            for (path, number, above) in &external.compared_entries {
                let last = recorded_state::last_change_of(transaction, &path.to_string())?;
                let last_above = recorded_state::last_parent_change(transaction, path, &mut looked_up)?;
                fits &= last == *number || returned.own_entries.contains(&last);
                fits &= last_above == *above || returned.own_entries.contains(&last_above);
            }
            if !fits {
                returned.is_stopped |= matches!(external.event, UnclassifiedFsEvent::Moved(_));
                returned.items.push(external.event);
                continue;
            }
            if let Some((version, bytes)) = external.retained
                && kept_bytes + bytes.len() <= RETAINED_BYTES_PER_ENTRY_MAX
            {
                kept_bytes += bytes.len();
                retained.push((version, bytes));
            }
            draft.entry.changes.push(external.change);
        }
        if draft.entry.changes.is_empty() {
            let message = "all changes are already in the journal";
            return Ok(JournalAppendOutcome::Refused(Error::new(ErrorKind::NothingToDo, message)));
        }
        store::append_entry(transaction, tip, &mut draft)?;
        returned.own_entries.push(draft.entry.number);
        for (version, bytes) in retained {
            // Versions that other programs wrote are marked like versions of agents, which are dropped first.
            transaction.prepare_cached("INSERT OR IGNORE INTO kept VALUES (?1, ?2, ?3, ?4, 1)")?.execute(params![
                version.0.as_bytes().as_slice(),
                to_sql_integer(bytes.len() as u64),
                bytes,
                to_sql_integer(draft.entry.number)
            ])?;
        }
        Ok(JournalAppendOutcome::Recorded(tip.number, tip.hash))
    })
}
