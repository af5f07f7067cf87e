//! Group commit. Whoever gets the writing connection first commits everything that is queued, in one transaction and
//! one sync; the others find their result waiting. A lone caller pays for nothing but its own transaction.

use std::sync::{Arc, Mutex};

use engine::Failure;
use rusqlite::Transaction;

use crate::{
    checkpoint, failure,
    options::Durability,
    store::{self, Draft, Store, Sync, Tip, hold},
};

/// Most requests in one transaction.
const BATCH_MAX: usize = 512;

/// Most entries that wait while the store cannot be written.
const NOTES_WAITING_MAX: usize = 65_536;

/// The journal is signed whenever it has grown by this many entries; the keeper signs in between, by time.
const SIGN_ENTRIES: u64 = 512;

/// What one request does inside the transaction. It checks before it writes, so that a refusal needs no roll-back.
pub(crate) type Work = Box<dyn FnOnce(&Transaction<'_>, &mut Tip) -> rusqlite::Result<Outcome> + Send>;

/// How one request ended.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// Recorded under this number and hash.
    Recorded(u64, journal::Digest),
    /// The idempotency key was used by this entry; nothing was written.
    Replayed(u64),
    /// Refused; nothing was written.
    Refused(Failure),
}

struct Request {
    sync: Sync,
    work: Work,
    result: Arc<Mutex<Option<Result<Outcome, Failure>>>>,
}

/// The queue in front of the writing connection.
#[derive(Default)]
pub(crate) struct Group {
    queue: Mutex<Vec<Request>>,
    /// Entries of calls that changed nothing; they ride along with the next transaction.
    notes: Mutex<Vec<Draft>>,
    /// One leader at a time; the others wait here and mostly find their work done.
    turn: Mutex<()>,
}

impl Group {
    /// Runs one request, together with whatever else is queued.
    pub(crate) fn submit(
        &self,
        store: &Store,
        durability: Durability,
        sync: Sync,
        work: Work,
    ) -> Result<Outcome, Failure> {
        let result = Arc::new(Mutex::new(None));
        hold(&self.queue).push(Request { sync, work, result: Arc::clone(&result) });
        loop {
            let turn = hold(&self.turn);
            if let Some(outcome) = hold(&result).take() {
                return outcome;
            }
            self.lead(store, durability);
            drop(turn);
        }
    }

    /// Puts an entry beside the queue. Answers how many wait there.
    pub(crate) fn note(&self, draft: Draft) -> usize {
        let mut notes = hold(&self.notes);
        if notes.len() >= NOTES_WAITING_MAX {
            // Nothing can be written for a long time; the newest reads are worth more than the oldest.
            notes.remove(0);
        }
        notes.push(draft);
        notes.len()
    }

    /// Writes the entries that wait beside the queue.
    pub(crate) fn flush(&self, store: &Store, durability: Durability) -> Result<(), Failure> {
        let _turn = hold(&self.turn);
        let mut notes = std::mem::take(&mut *hold(&self.notes));
        if notes.is_empty() {
            return Ok(());
        }
        let written = store.transact(Sync::Later, durability, |transaction| {
            chain(transaction, store, &mut notes, Vec::new()).map_err(|error| failure::store(&error))
        });
        if written.is_err() {
            // They stay for a later try; a caller's answer does not depend on them.
            hold(&self.notes).splice(0..0, notes);
        }
        written.map(|_| ())
    }

    fn lead(&self, store: &Store, durability: Durability) {
        let batch: Vec<Request> = {
            let mut queue = hold(&self.queue);
            let end = queue.len().min(BATCH_MAX);
            queue.drain(..end).collect()
        };
        let sync = batch.iter().map(|request| request.sync).max().unwrap_or(Sync::Later);
        let mut notes = std::mem::take(&mut *hold(&self.notes));
        let (works, results): (Vec<Work>, Vec<_>) =
            batch.into_iter().map(|request| (request.work, request.result)).unzip();
        let outcomes = store.transact(sync, durability, |transaction| {
            chain(transaction, store, &mut notes, works).map_err(|error| failure::store(&error))
        });
        match outcomes {
            Ok(outcomes) => {
                for (result, outcome) in results.iter().zip(outcomes) {
                    *hold(result) = Some(Ok(outcome));
                }
            }
            Err(failure) => {
                hold(&self.notes).splice(0..0, notes);
                for result in &results {
                    *hold(result) = Some(Err(failure.clone()));
                }
            }
        }
    }
}

/// Writes notes and requests onto the chain, in that order.
fn chain(
    transaction: &Transaction<'_>,
    store: &Store,
    notes: &mut [Draft],
    works: Vec<Work>,
) -> rusqlite::Result<Vec<Outcome>> {
    let mut tip = store::tip(transaction, &store.origin)?;
    let start = tip.number;
    for note in notes {
        store::append(transaction, &mut tip, note)?;
    }
    let outcomes =
        works.into_iter().map(|work| work(transaction, &mut tip)).collect::<rusqlite::Result<_>>()?;
    store::put_tip(transaction, &tip)?;
    if tip.number / SIGN_ENTRIES != start / SIGN_ENTRIES {
        checkpoint::sign(transaction, &store.origin, tip.time_ms)?;
    }
    Ok(outcomes)
}
