//! Rate limits of the policy. A rate limit counts calls in the journal, so a second connection cannot evade the limit.

use super::{PathAccessRight, PolicyCallAttributes, PolicyVerdict, PolicyVerdictReason, SupervisionTier};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::OperationEffectClass,
    workspace::{JournalEntryOrder, JournalEntryQuery, StoredJournalEntry},
};

pub(crate) fn check_rate(context: &CallContext<'_>, effect: OperationEffectClass) -> Result<PolicyVerdict, Error> {
    let policy = &context.policy.policy;
    let subject = context.policy_subject();
    let mut verdict = PolicyVerdict::UNRESTRICTED;
    for (layer, rate) in policy.rate_limits(&subject) {
        let applies =
            rate.rights.as_ref().is_none_or(|rights| rights.iter().any(|right| right_covers_effect(*right, effect)));
        let names_call = |operation: &str, tool: Option<&str>| {
            rate.operations.as_ref().is_none_or(|patterns| patterns.match_call(operation, tool))
        };
        if !applies || !names_call(subject.operation, subject.tool) {
            continue;
        }
        let now_ms = context.workspace().now_ms();
        let calls = recent_calls(context, &subject, now_ms.saturating_sub(rate.per_ms))?;
        let mut counted = calls.iter().filter(|stored| {
            let entry = &stored.entry;
            // Calls that a rate limit refused are not counted, because their repetition would be refused forever.
            entry.reason.as_deref() != Some(ErrorKind::RateLimited.code())
                && entry.time_ms <= now_ms
                && names_call(&entry.operation, entry.tool.as_deref())
        });
        let Ok(nth) = usize::try_from(rate.calls - 1) else { continue };
        let Some(oldest) = counted.nth(nth) else { continue };
        if rate.tier_beyond == SupervisionTier::Blocked {
            let wait_ms = (oldest.entry.time_ms + rate.per_ms - now_ms).max(1);
            return Err(rate_limited_error(rate.calls, rate.per_ms, wait_ms));
        }
        verdict = verdict
            .stricter_of(PolicyVerdict { tier: rate.tier_beyond, reason: PolicyVerdictReason::RateLimit { layer } });
    }
    Ok(verdict.for_operation(subject.operation))
}

/// Returns the recent calls of a principal; the journal is read in pages, because it may be long.
fn recent_calls(
    context: &CallContext<'_>,
    subject: &PolicyCallAttributes<'_>,
    since_ms: i64,
) -> Result<Vec<StoredJournalEntry>, Error> {
    let principal = subject.principal.to_string();
    // `head` writes entries that are still buffered in memory to the journal.
    context.workspace().head()?;
    let (mut calls, mut before, mut scanned) = (Vec::new(), None, 0);
    while scanned < limits::ENTRIES_SCANNED_MAX {
        let filter = JournalEntryQuery {
            before,
            order: JournalEntryOrder::NewestFirst,
            limit: RATE_PAGE_ENTRIES,
            ..JournalEntryQuery::default()
        };
        let page = context.workspace().entries(&filter)?;
        scanned += page.len();
        let Some(last) = page.last() else { break };
        let reached_start = last.entry.time_ms < since_ms;
        before = Some(last.entry.number);
        calls.extend(
            page.into_iter()
                .filter(|stored| stored.entry.caller.principal == principal && stored.entry.time_ms >= since_ms),
        );
        if reached_start {
            break;
        }
    }
    Ok(calls)
}

const RATE_PAGE_ENTRIES: usize = 256;

fn right_covers_effect(right: PathAccessRight, effect: OperationEffectClass) -> bool {
    match effect {
        OperationEffectClass::None => matches!(right, PathAccessRight::List | PathAccessRight::Read),
        OperationEffectClass::Write => matches!(right, PathAccessRight::Create | PathAccessRight::Modify),
        OperationEffectClass::Destroy => {
            matches!(right, PathAccessRight::Create | PathAccessRight::Modify | PathAccessRight::Delete)
        }
    }
}

fn rate_limited_error(calls: u64, per_ms: i64, wait_ms: i64) -> Error {
    let seconds = per_ms / 1000;
    Error::new(ErrorKind::RateLimited, format!("rate limit of the policy exceeded: {calls} calls in {seconds} s"))
        .with_next_step(NextStep::from(format!("wait {wait_ms} ms")).then(NextStep::repeat()))
        .with_retry_after_ms(wait_ms)
}
