//! The recorder thread, which records changes by other programs. The recorder thread waits for writes to the store by
//! other processes, and for the death of the process that records. In the process that records, the recorder thread
//! also waits for changes in the directory tree.

use std::{
    collections::HashSet,
    sync::{
        Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use stead_disk::{
    DiskError, LockMode, MultiSlotLockFile,
    fs_events::{FsEventQueueWaker, watch_limit},
};
use stead_engine::{Error, RowFamily, WatchAttachStage, WatchWithStage, WatchesAtGeneration, Workspace};
use stead_path::RelPath;

use super::{
    classify::{ExternalChangeClassifier, OwnRenamesMatchedToEvents},
    event_batch::{UnclassifiedFsEvent, WRITER_CLOSE_WAIT},
    record::MissedFsEventsReason,
    watch_scopes::CombinedWatchScopes,
    watched_tree::{OtherProcessSignals, WatchedTree, topmost_paths},
};
use crate::{errors, open::LocalWorkspace, rows::load_generation, store::lock_ignoring_poison};

/// The position in the lock file that the recording process locks, above the positions of all path locks.
const RECORDER_SLOT: u64 = 1 << 62;
/// A standby process tries to become the recorder at this interval if no signal arrives.
const STANDBY_POLL: Duration = Duration::from_secs(30);
/// The kernel reports the close of a lock file before the lock is free, so a standby process tries several times.
const STANDBY_POLL_FIRST: Duration = Duration::from_millis(20);
const STANDBY_FAST_TRIES: u32 = 50;
const LIVENESS_CHECKS_MAX: u32 = 10;
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExternalChangeRecorderRole {
    /// Another process records changes; this process tries to take over when that process dies.
    Standby {
        tries: u32,
        next: Instant,
    },
    Recording,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecorderLoopControl {
    NextRound,
    End,
}

pub(super) struct ExternalChangeRecorder {
    tree: WatchedTree,
    waker: FsEventQueueWaker,
    lock: MultiSlotLockFile,
    role: ExternalChangeRecorderRole,
    attached: HashSet<String>,
    own_renames: OwnRenamesMatchedToEvents,
    generation: Option<u64>,
    /// The number of a journal entry that is older than every file system event that is not recorded yet.
    baseline_entry: u64,
    last_sweep: Instant,
    /// The time of the next check for dead processes with watches, and how many more checks may follow.
    liveness_check: Option<(Instant, u32)>,
}

impl ExternalChangeRecorder {
    pub(super) fn new(workspace: &LocalWorkspace, waker: FsEventQueueWaker) -> Result<Self, DiskError> {
        let lock = workspace.state.open_lock_file()?;
        let tree = WatchedTree::new(workspace, &lock)?;
        let now = Instant::now();
        Ok(Self {
            tree,
            waker,
            lock,
            role: ExternalChangeRecorderRole::Standby { tries: 0, next: now },
            attached: HashSet::new(),
            own_renames: OwnRenamesMatchedToEvents::default(),
            generation: None,
            baseline_entry: 0,
            last_sweep: now,
            liveness_check: Some((now, 0)),
        })
    }

    pub(super) fn run(mut self, workspace: &Weak<LocalWorkspace>, stop: &AtomicBool) {
        loop {
            {
                let Some(workspace) = workspace.upgrade() else { return };
                if stop.load(Ordering::Acquire) {
                    workspace.external_changes.is_listening.store(false, Ordering::Release);
                    return;
                }
                workspace.external_changes.rounds.fetch_add(1, Ordering::Relaxed);
                workspace.external_changes.is_listening.store(true, Ordering::Release);
                match self.run_round(&workspace) {
                    Ok(RecorderLoopControl::NextRound) => {}
                    Ok(RecorderLoopControl::End) => return,
                    Err(_) => {
                        // The batch is lost. Once the store can be written again, a rescan entry reports the loss.
                        workspace.count_background_failure();
                        self.tree.discard_batch();
                    }
                }
            }
            let most = self.wait_time();
            match self.tree.wait(&self.waker, most) {
                Ok(()) => {}
                Err(_) => std::thread::sleep(FAILURE_PAUSE),
            }
        }
    }

    fn wait_time(&self) -> Duration {
        let now = Instant::now();
        let role = match self.role {
            ExternalChangeRecorderRole::Standby { next, .. } => Some(next),
            ExternalChangeRecorderRole::Recording => Some(self.last_sweep + SWEEP_INTERVAL),
        };
        let missed = self.tree.missed.map(|_| now + FAILURE_PAUSE);
        let liveness =
            self.liveness_check.filter(|_| self.role == ExternalChangeRecorderRole::Recording).map(|(due, _)| due);
        let due = [self.tree.batch.next_due(now), role, missed, liveness].into_iter().flatten().min();
        due.map_or(SWEEP_INTERVAL, |due| due.saturating_duration_since(now))
    }

    fn run_round(&mut self, workspace: &LocalWorkspace) -> Result<RecorderLoopControl, Error> {
        // The number is read before the event queue, so that the events of the next round happen after the entry with
        // this number.
        let settled = workspace.last_settled_number()?;
        let store = self.tree.gather_events(workspace, self.baseline_entry)?;
        if store.written {
            workspace.notify_waiters();
        }
        self.try_become_recorder(workspace, &store)?;
        if self.role == ExternalChangeRecorderRole::Recording {
            if self.tree.has_lost_events() {
                self.tree.rescan_everything(workspace, &self.lock)?;
            }
            self.end_watches_of_dead_processes(workspace, &store)?;
            self.reconcile_watches(workspace)?;
            let ready = self.tree.batch.take_ready(Instant::now());
            self.classify_and_record(workspace, ready)?;
            self.tree.record_uncertain_paths(workspace)?;
            if !self.tree.batch.has_moves() {
                self.baseline_entry = settled;
            }
            self.delete_expired_watches(workspace)?;
        }
        self.end_if_unwatched(workspace)
    }

    fn try_become_recorder(&mut self, workspace: &LocalWorkspace, store: &OtherProcessSignals) -> Result<(), Error> {
        let ExternalChangeRecorderRole::Standby { tries, next } = self.role else { return Ok(()) };
        let now = Instant::now();
        if now < next && !store.lock_released {
            return Ok(());
        }
        let mine = self.lock.try_lock(RECORDER_SLOT, LockMode::Exclusive).map_err(errors::state_directory_error)?;
        if mine {
            self.role = ExternalChangeRecorderRole::Recording;
            // Until now another process recorded, or no process did. `start_recording` reports the gap for the existing
            // watches.
            self.tree.missed = None;
            self.baseline_entry = workspace.last_settled_number()?;
            return self.start_recording(workspace);
        }
        let tries = if store.lock_released { STANDBY_FAST_TRIES } else { tries.saturating_sub(1) };
        let next = now + if tries > 0 { STANDBY_POLL_FIRST } else { STANDBY_POLL };
        self.role = ExternalChangeRecorderRole::Standby { tries, next };
        Ok(())
    }

    fn start_recording(&mut self, workspace: &LocalWorkspace) -> Result<(), Error> {
        // The rows are read before the directories are watched. A watch that begins after this read misses no change.
        let rows = (workspace as &dyn Workspace).all_watches()?.watches;
        let started = rows.iter().filter(|row| row.watch.started_at_entry > 0);
        let paths: HashSet<RelPath> = started.map(|row| row.watch.path.clone()).collect();
        self.reconcile_watches(workspace)?;
        workspace.record_rescan(&topmost_paths(paths), MissedFsEventsReason::ListeningGap)
    }

    fn reconcile_watches(&mut self, workspace: &LocalWorkspace) -> Result<(), Error> {
        if self.generation
            == Some(workspace.store.run_query(|connection| load_generation(connection, RowFamily::Watch))?)
        {
            return Ok(());
        }
        let WatchesAtGeneration { watches: rows, generation } = (workspace as &dyn Workspace).all_watches()?;
        self.tree.scopes = CombinedWatchScopes::new(rows.iter().map(|row| &row.watch));
        let ids: HashSet<&str> = rows.iter().map(|row| row.watch.id.as_str()).collect();
        let before = self.attached.len();
        self.attached.retain(|id| ids.contains(id.as_str()));
        if self.attached.len() < before {
            self.tree.remove_unneeded_watches(None)?;
        }
        let new: Vec<&WatchWithStage> = rows.iter().filter(|row| !self.attached.contains(&row.watch.id)).collect();
        let mut stages = Vec::new();
        for row in &new {
            stages.push(self.attach_watch(workspace, row)?);
            self.attached.insert(row.watch.id.clone());
        }
        if !new.is_empty() {
            // Changes before the start of a watch do not concern the watch, so they are recorded before the watch
            // starts.
            self.tree.gather_events(workspace, self.baseline_entry)?;
            let waiting = self.tree.batch.take_ready(Instant::now() + WRITER_CLOSE_WAIT);
            self.classify_and_record(workspace, waiting)?;
        }
        for (row, stage) in new.iter().zip(stages) {
            if row.stage != stage && row.watch.started_at_entry == 0 {
                (workspace as &dyn Workspace).set_watch_stage(&row.watch.id, stage)?;
            }
        }
        self.generation = Some(generation);
        workspace.notify_waiters();
        Ok(())
    }

    /// At the system's watch limit, a started watch keeps the directories that are already watched; a new watch is
    /// refused.
    fn attach_watch(&mut self, workspace: &LocalWorkspace, row: &WatchWithStage) -> Result<WatchAttachStage, Error> {
        let path = &row.watch.path;
        let Ok(attached) = self.tree.begin_watching(workspace, path) else {
            return Ok(WatchAttachStage::Unsupported);
        };
        workspace.record_rescan(&attached.denied, MissedFsEventsReason::PermissionDenied)?;
        if attached.beyond_limit.is_empty() {
            return Ok(WatchAttachStage::Attached);
        }
        if row.watch.started_at_entry > 0 {
            workspace.record_rescan(&attached.beyond_limit, MissedFsEventsReason::WatchLimit)?;
        }
        Ok(WatchAttachStage::LimitReached { watches_max: watch_limit() })
    }

    fn classify_and_record(
        &mut self,
        workspace: &LocalWorkspace,
        items: Vec<UnclassifiedFsEvent>,
    ) -> Result<(), Error> {
        if items.is_empty() {
            return Ok(());
        }
        let classifier =
            ExternalChangeClassifier::new(workspace, &self.tree.scopes, &mut self.own_renames, self.baseline_entry);
        let mut batch = classifier.classify_all(items)?;
        let renamed = self.tree.paths_renamed_since_last_event()?;
        let is_renamed = |path: &RelPath| {
            !renamed.is_empty() && (renamed.contains(path) || path.ancestors().any(|above| renamed.contains(&above)))
        };
        batch.new_changes.retain_mut(|change| change.holds_without(is_renamed));
        let mut returned = workspace.record_external_changes(batch.new_changes, batch.last_entry)?;
        returned.append(&mut batch.deferred);
        let moves_recorded = returned.iter().all(|item| matches!(item, UnclassifiedFsEvent::Touched { .. }));
        // Touched paths were classified as if all moves were recorded. If a move was not recorded, the touched paths
        // are classified again.
        let uncertain = batch.touched.into_iter().filter(|item| match item {
            UnclassifiedFsEvent::Touched { path, .. } => !moves_recorded || is_renamed(path),
            UnclassifiedFsEvent::Moved(_) => false,
        });
        self.tree.batch.requeue(returned.into_iter().chain(uncertain), Instant::now());
        self.tree.mark_uncertain(batch.uncertain_paths);
        Ok(())
    }

    fn delete_expired_watches(&mut self, workspace: &LocalWorkspace) -> Result<(), Error> {
        if self.last_sweep.elapsed() >= SWEEP_INTERVAL {
            self.last_sweep = Instant::now();
            self.liveness_check = Some((self.last_sweep, 0));
            (workspace as &dyn Workspace).delete_ended_watches()?;
        }
        Ok(())
    }

    /// When a process dies, the kernel reports the close of the lock file before it frees the lock. The check for dead
    /// processes is repeated a few times, because the kernel may free their locks late.
    fn end_watches_of_dead_processes(
        &mut self,
        workspace: &LocalWorkspace,
        store: &OtherProcessSignals,
    ) -> Result<(), Error> {
        let now = Instant::now();
        if store.lock_released {
            self.liveness_check = Some((now, LIVENESS_CHECKS_MAX));
        }
        let Some((_, tries)) = self.liveness_check.filter(|(due, _)| *due <= now) else { return Ok(()) };
        let watches: &dyn Workspace = workspace;
        watches.delete_ended_watches()?;
        let is_of_other =
            |row: &WatchWithStage| row.process.as_ref().is_some_and(|process| *process != workspace.process_id);
        let any_alive = watches.all_watches()?.watches.iter().any(is_of_other);
        self.liveness_check = (any_alive && tries > 0).then(|| (now + STANDBY_POLL_FIRST, tries - 1));
        Ok(())
    }

    fn end_if_unwatched(&self, workspace: &LocalWorkspace) -> Result<RecorderLoopControl, Error> {
        if workspace.has_watches()? {
            return Ok(RecorderLoopControl::NextRound);
        }
        // While this thread holds the mutex, no caller can see the thread as running and rely on it.
        let mut running = lock_ignoring_poison(&workspace.external_changes.thread);
        if workspace.has_watches()? {
            return Ok(RecorderLoopControl::NextRound);
        }
        workspace.external_changes.is_listening.store(false, Ordering::Release);
        if running.as_ref().is_some_and(|running| running.thread.thread().id() == std::thread::current().id()) {
            *running = None;
        }
        Ok(RecorderLoopControl::End)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stead_engine::{RowChange, RowKey, RowWrite, Transaction, WatchDepth, WatchRow};
    use stead_journal::JournalEntry;
    use tempfile::TempDir;
    use testkit::engine_fixture::EngineFixture;

    use super::*;
    use crate::{LocalWorkspaceOptions, external_changes::recorded_state::JournalPathStateReader};

    /// A recorder without a thread: each test decides how far the recorder lags behind the calls.
    struct LaggingRecorder {
        calls: EngineFixture<LocalWorkspace>,
        recorder: ExternalChangeRecorder,
        directory: TempDir,
    }

    impl LaggingRecorder {
        #[expect(clippy::disallowed_methods, reason = "the test creates the directory of the workspace")]
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().join("ws");
            std::fs::create_dir(&root).unwrap();
            let workspace =
                LocalWorkspace::open(LocalWorkspaceOptions::new(root, directory.path().join("state"))).unwrap();
            let value = WatchRow {
                owner: "agent:one".to_owned(),
                session: "s".to_owned(),
                path: RelPath::root(),
                depth: WatchDepth::Deep,
                event_kinds: Vec::new(),
                glob: None,
                stage: WatchAttachStage::Requested,
                created_ms: workspace.now_ms(),
                polled_ms: workspace.now_ms(),
                process: None,
            };
            let (owner, value) = (value.owner.clone(), serde_json::to_string(&value).unwrap());
            let change = RowChange::Put { owner, subject: String::new(), value, bodies: Vec::new() };
            let write = RowWrite { family: RowFamily::Watch, key: RowKey::Named("w-1".to_owned()), change };
            let transaction = Transaction { rows: vec![write], ..Transaction::default() };
            workspace.commit_transaction(&transaction, None).unwrap();
            let recorder = ExternalChangeRecorder::new(&workspace, FsEventQueueWaker::new().unwrap()).unwrap();
            let mut lagging = Self { calls: EngineFixture::on_workspace(workspace), recorder, directory };
            lagging.record_all();
            lagging
        }

        fn call(&self, operation: &str, arguments: Value) -> Value {
            Value::Object(self.calls.call_ok(operation, arguments))
        }

        /// The recorder reads its events and watches new directories, but compares nothing with the journal yet.
        fn gather(&mut self) {
            self.recorder.tree.gather_events(&self.calls.workspace, self.recorder.baseline_entry).unwrap();
        }

        fn record_all(&mut self) {
            self.recorder.run_round(&self.calls.workspace).unwrap();
            while self.recorder.tree.batch.len() > 0 {
                self.recorder.run_round(&self.calls.workspace).unwrap();
            }
        }

        fn entries(&self) -> Vec<JournalEntry> {
            let read = |connection: &rusqlite::Connection| -> rusqlite::Result<Vec<Vec<u8>>> {
                connection
                    .prepare("SELECT bytes FROM entries ORDER BY number")?
                    .query_map([], |row| row.get(0))?
                    .collect()
            };
            let entries = self.calls.workspace.store.run_query(read).unwrap();
            entries.iter().map(|bytes| stead_journal::decode_entry(bytes).unwrap()).collect()
        }

        fn external_changes(&self) -> Vec<String> {
            let is_external = |entry: &JournalEntry| entry.caller.principal == "outside";
            let changes = self.entries().into_iter().filter(is_external).flat_map(|entry| entry.changes);
            changes.map(|change| format!("{:?} {}", change.kind, change.path)).collect()
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test is the other program that saves a file")]
    fn save_by_rename_is_one_modification() {
        let mut lagging = LaggingRecorder::new();
        lagging.call("write", json!({ "path": "a.rs", "content": "old\n" }));
        lagging.record_all();
        let root = lagging.directory.path().join("ws");
        std::fs::write(root.join(".a.rs.swp"), "new\n").unwrap();
        std::fs::rename(root.join(".a.rs.swp"), root.join("a.rs")).unwrap();
        lagging.record_all();
        assert_eq!(lagging.external_changes(), ["Modify a.rs"]);
    }

    #[test]
    fn own_files_in_a_directory_that_a_later_call_moved_are_not_external() {
        let mut lagging = LaggingRecorder::new();
        lagging.call("write", json!({ "path": "a/b/c.txt", "content": "1\n" }));
        lagging.call("write", json!({ "path": "a/b/e/d.txt", "content": "2\n" }));
        lagging.gather();
        lagging.call("move", json!({ "from": "a/b", "to": "a/moved" }));
        lagging.call("move", json!({ "from": "a", "to": "z" }));
        lagging.record_all();
        assert_eq!(lagging.external_changes(), [""; 0]);
    }

    #[test]
    fn own_files_in_a_directory_that_later_calls_removed_and_restored_are_not_external() {
        let mut lagging = LaggingRecorder::new();
        lagging.call("write", json!({ "path": "z/b/c.txt", "content": "1\n" }));
        lagging.gather();
        let removed = lagging.call("remove", json!({ "path": "z", "recursive": true }));
        lagging.call("restore", json!({ "trash": removed["trash"] }));
        lagging.call("undo", json!({}));
        lagging.call("redo", json!({}));
        lagging.record_all();
        assert_eq!(lagging.external_changes(), [""; 0]);
    }

    #[test]
    fn own_files_whose_directory_a_later_call_replaced_are_not_external() {
        let mut lagging = LaggingRecorder::new();
        lagging.call("write", json!({ "path": "a/b/c.txt", "content": "1\n" }));
        lagging.call("write", json!({ "path": "z/d.txt", "content": "2\n" }));
        lagging.call("move", json!({ "from": "a", "to": "x" }));
        lagging.call("move", json!({ "from": "z", "to": "a" }));
        lagging.record_all();
        assert_eq!(lagging.external_changes(), [""; 0]);
    }

    #[test]
    fn arrival_of_a_directory_is_known_after_a_later_call_removed_it() {
        let lagging = LaggingRecorder::new();
        lagging.call("write", json!({ "path": "a/c.txt", "content": "1\n" }));
        lagging.call("move", json!({ "from": "a", "to": "z" }));
        lagging.call("remove", json!({ "path": "z", "recursive": true }));
        let moved = lagging.entries().into_iter().find(|entry| entry.operation == "move").unwrap();
        let mut reader = JournalPathStateReader::new(&lagging.calls.workspace.store);
        assert_eq!(reader.arrival_time_ms(&RelPath::from_wire("z").unwrap()).unwrap(), Some(moved.time_ms));
        assert_eq!(reader.arrival_time_ms(&RelPath::from_wire("a").unwrap()).unwrap(), None);
    }
}
