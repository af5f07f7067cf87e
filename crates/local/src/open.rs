//! Opens and closes a local workspace.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use stead_disk::{
    DiskErrorKind, PrivateDirectory, RootDirectory, RootOptions, StateDirectory,
    landlock::{LandlockOutcome, LandlockReport},
};
use stead_engine::{ActivePolicy, Error, ErrorKind, WorkspaceProfile};
use stead_path::{FileName, RelPath};

use crate::{
    checkpoint,
    clock::Clock,
    errors,
    external_changes::ExternalChangeListener,
    group_commit::GroupCommit,
    index::SearchIndex,
    liveness::LivenessRegistry,
    maintenance::{MaintenanceSignal, MaintenanceThread},
    options::{Durability, LandlockMode, LocalWorkspaceOptions, WatchStart},
    path_locks::PathLocks,
    policy_file::PolicyFile,
    random::random_name,
    recovery::RecoveryReport,
    session_store::SessionCountsCache,
    store::{SqliteStore, lock_ignoring_poison},
    usage::RecountState,
};

const DATABASE_FILE: &str = "stead.db";
/// Limit of directories remembered for the removal of leftover staged files.
const LEFTOVER_DIRECTORIES_MAX: usize = 1_000;

/// An open workspace.
pub struct LocalWorkspace {
    pub(crate) root: RootDirectory,
    pub(crate) state: StateDirectory,
    pub(crate) trash_directory: PrivateDirectory,
    pub(crate) store: SqliteStore,
    pub(crate) group_commit: GroupCommit,
    pub(crate) locks: Arc<PathLocks>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durability: Durability,
    pub(crate) syntax_profile: WorkspaceProfile,
    pub(crate) policy: PolicyFile,
    pub(crate) retained_bytes_max: u64,
    /// Bytes retained since the last prune check.
    pub(crate) retained_since_prune: AtomicU64,
    pub(crate) recount: Mutex<RecountState>,
    default_directory: RelPath,
    /// Mount points below the root that belong to the workspace.
    pub(crate) allowed_mounts: Vec<RelPath>,
    /// Identifies this process's open workspace among all others.
    pub(crate) process_id: String,
    pub(crate) liveness: Arc<LivenessRegistry>,
    /// Entries applied to the directory but not yet synced to disk.
    pub(crate) applied_entries: Mutex<Vec<u64>>,
    /// Pending entries of other processes whose steps were verified as done.
    pub(crate) verified_entries: Mutex<HashSet<u64>>,
    /// Entries of this process that could be neither finished nor rolled back.
    pub(crate) unfinished_entries: Mutex<HashSet<u64>>,
    pub(crate) directories_with_leftovers: Mutex<HashSet<RelPath>>,
    /// Number of announcements; callers that wait for the next entry block on it.
    pub(crate) new_entries: (Mutex<u64>, Condvar),
    pub(crate) index: SearchIndex,
    pub(crate) session_counts: Mutex<SessionCountsCache>,
    /// When the last recorded change was looked up, and its number.
    last_change_seen: Mutex<(Option<Instant>, u64)>,
    pub(crate) external_changes: ExternalChangeListener,
    pub(crate) watch_start: WatchStart,
    maintenance_signal: Arc<MaintenanceSignal>,
    maintenance: Mutex<Option<MaintenanceThread>>,
    background_failures: AtomicU64,
    recovery: RecoveryReport,
    landlock_report: Option<LandlockReport>,
    /// User names by uid, read before the Landlock sandbox is active.
    pub(crate) user_names: HashMap<u32, String>,
}

impl LocalWorkspace {
    /// Opens a workspace and finishes the pending work of dead processes.
    pub fn open(options: LocalWorkspaceOptions) -> Result<Arc<Self>, Error> {
        let state = StateDirectory::open(&options.state_path).map_err(|error| {
            Error::new(ErrorKind::AuditUnavailable, format!("cannot use the state directory: {error}"))
        })?;
        let mut workspace = Self::assemble(&options, state)?;
        workspace.recovery = workspace.recover_pending()?;
        if options.landlock == LandlockMode::Restrict {
            // The policy is reloaded when it changes, so its directory stays readable.
            let policy = workspace.policy.parent_directory();
            let beside: Vec<_> =
                options.readable_paths.iter().map(PathBuf::as_path).chain([policy.as_path()]).collect();
            workspace.landlock_report =
                Some(stead_disk::landlock::restrict_process_to(&[&options.root_path, &options.state_path], &beside));
        }
        if options.watch_start == WatchStart::AtOpen {
            workspace.mark_count_in_doubt();
        }
        let workspace = Arc::new(workspace);
        let keeper = MaintenanceThread::start(Arc::downgrade(&workspace), Arc::clone(&workspace.maintenance_signal));
        *lock_ignoring_poison(&workspace.maintenance) = keeper;
        workspace.external_changes.set_workspace(&workspace);
        // Both may fail: a later watch call or a later write then reports the error.
        for prepared in [workspace.listen_if_watched(), workspace.store_clock_reading()] {
            match prepared {
                Ok(()) => {}
                Err(_) => workspace.count_background_failure(),
            }
        }
        Ok(workspace)
    }

