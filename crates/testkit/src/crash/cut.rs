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
    for (step, ack) in &certain {
        let stored = entries.iter().find(|stored| stored.entry.number == ack.entry);
        if stored.is_none_or(|stored| stored.hash.to_string() != ack.hash) {
            return Err(format!("acknowledged and not in the journal: {step:?} {ack:?}").into());
        }
    }
    agree(&entries, &found.places)?;
    let mut first = None;
    let mut of_possible = 0;
    while let Some(place) = difference(&work.model.places(), &found.places) {
        let first = first.get_or_insert(place);
        let Some((step, ack)) = possible.get(of_possible) else {
            return Err(format!("an acknowledged change is not there: {first} (expected and found)").into());
        };
        work.model.happened(step, ack.as_ref().and_then(|ack| ack.trash.clone()));
        of_possible += 1;
    }
    drop(workspace);
    judge_again(&work, &found)?;
    Ok(Survived { model: work.model, of_possible, replayed: recovery.replayed, entries: entries.len() })
}
