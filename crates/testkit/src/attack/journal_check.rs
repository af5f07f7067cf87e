//! Checks the journal after an attack case: one entry per request, the right decisions, and a valid hash chain.

use stead_engine::{ErrorClass as Whose, ErrorKind};
use stead_journal::JournaledCallOutcomeStatus;

use super::{
    run::{AttackCaseDetectedFault, AttackFindingSeverity, AttackRequestRecord},
    subject::{SubjectJournal, SubjectJournalEntry},
};

pub(crate) fn compare_with_journal(
    went: &[AttackRequestRecord],
    ledger: &SubjectJournal,
) -> Vec<AttackCaseDetectedFault> {
    let mut faults: Vec<String> = Vec::new();
    if let Some(tamper) = &ledger.tampering {
        faults.push(format!("the journal does not verify: {tamper}"));
    }
    let wanted: Vec<SubjectJournalEntry> =
        went.iter().filter(|went| went.request.raw.is_none()).map(expected_entry).collect();
    // Several processes may write one journal, so the order does not count.
    let (mut missing, mut extra) = (Vec::new(), ledger.entries.clone());
    for entry in &wanted {
        let escape = alternative_entry(entry);
        let found = extra.iter().position(|other| other == entry);
        let found = found.or_else(|| extra.iter().position(|other| Some(other) == escape.as_ref()));
        match found {
            Some(at) => drop(extra.swap_remove(at)),
            None => missing.push(entry),
        }
    }
    if !missing.is_empty() || !extra.is_empty() {
        faults.push(format!(
            "{} requests left {} entries; missing {:?}; unexpected {:?}",
            wanted.len(),
            ledger.entries.len(),
            missing.iter().take(3).collect::<Vec<_>>(),
            extra.iter().take(3).collect::<Vec<_>>()
        ));
    }
    faults
        .into_iter()
        .map(|what| AttackCaseDetectedFault { severity: AttackFindingSeverity::WrongJournal, description: what })
        .collect()
}

/// Returns the entry with a path escape that the journal may record for a request answered with an invalid path.
fn alternative_entry(entry: &SubjectJournalEntry) -> Option<SubjectJournalEntry> {
    let spelled =
        entry.principal.starts_with("agent:") && entry.reason.as_deref() == Some(ErrorKind::InvalidPath.code());
    spelled.then(|| SubjectJournalEntry { reason: Some(ErrorKind::PathEscape.code().to_owned()), ..entry.clone() })
}

pub(crate) fn decision_of_kind(code: &str) -> JournaledCallOutcomeStatus {
    match ErrorKind::ALL.iter().find(|kind| kind.code() == code).map(|kind| kind.class()) {
        Some(Whose::Refused) => JournaledCallOutcomeStatus::Refused,
        Some(Whose::StateMismatch | Whose::SystemFailure) => JournaledCallOutcomeStatus::Failed,
        // A code that is not an engine kind matches no journal entry.
        None => JournaledCallOutcomeStatus::Allowed,
    }
}

fn expected_entry(went: &AttackRequestRecord) -> SubjectJournalEntry {
    let decision = went.refusal.as_deref().map_or(JournaledCallOutcomeStatus::Allowed, decision_of_kind);
    let known = stead_engine::find_operation(&went.request.operation).is_some();
    SubjectJournalEntry {
        principal: went.request.principal.clone(),
        operation: if known { went.request.operation.clone() } else { "unknown".to_owned() },
        decision: format!("{decision:?}").to_lowercase(),
        reason: went.refusal.clone(),
    }
}
