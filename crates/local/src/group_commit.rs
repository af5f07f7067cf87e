//! Group commit: concurrent requests share one transaction and one sync. The first thread that gets the writing
//! connection runs all queued requests; the other threads only pick up their results. A single request does not wait
//! for other requests.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use rusqlite::{Connection, Transaction};
use stead_engine::{CommitError, Error, ErrorKind, FailedExpectation, NextStep};
use stead_journal::Digest;

use crate::{
    checkpoint,
    limits::DEFERRED_ENTRIES_MAX,
    open::LocalWorkspace,
    options::Durability,
    store::{self, ChainTip, SqliteStore, TransactionSyncPolicy, UnnumberedJournalEntry, lock_ignoring_poison},
};

const BATCH_MAX: usize = 512;
/// The journal is signed after this many entries, and also at regular times by the maintenance thread.
const ENTRIES_PER_CHECKPOINT: u64 = 512;

/// The journal entries of calls that changed nothing are written with the next transaction. If the store cannot be
/// written for a long time, the oldest entries are dropped, and one entry records their number.
#[derive(Default)]
struct DeferredJournalEntries {
    entries: VecDeque<UnnumberedJournalEntry>,
    /// Numbers of dropped journal entries, each with the journal entry that records the number.
    dropped: Vec<(u64, UnnumberedJournalEntry)>,
}

impl DeferredJournalEntries {
    /// The closure `lost` builds the journal entry that records the number of dropped entries. Returns the number of
    /// journal entries deferred since the last write to the store, including the dropped entries.
    fn push_bounded(
        &mut self,
        draft: UnnumberedJournalEntry,
        most: usize,
        lost: impl FnOnce(u64) -> UnnumberedJournalEntry,
    ) -> u64 {
        // After a failed write has put its entries back, `over` can be more than one.
        let over = (self.entries.len() + 1).saturating_sub(most).min(self.entries.len());
        if over > 0 {
            self.entries.drain(..over);
            let count = self.dropped_count() + over as u64;
            self.dropped = vec![(count, lost(count))];
        }
        self.entries.push_back(draft);
        self.entries.len() as u64 + self.dropped_count()
    }

    fn dropped_count(&self) -> u64 {
        self.dropped.iter().map(|(count, _)| count).sum()
    }

    fn entries_mut(&mut self) -> impl Iterator<Item = &mut UnnumberedJournalEntry> {
        self.dropped.iter_mut().map(|(_, draft)| draft).chain(&mut self.entries)
    }

    /// Journal entries that could not be written go back in front of newer deferred entries.
    fn restore_unwritten(&mut self, mut unwritten: Self) {
        unwritten.entries.append(&mut self.entries);
        unwritten.dropped.append(&mut self.dropped);
        *self = unwritten;
    }
}

