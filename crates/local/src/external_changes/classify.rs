//! Compares events with the disk and the journal: recorded changes are dropped, the rest become new changes. A path that a
//! call is changing right now is examined again later, under its lock.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use stead_disk::fs_events::FsEventSubject;
use stead_engine::{CallLockGuard, Error, ErrorKind, PathLockRequest, Version, Workspace};
use stead_journal::{ChangeKind, PathState, RecordedChange};
use stead_path::RelPath;

use super::{
    event_batch::{EventHints, ExternalEvent, ExternalMove, SeenBefore},
    observed_state::{ObservedState, change_since_recorded, is_same_state, observe_path, retainable_bytes},
    recorded_state::{self, LastRecordedState, RecordedStateLookup},
    watch_scopes::WatchScopes,
};
use crate::open::LocalWorkspace;

/// How long to wait for the lock of a path that a call is changing.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// Assumed mode of a directory that moved on before it was observed.
const DIRECTORY_MODE: u32 = 0o755;

/// A change that is not in the journal, and the entries it was compared with.
#[derive(Debug)]
pub(crate) struct ExternalChange {
    pub(crate) change: RecordedChange,
    /// Each path with the last entries about it and about its parents. If one of them changes, the change must be
    /// classified again.
    pub(crate) compared_entries: Vec<(RelPath, u64, u64)>,
    /// Content to retain, for later diffs.
    pub(crate) retained: Option<(Version, Vec<u8>)>,
    /// The event it was classified from.
    pub(crate) event: ExternalEvent,
}

impl ExternalChange {
    /// Whether the change is valid although observations at some paths cannot be trusted. A move is, without its content.
    pub(crate) fn holds_without(&mut self, is_uncertain: impl Fn(&RelPath) -> bool) -> bool {
        match &self.event {
            ExternalEvent::Touched { path, .. } => !is_uncertain(path),
            ExternalEvent::Moved(moved) => {
                if moved.to.as_ref().is_some_and(is_uncertain) {
                    self.change.after = self.change.before.clone();
                    self.retained = None;
                }
                true
            }
        }
    }
}

/// Observed moves made through stead: for each old path the last entry that recorded it.
#[derive(Debug, Default)]
pub(crate) struct OwnRenames(HashMap<RelPath, u64>);

const OWN_RENAMES_MAX: usize = 10_000;

impl OwnRenames {
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

/// Result of examining an event.
enum ChangeVerdict {
    /// The journal has it, or no watch covers it.
    AlreadyRecorded,
    NewChange(Box<ExternalChange>),
    /// A call is changing the path right now.
    Busy,
}

/// A classified batch.
#[derive(Default)]
pub(crate) struct ClassifiedBatch {
    /// Changes that are not in the journal, moves first.
    pub(crate) new_changes: Vec<ExternalChange>,
    /// Events that cannot be classified now.
    pub(crate) deferred: Vec<ExternalEvent>,
    /// All events about touched paths.
    pub(crate) touched: Vec<ExternalEvent>,
    /// The last entry before the classification.
    pub(crate) last_entry: u64,
    /// Paths whose state is uncertain.
    pub(crate) uncertain_paths: Vec<RelPath>,
    /// The moves among the new changes.
    moves: Vec<ExternalMove>,
}

/// Whether a moved file is still at its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MoveFinality {
    Stays,
    /// A later move of the same batch took it, or its path, away.
    MovedOn,
}

/// Classifies the events of one batch.
pub(crate) struct ExternalChangeClassifier<'a> {
    workspace: &'a LocalWorkspace,
    scopes: &'a WatchScopes,
    own_renames: &'a mut OwnRenames,
    /// An entry older than every event of the batch.
    since_entry: u64,
    /// The paths that callers changed since; `None` if there are too many.
    recently_changed: Option<HashSet<RelPath>>,
    /// Moves through stead, each with the number of external moves recorded before it.
    own_moves: Vec<(usize, ExternalMove)>,
    /// Number of external moves so far.
    reported_count: usize,
    recorded: RecordedStateLookup<'a>,
}

