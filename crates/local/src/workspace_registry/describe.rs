//! Lists the workspaces of the registry page by page, and describes single workspaces.

use stead_engine::{
    Error,
    ops::{JournalHeadFields, ListWorkspacesArgs, WorkspaceDescription, WorkspaceSizeFields},
};

use super::{
    FILES_DIRECTORY, TRASH_DIRECTORY, WORKSPACES_DIRECTORY, WorkspaceDatabaseRow, WorkspaceName, WorkspaceRegistry,
    WorkspaceRowLifecycleState,
    rows::{self, directory_name_of_id},
};
use crate::{
    errors,
    limits::{MEASURED_ENTRIES_MAX, WORKSPACES_PER_PAGE_MAX},
};

const PAGE_SIZE_DEFAULT: usize = 100;

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
            lasting: row.destroy_policy,
            label: row.label.clone(),
            maker: row.created_by.clone(),
            created_ms: row.created_ms,
            used_ms: row.last_used_ms,
            ends_ms: row.expires_ms,
            origin: row.origin.as_deref().and_then(|origin| serde_json::from_str(origin).ok()),
            state,
            size: None,
        }
    }

    /// Returns one page of workspaces, sorted by name, and the cursor of the next page.
    pub fn list(&self, page: &ListWorkspacesArgs) -> Result<(Vec<WorkspaceDescription>, Option<String>), Error> {
        let limit = page.limit.map_or(PAGE_SIZE_DEFAULT, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let limit = limit.clamp(1, WORKSPACES_PER_PAGE_MAX);
        let stage = if page.trash { WorkspaceRowLifecycleState::Trashed } else { WorkspaceRowLifecycleState::Ready };
        let cursor = page.cursor.as_deref().unwrap_or_default();
        let after = cursor.split_once('.').unwrap_or((cursor, ""));
        let mut rows = self.run_query(|connection| rows::load_page(connection, stage, after, limit + 1))?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|row| format!("{}.{}", row.name, row.id));
        Ok((rows.iter().map(|row| self.description_of_row(row)).collect(), next))
    }

    /// Returns all details of one workspace, including its size and the head of its journal.
    pub fn describe(&self, name: &WorkspaceName) -> Result<WorkspaceDescription, Error> {
        let row = self.find_ready_workspace(name.as_str())?;
        let head = self.open_engine(&row.id)?.workspace().head()?;
        let measured = self.measure_workspace(&row)?;
        let size = WorkspaceSizeFields {
            head: JournalHeadFields { number: head.number, hash: head.hash },
            files: measured.files,
            directories: measured.directories,
            bytes: measured.bytes,
            truncated: measured.is_limited || measured.unreadable > 0,
        };
        Ok(WorkspaceDescription { size: Some(size), ..self.description_of_row(&row) })
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
