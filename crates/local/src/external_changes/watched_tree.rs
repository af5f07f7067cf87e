//! Keeps a model of the watched directory tree: processes kernel events in order and follows renames of directories.
//!
//! The kernel queues an event before the system call that caused it returns. If a path was renamed after the last
//! processed event, the event queue already contains the rename. A directory is watched only when the event queue is
//! empty, because only then the stored path of the directory is current. If a directory is renamed before its watch is
//! complete, the directory is watched again under its new path. The state of a path is recorded only if the event queue
//! contains no rename of the path.

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    time::{Duration, Instant},
};

use stead_disk::{
    DiskError, DiskStat, FileType, MultiSlotLockFile,
    fs_events::{
        FsEvent, FsEventDrainEndReason, FsEventFileType, FsEventKind, FsEventQueue as Queue, FsEventQueueWaker,
        InotifyWatchId,
    },
};
use stead_engine::Error;
use stead_journal::PathState;
use stead_path::RelPath;

use super::{
    attach::{self, DirectoryWatchInstaller, WatchAttachReport, WatchPreexistingEntriesReporting, WatchedDirectories},
    event_batch::{ExternalEventBatch, PathEventSummary, RenameCertainty},
    record::MissedFsEventsReason,
    recorded_state::{self, JournalPathStateReader},
    watch_scopes::CombinedWatchScopes,
};
use crate::{errors, open::LocalWorkspace};

const GATHER_WAIT: Duration = Duration::from_millis(2);
const GATHER_TIME_MAX: Duration = Duration::from_millis(100);
const RENAME_PAIR_WAIT: Duration = Duration::from_millis(20);
/// A file counts as moved out of the tree if this many events do not contain the second event of its rename.
const RENAME_PAIR_EVENTS_MAX: usize = 64;
/// The most file system events that are collected; with more events, the whole tree is rescanned.
const QUEUED_EVENTS_MAX: usize = 200_000;

#[derive(Default)]
pub(super) struct OtherProcessSignals {
    pub(super) written: bool,
    pub(super) lock_released: bool,
}

pub(super) struct WatchedTree {
    queue: Queue,
    /// The inotify watch on the lock file reports commits, because every process writes to the lock file after a
    /// commit.
    store_watch: InotifyWatchId,
    queued: VecDeque<FsEvent>,
    watched: WatchedDirectories,
    pub(super) scopes: CombinedWatchScopes,
    pub(super) batch: ExternalEventBatch,
    /// The current paths of new directories that must be watched but are not watched yet.
    unwatched: BTreeSet<RelPath>,
    /// Paths whose state is uncertain, for which a rescan entry is recorded after the batch.
    uncertain: BTreeSet<RelPath>,
    /// The reason why file system events were missed; after missed events, the whole tree must be rescanned.
    pub(super) missed: Option<MissedFsEventsReason>,
}

impl WatchedTree {
    pub(super) fn new(workspace: &LocalWorkspace, lock: &MultiSlotLockFile) -> Result<Self, DiskError> {
        let (queue, store) = create_queue(workspace, lock)?;
        Ok(Self {
            queue,
            store_watch: store,
            queued: VecDeque::new(),
            watched: WatchedDirectories::default(),
            scopes: CombinedWatchScopes::default(),
            batch: ExternalEventBatch::default(),
            unwatched: BTreeSet::new(),
            uncertain: BTreeSet::new(),
            missed: None,
        })
    }

    pub(super) fn wait(&self, waker: &FsEventQueueWaker, timeout: Duration) -> Result<(), DiskError> {
        let timeout = if self.queued.is_empty() { timeout } else { Duration::ZERO };
        self.queue.wait_with_waker(waker, timeout)
    }

    pub(super) fn has_lost_events(&self) -> bool {
        self.missed.is_some() || self.batch.len() + self.unwatched.len() > QUEUED_EVENTS_MAX
    }

    /// The whole tree is rescanned later, because discarded file system events are never recorded.
    pub(super) fn discard_batch(&mut self) {
        self.missed = Some(MissedFsEventsReason::ListeningGap);
        self.batch.clear();
    }

