//! How much the workspace holds. Counted once by a walk while nobody changes anything through here, then carried on in
//! the very transaction of every change; counted again when something happened that was not carried on.
//!
//! Promises: together, threads and processes never pass a quota; where no quota is set nothing is counted and nothing is
//! written. What other programs change is noticed by the next count: before a call is refused, and every few minutes.

use std::time::{Duration, Instant};

use engine::{
    Change, Charge, Failure, Guard, Holding, Kind, LockAsk, Look, Plan, Principal, Quota, Stock, Top,
    Workspace, uncounted,
};
use path::{Name, RelPath};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    failure,
    open::LocalWorkspace,
    query,
    store::{Sync, hold, sql},
};

/// Oldest count that is relied on.
const COUNTED_MS: i64 = 5 * 60 * 1000;
/// The same when changes are known that were not carried on.
const DOUBTED_MS: i64 = 30 * 1000;
/// Oldest count that a call is refused by.
const FRESH_MS: i64 = 1000;
/// Counting may take one part in so many of the time.
const SHARE: i64 = 20;
/// Longest wait for a moment in which nobody changes anything.
const QUIET_WAIT: Duration = Duration::from_secs(10);
/// Changes of which it is remembered what was held before, for undoing them.
const REMEMBERED: u64 = 10_000;

/// What was counted, carried on to the last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    stock: Stock,
    /// The last change that is in it.
    number: u64,
    counted_ms: i64,
    took_ms: i64,
    trust: Trust,
}

/// Whether every change since was carried on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Whole,
    Doubted,
}

impl LocalWorkspace {
    /// What is held, as the trait asks for it.
    pub(crate) fn holding_of(&self, principal: &Principal, look: Look) -> Result<Option<Holding>, Failure> {
        match look {
            Look::Known => {}
            Look::Due => self.count_when(|count| self.is_due(count))?,
            Look::Fresh => {
                self.count_when(|count| self.is_older(count, FRESH_MS))?;
                self.empty_all_expired()?;
            }
        }
        let owner = principal.to_string();
        self.store.look(|connection| {
            let Some(count) = standing(connection)? else { return Ok(None) };
            Ok(Some(Holding { stock: count.stock, trash_bytes: in_trash(connection, &owner)? }))
        })
    }

    /// What was held before an entry.
    pub(crate) fn stock_before(&self, number: u64) -> Result<Option<Stock>, Failure> {
        self.store.look(|connection| before(connection, number))
    }

    /// The next call under a quota counts anew: changes may have been made while nobody was here.
    pub(crate) fn distrust_count(&self) {
        *hold(&self.recount) = Recount::Wanted;
    }

    fn is_due(&self, count: &Count) -> bool {
        let most = match count.trust {
            Trust::Whole => COUNTED_MS,
            Trust::Doubted => DOUBTED_MS,
        };
        *hold(&self.recount) == Recount::Wanted || self.is_older(count, most)
    }

    fn is_older(&self, count: &Count, most_ms: i64) -> bool {
        let age_ms = self.clock.now().wall_ms.saturating_sub(count.counted_ms);
        // A clock that was set back tells nothing.
        age_ms < 0 || age_ms >= most_ms.max(count.took_ms.saturating_mul(SHARE))
    }

    /// Counts where nothing is known, and where this says so.
    fn count_when(&self, wanted: impl Fn(&Count) -> bool) -> Result<(), Failure> {
        let known = self.store.look(standing)?;
        if known.as_ref().is_some_and(|count| !wanted(count)) {
            return Ok(());
        }
        let root = [LockAsk { path: RelPath::root() }];
        let guard: Box<dyn Guard> = match self.lock(&root, Instant::now() + QUIET_WAIT) {
            Ok(guard) => guard,
            // Somebody is always writing: what is known holds.
            Err(failure) if failure.kind == Kind::Busy && known.is_some() => return Ok(()),
            Err(failure) => return Err(failure),
        };
        // Somebody may have counted while this one waited.
        if self.store.look(standing)?.is_some_and(|count| !wanted(&count)) {
            return Ok(());
        }
        let started = Instant::now();
        let stock = self.walk();
        let took_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let counted_ms = self.clock.now().wall_ms;
        self.store.transact(Sync::Later, self.durability, |transaction| {
            // Nothing was changed through here since the lock was taken, but others' changes may have been recorded.
            let number = query::last_change(transaction).map_err(|error| failure::store(&error))?;
            let count = Count { stock, number, counted_ms, took_ms, trust: Trust::Whole };
            put(transaction, &count).map_err(|error| failure::store(&error))
        })?;
        *hold(&self.recount) = Recount::Done;
        drop(guard);
        Ok(())
    }

