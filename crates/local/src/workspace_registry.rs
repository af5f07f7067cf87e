//! A workspace registry manages many workspaces in one directory. The registry stores a row for each workspace, tokens,
//! and a journal of administrative actions.
//!
//! The database rows of the registry are authoritative, and the directories of the workspaces are made to match the
//! rows. Opening the registry finishes or removes everything that a crash left incomplete. A token of one workspace
//! reveals nothing about another workspace. A workspace's directory is named by a random id, never by a name that
//! people chose.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::{Connection, Transaction};
use serde_json::Value;
use stead_disk::{LockMode, MultiSlotLockFile, ServerOnlyDirectoryHandle, StateDirectory, landlock::LandlockReport};
use stead_engine::{ApprovalMode, Caller, Error, ErrorKind, FileNamePolicy, NextStep};

use crate::{
    errors,
    group_commit::{JournalAppendOutcome, TransactionBodyFn},
    limits::WORKSPACES_MAX,
    open::LocalWorkspace,
    options::{
        Clock, Durability, ExternalChangeRecordingStartPolicy, IndexBuildAndUseMode, LandlockMode,
        LocalWorkspaceOptions,
    },
    store::{self, TransactionSyncPolicy},
};

mod administration;
mod archive;
mod create;
mod describe;
mod destroy;
mod fork;
mod open_workspaces;
mod rows;
mod tar;
mod tokens;

pub use fork::WorkspaceCopyCounts;
pub use rows::WorkspaceName;
use stead_engine::ops::{CreateWorkspaceArgs, DestroyedWorkspaceTrashPolicy, WorkspaceDescription};
pub use tokens::{TokenRecordWithScope, TokenScope};

use open_workspaces::OpenWorkspaces;
use rows::{WorkspaceDatabaseRow, WorkspaceRowLifecycleState, WorkspaceRowReconciliationStatus};

const OPEN_WORKSPACES_DEFAULT: usize = 512;
const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5 * 60);
const TRASH_RETENTION_DEFAULT_MS: i64 = 7 * 24 * 3600 * 1000;
/// The longest wait for another process that opens, creates or deletes the same workspace.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(2);

const WORKSPACES_DIRECTORY: &str = "workspaces";
const TRASH_DIRECTORY: &str = "trash";
/// The directory name `estate` must not change, because existing registries have it.
const REGISTRY_DIRECTORY: &str = "estate";
const FILES_DIRECTORY: &str = "files";
const STATE_DIRECTORY: &str = "state";

/// The options for opening a workspace registry.
#[derive(Clone)]
pub struct WorkspaceRegistryOptions {
    pub directory: PathBuf,
    pub durability: Durability,
    pub name_profile: FileNamePolicy,
    pub resolver: stead_disk::PathResolutionMethod,
    pub index_mode: IndexBuildAndUseMode,
    pub approval_mode: ApprovalMode,
    pub landlock: LandlockMode,
    /// Paths outside the registry that stay readable in the Landlock sandbox.
    pub readable_paths: Vec<PathBuf>,
    pub open_workspaces_max: usize,
    pub idle_timeout: Duration,
    /// The time in milliseconds for which a destroyed workspace stays in the trash.
    pub trash_retention_ms: i64,
    pub clock: Arc<dyn Clock>,
}

impl WorkspaceRegistryOptions {
    /// Returns the default options for a registry in this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            durability: Durability::Full,
            name_profile: FileNamePolicy::Portable,
            resolver: stead_disk::PathResolutionMethod::Auto,
            index_mode: IndexBuildAndUseMode::Maintain,
            approval_mode: ApprovalMode::AskPerson,
            landlock: LandlockMode::Off,
            readable_paths: Vec::new(),
            open_workspaces_max: OPEN_WORKSPACES_DEFAULT,
            idle_timeout: IDLE_TIMEOUT_DEFAULT,
            trash_retention_ms: TRASH_RETENTION_DEFAULT_MS,
            clock: Arc::new(stead_disk::SystemClock::default()),
        }
    }
}

