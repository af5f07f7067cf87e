//! Approvals: a person's answer to one exact plan of a call, which the call can use once. The transaction that records
//! the approved call also marks the approval as used.

use serde::{Deserialize, Serialize};
use stead_journal::Digest;

use crate::{
    approval::{
        ALLOWED_BY_OPERATOR, Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalRequest,
        ApprovalState, ApproverAndReason,
    },
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    ops::{ApprovalStateFilter, ListApprovalsArgs},
    rows::{RowBodySelection, RowFamily, RowKey, RowSelection, RowValue, RowWrite, TypedRow},
    transaction::{ClockReading, ClockSetBack, Deadline, Expectation, Transaction, TransactionDurability},
    workspace::{CommitReceipt, JournalCallRecord, Workspace},
};

/// A stored approval request with its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRow {
    pub request: ApprovalRequest,
    pub deadline: Deadline,
    pub state: ApprovalState,
    pub resolution: Option<ApproverAndReason>,
}

impl RowValue for ApprovalRow {
    const FAMILY: RowFamily = RowFamily::Approval;

    fn owner(&self) -> &str {
        &self.request.principal
    }
}

impl ApprovalRow {
    fn new(request: &ApprovalRequest, now: &ClockReading) -> Self {
        Self {
            request: request.clone(),
            deadline: Deadline::until(now, now.wall_ms.saturating_add(request.valid_for_ms)),
            state: ApprovalState::Pending,
            resolution: None,
        }
    }

    /// A request with a creation time in the future counts as expired.
    fn state_at(&self, now: &ClockReading) -> ApprovalState {
        let can_expire = match self.state {
            ApprovalState::Pending | ApprovalState::Approved | ApprovalState::Denied => true,
            ApprovalState::Used | ApprovalState::Stale | ApprovalState::Expired => false,
        };
        let is_over = can_expire && !self.deadline.is_running(now, ClockSetBack::Ends);
        if is_over { ApprovalState::Expired } else { self.state }
    }
}

impl TypedRow<ApprovalRow> {
    fn to_approval(&self, now: &ClockReading) -> Approval {
        let ApprovalRow { request, deadline, resolution, .. } = self.value.clone();
        let state = self.value.state_at(now);
        Approval {
            id: self.id.clone(),
            request,
            created_ms: deadline.starts_ms,
            expires_ms: deadline.ends_ms,
            state,
            resolution,
            used_by_entry: self.last.filter(|_| state == ApprovalState::Used).map(|stamp| stamp.entry),
        }
    }

    fn with_state(&self, state: ApprovalState) -> Result<RowWrite, Error> {
        self.write(&ApprovalRow { state, ..self.value.clone() })
    }

    fn write(&self, row: &ApprovalRow) -> Result<RowWrite, Error> {
        RowWrite::put(RowKey::Named(self.id.clone()), row, Vec::new())
    }

    fn unchanged(&self) -> Expectation {
        Expectation::Row { family: RowFamily::Approval, id: self.id.clone(), revision: self.revision }
    }
}

impl dyn Workspace + '_ {
    fn approval_row(&self, id: &str) -> Result<Option<TypedRow<ApprovalRow>>, Error> {
        self.typed_row(id, RowBodySelection::None)
    }

    /// The approval with this id, if it exists.
    pub fn approval(&self, id: &str) -> Result<Option<Approval>, Error> {
        Ok(self.approval_row(id)?.map(|row| row.to_approval(&self.now())))
    }

    /// The approvals that match a filter, sorted from the newest to the oldest.
    pub fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, Error> {
        let selection = filter.principal.clone().map_or(RowSelection::All, RowSelection::Owner);
        let rows = self.typed_rows::<ApprovalRow>(selection, RowBodySelection::None)?.rows;
        let now = self.now();
        let matches = |row: &&TypedRow<ApprovalRow>| {
            filter.call_digest.is_none_or(|call| row.value.request.call_digest == call)
                && filter.state.is_none_or(|state| row.value.state_at(&now) == state)
        };
        Ok(rows.iter().rev().filter(matches).take(filter.limit).map(|row| row.to_approval(&now)).collect())
    }

    /// Stores an approval request, unless the same request is already pending. A stored approval request for the same
    /// call with another plan becomes stale.
    pub fn request_approval(&self, request: &ApprovalRequest) -> Result<Approval, Error> {
        let (approval, _) = self.commit_rows(None, || {
            let now = self.now();
            let stored = self.typed_rows(RowSelection::Owner(request.principal.clone()), RowBodySelection::None)?;
            let mut transaction = Transaction::of_rows(TransactionDurability::Now);
            transaction.expect_family(RowFamily::Approval, stored.generation);
            if let Some(same) = find_pending(&stored.rows, request, &now)? {
                return Ok((same.to_approval(&now), transaction));
            }
            for outdated in stored.rows.iter().filter(|row| is_open_request_of(&row.value, request)) {
                transaction.rows.push(outdated.with_state(ApprovalState::Stale)?);
            }
            let value = ApprovalRow::new(request, &now);
            let id = approval_id(request, stored.generation);
            transaction.rows.push(RowWrite::put(RowKey::Named(id.clone()), &value, Vec::new())?);
            let row = TypedRow { id, revision: 0, first: None, last: None, value, bodies: Vec::new() };
            Ok((row.to_approval(&now), transaction))
        })?;
        Ok(approval)
    }

    /// Stores the answer to an approval request and records the call. The answer fails if the approval request is no
    /// longer pending.
    pub fn answer_approval(
        &self,
        answer: &ApprovalAnswer,
        record: &JournalCallRecord<'_>,
    ) -> Result<(Approval, CommitReceipt), Error> {
        let record = JournalCallRecord { approval: Some(answer.id.clone()), ..record.clone() };
        self.commit_recorded(&record, || {
            let now = self.now();
            let row = self.approval_row(&answer.id)?.ok_or_else(|| unknown_approval_error(&answer.id))?;
            let approval = row.to_approval(&now);
            if approval.state != ApprovalState::Pending {
                return Err(already_answered_error(&approval));
            }
            let state = match answer.decision {
                ApprovalDecision::Approve => ApprovalState::Approved,
                ApprovalDecision::Deny => ApprovalState::Denied,
            };
            let resolved_by = record.caller.principal.to_string();
            let resolution = Some(ApproverAndReason { resolved_by, reason: answer.reason.clone() });
            let mut transaction = Transaction::of_rows(TransactionDurability::Now);
            transaction.expect.push(row.unchanged());
            transaction.expect.push(Expectation::Running(row.value.deadline.clone(), ClockSetBack::Ends));
            let value = ApprovalRow { state, resolution: resolution.clone(), ..row.value.clone() };
            transaction.rows.push(row.write(&value)?);
            Ok((Approval { state, resolution, ..approval }, transaction))
        })
    }
}