impl<'a> ExternalChangeClassifier<'a> {
    /// Creates a classifier for events after this entry.
    pub(crate) fn new(
        workspace: &'a LocalWorkspace,
        scopes: &'a WatchScopes,
        own_renames: &'a mut OwnRenames,
        since_entry: u64,
    ) -> Self {
        let recorded = RecordedStateLookup::new(&workspace.store);
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

    /// Classifies events: first the moves, then the touched paths.
    pub(crate) fn classify_all(mut self, items: Vec<ExternalEvent>) -> Result<ClassifiedBatch, Error> {
        let (moves, touched): (Vec<ExternalEvent>, Vec<ExternalEvent>) =
            items.into_iter().partition(|item| matches!(item, ExternalEvent::Moved(_)));
        let mut batch =
            ClassifiedBatch { last_entry: self.workspace.last_entry_number()?, ..ClassifiedBatch::default() };
        if !moves.is_empty() {
            self.recently_changed = self
                .workspace
                .store
                .run_query(|connection| recorded_state::changed_since(connection, self.since_entry))?;
        }
        let stays = move_finalities(&moves);
        let mut moves = moves.into_iter().zip(stays);
        while let Some((item, stay)) = moves.next() {
            match self.classify_event(&item, stay)? {
                ChangeVerdict::AlreadyRecorded => {}
                ChangeVerdict::NewChange(new_change) => {
                    let ExternalEvent::Moved(moved) = item else { continue };
                    let to = moved.to.as_ref().map(|to| (to, new_change.change.after.clone()));
                    self.recorded.note_move(&moved.from, to);
                    batch.moves.push(moved);
                    self.reported_count += 1;
                    batch.new_changes.push(*new_change);
                }
                ChangeVerdict::Busy => {
                    // Later events must not be recorded before this one.
                    batch.deferred = std::iter::once(item).chain(moves.map(|(item, _)| item)).collect();
                    batch.touched = touched;
                    return Ok(batch);
                }
            }
        }
        batch.touched = self.add_overtaken_paths(touched, &mut batch);
        for item in batch.touched.clone() {
            match self.classify_event(&item, MoveFinality::Stays)? {
                ChangeVerdict::AlreadyRecorded => {}
                ChangeVerdict::NewChange(new_change) => batch.new_changes.push(*new_change),
                ChangeVerdict::Busy => batch.deferred.push(item),
            }
        }
        Ok(batch)
    }

    /// Changes made through stead are in the journal before concurrent external moves, even if they happened after them; a
    /// reader of the entries would apply the moves to them. So their paths are examined too, under both names.
    fn add_overtaken_paths(&mut self, touched: Vec<ExternalEvent>, batch: &mut ClassifiedBatch) -> Vec<ExternalEvent> {
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
        for item in &mut touched {
            if let ExternalEvent::Touched { path, hints } = item
                && overtaken.remove(path)
            {
                hints.force_report();
            }
        }
        let rest = overtaken.into_iter().map(|path| {
            let mut hints = EventHints::APPEARED;
            hints.force_report();
            ExternalEvent::Touched { path, hints }
        });
        touched.extend(rest);
        touched
    }

    /// A move through stead may be in the journal before an external move that happened earlier; where both overlap, a reader
    /// would move the wrong file. Returns the affected file paths, and marks directories as uncertain.
    fn moves_crossing_own(&self, batch: &mut ClassifiedBatch) -> BTreeSet<RelPath> {
        let mut files = BTreeSet::new();
        for (before, own) in &self.own_moves {
            if own.subject == FsEventSubject::Directory && !own.touched_paths.is_empty() {
                // It left the tree while other programs may still be changing it.
                batch.uncertain_paths.extend(own.to.clone());
            }
            for others in batch.moves.iter().take(*before).filter(|others| others.overlaps(own)) {
                let names = own.paths().chain(others.paths()).cloned();
                match (own.subject, others.subject) {
                    (FsEventSubject::Other, FsEventSubject::Other) => files.extend(names),
                    (FsEventSubject::Directory, FsEventSubject::Directory | FsEventSubject::Other)
                    | (FsEventSubject::Other, FsEventSubject::Directory) => batch.uncertain_paths.extend(names),
                }
            }
        }
        files
    }

    fn classify_event(&mut self, item: &ExternalEvent, stay: MoveFinality) -> Result<ChangeVerdict, Error> {
        match self.examine_event(item, stay)? {
            None => return Ok(ChangeVerdict::AlreadyRecorded),
            Some((new_change, VerdictStability::Final)) => {
                return Ok(ChangeVerdict::NewChange(Box::new(new_change)));
            }
            Some((_, VerdictStability::EntryPending)) => {}
        }
        // The last entry about the path may not be applied yet. Under the lock it is applied, or its process is dead
        // and it is finished first.
        let paths = match item {
            ExternalEvent::Touched { path, .. } => vec![PathLockRequest { path: path.clone() }],
            ExternalEvent::Moved(moved) => moved.paths().map(|path| PathLockRequest { path: path.clone() }).collect(),
        };
        let guard: Box<dyn CallLockGuard> = match self.workspace.lock(&paths, Instant::now() + LOCK_WAIT) {
            Ok(guard) => guard,
            Err(error) if error.kind == ErrorKind::Busy => return Ok(ChangeVerdict::Busy),
            Err(error) => return Err(error),
        };
        self.recorded.clear_cache();
        let verdict = self.examine_event(item, stay)?;
        drop(guard);
        Ok(verdict
            .map_or(ChangeVerdict::AlreadyRecorded, |(new_change, _)| ChangeVerdict::NewChange(Box::new(new_change))))
    }

    /// Examines an event; also returns whether the verdict is valid without a lock.
    fn examine_event(
        &mut self,
        item: &ExternalEvent,
        stay: MoveFinality,
    ) -> Result<Option<(ExternalChange, VerdictStability)>, Error> {
        match item {
            ExternalEvent::Touched { path, hints } => self.classify_touch(path, *hints, item),
            ExternalEvent::Moved(moved) => match &moved.to {
                Some(to) => self.classify_rename(moved, to, stay, item),
                None => self.classify_departure(moved, item),
            },
        }
    }

    fn classify_touch(
        &mut self,
        path: &RelPath,
        hints: EventHints,
        item: &ExternalEvent,
    ) -> Result<Option<(ExternalChange, VerdictStability)>, Error> {
        let known = self.recorded.lookup(path)?;
        let Some(seen) = observe_path(self.workspace, path)? else { return Ok(None) };
        if seen.is_absent() && known.parent_removed {
            return Ok(None);
        }
        let heard = self.scopes.covers(path) || hints.appeared || hints.disappeared;
        let Some((kind, before)) = change_since_recorded(&known, &seen.state, hints).filter(|_| heard) else {
            return Ok(None);
        };
        let change = RecordedChange { path: path.to_string(), kind, to: None, before, after: seen.state.clone() };
        let trust = VerdictStability::from_recorded(&[&known]);
        let against = vec![known.comparison_key(path)];
        Ok(Some((
            ExternalChange {
                retained: retainable_bytes(&seen),
                change,
                compared_entries: against,
                event: item.clone(),
            },
            trust,
        )))
    }

    fn classify_rename(
        &mut self,
        moved: &ExternalMove,
        to: &RelPath,
        stay: MoveFinality,
        item: &ExternalEvent,
    ) -> Result<Option<(ExternalChange, VerdictStability)>, Error> {
        let from = &moved.from;
        let (known_from, known_to) = (self.recorded.lookup(from)?, self.recorded.lookup(to)?);
        if self.is_own_rename(moved)? || self.is_unseen_path(moved, &known_from) {
            return Ok(None);
        }
        let there = observe_path(self.workspace, to)?;
        if matches_recorded(there.as_ref(), moved.subject, &known_to)
            && matches_recorded(observe_path(self.workspace, from)?.as_ref(), moved.subject, &known_from)
        {
            return Ok(None);
        }
        let trust = VerdictStability::from_recorded(&[&known_from, &known_to]);
        let seen = there.filter(|seen| stay == MoveFinality::Stays && !seen.is_absent());
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
        let against = vec![known_from.comparison_key(from), known_to.comparison_key(to)];
        Ok(Some((ExternalChange { retained, change, compared_entries: against, event: item.clone() }, trust)))
    }
    fn classify_departure(
        &mut self,
        moved: &ExternalMove,
        item: &ExternalEvent,
    ) -> Result<Option<(ExternalChange, VerdictStability)>, Error> {
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
        let (trust, against) = (VerdictStability::from_recorded(&[&known]), vec![known.comparison_key(from)]);
        Ok(Some((ExternalChange { retained: None, change, compared_entries: against, event: item.clone() }, trust)))
    }

    /// Whether a move was made through stead. Each recorded move matches one event.
    fn is_own_rename(&mut self, moved: &ExternalMove) -> Result<bool, Error> {
        let after = self.since_entry.max(self.own_renames.last_entry(&moved.from));
        let own = self.recorded.find_own_move(moved, after)?;
        if let Some((number, to)) = &own {
            self.own_renames.record_rename(&moved.from, *number);
            self.own_moves.push((self.reported_count, ExternalMove { to: to.clone(), ..moved.clone() }));
        }
        Ok(own.is_some())
    }

    /// Whether the moved file is unknown to clients: it came and went unobserved, and no caller put anything there.
    fn is_unseen_path(&self, moved: &ExternalMove, known: &LastRecordedState) -> bool {
        let unknown = matches!(known.state, None | Some(PathState::Absent));
        let untouched = |paths: &HashSet<RelPath>| !paths.iter().any(|path| path.is_within(&moved.from));
        match moved.seen_before {
            SeenBefore::Yes => false,
            SeenBefore::No => unknown && self.recently_changed.as_ref().is_some_and(untouched),
        }
    }
}

/// Whether a verdict is valid without a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerdictStability {
    Final,
    /// The last entry about a path may not be applied yet.
    EntryPending,
}

