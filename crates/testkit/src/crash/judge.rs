//! The judge: opens the workspace after a death and holds it against the model and the journal.

use std::{collections::BTreeSet, sync::Arc};

use engine::{EntryFilter, Order, Stored, Workspace};
use local::LocalWorkspace;

use crate::{
    crash::Life,
    replay::{Said, replay},
    rig::Fallible,
    workload::{Found, Places, Step, Work, look_at},
};

/// Entries asked for at once.
const PAGE: usize = 1_000;

/// What became of the change that was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was under way, or it did not happen.
    StayedOld,
    /// It happened.
    CameTrue,
}

/// What is known about a workspace from round to round.
#[derive(Default)]
pub struct Judge {
    litter: BTreeSet<u64>,
    litter_allowed: usize,
    replayed: u64,
    verified: Option<journal::Trusted>,
}

impl Judge {
    /// Steps the last recovery had to do.
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// A recovery that is killed may leave one half-made file of its own.
    pub fn recovery_was_killed(&mut self) {
        self.litter_allowed += 1;
    }

    /// Opens the workspace and judges it. The model of `work` goes along with what is found.
    pub fn judge(&mut self, work: &mut Work, life: &Life) -> Fallible<Verdict> {
        for (step, ack) in &life.done {
            work.model.happened(step, ack.trash.clone());
        }
        let (verdict, found) = {
            let workspace = work.open()?;
            let found = look_at(&work.workspace)?;
            (self.judge_open(&workspace, work, life, &found)?, found)
        };
        judge_again(work, &found)?;
        Ok(verdict)
    }

    fn judge_open(
        &mut self,
        workspace: &Arc<LocalWorkspace>,
        work: &mut Work,
        life: &Life,
        found: &Found,
    ) -> Fallible<Verdict> {
        let recovery = workspace.recovery();
        self.replayed = recovery.replayed;
        if recovery.conflicts > 0 {
            return Err(format!("recovery met conflicts where nobody else wrote: {recovery:?}").into());
        }
        let verdict = fit_model(workspace, work, life, &found.places)?;
        self.judge_litter(work, life, verdict, found)?;
        self.judge_journal(workspace, life, &found.places)?;
        Ok(verdict)
    }

    fn judge_litter(&mut self, work: &Work, life: &Life, verdict: Verdict, found: &Found) -> Fallible<()> {
        // Files staged by a change that the journal never heard of are unknown to recovery; all others are not.
        if let (Some(step), Verdict::StayedOld) = (&life.under_way, verdict) {
            self.litter_allowed += work.model.staged_by(step);
        }
        let new = || found.litter.iter().filter(|(inode, _)| !self.litter.contains(inode));
        if new().count() > self.litter_allowed {
            let new: Vec<_> = new().collect();
            return Err(format!("half-made files after {:?}: {new:?}", life.under_way).into());
        }
        self.litter.extend(found.litter.keys());
        self.litter_allowed = 0;
        Ok(())
    }

    fn judge_journal(
        &mut self,
        workspace: &Arc<LocalWorkspace>,
        life: &Life,
        places: &Places,
    ) -> Fallible<()> {
        let report = workspace.verify_log(self.verified.take(), &[])?;
        if let Some(tamper) = report.tamper {
            return Err(format!("the journal does not verify: {tamper:?}").into());
        }
        self.verified = Some(report.trusted);
        let entries = all_entries(&**workspace)?;
        for (step, ack) in &life.done {
            let stored = entries.iter().find(|stored| stored.entry.number == ack.entry);
            if stored.is_none_or(|stored| stored.hash.to_string() != ack.hash) {
                return Err(format!("acknowledged and not in the journal: {step:?} {ack:?}").into());
            }
        }
        agree(&entries, places)
    }
}

