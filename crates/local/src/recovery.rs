//! Finishes the pending entries of dead processes. Done steps stay, whatever happened to their paths since; begun entries
//! are finished. If another program's change blocks an entry, it is rolled back whole, its bytes are retained, and the
//! journal records that. Idempotent: recovery itself may be killed at any point.

use std::time::Instant;

use rusqlite::params;
use stead_engine::Error;
use stead_journal::{Digest, EntryRelation};
use stead_path::RelPath;

use crate::{
    errors,
    file_steps::FileStep,
    group_commit::{TransactionBody, TransactionOutcome},
    later_evidence::LaterEvidence,
    open::LocalWorkspace,
    path_locks,
    redo_steps::BootComparison,
    step_executor::{ApplyError, StepExecutor},
    store::{self, SyncRequirement, lock_ignoring_poison, to_sql_integer},
};

/// Work done by a recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Entries whose steps were checked.
    pub entries: u64,
    /// Steps that were applied again.
    pub redone_steps: u64,
    /// Entries rolled back because another program had changed a path; its change stays.
    pub conflicts: u64,
}

pub(crate) struct UnfinishedEntry {
    number: u64,
    boot_id: String,
    steps: Vec<FileStep>,
}

impl UnfinishedEntry {
    fn paths(&self) -> Vec<RelPath> {
        self.steps.iter().flat_map(FileStep::paths).cloned().collect()
    }

    /// The error of a step that could not be finished. Steps only touch workspace paths.
    fn step_error(&self, error: &stead_disk::DiskError) -> Error {
        let path = self.steps.iter().flat_map(FileStep::paths).next().cloned();
        errors::error_at_path(&path.unwrap_or_default(), error)
    }

    /// Paths that only this entry could change, and directories it creates. Directories are shared: concurrent calls may
    /// need the same one, and the first creates it. An entry that only creates directories shares none.
    fn exclusive_and_shared_paths(&self) -> (Vec<RelPath>, Vec<RelPath>) {
        let (made, own): (Vec<&FileStep>, Vec<&FileStep>) =
            self.steps.iter().partition(|step| matches!(step, FileStep::MakeDirectory { .. }));
        let paths_of =
            |steps: Vec<&FileStep>| -> Vec<RelPath> { steps.into_iter().flat_map(FileStep::paths).cloned().collect() };
        if own.is_empty() { (paths_of(made), Vec::new()) } else { (paths_of(own), paths_of(made)) }
    }

    /// Whether it touches one of these paths, their parents or their children.
    fn overlaps_any(&self, paths: &[RelPath]) -> bool {
        let near = |own_path: &RelPath| paths.iter().any(|path| overlaps(own_path, path));
        self.steps.iter().flat_map(FileStep::paths).any(near)
    }
}

/// Whether one path equals or contains the other.
pub(crate) fn overlaps(a: &RelPath, b: &RelPath) -> bool {
    a.is_within(b) || b.is_within(a)
}

impl LocalWorkspace {
    /// Finishes entries of other processes whose paths are not locked.
    pub(crate) fn recover_pending(&self) -> Result<RecoveryReport, Error> {
        let mut report = RecoveryReport::default();
        let waiting = self.load_unfinished()?;
        for (at, pending) in waiting.iter().enumerate() {
            // A live process holds its paths until its steps are done.
            let Some(_mine) = self.locks.try_lock(path_locks::path_slots(&pending.paths()))? else {
                continue;
            };
            self.finish_entry(pending, &waiting[at + 1..], &mut report)?;
        }
        Ok(report)
    }

    /// Pending entries of dead processes that overlap these paths. The caller holds the locks.
    pub(crate) fn unfinished_near(&self, paths: &[RelPath]) -> Result<Vec<UnfinishedEntry>, Error> {
        let mut waiting = self.load_unfinished()?;
        waiting.retain(|pending| pending.overlaps_any(paths));
        Ok(waiting)
    }

    /// Finishes these entries, waiting for their locks until the deadline.
    pub(crate) fn finish_entries(&self, waiting: &[UnfinishedEntry], deadline: Instant) -> Result<(), Error> {
        for (at, pending) in waiting.iter().enumerate() {
            let _mine = self.locks.lock(path_locks::path_slots(&pending.paths()), deadline)?;
            self.finish_entry(pending, &waiting[at + 1..], &mut RecoveryReport::default())?;
        }
        Ok(())
    }

    fn finish_entry(
        &self,
        pending: &UnfinishedEntry,
        later: &[UnfinishedEntry],
        report: &mut RecoveryReport,
    ) -> Result<(), Error> {
        // Another process may have finished it before the locks were free.
        if !self.is_pending(pending.number)? {
            return Ok(());
        }
        let read_retained =
            |version: &Digest| self.load_retained_bytes(&stead_engine::Version(*version)).ok().flatten();
        let executor = self.step_executor(&read_retained);
        let boot =
            if pending.boot_id == self.clock.now().boot_id { BootComparison::Same } else { BootComparison::Other };
        report.entries += 1;
        if let Some(since) = self.later_evidence(pending, later, &executor, boot)? {
            let resumed = executor.redo_steps(&pending.steps, boot, &since);
            match resumed.map_err(|error| pending.step_error(&error))? {
                Ok(replayed) => report.redone_steps += replayed,
                Err(blocked) => {
                    report.conflicts += 1;
                    return self.roll_back_for_foreign_change(pending, blocked.step_index, &executor);
                }
            }
        }
        lock_ignoring_poison(&self.unfinished_entries).remove(&pending.number);
        lock_ignoring_poison(&self.verified_entries).insert(pending.number);
        self.mark_applied(pending.number);
        Ok(())
    }

