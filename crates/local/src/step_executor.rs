//! Applies one recorded step to the directory, through the parent's handle and one name. A step that meets another
//! program's change stops without touching it. A replaced file stays beside the new one until every step of the plan is
//! done, so that the plan can be rolled back until then.

use stead_disk::{
    ContentSource, DirectoryHandle, DiskError, DiskErrorKind, ExistingTarget, RootDirectory, StateDirectory, StateError,
};
use stead_path::{FileName, RelPath};

use crate::file_steps::{FileStep, ReplacedFile, RetainedIn, StagedFileRef, StoredInodeId, to_stored_ns};

pub(crate) struct StepExecutor<'a> {
    pub(crate) root: &'a RootDirectory,
    pub(crate) state: &'a StateDirectory,
    pub(crate) trash: &'a DirectoryHandle,
    /// Reads retained bytes from the database by version.
    pub(crate) read_retained: &'a dyn Fn(&stead_journal::Digest) -> Option<Vec<u8>>,
}

/// Why a step was not applied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ApplyError {
    /// Another program's change is in the way; it was left alone.
    ForeignChange,
    Disk(DiskError),
}

impl From<DiskError> for ApplyError {
    fn from(error: DiskError) -> Self {
        match error.kind {
            DiskErrorKind::NotFound
            | DiskErrorKind::Exists
            | DiskErrorKind::NotDirectory
            | DiskErrorKind::IsDirectory
            | DiskErrorKind::NotRegularFile
            | DiskErrorKind::ChangedConcurrently
            | DiskErrorKind::IsSymlink
            | DiskErrorKind::OutsideRoot
            | DiskErrorKind::CrossesMount
            | DiskErrorKind::Hidden
            | DiskErrorKind::NotEmpty => ApplyError::ForeignChange,
            DiskErrorKind::SymlinkLoop
            | DiskErrorKind::Busy
            | DiskErrorKind::NoSpace
            | DiskErrorKind::QuotaExceeded
            | DiskErrorKind::ReadOnly
            | DiskErrorKind::PermissionDenied
            | DiskErrorKind::NameTooLong
            | DiskErrorKind::TooManyOpenFiles
            | DiskErrorKind::TooLarge
            | DiskErrorKind::Unsupported
            | DiskErrorKind::Io => ApplyError::Disk(error),
        }
    }
}

impl From<StateError> for ApplyError {
    fn from(error: StateError) -> Self {
        DiskError::from(error).into()
    }
}

