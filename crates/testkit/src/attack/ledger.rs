//! Compares what was asked with what the journal says was asked: one entry for every request, with the right decision,
//! in a chain that verifies.

use engine::{Fault as Whose, Kind};
use journal::Decision;

use super::{
    run::{Fault, Weight, Went},
    subject::{Ledger, Recorded},
};

/// What does not fit.
pub(crate) fn compare(went: &[Went], ledger: &Ledger) -> Vec<Fault> {
    let mut faults: Vec<String> = Vec::new();
    if let Some(tamper) = &ledger.tamper {
        faults.push(format!("the journal does not verify: {tamper}"));
    }
    let wanted: Vec<Recorded> = went.iter().filter(|went| went.asked.raw.is_none()).map(recorded).collect();
    // Several processes may write one journal, so only what is in it counts, not the order.
    let (mut missing, mut extra) = (Vec::new(), ledger.entries.clone());
    for entry in &wanted {
        let escape = escape(entry);
        let found = extra.iter().position(|other| other == entry);
        let found = found.or_else(|| extra.iter().position(|other| Some(other) == escape.as_ref()));
        match found {
            Some(at) => drop(extra.swap_remove(at)),
            None => missing.push(entry),
        }
    }
    if !missing.is_empty() || !extra.is_empty() {
        faults.push(format!(
            "{} requests made {} entries; missing {:?}; not asked for {:?}",
            wanted.len(),
            ledger.entries.len(),
            missing.iter().take(3).collect::<Vec<_>>(),
            extra.iter().take(3).collect::<Vec<_>>()
        ));
    }
    faults.into_iter().map(|what| Fault { weight: Weight::Journal, what }).collect()
}

/// What else may stand in the place of an entry: an agent that spells a place outside hears that the path is none, and is
/// recorded as one that tries to get out.
fn escape(entry: &Recorded) -> Option<Recorded> {
    let spelled =
        entry.principal.starts_with("agent:") && entry.reason.as_deref() == Some(Kind::InvalidPath.code());
    spelled.then(|| Recorded { reason: Some(Kind::PathEscape.code().to_owned()), ..entry.clone() })
}

/// How a refusal of this kind is recorded.
pub(crate) fn decision_of(code: &str) -> Decision {
    match Kind::ALL.iter().find(|kind| kind.code() == code).map(|kind| kind.fault()) {
        Some(Whose::Refusal) => Decision::Refused,
        Some(Whose::World | Whose::Machine) => Decision::Failed,
        // No kind of ours: nothing that is recorded can match.
        None => Decision::Allowed,
    }
}

/// The entry a request should have left.
fn recorded(went: &Went) -> Recorded {
    let decision = went.refused.as_deref().map_or(Decision::Allowed, decision_of);
    let known = engine::row(&went.asked.operation).is_some();
    Recorded {
        principal: went.asked.principal.clone(),
        operation: if known { went.asked.operation.clone() } else { "unknown".to_owned() },
        decision: format!("{decision:?}").to_lowercase(),
        reason: went.refused.clone(),
    }
}