    /// The journal entry `floor` is older than every file system event that is not recorded yet.
    pub(super) fn gather_events(
        &mut self,
        workspace: &LocalWorkspace,
        floor: u64,
    ) -> Result<OtherProcessSignals, Error> {
        let mut store = OtherProcessSignals::default();
        self.drain_queue()?;
        if self.queued.iter().any(|event| event.watch != Some(self.store_watch)) {
            std::thread::sleep(GATHER_WAIT);
            self.drain_queue()?;
        }
        let end = Instant::now() + GATHER_TIME_MAX;
        while let Some(event) = self.queued.pop_front() {
            if event.watch == Some(self.store_watch) {
                store.written |= event.kind == FsEventKind::Modified;
                store.lock_released |= event.kind == FsEventKind::WriterClosed;
            } else {
                self.handle_event(workspace, event)?;
            }
            if self.queued.is_empty() && Instant::now() < end {
                self.drain_queue()?;
            }
        }
        self.watch_new_directories(workspace, floor)?;
        Ok(store)
    }

    fn drain_queue(&mut self) -> Result<(), Error> {
        let mut events = Vec::new();
        while self.queue.drain(&mut events).map_err(errors::watch_error)? == FsEventDrainEndReason::Partial {}
        self.queued.extend(events);
        Ok(())
    }

    /// A state that was observed at a renamed path is not recorded, because it may belong to another file.
    pub(super) fn paths_renamed_since_last_event(&mut self) -> Result<HashSet<RelPath>, Error> {
        self.drain_queue()?;
        let left = self.queued.iter().filter(|event| matches!(event.kind, FsEventKind::MovedFrom(_)));
        Ok(left.filter_map(|event| self.event_path(event)).collect())
    }

    fn event_path(&self, event: &FsEvent) -> Option<RelPath> {
        let (path, name) = (self.watched.path(event.watch?)?, event.name.as_ref()?);
        path.join(name).ok().filter(|_| !attach::is_temporary(name))
    }

    fn handle_event(&mut self, workspace: &LocalWorkspace, event: FsEvent) -> Result<(), Error> {
        let Some(id) = event.watch else {
            self.missed = Some(MissedFsEventsReason::Overflow);
            return Ok(());
        };
        if event.kind == FsEventKind::WatchRemoved {
            self.watched.remove(id);
            return Ok(());
        }
        let Some(path) = self.event_path(&event) else { return Ok(()) };
        let directory = event.subject == FsEventFileType::Directory;
        match event.kind {
            FsEventKind::Created => {
                self.touch_path(
                    &path,
                    PathEventSummary {
                        created: true,
                        appeared: true,
                        complete: directory,
                        ..PathEventSummary::NO_HINTS
                    },
                );
                if directory {
                    self.unwatched.insert(path);
                }
            }
            FsEventKind::Modified => {
                self.touch_path(&path, PathEventSummary { content_changed: true, ..PathEventSummary::NO_HINTS })
            }
            FsEventKind::WriterClosed => {
                self.touch_path(&path, PathEventSummary { writer_closed: true, ..PathEventSummary::NO_HINTS })
            }
            FsEventKind::AttributesChanged => self.touch_path(&path, PathEventSummary::NO_HINTS),
            FsEventKind::Deleted => {
                if self.unwatched.contains(&path) {
                    // The directory was not watched, so removals in it were not observed. Calls may have put files into
                    // the directory, so the whole directory is recorded as gone.
                    self.batch.record_departure(&path, event.subject);
                }
                self.touch_path(&path, PathEventSummary::DISAPPEARED);
                self.unwatched.retain(|unreached| !unreached.is_within(&path));
            }
            FsEventKind::MovedFrom(cookie) => self.handle_moved_from(workspace, &path, event.subject, cookie)?,
            FsEventKind::MovedTo(_) => {
                self.touch_path(&path, PathEventSummary::APPEARED);
                if directory {
                    self.unwatched.insert(path);
                }
            }
            FsEventKind::SelfMoved | FsEventKind::SelfDeleted | FsEventKind::WatchRemoved | FsEventKind::Overflow => {}
        }
        Ok(())
    }

    fn touch_path(&mut self, path: &RelPath, hints: PathEventSummary) {
        if self.scopes.is_relevant(path) {
            self.batch.touch(path, hints, Instant::now());
        }
    }

    fn concerns(&self, path: &RelPath, subject: FsEventFileType) -> bool {
        self.scopes.is_relevant(path) || (subject == FsEventFileType::Directory && self.scopes.must_watch(path))
    }

