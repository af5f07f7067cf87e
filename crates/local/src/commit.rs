//! Applies a plan atomically: stages new content, records the journal entry, renames files into place, and returns a
//! receipt. The sync that writes the journal entry to disk commits the plan. Every file change of a call goes through a
//! commit. Before a commit, the engine has authorized the plan and locked its paths.

use rusqlite::{Connection, params};
use stead_engine::{
    Caller, CommitError, CommitReceipt, Error, ErrorClass, ErrorKind, JournalCallRecord, NextStep, Plan, Principal,
    RowStamp, SupervisionTier, Transaction, TransactionDurability, ops::HistoryArgs,
};
use stead_journal::{
    Digest, JournalEntry, JournalEntryCaller, JournalEntryRelation, JournaledCallOutcomeStatus, RecordedChange,
};
use stead_path::RelPath;

use crate::{
    entry_query, errors,
    file_steps::FileApplyStep,
    group_commit::{JournalAppendOutcome, TransactionBodyFn, TransactionError},
    maintenance::DEFERRED_ENTRIES_FLUSH_AT,
    open::LocalWorkspace,
    prepare::{self, PreparedPlan},
    rows,
    step_executor::{FileApplyStepExecutor, StepApplyError},
    store::{self, TransactionSyncPolicy, UnnumberedJournalEntry, execute_cached, to_sql_integer},
    usage::{self, CommitQuotaCharge},
};

impl LocalWorkspace {
    /// Commits rows, and records the call if there is one.
    pub(crate) fn commit_rows(
        &self,
        transaction: &Transaction<'_>,
        record: Option<&JournalCallRecord<'_>>,
    ) -> Result<Option<CommitReceipt>, CommitError> {
        let mut draft = record.map(|record| self.pending_entry_without_changes(record));
        if transaction.rows.is_empty() && transaction.expect.is_empty() {
            match (draft.take(), transaction.durability) {
                (None, _) => return Ok(None),
                (Some(entry), TransactionDurability::RideAlong) => {
                    self.defer_entry(entry);
                    return Ok(None);
                }
                (entry, TransactionDurability::Later | TransactionDurability::Now) => draft = entry,
            }
        }
        let sync = match transaction.durability {
            TransactionDurability::Now => TransactionSyncPolicy::Now,
            TransactionDurability::Later | TransactionDurability::RideAlong => TransactionSyncPolicy::Later,
        };
        let (expect, rows) = (transaction.expect.clone(), transaction.rows.clone());
        let (has_entry, now) = (draft.is_some(), self.clock.now());
        let body: TransactionBodyFn = Box::new(move |connection, tip| {
            if let Some(failed) = rows::find_failed_expectation(connection, &expect, &now)? {
                return Ok(JournalAppendOutcome::ExpectationFailed(failed));
            }
            let stamp = draft.as_mut().map(|draft| {
                store::append_entry(connection, tip, draft)?;
                Ok::<_, rusqlite::Error>(RowStamp { entry: tip.number, time_ms: draft.entry.time_ms })
            });
            rows::write_rows(connection, &rows, stamp.transpose()?)?;
            Ok(JournalAppendOutcome::Recorded(tip.number, tip.hash))
        });
        let (entry, hash) = self.submit(sync, body)?.into_commit_result()?;
        self.announce_entry();
        let receipt = CommitReceipt { entry, hash, trash_ids: Vec::new(), notices: Vec::new() };
        Ok(has_entry.then_some(receipt))
    }

    fn defer_entry(&self, draft: UnnumberedJournalEntry) {
        // A read succeeds even if it cannot be recorded now, for example on a full disk.
        let lost = |count| self.pending_system_entry("records_lost", format!("{{\"count\":{count}}}"));
        // While the store cannot be written, each flush fails and delays a reader, so flushes are rare.
        if self.group_commit.defer_entry(draft, lost).is_multiple_of(DEFERRED_ENTRIES_FLUSH_AT) {
            self.flush_if_possible();
        }
        self.maintenance_signal.wake();
    }

    pub(crate) fn commit_files(
        &self,
        plan: &Plan,
        transaction: &Transaction<'_>,
        record: &JournalCallRecord<'_>,
    ) -> Result<CommitReceipt, CommitError> {
        self.store.ensure_writable()?;
        let mut prepared = prepare::prepare_plan(self, plan)?;
        let changes = std::mem::take(&mut prepared.changes);
        let draft = self.pending_entry(record, changes, plan.link.clone(), prepared.bytes);
        let body = match self.record_transaction_body(draft, plan, transaction, record, &mut prepared) {
            Ok(body) => body,
            Err(error) => {
                prepared.discard_staged();
                return Err(error.into());
            }
        };
        let (number, hash) = match self.submit(TransactionSyncPolicy::Now, body) {
            Ok(outcome) => match outcome.into_commit_result() {
                Ok(recorded) => recorded,
                Err(error) => {
                    prepared.discard_staged();
                    return Err(error);
                }
            },
            Err(error) => {
                // After a failed sync the journal may or may not contain the entry. If the journal contains the entry,
                // the next open finishes the change and needs the staged files.
                match self.store.ensure_writable() {
                    Ok(()) => prepared.discard_staged(),
                    Err(_) => prepared.keep_staged(),
                }
                return Err(error.into());
            }
        };
        prepared.keep_staged();
        self.apply_or_roll_back(number, &prepared)?;
        self.mark_applied(number);
        self.announce_entry();
        self.prune_if_over_quota(record, prepared.retained.iter().map(|(_, size, _)| size).sum());
        let trash = prepared.trashed.iter().map(|item| item.id.clone()).collect();
        Ok(CommitReceipt { entry: number, hash, trash_ids: trash, notices: prepared.notices })
    }

