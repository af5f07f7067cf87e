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
    let mut wanted: Vec<Recorded> =
        went.iter().filter(|went| went.asked.raw.is_none()).map(recorded).collect();
    let mut found = ledger.entries.clone();
    // Several processes may write one journal, so only what is in it counts, not the order.
    wanted.sort();
    found.sort();
    if wanted != found {
        let missing = wanted.iter().filter(|entry| !found.contains(entry));
        let extra = found.iter().filter(|entry| !wanted.contains(entry));
        faults.push(format!(
            "{} requests made {} entries; missing {:?}; not asked for {:?}",
            wanted.len(),
            found.len(),
            missing.take(3).collect::<Vec<_>>(),
            extra.take(3).collect::<Vec<_>>()
        ));
    }
    faults.into_iter().map(|what| Fault { weight: Weight::Journal, what }).collect()
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
