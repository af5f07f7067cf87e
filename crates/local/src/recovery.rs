//! Recovery finishes the pending journal entries of dead processes; it can be killed at any point and run again. A step
//! that was done before the crash stays done, even if its path changed afterwards; the remaining steps are applied. If
//! another program's change blocks a pending entry, recovery rolls the whole entry back and records the rollback.
//!
//! A power cut can lose a step and keep later steps, so the later steps show whether a step was done
//! ([`RecoveryLaterStepEvidence`]).

use std::time::Instant;

use rusqlite::{Row, params};
use stead_disk::DiskError;
use stead_engine::{Error, RowStamp, Version};
use stead_journal::{Digest, JournalEntryRelation, JournaledCallOutcomeStatus};
use stead_path::RelPath;

use crate::{
    commit::{delete_entry_effects, error_after_rollback},
    errors,
    file_steps::{FileApplyStep, FileWriteStep, ReplacedFileRecord, StoredInodeId},
    group_commit::{JournalAppendOutcome, TransactionBodyFn},
    open::LocalWorkspace,
    path_locks,
    redo_steps::BootComparison,
    step_executor::{FileApplyStepExecutor, StepApplyError},
    store::{self, TransactionSyncPolicy, lock_ignoring_poison, number_at, to_sql_integer},
};

/// The work that recovery did when a workspace was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The number of pending journal entries that recovery checked.
    pub entries: u64,
    /// The number of steps of pending journal entries that recovery applied.
    pub redone_steps: u64,
    /// The number of pending entries that recovery rolled back because another program had changed a path.
    pub conflicts: u64,
}

pub(crate) struct UnfinishedJournalEntry {
    number: u64,
    boot_id: String,
    steps: Vec<FileApplyStep>,
}

impl UnfinishedJournalEntry {
    fn paths(&self) -> Vec<RelPath> {
        self.steps.iter().flat_map(FileApplyStep::paths).cloned().collect()
    }

    /// The error of a recovery step names the first path of the journal entry, because the failed file may be in the
    /// trash.
    fn step_error(&self, error: DiskError) -> Error {
        let path = self.steps.iter().flat_map(FileApplyStep::paths).next().cloned();
        errors::error_at_path(&path.unwrap_or_default(), error)
    }

    /// The directories that a pending entry creates are shared with concurrent calls; all its other paths are
    /// exclusive. If a journal entry only creates directories, the created directories are exclusive paths.
    fn exclusive_and_shared_paths(&self) -> (Vec<RelPath>, Vec<RelPath>) {
        let (created, own): (Vec<&FileApplyStep>, Vec<&FileApplyStep>) =
            self.steps.iter().partition(|step| matches!(step, FileApplyStep::MakeDirectory { .. }));
        let paths_of = |steps: Vec<&FileApplyStep>| -> Vec<RelPath> {
            steps.into_iter().flat_map(FileApplyStep::paths).cloned().collect()
        };
        if own.is_empty() { (paths_of(created), Vec::new()) } else { (paths_of(own), paths_of(created)) }
    }

    fn overlaps_any(&self, paths: &[RelPath]) -> bool {
        let near = |own_path: &RelPath| paths.iter().any(|path| own_path.overlaps(path));
        self.steps.iter().flat_map(FileApplyStep::paths).any(near)
    }
}

impl LocalWorkspace {
    /// Recovery skips pending entries whose paths are locked.
    pub(crate) fn recover_pending(&self) -> Result<RecoveryReport, Error> {
        let mut report = RecoveryReport::default();
        let unfinished = self.load_unfinished()?;
        for (at, pending) in unfinished.iter().enumerate() {
            // A live process keeps its paths locked until its steps are done.
            if let Some(_guard) = self.locks.try_lock(path_locks::path_slots(&pending.paths()))? {
                self.finish_entry(pending, &unfinished[at + 1..], &mut report)?;
            }
        }
        Ok(report)
    }

    pub(crate) fn unfinished_near(&self, paths: &[RelPath]) -> Result<Vec<UnfinishedJournalEntry>, Error> {
        let mut unfinished = self.load_unfinished()?;
        unfinished.retain(|pending| pending.overlaps_any(paths));
        Ok(unfinished)
    }

    pub(crate) fn finish_entries(&self, unfinished: &[UnfinishedJournalEntry], deadline: Instant) -> Result<(), Error> {
        for (at, pending) in unfinished.iter().enumerate() {
            let _guard = self.locks.lock(path_locks::path_slots(&pending.paths()), deadline)?;
            self.finish_entry(pending, &unfinished[at + 1..], &mut RecoveryReport::default())?;
        }
        Ok(())
    }