    fn assemble(options: &LocalWorkspaceOptions, state: StateDirectory) -> Result<Self, Error> {
        let own = |error: stead_disk::StateError| errors::state_directory_error(&error);
        let (root, trash_place) = open_root(options, &state)?;
        let fresh_id = random_name("ws-")?;
        let lock_file = state.open_lock_file().map_err(own)?;
        let locks = Arc::new(PathLocks::new(state.open_lock_file().map_err(own)?));
        let opening = locks.lock_database_open()?;
        let store = SqliteStore::open(options.state_path.join(DATABASE_FILE), lock_file, &fresh_id)?;
        checkpoint::ensure_signing_key(&store)?;
        drop(opening);
        let now_ns = i128::from(options.clock.now().wall_ms) * 1_000_000;
        let rules =
            PolicyFile::open(options.policy_path.as_deref(), &options.state_path, root.absolute_path(), now_ns)?;
        let process = random_name("p-")?;
        let liveness = LivenessRegistry::new(&process, &locks);
        let profile = WorkspaceProfile {
            id: store.origin.workspace_id().to_owned(),
            root_spellings: root.equivalent_paths().to_vec(),
            name_policy: options.name_profile,
            internal_paths: reserved_paths(options),
        };
        Ok(Self {
            root,
            state,
            trash_directory: trash_place,
            store,
            group_commit: GroupCommit::default(),
            locks,
            clock: Arc::clone(&options.clock),
            durability: options.durability,
            syntax_profile: profile,
            policy: rules,
            retained_bytes_max: options.retained_bytes_max,
            retained_since_prune: AtomicU64::new(0),
            recount: Mutex::default(),
            default_directory: options.default_directory.clone(),
            allowed_mounts: options.allowed_mounts.clone(),
            process_id: process,
            liveness,
            applied_entries: Mutex::default(),
            verified_entries: Mutex::default(),
            unfinished_entries: Mutex::default(),
            directories_with_leftovers: Mutex::default(),
            new_entries: (Mutex::new(0), Condvar::new()),
            index: SearchIndex::new(options),
            session_counts: Mutex::default(),
            last_change_seen: Mutex::default(),
            external_changes: ExternalChangeListener::default(),
            watch_start: options.watch_start,
            maintenance_signal: Arc::default(),
            maintenance: Mutex::default(),
            background_failures: AtomicU64::new(0),
            recovery: RecoveryReport::default(),
            landlock_report: None,
            user_names: options.user_names.clone().unwrap_or_else(stead_disk::user_names),
        })
    }

    /// The work that recovery did at open.
    pub fn recovery(&self) -> RecoveryReport {
        self.recovery
    }

    /// The result of the Landlock sandbox, if it was requested.
    pub fn landlock_report(&self) -> Option<&LandlockReport> {
        self.landlock_report.as_ref()
    }