    fn apply_or_roll_back(&self, number: u64, prepared: &PreparedPlan) -> Result<(), CommitError> {
        let read_retained = |version: &Digest| {
            let found = prepared.retained.iter().find(|(retained, _, _)| retained.0 == *version);
            found.and_then(|(_, _, bytes)| bytes.clone())
        };
        let executor = self.step_executor(&read_retained);
        let steps = &prepared.steps;
        let failing = |(at, step)| executor.apply(step).err().map(|error| (at, error));
        let (done, failed, error) = match steps.iter().enumerate().find_map(failing) {
            Some((at, error)) => (&steps[..at], steps.get(at), error),
            None => match steps.iter().find_map(|step| executor.release_replaced(step).err()) {
                Some(error) => (&steps[..], None, error),
                None => return Ok(()),
            },
        };
        let is_rolled_back = executor.roll_back(done, failed).is_ok();
        match is_rolled_back.then(|| self.record_amendment(number, steps, "amend", &error)) {
            Some(Ok(())) => {
                executor.remove_staged(steps);
                self.announce_entry();
                Err(CommitError::RecordedThenFailed(error_after_rollback(&error)))
            }
            None | Some(Err(_)) => {
                // The entry stays pending until the next process that locks these paths finishes it.
                store::lock_ignoring_poison(&self.unfinished_entries).insert(number);
                Err(CommitError::RecordedThenFailed(unfinished_steps_error()))
            }
        }
    }

