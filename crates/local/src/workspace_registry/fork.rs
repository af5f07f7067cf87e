//! Forks a workspace: copies its files as they are after one journal entry. Calls that change files of the source wait
//! during the copy. The copied files share their disk blocks with the originals if the file system supports that.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stead_disk::{DirectoryHandle, FileAttributeSource, FileType, LockMode, StagedContentSource};
use stead_engine::{Caller, Error, ErrorKind, PathLockRequest, Workspace};
use stead_path::{DEPTH_MAX, FileName, RelPath};

use super::{
    CreateWorkspaceArgs, FILES_DIRECTORY, WorkspaceDescription, WorkspaceName, WorkspaceRegistry,
    create::{NewWorkspaceContentOrigin, WorkspaceBeingCreated},
};
use crate::{errors, limits::COPIED_ENTRIES_MAX, open::LocalWorkspace, store::TransactionSyncPolicy};

const SOURCE_IDLE_WAIT: Duration = Duration::from_secs(10);

/// The numbers of files and other items in a copied or exported workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkspaceCopyCounts {
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    pub bytes: u64,
    /// The number of items of the workspace that were not copied: pipes, sockets, devices, and in an archive also
    /// symlinks.
    pub skipped: u64,
}

/// The JSON `origin` of a workspace copy names the source workspace and its last journal entry.
pub(super) struct WorkspaceCopySummary {
    pub(super) counts: WorkspaceCopyCounts,
    pub(super) origin: Value,
}

impl WorkspaceRegistry {
    /// Creates a workspace with the current files of another workspace. If the request has no policy and no quota, the
    /// fork gets the policy of the source.
    pub fn fork(
        &self,
        by: &Caller,
        from: &WorkspaceName,
        name: &WorkspaceName,
        request: &CreateWorkspaceArgs,
    ) -> Result<WorkspaceDescription, Error> {
        let id = self.find_ready_workspace(from.as_str())?.id;
        let source = self.open_local_workspace(&id)?;
        let mut request = request.clone();
        if request.policy.is_none() && request.bytes_max.is_none() && request.files_max.is_none() {
            request.policy = source.policy_text()?;
        }
        self.create_with_content(by, "workspace.fork", name, &request, &mut |pending| {
            let taken = self.copy_workspace(&id, &source, pending)?;
            let fork = LocalWorkspace::open(self.workspace_options(&pending.row.id))?;
            fork.record_origin(by, &taken.origin)?;
            fork.close();
            Ok(NewWorkspaceContentOrigin { origin: Some(taken.origin) })
        })
    }

    pub(super) fn copy_workspace(
        &self,
        id: &str,
        source: &LocalWorkspace,
        pending: &WorkspaceBeingCreated,
    ) -> Result<WorkspaceCopySummary, Error> {
        // While the shared lock is held, the source cannot be deleted.
        let _shared = self.lock_workspace(id, LockMode::Shared)?;
        let files_name = FileName::new(FILES_DIRECTORY.as_bytes())?;
        let to = pending.directory.open_directory(&files_name).map_err(errors::state_directory_error)?;
        let quiet = source.lock(&[PathLockRequest { path: RelPath::root() }], Instant::now() + SOURCE_IDLE_WAIT)?;
        let head = source.head()?;
        let top = RelPath::root();
        let from = source.root.open_directory(&top).map_err(errors::at_path(&top))?;
        let mut copied = WorkspaceCopyCounts::default();
        copy_tree(&from, to.as_directory(), &top, &mut copied)?;
        drop(quiet);
        let origin = json!({
            "workspace": id, "number": head.number, "hash": head.hash.to_string(), "files": copied.files,
            "directories": copied.directories, "links": copied.links, "bytes": copied.bytes, "left_out": copied.skipped,
        });
        Ok(WorkspaceCopySummary { counts: copied, origin })
    }
}

/// Staged files and the trash directory are not copied; both have the temporary name prefix.
fn copy_tree(
    from: &DirectoryHandle,
    to: &DirectoryHandle,
    at: &RelPath,
    copied: &mut WorkspaceCopyCounts,
) -> Result<(), Error> {
    let depth = at.components().count();
    for entry in from.list().map_err(errors::at_path(at))? {
        let name = &entry.name;
        if name.as_bytes().starts_with(stead_path::TEMPORARY_PREFIX.as_bytes()) {
            continue;
        }
        if copied.files + copied.directories + copied.links >= COPIED_ENTRIES_MAX || depth >= DEPTH_MAX {
            let limit = format!(
                "the workspace is too large to copy: it has more than {COPIED_ENTRIES_MAX} files or {DEPTH_MAX} levels of directories"
            );
            return Err(Error::new(ErrorKind::TooLarge, limit)
                .with_next_step("remove files that the copy does not need, then copy it again"));
        }
        let path = at.join(name)?;
        let failed = errors::at_path(&path);
        match entry.file_type {
            FileType::RegularFile => {
                let file = from.open_file(name).map_err(failed)?;
                let staged = to
                    .stage_file(StagedContentSource::File(&file), FileAttributeSource::CopyFrom(&file))
                    .map_err(failed)?;
                to.rename_staged_to_new(&staged, name).map_err(failed)?;
                copied.files += 1;
                copied.bytes = copied.bytes.saturating_add(staged.stat().size);
            }
            FileType::Directory => {
                let below = from.open_directory(name).map_err(failed)?;
                let mode = below.stat_self().map_err(failed)?.mode & 0o777;
                to.create_directory(name, mode | 0o700).map_err(failed)?;
                copied.directories += 1;
                copy_tree(&below, &to.open_directory(name).map_err(failed)?, &path, copied)?;
                to.set_mode(name, mode).map_err(failed)?;
            }
            FileType::Symlink => {
                let target = from.read_link(name).map_err(failed)?;
                to.create_symlink(name, &target).map_err(failed)?;
                copied.links += 1;
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => copied.skipped += 1,
        }
    }
    Ok(())
}

impl LocalWorkspace {
    /// The first journal entry of a copied workspace names the source and the last entry of the source's journal.
    fn record_origin(&self, by: &Caller, origin: &Value) -> Result<(), Error> {
        let mut draft = self.pending_system_entry("fork", origin.to_string());
        draft.entry.caller.principal = by.principal.to_string();
        self.append_with_rows(draft, TransactionSyncPolicy::Now, |_, _| Ok(()))
    }
}
