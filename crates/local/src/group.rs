//! Group commit. Whoever gets the writing connection first commits everything that is queued, in one transaction and
//! one sync; the others find their result waiting. A lone caller pays for nothing but its own transaction.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

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

/// Entries of calls that changed nothing. When nothing can be written for a long time, the newest are worth more than the
/// oldest; how many had to go becomes an entry as well.
#[derive(Default)]
struct Notes {
    waiting: VecDeque<Draft>,
    /// How many were let go, and the entry that says so.
    lost: Option<(u64, Draft)>,
}

impl Notes {
    /// Adds one. Answers how many there were since something was written.
    fn add(&mut self, draft: Draft, most: usize, lost: impl FnOnce(u64) -> Draft) -> u64 {
        // Several where some were put back after others had come.
        let over = (self.waiting.len() + 1).saturating_sub(most).min(self.waiting.len());
        if over > 0 {
            self.waiting.drain(..over);
            let count = self.lost.as_ref().map_or(0, |(count, _)| *count) + over as u64;
            self.lost = Some((count, lost(count)));
        }
        self.waiting.push_back(draft);
        self.waiting.len() as u64 + self.lost.as_ref().map_or(0, |(count, _)| *count)
    }

    /// Everything, in the order in which it is written.
    fn drafts(&mut self) -> impl Iterator<Item = &mut Draft> {
        self.lost.iter_mut().map(|(_, draft)| draft).chain(&mut self.waiting)
    }

    /// These could not be written and come before what was added since.
    fn put_back(&mut self, mut unwritten: Self) {
        unwritten.waiting.append(&mut self.waiting);
        self.waiting = unwritten.waiting;
        self.lost = unwritten.lost.or(self.lost.take());
    }
}

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
    /// They ride along with the next transaction.
    notes: Mutex<Notes>,
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

    /// Puts an entry beside the queue; `lost` makes the one that says how many had to go. Answers how many came since
    /// something was written.
    pub(crate) fn note(&self, draft: Draft, lost: impl FnOnce(u64) -> Draft) -> u64 {
        hold(&self.notes).add(draft, NOTES_WAITING_MAX, lost)
    }

    /// How many entries wait beside the queue.
    pub(crate) fn noted(&self) -> usize {
        hold(&self.notes).waiting.len()
    }

    /// Writes the entries that wait beside the queue.
    pub(crate) fn flush(&self, store: &Store, durability: Durability) -> Result<(), Failure> {
        let _turn = hold(&self.turn);
        let mut notes = std::mem::take(&mut *hold(&self.notes));
        if notes.waiting.is_empty() {
            return Ok(());
        }
        let written = store.transact(Sync::Later, durability, |transaction| {
            chain(transaction, store, &mut notes, Vec::new()).map_err(|error| failure::store(&error))
        });
        if written.is_err() {
            // They stay for a later try; a caller's answer does not depend on them.
            hold(&self.notes).put_back(notes);
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
                hold(&self.notes).put_back(notes);
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
    notes: &mut Notes,
    works: Vec<Work>,
) -> rusqlite::Result<Vec<Outcome>> {
    let mut tip = store::tip(transaction, &store.origin)?;
    let start = tip.number;
    for note in notes.drafts() {
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

#[cfg(test)]
mod tests {
    use journal::{Caller, Decision, Entry, Link};

    use super::*;

    fn draft(operation: &str) -> Draft {
        let caller = Caller {
            principal: "agent:a".to_owned(),
            on_behalf_of: None,
            session: "s".to_owned(),
            face: "test".to_owned(),
        };
        let entry = Entry {
            number: 0,
            time_ms: 0,
            caller,
            request: None,
            operation: operation.to_owned(),
            tool: None,
            arguments: "{}".to_owned(),
            decision: Decision::Allowed,
            reason: None,
            policy: 1,
            tier: None,
            approval: None,
            changes: Vec::new(),
            link: Link::None,
            bytes: 0,
            duration_us: 0,
        };
        Draft { entry, touched: Vec::new() }
    }

    fn operations(notes: &mut Notes) -> Vec<String> {
        notes.drafts().map(|draft| draft.entry.operation.clone()).collect()
    }

    #[test]
    fn what_has_to_go_is_counted_in_an_entry() {
        let mut notes = Notes::default();
        let add = |notes: &mut Notes, name: &str| {
            notes.add(draft(name), 2, |count| draft(&format!("lost {count}")))
        };
        let counts: Vec<u64> = ["a", "b", "c", "d"].iter().map(|name| add(&mut notes, name)).collect();
        assert_eq!(counts, [1, 2, 3, 4]);
        assert_eq!(operations(&mut notes), ["lost 2", "c", "d"]);
        let unwritten = std::mem::take(&mut notes);
        add(&mut notes, "e");
        notes.put_back(unwritten);
        assert_eq!(operations(&mut notes), ["lost 2", "c", "d", "e"]);
        add(&mut notes, "f");
        assert_eq!(operations(&mut notes), ["lost 4", "e", "f"]);
    }
}