impl StepExecutor<'_> {
    /// Applies one step, or leaves everything unchanged.
    pub(crate) fn apply(&self, step: &FileStep) -> Result<(), ApplyError> {
        match step {
            FileStep::Put { path, staged, over, .. } => {
                let (source, temporary) = self.open_staged_parent(staged)?;
                self.place_staged_file(&path.0, &source, &temporary, over.as_ref())
            }
            FileStep::MakeDirectory { path, mode } => self.make_directory(&path.0, *mode),
            FileStep::MakeLink { path, target } => {
                let (parent, name) = self.open_parent(&path.0)?;
                Ok(parent.create_symlink(&name, target)?)
            }
            FileStep::Move { from, to, id, over } => self.move_path(&from.0, &to.0, *id, over.as_ref()),
            FileStep::Remove { path, id, trash } => {
                let (parent, name) = self.open_parent(&path.0)?;
                let item = trash_name(trash)?;
                ensure_same_file(&parent, &name, *id)?;
                parent.rename(&name, self.trash, &item, ExistingTarget::Refuse)?;
                let checked = ensure_same_file(self.trash, &item, *id);
                let back = || self.trash.rename(&item, &parent, &name, ExistingTarget::Refuse);
                self.verify_or_undo_rename(&path.0, &parent, checked, back)
            }
            FileStep::RemoveDirectory { path, id, .. } => {
                let (parent, name) = self.open_parent(&path.0)?;
                ensure_same_file(&parent, &name, *id)?;
                match parent.remove_directory(&name) {
                    Err(error) if error.kind == DiskErrorKind::NotEmpty => {
                        remove_leftover_staged_files(&parent.open_directory(&name)?)?;
                        Ok(parent.remove_directory(&name)?)
                    }
                    removed => Ok(removed?),
                }
            }
            FileStep::Restore { path, id, trash } => {
                let (parent, name) = self.open_parent(&path.0)?;
                let item = trash_name(trash)?;
                self.trash.rename(&item, &parent, &name, ExistingTarget::Refuse)?;
                let checked = ensure_same_file(&parent, &name, *id);
                let back = || parent.rename(&name, self.trash, &item, ExistingTarget::Refuse);
                self.verify_or_undo_rename(&path.0, &parent, checked, back)
            }
        }
    }

    /// Retains or drops the replaced file. Afterwards a rollback can restore its bytes but not its inode.
    pub(crate) fn release_replaced(&self, step: &FileStep) -> Result<(), ApplyError> {
        match step {
            FileStep::Put { staged, over: Some(replaced), .. } => {
                let (source, temporary) = self.open_staged_parent(staged)?;
                match (self.release_replaced_file(&source, &temporary, replaced), replaced.retained_in) {
                    // The database has the bytes; a leftover under a temporary name is hidden and removed later.
                    (Err(_), RetainedIn::Database) => Ok(()),
                    (gone, RetainedIn::Database | RetainedIn::File) => gone,
                }
            }
            FileStep::Move { from, over: Some(replaced), .. } => {
                let (source, old_name) = self.open_parent(&from.0)?;
                self.release_replaced_file(&source, &old_name, replaced)
            }
            FileStep::Put { .. }
            | FileStep::Move { .. }
            | FileStep::MakeDirectory { .. }
            | FileStep::MakeLink { .. }
            | FileStep::Remove { .. }
            | FileStep::RemoveDirectory { .. }
            | FileStep::Restore { .. } => Ok(()),
        }
    }

    /// Releases a replaced file if it is the one under this name.
    pub(crate) fn release_replaced_file(
        &self,
        source: &DirectoryHandle,
        name: &FileName,
        replaced: &ReplacedFile,
    ) -> Result<(), ApplyError> {
        if !is_same_file(source, name, replaced.id)? {
            return Ok(());
        }
        let gone = match replaced.retained_in {
            RetainedIn::Database => source.remove_file(name),
            RetainedIn::File => self.state.adopt_blob(&replaced.version.to_string(), source, name),
        };
        Ok(gone?)
    }

    /// Creates a directory, or accepts it if a concurrent call created it first.
    fn make_directory(&self, path: &RelPath, mode: u32) -> Result<(), ApplyError> {
        let (parent, name) = self.open_parent(path)?;
        match parent.create_directory(&name, mode) {
            Err(error) if error.kind == DiskErrorKind::Exists => match parent.stat(&name)? {
                Some(stat) if stat.file_type == stead_disk::FileType::Directory => Ok(()),
                Some(_) | None => Err(ApplyError::ForeignChange),
            },
            made => Ok(made?),
        }
    }

    /// Moves a staged file to its path. The replaced file is then under the temporary name.
    pub(crate) fn place_staged_file(
        &self,
        path: &RelPath,
        source: &DirectoryHandle,
        temporary: &FileName,
        over: Option<&ReplacedFile>,
    ) -> Result<(), ApplyError> {
        let (parent, name) = self.open_parent(path)?;
        let Some(replaced) = over else {
            source.rename(temporary, &parent, &name, ExistingTarget::Refuse)?;
            let back = || parent.rename(&name, source, temporary, ExistingTarget::Refuse);
            return self.verify_or_undo_rename(path, &parent, Ok(()), back);
        };
        match source.rename(temporary, &parent, &name, ExistingTarget::Exchange) {
            Err(error) if error.kind == DiskErrorKind::Unsupported => {
                return self.replace_without_exchange((source, temporary), (&parent, &name), replaced);
            }
            exchanged => exchanged?,
        }
        // Another program may have replaced or written the file meanwhile.
        let checked = ensure_is_replaced_file(source, temporary, replaced);
        self.verify_or_undo_rename(path, &parent, checked, || {
            source.rename(temporary, &parent, &name, ExistingTarget::Exchange)
        })
    }

    fn move_path(
        &self,
        from: &RelPath,
        to: &RelPath,
        id: StoredInodeId,
        over: Option<&ReplacedFile>,
    ) -> Result<(), ApplyError> {
        let (source, old_name) = self.open_parent(from)?;
        let (target, new_name) = self.open_parent(to)?;
        ensure_same_file(&source, &old_name, id)?;
        let Some(replaced) = over else {
            source.rename(&old_name, &target, &new_name, ExistingTarget::Refuse)?;
            let checked = ensure_same_file(&target, &new_name, id);
            let back = || target.rename(&new_name, &source, &old_name, ExistingTarget::Refuse);
            return self.verify_or_undo_rename(to, &target, checked, back);
        };
        match source.rename(&old_name, &target, &new_name, ExistingTarget::Exchange) {
            Err(error) if error.kind == DiskErrorKind::Unsupported => {
                return self.replace_without_exchange((&source, &old_name), (&target, &new_name), replaced);
            }
            exchanged => exchanged?,
        }
        let checked = ensure_same_file(&target, &new_name, id)
            .and_then(|()| ensure_is_replaced_file(&source, &old_name, replaced));
        self.verify_or_undo_rename(to, &target, checked, || {
            source.rename(&old_name, &target, &new_name, ExistingTarget::Exchange)
        })
    }

    /// For file systems without atomic exchange: retains the old bytes first, then renames over.
    fn replace_without_exchange(
        &self,
        (source, old_name): (&DirectoryHandle, &FileName),
        (parent, name): (&DirectoryHandle, &FileName),
        replaced: &ReplacedFile,
    ) -> Result<(), ApplyError> {
        ensure_is_replaced_file(parent, name, replaced)?;
        if replaced.retained_in == RetainedIn::File {
            let old = parent.open_file(name)?;
            self.state.put_blob(&replaced.version.to_string(), ContentSource::File(&old), stead_disk::BlobSync::Now)?;
        }
        Ok(source.rename(old_name, parent, name, ExistingTarget::Replace)?)
    }

    /// The open parent directory of a path, and the name in it.
    pub(crate) fn open_parent(&self, path: &RelPath) -> Result<(DirectoryHandle, FileName), ApplyError> {
        let (parent, name) = path.split().ok_or(ApplyError::ForeignChange)?;
        Ok((self.root.open_directory(&parent)?, name))
    }

    /// The directory of a staged file, and its temporary name.
    pub(crate) fn open_staged_parent(&self, staged: &StagedFileRef) -> Result<(DirectoryHandle, FileName), ApplyError> {
        let (_, name) = staged.name.0.split().ok_or(ApplyError::ForeignChange)?;
        Ok((self.root.open_directory(&staged.directory.0)?, name))
    }

    /// Checks after a rename that it moved the right file and that the directory is still inside the workspace. Otherwise
    /// undoes the rename through the open handles.
    fn verify_or_undo_rename(
        &self,
        path: &RelPath,
        parent: &DirectoryHandle,
        checked: Result<(), ApplyError>,
        back: impl FnOnce() -> Result<(), DiskError>,
    ) -> Result<(), ApplyError> {
        let error = match checked.and_then(|()| self.open_parent(path)) {
            Ok((again, _)) if again.id() == parent.id() => return Ok(()),
            Ok(_) => ApplyError::ForeignChange,
            Err(error) => error,
        };
        back()?;
        Err(error)
    }
}