    /// Everything below the root that a call could reach. What cannot be looked into counts as what it is itself.
    fn walk(&self) -> Stock {
        let mut stock = Stock::default();
        let mut waiting = vec![RelPath::root()];
        while let Some(directory) = waiting.pop() {
            let Ok(listed) = self.list_place(&directory) else { continue };
            let names: Vec<Name> = listed.into_iter().map(|listed| listed.name).collect();
            let Ok(looked) = self.stat_names_in(&directory, &names) else { continue };
            for (name, looked) in names.iter().zip(looked) {
                let Ok(Some(node)) = looked else { continue };
                stock.files += 1;
                match node.top {
                    Top::Directory => waiting.extend(directory.join(name)),
                    Top::File | Top::Link | Top::Special => {
                        stock.bytes = stock.bytes.saturating_add(node.size);
                    }
                }
            }
        }
        stock
    }

    fn empty_all_expired(&self) -> Result<(), Failure> {
        while self.empty_expired()? > 0 {}
        Ok(())
    }
}

/// Whether the next call under a quota must count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Recount {
    Wanted,
    #[default]
    Done,
}

/// What a commit asks for under a quota.
pub(crate) struct Booking {
    charge: Charge,
    owner: String,
    /// Directories that it makes.
    made: Vec<String>,
}

impl Booking {
    pub(crate) fn new(plan: &Plan, quota: Quota, owner: &Principal) -> Self {
        let made = plan.changes.iter().filter_map(|change| match change {
            Change::MakeDirectory { path, .. } => Some(path.to_string()),
            Change::Put { .. }
            | Change::MakeLink { .. }
            | Change::Move { .. }
            | Change::Remove { .. }
            | Change::RemoveDirectory { .. }
            | Change::Restore { .. } => None,
        });
        Self { charge: Charge::of(plan, quota), owner: owner.to_string(), made: made.collect() }
    }

    /// How many of its directories another call has made meanwhile: both planned it, and it is there once.
    fn made_before(&self, connection: &Connection, number: u64) -> rusqlite::Result<u64> {
        let mut count = 0;
        for path in &self.made {
            let last: Option<Vec<u8>> = connection
                .prepare_cached(
                    "SELECT bytes FROM touched JOIN entries USING (number)
                     WHERE path = ?1 AND number < ?2 AND changed = 1 ORDER BY number DESC LIMIT 1",
                )?
                .query_row(params![path, sql(number)], |row| row.get(0))
                .optional()?;
            count += u64::from(last.is_some_and(|entry| query::only_makes(&entry, path)));
        }
        Ok(count)
    }

    /// Refuses what does not fit. Nothing is written yet.
    pub(crate) fn check(&self, connection: &Connection) -> rusqlite::Result<Option<Failure>> {
        let Some(count) = standing(connection)? else { return Ok(Some(uncounted())) };
        let before = match self.charge.undoes() {
            Some(number) => before(connection, number)?,
            None => None,
        };
        let holding = Holding { stock: count.stock, trash_bytes: in_trash(connection, &self.owner)? };
        Ok(self.charge.judge(&holding, before).err())
    }

    /// Carries the count on to an entry that was just appended.
    pub(crate) fn carry(&self, connection: &Connection, last: u64, number: u64) -> rusqlite::Result<()> {
        let Some(mut count) = kept(connection)? else { return Ok(()) };
        if count.number != last {
            count.trust = Trust::Doubted;
        }
        let (was, mut then) = (count.stock, self.charge.after(count.stock));
        then.files = then.files.saturating_sub(self.made_before(connection, number)?);
        let more = |then: u64, was: u64| sql(then).saturating_sub(sql(was));
        connection.prepare_cached("INSERT OR REPLACE INTO held VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(
            params![
                sql(number),
                sql(was.bytes),
                sql(was.files),
                more(then.bytes, was.bytes),
                more(then.files, was.files)
            ],
        )?;
        connection
            .prepare_cached("DELETE FROM held WHERE number < ?1")?
            .execute(params![sql(number.saturating_sub(REMEMBERED))])?;
        put(connection, &Count { stock: then, number, ..count })
    }
}

/// What was recorded did not come true: it is not held either.
pub(crate) fn give_back(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE holding SET doubted = 1,
         bytes = max(0, bytes - coalesce((SELECT more_bytes FROM held WHERE number = ?1), 0)),
         files = max(0, files - coalesce((SELECT more_files FROM held WHERE number = ?1), 0))",
        params![number],
    )?;
    connection.execute("DELETE FROM held WHERE number = ?1", params![number])?;
    Ok(())
}

