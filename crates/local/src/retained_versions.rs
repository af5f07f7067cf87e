//! Retained versions are the contents of files before and after changes, for undo and diffs. Small versions are stored
//! in the database, large versions as blob files. Versions that only agents need are dropped first, and the journal
//! records each drop.

use std::sync::atomic::Ordering;

use rusqlite::{Row, params};
use stead_engine::{Error, ErrorKind, JournalCallRecord, NextStep, Principal, Version};

use crate::{
    errors,
    limits::RETAINED_READ_BYTES_MAX,
    open::LocalWorkspace,
    store::{self, TransactionSyncPolicy, execute_cached},
};

const PRUNE_BATCH_ROWS: i64 = 256;
/// The history quota is checked after new versions have used the quota divided by this number.
const HISTORY_QUOTA_SHARE: u64 = 16;
/// The column `agent` is 0 for a retained version that the history of a user needs. For an agent, the parameter `?2` is
/// 1, so that versions for users do not count towards the agent's history.
const HISTORY_BYTES_SQL: &str =
    "FROM kept WHERE agent >= ?2 AND number IN (SELECT number FROM entries WHERE principal = ?1)";

type RetainedVersionDbRow = (Vec<u8>, i64, bool);

fn retained_version_from_row(row: &Row<'_>) -> rusqlite::Result<RetainedVersionDbRow> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

fn min_agent_flag(owner: &Principal) -> i64 {
    match owner {
        Principal::Agent(_) => 1,
        Principal::User(_) | Principal::System | Principal::External => 0,
    }
}

impl LocalWorkspace {
    /// The bytes of a retained version are checked against its hash; a dropped version is `None`.
    pub(crate) fn load_retained_bytes(&self, version: &Version) -> Result<Option<Vec<u8>>, Error> {
        let sql = "SELECT bytes FROM kept WHERE version = ?1";
        let row = self.store.query_optional(sql, params![version.0.as_bytes().as_slice()], |row| row.get(0))?;
        let Some(stored) = row else { return Ok(None) };
        let bytes = match stored {
            Some(bytes) => Some(bytes),
            None => {
                let read = self.state.read_blob(&version.to_string(), RETAINED_READ_BYTES_MAX);
                read.map_err(errors::state_directory_error)?
            }
        };
        let Some(bytes) = bytes else { return Ok(None) };
        if Version::hash_bytes(&bytes) != *version {
            let corrupt = format!("the stored content of version {version} is damaged: it does not match its hash");
            return Err(Error::new(ErrorKind::CorruptHistory, corrupt).with_next_step(
                NextStep::from("use another version").or_ask_person("restore the state directory from a backup"),
            ));
        }
        Ok(Some(bytes))
    }

    pub(crate) fn prune(&self) -> Result<(), Error> {
        let excess = self.retained_bytes_total()?.saturating_sub(self.retained_bytes_max);
        if excess > 0 {
            let sql = "SELECT version, size, bytes IS NULL FROM kept
                       WHERE number NOT IN (SELECT number FROM pending) ORDER BY agent DESC, number LIMIT ?1";
            let oldest = self.store.query_rows(sql, params![PRUNE_BATCH_ROWS], retained_version_from_row)?;
            self.delete_oldest(oldest, excess)?;
        }
        self.prune_limited()
    }

    fn prune_limited(&self) -> Result<(), Error> {
        let policy = stead_engine::Workspace::active_policy(self)?.policy;
        if !policy.has_quota() {
            return Ok(());
        }
        let sql = "SELECT DISTINCT principal FROM entries WHERE number IN (SELECT number FROM kept)";
        let owners: Vec<String> = self.store.query_rows(sql, [], |row| row.get(0))?;
        for owner in owners.iter().filter_map(|owner| Principal::parse(owner).ok()) {
            if let Some(limit) = policy.quota(&owner).and_then(|quota| quota.history_bytes) {
                self.prune_history(&owner, limit)?;
            }
        }
        Ok(())
    }

    fn prune_history(&self, owner: &Principal, limit: u64) -> Result<(), Error> {
        loop {
            let excess = self.history_bytes_of(owner)?.saturating_sub(limit);
            if excess == 0 {
                return Ok(());
            }
            let sql = format!(
                "SELECT version, size, bytes IS NULL {HISTORY_BYTES_SQL}
                 AND number NOT IN (SELECT number FROM pending) ORDER BY number LIMIT ?3"
            );
            let values = params![owner.to_string(), min_agent_flag(owner), PRUNE_BATCH_ROWS];
            let oldest = self.store.query_rows(&sql, values, retained_version_from_row)?;
            if self.delete_oldest(oldest, excess)? == 0 {
                return Ok(());
            }
        }
    }

    pub(crate) fn history_bytes_of(&self, owner: &Principal) -> Result<u64, Error> {
        let sql = format!("SELECT coalesce(sum(size), 0) {HISTORY_BYTES_SQL}");
        let values = params![owner.to_string(), min_agent_flag(owner)];
        Ok(self.store.query_number(&sql, values)?.unwrap_or_default())
    }

    pub(crate) fn prune_if_over_quota(&self, record: &JournalCallRecord<'_>, bytes: u64) {
        let Some(limit) = record.quota.and_then(|quota| quota.history_bytes) else { return };
        let since_prune = self.retained_since_prune.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if since_prune < limit / HISTORY_QUOTA_SHARE {
            return;
        }
        self.retained_since_prune.store(0, Ordering::Relaxed);
        // The maintenance thread retries after a failure.
        if self.prune_to_limit(&record.caller.principal, limit).is_err() {
            self.count_background_failure();
        }
    }

    /// If the retained versions exceed twice the limit, pending entries are synced, so that their versions can be
    /// dropped.
    fn prune_to_limit(&self, owner: &Principal, limit: u64) -> Result<(), Error> {
        self.prune_history(owner, limit)?;
        if self.history_bytes_of(owner)? <= limit.saturating_mul(2) {
            return Ok(());
        }
        self.mark_synced_entries()?;
        self.prune_history(owner, limit)
    }

    fn delete_oldest(&self, oldest: Vec<RetainedVersionDbRow>, excess: u64) -> Result<usize, Error> {
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
        let draft = self.pending_system_entry("prune", format!("{{\"versions\":{count},\"bytes\":{bytes}}}"));
        let files: Vec<Vec<u8>> =
            dropped.iter().filter(|(_, in_file)| *in_file).map(|(version, _)| version.clone()).collect();
        self.append_with_rows(draft, TransactionSyncPolicy::Later, move |transaction, _| {
            let sql = "DELETE FROM kept WHERE version = ?1";
            dropped.iter().try_for_each(|(version, _)| execute_cached(transaction, sql, params![version]))
        })?;
        for version in files.iter().filter_map(|bytes| store::digest_from_bytes(bytes)) {
            self.state.remove_blob(&version.to_string()).map_err(errors::state_directory_error)?;
        }
        Ok(count)
    }

    pub(crate) fn retained_bytes_total(&self) -> Result<u64, Error> {
        Ok(self.store.query_number("SELECT coalesce(sum(size), 0) FROM kept", [])?.unwrap_or_default())
    }
}
