//! Destroys and restores workspaces of a registry. The row of a destroyed workspace changes first, then its directory
//! is moved or deleted. An ephemeral workspace is deleted at once; any other workspace stays in the trash until it
//! expires.

use serde_json::json;
use stead_disk::{DirectoryHandle, DiskErrorKind, ExistingTargetPolicy, LockMode, ServerOnlyDirectoryHandle};
use stead_engine::{Caller, Error, ErrorKind, NextStep, Principal};

use super::{
    DestroyedWorkspaceTrashPolicy, WorkspaceDatabaseRow, WorkspaceDescription, WorkspaceName, WorkspaceRegistry,
    WorkspaceRowLifecycleState, WorkspaceRowReconciliationStatus,
    rows::{self, directory_name_of_id},
};
use crate::errors;

impl WorkspaceRegistry {
    /// Destroys a workspace: from then on nobody can open it, and its tokens are revoked for good.
    pub fn destroy(&self, by: &Caller, name: &WorkspaceName) -> Result<WorkspaceDescription, Error> {
        let id = self.find_ready_workspace(name.as_str())?.id;
        let _alone = self.lock_workspace(&id, LockMode::Exclusive)?;
        let row = self.load_unchanged_row(&id, WorkspaceRowLifecycleState::Ready, name.as_str())?;
        let now_ms = self.now_ms();
        let after = match row.destroy_policy {
            DestroyedWorkspaceTrashPolicy::DeleteAtOnce => WorkspaceDatabaseRow {
                lifecycle: WorkspaceRowLifecycleState::Deleting,
                reconciliation: WorkspaceRowReconciliationStatus::Pending,
                ..row
            },
            DestroyedWorkspaceTrashPolicy::MoveToTrash => WorkspaceDatabaseRow {
                lifecycle: WorkspaceRowLifecycleState::Trashed,
                reconciliation: WorkspaceRowReconciliationStatus::Pending,
                expires_ms: Some(now_ms.saturating_add(self.options.trash_retention_ms)),
                ..row
            },
        };
        let arguments =
            json!({ "workspace": after.name, "id": id, "lasting": after.destroy_policy, "ends_ms": after.expires_ms });
        let put = after.clone();
        self.record_change(by, "workspace.destroy", &arguments, move |transaction| {
            match rows::find_by_id(transaction, &put.id)? {
                Some(row) if row.lifecycle == WorkspaceRowLifecycleState::Ready => {}
                Some(_) | None => return Ok(Err(rows::workspace_not_found(&put.name))),
            }
            rows::upsert_row(transaction, &put)?;
            rows::revoke_workspace_tokens(transaction, &put.id, now_ms).map(Ok)
        })?;
        self.close_destroyed(&id);
        // If the directory cannot be moved now, the next reconciliation moves it. The workspace is destroyed already.
        self.reconcile_disk(&after).unwrap_or_default();
        Ok(self.description_of_row(&after))
    }

    /// Restores a workspace from the trash by its name or id, under the name `rename` if that is given.
    pub fn restore(
        &self,
        by: &Caller,
        name: &str,
        rename: Option<&WorkspaceName>,
    ) -> Result<WorkspaceDescription, Error> {
        let missing = || {
            Error::new(ErrorKind::NotFound, format!("there is no workspace {name} in the trash"))
                .with_next_step(NextStep::person_command("workspace list --trash", "list them"))
        };
        let found = self.run_query(|connection| rows::find_trashed_by_name(connection, name))?;
        let id = found.ok_or_else(missing)?.id;
        let _alone = self.lock_workspace(&id, LockMode::Exclusive)?;
        let row = self
            .load_row(&id)?
            .filter(|row| row.lifecycle == WorkspaceRowLifecycleState::Trashed)
            .ok_or_else(missing)?;
        let name = rename.map_or(row.name.clone(), |name| name.as_str().to_owned());
        let after = WorkspaceDatabaseRow {
            lifecycle: WorkspaceRowLifecycleState::Ready,
            reconciliation: WorkspaceRowReconciliationStatus::Pending,
            expires_ms: None,
            name,
            ..row
        };
        let arguments = json!({ "workspace": after.name, "id": id });
        let put = after.clone();
        self.record_change(by, "workspace.restore", &arguments, move |transaction| {
            match rows::find_by_id(transaction, &put.id)? {
                Some(row) if row.lifecycle == WorkspaceRowLifecycleState::Trashed => {}
                Some(_) | None => return Ok(Err(rows::workspace_not_found(&put.name))),
            }
            if rows::find_active_by_name(transaction, &put.name)?.is_some() {
                let taken = format!("workspace {} already exists", put.name);
                return Ok(Err(Error::new(ErrorKind::Exists, taken).with_next_step("restore it under another name")));
            }
            rows::upsert_row(transaction, &put).map(Ok)
        })?;
        // If the directory cannot be moved now, the next open moves it.
        self.reconcile_disk(&after).unwrap_or_default();
        Ok(self.description_of_row(&after))
    }

