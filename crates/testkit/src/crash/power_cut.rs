//! Checks a workspace after a power cut, whose moment is known only roughly. All changes that were surely acknowledged
//! before the power cut must exist. A later change may exist only if all changes before it exist.

use serde::{Deserialize, Serialize};

use super::checker::{all_entries, check_journal_matches_disk, check_second_open, first_difference};
use crate::{
    stress::Fallible,
    workload::{
        CrashTestChangeAcknowledgement, CrashTestChildConfig, CrashTestWorkloadStep, WorkspaceReferenceModel,
        walk_workspace,
    },
};

/// The changes that a workspace must or may contain after a power cut.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PowerCutExpectedChanges {
    /// The configuration of the test process, including the expected tree when the test process started.
    pub work: CrashTestChildConfig,
    /// The changes that were acknowledged before the power cut and must exist.
    pub certain: Vec<(CrashTestWorkloadStep, CrashTestChangeAcknowledgement)>,
    /// The changes around the time of the power cut, of which a prefix may exist.
    pub possible: Vec<(CrashTestWorkloadStep, Option<CrashTestChangeAcknowledgement>)>,
}

/// The result of checking a workspace after a power cut.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PowerCutRecoveryCheckResult {
    /// The expected state of the workspace, with all changes that survived the power cut.
    pub model: WorkspaceReferenceModel,
    /// The number of changes in [`PowerCutExpectedChanges::possible`] that exist.
    pub of_possible: usize,
    /// The number of steps of unfinished changes that the recovery applied.
    pub replayed: u64,
    /// The number of entries in the journal after the power cut.
    pub entries: usize,
}

/// Opens a workspace after a power cut and checks its files and its journal.
pub fn check_power_cut(cut: PowerCutExpectedChanges) -> Fallible<PowerCutRecoveryCheckResult> {
    let PowerCutExpectedChanges { mut work, certain, possible } = cut;
    for (step, ack) in &certain {
        work.model.apply_step(step, ack.trash.clone());
    }
    let workspace = work.open()?;
    let recovery = workspace.recovery();
    if recovery.conflicts > 0 {
        return Err(format!("recovery met conflicts where nobody else wrote: {recovery:?}").into());
    }
    if let Some(tamper) = workspace.verify_journal(None, &[])?.integrity_error {
        return Err(format!("the journal does not verify: {tamper:?}").into());
    }
    let found = walk_workspace(&work.workspace)?;
    let entries = all_entries(&*workspace)?;
    let recorded = |ack: &CrashTestChangeAcknowledgement| {
        let stored = entries.iter().find(|stored| stored.entry.number == ack.entry);
        stored.is_some_and(|stored| stored.hash.to_string() == ack.hash)
    };
    if let Some((step, ack)) = certain.iter().find(|(_, ack)| !recorded(ack)) {
        return Err(format!("acknowledged and not in the journal: {step:?} {ack:?}").into());
    }
    check_journal_matches_disk(&entries, &found.paths)?;
    // Two changes may cancel out in the tree, so the journal decides which changes were applied.
    let mut of_possible = possible.iter().take_while(|(_, ack)| ack.as_ref().is_some_and(recorded)).count();
    let happen = |model: &mut WorkspaceReferenceModel,
                  (step, ack): &(CrashTestWorkloadStep, Option<CrashTestChangeAcknowledgement>)| {
        model.apply_step(step, ack.as_ref().and_then(|ack| ack.trash.clone()));
    };
    possible[..of_possible].iter().for_each(|change| happen(&mut work.model, change));
    if let Some(place) = first_difference(&work.model.path_versions(), &found.paths) {
        let Some(change) = possible.get(of_possible) else {
            return Err(format!("an acknowledged change is not there: {place} (expected and found)").into());
        };
        happen(&mut work.model, change);
        of_possible += 1;
        if let Some(still) = first_difference(&work.model.path_versions(), &found.paths) {
            return Err(format!("half done: without it {place}, with it {still} (expected and found)").into());
        }
    }
    drop(workspace);
    check_second_open(&work, &found)?;
    Ok(PowerCutRecoveryCheckResult {
        model: work.model,
        of_possible,
        replayed: recovery.redone_steps,
        entries: entries.len(),
    })
}
