//! Opens and closes a local workspace, and lets callers wait for new journal entries.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use stead_disk::{
    DiskErrorKind, RootDirectory, RootDirectoryOptions, ServerOnlyDirectoryHandle, StateDirectory,
    landlock::LandlockReport,
};
use stead_engine::{ActivePolicy, Error, ErrorKind, ImmutableWorkspaceProperties, NextStep};
use stead_path::{FileName, RelPath};

use crate::{
    checkpoint, entry_query, errors,
    external_changes::ExternalChangeRecorderHandle,
    group_commit::GroupCommitQueue,
    index::SearchIndex,
    maintenance::{MaintenanceSignal, MaintenanceThread},
    options::{Clock, Durability, ExternalChangeRecordingStartPolicy, LandlockMode, LocalWorkspaceOptions},
    path_locks::{LivenessLockRegistry, PathLocks},
    policy_file::PolicyFileLoader,
    recovery::RecoveryReport,
    session_totals::SessionCountsCache,
    store::{self, SqliteStore, lock_ignoring_poison},
    token::random_name,
    tree::LocalTreeContext,
};

const DATABASE_FILE: &str = "stead.db";
/// The trash directory inside the workspace is used if the state directory is on another mount.
const TRASH_IN_WORKSPACE: &str = ".stead~trash";
/// The interval at which a waiting caller polls the journal if no listener thread announces entries.
const NEW_ENTRIES_POLL: Duration = Duration::from_millis(50);
/// The interval at which a waiting caller polls the journal while a listener thread also announces entries.
const NEW_ENTRIES_POLL_LISTENING: Duration = Duration::from_secs(60);
const CHANGE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An open local workspace.
pub struct LocalWorkspace {
    pub(crate) root: RootDirectory,
    pub(crate) state: StateDirectory,
    pub(crate) trash_directory: ServerOnlyDirectoryHandle,
    pub(crate) store: SqliteStore,
    pub(crate) group_commit: GroupCommitQueue,
    pub(crate) locks: Arc<PathLocks>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durability: Durability,
    pub(crate) syntax_profile: ImmutableWorkspaceProperties,
    pub(crate) policy: PolicyFileLoader,
    pub(crate) retained_bytes_max: u64,
    /// The bytes of old versions that were retained since the history quota was last checked.
    pub(crate) retained_since_prune: AtomicU64,
    /// Whether the next call under a quota counts the files and bytes of the workspace again.
    pub(crate) is_recount_needed: AtomicBool,
    default_directory: RelPath,
    pub(crate) allowed_mounts: Vec<RelPath>,
    /// The random id that marks the database rows of one open workspace; each open creates a new id.
    pub(crate) process_id: String,
    pub(crate) liveness: Arc<LivenessLockRegistry>,
    /// The numbers of journal entries whose steps are applied but not synced to disk yet.
    pub(crate) applied_entries: Mutex<Vec<u64>>,
    /// The numbers of pending journal entries of other processes whose steps are known to be done.
    pub(crate) verified_entries: Mutex<HashSet<u64>>,
    /// The numbers of this process's journal entries that could be neither finished nor rolled back.
    pub(crate) unfinished_entries: Mutex<HashSet<u64>>,
    pub(crate) tree: Arc<LocalTreeContext>,
    pub(crate) new_entries: (Mutex<u64>, Condvar),
    pub(crate) index: SearchIndex,
    pub(crate) session_counts: Mutex<SessionCountsCache>,
    last_change_seen: Mutex<(Option<Instant>, u64)>,
    pub(crate) external_changes: ExternalChangeRecorderHandle,
    pub(crate) watch_start: ExternalChangeRecordingStartPolicy,
    pub(crate) maintenance_signal: Arc<MaintenanceSignal>,
    maintenance: Mutex<Option<MaintenanceThread>>,
    background_failures: AtomicU64,
    recovery: RecoveryReport,
    landlock_report: Option<LandlockReport>,
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
            // The policy file is reloaded when it changes, so its directory must stay readable.
            let policy = workspace.policy.parent_directory();
            let readable: Vec<_> =
                options.readable_paths.iter().map(PathBuf::as_path).chain([policy.as_path()]).collect();
            workspace.landlock_report =
                Some(stead_disk::landlock::restrict_process(&[&options.root_path, &options.state_path], &readable));
        }
        if options.watch_start == ExternalChangeRecordingStartPolicy::AtOpen {
            workspace.mark_count_in_doubt();
        }
        let workspace = Arc::new(workspace);
        let thread = MaintenanceThread::start(Arc::downgrade(&workspace), Arc::clone(&workspace.maintenance_signal));
        *lock_ignoring_poison(&workspace.maintenance) = thread;
        workspace.external_changes.set_workspace(&workspace);
        // If one of these two calls fails, a later watch call or a later change reports the error.
        for prepared in [workspace.listen_if_watched(), workspace.store_clock_reading()] {
            if prepared.is_err() {
                workspace.count_background_failure();
            }
        }
        Ok(workspace)
    }

    fn assemble(options: &LocalWorkspaceOptions, state: StateDirectory) -> Result<Self, Error> {
        let (root, trash_directory) = open_root(options, &state)?;
        let fresh_id = random_name("ws-")?;
        let lock_file = state.open_lock_file().map_err(errors::state_directory_error)?;
        let locks = Arc::new(PathLocks::new(state.open_lock_file().map_err(errors::state_directory_error)?));
        let opening = locks.lock_database_open()?;
        let store = SqliteStore::open(options.state_path.join(DATABASE_FILE), lock_file, &fresh_id)?;
        checkpoint::ensure_signing_key(&store)?;
        drop(opening);
        let now_ns = i128::from(options.clock.now().wall_ms) * 1_000_000;
        let policy =
            PolicyFileLoader::open(options.policy_path.as_deref(), &options.state_path, root.absolute_path(), now_ns)?;
        let process_id = random_name("p-")?;
        let liveness = LivenessLockRegistry::new(&process_id, &locks);
        let syntax_profile = ImmutableWorkspaceProperties {
            id: store.origin.workspace_id().to_owned(),
            root_spellings: root.equivalent_paths().to_vec(),
            name_policy: options.name_profile,
            internal_paths: reserved_paths(options),
        };
        Ok(Self {
            root,
            state,
            trash_directory,
            store,
            group_commit: GroupCommitQueue::default(),
            locks,
            clock: Arc::clone(&options.clock),
            durability: options.durability,
            syntax_profile,
            policy,
            retained_bytes_max: options.retained_bytes_max,
            retained_since_prune: AtomicU64::new(0),
            is_recount_needed: AtomicBool::new(false),
            default_directory: options.default_directory.clone(),
            allowed_mounts: options.allowed_mounts.clone(),
            process_id,
            liveness,
            applied_entries: Mutex::default(),
            verified_entries: Mutex::default(),
            unfinished_entries: Mutex::default(),
            tree: LocalTreeContext::new(options.user_names.clone().unwrap_or_else(stead_disk::user_names)),
            new_entries: (Mutex::new(0), Condvar::new()),
            index: SearchIndex::new(options),
            session_counts: Mutex::default(),
            last_change_seen: Mutex::default(),
            external_changes: ExternalChangeRecorderHandle::default(),
            watch_start: options.watch_start,
            maintenance_signal: Arc::default(),
            maintenance: Mutex::default(),
            background_failures: AtomicU64::new(0),
            recovery: RecoveryReport::default(),
            landlock_report: None,
        })
    }

    /// Reports the work that recovery did when this workspace was opened.
    pub fn recovery(&self) -> RecoveryReport {
        self.recovery
    }

    /// The result of activating the Landlock sandbox, or `None` if no sandbox was requested.
    pub fn landlock_report(&self) -> Option<&LandlockReport> {
        self.landlock_report.as_ref()
    }

    /// Stops the background threads of the workspace, writes deferred entries, syncs changes and signs the journal. The
    /// workspace stays usable after `close`. If a part of `close` fails, the next open finishes the work.
    pub fn close(&self) {
        self.index.stop();
        self.external_changes.stop();
        drop(lock_ignoring_poison(&self.maintenance).take());
        for step in [Self::flush, Self::mark_synced_entries, Self::sign_checkpoint] {
            step(self).unwrap_or_default();
        }
    }

    /// The number of calls without changes that are not in the journal yet. After [`Self::close`], the number is not
    /// zero only if some calls could not be recorded.
    pub fn unrecorded_count(&self) -> usize {
        self.group_commit.deferred_count()
    }

    /// Writes all deferred journal entries to the store.
    pub fn flush(&self) -> Result<(), Error> {
        self.group_commit.flush(&self.store, self.durability)
    }

    /// Deferred journal entries that cannot be written now are written later.
    pub(crate) fn flush_if_possible(&self) {
        if self.flush().is_err() {
            self.count_background_failure();
        }
    }

    /// A policy with a quota is an error if the workspace is the whole machine, which cannot be measured.
    pub(crate) fn current_policy(&self) -> Result<ActivePolicy, Error> {
        let active = self.policy.current_policy(i128::from(self.clock.now().wall_ms) * 1_000_000)?;
        if active.policy.has_quota() && !self.default_directory.is_root() {
            let unmeasurable = "all calls are refused: the policy sets a quota, but the workspace is the whole machine \
                                and cannot be measured";
            return Err(Error::new(ErrorKind::PolicyDenied, unmeasurable)
                .with_next_step(NextStep::ask_person("remove the quota or to choose a smaller workspace root")));
        }
        Ok(active)
    }

    pub(crate) fn policy_version(&self) -> u64 {
        self.current_policy().map_or(0, |active| active.policy.version())
    }

    /// The path of the policy file, which need not exist.
    pub fn policy_file(&self) -> &std::path::Path {
        self.policy.display_path()
    }

    /// The text of the policy file, or `None` if the policy file does not exist.
    pub fn policy_text(&self) -> Result<Option<String>, Error> {
        self.policy.text()
    }

    /// Replaces the policy file atomically, and rejects a malformed policy text.
    pub fn write_policy(&self, text: &str) -> Result<(), Error> {
        self.policy.write_policy(text)
    }

    pub(crate) fn mark_applied(&self, number: u64) {
        lock_ignoring_poison(&self.applied_entries).push(number);
    }

    pub(crate) fn announce_entry(&self) {
        *lock_ignoring_poison(&self.new_entries.0) += 1;
        self.new_entries.1.notify_all();
        self.maintenance_signal.wake();
    }

    pub(crate) fn count_background_failure(&self) {
        self.background_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// A description of the workspace for people, such as its durability, path resolver and sandbox.
    pub fn status_facts(&self) -> HashMap<&'static str, String> {
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

/// The text of the Landlock report keeps the format of version 0.1.0, because clients may parse the text.
fn format_landlock_report(report: &LandlockReport) -> String {
    let LandlockReport { status, abi, reason } = report;
    format!("WallReport {{ standing: {status:?}, abi: {abi:?}, reason: {reason:?} }}")
}

/// A removal is a single rename to the trash, which cannot cross a mount. The trash is on the same mount as the files:
/// in the state directory, or in a hidden directory of the workspace.
fn open_root(
    options: &LocalWorkspaceOptions,
    state: &StateDirectory,
) -> Result<(RootDirectory, ServerOnlyDirectoryHandle), Error> {
    let open = |hidden| {
        let root_options = RootDirectoryOptions {
            resolver: options.resolver,
            allowed_mounts: options.allowed_mounts.clone(),
            hidden_inodes: hidden,
        };
        RootDirectory::open(&options.root_path, root_options).map_err(|error| {
            Error::new(ErrorKind::NotFound, format!("cannot open the workspace directory: {error}"))
                .with_next_step("check that the directory exists and that this user may read it")
        })
    };
    let root = open(vec![state.id()])?;
    let top = root.open_directory(&options.default_directory).map_err(errors::at_path(&options.default_directory))?;
    let trash_in_state = state.create_subdirectory("trash").map_err(errors::state_directory_error)?;
    if top.shares_mount(trash_in_state.as_directory()) {
        return Ok((root, trash_in_state));
    }
    let trash_path = options.default_directory.join(&FileName::new(TRASH_IN_WORKSPACE.as_bytes())?)?;
    let trash = match root.create_directories(&trash_path, 0o700) {
        Ok((trash, _)) => trash,
        // A read-only root needs no trash. Removals in a writable directory below the root are refused, because the
        // removed files could not be kept.
        Err(error) if matches!(error.kind, DiskErrorKind::ReadOnly | DiskErrorKind::PermissionDenied) => {
            return Ok((root, trash_in_state));
        }
        Err(error) => {
            let detail = format!("cannot create the trash in the workspace: {error}");
            return Err(Error::new(ErrorKind::AuditUnavailable, detail)
                .with_next_step("use a state directory on the same file system as the workspace"));
        }
    };
    let root = open(vec![state.id(), trash.id()])?;
    Ok((root, ServerOnlyDirectoryHandle::hidden_in_workspace(trash)))
}

fn reserved_paths(options: &LocalWorkspaceOptions) -> Vec<RelPath> {
    let inside = options.state_path.strip_prefix(&options.root_path).ok();
    let state = inside.and_then(|rest| rest.to_str()).and_then(|rest| RelPath::from_wire(rest).ok());
    state.into_iter().filter(|path| !path.is_root()).chain(options.reserved_paths.iter().cloned()).collect()
}

impl LocalWorkspace {
    /// The announcement count increases when any process changes the workspace.
    pub(crate) fn announcement_count(&self) -> Result<u64, Error> {
        if !self.external_changes.is_listening() {
            let mut seen = lock_ignoring_poison(&self.last_change_seen);
            if seen.0.is_none_or(|checked| checked.elapsed() >= CHANGE_CHECK_INTERVAL) {
                let last = self.store.run_query(entry_query::last_change_number)?;
                if seen.1 != last {
                    self.notify_waiters();
                }
                *seen = (Some(Instant::now()), last);
            }
        }
        Ok(*lock_ignoring_poison(&self.new_entries.0))
    }

    pub(crate) fn wait_for_new_entry(&self, number: u64, deadline: Instant) -> Result<(), Error> {
        loop {
            let announced = *lock_ignoring_poison(&self.new_entries.0);
            self.flush_if_possible();
            let tip = self.store.run_query(|connection| store::load_tip(connection, &self.store.origin))?;
            let left = deadline.saturating_duration_since(Instant::now());
            if tip.number > number || left.is_zero() {
                return Ok(());
            }
            let pause =
                if self.external_changes.is_listening() { NEW_ENTRIES_POLL_LISTENING } else { NEW_ENTRIES_POLL };
            let is_same = |count: &mut u64| *count == announced;
            let count = lock_ignoring_poison(&self.new_entries.0);
            drop(self.new_entries.1.wait_timeout_while(count, left.min(pause), is_same));
        }
    }
}

#[cfg(test)]
mod tests {
    use stead_disk::landlock::LandlockOutcome;

    use super::*;

    #[test]
    fn landlock_report_has_the_format_of_0_1_0() {
        let report = |status, abi, reason: Option<&str>| {
            format_landlock_report(&LandlockReport { status, abi, reason: reason.map(str::to_owned) })
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
