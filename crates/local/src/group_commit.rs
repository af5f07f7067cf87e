//! Group commit. The first thread that gets the writing connection commits all queued requests in one transaction and
//! one sync; the other threads find their result. A lone caller pays only for its own transaction.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use rusqlite::Transaction;
use stead_engine::Error;

use crate::{
    checkpoint, errors,
    options::Durability,
    store::{self, ChainTip, PendingJournalEntry, SqliteStore, SyncRequirement, lock_ignoring_poison},
};

const BATCH_MAX: usize = 512;

/// Limit of entries that wait while the store cannot be written.
const DEFERRED_ENTRIES_MAX: usize = 65_536;

/// Entries of calls without changes. If the store cannot be written for long, the oldest are dropped, and their number
/// becomes an entry.
#[derive(Default)]
struct DeferredEntries {
    entries: VecDeque<PendingJournalEntry>,
    /// Number of dropped entries, and the entry that reports it.
    dropped: Option<(u64, PendingJournalEntry)>,
}

impl DeferredEntries {
    /// Adds an entry. Returns how many were added since the last write.
    fn push_bounded(
        &mut self,
        draft: PendingJournalEntry,
        most: usize,
        lost: impl FnOnce(u64) -> PendingJournalEntry,
    ) -> u64 {
        // More than one if unwritten entries were restored meanwhile.
        let over = (self.entries.len() + 1).saturating_sub(most).min(self.entries.len());
        if over > 0 {
            self.entries.drain(..over);
            let count = self.dropped.as_ref().map_or(0, |(count, _)| *count) + over as u64;
            self.dropped = Some((count, lost(count)));
        }
        self.entries.push_back(draft);
        self.entries.len() as u64 + self.dropped.as_ref().map_or(0, |(count, _)| *count)
    }

    /// All entries in writing order.
    fn entries_mut(&mut self) -> impl Iterator<Item = &mut PendingJournalEntry> {
        self.dropped.iter_mut().map(|(_, draft)| draft).chain(&mut self.entries)
    }

    /// Puts unwritten entries back, before those added since.
    fn restore_unwritten(&mut self, mut unwritten: Self) {
        unwritten.entries.append(&mut self.entries);
        self.entries = unwritten.entries;
        self.dropped = unwritten.dropped.or(self.dropped.take());
    }
}

/// The journal is signed after this many entries; the maintenance thread also signs by time.
const ENTRIES_PER_CHECKPOINT: u64 = 512;

