//! Creates a workspace: reserves the name, creates the directories, then marks the row as ready. If the process dies
//! during the creation, the row and the directories are removed later.

use serde_json::{Value, json};
use stead_disk::{DirectoryHandle, DiskErrorKind, LockMode, ServerOnlyDirectoryHandle, StateDirectoryAccessError};
use stead_engine::{Caller, Error, ErrorKind, NextStep, Policy, ops::CreateWorkspaceArgs};
use stead_path::FileName;

use super::{
    FILES_DIRECTORY, STATE_DIRECTORY, WORKSPACES_DIRECTORY, WORKSPACES_MAX, WorkspaceDatabaseRow, WorkspaceName,
    WorkspaceRegistry, WorkspaceRowLifecycleState, WorkspaceRowReconciliationStatus,
    rows::{self, directory_name_of_id},
};
use crate::{
    errors, limits::WORKSPACE_LABEL_CHARS_MAX, options::Durability, policy_file::POLICY_FILE,
    store::lock_ignoring_poison,
};

const DIRECTORY_MODE: u32 = 0o700;

fn policy_text(request: &CreateWorkspaceArgs) -> Result<Option<String>, Error> {
    if request.label.chars().count() > WORKSPACE_LABEL_CHARS_MAX {
        let limit = format!("the label of the workspace has more than {WORKSPACE_LABEL_CHARS_MAX} characters");
        return Err(Error::new(ErrorKind::TooLarge, limit).with_next_step("choose a shorter label"));
    }
    let limits = [("bytes", request.bytes_max), ("files", request.files_max)];
    let lines: String =
        limits.iter().filter_map(|(key, limit)| limit.map(|limit| format!("{key} = {limit}\n"))).collect();
    match (&request.policy, lines.is_empty()) {
        (Some(_), false) => {
            let twice = "bytes_max and files_max cannot be combined with a policy";
            Err(Error::new(ErrorKind::BadRequest, twice)
                .with_next_step("put bytes and files into [system.quota] of the policy"))
        }
        (Some(text), true) => {
            Policy::parse(text).map_err(|error| {
                Error::new(ErrorKind::BadRequest, format!("the policy of the new workspace is invalid: {error}"))
                    .with_next_step("no workspace was created; correct the policy and repeat the call")
            })?;
            Ok(Some(text.clone()))
        }
        (None, false) => Ok(Some(format!("[system.quota]\n{lines}"))),
        (None, true) => Ok(None),
    }
}

/// The name of a workspace that is being created is reserved, and the workspace cannot be opened yet.
pub(super) struct WorkspaceBeingCreated {
    pub(super) row: WorkspaceDatabaseRow,
    pub(super) directory: ServerOnlyDirectoryHandle,
    _lock: super::WorkspaceLifecycleLock,
}

#[derive(Debug, Default)]
pub(super) struct NewWorkspaceContentOrigin {
    /// The workspace or archive that the content was copied from, as JSON; `None` if the new workspace is empty.
    pub(super) origin: Option<Value>,
}

impl WorkspaceRegistry {
    /// Creates an empty workspace.
    pub fn create(
        &self,
        by: &Caller,
        name: &WorkspaceName,
        request: &CreateWorkspaceArgs,
    ) -> Result<super::WorkspaceDescription, Error> {
        self.create_with_content(by, "workspace.create", name, request, &mut |_| {
            Ok(NewWorkspaceContentOrigin::default())
        })
    }

    /// If any step of the creation fails, no workspace is created.
    pub(super) fn create_with_content(
        &self,
        by: &Caller,
        operation: &str,
        name: &WorkspaceName,
        request: &CreateWorkspaceArgs,
        fill: &mut dyn FnMut(&WorkspaceBeingCreated) -> Result<NewWorkspaceContentOrigin, Error>,
    ) -> Result<super::WorkspaceDescription, Error> {
        let policy = policy_text(request)?;
        let pending = self.begin_creation(by, name.as_str(), request)?;
        let id = pending.row.id.clone();
        let content = self
            .create_layout(&pending.directory, policy.as_deref())
            .and_then(|()| fill(&pending))
            .and_then(|content| self.sync_new_workspace(&pending, &content).map(|()| content));
        let content = match content {
            Ok(content) => content,
            Err(error) => {
                self.delete_directory(&id).unwrap_or_default();
                return Err(error);
            }
        };
        let origin = content.origin.map(|origin| origin.to_string());
        let row = WorkspaceDatabaseRow {
            lifecycle: WorkspaceRowLifecycleState::Ready,
            reconciliation: WorkspaceRowReconciliationStatus::Done,
            origin,
            ..pending.row.clone()
        };
        let arguments = json!({
            "workspace": name.as_str(), "id": id, "lasting": row.destroy_policy, "label": row.label, "origin": row.origin,
            "bytes_max": request.bytes_max, "files_max": request.files_max, "policy": request.policy.is_some(),
        });
        let recorded = self.record_row(by, operation, &arguments, &row);
        // If it is unknown whether the entry is on disk, the next open keeps or removes the workspace.
        if let Err(error) = recorded {
            if self.registry_workspace.store.ensure_writable().is_ok() {
                self.delete_directory(&id).unwrap_or_default();
            }
            return Err(error);
        }
        Ok(self.description_of_row(&row))
    }

