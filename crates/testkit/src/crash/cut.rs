//! The judge after a power cut. The moment of the cut is known only roughly: what was acknowledged before it must be
//! there, of what came after it any beginning may be.

use serde::{Deserialize, Serialize};

use super::judge::{agree, all_entries, difference, judge_again};
use crate::{
    rig::Fallible,
    workload::{Ack, Model, Step, Work, look_at},
};

/// A workspace after a power cut, and what is known about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cut {
    /// Where it is, and what was there when its process started.
    pub work: Work,
    /// Acknowledged before the cut.
    pub certain: Vec<(Step, Ack)>,
    /// Made during it or after it, in order; the last one without an acknowledgement.
    pub possible: Vec<(Step, Option<Ack>)>,
}

/// What was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Survived {
    /// What is there now.
    pub model: Model,
    /// How many of the possible changes came true.
    pub of_possible: usize,
    /// Steps that recovery had to do.
    pub replayed: u64,
    /// Entries in the journal.
    pub entries: usize,
}

/// Opens the workspace and judges it.
pub fn judge_cut(cut: Cut) -> Fallible<Survived> {
    let Cut { mut work, certain, possible } = cut;
    for (step, ack) in &certain {
        work.model.happened(step, ack.trash.clone());
    }
    let workspace = work.open()?;
    let recovery = workspace.recovery();
    if recovery.conflicts > 0 {
        return Err(format!("recovery met conflicts where nobody else wrote: {recovery:?}").into());
    }
    if let Some(tamper) = workspace.verify_log(None, &[])?.tamper {
        return Err(format!("the journal does not verify: {tamper:?}").into());
    }
    let found = look_at(&work.workspace)?;
    let entries = all_entries(&*workspace)?;
    let recorded = |ack: &Ack| {
        let stored = entries.iter().find(|stored| stored.entry.number == ack.entry);
        stored.is_some_and(|stored| stored.hash.to_string() == ack.hash)
    };
    if let Some((step, ack)) = certain.iter().find(|(_, ack)| !recorded(ack)) {
        return Err(format!("acknowledged and not in the journal: {step:?} {ack:?}").into());
    }
    agree(&entries, &found.places)?;
    // Two changes may cancel each other out in the tree, so the journal says which of them came true.
    let mut of_possible = possible.iter().take_while(|(_, ack)| ack.as_ref().is_some_and(recorded)).count();
    let happen = |model: &mut Model, (step, ack): &(Step, Option<Ack>)| {
        model.happened(step, ack.as_ref().and_then(|ack| ack.trash.clone()));
    };
    possible[..of_possible].iter().for_each(|change| happen(&mut work.model, change));
    if let Some(place) = difference(&work.model.places(), &found.places) {
        let Some(change) = possible.get(of_possible) else {
            return Err(format!("an acknowledged change is not there: {place} (expected and found)").into());
        };
        happen(&mut work.model, change);
        of_possible += 1;
        if let Some(still) = difference(&work.model.places(), &found.places) {
            return Err(format!("half done: without it {place}, with it {still} (expected and found)").into());
        }
    }
    drop(workspace);
    judge_again(&work, &found)?;
    Ok(Survived { model: work.model, of_possible, replayed: recovery.replayed, entries: entries.len() })
}
