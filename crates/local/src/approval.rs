//! Stores requests for approval and the answers to these requests. An approval can be used once: the transaction that
//! records the approved call also marks the approval as used.

use rusqlite::{Connection, Row, params};
use stead_engine::{
    ALLOWED_BY_OPERATOR, Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalRequest, ApprovalState,
    ApproverAndReason, CommitReceipt, Error, ErrorKind, JournalCallRecord, NextStep, limits,
    ops::{ApprovalStateFilter, ListApprovalsArgs},
};

use crate::{
    group_commit::TransactionError,
    open::LocalWorkspace,
    options::ClockReading,
    store::{TransactionSyncPolicy, digest_at, execute_cached, query_optional, to_sql_integer},
    token::random_name,
};

const APPROVAL_COLUMNS: &str = "id, principal, session, operation, tool, call, plan, shown, why, policy, created_ms, \
                       expires_ms, created_uptime_ms, boot, state, answered_by, reason, used";

impl LocalWorkspace {
    pub(crate) fn insert_approval_request(&self, request: &ApprovalRequest) -> Result<Approval, Error> {
        let id = random_name("ap-")?;
        let now = self.clock.now();
        self.store.run_transaction(TransactionSyncPolicy::Now, self.durability, |transaction| {
            insert_request(transaction, request, &id, &now)
        })?
    }

    pub(crate) fn record_approval_answer(
        &self,
        answer: &ApprovalAnswer,
        record: &JournalCallRecord<'_>,
    ) -> Result<(Approval, CommitReceipt), Error> {
        let mut draft = self.pending_entry_without_changes(record);
        draft.entry.approval = Some(answer.id.clone());
        let (now, by, answer) = (self.clock.now(), record.caller.principal.to_string(), answer.clone());
        self.append_with_result(draft, TransactionSyncPolicy::Now, move |transaction, append| {
            let unknown = || {
                Error::new(ErrorKind::NotFound, format!("this workspace has no approval request '{}'", answer.id))
                    .with_next_step(NextStep::call(
                        ListApprovalsArgs { id: None, state: ApprovalStateFilter::All },
                        "list the requests of this workspace",
                    ))
            };
            let approval = load_approval(transaction, &answer.id, &now)?.ok_or_else(unknown)?;
            if approval.state != ApprovalState::Pending {
                return Err(already_answered(&approval).into());
            }
            append()?;
            let state = match answer.decision {
                ApprovalDecision::Approve => ApprovalState::Approved,
                ApprovalDecision::Deny => ApprovalState::Denied,
            };
            transaction.execute(
                "UPDATE approvals SET state = ?2, answered_by = ?3, reason = ?4 WHERE id = ?1",
                params![answer.id, state_number(state), by, answer.reason],
            )?;
            Ok(load_approval(transaction, &answer.id, &now)?)
        })
    }

    pub(crate) fn approval_use(&self, record: &JournalCallRecord<'_>) -> ApprovalToConsume {
        let id = record.approval.clone().filter(|id| record.error_kind.is_none() && id != ALLOWED_BY_OPERATOR);
        ApprovalToConsume { id, principal: record.caller.principal.to_string(), now: self.clock.now() }
    }
}

pub(crate) struct ApprovalToConsume {
    id: Option<String>,
    principal: String,
    now: ClockReading,
}

impl ApprovalToConsume {
    pub(crate) fn is_needed(&self) -> bool {
        self.id.is_some()
    }

    pub(crate) fn check_usable(&self, connection: &Connection) -> Result<(), TransactionError> {
        let Some(id) = &self.id else { return Ok(()) };
        let approval = load_approval(connection, id, &self.now)?;
        let is_usable = approval.as_ref().is_some_and(|approval| {
            approval.state == ApprovalState::Approved && approval.request.principal == self.principal
        });
        if is_usable {
            return Ok(());
        }
        let state = approval.map_or("gone", |approval| approval.state.as_str());
        let text = format!("approval {id} is {state} and can no longer be used");
        Err(Error::new(ErrorKind::ApprovalStale, text).with_next_step(NextStep::repeat()))?
    }

