//! Background work of an open workspace: writes deferred entries, signs checkpoints, syncs changes to disk, empties the
//! trash and drops old versions. One maintenance thread per open workspace does the background work.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::params;
use stead_disk::FileType;
use stead_engine::Error;
use stead_path::{FileName, RelPath, TEMPORARY_PREFIX};

use crate::{
    errors,
    open::LocalWorkspace,
    rows,
    store::{lock_ignoring_poison, to_sql_integer},
};

/// The longest time that a deferred journal entry stays only in memory.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);
/// The longest time that new journal entries stay unsigned.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time that applied changes are not synced to disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// The number of deferred journal entries at which a caller writes the entries itself.
pub(crate) const DEFERRED_ENTRIES_FLUSH_AT: u64 = 512;
/// The age at which a staged file that no journal entry needs counts as abandoned.
const LEFTOVER_AGE_MIN: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(crate) struct MaintenanceSignal {
    state: Mutex<MaintenanceThreadPhase>,
    woken: Condvar,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum MaintenanceThreadPhase {
    #[default]
    Idle,
    /// The maintenance thread was woken and waits briefly for more work.
    Gathering,
    Stopping,
}

impl MaintenanceSignal {
    pub(crate) fn wake(&self) {
        let mut state = lock_ignoring_poison(&self.state);
        if *state == MaintenanceThreadPhase::Idle {
            *state = MaintenanceThreadPhase::Gathering;
            self.woken.notify_one();
        }
    }

    fn stop(&self) {
        *lock_ignoring_poison(&self.state) = MaintenanceThreadPhase::Stopping;
        self.woken.notify_one();
    }

    /// The maintenance thread waits for work, then a moment longer to collect more work. Waiting returns false if the
    /// maintenance thread must end.
    fn wait(&self) -> bool {
        let state = lock_ignoring_poison(&self.state);
        let idle = |state: &mut MaintenanceThreadPhase| *state == MaintenanceThreadPhase::Idle;
        let (state, _) =
            self.woken.wait_timeout_while(state, SWEEP_INTERVAL, idle).unwrap_or_else(PoisonError::into_inner);
        let gathering = |state: &mut MaintenanceThreadPhase| *state == MaintenanceThreadPhase::Gathering;
        let (mut state, _) =
            self.woken.wait_timeout_while(state, FLUSH_INTERVAL, gathering).unwrap_or_else(PoisonError::into_inner);
        if *state == MaintenanceThreadPhase::Stopping {
            return false;
        }
        *state = MaintenanceThreadPhase::Idle;
        true
    }
}

/// Dropping a `MaintenanceThread` stops the maintenance thread.
pub(crate) struct MaintenanceThread {
    signal: Arc<MaintenanceSignal>,
    thread: Option<JoinHandle<()>>,
}

impl MaintenanceThread {
    pub(crate) fn start(workspace: Weak<LocalWorkspace>, signal: Arc<MaintenanceSignal>) -> Option<Self> {
        let thread_signal = Arc::clone(&signal);
        let thread = std::thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || run_maintenance(&workspace, &thread_signal))
            .ok();
        thread.map(|thread| Self { signal, thread: Some(thread) })
    }
}

impl Drop for MaintenanceThread {
    fn drop(&mut self) {
        self.signal.stop();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic of the thread is ignored: the next open finishes the remaining work.
            thread.join().unwrap_or_default();
        }
    }
}

fn run_maintenance(workspace: &Weak<LocalWorkspace>, signal: &MaintenanceSignal) {
    let start = Instant::now();
    let (mut signed, mut swept) = (start, start);
    // Entries that were pending at open are synced in the first round, so that they are not checked again.
    let mut synced: Option<Instant> = None;
    while signal.wait() {
        let Some(workspace) = workspace.upgrade() else { return };
        let now = Instant::now();
        // Failed work is retried in the next round. Callers get the errors of a broken store from their own calls.
        let mut failed = workspace.flush().is_err();
        if now - signed >= CHECKPOINT_INTERVAL {
            failed |= workspace.sign_checkpoint().is_err();
            signed = now;
        } else {
            signal.wake();
        }
        if synced.is_none_or(|synced| now - synced >= SYNC_INTERVAL) {
            failed |= workspace.recover_pending().is_err() | workspace.mark_synced_entries().is_err();
            synced = Some(now);
        }
        if now - swept >= SWEEP_INTERVAL {
            failed |= workspace.delete_expired_trash().is_err() | workspace.prune().is_err();
            workspace.remove_old_leftovers(LEFTOVER_AGE_MIN);
            swept = now;
        }
        if failed {
            workspace.count_background_failure();
        }
    }
}

impl LocalWorkspace {
    pub(crate) fn mark_synced_entries(&self) -> Result<(), Error> {
        let applied = std::mem::take(&mut *lock_ignoring_poison(&self.applied_entries));
        if applied.is_empty() {
            return Ok(());
        }
        let synced = self.sync_file_system().and_then(|()| {
            self.write_rows(|connection| {
                let mut delete = connection.prepare_cached("DELETE FROM pending WHERE number = ?1")?;
                applied.iter().try_for_each(|number| {
                    rows::delete_compensation(connection, *number)?;
                    delete.execute(params![to_sql_integer(*number)]).map(drop)
                })
            })
        });
        if synced.is_err() {
            lock_ignoring_poison(&self.applied_entries).extend(applied);
        } else {
            let mut verified = lock_ignoring_poison(&self.verified_entries);
            for number in &applied {
                verified.remove(number);
            }
        }
        synced
    }

    pub(crate) fn sync_file_system(&self) -> Result<(), Error> {
        self.root.sync_file_system().map_err(|error| {
            // A failed sync is final: a second sync may succeed although the data is lost.
            self.store.mark_read_only();
            errors::error_at_path(&RelPath::root(), error)
        })
    }

    /// Deletes old staged files that no pending journal entry needs, in all directories where staged files were seen.
    pub fn remove_old_leftovers(&self, age: Duration) {
        let directories: Vec<RelPath> = lock_ignoring_poison(&self.tree.directories_with_leftovers).drain().collect();
        let now_ns = i128::from(self.clock.now().wall_ms) * 1_000_000;
        let age_ns = i128::try_from(age.as_nanos()).unwrap_or(i128::MAX);
        for path in directories {
            let Ok(directory) = self.root.open_directory(&path) else { continue };
            let Ok(names) = directory.list() else { continue };
            for entry in names.iter().filter(|entry| entry.name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())) {
                let is_old = matches!(directory.stat(&entry.name), Ok(Some(stat))
                    if stat.file_type == FileType::RegularFile && now_ns - stat.modified_ns >= age_ns);
                if is_old && !self.is_needed_staged_file(&entry.name) {
                    directory.remove_file(&entry.name).unwrap_or_default();
                }
            }
        }
    }

    fn is_needed_staged_file(&self, name: &FileName) -> bool {
        let pattern = format!("%\"name\":\"{name}\"%");
        self.store.has_row("SELECT 1 FROM pending WHERE intent LIKE ?1", params![pattern]).unwrap_or(true)
    }
}
