//! Compares file system events with the disk and the journal. An event of a change that the journal already contains is
//! dropped; every other event becomes a new change. A path that a call may still be changing is locked before it is
//! examined.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use stead_disk::fs_events::FsEventFileType;
use stead_engine::{CallLockGuard, Error, ErrorKind, PathLockRequest, Version, Workspace};
use stead_journal::{ChangeKind, PathState, RecordedChange};
use stead_path::RelPath;

use super::{
    event_batch::{ExternalMove, OldPathKnownToClients, PathEventSummary, UnclassifiedFsEvent},
    observed_state::{ObservedPathState, change_since_recorded, is_same_state, observe_path, retainable_bytes},
    recorded_state::{self, JournalPathStateReader, LastRecordedPathState},
    watch_scopes::CombinedWatchScopes,
};
use crate::open::LocalWorkspace;

const LOCK_WAIT: Duration = Duration::from_millis(50);

/// The recorded mode of a moved directory whose permission bits are not in the journal.
const DIRECTORY_MODE: u32 = 0o755;

#[derive(Debug)]
pub(crate) struct UnrecordedExternalChange {
    pub(crate) change: RecordedChange,
    /// Each path of the change, with the last journal entries about the path and about a directory above the path. A
    /// change is classified again if the journal gets newer entries about one of its paths.
    pub(crate) compared_entries: Vec<(RelPath, u64, u64)>,
    pub(crate) retained: Option<(Version, Vec<u8>)>,
    pub(crate) event: UnclassifiedFsEvent,
}

impl UnrecordedExternalChange {
    /// Whether an observed change can be recorded although some paths are uncertain. An uncertain path may have changed
    /// since its state was observed. A move can always be recorded, and any other change only if its path is certain.
    /// If the target of a move is uncertain, the recorded state after the move equals the state before the move.
    pub(crate) fn holds_without(&mut self, is_uncertain: impl Fn(&RelPath) -> bool) -> bool {
        match &self.event {
            UnclassifiedFsEvent::Touched { path, .. } => !is_uncertain(path),
            UnclassifiedFsEvent::Moved(moved) => {
                if moved.to.as_ref().is_some_and(is_uncertain) {
                    self.change.after = self.change.before.clone();
                    self.retained = None;
                }
                true
            }
        }
    }
}

/// Stores for each old path the last journal entry whose move matched an event, so that no second event matches the
/// same move.
#[derive(Debug, Default)]
pub(crate) struct OwnRenamesMatchedToEvents(HashMap<RelPath, u64>);

const OWN_RENAMES_MAX: usize = 10_000;

impl OwnRenamesMatchedToEvents {
    fn last_entry(&self, from: &RelPath) -> u64 {
        self.0.get(from).copied().unwrap_or(0)
    }

    fn record_rename(&mut self, from: &RelPath, number: u64) {
        if self.0.len() >= OWN_RENAMES_MAX {
            self.0.clear();
        }
        self.0.insert(from.clone(), number);
    }
}

enum ExternalChangeVerdict {
    /// The journal already contains the change, or no client's watch covers the path of the change.
    AlreadyRecorded,
    NewChange(Box<UnrecordedExternalChange>),
    /// A call that is changing the path of the event has locked the path.
    Busy,
}