    /// A temporary workspace has a name that no other workspace can have.
    pub(super) fn begin_unnamed_creation(&self, by: &Caller) -> Result<WorkspaceBeingCreated, Error> {
        let name = format!("~{}", rows::generate_id()?);
        self.begin_creation(by, &name, &CreateWorkspaceArgs::default())
    }

    fn begin_creation(
        &self,
        by: &Caller,
        name: &str,
        request: &CreateWorkspaceArgs,
    ) -> Result<WorkspaceBeingCreated, Error> {
        let id = rows::generate_id()?;
        let lock = self.lock_workspace(&id, LockMode::Exclusive)?;
        let now_ms = self.now_ms();
        let row = WorkspaceDatabaseRow {
            id: id.clone(),
            name: name.to_owned(),
            lifecycle: WorkspaceRowLifecycleState::Creating,
            destroy_policy: request.lasting,
            label: request.label.clone(),
            created_by: by.principal.to_string(),
            created_ms: now_ms,
            last_used_ms: now_ms,
            expires_ms: None,
            reconciliation: WorkspaceRowReconciliationStatus::Pending,
            origin: None,
        };
        self.reserve_name(&row)?;
        let directory_name = directory_name_of_id(&id)?;
        let directory = self
            .workspaces
            .with(|workspaces| workspaces.create_directory(&directory_name, DIRECTORY_MODE))
            .and_then(|()| self.workspaces.open_directory(&directory_name));
        match directory {
            Ok(directory) => Ok(WorkspaceBeingCreated { row, directory, _lock: lock }),
            Err(error) => {
                self.delete_directory(&id).unwrap_or_default();
                Err(creation_error(error))
            }
        }
    }

    /// A workspace name that a dead process reserved is freed.
    fn reserve_name(&self, row: &WorkspaceDatabaseRow) -> Result<(), Error> {
        for last in [false, true] {
            let wanted = row.clone();
            let taken = self.update_without_entry(move |transaction| {
                if rows::find_active_by_name(transaction, &wanted.name)?.is_some() {
                    let taken = format!("workspace {} already exists", wanted.name);
                    return Ok(Err(Error::new(ErrorKind::Exists, taken).with_next_step("choose another name")));
                }
                if rows::count_workspaces(transaction)? >= WORKSPACES_MAX {
                    let full = format!("the limit of {WORKSPACES_MAX} workspaces is reached");
                    return Ok(Err(Error::new(ErrorKind::TooMany, full)
                        .with_next_step("destroy workspaces that are no longer needed")));
                }
                rows::upsert_row(transaction, &wanted).map(Ok)
            });
            match taken {
                Err(error) if error.kind == ErrorKind::Exists && !last => {
                    let other = self.run_query(|connection| rows::find_active_by_name(connection, &row.name))?;
                    match other {
                        Some(other) if other.lifecycle == WorkspaceRowLifecycleState::Creating => {
                            self.reconcile_if_unlocked(&other.id)?
                        }
                        Some(_) => return Err(error),
                        None => {}
                    }
                }
                other => return other,
            }
        }
        Err(Error::new(ErrorKind::Exists, format!("workspace {} already exists", row.name))
            .with_next_step("choose another name"))
    }

    pub(super) fn create_layout(
        &self,
        directory: &ServerOnlyDirectoryHandle,
        policy: Option<&str>,
    ) -> Result<(), Error> {
        for name in [FILES_DIRECTORY, STATE_DIRECTORY] {
            let name = FileName::new(name.as_bytes())?;
            directory.with(|directory| directory.create_directory(&name, DIRECTORY_MODE)).map_err(creation_error)?;
        }
        let Some(text) = policy else { return Ok(()) };
        let (state_name, policy_name) =
            (FileName::new(STATE_DIRECTORY.as_bytes())?, FileName::new(POLICY_FILE.as_bytes())?);
        let state = directory.open_directory(&state_name).map_err(creation_error)?;
        state.with(|state| state.write_file(&policy_name, text.as_bytes(), 0o600)).map_err(creation_error)
    }

    fn sync_new_workspace(
        &self,
        pending: &WorkspaceBeingCreated,
        content: &NewWorkspaceContentOrigin,
    ) -> Result<(), Error> {
        let synced = match (&content.origin, self.options.durability) {
            (Some(_), Durability::Full) => self.directory.sync_file_system(),
            (Some(_), Durability::Fast) | (None, _) => Ok(()),
        };
        synced
            .and_then(|()| pending.directory.with(DirectoryHandle::sync))
            .and_then(|()| self.workspaces.with(DirectoryHandle::sync))
            .map_err(creation_error)
    }

    /// The absolute path of a workspace's files, for dialects with absolute paths.
    pub fn files_directory_of(&self, id: &str) -> String {
        self.path.join(WORKSPACES_DIRECTORY).join(id).join(FILES_DIRECTORY).to_string_lossy().into_owned()
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        lock_ignoring_poison(&self.open_workspaces.slots).contains_key(id)
    }
}

fn creation_error(error: StateDirectoryAccessError) -> Error {
    if matches!(error.kind(), DiskErrorKind::NoSpace | DiskErrorKind::QuotaExceeded) {
        return Error::new(ErrorKind::NoSpace, "the disk is full; nothing was changed")
            .with_next_step(NextStep::ask_person("free disk space").then(NextStep::repeat()));
    }
    errors::state_directory_error(error)
}