    pub(crate) fn consume(&self, connection: &Connection, number: u64) -> rusqlite::Result<()> {
        if let Some(id) = &self.id {
            let values = params![id, state_number(ApprovalState::Used), to_sql_integer(number)];
            connection.execute("UPDATE approvals SET state = ?2, used = ?3 WHERE id = ?1", values)?;
        }
        Ok(())
    }
}

/// The rollback of a journal entry makes the approval that the entry used available again.
pub(crate) fn release_approval(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    let values = params![number, state_number(ApprovalState::Approved)];
    execute_cached(connection, "UPDATE approvals SET state = ?2, used = NULL WHERE used = ?1", values)
}

fn already_answered(approval: &Approval) -> Error {
    Error::new(ErrorKind::Conflict, format!("approval {} is already {}", approval.id, approval.state.as_str()))
        .with_next_step(
            NextStep::call(
                ListApprovalsArgs { id: None, state: ApprovalStateFilter::All },
                "list the requests of this workspace",
            )
            .or(NextStep::repeat()),
        )
}

pub(crate) fn load_approval(
    connection: &Connection,
    id: &str,
    now: &ClockReading,
) -> rusqlite::Result<Option<Approval>> {
    let sql = format!("SELECT {APPROVAL_COLUMNS} FROM approvals WHERE id = ?1");
    query_optional(connection, &sql, params![id], |row| approval_from_row(row, now))
}

pub(crate) fn select_approvals(
    connection: &Connection,
    filter: &ApprovalFilter,
    now: &ClockReading,
) -> rusqlite::Result<Vec<Approval>> {
    let text = format!(
        "SELECT {APPROVAL_COLUMNS} FROM approvals WHERE (?1 IS NULL OR principal = ?1) AND (?2 IS NULL OR call = ?2)
         ORDER BY rowid DESC"
    );
    let call = filter.call_digest.map(|call| call.as_bytes().to_vec());
    let mut statement = connection.prepare_cached(&text)?;
    let mut found = Vec::new();
    for row in statement.query_map(params![filter.principal, call], |row| approval_from_row(row, now))? {
        let row = row?;
        if filter.state.is_none_or(|state| row.state == state) {
            found.push(row);
        }
        if found.len() >= filter.limit {
            break;
        }
    }
    Ok(found)
}

/// A second request for approval of the same call and plan returns the pending first request.
fn insert_request(
    connection: &Connection,
    request: &ApprovalRequest,
    id: &str,
    now: &ClockReading,
) -> rusqlite::Result<Result<Approval, Error>> {
    let pending = ApprovalFilter {
        principal: Some(request.principal.clone()),
        call_digest: None,
        state: Some(ApprovalState::Pending),
        limit: limits::APPROVALS_PENDING_MAX + 1,
    };
    let pending = select_approvals(connection, &pending, now)?;
    if let Some(same) = pending.iter().find(|other| {
        other.request.call_digest == request.call_digest && other.request.plan_digest == request.plan_digest
    }) {
        return Ok(Ok(same.clone()));
    }
    let other_calls = pending.iter().filter(|other| other.request.call_digest != request.call_digest).count();
    if other_calls >= limits::APPROVALS_PENDING_MAX {
        return Ok(Err(Error::new(
            ErrorKind::TooMany,
            "too many of your calls are already waiting for approval; nothing was changed",
        )
        .with_next_step(
            NextStep::from("wait until a person has answered some of them")
                .or(NextStep::call(ListApprovalsArgs::default(), "see them")),
        )));
    }
    connection.execute(
        "UPDATE approvals SET state = ?3 WHERE principal = ?1 AND call = ?2 AND state IN (?4, ?5)",
        params![
            request.principal,
            request.call_digest.as_bytes().as_slice(),
            state_number(ApprovalState::Stale),
            state_number(ApprovalState::Pending),
            state_number(ApprovalState::Approved),
        ],
    )?;
    connection.execute(
        &format!(
            "INSERT INTO approvals ({APPROVAL_COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, NULL, NULL, NULL)"
        ),
        params![
            id,
            request.principal,
            request.session,
            request.operation,
            request.tool,
            request.call_digest.as_bytes().as_slice(),
            request.plan_digest.as_bytes().as_slice(),
            request.plan_preview,
            request.reason,
            format!("{:016x}", request.policy_version),
            now.wall_ms,
            now.wall_ms.saturating_add(request.valid_for_ms),
            now.uptime_ms,
            now.boot_id,
            state_number(ApprovalState::Pending),
        ],
    )?;
    let stored = load_approval(connection, id, now)?;
    Ok(stored.ok_or_else(|| {
        Error::new(
            ErrorKind::AuditUnavailable,
            "internal error: the approval request was not stored; nothing was changed",
        )
        .with_next_step(NextStep::repeat())
    }))
}

