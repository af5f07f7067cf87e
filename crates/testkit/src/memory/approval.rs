//! The approval requests of the memory workspace, oldest first.

use stead_engine::{
    ALLOWED_BY_OPERATOR, Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalRequest, ApprovalState,
    ApproverAndReason, Error, ErrorKind, JournalCallRecord, limits,
};

use super::MemoryWorkspaceState;

pub(super) fn current_approvals(state: &MemoryWorkspaceState) -> Vec<Approval> {
    let now = |approval: &Approval| {
        let mut approval = approval.clone();
        let open = matches!(approval.state, ApprovalState::Pending | ApprovalState::Approved | ApprovalState::Denied);
        if open && state.now_ms >= approval.expires_ms {
            approval.state = ApprovalState::Expired;
        }
        approval
    };
    state.approvals.iter().map(now).collect()
}

pub(super) fn filter_approvals(state: &MemoryWorkspaceState, filter: &ApprovalFilter) -> Vec<Approval> {
    let mut found = current_approvals(state);
    found.retain(|approval| {
        filter.principal.as_ref().is_none_or(|principal| approval.request.principal == *principal)
            && filter.call_digest.is_none_or(|call| approval.request.call_digest == call)
            && filter.state.is_none_or(|state| approval.state == state)
    });
    found.reverse();
    found.truncate(filter.limit);
    found
}

pub(super) fn request_approval(state: &mut MemoryWorkspaceState, ask: &ApprovalRequest) -> Result<Approval, Error> {
    let own: Vec<Approval> =
        current_approvals(state).into_iter().filter(|approval| approval.request.principal == ask.principal).collect();
    let is_open = |approval: &&Approval| {
        approval.request.call_digest == ask.call_digest && approval.request.plan_digest == ask.plan_digest
    };
    if let Some(same) = own.iter().filter(is_open).find(|approval| approval.state == ApprovalState::Pending) {
        return Ok(same.clone());
    }
    let waiting = own
        .iter()
        .filter(|approval| approval.state == ApprovalState::Pending && approval.request.call_digest != ask.call_digest);
    if waiting.count() >= limits::APPROVALS_PENDING_MAX {
        return Err(Error::new(ErrorKind::TooMany, "too many of your calls are already waiting for approval"));
    }
    for approval in &mut state.approvals {
        let open = matches!(approval.state, ApprovalState::Pending | ApprovalState::Approved);
        if approval.request.principal == ask.principal && approval.request.call_digest == ask.call_digest && open {
            approval.state = ApprovalState::Stale;
        }
    }
    let approval = Approval {
        id: format!("ap-{:016x}", state.approvals.len() + 1),
        request: ask.clone(),
        created_ms: state.now_ms,
        expires_ms: state.now_ms.saturating_add(ask.valid_for_ms),
        state: ApprovalState::Pending,
        resolution: None,
        used_by_entry: None,
    };
    state.approvals.push(approval.clone());
    Ok(approval)
}

pub(super) fn answer_approval(
    state: &mut MemoryWorkspaceState,
    answer: &ApprovalAnswer,
    record: &JournalCallRecord<'_>,
) -> Result<Approval, Error> {
    let missing = || Error::new(ErrorKind::NotFound, "no such approval");
    let now = current_approvals(state).into_iter().find(|approval| approval.id == answer.id).ok_or_else(missing)?;
    if now.state != ApprovalState::Pending {
        return Err(Error::new(ErrorKind::Conflict, format!("{} is {} already", now.id, now.state.as_str())));
    }
    let kept = state.approvals.iter_mut().find(|approval| approval.id == answer.id).ok_or_else(missing)?;
    kept.state = match answer.decision {
        ApprovalDecision::Approve => ApprovalState::Approved,
        ApprovalDecision::Deny => ApprovalState::Denied,
    };
    kept.resolution =
        Some(ApproverAndReason { resolved_by: record.caller.principal.to_string(), reason: answer.reason.clone() });
    Ok(kept.clone())
}

pub(super) fn check_approval(state: &MemoryWorkspaceState, record: &JournalCallRecord<'_>) -> Result<(), Error> {
    let Some(id) = record.approval.as_deref().filter(|id| *id != ALLOWED_BY_OPERATOR) else { return Ok(()) };
    let usable = |approval: &Approval| {
        approval.id == id
            && approval.state == ApprovalState::Approved
            && approval.request.principal == record.caller.principal.to_string()
    };
    if current_approvals(state).iter().any(usable) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::ApprovalStale, format!("{id} was used by another call or has ended")))
}

pub(super) fn consume_approval(state: &mut MemoryWorkspaceState, record: &JournalCallRecord<'_>, number: u64) {
    let Some(id) = record.approval.as_deref() else { return };
    if let Some(approval) = state.approvals.iter_mut().find(|approval| approval.id == id) {
        approval.state = ApprovalState::Used;
        approval.used_by_entry = Some(number);
    }
}