    /// inotify reports a rename with two events, between which a few other events may occur.
    fn handle_moved_from(
        &mut self,
        workspace: &LocalWorkspace,
        from: &RelPath,
        subject: FsEventFileType,
        cookie: u32,
    ) -> Result<(), Error> {
        if !self.concerns(from, subject) {
            return Ok(());
        }
        let Some(other) = self.take_moved_to(cookie)? else {
            self.batch.record_departure(from, subject);
            return self.unwatch_branch(from);
        };
        if other.name.as_ref().is_some_and(attach::is_temporary) {
            // A call renamed the file to a temporary name, so the journal contains the change.
            self.touch_path(from, PathEventSummary::DISAPPEARED);
            return self.unwatch_if_gone(workspace, from);
        }
        match self.event_path(&other) {
            Some(to) if self.concerns(&to, subject) => self.handle_rename(workspace, from, &to, subject),
            Some(_) | None => {
                self.batch.record_departure(from, subject);
                self.unwatch_branch(from)
            }
        }
    }

    fn take_moved_to(&mut self, cookie: u32) -> Result<Option<FsEvent>, Error> {
        let end = Instant::now() + RENAME_PAIR_WAIT;
        loop {
            let mut near = self.queued.iter().take(RENAME_PAIR_EVENTS_MAX);
            if let Some(at) = near.position(|event| event.kind == FsEventKind::MovedTo(cookie)) {
                return Ok(self.queued.remove(at));
            }
            let left = end.saturating_duration_since(Instant::now());
            if self.queued.len() >= RENAME_PAIR_EVENTS_MAX || left.is_zero() {
                return Ok(None);
            }
            self.queue.wait(left).map_err(errors::watch_error)?;
            self.drain_queue()?;
        }
    }

    fn handle_rename(
        &mut self,
        workspace: &LocalWorkspace,
        from: &RelPath,
        to: &RelPath,
        subject: FsEventFileType,
    ) -> Result<(), Error> {
        let certainty = self.batch.rename(from, to, subject, Instant::now());
        if subject != FsEventFileType::Directory {
            return Ok(());
        }
        let moved = |path: &RelPath| path.strip_prefix(from).and_then(|rest| to.append(&rest).ok());
        self.unwatched = self.unwatched.iter().map(|path| moved(path).unwrap_or_else(|| path.clone())).collect();
        self.unwatched.extend(self.watched.rename(from, to));
        if certainty == RenameCertainty::Ambiguous && matches!(workspace.root.stat(from), Ok(Some(_))) {
            self.unwatched.extend([from.clone(), to.clone()]);
        }
        self.remove_unneeded_watches(Some(to))?;
        if !self.watched.contains(to) {
            self.unwatched.insert(to.clone());
        }
        Ok(())
    }

    /// New directories are watched only while the event queue is empty, because only then their paths are current.
    fn watch_new_directories(&mut self, workspace: &LocalWorkspace, floor: u64) -> Result<(), Error> {
        // The second round is for directories that were renamed during the first round.
        for _ in 0..2 {
            if !self.queued.is_empty() || self.unwatched.is_empty() {
                break;
            }
            let (mut tops, mut new, mut reports) = (HashSet::new(), HashSet::new(), Vec::new());
            for top in std::mem::take(&mut self.unwatched) {
                if self.scopes.must_watch(&top) {
                    let attached = self.attach_watches(workspace, &top, WatchPreexistingEntriesReporting::Report);
                    let mut attached = attached.map_err(errors::at_path(&top))?;
                    self.unwatched.extend(attached.missing.drain(..));
                    new.extend(attached.new.iter().copied());
                    tops.insert(top.clone());
                    reports.push((top, attached));
                }
            }
            let moved = self.unwatch_moved(&new)?;
            for (top, attached) in reports {
                self.record_unwatched(workspace, &attached)?;
                self.report_contents(workspace, &top, attached.found_paths, &moved)?;
                self.doubt_renamed_paths(attached.renamed_meanwhile)?;
            }
            self.recheck_recorded_files(workspace, &tops, floor)?;
        }
        Ok(())
    }