fn approval_from_row(row: &Row<'_>, now: &ClockReading) -> rusqlite::Result<Approval> {
    let malformed = || rusqlite::Error::InvalidQuery;
    let (created_ms, expires_ms): (i64, i64) = (row.get("created_ms")?, row.get("expires_ms")?);
    let (uptime_ms, boot): (i64, String) = (row.get("created_uptime_ms")?, row.get("boot")?);
    let stored = state_from_number(row.get("state")?).ok_or_else(malformed)?;
    let policy: String = row.get("policy")?;
    let by: Option<String> = row.get("answered_by")?;
    let reason: Option<String> = row.get("reason")?;
    let expired = is_expired(now, created_ms, expires_ms, uptime_ms, &boot);
    let state = match stored {
        ApprovalState::Pending | ApprovalState::Approved | ApprovalState::Denied if expired => ApprovalState::Expired,
        ApprovalState::Pending
        | ApprovalState::Approved
        | ApprovalState::Denied
        | ApprovalState::Used
        | ApprovalState::Stale
        | ApprovalState::Expired => stored,
    };
    let request = ApprovalRequest {
        principal: row.get("principal")?,
        session: row.get("session")?,
        operation: row.get("operation")?,
        tool: row.get("tool")?,
        call_digest: digest_at(row, "call")?,
        plan_digest: digest_at(row, "plan")?,
        plan_preview: row.get("shown")?,
        reason: row.get("why")?,
        policy_version: u64::from_str_radix(&policy, 16).map_err(|_| malformed())?,
        valid_for_ms: expires_ms.saturating_sub(created_ms),
    };
    Ok(Approval {
        id: row.get("id")?,
        request,
        created_ms,
        expires_ms,
        state,
        resolution: by.map(|by| ApproverAndReason { resolved_by: by, reason }),
        used_by_entry: row.get::<_, Option<i64>>("used")?.map(i64::unsigned_abs),
    })
}

/// Until the machine reboots, the monotonic clock decides whether a request for approval has expired. After a reboot,
/// the wall clock decides whether a request for approval has expired. A request with a creation time in the future
/// counts as expired.
fn is_expired(now: &ClockReading, created_ms: i64, expires_ms: i64, uptime_ms: i64, boot: &str) -> bool {
    if now.boot_id == boot {
        return now.uptime_ms.saturating_sub(uptime_ms) >= expires_ms.saturating_sub(created_ms);
    }
    now.wall_ms >= expires_ms || now.wall_ms < created_ms
}

fn state_number(state: ApprovalState) -> i64 {
    match state {
        ApprovalState::Pending => 0,
        ApprovalState::Approved => 1,
        ApprovalState::Denied => 2,
        ApprovalState::Used => 3,
        ApprovalState::Stale => 4,
        ApprovalState::Expired => 5,
    }
}

fn state_from_number(number: i64) -> Option<ApprovalState> {
    ApprovalState::ALL.iter().copied().find(|state| state_number(*state) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_expires_by_the_monotonic_clock_until_a_reboot() {
        let at = |wall_ms, uptime_ms, boot: &str| ClockReading { wall_ms, uptime_ms, boot_id: boot.to_owned() };
        // The request was made at wall clock 1000 and uptime 50, and is valid for 100 milliseconds.
        let expired = |now: &ClockReading| is_expired(now, 1000, 1100, 50, "a");
        for (now, expected) in [
            (at(1050, 100, "a"), false),
            (at(9999, 100, "a"), false), // the wall clock jumped ahead
            (at(0, 149, "a"), false),    // the wall clock was set back
            (at(0, 150, "a"), true),     // 100 milliseconds have passed since the request
            (at(1050, 5, "b"), false),
            (at(1100, 5, "b"), true),
            (at(999, 5, "b"), true), // the wall clock was set back before a reboot, so the age is unknown
        ] {
            assert_eq!(expired(&now), expected, "{now:?}");
        }
    }
}
