//! Approvals: questions to people, kept in the order they were asked.

use engine::{
    ALLOWED_BY_OPERATOR, Answered, Approval, ApprovalAnswer, ApprovalAsk, ApprovalFilter, ApprovalState,
    Failure, Kind, Record, Say, limits,
};

use super::State;

/// All of them, oldest first, as they stand now.
pub(super) fn all(state: &State) -> Vec<Approval> {
    let now = |approval: &Approval| {
        let mut approval = approval.clone();
        let open = matches!(
            approval.state,
            ApprovalState::Pending | ApprovalState::Approved | ApprovalState::Denied
        );
        if open && state.now_ms >= approval.expires_ms {
            approval.state = ApprovalState::Expired;
        }
        approval
    };
    state.approvals.iter().map(now).collect()
}

pub(super) fn fitting(state: &State, filter: &ApprovalFilter) -> Vec<Approval> {
    let mut found = all(state);
    found.retain(|approval| {
        filter.principal.as_ref().is_none_or(|principal| approval.asked.principal == *principal)
            && filter.call.is_none_or(|call| approval.asked.call == call)
            && filter.state.is_none_or(|state| approval.state == state)
    });
    found.reverse();
    found.truncate(filter.limit);
    found
}

pub(super) fn ask(state: &mut State, ask: &ApprovalAsk) -> Result<Approval, Failure> {
    let own: Vec<Approval> =
        all(state).into_iter().filter(|approval| approval.asked.principal == ask.principal).collect();
    let is_open = |approval: &&Approval| approval.asked.call == ask.call && approval.asked.plan == ask.plan;
    if let Some(same) = own.iter().filter(is_open).find(|approval| approval.state == ApprovalState::Pending) {
        return Ok(same.clone());
    }
    let waiting = own
        .iter()
        .filter(|approval| approval.state == ApprovalState::Pending && approval.asked.call != ask.call);
    if waiting.count() >= limits::APPROVALS_PENDING_MAX {
        return Err(Failure::new(Kind::TooMany, "too many of your calls wait for a person already"));
    }
    for approval in &mut state.approvals {
        let open = matches!(approval.state, ApprovalState::Pending | ApprovalState::Approved);
        if approval.asked.principal == ask.principal && approval.asked.call == ask.call && open {
            approval.state = ApprovalState::Stale;
        }
    }
    let approval = Approval {
        id: format!("ap-{:016x}", state.approvals.len() + 1),
        asked: ask.clone(),
        created_ms: state.now_ms,
        expires_ms: state.now_ms.saturating_add(ask.lasting_ms),
        state: ApprovalState::Pending,
        answered: None,
        used: None,
    };
    state.approvals.push(approval.clone());
    Ok(approval)
}

pub(super) fn answer(
    state: &mut State,
    answer: &ApprovalAnswer,
    record: &Record<'_>,
) -> Result<Approval, Failure> {
    let missing = || Failure::new(Kind::NotFound, "there is no such approval");
    let now = all(state).into_iter().find(|approval| approval.id == answer.id).ok_or_else(missing)?;
    if now.state != ApprovalState::Pending {
        return Err(Failure::new(Kind::Conflict, format!("{} is {} already", now.id, now.state.word())));
    }
    let kept = state.approvals.iter_mut().find(|approval| approval.id == answer.id).ok_or_else(missing)?;
    kept.state = match answer.say {
        Say::Yes => ApprovalState::Approved,
        Say::No => ApprovalState::Denied,
    };
    kept.answered = Some(Answered { by: record.caller.principal.to_string(), reason: answer.reason.clone() });
    Ok(kept.clone())
}

/// Whether the approval that a record names can still be used.
pub(super) fn check(state: &State, record: &Record<'_>) -> Result<(), Failure> {
    let Some(id) = record.approval.as_deref().filter(|id| *id != ALLOWED_BY_OPERATOR) else { return Ok(()) };
    let usable = |approval: &Approval| {
        approval.id == id
            && approval.state == ApprovalState::Approved
            && approval.asked.principal == record.caller.principal.to_string()
    };
    if all(state).iter().any(usable) {
        return Ok(());
    }
    Err(Failure::new(Kind::ApprovalStale, format!("{id} was used by another call or has ended")))
}

/// It is used up.
pub(super) fn consume(state: &mut State, record: &Record<'_>, number: u64) {
    let Some(id) = record.approval.as_deref() else { return };
    if let Some(approval) = state.approvals.iter_mut().find(|approval| approval.id == id) {
        approval.state = ApprovalState::Used;
        approval.used = Some(number);
    }
}