#[derive(Default)]
pub(crate) struct ClassifiedBatch {
    /// The observed changes that the journal does not contain; moves come before other changes.
    pub(crate) new_changes: Vec<UnrecordedExternalChange>,
    /// The file system events that cannot be classified while a call is changing their paths.
    pub(crate) deferred: Vec<UnclassifiedFsEvent>,
    /// The file system events of the batch that are not moves.
    pub(crate) touched: Vec<UnclassifiedFsEvent>,
    /// The number of the last journal entry when the classification of the batch began.
    pub(crate) last_entry: u64,
    /// The paths with an uncertain state, which a rescan entry will report to clients.
    pub(crate) uncertain_paths: Vec<RelPath>,
    moves: Vec<ExternalMove>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExternalMoveTargetStillCurrent {
    Stays,
    /// A later move in the batch changed the target path of an earlier move.
    MovedOn,
}

pub(crate) struct ExternalChangeClassifier<'a> {
    workspace: &'a LocalWorkspace,
    scopes: &'a CombinedWatchScopes,
    own_renames: &'a mut OwnRenamesMatchedToEvents,
    /// The number of a journal entry that is older than every event of the batch.
    since_entry: u64,
    /// The paths that calls changed after the journal entry `since_entry`; `None` if there are too many changes.
    recently_changed: Option<HashSet<RelPath>>,
    /// Each move by a call that matches an event, with the number of earlier moves by other programs.
    own_moves: Vec<(usize, ExternalMove)>,
    reported_count: usize,
    recorded: JournalPathStateReader<'a>,
}

impl<'a> ExternalChangeClassifier<'a> {
    pub(crate) fn new(
        workspace: &'a LocalWorkspace,
        scopes: &'a CombinedWatchScopes,
        own_renames: &'a mut OwnRenamesMatchedToEvents,
        since_entry: u64,
    ) -> Self {
        let recorded = JournalPathStateReader::new(&workspace.store);
        Self {
            workspace,
            scopes,
            own_renames,
            since_entry,
            recently_changed: None,
            own_moves: Vec::new(),
            reported_count: 0,
            recorded,
        }
    }

    pub(crate) fn classify_all(mut self, events: Vec<UnclassifiedFsEvent>) -> Result<ClassifiedBatch, Error> {
        let (moves, touched): (Vec<UnclassifiedFsEvent>, Vec<UnclassifiedFsEvent>) =
            events.into_iter().partition(|event| matches!(event, UnclassifiedFsEvent::Moved(_)));
        let mut batch =
            ClassifiedBatch { last_entry: self.workspace.last_entry_number()?, ..ClassifiedBatch::default() };
        if !moves.is_empty() {
            let store = &self.workspace.store;
            self.recently_changed =
                store.run_query(|connection| recorded_state::changed_since(connection, self.since_entry))?;
        }
        let finalities = move_finalities(&moves);
        let mut moves = moves.into_iter().zip(finalities);
        while let Some((event, finality)) = moves.next() {
            match self.classify_event(&event, finality)? {
                ExternalChangeVerdict::AlreadyRecorded => {}
                ExternalChangeVerdict::NewChange(new_change) => {
                    let UnclassifiedFsEvent::Moved(moved) = event else { continue };
                    let to = moved.to.as_ref().map(|to| (to, new_change.change.after.clone()));
                    self.recorded.note_move(&moved.from, to);
                    batch.moves.push(moved);
                    self.reported_count += 1;
                    batch.new_changes.push(*new_change);
                }
                ExternalChangeVerdict::Busy => {
                    // Later events must not be recorded before this event, so they are deferred as well.
                    batch.deferred = std::iter::once(event).chain(moves.map(|(event, _)| event)).collect();
                    batch.touched = touched;
                    return Ok(batch);
                }
            }
        }
        batch.touched = self.add_overtaken_paths(touched, &mut batch);
        for event in batch.touched.clone() {
            match self.classify_event(&event, ExternalMoveTargetStillCurrent::Stays)? {
                ExternalChangeVerdict::AlreadyRecorded => {}
                ExternalChangeVerdict::NewChange(new_change) => batch.new_changes.push(*new_change),
                ExternalChangeVerdict::Busy => batch.deferred.push(event),
            }
        }
        Ok(batch)
    }

