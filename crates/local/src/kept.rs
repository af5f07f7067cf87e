//! Bytes kept from earlier, by version: small ones in the database, large ones as files. Under a quota: the oldest
//! history of agents goes first, never silently.

use disk::OpenFile;
use engine::{Failure, Kind, Version};
use journal::Link;
use rusqlite::{OptionalExtension, params};

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
        if excess == 0 {
            return Ok(());
        }
        let oldest: Vec<(Vec<u8>, i64, bool)> = self.store.look(|connection| {
            connection
                .prepare_cached(
                    "SELECT version, size, bytes IS NULL FROM kept
                     WHERE number NOT IN (SELECT number FROM pending) ORDER BY agent DESC, number LIMIT ?1",
                )?
                .query_map(params![PRUNE_BATCH as i64], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect()
        })?;
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
            return Ok(());
        }
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
        Ok(())
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
