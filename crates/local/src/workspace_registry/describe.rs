//! Lists the workspaces of the registry page by page, and describes single workspaces.

use serde_json::{Value, json};
use stead_engine::Error;

use super::{
    FILES_DIRECTORY, TRASH_DIRECTORY, WORKSPACES_DIRECTORY, WorkspaceDatabaseRow, WorkspaceName, WorkspaceRegistry,
    WorkspaceRowLifecycleState,
    rows::{self, DestroyedWorkspaceTrashPolicy, directory_name_of_id},
};
use crate::{
    errors,
    limits::{MEASURED_ENTRIES_MAX, WORKSPACES_PER_PAGE_MAX},
};

const PAGE_SIZE_DEFAULT: usize = 100;

/// A request for one page of the list of workspaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListWorkspacesRequest {
    /// The cursor that was returned with the previous page of workspaces; `None` requests the first page.
    pub cursor: Option<String>,
    /// The most workspaces on the requested page.
    pub limit: Option<usize>,
    /// Whether the requested page lists active or trashed workspaces.
    pub filter: WorkspaceListFilter,
}

/// Whether a list of workspaces contains active or trashed workspaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkspaceListFilter {
    /// The list contains the workspaces that can be opened.
    #[default]
    Active,
    /// The list contains the workspaces in the trash.
    Trashed,
}

/// A description of one workspace of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDescription {
    /// The name of the workspace.
    pub name: String,
    /// The id of the workspace, which no other workspace ever has.
    pub id: String,
    /// Whether the workspace is moved to the trash or deleted when it is destroyed.
    pub destroy_policy: DestroyedWorkspaceTrashPolicy,
    /// The description of the workspace for people.
    pub label: String,
    /// The principal that created the workspace.
    pub created_by: String,
    /// The creation time of the workspace in Unix milliseconds.
    pub created_ms: i64,
    /// The time of the last use of the workspace in Unix milliseconds.
    pub last_used_ms: i64,
    /// The time in Unix milliseconds at which the workspace is deleted from the trash.
    pub expires_ms: Option<i64>,
    /// The workspace or archive from which this workspace was created, as JSON.
    pub origin: Option<String>,
    /// The state of the workspace: `open`, `idle`, `trash` or `gone`.
    pub state: &'static str,
}

impl WorkspaceDescription {
    /// Returns the description of the workspace as JSON.
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "name": self.name, "id": self.id, "lasting": self.destroy_policy, "label": self.label, "maker": self.created_by,
            "created_ms": self.created_ms, "used_ms": self.last_used_ms, "state": self.state,
        });
        if let Some(ends_ms) = self.expires_ms {
            object["ends_ms"] = ends_ms.into();
        }
        if let Some(origin) = &self.origin {
            object["origin"] = serde_json::from_str(origin).unwrap_or_default();
        }
        object
    }
}

impl WorkspaceRegistry {
    pub(super) fn description_of_row(&self, row: &WorkspaceDatabaseRow) -> WorkspaceDescription {
        let state = match row.lifecycle {
            WorkspaceRowLifecycleState::Ready if self.is_open(&row.id) => "open",
            WorkspaceRowLifecycleState::Ready => "idle",
            WorkspaceRowLifecycleState::Trashed => "trash",
            WorkspaceRowLifecycleState::Creating | WorkspaceRowLifecycleState::Deleting => "gone",
        };
        WorkspaceDescription {
            name: row.name.clone(),
            id: row.id.clone(),
            destroy_policy: row.destroy_policy,
            label: row.label.clone(),
            created_by: row.created_by.clone(),
            created_ms: row.created_ms,
            last_used_ms: row.last_used_ms,
            expires_ms: row.expires_ms,
            origin: row.origin.clone(),
            state,
        }
    }

    /// Returns one page of workspaces, sorted by name, and the cursor of the next page.
    pub fn list(&self, page: &ListWorkspacesRequest) -> Result<(Vec<WorkspaceDescription>, Option<String>), Error> {
        let limit = page.limit.unwrap_or(PAGE_SIZE_DEFAULT).clamp(1, WORKSPACES_PER_PAGE_MAX);
        let stage = match page.filter {
            WorkspaceListFilter::Active => WorkspaceRowLifecycleState::Ready,
            WorkspaceListFilter::Trashed => WorkspaceRowLifecycleState::Trashed,
        };
        let cursor = page.cursor.as_deref().unwrap_or_default();
        let after = cursor.split_once('.').unwrap_or((cursor, ""));
        let mut rows = self.run_query(|connection| rows::load_page(connection, stage, after, limit + 1))?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| format!("{}.{}", row.name, row.id));
        Ok((rows.iter().map(|row| self.description_of_row(row)).collect(), next))
    }

    /// Returns all details of one workspace, including its size and the head of its journal.
    pub fn describe(&self, name: &WorkspaceName) -> Result<Value, Error> {
        let row = self.find_ready_workspace(name.as_str())?;
        let mut object = self.description_of_row(&row).to_json();
        let head = self.open_engine(&row.id)?.workspace().head()?;
        object["head"] = json!({ "number": head.number, "hash": head.hash.to_string() });
        let measured = self.measure_workspace(&row)?;
        object["files"] = measured.files.into();
        object["directories"] = measured.directories.into();
        object["bytes"] = measured.bytes.into();
        if measured.is_limited || measured.unreadable > 0 {
            object["truncated"] = true.into();
        }
        Ok(object)
    }

    fn measure_workspace(&self, row: &WorkspaceDatabaseRow) -> Result<stead_disk::DiskTreeSize, Error> {
        let (directory_name, files_name) =
            (directory_name_of_id(&row.id)?, stead_path::FileName::new(FILES_DIRECTORY.as_bytes())?);
        let directory = self.workspaces.open_directory(&directory_name);
        let files = directory.and_then(|directory| directory.open_directory(&files_name));
        let files = files.map_err(errors::state_directory_error)?.into_directory();
        stead_disk::measure_tree(&files, MEASURED_ENTRIES_MAX).map_err(errors::at_path(&stead_path::RelPath::root()))
    }

    /// The path of a workspace's directory, for backups and moves.
    pub fn directory_of(&self, description: &WorkspaceDescription) -> std::path::PathBuf {
        let below = if description.state == "trash" { TRASH_DIRECTORY } else { WORKSPACES_DIRECTORY };
        self.path.join(below).join(&description.id)
    }
}