    /// Adds paths that calls changed recently and that a move by another program affects, under their old and new
    /// names. The journal records a move by another program too late, so the affected paths are examined on disk.
    fn add_overtaken_paths(
        &mut self,
        touched: Vec<UnclassifiedFsEvent>,
        batch: &mut ClassifiedBatch,
    ) -> Vec<UnclassifiedFsEvent> {
        let left_behind: Vec<RelPath> = self.own_moves.iter().flat_map(|(_, own)| own.paths_left_behind()).collect();
        if batch.moves.is_empty() && left_behind.is_empty() {
            return touched;
        }
        let Some(changed) = self.recently_changed.take() else {
            batch.uncertain_paths.extend(batch.moves.iter().flat_map(ExternalMove::paths).cloned());
            return touched;
        };
        let mut overtaken = self.moves_crossing_own(batch);
        overtaken.extend(left_behind);
        for changed_path in changed {
            let last = batch
                .moves
                .iter()
                .try_fold(changed_path.clone(), |changed_path, moved| moved.new_path_of(changed_path));
            if last.as_ref() != Some(&changed_path) {
                overtaken.extend(last);
                overtaken.insert(changed_path);
            }
        }
        let mut touched = touched;
        for event in &mut touched {
            if let UnclassifiedFsEvent::Touched { path, hints } = event
                && overtaken.remove(path)
            {
                hints.force_report();
            }
        }
        let rest = overtaken.into_iter().map(|path| {
            let mut hints = PathEventSummary::APPEARED;
            hints.force_report();
            UnclassifiedFsEvent::Touched { path, hints }
        });
        touched.extend(rest);
        touched
    }

    /// Finds the moves by calls that share a path with an earlier move by another program. The journal will record both
    /// moves in the wrong order, so replaying its entries would move the wrong file. The paths of moved files are
    /// returned; if a directory was moved, the paths become uncertain.
    fn moves_crossing_own(&self, batch: &mut ClassifiedBatch) -> BTreeSet<RelPath> {
        let mut files = BTreeSet::new();
        for (before, own) in &self.own_moves {
            if own.subject == FsEventFileType::Directory && !own.touched_paths.is_empty() {
                // The directory left the tree, and other programs may still be changing files in it.
                batch.uncertain_paths.extend(own.to.clone());
            }
            for others in batch.moves.iter().take(*before).filter(|others| others.overlaps(own)) {
                let names = own.paths().chain(others.paths()).cloned();
                match (own.subject, others.subject) {
                    (FsEventFileType::Other, FsEventFileType::Other) => files.extend(names),
                    (FsEventFileType::Directory, FsEventFileType::Directory | FsEventFileType::Other)
                    | (FsEventFileType::Other, FsEventFileType::Directory) => batch.uncertain_paths.extend(names),
                }
            }
        }
        files
    }

    fn classify_event(
        &mut self,
        event: &UnclassifiedFsEvent,
        finality: ExternalMoveTargetStillCurrent,
    ) -> Result<ExternalChangeVerdict, Error> {
        match self.examine_event(event, finality)? {
            None => return Ok(ExternalChangeVerdict::AlreadyRecorded),
            Some((new_change, ClassificationFinality::Final)) => {
                return Ok(ExternalChangeVerdict::NewChange(Box::new(new_change)));
            }
            Some((_, ClassificationFinality::EntryPending)) => {}
        }
        // The last entry about the path may not be applied yet. Once the path is locked, the entry is applied: its
        // process has finished it, or taking the lock finishes the entry of a dead process.
        let paths = match event {
            UnclassifiedFsEvent::Touched { path, .. } => vec![PathLockRequest { path: path.clone() }],
            UnclassifiedFsEvent::Moved(moved) => {
                moved.paths().map(|path| PathLockRequest { path: path.clone() }).collect()
            }
        };
        let guard: Box<dyn CallLockGuard> = match self.workspace.lock(&paths, Instant::now() + LOCK_WAIT) {
            Ok(guard) => guard,
            Err(error) if error.kind == ErrorKind::Busy => return Ok(ExternalChangeVerdict::Busy),
            Err(error) => return Err(error),
        };
        self.recorded.clear_cache();
        let verdict = self.examine_event(event, finality)?;
        drop(guard);
        Ok(verdict.map_or(ExternalChangeVerdict::AlreadyRecorded, |(new_change, _)| {
            ExternalChangeVerdict::NewChange(Box::new(new_change))
        }))
    }