    pub(super) fn expire(&self, id: &str) -> Result<(), Error> {
        let Some(_alone) = self.try_lock_workspace(id, LockMode::Exclusive)? else { return Ok(()) };
        let now_ms = self.now_ms();
        let over = |row: &WorkspaceDatabaseRow| {
            row.lifecycle == WorkspaceRowLifecycleState::Trashed
                && row.expires_ms.is_some_and(|ends_ms| ends_ms <= now_ms)
        };
        let Some(row) = self.load_row(id)?.filter(over) else { return Ok(()) };
        let by = Caller::new(Principal::System, "estate", "server");
        let after = WorkspaceDatabaseRow {
            lifecycle: WorkspaceRowLifecycleState::Deleting,
            reconciliation: WorkspaceRowReconciliationStatus::Pending,
            ..row
        };
        self.record_row(&by, "workspace_expire", &json!({ "workspace": after.name, "id": id }), &after)?;
        self.reconcile_disk(&after)
    }

    /// Reconciliation skips a workspace that another process has locked.
    pub(super) fn reconcile_if_unlocked(&self, id: &str) -> Result<(), Error> {
        let Some(_alone) = self.try_lock_workspace(id, LockMode::Exclusive)? else { return Ok(()) };
        match self.load_row(id)?.filter(|row| row.reconciliation == WorkspaceRowReconciliationStatus::Pending) {
            Some(row) => self.reconcile_disk(&row),
            None => Ok(()),
        }
    }

    /// The caller of a reconciliation holds the exclusive lock of the workspace. An interrupted reconciliation can be
    /// repeated.
    pub(super) fn reconcile_disk(&self, row: &WorkspaceDatabaseRow) -> Result<(), Error> {
        match row.lifecycle {
            WorkspaceRowLifecycleState::Creating | WorkspaceRowLifecycleState::Deleting => {
                return self.delete_directory(&row.id);
            }
            WorkspaceRowLifecycleState::Ready => self.move_directory(&self.trash, &self.workspaces, &row.id)?,
            WorkspaceRowLifecycleState::Trashed => self.move_directory(&self.workspaces, &self.trash, &row.id)?,
        }
        let settled = WorkspaceDatabaseRow { reconciliation: WorkspaceRowReconciliationStatus::Done, ..row.clone() };
        self.update_without_entry(move |transaction| rows::upsert_row(transaction, &settled).map(Ok))
    }

    /// Moving a workspace directory that has already been moved is no error.
    fn move_directory(
        &self,
        from: &ServerOnlyDirectoryHandle,
        to: &ServerOnlyDirectoryHandle,
        id: &str,
    ) -> Result<(), Error> {
        let name = directory_name_of_id(id)?;
        match from.with(|from| from.rename(&name, to.as_directory(), &name, ExistingTargetPolicy::Refuse)) {
            Ok(()) => {}
            Err(error) if error.kind() == DiskErrorKind::NotFound => {}
            Err(error) => return Err(errors::state_directory_error(error)),
        }
        to.with(DirectoryHandle::sync)
            .and_then(|()| from.with(DirectoryHandle::sync))
            .map_err(errors::state_directory_error)
    }

    /// A deleted workspace's directory is first moved to the trash, so that nobody can open a partly deleted workspace.
    pub(super) fn delete_directory(&self, id: &str) -> Result<(), Error> {
        self.move_directory(&self.workspaces, &self.trash, id)?;
        let name = directory_name_of_id(id)?;
        match self.trash.with(|trash| trash.remove_tree(&name)) {
            Ok(()) => {}
            Err(error) if error.kind() == DiskErrorKind::NotFound => {}
            Err(error) => return Err(errors::state_directory_error(error)),
        }
        self.trash.with(DirectoryHandle::sync).map_err(errors::state_directory_error)?;
        let id = id.to_owned();
        self.update_without_entry(move |transaction| rows::delete_row(transaction, &id).map(Ok))
    }

    fn load_unchanged_row(
        &self,
        id: &str,
        stage: WorkspaceRowLifecycleState,
        name: &str,
    ) -> Result<WorkspaceDatabaseRow, Error> {
        let row = self.load_row(id)?.filter(|row| row.lifecycle == stage && row.name == name);
        row.ok_or_else(|| rows::workspace_not_found(name))
    }
}