fn put(connection: &Connection, count: &Count) -> rusqlite::Result<()> {
    let doubted = match count.trust {
        Trust::Whole => 0,
        Trust::Doubted => 1,
    };
    connection.prepare_cached("INSERT OR REPLACE INTO holding VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)")?.execute(
        params![
            sql(count.stock.bytes),
            sql(count.stock.files),
            sql(count.number),
            count.counted_ms,
            count.took_ms,
            doubted
        ],
    )?;
    Ok(())
}

/// What is known now. A change that was recorded and not carried on, or carried on and taken back, leaves a doubt.
fn standing(connection: &Connection) -> rusqlite::Result<Option<Count>> {
    let Some(mut count) = kept(connection)? else { return Ok(None) };
    if query::last_change(connection)? != count.number {
        count.trust = Trust::Doubted;
    }
    Ok(Some(count))
}

fn kept(connection: &Connection) -> rusqlite::Result<Option<Count>> {
    connection
        .prepare_cached("SELECT bytes, files, number, counted_ms, took_ms, doubted FROM holding")?
        .query_row([], |row| {
            let unsigned = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
            let trust = if row.get::<_, i64>(5)? == 0 { Trust::Whole } else { Trust::Doubted };
            Ok(Count {
                stock: Stock { bytes: unsigned(0)?, files: unsigned(1)? },
                number: unsigned(2)?,
                counted_ms: row.get(3)?,
                took_ms: row.get(4)?,
                trust,
            })
        })
        .optional()
}

fn before(connection: &Connection, number: u64) -> rusqlite::Result<Option<Stock>> {
    connection
        .prepare_cached("SELECT bytes, files FROM held WHERE number = ?1")?
        .query_row(params![sql(number)], |row| {
            let unsigned = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
            Ok(Stock { bytes: unsigned(0)?, files: unsigned(1)? })
        })
        .optional()
}

fn in_trash(connection: &Connection, owner: &str) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT coalesce(sum(size), 0) FROM trash WHERE owner = ?1 AND state = 0")?
        .query_row(params![owner], |row| row.get::<_, i64>(0))
        .map(i64::unsigned_abs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    fn directory(name: &str) -> Change {
        Change::MakeDirectory { path: RelPath::from_wire(name).expect("a path"), mode: 0o755 }
    }

    fn booking(changes: Vec<Change>) -> Booking {
        Booking::new(&Plan::of(changes), Quota::default(), &Principal::System)
    }

    fn files(connection: &Connection) -> (u64, Trust) {
        let count = standing(connection).expect("readable").expect("counted");
        (count.stock.files, count.trust)
    }

    /// An entry that changed something, as far as counting is concerned.
    fn entry(connection: &Connection, number: u64) {
        connection
            .execute("INSERT INTO entries VALUES (?1, x'', x'', 0, '', '', 1)", params![sql(number)])
            .expect("an entry");
    }

    #[test]
    fn what_did_not_come_true_is_given_back_and_what_was_not_carried_on_leaves_a_doubt() {
        let connection = Connection::open_in_memory().expect("a database");
        connection.execute_batch(schema::TABLES).expect("tables");
        let nothing = booking(Vec::new()).check(&connection).expect("readable");
        assert_eq!(nothing.map(|failure| failure.kind), Some(Kind::Quota), "nobody has counted");
        let stock = Stock { bytes: 0, files: 7 };
        let counted = Count { stock, number: 0, counted_ms: 0, took_ms: 0, trust: Trust::Whole };
        put(&connection, &counted).expect("written");
        for (number, name) in [(1, "a"), (2, "b")] {
            let last = query::last_change(&connection).expect("readable");
            entry(&connection, number);
            booking(vec![directory(name)]).carry(&connection, last, number).expect("carried on");
        }
        assert_eq!(files(&connection), (9, Trust::Whole));
        assert_eq!(before(&connection, 2).expect("readable"), Some(Stock { bytes: 0, files: 8 }));
        give_back(&connection, 1).expect("given back");
        assert_eq!(files(&connection), (8, Trust::Doubted));
        put(&connection, &Count { number: 2, ..counted }).expect("counted again");
        assert_eq!(files(&connection), (7, Trust::Whole));
        entry(&connection, 3);
        assert_eq!(files(&connection), (7, Trust::Doubted), "somebody changed something without counting");
        entry(&connection, 4);
        booking(vec![directory("c")]).carry(&connection, 3, 4).expect("carried on");
        assert_eq!(files(&connection), (8, Trust::Doubted), "the doubt stays");
    }
}