/// Opening once more must find nothing left to do.
pub(super) fn judge_again(work: &Work, found: &Found) -> Fallible<()> {
    let recovery = work.open()?.recovery();
    if recovery.replayed + recovery.conflicts > 0 {
        return Err(format!("a second recovery found work: {recovery:?}").into());
    }
    let again = look_at(&work.workspace)?;
    if again != *found {
        return Err(format!("a second recovery changed {found:?} into {again:?}").into());
    }
    Ok(())
}

/// Every entry, oldest first.
pub fn all_entries(workspace: &dyn Workspace) -> Fallible<Vec<Stored>> {
    let mut entries: Vec<Stored> = Vec::new();
    loop {
        let after = entries.last().map(|stored| stored.entry.number);
        let filter = EntryFilter { after, order: Order::OldestFirst, limit: PAGE, ..EntryFilter::default() };
        let page = workspace.entries(&filter)?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

/// The journal tells what is on the disk.
pub fn agree(entries: &[Stored], places: &Places) -> Fallible<()> {
    let said: Places = replay(entries)
        .into_iter()
        .filter_map(|(path, said)| match said {
            Said::File(version) => Some((path, Some(engine::Version(version)))),
            Said::Directory => Some((path, None)),
            Said::Link(_) => None,
        })
        .collect();
    match difference(&said, places) {
        None => Ok(()),
        Some(place) => {
            let story = story_of(entries, place.split(':').next().unwrap_or_default());
            Err(format!("the journal and the disk disagree: {place}; its last entries: {story}").into())
        }
    }
}

/// The last entries about a place, for whoever has to find out.
fn story_of(entries: &[Stored], place: &str) -> String {
    let about = |stored: &&Stored| {
        let near = |path: &str| place.starts_with(path) || path.starts_with(place);
        let changes = &stored.entry.changes;
        changes.iter().any(|change| near(&change.path) || change.to.as_deref().is_some_and(near))
    };
    let told = entries.iter().rev().filter(about).take(STORY_ENTRIES).map(|stored| {
        let entry = &stored.entry;
        let paths: Vec<String> = entry
            .changes
            .iter()
            .map(|change| match &change.to {
                Some(to) => format!("{} to {to}", change.path),
                None => change.path.clone(),
            })
            .collect();
        format!("r{} {} {}", entry.number, entry.operation, paths.join(", "))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Entries told about a place that does not fit.
const STORY_ENTRIES: usize = 6;

/// The first place at which two trees differ.
pub fn difference(one: &Places, other: &Places) -> Option<String> {
    let all: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let place = all.into_iter().find(|path| one.get(*path) != other.get(*path))?;
    Some(format!("{place}: {:?} and {:?}", one.get(place), other.get(place)))
}

/// The tree is the acknowledged one, or that with the change that was under way. Takes the model along.
fn fit_model(
    workspace: &Arc<LocalWorkspace>,
    work: &mut Work,
    life: &Life,
    places: &Places,
) -> Fallible<Verdict> {
    let Some(old) = difference(&work.model.places(), places) else { return Ok(Verdict::StayedOld) };
    let Some(step) = &life.under_way else {
        return Err(format!("an acknowledged change is not there: {old} (expected and found)").into());
    };
    let trash = match step {
        Step::Remove { .. } => workspace
            .trash(None)?
            .into_iter()
            .max_by_key(|item| item.entry)
            .map(|item| item.id)
            .filter(|id| !work.model.knows_trash(id)),
        Step::Write { .. }
        | Step::Append { .. }
        | Step::Copy { .. }
        | Step::Move { .. }
        | Step::Restore { .. }
        | Step::Undo
        | Step::Redo => None,
    };
    let mut new = work.model.clone();
    new.happened(step, trash);
    match difference(&new.places(), places) {
        None => {
            work.model = new;
            Ok(Verdict::CameTrue)
        }
        Some(place) => {
            Err(format!("{step:?} is half done: without it {old}; with it {place} (expected and found)")
                .into())
        }
    }
}