    /// If the event queue does not contain the rename of a directory, the states of its old and new path are uncertain.
    fn doubt_renamed_paths(&mut self, renamed: Vec<(InotifyWatchId, [RelPath; 2])>) -> Result<(), Error> {
        for (id, names) in renamed {
            if self.queued.is_empty() {
                self.queue.remove_watch(id).map_err(errors::watch_error)?;
                self.watched.remove(id);
                self.uncertain.extend(names.clone());
            }
            self.unwatched.extend(names);
        }
        Ok(())
    }

    /// Files that calls wrote are checked again, because no event reports a deletion before their directory was
    /// watched. Files that later calls removed, or moved with their directory, are not checked.
    fn recheck_recorded_files(
        &mut self,
        workspace: &LocalWorkspace,
        tops: &HashSet<RelPath>,
        floor: u64,
    ) -> Result<(), Error> {
        let Some(paths) = workspace.store.run_query(|connection| recorded_state::changed_since(connection, floor))?
        else {
            self.uncertain.extend(tops.iter().cloned());
            return Ok(());
        };
        let mut recorded = JournalPathStateReader::new(&workspace.store);
        for path in paths {
            let is_below = tops.contains(&path) || path.ancestors().any(|above| tops.contains(&above));
            if is_below && recorded.lookup(&path)?.state.is_some_and(|state| state != PathState::Absent) {
                self.touch_path(&path, PathEventSummary::DISAPPEARED);
            }
        }
        Ok(())
    }

    /// Ends the watches of new directories that were renamed or deleted meanwhile, and schedules new watches for them.
    fn unwatch_moved(&mut self, new: &HashSet<InotifyWatchId>) -> Result<HashSet<RelPath>, Error> {
        let mut moved = HashSet::new();
        for named in self.directories_renamed_since()? {
            for (path, id) in self.watched.watches_within(&named) {
                if new.contains(&id) {
                    self.queue.remove_watch(id).map_err(errors::watch_error)?;
                    self.watched.remove(id);
                    self.unwatched.insert(path.clone());
                    moved.insert(path);
                }
            }
        }
        Ok(moved)
    }

    fn directories_renamed_since(&mut self) -> Result<HashSet<RelPath>, Error> {
        self.drain_queue()?;
        let named = self.queued.iter().filter(|event| {
            event.subject == FsEventFileType::Directory
                && matches!(event.kind, FsEventKind::MovedFrom(_) | FsEventKind::MovedTo(_) | FsEventKind::Deleted)
        });
        Ok(named.filter_map(|event| self.event_path(event)).collect())
    }

    /// If a call moved or restored a directory, only files that are newer than the call are reported.
    fn report_contents(
        &mut self,
        workspace: &LocalWorkspace,
        top: &RelPath,
        found: Vec<RelPath>,
        moved: &HashSet<RelPath>,
    ) -> Result<(), Error> {
        if found.is_empty() {
            return Ok(());
        }
        let brought_ms = JournalPathStateReader::new(&workspace.store).arrival_time_ms(top)?;
        for found in found {
            let is_new = brought_ms.is_none_or(|brought_ms| {
                let stat = workspace.root.stat(&found).ok().flatten();
                stat.is_some_and(|stat| is_newer(&stat, brought_ms))
            });
            if is_new && !found.parent().is_some_and(|parent| moved.contains(&parent)) {
                self.touch_path(&found, PathEventSummary::APPEARED);
            }
        }
        Ok(())
    }

    fn unwatch_branch(&mut self, path: &RelPath) -> Result<(), Error> {
        self.unwatched.retain(|unreached| !unreached.is_within(path));
        for (_, id) in self.watched.watches_within(path) {
            self.queue.remove_watch(id).map_err(errors::watch_error)?;
            self.watched.remove(id);
        }
        Ok(())
    }

    /// A removed path may exist again, because a call can replace a file by exchanging two names.
    fn unwatch_if_gone(&mut self, workspace: &LocalWorkspace, path: &RelPath) -> Result<(), Error> {
        match workspace.root.stat(path) {
            Ok(Some(_)) => Ok(()),
            Ok(None) | Err(_) => self.unwatch_branch(path),
        }
    }

    fn attach_watches(
        &mut self,
        workspace: &LocalWorkspace,
        top: &RelPath,
        finding: WatchPreexistingEntriesReporting,
    ) -> Result<WatchAttachReport, DiskError> {
        let (queue, scopes, watched) = (&self.queue, &self.scopes, &mut self.watched);
        DirectoryWatchInstaller { workspace, queue, scopes, watched, contents: finding }.attach_branch(top)
    }