    /// Stops the background threads, writes deferred entries, syncs changes and signs the journal. The workspace stays
    /// usable. Work that fails here is finished at the next open.
    pub fn close(&self) {
        self.index.stop();
        self.external_changes.stop();
        drop(lock_ignoring_poison(&self.maintenance).take());
        for step in [Self::flush, Self::mark_synced_entries, Self::sign_checkpoint] {
            match step(self) {
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Number of calls without changes that are not in the journal yet. A value above zero after [`Self::close`] means that
    /// they could not be recorded.
    pub fn unrecorded_count(&self) -> usize {
        self.group_commit.deferred_count()
    }

    /// Writes all deferred entries.
    pub fn flush(&self) -> Result<(), Error> {
        self.group_commit.flush(&self.store, self.durability)
    }

    /// Writes deferred entries before the journal is read. A failure is ignored: the entries are written later.
    pub(crate) fn flush_if_possible(&self) {
        match self.flush() {
            Ok(()) => {}
            Err(_) => self.count_background_failure(),
        }
    }

    /// The policy in force. A policy with a quota requires a workspace that can be measured.
    pub(crate) fn current_policy(&self) -> Result<ActivePolicy, Error> {
        let in_force = self.policy.current_policy(i128::from(self.clock.now().wall_ms) * 1_000_000)?;
        if in_force.policy.has_quota() && !self.default_directory.is_root() {
            return Err(Error::new(
                ErrorKind::PolicyDenied,
                "all calls are refused: the policy sets a quota, but the workspace is the whole machine and cannot be measured",
            )
            .with_next_step(
                "ask the operator to remove the quota or to choose a smaller workspace root",
            ));
        }
        Ok(in_force)
    }

    /// Version of the policy in force; zero if it cannot be loaded.
    pub(crate) fn policy_version(&self) -> u64 {
        stead_engine::Workspace::active_policy(self).map_or(0, |in_force| in_force.policy.version())
    }

    /// Path of the policy file, whether or not it exists.
    pub fn policy_file(&self) -> &std::path::Path {
        self.policy.display_path()
    }

    /// The text of the policy file, or `None` if there is none.
    pub fn policy_text(&self) -> Result<Option<String>, Error> {
        self.policy.text()
    }

    /// Replaces the policy file atomically. Rejects a malformed text.
    pub fn write_policy(&self, text: &str) -> Result<(), Error> {
        self.policy.write_policy(text)
    }

    /// Whether a change must be synced to disk before it is acknowledged.
    pub(crate) fn is_fully_durable(&self) -> bool {
        self.durability == Durability::Full
    }

    /// Marks an entry whose steps are all applied.
    pub(crate) fn mark_applied(&self, number: u64) {
        lock_ignoring_poison(&self.applied_entries).push(number);
    }

    /// Wakes callers that wait for a new entry, and the maintenance thread.
    pub(crate) fn announce_entry(&self) {
        *lock_ignoring_poison(&self.new_entries.0) += 1;
        self.new_entries.1.notify_all();
        self.maintenance_signal.wake();
    }

    pub(crate) fn remember_leftovers_in(&self, path: &RelPath) {
        let mut suspects = lock_ignoring_poison(&self.directories_with_leftovers);
        if suspects.len() < LEFTOVER_DIRECTORIES_MAX {
            suspects.insert(path.clone());
        }
    }

    pub(crate) fn wake_maintenance(&self) {
        self.maintenance_signal.wake();
    }

    pub(crate) fn count_background_failure(&self) {
        self.background_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Facts for the status display.
    pub(crate) fn status_facts(&self) -> HashMap<&'static str, String> {
        let landlock = self.landlock_report.as_ref().map_or_else(|| "not raised".to_owned(), format_landlock_report);
        HashMap::from([
            ("workspace", self.syntax_profile.id.clone()),
            ("durability", self.durability.as_str().to_owned()),
            ("resolver", self.root.resolver().as_str().to_owned()),
            ("wall", landlock),
            ("index", self.index_status().to_string()),
            ("background_failures", self.background_failures.load(Ordering::Relaxed).to_string()),
        ])
    }
}

impl Drop for LocalWorkspace {
    fn drop(&mut self) {
        self.close();
    }
}

/// The Landlock report in the format of 0.1.0, which clients may parse.
fn format_landlock_report(report: &LandlockReport) -> String {
    let standing = match report.status {
        LandlockOutcome::Full => "Full",
        LandlockOutcome::Partial => "Partial",
        LandlockOutcome::None => "None",
    };
    let abi = report.abi.map_or_else(|| "None".to_owned(), |abi| format!("Some({abi})"));
    let reason = report.reason.as_ref().map_or_else(|| "None".to_owned(), |reason| format!("Some(\"{reason}\")"));
    format!("WallReport {{ standing: {standing}, abi: {abi}, reason: {reason} }}")
}

/// Opens the root, with the state directory hidden in it, and the trash directory. The trash lies in the state directory
/// if that is on the same mount, otherwise in a hidden directory of the workspace: removal is a single rename.
fn open_root(
    options: &LocalWorkspaceOptions,
    state: &StateDirectory,
) -> Result<(RootDirectory, PrivateDirectory), Error> {
    let open = |hidden| {
        let root_options = RootOptions {
            resolver: options.resolver,
            allowed_mounts: options.allowed_mounts.clone(),
            hidden_inodes: hidden,
        };
        RootDirectory::open(&options.root_path, root_options)
            .map_err(|error| Error::new(ErrorKind::NotFound, format!("cannot open the workspace directory: {error}")))
    };
    let own = |error: stead_disk::StateError| errors::state_directory_error(&error);
    let root = open(vec![state.id()])?;
    let top = root
        .open_directory(&options.default_directory)
        .map_err(|error| errors::error_at_path(&options.default_directory, &error))?;
    let beside = state.create_subdirectory("trash").map_err(own)?;
    if top.shares_mount(beside.as_directory()) {
        return Ok((root, beside));
    }
    let trash_directory_path = options.default_directory.join(&FileName::new(TRASH_IN_WORKSPACE.as_bytes())?)?;
    let trash = match root.create_directories(&trash_directory_path, 0o700) {
        Ok((trash, _)) => trash,
        // A read-only root needs no trash. A writable directory below it may exist; removals there are refused because
        // they cannot be retained.
        Err(error) if matches!(error.kind, DiskErrorKind::ReadOnly | DiskErrorKind::PermissionDenied) => {
            return Ok((root, beside));
        }
        Err(error) => {
            let detail = format!("cannot create the trash in the workspace: {error}");
            return Err(Error::new(ErrorKind::AuditUnavailable, detail)
                .with_next_step("use a state directory on the same file system as the workspace"));
        }
    };
    let root = open(vec![state.id(), trash.id()])?;
    Ok((root, PrivateDirectory::hidden_in_workspace(trash)))
}

/// Trash directory of a workspace whose state directory is on another mount.
const TRASH_IN_WORKSPACE: &str = ".stead~trash";

/// The path of the state directory below the root, if it lies there.
fn reserved_paths(options: &LocalWorkspaceOptions) -> Vec<RelPath> {
    let inside = options.state_path.strip_prefix(&options.root_path).ok();
    let trash_directory_path = inside.and_then(|rest| rest.to_str()).and_then(|rest| RelPath::from_wire(rest).ok());
    trash_directory_path
        .into_iter()
        .filter(|trash_directory_path| !trash_directory_path.is_root())
        .chain(options.reserved_paths.iter().cloned())
        .collect()
}

/// Poll interval for entries of other processes without a watcher.
const NEW_ENTRIES_POLL: Duration = Duration::from_millis(50);
/// Poll interval with a watcher, in case an event was lost.
const NEW_ENTRIES_POLL_LISTENING: Duration = Duration::from_secs(60);

/// Interval of checks for changes by other processes without a watcher.
const CHANGE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl LocalWorkspace {
    /// Number of announcements, by this process or found in the journal.
    pub(crate) fn announcement_count(&self) -> Result<u64, Error> {
        if !self.external_changes.is_listening() {
            let mut others = lock_ignoring_poison(&self.last_change_seen);
            if others.0.is_none_or(|looked| looked.elapsed() >= CHANGE_CHECK_INTERVAL) {
                let last = self.store.run_query(crate::entry_query::last_change_number)?;
                if others.1 != last {
                    self.notify_waiters();
                }
                *others = (Some(Instant::now()), last);
            }
        }
        Ok(*lock_ignoring_poison(&self.new_entries.0))
    }

    /// Waits until the journal has an entry after `number`, or until the deadline.
    pub(crate) fn wait_for_new_entry(&self, number: u64, deadline: Instant) -> Result<(), Error> {
        loop {
            let heard = *lock_ignoring_poison(&self.new_entries.0);
            self.flush_if_possible();
            let tip = self.store.run_query(|connection| crate::store::load_tip(connection, &self.store.origin))?;
            let left = deadline.saturating_duration_since(Instant::now());
            if tip.number > number || left.is_zero() {
                return Ok(());
            }
            let pause =
                if self.external_changes.is_listening() { NEW_ENTRIES_POLL_LISTENING } else { NEW_ENTRIES_POLL };
            let same = |news: &mut u64| *news == heard;
            let news = lock_ignoring_poison(&self.new_entries.0);
            drop(self.new_entries.1.wait_timeout_while(news, left.min(pause), same));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_is_shown_in_the_words_of_0_1_0() {
        let report = |standing, abi, reason: Option<&str>| {
            format_landlock_report(&LandlockReport { status: standing, abi, reason: reason.map(str::to_owned) })
        };
        assert_eq!(
            report(LandlockOutcome::Full, Some(6), None),
            "WallReport { standing: Full, abi: Some(6), reason: None }"
        );
        assert_eq!(
            report(LandlockOutcome::None, None, Some("this kernel has no Landlock")),
            "WallReport { standing: None, abi: None, reason: Some(\"this kernel has no Landlock\") }"
        );
        assert!(report(LandlockOutcome::Partial, None, None).contains("standing: Partial,"));
    }
}