/// The body of a transaction makes all its checks before its first write, so that a refused request has nothing to roll
/// back.
pub(crate) type TransactionBodyFn =
    Box<dyn FnOnce(&Transaction<'_>, &mut ChainTip) -> Result<JournalAppendOutcome, TransactionError> + Send>;

/// A refusal ends only its own request; an error of the database ends all requests of the transaction.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransactionError {
    #[error(transparent)]
    Refused(#[from] Error),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

#[derive(Debug, Clone)]
pub(crate) enum JournalAppendOutcome {
    /// A journal entry was appended, whose number and hash are given.
    Recorded(u64, Digest),
    /// An existing journal entry has the same idempotency key, so no entry was appended.
    Replayed(u64),
    /// Nothing was written, because a row changed since the transaction was decided.
    ExpectationFailed(FailedExpectation),
    Refused(Error),
}

impl JournalAppendOutcome {
    pub(crate) fn into_recorded(self) -> Result<(u64, Digest), Error> {
        match self {
            Self::Recorded(number, hash) => Ok((number, hash)),
            Self::Refused(error) => Err(error),
            Self::Replayed(_) | Self::ExpectationFailed(_) => Err(not_recorded_error()),
        }
    }

    /// The number and hash of the entry, or the reason why nothing was recorded.
    pub(crate) fn into_commit_result(self) -> Result<(u64, Digest), CommitError> {
        match self {
            Self::Recorded(number, hash) => Ok((number, hash)),
            Self::Replayed(number) => Err(CommitError::KeyAlreadyUsed(number)),
            Self::ExpectationFailed(failed) => Err(CommitError::ExpectationFailed(failed)),
            Self::Refused(error) => Err(CommitError::Failed(error)),
        }
    }
}

fn not_recorded_error() -> Error {
    Error::new(ErrorKind::AuditUnavailable, "the call could not be recorded in the journal; nothing was changed")
        .with_next_step(NextStep::repeat())
}

struct QueuedTransaction {
    sync: TransactionSyncPolicy,
    body: TransactionBodyFn,
    result: Arc<Mutex<Option<Result<JournalAppendOutcome, Error>>>>,
}

#[derive(Default)]
pub(crate) struct GroupCommitQueue {
    queue: Mutex<Vec<QueuedTransaction>>,
    deferred: Mutex<DeferredJournalEntries>,
    /// The thread that holds the leader lock runs all queued requests. A thread that waited for the leader lock usually
    /// finds that another thread has run its request.
    leader_lock: Mutex<()>,
}

impl GroupCommitQueue {
    fn submit(
        &self,
        store: &SqliteStore,
        durability: Durability,
        sync: TransactionSyncPolicy,
        body: TransactionBodyFn,
    ) -> Result<JournalAppendOutcome, Error> {
        let result = Arc::new(Mutex::new(None));
        lock_ignoring_poison(&self.queue).push(QueuedTransaction { sync, body, result: Arc::clone(&result) });
        loop {
            let turn = lock_ignoring_poison(&self.leader_lock);
            if let Some(outcome) = lock_ignoring_poison(&result).take() {
                return outcome;
            }
            // Each request of the batch gets the error as its own result.
            self.commit_batch(store, durability, self.next_batch()).unwrap_or_default();
            drop(turn);
        }
    }

    pub(crate) fn defer_entry(
        &self,
        draft: UnnumberedJournalEntry,
        lost: impl FnOnce(u64) -> UnnumberedJournalEntry,
    ) -> u64 {
        lock_ignoring_poison(&self.deferred).push_bounded(draft, DEFERRED_ENTRIES_MAX, lost)
    }

    pub(crate) fn deferred_count(&self) -> usize {
        lock_ignoring_poison(&self.deferred).entries.len()
    }

    pub(crate) fn flush(&self, store: &SqliteStore, durability: Durability) -> Result<(), Error> {
        let _turn = lock_ignoring_poison(&self.leader_lock);
        if self.deferred_count() == 0 { Ok(()) } else { self.commit_batch(store, durability, Vec::new()) }
    }

    fn next_batch(&self) -> Vec<QueuedTransaction> {
        let mut queue = lock_ignoring_poison(&self.queue);
        let end = queue.len().min(BATCH_MAX);
        queue.drain(..end).collect()
    }

    /// The requests of the batch and the deferred entries are written in one transaction. If the transaction fails, the
    /// deferred entries are written later; no caller waits for them.
    fn commit_batch(
        &self,
        store: &SqliteStore,
        durability: Durability,
        batch: Vec<QueuedTransaction>,
    ) -> Result<(), Error> {
        let sync = batch.iter().map(|request| request.sync).max().unwrap_or(TransactionSyncPolicy::Later);
        let mut deferred = std::mem::take(&mut *lock_ignoring_poison(&self.deferred));
        let (bodies, results): (Vec<TransactionBodyFn>, Vec<_>) =
            batch.into_iter().map(|request| (request.body, request.result)).unzip();
        let outcomes = store
            .run_transaction(sync, durability, |transaction| append_batch(transaction, store, &mut deferred, bodies));
        match outcomes {
            Ok(outcomes) => {
                for (result, outcome) in results.iter().zip(outcomes) {
                    *lock_ignoring_poison(result) = Some(Ok(outcome));
                }
                Ok(())
            }
            Err(error) => {
                lock_ignoring_poison(&self.deferred).restore_unwritten(deferred);
                for result in &results {
                    *lock_ignoring_poison(result) = Some(Err(error.clone()));
                }
                Err(error)
            }
        }
    }
}

impl LocalWorkspace {
    pub(crate) fn submit(
        &self,
        sync: TransactionSyncPolicy,
        body: TransactionBodyFn,
    ) -> Result<JournalAppendOutcome, Error> {
        self.group_commit.submit(&self.store, self.durability, sync, body)
    }

    /// Rows that are written without a journal entry are synced to disk with the next change.
    pub(crate) fn write_rows<T>(&self, write: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        self.store.run_transaction(TransactionSyncPolicy::Later, self.durability, |transaction| write(transaction))
    }

    pub(crate) fn append_with_rows(
        &self,
        mut draft: UnnumberedJournalEntry,
        sync: TransactionSyncPolicy,
        write: impl FnOnce(&Transaction<'_>, u64) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<(), Error> {
        let body: TransactionBodyFn = Box::new(move |transaction, tip| {
            store::append_entry(transaction, tip, &mut draft)?;
            write(transaction, tip.number)?;
            Ok(JournalAppendOutcome::Recorded(tip.number, tip.hash))
        });
        self.submit(sync, body).map(drop)
    }
}

fn append_batch(
    transaction: &Transaction<'_>,
    store: &SqliteStore,
    deferred: &mut DeferredJournalEntries,
    bodies: Vec<TransactionBodyFn>,
) -> rusqlite::Result<Vec<JournalAppendOutcome>> {
    let mut tip = store::load_tip(transaction, &store.origin)?;
    let start = tip.number;
    for draft in deferred.entries_mut() {
        store::append_entry(transaction, &mut tip, draft)?;
    }
    let run_body = |body: TransactionBodyFn| match body(transaction, &mut tip) {
        Ok(outcome) => Ok(outcome),
        Err(TransactionError::Refused(error)) => Ok(JournalAppendOutcome::Refused(error)),
        Err(TransactionError::Database(error)) => Err(error),
    };
    let outcomes = bodies.into_iter().map(run_body).collect::<rusqlite::Result<_>>()?;
    store::store_tip(transaction, &tip)?;
    if tip.number / ENTRIES_PER_CHECKPOINT != start / ENTRIES_PER_CHECKPOINT {
        checkpoint::insert_signed_checkpoint(transaction, &store.origin, tip.time_ms)?;
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use stead_journal::JournalEntry;

    use super::*;

    fn test_entry(operation: &str) -> UnnumberedJournalEntry {
        let entry = JournalEntry { operation: operation.to_owned(), ..JournalEntry::default() };
        UnnumberedJournalEntry { entry, requested_paths: Vec::new() }
    }

    fn deferred_operations(deferred: &mut DeferredJournalEntries) -> Vec<String> {
        deferred.entries_mut().map(|draft| draft.entry.operation.clone()).collect()
    }

    #[test]
    fn dropped_entries_are_counted_in_an_entry() {
        let mut deferred = DeferredJournalEntries::default();
        let add = |deferred: &mut DeferredJournalEntries, name: &str| {
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
        let unwritten = std::mem::take(&mut deferred);
        for name in ["g", "h", "i"] {
            add(&mut deferred, name);
        }
        deferred.restore_unwritten(unwritten);
        assert_eq!(deferred_operations(&mut deferred), ["lost 4", "lost 1", "e", "f", "h", "i"]);
        assert_eq!(add(&mut deferred, "j"), 10);
        assert_eq!(deferred_operations(&mut deferred), ["lost 8", "i", "j"]);
    }
}