    fn record_unwatched(&self, workspace: &LocalWorkspace, attached: &WatchAttachReport) -> Result<(), Error> {
        workspace.record_rescan(&attached.beyond_limit, MissedFsEventsReason::WatchLimit)?;
        workspace.record_rescan(&attached.denied, MissedFsEventsReason::PermissionDenied)
    }

    pub(super) fn mark_uncertain(&mut self, paths: Vec<RelPath>) {
        self.uncertain.extend(paths);
    }

    pub(super) fn record_uncertain_paths(&mut self, workspace: &LocalWorkspace) -> Result<(), Error> {
        if self.uncertain.is_empty() {
            return Ok(());
        }
        let paths = std::mem::take(&mut self.uncertain).into_iter().collect();
        workspace.record_rescan(&topmost_paths(paths), MissedFsEventsReason::ListeningGap)
    }

    /// The path of a client's watch need not exist and need not be a directory.
    pub(super) fn begin_watching(
        &mut self,
        workspace: &LocalWorkspace,
        watched_path: &RelPath,
    ) -> Result<WatchAttachReport, Error> {
        let attached = self.attach_watches(workspace, watched_path, WatchPreexistingEntriesReporting::Skip);
        let attached = attached.map_err(errors::at_path(watched_path))?;
        let below = |path: &&RelPath| !watched_path.is_within(path);
        self.unwatched.extend(attached.missing.iter().filter(below).cloned());
        self.unwatched.extend(attached.renamed_meanwhile.iter().flat_map(|(_, names)| names).cloned());
        self.unwatch_moved(&attached.new.iter().copied().collect())?;
        Ok(attached)
    }

    pub(super) fn remove_unneeded_watches(&mut self, branch: Option<&RelPath>) -> Result<(), Error> {
        let watched = match branch {
            Some(top) => self.watched.watches_within(top),
            None => self.watched.all_watches(),
        };
        for (path, id) in watched {
            if !self.scopes.must_watch(&path) {
                self.queue.remove_watch(id).map_err(errors::watch_error)?;
                self.watched.remove(id);
            }
        }
        Ok(())
    }

    /// A rescan watches all directories with a new event queue and records a rescan entry.
    pub(super) fn rescan_everything(
        &mut self,
        workspace: &LocalWorkspace,
        lock: &MultiSlotLockFile,
    ) -> Result<(), Error> {
        let missed = self.missed.unwrap_or(MissedFsEventsReason::Overflow);
        let (queue, store) = create_queue(workspace, lock).map_err(errors::watch_error)?;
        (self.queue, self.store_watch) = (queue, store);
        self.queued.clear();
        self.batch.clear();
        self.unwatched.clear();
        self.uncertain.clear();
        self.watched = WatchedDirectories::default();
        let paths: Vec<RelPath> = self.scopes.paths().cloned().collect();
        for path in &paths {
            let attached = self.begin_watching(workspace, path)?;
            self.record_unwatched(workspace, &attached)?;
        }
        workspace.record_rescan(&topmost_paths(paths.into_iter().collect()), missed)?;
        self.missed = None;
        // Signals of other processes may have been in the old queue.
        workspace.notify_waiters();
        Ok(())
    }
}

fn create_queue(workspace: &LocalWorkspace, lock: &MultiSlotLockFile) -> Result<(Queue, InotifyWatchId), DiskError> {
    let queue = Queue::new(&workspace.root.open_directory(&RelPath::root())?)?;
    let store = queue.watch_lock_file(lock)?;
    Ok((queue, store))
}

/// The age of a directory is judged by its creation time, because its other times change with its entries.
fn is_newer(stat: &DiskStat, than_ms: i64) -> bool {
    let than_ns = i128::from(than_ms) * 1_000_000;
    if stat.file_type == FileType::Directory {
        return stat.created_ns.is_some_and(|created_ns| created_ns >= than_ns);
    }
    stat.fingerprint.changed_ns >= than_ns
}

pub(super) fn topmost_paths(paths: HashSet<RelPath>) -> Vec<RelPath> {
    let below = |path: &RelPath| path.ancestors().any(|above| paths.contains(&above));
    let mut tops: Vec<RelPath> = paths.iter().filter(|path| !below(path)).cloned().collect();
    tops.sort();
    tops
}