/// The part of a request that runs inside the transaction. It checks before it writes, so a refusal needs no rollback.
pub(crate) type TransactionBody =
    Box<dyn FnOnce(&Transaction<'_>, &mut ChainTip) -> rusqlite::Result<TransactionOutcome> + Send>;

/// Outcome of one request.
#[derive(Debug, Clone)]
pub(crate) enum TransactionOutcome {
    Recorded(u64, stead_journal::Digest),
    /// The idempotency key belongs to this entry; nothing was written.
    Replayed(u64),
    Refused(Error),
}

struct QueuedTransaction {
    sync: SyncRequirement,
    body: TransactionBody,
    result: Arc<Mutex<Option<Result<TransactionOutcome, Error>>>>,
}

/// The queue in front of the writing connection.
#[derive(Default)]
pub(crate) struct GroupCommit {
    queue: Mutex<Vec<QueuedTransaction>>,
    /// Written together with the next transaction.
    deferred: Mutex<DeferredEntries>,
    /// One leader at a time; the others wait here and usually find their result.
    leader_lock: Mutex<()>,
}

impl GroupCommit {
    /// Runs one request, together with everything queued.
    pub(crate) fn submit(
        &self,
        store: &SqliteStore,
        durability: Durability,
        sync: SyncRequirement,
        work: TransactionBody,
    ) -> Result<TransactionOutcome, Error> {
        let result = Arc::new(Mutex::new(None));
        lock_ignoring_poison(&self.queue).push(QueuedTransaction { sync, body: work, result: Arc::clone(&result) });
        loop {
            let turn = lock_ignoring_poison(&self.leader_lock);
            if let Some(outcome) = lock_ignoring_poison(&result).take() {
                return outcome;
            }
            self.commit_batch(store, durability);
            drop(turn);
        }
    }

    /// Defers an entry to the next transaction; `lost` builds the entry that reports dropped ones. Returns how many were
    /// added since the last write.
    pub(crate) fn defer_entry(&self, draft: PendingJournalEntry, lost: impl FnOnce(u64) -> PendingJournalEntry) -> u64 {
        lock_ignoring_poison(&self.deferred).push_bounded(draft, DEFERRED_ENTRIES_MAX, lost)
    }

    pub(crate) fn deferred_count(&self) -> usize {
        lock_ignoring_poison(&self.deferred).entries.len()
    }

    pub(crate) fn flush(&self, store: &SqliteStore, durability: Durability) -> Result<(), Error> {
        let _turn = lock_ignoring_poison(&self.leader_lock);
        let mut deferred = std::mem::take(&mut *lock_ignoring_poison(&self.deferred));
        if deferred.entries.is_empty() {
            return Ok(());
        }
        let written = store.run_transaction(SyncRequirement::Later, durability, |transaction| {
            append_batch(transaction, store, &mut deferred, Vec::new()).map_err(|error| errors::store_error(&error))
        });
        if written.is_err() {
            // Kept for a later attempt; a caller's outcome does not depend on them.
            lock_ignoring_poison(&self.deferred).restore_unwritten(deferred);
        }
        written.map(|_| ())
    }

    fn commit_batch(&self, store: &SqliteStore, durability: Durability) {
        let batch: Vec<QueuedTransaction> = {
            let mut queue = lock_ignoring_poison(&self.queue);
            let end = queue.len().min(BATCH_MAX);
            queue.drain(..end).collect()
        };
        let sync = batch.iter().map(|request| request.sync).max().unwrap_or(SyncRequirement::Later);
        let mut deferred = std::mem::take(&mut *lock_ignoring_poison(&self.deferred));
        let (works, results): (Vec<TransactionBody>, Vec<_>) =
            batch.into_iter().map(|request| (request.body, request.result)).unzip();
        let outcomes = store.run_transaction(sync, durability, |transaction| {
            append_batch(transaction, store, &mut deferred, works).map_err(|error| errors::store_error(&error))
        });
        match outcomes {
            Ok(outcomes) => {
                for (result, outcome) in results.iter().zip(outcomes) {
                    *lock_ignoring_poison(result) = Some(Ok(outcome));
                }
            }
            Err(failure) => {
                lock_ignoring_poison(&self.deferred).restore_unwritten(deferred);
                for result in &results {
                    *lock_ignoring_poison(result) = Some(Err(failure.clone()));
                }
            }
        }
    }
}

/// Appends deferred entries, then requests, to the chain.
fn append_batch(
    transaction: &Transaction<'_>,
    store: &SqliteStore,
    deferred: &mut DeferredEntries,
    works: Vec<TransactionBody>,
) -> rusqlite::Result<Vec<TransactionOutcome>> {
    let mut tip = store::load_tip(transaction, &store.origin)?;
    let start = tip.number;
    for note in deferred.entries_mut() {
        store::append_entry(transaction, &mut tip, note)?;
    }
    let outcomes = works.into_iter().map(|work| work(transaction, &mut tip)).collect::<rusqlite::Result<_>>()?;
    store::store_tip(transaction, &tip)?;
    if tip.number / ENTRIES_PER_CHECKPOINT != start / ENTRIES_PER_CHECKPOINT {
        checkpoint::insert_signed_checkpoint(transaction, &store.origin, tip.time_ms)?;
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use stead_journal::{EntryCaller, EntryDecision, EntryRelation, JournalEntry};

    use super::*;

    fn test_entry(operation: &str) -> PendingJournalEntry {
        let caller = EntryCaller {
            principal: "agent:a".to_owned(),
            on_behalf_of: None,
            session: "s".to_owned(),
            protocol: "test".to_owned(),
        };
        let entry = JournalEntry {
            number: 0,
            time_ms: 0,
            caller,
            request_id: None,
            operation: operation.to_owned(),
            tool: None,
            arguments: "{}".to_owned(),
            decision: EntryDecision::Allowed,
            reason: None,
            policy_version: 1,
            tier: None,
            approval: None,
            changes: Vec::new(),
            relation: EntryRelation::None,
            bytes: 0,
            duration_us: 0,
        };
        PendingJournalEntry { entry, touched: Vec::new() }
    }

    fn deferred_operations(deferred: &mut DeferredEntries) -> Vec<String> {
        deferred.entries_mut().map(|draft| draft.entry.operation.clone()).collect()
    }

    #[test]
    fn dropped_entries_are_counted_in_an_entry() {
        let mut deferred = DeferredEntries::default();
        let add = |deferred: &mut DeferredEntries, name: &str| {
            deferred.push_bounded(test_entry(name), 2, |count| test_entry(&format!("lost {count}")))
        };
        let counts: Vec<u64> = ["a", "b", "c", "d"].iter().map(|name| add(&mut deferred, name)).collect();
        assert_eq!(counts, [1, 2, 3, 4]);
        assert_eq!(deferred_operations(&mut deferred), ["lost 2", "c", "d"]);
        let unwritten = std::mem::take(&mut deferred);
        add(&mut deferred, "e");
        deferred.restore_unwritten(unwritten);
        assert_eq!(deferred_operations(&mut deferred), ["lost 2", "c", "d", "e"]);
        add(&mut deferred, "f");
        assert_eq!(deferred_operations(&mut deferred), ["lost 4", "e", "f"]);
    }
}