    /// Evidence of later changes about each step. Within one boot a later change proves all steps: a path is only changed
    /// after its pending entry is finished.
    fn later_evidence<'a>(
        &self,
        pending: &UnfinishedEntry,
        later: &'a [UnfinishedEntry],
        executor: &StepExecutor<'_>,
        boot: BootComparison,
    ) -> Result<Option<Vec<LaterEvidence<'a>>>, Error> {
        if boot == BootComparison::Same {
            let (own, shared) = pending.exclusive_and_shared_paths();
            let built_upon =
                self.changed_after(pending.number, &own)? || self.directory_removed_after(pending.number, &shared)?;
            return Ok((!built_upon).then(|| vec![LaterEvidence::Unknown; pending.steps.len()]));
        }
        let later: Vec<&FileStep> = later.iter().flat_map(|other| &other.steps).collect();
        let survived = |step: &FileStep| executor.has_survived(step).map_err(|error| pending.step_error(&error));
        pending
            .steps
            .iter()
            .map(|step| LaterEvidence::from_later_steps(step, &later, survived))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Rolls an entry back because another program's change is in the way: that change stays, the entry's bytes are
    /// retained, and the journal records it. An unfinished entry was never acknowledged.
    fn roll_back_for_foreign_change(
        &self,
        pending: &UnfinishedEntry,
        at: usize,
        executor: &StepExecutor<'_>,
    ) -> Result<(), Error> {
        let (done, rest) = pending.steps.split_at(at);
        executor.roll_back(done, rest.first()).map_err(|error| pending.step_error(&error))?;
        self.record_amendment(pending.number, &pending.steps, "recover", &ApplyError::ForeignChange)?;
        executor.retain_staged(&pending.steps);
        executor.remove_staged(&pending.steps);
        lock_ignoring_poison(&self.unfinished_entries).remove(&pending.number);
        Ok(())
    }

    /// Records that an entry was not applied and deletes its pending steps, in one transaction.
    pub(crate) fn record_amendment(
        &self,
        number: u64,
        steps: &[FileStep],
        operation: &str,
        error: &ApplyError,
    ) -> Result<(), Error> {
        let steps = steps.to_vec();
        let mut draft =
            self.pending_system_entry(operation, format!("{{\"entry\":{number}}}"), EntryRelation::Amends(number));
        draft.entry.decision = stead_journal::EntryDecision::Failed;
        draft.entry.reason = Some(crate::commit::error_after_rollback(error).kind.code().to_owned());
        let work: TransactionBody = Box::new(move |transaction, tip| {
            store::append_entry(transaction, tip, &mut draft)?;
            crate::commit::delete_entry_effects(transaction, number, &steps)?;
            Ok(TransactionOutcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group_commit.submit(&self.store, self.durability, SyncRequirement::Now, work).map(|_| ())
    }

    /// Pending entries of other processes, and those of this one that could be neither finished nor rolled back; oldest
    /// first, without those verified as done.
    fn load_unfinished(&self) -> Result<Vec<UnfinishedEntry>, Error> {
        let mut numbers: Vec<u64> = self.store.run_query(|connection| {
            connection
                // Two ranges instead of an inequality: the index suffices, and this process's steps are skipped.
                .prepare_cached(
                    "SELECT number FROM pending INDEXED BY pending_processes WHERE process < ?1
                     UNION SELECT number FROM pending INDEXED BY pending_processes WHERE process > ?1",
                )?
                .query_map(params![self.process_id], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))?
                .collect()
        })?;
        let verified = lock_ignoring_poison(&self.verified_entries);
        numbers.retain(|number| !verified.contains(number));
        drop(verified);
        numbers.extend(lock_ignoring_poison(&self.unfinished_entries).iter());
        numbers.sort_unstable();
        numbers.into_iter().filter_map(|number| self.load_pending(number).transpose()).collect()
    }

    /// The pending steps of one entry, if any.
    fn load_pending(&self, number: u64) -> Result<Option<UnfinishedEntry>, Error> {
        let rows: Vec<(String, String)> = self.store.run_query(|connection| {
            connection
                .prepare_cached("SELECT boot, intent FROM pending WHERE number = ?1 ORDER BY step")?
                .query_map(params![to_sql_integer(number)], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })?;
        let Some(boot) = rows.first().map(|(boot, _)| boot.clone()) else { return Ok(None) };
        let steps = rows.iter().map(|(_, intent)| FileStep::from_json(intent)).collect::<Result<_, _>>()?;
        Ok(Some(UnfinishedEntry { number, boot_id: boot, steps }))
    }

    fn is_pending(&self, number: u64) -> Result<bool, Error> {
        self.store.run_query(|connection| {
            connection
                .prepare_cached("SELECT 1 FROM pending WHERE number = ?1")?
                .exists(params![to_sql_integer(number)])
        })
    }
}