impl VerdictStability {
    fn from_recorded(known: &[&LastRecordedState]) -> Self {
        if known.iter().any(|known| known.is_pending) {
            VerdictStability::EntryPending
        } else {
            VerdictStability::Final
        }
    }
}

/// Whether the recorded state of a move's source or target is complete and equals the observed one. The contents of a
/// directory are not recorded with it.
fn matches_recorded(seen: Option<&ObservedState>, subject: FsEventSubject, known: &LastRecordedState) -> bool {
    let Some(seen) = seen else { return true };
    let whole = subject == FsEventSubject::Other && !matches!(seen.state, PathState::Directory { .. });
    whole && known.state.as_ref().is_some_and(|state| is_same_state(state, &seen.state))
}

/// For each move of a batch whether it is the last one about its target. Other events are left out.
fn move_finalities(items: &[ExternalEvent]) -> Vec<MoveFinality> {
    let mut later: HashSet<&RelPath> = HashSet::new();
    let moves = items.iter().filter_map(|item| match item {
        ExternalEvent::Moved(moved) => Some(moved),
        ExternalEvent::Touched { .. } => None,
    });
    let mut stays: Vec<MoveFinality> = Vec::new();
    for moved in moves.rev() {
        let taken = |to: &RelPath| later.contains(to) || to.ancestors().any(|above| later.contains(&above));
        stays.push(if moved.to.as_ref().is_some_and(taken) { MoveFinality::MovedOn } else { MoveFinality::Stays });
        later.insert(&moved.from);
        later.extend(&moved.to);
    }
    stays.reverse();
    stays
}

impl LastRecordedState {
    /// The entries that a verdict depends on.
    fn comparison_key(&self, path: &RelPath) -> (RelPath, u64, u64) {
        (path.clone(), self.last_entry, self.last_parent_entry)
    }

    /// The state of a moved file, as far as it is known without observing it.
    fn moved_state(&self, subject: FsEventSubject) -> PathState {
        match (&self.state, subject) {
            (Some(state), _) if *state != PathState::Absent => state.clone(),
            (_, FsEventSubject::Directory) => PathState::Directory { mode: DIRECTORY_MODE },
            (_, FsEventSubject::Other) => PathState::Unknown { size: None },
        }
    }
}
