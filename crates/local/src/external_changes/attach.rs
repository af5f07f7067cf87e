//! Watches directories of the tree. A directory is watched before it is listed, so that no change in between is missed.

use stead_disk::{
    DiskError, DiskErrorKind, FileType,
    fs_events::{FsEventQueue, FsWatchId},
};
use stead_path::{FileName, RelPath};

use super::{watch_scopes::WatchScopes, watched_directories::WatchedDirectories};
use crate::open::LocalWorkspace;

/// Result of attaching a branch.
#[derive(Default)]
pub(crate) struct AttachReport {
    /// Contents of newly watched directories.
    pub(crate) found_paths: Vec<RelPath>,
    /// Directories beyond the kernel's watch limit.
    pub(crate) beyond_limit: Vec<RelPath>,
    /// Directories that the server may not read.
    pub(crate) denied: Vec<RelPath>,
    /// Directories that do not exist; the event of their removal is still to come.
    pub(crate) missing: Vec<RelPath>,
    /// Directories watched under another name: both names, the watched one last.
    pub(crate) renamed_meanwhile: Vec<(FsWatchId, [RelPath; 2])>,
    /// Newly watched directories.
    pub(crate) new: Vec<FsWatchId>,
}

/// Whether the contents of directories are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentsReporting {
    /// Contents of newly watched directories.
    Report,
    Skip,
}

pub(crate) struct WatchAttacher<'a> {
    pub(crate) workspace: &'a LocalWorkspace,
    pub(crate) queue: &'a FsEventQueue,
    pub(crate) scopes: &'a WatchScopes,
    pub(crate) watched: &'a mut WatchedDirectories,
    pub(crate) contents: ContentsReporting,
}

impl WatchAttacher<'_> {
    /// Watches a directory, its parents, and everything below it that the watches need.
    pub(crate) fn attach_branch(&mut self, top: &RelPath) -> Result<AttachReport, DiskError> {
        let mut attached = AttachReport::default();
        for above in top.ancestors() {
            if !self.watched.contains(&above) {
                self.attach_directory(&above, &mut attached)?;
            }
        }
        let mut waiting = vec![top.clone()];
        while let Some(path) = waiting.pop() {
            let Some(directory) = self.attach_directory(&path, &mut attached)? else { continue };
            let Ok(listed) = directory.list() else { continue };
            for entry in listed {
                let Ok(child) = path.join(&entry.name) else { continue };
                if is_temporary(&entry.name) {
                    continue;
                }
                if entry.file_type == FileType::Directory && self.scopes.must_watch(&child) {
                    waiting.push(child.clone());
                }
                if self.contents == ContentsReporting::Report && self.scopes.is_relevant(&child) {
                    attached.found_paths.push(child);
                }
            }
        }
        Ok(attached)
    }

    /// Watches one directory. Returns it if its contents must be read.
    fn attach_directory(
        &mut self,
        path: &RelPath,
        attached: &mut AttachReport,
    ) -> Result<Option<stead_disk::DirectoryHandle>, DiskError> {
        let opened = self.workspace.root.open_directory(path);
        let added = opened.and_then(|directory| Ok((self.queue.watch_directory(&directory)?, directory)));
        match added {
            Ok((id, directory)) => Ok(self.name(id, path, attached).then_some(directory)),
            Err(error) => record_attach_failure(error, path, attached).map(|()| None),
        }
    }

    /// Assigns a path to a watched directory. Returns whether its contents must be read.
    fn name(&mut self, id: FsWatchId, path: &RelPath, attached: &mut AttachReport) -> bool {
        match self.watched.path(id) {
            Some(known) if known == path => return self.contents == ContentsReporting::Skip,
            Some(known) => {
                attached.renamed_meanwhile.push((id, [path.clone(), known.clone()]));
                return false;
            }
            None => {}
        }
        attached.new.push(id);
        self.watched.insert(id, path.clone());
        true
    }
}

/// Records why a directory is not watched.
fn record_attach_failure(error: DiskError, path: &RelPath, attached: &mut AttachReport) -> Result<(), DiskError> {
    match error.kind {
        // Gone, or no longer a directory: an event of the parent reports it.
        DiskErrorKind::NotFound
        | DiskErrorKind::NotDirectory
        | DiskErrorKind::IsSymlink
        | DiskErrorKind::ChangedConcurrently
        | DiskErrorKind::NotRegularFile => {
            attached.missing.push(path.clone());
        }
        // Not part of the workspace.
        DiskErrorKind::Hidden
        | DiskErrorKind::CrossesMount
        | DiskErrorKind::OutsideRoot
        | DiskErrorKind::NameTooLong => {}
        DiskErrorKind::NoSpace => attached.beyond_limit.push(path.clone()),
        DiskErrorKind::PermissionDenied => attached.denied.push(path.clone()),
        DiskErrorKind::Exists
        | DiskErrorKind::IsDirectory
        | DiskErrorKind::SymlinkLoop
        | DiskErrorKind::NotEmpty
        | DiskErrorKind::Busy
        | DiskErrorKind::QuotaExceeded
        | DiskErrorKind::ReadOnly
        | DiskErrorKind::TooManyOpenFiles
        | DiskErrorKind::TooLarge
        | DiskErrorKind::Unsupported
        | DiskErrorKind::Io => return Err(error),
    }
    Ok(())
}

/// Whether the name is a temporary name of stead.
pub(crate) fn is_temporary(name: &FileName) -> bool {
    name.as_bytes().starts_with(stead_path::TEMPORARY_PREFIX.as_bytes())
}
