//! Background maintenance: writes deferred entries, signs the journal, syncs changes to disk, empties the trash and
//! prunes retained versions. One thread per open workspace; it never blocks callers.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::params;

use crate::{
    errors,
    open::LocalWorkspace,
    store::{SyncRequirement, lock_ignoring_poison, to_sql_integer},
};

/// Longest time that a deferred entry stays in memory.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);
/// Longest time that new entries stay unsigned.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time that applied changes stay unsynced.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of the checks of the trash and the retained versions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Number of deferred entries after which a caller writes them itself.
pub(crate) const DEFERRED_ENTRIES_FLUSH_AT: u64 = 512;
/// Age after which a staged file counts as abandoned.
const LEFTOVER_AGE_MIN: Duration = Duration::from_secs(600);

/// Wakes the maintenance thread.
#[derive(Default)]
pub(crate) struct MaintenanceSignal {
    state: Mutex<MaintenanceState>,
    woken: Condvar,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum MaintenanceState {
    /// Nothing to do; the thread sleeps.
    #[default]
    Idle,
    /// There is work; the thread waits briefly for more. Further signals cost nothing.
    Gathering,
    Stopping,
}

impl MaintenanceSignal {
    pub(crate) fn wake(&self) {
        let mut state = lock_ignoring_poison(&self.state);
        if *state == MaintenanceState::Idle {
            *state = MaintenanceState::Gathering;
            self.woken.notify_one();
        }
    }

    fn stop(&self) {
        *lock_ignoring_poison(&self.state) = MaintenanceState::Stopping;
        self.woken.notify_one();
    }

    /// Sleeps until there is work and a short delay has passed. Returns whether to continue.
    fn wait(&self) -> bool {
        let state = lock_ignoring_poison(&self.state);
        let quiet = |state: &mut MaintenanceState| *state == MaintenanceState::Idle;
        let (state, _) =
            self.woken.wait_timeout_while(state, SWEEP_INTERVAL, quiet).unwrap_or_else(PoisonError::into_inner);
        let gathering = |state: &mut MaintenanceState| *state == MaintenanceState::Gathering;
        let (mut state, _) =
            self.woken.wait_timeout_while(state, FLUSH_INTERVAL, gathering).unwrap_or_else(PoisonError::into_inner);
        if *state == MaintenanceState::Stopping {
            return false;
        }
        *state = MaintenanceState::Idle;
        true
    }
}

/// The running thread; dropping this stops it.
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
            // A panic is ignored here: the next open finishes the remaining work.
            match thread.join() {
                Ok(()) | Err(_) => {}
            }
        }
    }
}

fn run_maintenance(workspace: &Weak<LocalWorkspace>, signal: &MaintenanceSignal) {
    let start = Instant::now();
    let (mut signed, mut swept) = (start, start);
    // Entries found at open are synced in the first round, so that they are not checked again.
    let mut settled: Option<Instant> = None;
    while signal.wait() {
        let Some(workspace) = workspace.upgrade() else { return };
        let now = Instant::now();
        // Failures are retried in the next round; callers learn of a broken store from their own calls.
        let mut failed = workspace.flush().is_err();
        if now - signed >= CHECKPOINT_INTERVAL {
            failed |= workspace.sign_checkpoint().is_err();
            signed = now;
        } else {
            signal.wake();
        }
        if settled.is_none_or(|settled| now - settled >= SYNC_INTERVAL) {
            failed |= workspace.recover_pending().is_err() | workspace.mark_synced_entries().is_err();
            settled = Some(now);
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
    /// Deletes the pending steps of applied entries once they are on disk.
    pub(crate) fn mark_synced_entries(&self) -> Result<(), stead_engine::Error> {
        let applied = std::mem::take(&mut *lock_ignoring_poison(&self.applied_entries));
        if applied.is_empty() {
            return Ok(());
        }
        let settled = self.sync_file_system().and_then(|()| {
            self.store.run_transaction(SyncRequirement::Later, self.durability, |transaction| {
                let mut delete = transaction
                    .prepare_cached("DELETE FROM pending WHERE number = ?1")
                    .map_err(|error| errors::store_error(&error))?;
                for number in &applied {
                    delete.execute(params![to_sql_integer(*number)]).map_err(|error| errors::store_error(&error))?;
                }
                Ok(())
            })
        });
        if settled.is_err() {
            lock_ignoring_poison(&self.applied_entries).extend(applied);
        } else {
            let mut verified = lock_ignoring_poison(&self.verified_entries);
            for number in &applied {
                verified.remove(number);
            }
        }
        settled
    }

    /// Syncs the file system of the workspace.
    pub(crate) fn sync_file_system(&self) -> Result<(), stead_engine::Error> {
        self.root.sync_file_system().map_err(|error| {
            // A failed sync is final: a second one may succeed although the bytes are lost.
            self.store.mark_read_only();
            errors::error_at_path(&stead_path::RelPath::root(), &error)
        })
    }

    /// Removes staged files of dead processes from recently listed directories, once they are older than `age`.
    pub fn remove_old_leftovers(&self, age: Duration) {
        let directories: Vec<stead_path::RelPath> =
            lock_ignoring_poison(&self.directories_with_leftovers).drain().collect();
        let now_ns = i128::from(self.clock.now().wall_ms) * 1_000_000;
        let age_ns = i128::try_from(age.as_nanos()).unwrap_or(i128::MAX);
        for path in directories {
            let Ok(directory) = self.root.open_directory(&path) else { continue };
            let Ok(names) = directory.list() else { continue };
            for entry in
                names.iter().filter(|entry| entry.name.as_bytes().starts_with(stead_path::TEMPORARY_PREFIX.as_bytes()))
            {
                let old = matches!(directory.stat(&entry.name), Ok(Some(stat))
                    if stat.file_type == stead_disk::FileType::File && now_ns - stat.modified_ns >= age_ns);
                if old && !self.is_needed_staged_file(&entry.name) {
                    match directory.remove_file(&entry.name) {
                        Ok(()) | Err(_) => {}
                    }
                }
            }
        }
    }

    fn is_needed_staged_file(&self, name: &stead_path::FileName) -> bool {
        let pattern = format!("%\"name\":\"{name}\"%");
        self.store
            .run_query(|connection| {
                connection.prepare_cached("SELECT 1 FROM pending WHERE intent LIKE ?1")?.exists(params![pattern])
            })
            .unwrap_or(true)
    }
}
