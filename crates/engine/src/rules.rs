//! The rules about rows: which leases, approvals, sessions, buffers and watches may be written, and when they end.
//!
//! A rule reads the rows of a family at a generation, decides, and returns a transaction that expects this generation.
//! If another commit was faster, the rule decides again. No rule is in the storage.

pub(crate) mod approval;
pub(crate) mod buffer;
pub(crate) mod lease;
pub(crate) mod session;
pub(crate) mod watch;

use crate::{
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    plan::Plan,
    rows::RowFamily,
    transaction::{FailedExpectation, Transaction, TransactionDurability},
    workspace::{CommitError, CommitReceipt, JournalCallRecord, Workspace},
};

impl dyn Workspace + '_ {
    /// Applies a plan atomically and records the call. The caller of `commit` must hold the locks of the plan's paths.
    pub fn commit(&self, plan: &Plan, record: &JournalCallRecord<'_>) -> Result<CommitReceipt, CommitError> {
        for _ in 0..limits::REPLAN_ATTEMPTS_MAX {
            let mut transaction = Transaction::of_files(plan);
            approval::use_approval(self, record, &mut transaction)?;
            buffer::follow_plan(self, &plan.buffers, &mut transaction)?;
            match self.commit_transaction(&transaction, Some(record)) {
                Ok(receipt) => return receipt.ok_or_else(|| not_recorded_error().into()),
                Err(CommitError::ExpectationFailed(FailedExpectation::Row(
                    RowFamily::Approval | RowFamily::Buffer,
                    _,
                ))) => {}
                Err(error) => return Err(error),
            }
        }
        Err(rows_keep_changing_error().into())
    }

    /// Records in the journal a call that changed nothing.
    pub fn record_call(&self, record: &JournalCallRecord<'_>) -> Result<(), Error> {
        let durability = match record.error_kind {
            None => TransactionDurability::RideAlong,
            Some(_) => TransactionDurability::Later,
        };
        self.commit_rows(Some(record), || {
            let mut transaction = Transaction::of_rows(durability);
            approval::use_approval(self, record, &mut transaction)?;
            if !transaction.rows.is_empty() {
                transaction.durability = TransactionDurability::Now;
            }
            Ok(((), transaction))
        })
        .map(drop)
    }

    /// Commits the rows that `decide` returns; if another commit was faster, `decide` is called again.
    fn commit_rows<T>(
        &self,
        record: Option<&JournalCallRecord<'_>>,
        decide: impl Fn() -> Result<(T, Transaction<'static>), Error>,
    ) -> Result<(T, Option<CommitReceipt>), Error> {
        for _ in 0..limits::REPLAN_ATTEMPTS_MAX {
            let (value, transaction) = decide()?;
            if record.is_none() && transaction.rows.is_empty() {
                return Ok((value, None));
            }
            match self.commit_transaction(&transaction, record) {
                Ok(receipt) => return Ok((value, receipt)),
                Err(CommitError::ExpectationFailed(_)) => {}
                Err(CommitError::KeyAlreadyUsed(_)) => return Err(not_recorded_error()),
                Err(CommitError::Failed(error) | CommitError::RecordedThenFailed(error)) => return Err(error),
            }
        }
        Err(rows_keep_changing_error())
    }

    /// Commits rows together with the journal entry of a call.
    fn commit_recorded<T>(
        &self,
        record: &JournalCallRecord<'_>,
        decide: impl Fn() -> Result<(T, Transaction<'static>), Error>,
    ) -> Result<(T, CommitReceipt), Error> {
        let (value, receipt) = self.commit_rows(Some(record), decide)?;
        Ok((value, receipt.ok_or_else(not_recorded_error)?))
    }
}

fn not_recorded_error() -> Error {
    Error::new(ErrorKind::AuditUnavailable, "the call could not be recorded in the journal; nothing was changed")
        .with_next_step(NextStep::repeat())
}

fn rows_keep_changing_error() -> Error {
    Error::new(ErrorKind::Busy, "other calls keep changing the same state; nothing was changed")
        .with_next_step(NextStep::repeat())
}