    pub(crate) fn step_executor<'a>(
        &'a self,
        read_retained: &'a dyn Fn(&Digest) -> Option<Vec<u8>>,
    ) -> FileApplyStepExecutor<'a> {
        FileApplyStepExecutor {
            root: &self.root,
            state: &self.state,
            trash: self.trash_directory.as_directory(),
            read_retained,
        }
    }

    fn record_transaction_body(
        &self,
        mut draft: UnnumberedJournalEntry,
        plan: &Plan,
        transaction: &Transaction<'_>,
        record: &JournalCallRecord<'_>,
        prepared: &mut PreparedPlan,
    ) -> Result<TransactionBodyFn, Error> {
        let intents = prepared.steps.iter().map(FileApplyStep::to_json).collect::<Result<Vec<_>, _>>()?;
        let retained = prepared.retained.clone();
        let trashed = prepared.trashed.clone();
        let restored = prepared.restored.clone();
        let key = record.idempotency_key.map(str::to_owned);
        let agent = i64::from(matches!(record.caller.principal, Principal::Agent(_)));
        let (process, now) = (self.process_id.clone(), self.clock.now());
        let Transaction { expect, rows, compensation, .. } = transaction.clone();
        let reservation = record.quota.map(|quota| CommitQuotaCharge::new(plan, quota, &record.caller.principal));
        Ok(Box::new(move |transaction, tip| {
            if let Some(key) = &key
                && let Some(number) = entry_query::entry_with_key(transaction, &draft.entry.caller.principal, key)?
            {
                return Ok(JournalAppendOutcome::Replayed(number));
            }
            if let Some(failed) = rows::find_failed_expectation(transaction, &expect, &now)? {
                return Ok(JournalAppendOutcome::ExpectationFailed(failed));
            }
            let checked = reservation.as_ref().map(|reservation| reservation.check_quota(transaction)).transpose()?;
            draft.entry.details.usage_before = checked.map(|(_, usage)| usage);
            store::append_entry(transaction, tip, &mut draft)?;
            if let (Some(reservation), Some((last, _))) = (&reservation, checked) {
                reservation.advance_count(transaction, last, draft.entry.number)?;
            }
            let number = to_sql_integer(draft.entry.number);
            let stamp = RowStamp { entry: draft.entry.number, time_ms: draft.entry.time_ms };
            rows::write_rows(transaction, &rows, Some(stamp))?;
            rows::write_compensation(transaction, draft.entry.number, compensation)?;
            for (step, intent) in intents.iter().enumerate() {
                let values = params![number, to_sql_integer(step as u64), process, now.boot_id, intent];
                execute_cached(transaction, "INSERT INTO pending VALUES (?1, ?2, ?3, ?4, ?5)", values)?;
            }
            for (version, size, bytes) in &retained {
                let sql = "INSERT INTO kept VALUES (?1, ?2, ?3, ?4, ?5)
                           ON CONFLICT (version) DO UPDATE SET number = ?4, agent = min(agent, ?5)";
                let values = params![version.0.as_bytes().as_slice(), to_sql_integer(*size), bytes, number, agent];
                execute_cached(transaction, sql, values)?;
            }
            for item in &trashed {
                item.insert(transaction, &draft.entry)?;
            }
            for id in &restored {
                transaction.execute("UPDATE trash SET state = 1 WHERE id = ?1", params![id])?;
            }
            Ok(JournalAppendOutcome::Recorded(tip.number, tip.hash))
        }))
    }

    pub(crate) fn pending_entry_without_changes(&self, record: &JournalCallRecord<'_>) -> UnnumberedJournalEntry {
        self.pending_entry(record, Vec::new(), JournalEntryRelation::None, 0)
    }

    fn pending_entry(
        &self,
        record: &JournalCallRecord<'_>,
        changes: Vec<RecordedChange>,
        relation: JournalEntryRelation,
        bytes: u64,
    ) -> UnnumberedJournalEntry {
        let decision = match record.error_kind.map(ErrorKind::class) {
            None => JournaledCallOutcomeStatus::Allowed,
            Some(ErrorClass::Refused) => JournaledCallOutcomeStatus::Refused,
            Some(ErrorClass::StateMismatch | ErrorClass::SystemFailure) => JournaledCallOutcomeStatus::Failed,
        };
        let caller = journal_entry_caller(record.caller);
        let entry = JournalEntry {
            time_ms: self.clock.now().wall_ms,
            caller,
            operation: record.operation.to_owned(),
            arguments: record.caller_arguments.clone(),
            request_id: record.idempotency_key.map(str::to_owned),
            tool: record.tool.map(str::to_owned),
            decision,
            reason: record.error_kind.map(|kind| kind.code().to_owned()),
            policy_version: record.policy_version,
            tier: (record.policy_tier != SupervisionTier::Autonomous).then(|| record.policy_tier.as_str().to_owned()),
            approval: record.approval.clone(),
            changes,
            relation,
            bytes: bytes.max(record.bytes),
            duration_us: u64::try_from(record.started.elapsed().as_micros()).unwrap_or(u64::MAX),
            details: record.details.clone(),
            ..JournalEntry::default()
        };
        UnnumberedJournalEntry { entry, requested_paths: record.paths.clone() }
    }

    /// The entry of a call that administers, which the storage writes together with its rows.
    pub(crate) fn pending_administration_entry(
        &self,
        by: &Caller,
        operation: &str,
        arguments: String,
    ) -> UnnumberedJournalEntry {
        let mut draft = self.pending_system_entry(operation, arguments);
        draft.entry.caller = journal_entry_caller(by);
        draft
    }

    pub(crate) fn pending_system_entry(&self, operation: &str, arguments: String) -> UnnumberedJournalEntry {
        let caller = JournalEntryCaller {
            principal: Principal::System.to_string(),
            session: self.process_id.clone(),
            protocol: "server".to_owned(),
            ..JournalEntryCaller::default()
        };
        let (time_ms, operation) = (self.clock.now().wall_ms, operation.to_owned());
        let policy_version = self.policy_version();
        let entry = JournalEntry { time_ms, caller, operation, arguments, policy_version, ..JournalEntry::default() };
        UnnumberedJournalEntry { entry, requested_paths: Vec::new() }
    }
}

fn journal_entry_caller(caller: &Caller) -> JournalEntryCaller {
    JournalEntryCaller {
        principal: caller.principal.to_string(),
        on_behalf_of: caller.on_behalf_of.as_ref().map(ToString::to_string),
        session: caller.session.clone(),
        protocol: caller.protocol.to_owned(),
    }
}

fn unfinished_steps_error() -> Error {
    Error::new(ErrorKind::Io, "the change could not be completed; the server will finish it later")
        .with_next_step(NextStep::call(HistoryArgs::default(), "see whether the change was made"))
}

pub(crate) fn error_after_rollback(cause: &StepApplyError) -> Error {
    match cause {
        StepApplyError::ForeignChange => {
            Error::new(ErrorKind::Conflict, "the path changed during the commit; nothing was written")
                .with_next_step(NextStep::from("read it again").then(NextStep::repeat()))
        }
        StepApplyError::Disk(error) => errors::error_at_path(&RelPath::root(), *error),
    }
}

/// A rollback keeps the journal entry and reverts the other database rows of the entry's transaction. The entry that
/// records the rollback reverts the index rows.
pub(crate) fn delete_entry_effects(
    transaction: &Connection,
    number: u64,
    stamp: RowStamp,
    steps: &[FileApplyStep],
) -> Result<(), TransactionError> {
    rows::take_back_rows(transaction, number, stamp)?;
    let number = to_sql_integer(number);
    transaction.execute("DELETE FROM pending WHERE number = ?1", params![number])?;
    usage::subtract_rolled_back_usage(transaction, number)?;
    for step in steps {
        if let FileApplyStep::Remove { trash, .. } = step {
            transaction.execute("DELETE FROM trash WHERE id = ?1", params![trash])?;
        } else if let FileApplyStep::Restore { trash, .. } = step {
            transaction.execute("UPDATE trash SET state = 0 WHERE id = ?1", params![trash])?;
        }
    }
    Ok(())
}