    /// Derives the change from a file system event; `None` means that nothing is to be recorded.
    fn examine_event(
        &mut self,
        event: &UnclassifiedFsEvent,
        finality: ExternalMoveTargetStillCurrent,
    ) -> Result<Option<(UnrecordedExternalChange, ClassificationFinality)>, Error> {
        match event {
            UnclassifiedFsEvent::Touched { path, hints } => self.classify_touch(path, *hints, event),
            UnclassifiedFsEvent::Moved(moved) => match &moved.to {
                Some(to) => self.classify_rename(moved, to, finality, event),
                None => self.classify_departure(moved, event),
            },
        }
    }

    fn classify_touch(
        &mut self,
        path: &RelPath,
        hints: PathEventSummary,
        event: &UnclassifiedFsEvent,
    ) -> Result<Option<(UnrecordedExternalChange, ClassificationFinality)>, Error> {
        let known = self.recorded.lookup(path)?;
        let Some(seen) = observe_path(self.workspace, path)? else { return Ok(None) };
        if seen.is_absent() && known.parent_removed {
            return Ok(None);
        }
        let is_covered = self.scopes.covers(path) || hints.appeared || hints.disappeared;
        let Some((kind, before)) = change_since_recorded(&known, &seen.state, hints).filter(|_| is_covered) else {
            return Ok(None);
        };
        let change = RecordedChange { path: path.to_string(), kind, to: None, before, after: seen.state.clone() };
        let stability = ClassificationFinality::from_recorded(&[&known]);
        let (retained, compared_entries) = (retainable_bytes(&seen), vec![known.comparison_key(path)]);
        Ok(Some((UnrecordedExternalChange { change, compared_entries, retained, event: event.clone() }, stability)))
    }

    fn classify_rename(
        &mut self,
        moved: &ExternalMove,
        to: &RelPath,
        finality: ExternalMoveTargetStillCurrent,
        event: &UnclassifiedFsEvent,
    ) -> Result<Option<(UnrecordedExternalChange, ClassificationFinality)>, Error> {
        let from = &moved.from;
        let (known_from, known_to) = (self.recorded.lookup(from)?, self.recorded.lookup(to)?);
        if self.is_own_rename(moved)? || self.is_unseen_path(moved, &known_from) {
            return Ok(None);
        }
        let observed = observe_path(self.workspace, to)?;
        if matches_recorded(observed.as_ref(), moved.subject, &known_to)
            && matches_recorded(observe_path(self.workspace, from)?.as_ref(), moved.subject, &known_from)
        {
            return Ok(None);
        }
        let stability = ClassificationFinality::from_recorded(&[&known_from, &known_to]);
        let seen = observed.filter(|seen| finality == ExternalMoveTargetStillCurrent::Stays && !seen.is_absent());
        let before = known_from.moved_state(moved.subject);
        let (after, retained) = match &seen {
            Some(seen) => (seen.state.clone(), retainable_bytes(seen)),
            None => (before.clone(), None),
        };
        let change = RecordedChange {
            path: from.to_string(),
            kind: ChangeKind::Rename,
            to: Some(to.to_string()),
            before,
            after,
        };
        let compared_entries = vec![known_from.comparison_key(from), known_to.comparison_key(to)];
        Ok(Some((UnrecordedExternalChange { change, compared_entries, retained, event: event.clone() }, stability)))
    }

    fn classify_departure(
        &mut self,
        moved: &ExternalMove,
        event: &UnclassifiedFsEvent,
    ) -> Result<Option<(UnrecordedExternalChange, ClassificationFinality)>, Error> {
        let from = &moved.from;
        let known = self.recorded.lookup(from)?;
        if self.is_own_rename(moved)? || self.is_unseen_path(moved, &known) {
            return Ok(None);
        }
        if matches_recorded(observe_path(self.workspace, from)?.as_ref(), moved.subject, &known) {
            return Ok(None);
        }
        let change = RecordedChange {
            path: from.to_string(),
            kind: ChangeKind::Remove,
            to: None,
            before: known.moved_state(moved.subject),
            after: PathState::Absent,
        };
        let stability = ClassificationFinality::from_recorded(&[&known]);
        let compared_entries = vec![known.comparison_key(from)];
        Ok(Some((
            UnrecordedExternalChange { change, compared_entries, retained: None, event: event.clone() },
            stability,
        )))
    }

