//! Compares a workspace after a crash with the expected tree and the journal.

use std::{collections::BTreeSet, sync::Arc};

use stead_engine::{JournalEntryOrder, JournalEntryQuery, StoredJournalEntry, Workspace};
use stead_local::LocalWorkspace;

use crate::{
    crash::KilledChildProgress,
    journal_replay::{JournalReplayedPathContent, replay_entries},
    stress::Fallible,
    workload::{
        CrashTestChildConfig, CrashTestFileVersionByPath, CrashTestWorkloadStep, TestWorkspaceWalkResult,
        walk_workspace,
    },
};

const ENTRIES_PER_PAGE: usize = 1_000;

/// Whether the change that was in progress at the crash is applied after the recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashTestInFlightOutcome {
    /// No change was in progress, or the change in progress is not applied.
    NotApplied,
    /// The change that was in progress at the crash is applied.
    Applied,
}

/// Checks a workspace after every crash, and remembers leftover files and the verified journal for later checks.
#[derive(Default)]
pub struct PostCrashWorkspaceChecker {
    leftover_files: BTreeSet<u64>,
    leftovers_allowed: usize,
    replayed_steps: u64,
    verified_until: Option<stead_journal::VerifiedJournalPrefix>,
}

impl PostCrashWorkspaceChecker {
    /// Returns how many steps of unfinished changes the last recovery of the workspace applied.
    pub fn replayed_steps(&self) -> u64 {
        self.replayed_steps
    }

    /// Allows one more leftover temporary file, because a recovery that is killed may leave a temporary file.
    pub fn allow_recovery_leftover(&mut self) {
        self.leftovers_allowed += 1;
    }

    /// Opens the workspace after a crash, checks it, and updates the expected tree in `work`.
    pub fn check_workspace(
        &mut self,
        work: &mut CrashTestChildConfig,
        life: &KilledChildProgress,
    ) -> Fallible<CrashTestInFlightOutcome> {
        for (step, ack) in &life.acknowledged {
            work.model.apply_step(step, ack.trash.clone());
        }
        let (verdict, found) = {
            let workspace = work.open()?;
            let found = walk_workspace(&work.workspace)?;
            (self.check_open_workspace(&workspace, work, life, &found)?, found)
        };
        check_second_open(work, &found)?;
        Ok(verdict)
    }

    fn check_open_workspace(
        &mut self,
        workspace: &Arc<LocalWorkspace>,
        work: &mut CrashTestChildConfig,
        life: &KilledChildProgress,
        found: &TestWorkspaceWalkResult,
    ) -> Fallible<CrashTestInFlightOutcome> {
        let recovery = workspace.recovery();
        self.replayed_steps = recovery.redone_steps;
        if recovery.conflicts > 0 {
            return Err(format!("recovery met conflicts where nobody else wrote: {recovery:?}").into());
        }
        let verdict = match_model(workspace, work, life, &found.paths)?;
        self.check_leftovers(work, life, verdict, found)?;
        self.check_journal(workspace, life, &found.paths)?;
        Ok(verdict)
    }

    fn check_leftovers(
        &mut self,
        work: &CrashTestChildConfig,
        life: &KilledChildProgress,
        verdict: CrashTestInFlightOutcome,
        found: &TestWorkspaceWalkResult,
    ) -> Fallible<()> {
        // The recovery does not know the staged files of a change without a journal entry.
        if let (Some(step), CrashTestInFlightOutcome::NotApplied) = (&life.in_flight, verdict) {
            self.leftovers_allowed += work.model.staged_files_max(step);
        }
        let new = || found.leftover_files.iter().filter(|(inode, _)| !self.leftover_files.contains(inode));
        if new().count() > self.leftovers_allowed {
            let new: Vec<_> = new().collect();
            return Err(format!("half-made files after {:?}: {new:?}", life.in_flight).into());
        }
        self.leftover_files.extend(found.leftover_files.keys());
        self.leftovers_allowed = 0;
        Ok(())
    }

    fn check_journal(
        &mut self,
        workspace: &Arc<LocalWorkspace>,
        life: &KilledChildProgress,
        places: &CrashTestFileVersionByPath,
    ) -> Fallible<()> {
        let report = workspace.verify_journal(self.verified_until.take(), &[])?;
        if let Some(tamper) = report.integrity_error {
            return Err(format!("the journal does not verify: {tamper:?}").into());
        }
        self.verified_until = Some(report.verified_prefix);
        let entries = all_entries(&**workspace)?;
        for (step, ack) in &life.acknowledged {
            let stored = entries.iter().find(|stored| stored.entry.number == ack.entry);
            if stored.is_none_or(|stored| stored.hash.to_string() != ack.hash) {
                return Err(format!("acknowledged and not in the journal: {step:?} {ack:?}").into());
            }
        }
        check_journal_matches_disk(&entries, places)
    }
}