/// Marks the approval that a successful call names as used, in the transaction that records the call.
pub(super) fn use_approval(
    workspace: &dyn Workspace,
    record: &JournalCallRecord<'_>,
    transaction: &mut Transaction<'_>,
) -> Result<(), Error> {
    let id = record.approval.as_ref().filter(|id| record.error_kind.is_none() && *id != ALLOWED_BY_OPERATOR);
    let Some(id) = id else { return Ok(()) };
    let row = workspace.approval_row(id)?;
    let state = row.as_ref().map(|row| row.value.state_at(&workspace.now()));
    let principal = record.caller.principal.to_string();
    let Some(row) =
        row.filter(|row| state == Some(ApprovalState::Approved) && row.value.request.principal == principal)
    else {
        let text =
            format!("approval {id} is {} and can no longer be used", state.map_or("gone", ApprovalState::as_str));
        return Err(Error::new(ErrorKind::ApprovalStale, text).with_next_step(NextStep::repeat()));
    };
    transaction.expect.push(row.unchanged());
    transaction.expect.push(Expectation::Running(row.value.deadline.clone(), ClockSetBack::Ends));
    transaction.rows.push(row.with_state(ApprovalState::Used)?);
    transaction.compensation.push(row.with_state(ApprovalState::Approved)?);
    Ok(())
}

/// The pending request for the same call and plan; an error if too many other requests of the principal are pending.
fn find_pending<'a>(
    rows: &'a [TypedRow<ApprovalRow>],
    request: &ApprovalRequest,
    now: &ClockReading,
) -> Result<Option<&'a TypedRow<ApprovalRow>>, Error> {
    let pending = || rows.iter().filter(|row| row.value.state_at(now) == ApprovalState::Pending);
    let is_same_call = |row: &TypedRow<ApprovalRow>| row.value.request.call_digest == request.call_digest;
    let same = pending().find(|row| is_same_call(row) && row.value.request.plan_digest == request.plan_digest);
    if same.is_none() && pending().filter(|row| !is_same_call(row)).count() >= limits::APPROVALS_PENDING_MAX {
        let text = "too many of your calls are already waiting for approval; nothing was changed";
        return Err(Error::new(ErrorKind::TooMany, text).with_next_step(
            NextStep::from("wait until a person has answered some of them")
                .or(NextStep::call(ListApprovalsArgs::default(), "see them")),
        ));
    }
    Ok(same)
}

fn is_open_request_of(row: &ApprovalRow, request: &ApprovalRequest) -> bool {
    let is_open = match row.state {
        ApprovalState::Pending | ApprovalState::Approved => true,
        ApprovalState::Denied | ApprovalState::Used | ApprovalState::Stale | ApprovalState::Expired => false,
    };
    is_open && row.request.call_digest == request.call_digest
}

/// Two requests never get the same id, because the generation differs.
fn approval_id(request: &ApprovalRequest, generation: u64) -> String {
    let digest = Digest::sha256(format!("{} {} {generation}", request.call_digest, request.plan_digest).as_bytes());
    format!("ap-{}", &digest.to_string()[..16])
}

fn list_all_approvals() -> NextStep {
    let all = ListApprovalsArgs { id: None, state: ApprovalStateFilter::All };
    NextStep::call(all, "list the requests of this workspace")
}

fn unknown_approval_error(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("this workspace has no approval request '{id}'"))
        .with_next_step(list_all_approvals())
}

fn already_answered_error(approval: &Approval) -> Error {
    Error::new(ErrorKind::Conflict, format!("approval {} is already {}", approval.id, approval.state.as_str()))
        .with_next_step(list_all_approvals().or(NextStep::repeat()))
}
