//! How often somebody may call. Counted from the journal, so that a second connection does not help.

use super::{Asked, Right, Tier, Verdict, Why};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::Effect,
    view::View,
    workspace::{EntryFilter, Order, Stored},
};

/// Judges a call by the rates that bind it: free, or what comes beyond the rate.
pub(crate) fn judge(view: &View<'_>, effect: Effect) -> Result<Verdict, Failure> {
    let policy = &view.in_force.policy;
    let asked = view.asked();
    let mut verdict = Verdict::FREE;
    for (layer, rate) in policy.rates(&asked) {
        let concerned =
            rate.rights.as_ref().is_none_or(|rights| rights.iter().any(|right| is_of(*right, effect)));
        let named = |operation: &str, tool: Option<&str>| {
            rate.operations.as_ref().is_none_or(|patterns| patterns.fit_call(operation, tool))
        };
        if !concerned || !named(asked.operation, asked.tool) {
            continue;
        }
        let now_ms = view.workspace().now_ms();
        let calls = lately(view, &asked, now_ms.saturating_sub(rate.per_ms))?;
        let mut counted = calls.iter().filter(|stored| {
            let entry = &stored.entry;
            // A call that was turned away for its rate does not count, or nobody would ever get in again.
            entry.reason.as_deref() != Some(Kind::RateLimited.code())
                && entry.time_ms <= now_ms
                && named(&entry.operation, entry.tool.as_deref())
        });
        let Ok(nth) = usize::try_from(rate.calls - 1) else { continue };
        let Some(oldest) = counted.nth(nth) else { continue };
        if rate.then == Tier::Blocked {
            let wait_ms = (oldest.entry.time_ms + rate.per_ms - now_ms).max(1);
            return Err(limited(rate.calls, rate.per_ms, wait_ms));
        }
        verdict = verdict.stricter(Verdict { tier: rate.then, why: Why::Rate { layer } });
    }
    Ok(verdict.for_operation(asked.operation))
}

/// The newest calls of a principal, newest first. Read page by page, so that a long journal costs nothing.
fn lately(view: &View<'_>, asked: &Asked<'_>, since_ms: i64) -> Result<Vec<Stored>, Failure> {
    let principal = asked.principal.to_string();
    // Calls that changed nothing may not be written yet; asking for the head writes them.
    view.workspace().head()?;
    let (mut calls, mut before, mut looked) = (Vec::new(), None, 0);
    while looked < limits::ENTRIES_SCANNED_MAX {
        let filter = EntryFilter { before, order: Order::NewestFirst, limit: PAGE, ..EntryFilter::default() };
        let page = view.workspace().entries(&filter)?;
        looked += page.len();
        let Some(last) = page.last() else { break };
        let goes_on = last.entry.time_ms >= since_ms;
        before = Some(last.entry.number);
        calls.extend(
            page.into_iter().filter(|stored| {
                stored.entry.caller.principal == principal && stored.entry.time_ms >= since_ms
            }),
        );
        if !goes_on {
            break;
        }
    }
    Ok(calls)
}

/// Entries that are looked at together.
const PAGE: usize = 256;

fn is_of(right: Right, effect: Effect) -> bool {
    match effect {
        Effect::Read => matches!(right, Right::List | Right::Read),
        Effect::Write => matches!(right, Right::Create | Right::Modify),
        Effect::Destroy => matches!(right, Right::Create | Right::Modify | Right::Delete),
    }
}

fn limited(calls: u64, per_ms: i64, wait_ms: i64) -> Failure {
    let seconds = per_ms / 1000;
    Failure::new(Kind::RateLimited, format!("more than {calls} calls in {seconds} s"))
        .hint(format!("wait {wait_ms} ms, then call again"))
        .fact("retry_after_ms", wait_ms)
}