pub(super) fn check_second_open(work: &CrashTestChildConfig, found: &TestWorkspaceWalkResult) -> Fallible<()> {
    let recovery = work.open()?.recovery();
    if recovery.redone_steps + recovery.conflicts > 0 {
        return Err(format!("a second recovery found work: {recovery:?}").into());
    }
    let again = walk_workspace(&work.workspace)?;
    if again != *found {
        return Err(format!("a second recovery changed {found:?} into {again:?}").into());
    }
    Ok(())
}

/// Returns all journal entries of a workspace, oldest first.
pub fn all_entries(workspace: &dyn Workspace) -> Fallible<Vec<StoredJournalEntry>> {
    let mut entries: Vec<StoredJournalEntry> = Vec::new();
    loop {
        let after = entries.last().map(|stored| stored.entry.number);
        let filter = JournalEntryQuery {
            after,
            order: JournalEntryOrder::OldestFirst,
            limit: ENTRIES_PER_PAGE,
            ..JournalEntryQuery::default()
        };
        let page = workspace.entries(&filter)?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

/// Checks that replaying the journal gives exactly the files on disk.
pub fn check_journal_matches_disk(entries: &[StoredJournalEntry], places: &CrashTestFileVersionByPath) -> Fallible<()> {
    let recorded: CrashTestFileVersionByPath = replay_entries(entries)
        .into_iter()
        .filter_map(|(path, recorded)| match recorded {
            JournalReplayedPathContent::File(version) => Some((path, Some(stead_engine::Version(version)))),
            JournalReplayedPathContent::Directory => Some((path, None)),
            JournalReplayedPathContent::Link(_) => None,
        })
        .collect();
    match first_difference(&recorded, places) {
        None => Ok(()),
        Some(place) => {
            let story = describe_entries_of(entries, place.split(':').next().unwrap_or_default());
            Err(format!("the journal and the disk disagree: {place}; its last entries: {story}").into())
        }
    }
}

fn describe_entries_of(entries: &[StoredJournalEntry], place: &str) -> String {
    let about = |stored: &&StoredJournalEntry| {
        let near = |path: &str| place.starts_with(path) || path.starts_with(place);
        let changes = &stored.entry.changes;
        changes.iter().any(|change| near(&change.path) || change.to.as_deref().is_some_and(near))
    };
    let described = entries.iter().rev().filter(about).take(DESCRIBED_ENTRIES_MAX).map(|stored| {
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
    described.collect::<Vec<_>>().join("; ")
}

const DESCRIBED_ENTRIES_MAX: usize = 6;

/// Describes the first path at which two trees differ.
pub fn first_difference(one: &CrashTestFileVersionByPath, other: &CrashTestFileVersionByPath) -> Option<String> {
    let all: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let place = all.into_iter().find(|path| one.get(*path) != other.get(*path))?;
    Some(format!("{place}: {:?} and {:?}", one.get(place), other.get(place)))
}

/// Checks that the tree has all acknowledged changes, and the interrupted change completely or not at all.
fn match_model(
    workspace: &Arc<LocalWorkspace>,
    work: &mut CrashTestChildConfig,
    life: &KilledChildProgress,
    places: &CrashTestFileVersionByPath,
) -> Fallible<CrashTestInFlightOutcome> {
    let Some(old) = first_difference(&work.model.path_versions(), places) else {
        return Ok(CrashTestInFlightOutcome::NotApplied);
    };
    let Some(step) = &life.in_flight else {
        return Err(format!("an acknowledged change is not there: {old} (expected and found)").into());
    };
    let trash = match step {
        CrashTestWorkloadStep::Remove { .. } => workspace
            .trash(None)?
            .into_iter()
            .max_by_key(|item| item.entry)
            .map(|item| item.id)
            .filter(|id| !work.model.knows_trash(id)),
        CrashTestWorkloadStep::Write { .. }
        | CrashTestWorkloadStep::Append { .. }
        | CrashTestWorkloadStep::Copy { .. }
        | CrashTestWorkloadStep::Move { .. }
        | CrashTestWorkloadStep::Restore { .. }
        | CrashTestWorkloadStep::Undo
        | CrashTestWorkloadStep::Redo => None,
    };
    let mut new = work.model.clone();
    new.apply_step(step, trash);
    match first_difference(&new.path_versions(), places) {
        None => {
            work.model = new;
            Ok(CrashTestInFlightOutcome::Applied)
        }
        Some(place) => {
            Err(format!("{step:?} is half done: without it {old}; with it {place} (expected and found)").into())
        }
    }
}