    fn finish_entry(
        &self,
        pending: &UnfinishedJournalEntry,
        later: &[UnfinishedJournalEntry],
        report: &mut RecoveryReport,
    ) -> Result<(), Error> {
        // Another process may have finished the entry before this process got the locks.
        if !self.is_pending(pending.number)? {
            return Ok(());
        }
        let read_retained = |version: &Digest| self.load_retained_bytes(&Version(*version)).ok().flatten();
        let executor = self.step_executor(&read_retained);
        let boot =
            if pending.boot_id == self.clock.now().boot_id { BootComparison::Same } else { BootComparison::Other };
        report.entries += 1;
        if let Some(evidence) = self.later_evidence(pending, later, &executor, boot)? {
            let redone = executor.redo_steps(&pending.steps, boot, &evidence);
            match redone.map_err(|error| pending.step_error(error))? {
                Ok(redone) => report.redone_steps += redone,
                Err(blocked) => {
                    report.conflicts += 1;
                    return self.roll_back_for_foreign_change(pending, blocked, &executor);
                }
            }
        }
        lock_ignoring_poison(&self.unfinished_entries).remove(&pending.number);
        lock_ignoring_poison(&self.verified_entries).insert(pending.number);
        self.mark_applied(pending.number);
        Ok(())
    }