    /// A call's move in the journal matches at most one rename event.
    fn is_own_rename(&mut self, moved: &ExternalMove) -> Result<bool, Error> {
        let after = self.since_entry.max(self.own_renames.last_entry(&moved.from));
        let own = self.recorded.find_own_move(moved, after)?;
        if let Some((number, to)) = &own {
            self.own_renames.record_rename(&moved.from, *number);
            self.own_moves.push((self.reported_count, ExternalMove { to: to.clone(), ..moved.clone() }));
        }
        Ok(own.is_some())
    }

    /// Clients do not know a path that appeared within the current batch, unless a call changed the path.
    fn is_unseen_path(&self, moved: &ExternalMove, known: &LastRecordedPathState) -> bool {
        let is_unknown = matches!(known.state, None | Some(PathState::Absent));
        let is_untouched = |paths: &HashSet<RelPath>| !paths.iter().any(|path| path.is_within(&moved.from));
        match moved.seen_before {
            OldPathKnownToClients::Yes => false,
            OldPathKnownToClients::No => is_unknown && self.recently_changed.as_ref().is_some_and(is_untouched),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassificationFinality {
    Final,
    /// A path must be locked if its last journal entry may not be applied to the disk yet.
    EntryPending,
}

impl ClassificationFinality {
    fn from_recorded(known: &[&LastRecordedPathState]) -> Self {
        if known.iter().any(|known| known.is_pending) { Self::EntryPending } else { Self::Final }
    }
}

/// A directory never matches its state in the journal, because the journal does not list its contents.
fn matches_recorded(seen: Option<&ObservedPathState>, subject: FsEventFileType, known: &LastRecordedPathState) -> bool {
    let Some(seen) = seen else { return true };
    let is_file = subject == FsEventFileType::Other && !matches!(seen.state, PathState::Directory { .. });
    is_file && known.state.as_ref().is_some_and(|state| is_same_state(state, &seen.state))
}

fn move_finalities(events: &[UnclassifiedFsEvent]) -> Vec<ExternalMoveTargetStillCurrent> {
    let mut later: HashSet<&RelPath> = HashSet::new();
    let moves = events.iter().filter_map(|event| match event {
        UnclassifiedFsEvent::Moved(moved) => Some(moved),
        UnclassifiedFsEvent::Touched { .. } => None,
    });
    let mut finalities: Vec<ExternalMoveTargetStillCurrent> = Vec::new();
    for moved in moves.rev() {
        let is_moved = |to: &RelPath| later.contains(to) || to.ancestors().any(|above| later.contains(&above));
        let moved_on = moved.to.as_ref().is_some_and(is_moved);
        finalities.push(if moved_on {
            ExternalMoveTargetStillCurrent::MovedOn
        } else {
            ExternalMoveTargetStillCurrent::Stays
        });
        later.insert(&moved.from);
        later.extend(&moved.to);
    }
    finalities.reverse();
    finalities
}

impl LastRecordedPathState {
    fn comparison_key(&self, path: &RelPath) -> (RelPath, u64, u64) {
        (path.clone(), self.last_entry, self.last_parent_entry)
    }

    fn moved_state(&self, subject: FsEventFileType) -> PathState {
        match (&self.state, subject) {
            (Some(state), _) if *state != PathState::Absent => state.clone(),
            (_, FsEventFileType::Directory) => PathState::Directory { mode: DIRECTORY_MODE },
            (_, FsEventFileType::Other) => PathState::Unknown { size: None },
        }
    }
}