/// An open workspace registry.
pub struct WorkspaceRegistry {
    directory: StateDirectory,
    path: PathBuf,
    workspaces: ServerOnlyDirectoryHandle,
    trash: ServerOnlyDirectoryHandle,
    /// The internal workspace has no files; its database contains the registry's rows, tokens and journal.
    registry_workspace: Arc<LocalWorkspace>,
    options: WorkspaceRegistryOptions,
    open_workspaces: OpenWorkspaces,
    users: HashMap<u32, String>,
    landlock_report: Option<LandlockReport>,
}

/// While a workspace's lifecycle lock is held, nobody else can create or delete the workspace. While a workspace's
/// lifecycle lock is held exclusively, nobody else can open the workspace.
pub(crate) struct WorkspaceLifecycleLock(#[expect(dead_code, reason = "dropping it frees the lock")] MultiSlotLockFile);

impl WorkspaceRegistry {
    /// Returns the subdirectory that every workspace registry contains.
    pub fn registry_directory(directory: &Path) -> PathBuf {
        directory.join(REGISTRY_DIRECTORY)
    }

    /// Opens or creates a workspace registry, and finishes or removes the unfinished work of dead processes.
    pub fn open(options: WorkspaceRegistryOptions) -> Result<Arc<Self>, Error> {
        let directory = StateDirectory::open(&options.directory).map_err(|error| {
            Error::new(ErrorKind::AuditUnavailable, format!("cannot use the directory of hosted workspaces: {error}"))
                .with_next_step("pass a local directory that this user owns with --workspaces")
        })?;
        let path = directory.path().to_owned();
        let (workspaces, trash) = (
            directory.create_subdirectory(WORKSPACES_DIRECTORY).map_err(errors::state_directory_error)?,
            directory.create_subdirectory(TRASH_DIRECTORY).map_err(errors::state_directory_error)?,
        );
        directory
            .create_subdirectory(&format!("{REGISTRY_DIRECTORY}/{FILES_DIRECTORY}"))
            .map_err(errors::state_directory_error)?;
        // User names cannot be read in the sandbox, so they are read before it is activated. Threads must be started
        // after the sandbox is activated.
        let users = stead_disk::user_names();
        let landlock_report = match options.landlock {
            LandlockMode::Restrict => {
                let readable: Vec<&Path> = options.readable_paths.iter().map(PathBuf::as_path).collect();
                Some(stead_disk::landlock::restrict_process(&[&path], &readable))
            }
            LandlockMode::Off => None,
        };
        let own_path = path.join(REGISTRY_DIRECTORY);
        let mut own_options =
            LocalWorkspaceOptions::new(own_path.join(FILES_DIRECTORY), own_path.join(STATE_DIRECTORY));
        own_options.durability = options.durability;
        own_options.index_mode = IndexBuildAndUseMode::Off;
        own_options.clock = Arc::clone(&options.clock);
        let registry_workspace = LocalWorkspace::open(own_options)?;
        rows::create_tables(&registry_workspace.store)?;
        let registry = Arc::new(Self {
            directory,
            path,
            workspaces,
            trash,
            registry_workspace,
            options,
            open_workspaces: OpenWorkspaces::default(),
            users,
            landlock_report,
        });
        registry.expire_and_reconcile()?;
        Ok(registry)
    }

    /// The result of activating the Landlock sandbox, or `None` if no sandbox was requested.
    pub fn landlock_report(&self) -> Option<&LandlockReport> {
        self.landlock_report.as_ref()
    }

    /// The internal workspace with the registry's own journal, for verification and export.
    pub fn registry_workspace(&self) -> &Arc<LocalWorkspace> {
        &self.registry_workspace
    }

    /// The directory of the workspace registry.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current wall-clock time in Unix milliseconds.
    pub fn now_ms(&self) -> i64 {
        self.options.clock.now().wall_ms
    }

    /// Finishes or removes unfinished work of the registry, and deletes expired workspaces; the server calls this
    /// method periodically.
    pub fn expire_and_reconcile(&self) -> Result<(), Error> {
        let now = self.options.clock.now();
        // Nothing is deleted while the wall clock may be wrong.
        if !self.registry_workspace.clock_jumped(&now)? {
            for id in self.run_query(|connection| rows::expired_ids(connection, now.wall_ms))? {
                self.expire(&id)?;
            }
        }
        for id in self.run_query(rows::unreconciled_ids)? {
            self.reconcile_if_unlocked(&id)?;
        }
        Ok(())
    }

    /// An exclusive lock prevents opening and deletion of the workspace; a shared lock prevents only deletion.
    fn lock_workspace(&self, id: &str, mode: LockMode) -> Result<WorkspaceLifecycleLock, Error> {
        let deadline = Instant::now() + LOCK_WAIT;
        loop {
            match self.try_lock_workspace(id, mode)? {
                Some(hold) => return Ok(hold),
                None if Instant::now() >= deadline => {
                    return Err(Error::new(
                        ErrorKind::Busy,
                        "another process is opening, creating or deleting the workspace",
                    )
                    .with_next_step(NextStep::repeat()));
                }
                None => std::thread::sleep(LOCK_RETRY_PAUSE),
            }
        }
    }

    fn try_lock_workspace(&self, id: &str, mode: LockMode) -> Result<Option<WorkspaceLifecycleLock>, Error> {
        let file = self.directory.open_lock_file().map_err(errors::state_directory_error)?;
        let taken = file.try_lock(rows::lock_slot(id), mode).map_err(errors::state_directory_error)?;
        Ok(taken.then_some(WorkspaceLifecycleLock(file)))
    }

    fn run_query<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        self.registry_workspace.store.run_query(query)
    }

    fn load_row(&self, id: &str) -> Result<Option<WorkspaceDatabaseRow>, Error> {
        self.run_query(|connection| rows::find_by_id(connection, id))
    }

    fn find_ready_workspace(&self, name: &str) -> Result<WorkspaceDatabaseRow, Error> {
        let found = self.run_query(|connection| rows::find_active_by_name(connection, name))?;
        found
            .filter(|row| row.lifecycle == WorkspaceRowLifecycleState::Ready)
            .ok_or_else(|| rows::workspace_not_found(name))
    }

    /// Changed registry rows and their journal entry are written in one transaction, or not at all.
    fn record_change(
        &self,
        by: &Caller,
        operation: &str,
        arguments: &Value,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<(), Error>> + Send + 'static,
    ) -> Result<(), Error> {
        let mut draft = self.registry_workspace.pending_administration_entry(by, operation, arguments.to_string());
        self.submit_change(Box::new(move |transaction, tip| {
            if let Err(error) = change(transaction)? {
                return Ok(JournalAppendOutcome::Refused(error));
            }
            store::append_entry(transaction, tip, &mut draft)?;
            Ok(JournalAppendOutcome::Recorded(tip.number, tip.hash))
        }))
    }

    fn record_row(
        &self,
        by: &Caller,
        operation: &str,
        arguments: &Value,
        row: &WorkspaceDatabaseRow,
    ) -> Result<(), Error> {
        let row = row.clone();
        self.record_change(by, operation, arguments, move |transaction| rows::upsert_row(transaction, &row).map(Ok))
    }

    fn update_without_entry(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<(), Error>> + Send + 'static,
    ) -> Result<(), Error> {
        self.submit_change(Box::new(move |transaction, tip| match change(transaction)? {
            Ok(()) => Ok(JournalAppendOutcome::Recorded(tip.number, tip.hash)),
            Err(error) => Ok(JournalAppendOutcome::Refused(error)),
        }))
    }

    fn submit_change(&self, body: TransactionBodyFn) -> Result<(), Error> {
        self.registry_workspace.submit(TransactionSyncPolicy::Now, body)?.into_recorded().map(drop)
    }

    fn workspace_options(&self, id: &str) -> LocalWorkspaceOptions {
        let directory = self.path.join(WORKSPACES_DIRECTORY).join(id);
        let mut options = LocalWorkspaceOptions::new(directory.join(FILES_DIRECTORY), directory.join(STATE_DIRECTORY));
        options.durability = self.options.durability;
        options.name_profile = self.options.name_profile;
        options.resolver = self.options.resolver;
        options.index_mode = self.options.index_mode;
        options.watch_start = ExternalChangeRecordingStartPolicy::AtOpen;
        options.clock = Arc::clone(&self.options.clock);
        options.user_names = Some(self.users.clone());
        options
    }
}

impl Drop for WorkspaceRegistry {
    fn drop(&mut self) {
        self.close_all();
    }
}