/// Removes staged files from a directory that contains nothing else. Creating files in a directory and removing it both
/// need its lock, so these files come from a dead process.
fn remove_leftover_staged_files(directory: &DirectoryHandle) -> Result<(), DiskError> {
    let names = directory.list()?;
    let is_staged = |name: &FileName| name.as_bytes().starts_with(stead_path::TEMPORARY_PREFIX.as_bytes());
    if names.iter().all(|entry| is_staged(&entry.name) && entry.file_type == stead_disk::FileType::File) {
        for entry in &names {
            directory.remove_file(&entry.name)?;
        }
    }
    Ok(())
}

pub(crate) fn is_same_file(parent: &DirectoryHandle, name: &FileName, id: StoredInodeId) -> Result<bool, ApplyError> {
    Ok(parent.stat(name)?.is_some_and(|stat| StoredInodeId::from_stat(&stat) == id))
}

fn ensure_same_file(parent: &DirectoryHandle, name: &FileName, id: StoredInodeId) -> Result<(), ApplyError> {
    if is_same_file(parent, name, id)? { Ok(()) } else { Err(ApplyError::ForeignChange) }
}

/// Fails unless the name is the file to be replaced, unchanged.
pub(crate) fn ensure_is_replaced_file(
    source: &DirectoryHandle,
    name: &FileName,
    replaced: &ReplacedFile,
) -> Result<(), ApplyError> {
    match source.stat(name)? {
        Some(stat)
            if StoredInodeId::from_stat(&stat) == replaced.id
                && stat.size == replaced.size
                && to_stored_ns(stat.modified_ns) == replaced.modified_ns =>
        {
            Ok(())
        }
        Some(_) | None => Err(ApplyError::ForeignChange),
    }
}

pub(crate) fn trash_name(id: &str) -> Result<FileName, ApplyError> {
    FileName::new(id.as_bytes()).map_err(|_| ApplyError::ForeignChange)
}
