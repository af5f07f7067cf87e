//! Bytes kept from earlier, by version: small ones in the database, large ones as files. Bounded in all and, under a
//! quota, for each principal: the oldest history of agents goes first, never silently.

use std::sync::atomic::Ordering;

use disk::OpenFile;
use engine::{Failure, Kind, Principal, Record, Version};
use journal::Link;
use rusqlite::{OptionalExtension, Row, params};

use crate::{
    failure,
    group::{Outcome, Work},
    open::LocalWorkspace,
    store::{self, Sync, sql},
};

/// Largest kept file that is read into memory at once.
const KEPT_READ_BYTES_MAX: u64 = 64 << 20;
/// How many versions one pruning round drops at most.
const PRUNE_BATCH: usize = 256;
/// Whether a principal's history is too much is looked at whenever it may have grown by one part in so many.
const HISTORY_SHARE: u64 = 16;
/// What is kept for one principal, by its name and the least `agent`: what a user's history needs too is not an agent's.
const HISTORY: &str =
    "FROM kept WHERE agent >= ?2 AND number IN (SELECT number FROM entries WHERE principal = ?1)";

/// A version that is kept: which, how many bytes, and whether they are a file of their own.
type Kept = (Vec<u8>, i64, bool);

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn least_agent(owner: &Principal) -> i64 {
    match owner {
        Principal::Agent(_) => 1,
        Principal::User(_) | Principal::System | Principal::Outside => 0,
    }
}

impl LocalWorkspace {
    /// Bytes of a version, checked against it. Nothing when they are no longer kept.
    pub(crate) fn kept_bytes(&self, version: &Version) -> Result<Option<Vec<u8>>, Failure> {
        let row: Option<Option<Vec<u8>>> = self.store.look(|connection| {
            connection
                .prepare_cached("SELECT bytes FROM kept WHERE version = ?1")?
                .query_row(params![version.0.as_bytes().as_slice()], |row| row.get(0))
                .optional()
        })?;
        let bytes = match row {
            None => return Ok(None),
            Some(Some(bytes)) => bytes,
            Some(None) => match self.kept_file(version)? {
                None => return Ok(None),
                Some(file) => file.read_all(KEPT_READ_BYTES_MAX).map_err(|error| failure::own(&error))?,
            },
        };
        if Version::of(&bytes) != *version {
            return Err(Failure::new(
                Kind::CorruptHistory,
                "kept bytes do not match their hash; they were not used",
            ));
        }
        Ok(Some(bytes))
    }

    fn kept_file(&self, version: &Version) -> Result<Option<OpenFile>, Failure> {
        self.state.open_blob(&version.to_string()).map_err(|error| failure::own(&error))
    }

    /// Drops the oldest kept bytes while they exceed the quota, and records how much was dropped.
    pub(crate) fn prune(&self) -> Result<(), Failure> {
        let excess = self.kept_total()?.saturating_sub(self.kept_bytes_max);
        if excess > 0 {
            let oldest: Vec<Kept> = self.store.look(|connection| {
                connection
                    .prepare_cached(
                        "SELECT version, size, bytes IS NULL FROM kept
                         WHERE number NOT IN (SELECT number FROM pending) ORDER BY agent DESC, number LIMIT ?1",
                    )?
                    .query_map(params![PRUNE_BATCH as i64], kept)?
                    .collect()
            })?;
            self.drop_oldest(oldest, excess)?;
        }
        self.prune_limited()
    }

    /// The same for everybody whose history has a quota of its own.
    fn prune_limited(&self) -> Result<(), Failure> {
        let policy = engine::Workspace::in_force(self)?.policy;
        if !policy.has_quota() {
            return Ok(());
        }
        let owners: Vec<String> = self.store.look(|connection| {
            connection
                .prepare_cached(
                    "SELECT DISTINCT principal FROM entries WHERE number IN (SELECT number FROM kept)",
                )?
                .query_map([], |row| row.get(0))?
                .collect()
        })?;
        for owner in owners.iter().filter_map(|owner| Principal::parse(owner).ok()) {
            if let Some(limit) = policy.quota(&owner).and_then(|quota| quota.history_bytes) {
                self.prune_history(&owner, limit)?;
            }
        }
        Ok(())
    }