    /// Without a reboot, a later change of a pending entry's paths proves that all steps of the entry were done. A call
    /// can change a path only after earlier journal entries about the path are finished.
    fn later_evidence<'a>(
        &self,
        pending: &UnfinishedJournalEntry,
        later: &'a [UnfinishedJournalEntry],
        executor: &FileApplyStepExecutor<'_>,
        boot: BootComparison,
    ) -> Result<Option<Vec<RecoveryLaterStepEvidence<'a>>>, Error> {
        if boot == BootComparison::Same {
            let (own, shared) = pending.exclusive_and_shared_paths();
            let is_done =
                self.changed_after(pending.number, &own)? || self.directory_removed_after(pending.number, &shared)?;
            return Ok((!is_done).then(|| vec![RecoveryLaterStepEvidence::Unknown; pending.steps.len()]));
        }
        let later: Vec<&FileApplyStep> = later.iter().flat_map(|other| &other.steps).collect();
        let survived = |step: &FileApplyStep| executor.has_survived(step).map_err(|error| pending.step_error(error));
        pending
            .steps
            .iter()
            .map(|step| RecoveryLaterStepEvidence::from_later_steps(step, &later, survived))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// After a rollback, the other program's change stays, and the new content of the rolled-back entry is retained.
    /// The caller of a rolled-back entry was never told that the call succeeded.
    fn roll_back_for_foreign_change(
        &self,
        pending: &UnfinishedJournalEntry,
        at: usize,
        executor: &FileApplyStepExecutor<'_>,
    ) -> Result<(), Error> {
        let (done, rest) = pending.steps.split_at(at);
        executor.roll_back(done, rest.first()).map_err(|error| pending.step_error(error))?;
        self.record_amendment(pending.number, &pending.steps, "recover", &StepApplyError::ForeignChange)?;
        executor.retain_staged(&pending.steps);
        executor.remove_staged(&pending.steps);
        lock_ignoring_poison(&self.unfinished_entries).remove(&pending.number);
        Ok(())
    }

    /// A rollback is recorded and the pending steps are deleted in one transaction.
    pub(crate) fn record_amendment(
        &self,
        number: u64,
        steps: &[FileApplyStep],
        operation: &str,
        error: &StepApplyError,
    ) -> Result<(), Error> {
        let steps = steps.to_vec();
        let mut draft = self.pending_system_entry(operation, format!("{{\"entry\":{number}}}"));
        draft.entry.relation = JournalEntryRelation::Amends(number);
        draft.entry.decision = JournaledCallOutcomeStatus::Failed;
        draft.entry.reason = Some(error_after_rollback(error).kind.code().to_owned());
        let body: TransactionBodyFn = Box::new(move |transaction, tip| {
            store::append_entry(transaction, tip, &mut draft)?;
            let stamp = RowStamp { entry: tip.number, time_ms: draft.entry.time_ms };
            delete_entry_effects(transaction, number, stamp, &steps)?;
            Ok(JournalAppendOutcome::Recorded(tip.number, tip.hash))
        });
        self.submit(TransactionSyncPolicy::Now, body).map(drop)
    }

    /// Loads the unfinished journal entries of other processes, and those that this process could not finish, oldest
    /// first.
    fn load_unfinished(&self) -> Result<Vec<UnfinishedJournalEntry>, Error> {
        // The query uses two ranges instead of `<>`, so that the index suffices and this process's rows are not read.
        let sql = "SELECT number FROM pending INDEXED BY pending_processes WHERE process < ?1
                   UNION SELECT number FROM pending INDEXED BY pending_processes WHERE process > ?1";
        let mut numbers = self.store.query_rows(sql, params![self.process_id], |row| number_at(row, 0))?;
        let verified = lock_ignoring_poison(&self.verified_entries);
        numbers.retain(|number| !verified.contains(number));
        drop(verified);
        numbers.extend(lock_ignoring_poison(&self.unfinished_entries).iter());
        numbers.sort_unstable();
        numbers.into_iter().filter_map(|number| self.load_pending(number).transpose()).collect()
    }

    fn load_pending(&self, number: u64) -> Result<Option<UnfinishedJournalEntry>, Error> {
        let sql = "SELECT boot, intent FROM pending WHERE number = ?1 ORDER BY step";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let rows: Vec<(String, String)> = self.store.query_rows(sql, params![to_sql_integer(number)], read)?;
        let Some(boot) = rows.first().map(|(boot, _)| boot.clone()) else { return Ok(None) };
        let steps = rows.iter().map(|(_, intent)| FileApplyStep::from_json(intent)).collect::<Result<_, _>>()?;
        Ok(Some(UnfinishedJournalEntry { number, boot_id: boot, steps }))
    }

    fn is_pending(&self, number: u64) -> Result<bool, Error> {
        self.store.has_row("SELECT 1 FROM pending WHERE number = ?1", params![to_sql_integer(number)])
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RecoveryLaterStepEvidence<'a> {
    Unknown,
    /// A later step used the path of a step, so the earlier step was done.
    Superseded,
    /// A later step put a file at the old path of a move, so recovery must keep the file at the old path.
    OldPathReused,
    /// A later step replaced a moved file at the new path of the file.
    Replaced(&'a ReplacedFileRecord),
}

impl<'a> RecoveryLaterStepEvidence<'a> {
    pub(crate) fn from_later_steps<E>(
        step: &FileApplyStep,
        later: &[&'a FileApplyStep],
        has_survived: impl Fn(&FileApplyStep) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let mut is_superseded = false;
        for other in later.iter().filter(|other| proves_outcome_of(other, step)) {
            if !has_survived(other)? {
                continue;
            }
            if reuses_old_path(other, step) {
                return Ok(Self::OldPathReused);
            }
            is_superseded = true;
        }
        if !is_superseded {
            return Ok(Self::Unknown);
        }
        // The file that replaced the moved file may itself have been replaced, so it need not have survived.
        let replaced = later.iter().find_map(|other| file_replaced_by(other, step));
        Ok(replaced.map_or(Self::Superseded, Self::Replaced))
    }
}

/// A later step proves that an earlier step was done only if the power cut did not undo the later step.
fn proves_outcome_of(later: &FileApplyStep, step: &FileApplyStep) -> bool {
    match later {
        FileApplyStep::Put(_)
        | FileApplyStep::Move { .. }
        | FileApplyStep::Remove { .. }
        | FileApplyStep::Restore { .. } => {}
        // A missing directory proves only that the directories below it were created and removed.
        FileApplyStep::RemoveDirectory { path: gone, .. } => {
            return matches!(step, FileApplyStep::MakeDirectory { path, .. } if path.0.is_within(&gone.0));
        }
        FileApplyStep::MakeDirectory { .. } | FileApplyStep::MakeLink { .. } => return false,
    }
    match step {
        // A file that was moved out of or into a directory does not prove that the directory's own name survived.
        FileApplyStep::MakeDirectory { path, .. } => {
            removed_file(later).is_some_and(|(gone, _)| path.0.is_within(gone))
        }
        FileApplyStep::Put(FileWriteStep { path, .. }) | FileApplyStep::MakeLink { path, .. } => {
            later.paths().iter().any(|later_path| path.0.is_within(later_path))
        }
        FileApplyStep::Move { .. }
        | FileApplyStep::Remove { .. }
        | FileApplyStep::RemoveDirectory { .. }
        | FileApplyStep::Restore { .. } => {
            let places = later.paths();
            step.paths().iter().any(|later_path| places.iter().any(|other| later_path.overlaps(other)))
        }
    }
}

/// Whether the step `later` put a file at the old path of the file that `step` moved away. A later move or restore
/// reuses an old path only if it brought the same file back to the path.
fn reuses_old_path(later: &FileApplyStep, step: &FileApplyStep) -> bool {
    let Some((old, id)) = removed_file(step) else { return false };
    match later {
        FileApplyStep::Put(put) => put.path.0.is_within(old),
        FileApplyStep::Move { .. } | FileApplyStep::Restore { .. } => placed_file(later) == Some((old, id)),
        FileApplyStep::MakeDirectory { .. }
        | FileApplyStep::MakeLink { .. }
        | FileApplyStep::Remove { .. }
        | FileApplyStep::RemoveDirectory { .. } => false,
    }
}

fn removed_file(step: &FileApplyStep) -> Option<(&RelPath, StoredInodeId)> {
    let (FileApplyStep::Move { from: path, id, .. } | FileApplyStep::Remove { path, id, .. }) = step else {
        return None;
    };
    Some((&path.0, *id))
}

fn placed_file(step: &FileApplyStep) -> Option<(&RelPath, StoredInodeId)> {
    let (FileApplyStep::Move { to: path, id, .. } | FileApplyStep::Restore { path, id, .. }) = step else {
        return None;
    };
    Some((&path.0, *id))
}

fn file_replaced_by<'a>(later: &'a FileApplyStep, step: &FileApplyStep) -> Option<&'a ReplacedFileRecord> {
    let (FileApplyStep::Put(FileWriteStep { path, over, .. }) | FileApplyStep::Move { to: path, over, .. }) = later
    else {
        return None;
    };
    over.as_ref().filter(|over| placed_file(step) == Some((&path.0, over.id)))
}