    /// Drops the oldest that is kept for one principal while it is more than this.
    fn prune_history(&self, owner: &Principal, limit: u64) -> Result<(), Failure> {
        loop {
            let excess = self.history_of(owner)?.saturating_sub(limit);
            if excess == 0 {
                return Ok(());
            }
            let oldest: Vec<Kept> = self.store.look(|connection| {
                connection
                    .prepare_cached(&format!(
                        "SELECT version, size, bytes IS NULL {HISTORY} AND number NOT IN (SELECT number FROM pending)
                         ORDER BY number LIMIT ?3"
                    ))?
                    .query_map(params![owner.to_string(), least_agent(owner), PRUNE_BATCH as i64], kept)?
                    .collect()
            })?;
            if self.drop_oldest(oldest, excess)? == 0 {
                return Ok(());
            }
        }
    }

    /// Bytes kept of what a principal wrote and overwrote.
    pub(crate) fn history_of(&self, owner: &Principal) -> Result<u64, Failure> {
        self.store.look(|connection| {
            connection
                .prepare_cached(&format!("SELECT coalesce(sum(size), 0) {HISTORY}"))?
                .query_row(params![owner.to_string(), least_agent(owner)], |row| row.get::<_, i64>(0))
                .map(i64::unsigned_abs)
        })
    }

    /// After a change under a quota: when enough was kept since, looks whether it is too much.
    pub(crate) fn keep_within(&self, record: &Record<'_>, kept_bytes: u64) {
        let Some(limit) = record.quota.and_then(|quota| quota.history_bytes) else { return };
        let lately = self.kept_lately.fetch_add(kept_bytes, Ordering::Relaxed).saturating_add(kept_bytes);
        if lately < limit / HISTORY_SHARE {
            return;
        }
        self.kept_lately.store(0, Ordering::Relaxed);
        // What fails here is tried again by the keeper.
        match self.trim(&record.caller.principal, limit) {
            Ok(()) => {}
            Err(_) => self.count_background_failure(),
        }
    }

    /// What is still pending cannot go; when that is as much again, it is settled first.
    fn trim(&self, owner: &Principal, limit: u64) -> Result<(), Failure> {
        self.prune_history(owner, limit)?;
        if self.history_of(owner)? <= limit.saturating_mul(2) {
            return Ok(());
        }
        self.settle()?;
        self.prune_history(owner, limit)
    }

    /// Drops as many of these as it takes, and records how much. Answers how many went.
    fn drop_oldest(&self, oldest: Vec<Kept>, excess: u64) -> Result<usize, Failure> {
        let mut dropped = Vec::new();
        let mut bytes = 0;
        for (version, size, in_file) in oldest {
            if bytes >= excess {
                break;
            }
            bytes += size.unsigned_abs();
            dropped.push((version, in_file));
        }
        if dropped.is_empty() {
            return Ok(0);
        }
        let count = dropped.len();
        let arguments = format!("{{\"versions\":{},\"bytes\":{bytes}}}", dropped.len());
        let mut draft = self.system_draft("prune", arguments, Link::None);
        let files: Vec<Vec<u8>> =
            dropped.iter().filter(|(_, in_file)| *in_file).map(|(version, _)| version.clone()).collect();
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            for (version, _) in &dropped {
                transaction.execute("DELETE FROM kept WHERE version = ?1", params![version])?;
            }
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group.submit(&self.store, self.durability, Sync::Later, work)?;
        for version in files.iter().filter_map(|bytes| store::digest(bytes)) {
            self.state.remove_blob(&version.to_string()).map_err(|error| failure::own(&error))?;
        }
        Ok(count)
    }

    /// Bytes kept in all.
    pub(crate) fn kept_total(&self) -> Result<u64, Failure> {
        self.store.look(|connection| {
            connection
                .query_row("SELECT coalesce(sum(size), 0) FROM kept", [], |row| row.get::<_, i64>(0))
                .map(i64::unsigned_abs)
        })
    }

    /// The entry that last left this version at this path.
    pub(crate) fn last_rev(&self, path: &str, version: &Version) -> Result<Option<u64>, Failure> {
        self.store.look(|connection| {
            connection
                .prepare_cached("SELECT number FROM touched WHERE path = ?1 AND version = ?2 ORDER BY number DESC LIMIT 1")?
                .query_row(params![path, version.0.as_bytes().as_slice()], |row| row.get::<_, i64>(0))
                .optional()
                .map(|found| found.map(i64::unsigned_abs))
        })
    }

    /// Whether an entry is undone at present.
    pub(crate) fn undone_by(&self, number: u64) -> Result<Option<u64>, Failure> {
        self.store.look(|connection| {
            connection
                .prepare_cached("SELECT by FROM undone WHERE number = ?1 AND redone IS NULL")?
                .query_row(params![sql(number)], |row| row.get::<_, i64>(0))
                .optional()
                .map(|found| found.map(i64::unsigned_abs))
        })
    }
}
