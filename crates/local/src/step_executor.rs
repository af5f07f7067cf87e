//! Applies the recorded steps of a plan to the workspace, and rolls them back if a later step fails. A step that finds
//! another program's change stops and leaves that change alone. A replaced file stays under a temporary name until all
//! steps of the plan are done.
//!
//! A rollback changes a path only if the path still has the file that the plan put there. A rollback gives staged files
//! their temporary names back, so that recovery can apply the steps again after an interruption.

use stead_disk::{
    BlobSyncTiming, DirectoryHandle, DiskError, DiskErrorKind, ExistingTargetPolicy, FileAttributeSource, FileType,
    RootDirectory, StagedContentSource, StagedFile, StateDirectory, StateDirectoryAccessError,
};
use stead_path::{FileName, RelPath, TEMPORARY_PREFIX};

use crate::file_steps::{
    FileApplyStep, FileWriteStep, ReplacedFileRecord, RetainedVersionLocation, StagedFileRecord, StoredInodeId,
    to_stored_ns,
};

pub(crate) struct FileApplyStepExecutor<'a> {
    pub(crate) root: &'a RootDirectory,
    pub(crate) state: &'a StateDirectory,
    pub(crate) trash: &'a DirectoryHandle,
    pub(crate) read_retained: &'a dyn Fn(&stead_journal::Digest) -> Option<Vec<u8>>,
}

/// An open directory and the name of a file in it.
pub(crate) type FilePlace = (DirectoryHandle, FileName);

#[derive(Debug, Clone, Copy)]
pub(crate) enum StepApplyError {
    /// The step stopped, because another program has changed the path of the step.
    ForeignChange,
    Disk(DiskError),
}

impl From<DiskError> for StepApplyError {
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
            | DiskErrorKind::NotEmpty => StepApplyError::ForeignChange,
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
            | DiskErrorKind::Io => StepApplyError::Disk(error),
        }
    }
}

impl From<StateDirectoryAccessError> for StepApplyError {
    fn from(error: StateDirectoryAccessError) -> Self {
        DiskError::from(error).into()
    }
}

impl FileApplyStepExecutor<'_> {
    /// A failing step undoes its own rename; the rename stays only if undoing fails as well.
    pub(crate) fn apply(&self, step: &FileApplyStep) -> Result<(), StepApplyError> {
        match step {
            FileApplyStep::Put(put) => {
                let (source, temporary) = self.open_staged_parent(&put.staged)?;
                self.place_staged_file(&put.path.0, &source, &temporary, put.over.as_ref())
            }
            FileApplyStep::MakeDirectory { path, mode } => self.make_directory(&path.0, *mode),
            FileApplyStep::MakeLink { path, target } => {
                let (parent, name) = self.open_parent(&path.0)?;
                Ok(parent.create_symlink(&name, target)?)
            }
            FileApplyStep::Move { from, to, id, over: Some(replaced) } => self.move_over(&from.0, &to.0, *id, replaced),
            FileApplyStep::Move { to: path, .. }
            | FileApplyStep::Remove { path, .. }
            | FileApplyStep::Restore { path, .. } => {
                let Some(((old, old_name), (new, new_name), id)) = self.open_rename(step)? else { return Ok(()) };
                ensure_same_file(&old, &old_name, id)?;
                old.rename(&old_name, &new, &new_name, ExistingTargetPolicy::Refuse)?;
                let checked = ensure_same_file(&new, &new_name, id);
                let back = || new.rename(&new_name, &old, &old_name, ExistingTargetPolicy::Refuse);
                // The trash is never moved, so the parent that may have been moved is the one in the workspace.
                let parent = if matches!(step, FileApplyStep::Remove { .. }) { &old } else { &new };
                self.verify_or_undo_rename(&path.0, parent, checked, back)
            }
            FileApplyStep::RemoveDirectory { path, id, .. } => {
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
        }
    }

    /// Opens the old and the new place of the file that a step renames.
    pub(crate) fn open_rename(
        &self,
        step: &FileApplyStep,
    ) -> Result<Option<(FilePlace, FilePlace, StoredInodeId)>, StepApplyError> {
        let in_trash =
            |trash: &str| -> Result<FilePlace, StepApplyError> { Ok((self.trash.try_clone()?, trash_name(trash)?)) };
        Ok(match step {
            FileApplyStep::Move { from, to, id, .. } => {
                Some((self.open_parent(&from.0)?, self.open_parent(&to.0)?, *id))
            }
            FileApplyStep::Remove { path, id, trash } => Some((self.open_parent(&path.0)?, in_trash(trash)?, *id)),
            FileApplyStep::Restore { path, id, trash } => Some((in_trash(trash)?, self.open_parent(&path.0)?, *id)),
            FileApplyStep::Put(_)
            | FileApplyStep::MakeDirectory { .. }
            | FileApplyStep::MakeLink { .. }
            | FileApplyStep::RemoveDirectory { .. } => None,
        })
    }

    /// A rollback can restore the content of a released file, but not the inode of the file.
    pub(crate) fn release_replaced(&self, step: &FileApplyStep) -> Result<(), StepApplyError> {
        if let FileApplyStep::Put(FileWriteStep { staged, over: Some(replaced), .. }) = step {
            let (source, temporary) = self.open_staged_parent(staged)?;
            let released = self.release_replaced_file(&source, &temporary, replaced);
            // If the database has the content, the file under its temporary name is hidden and is deleted later.
            return if replaced.retained_in == RetainedVersionLocation::Database { Ok(()) } else { released };
        }
        if let FileApplyStep::Move { from, over: Some(replaced), .. } = step {
            let (source, old_name) = self.open_parent(&from.0)?;
            return self.release_replaced_file(&source, &old_name, replaced);
        }
        Ok(())
    }

    /// If `name` has a different inode than the replaced file, the file at `name` is left alone.
    pub(crate) fn release_replaced_file(
        &self,
        source: &DirectoryHandle,
        name: &FileName,
        replaced: &ReplacedFileRecord,
    ) -> Result<(), StepApplyError> {
        if !is_same_file(source, name, replaced.id)? {
            return Ok(());
        }
        let gone = match replaced.retained_in {
            RetainedVersionLocation::Database => source.remove_file(name),
            RetainedVersionLocation::File => self.state.adopt_blob(&replaced.version.to_string(), source, name),
        };
        Ok(gone?)
    }

    /// A directory that a concurrent call created first is accepted as created.
    fn make_directory(&self, path: &RelPath, mode: u32) -> Result<(), StepApplyError> {
        let (parent, name) = self.open_parent(path)?;
        match parent.create_directory(&name, mode) {
            Err(error) if error.kind == DiskErrorKind::Exists => match parent.stat(&name)? {
                Some(stat) if stat.file_type == FileType::Directory => Ok(()),
                Some(_) | None => Err(StepApplyError::ForeignChange),
            },
            created => Ok(created?),
        }
    }

    /// The file that a staged file replaces gets the temporary name of the staged file.
    pub(crate) fn place_staged_file(
        &self,
        path: &RelPath,
        source: &DirectoryHandle,
        temporary: &FileName,
        over: Option<&ReplacedFileRecord>,
    ) -> Result<(), StepApplyError> {
        let (parent, name) = self.open_parent(path)?;
        let Some(replaced) = over else {
            source.rename(temporary, &parent, &name, ExistingTargetPolicy::Refuse)?;
            let back = || parent.rename(&name, source, temporary, ExistingTargetPolicy::Refuse);
            return self.verify_or_undo_rename(path, &parent, Ok(()), back);
        };
        match source.rename(temporary, &parent, &name, ExistingTargetPolicy::Exchange) {
            Err(error) if error.kind == DiskErrorKind::Unsupported => {
                return self.replace_without_exchange((source, temporary), (&parent, &name), replaced);
            }
            exchanged => exchanged?,
        }
        // Another program may have replaced or written the file before the exchange.
        let checked = ensure_is_replaced_file(source, temporary, replaced);
        self.verify_or_undo_rename(path, &parent, checked, || {
            source.rename(temporary, &parent, &name, ExistingTargetPolicy::Exchange)
        })
    }

    fn move_over(
        &self,
        from: &RelPath,
        to: &RelPath,
        id: StoredInodeId,
        replaced: &ReplacedFileRecord,
    ) -> Result<(), StepApplyError> {
        let (source, old_name) = self.open_parent(from)?;
        let (target, new_name) = self.open_parent(to)?;
        ensure_same_file(&source, &old_name, id)?;
        match source.rename(&old_name, &target, &new_name, ExistingTargetPolicy::Exchange) {
            Err(error) if error.kind == DiskErrorKind::Unsupported => {
                return self.replace_without_exchange((&source, &old_name), (&target, &new_name), replaced);
            }
            exchanged => exchanged?,
        }
        let checked = ensure_same_file(&target, &new_name, id)
            .and_then(|()| ensure_is_replaced_file(&source, &old_name, replaced));
        self.verify_or_undo_rename(to, &target, checked, || {
            source.rename(&old_name, &target, &new_name, ExistingTargetPolicy::Exchange)
        })
    }

    /// Some file systems cannot exchange two names; there the old content is retained before the rename.
    fn replace_without_exchange(
        &self,
        (source, old_name): (&DirectoryHandle, &FileName),
        (parent, name): (&DirectoryHandle, &FileName),
        replaced: &ReplacedFileRecord,
    ) -> Result<(), StepApplyError> {
        ensure_is_replaced_file(parent, name, replaced)?;
        if replaced.retained_in == RetainedVersionLocation::File {
            let old = parent.open_file(name)?;
            self.state.put_blob(&replaced.version.to_string(), StagedContentSource::File(&old), BlobSyncTiming::Now)?;
        }
        Ok(source.rename(old_name, parent, name, ExistingTargetPolicy::Replace)?)
    }

    pub(crate) fn open_parent(&self, path: &RelPath) -> Result<FilePlace, StepApplyError> {
        let (parent, name) = path.split().ok_or(StepApplyError::ForeignChange)?;
        Ok((self.root.open_directory(&parent)?, name))
    }

    pub(crate) fn open_staged_parent(&self, staged: &StagedFileRecord) -> Result<FilePlace, StepApplyError> {
        let (_, name) = staged.name.0.split().ok_or(StepApplyError::ForeignChange)?;
        Ok((self.root.open_directory(&staged.directory.0)?, name))
    }

    /// If the parent directory was moved during a rename, the closure `back` undoes the rename.
    fn verify_or_undo_rename(
        &self,
        path: &RelPath,
        parent: &DirectoryHandle,
        checked: Result<(), StepApplyError>,
        back: impl FnOnce() -> Result<(), DiskError>,
    ) -> Result<(), StepApplyError> {
        let error = match checked.and_then(|()| self.open_parent(path)) {
            Ok((again, _)) if again.id() == parent.id() => return Ok(()),
            Ok(_) => StepApplyError::ForeignChange,
            Err(error) => error,
        };
        back()?;
        Err(error)
    }
}

/// Staging a file needs the lock of its directory, so no live process has staged files in a directory that is being
/// removed.
fn remove_leftover_staged_files(directory: &DirectoryHandle) -> Result<(), DiskError> {
    let names = directory.list()?;
    let is_staged = |name: &FileName| name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes());
    if names.iter().all(|entry| is_staged(&entry.name) && entry.file_type == FileType::RegularFile) {
        for entry in &names {
            directory.remove_file(&entry.name)?;
        }
    }
    Ok(())
}

pub(crate) fn is_same_file(
    parent: &DirectoryHandle,
    name: &FileName,
    id: StoredInodeId,
) -> Result<bool, StepApplyError> {
    Ok(parent.stat(name)?.is_some_and(|stat| StoredInodeId::from_stat(&stat) == id))
}

fn ensure_same_file(parent: &DirectoryHandle, name: &FileName, id: StoredInodeId) -> Result<(), StepApplyError> {
    if is_same_file(parent, name, id)? { Ok(()) } else { Err(StepApplyError::ForeignChange) }
}

pub(crate) fn ensure_is_replaced_file(
    source: &DirectoryHandle,
    name: &FileName,
    replaced: &ReplacedFileRecord,
) -> Result<(), StepApplyError> {
    let is_unchanged = source.stat(name)?.is_some_and(|stat| {
        StoredInodeId::from_stat(&stat) == replaced.id
            && stat.size == replaced.size
            && to_stored_ns(stat.modified_ns) == replaced.modified_ns
    });
    if is_unchanged { Ok(()) } else { Err(StepApplyError::ForeignChange) }
}

pub(crate) fn trash_name(id: &str) -> Result<FileName, StepApplyError> {
    FileName::new(id.as_bytes()).map_err(|_| StepApplyError::ForeignChange)
}

impl FileApplyStepExecutor<'_> {
    /// A rollback undoes the failed step, which may be half done, then the applied steps in reverse order. A rollback
    /// skips a path that another program has changed meanwhile.
    pub(crate) fn roll_back(&self, done: &[FileApplyStep], failed: Option<&FileApplyStep>) -> Result<(), DiskError> {
        let half_done = failed.filter(|step| step.may_be_half_done());
        half_done.into_iter().chain(done.iter().rev()).try_for_each(|step| ignore_foreign_change(self.undo_step(step)))
    }

    /// A staged file that cannot be deleted stays hidden and is deleted later.
    pub(crate) fn remove_staged(&self, steps: &[FileApplyStep]) {
        for step in steps {
            let FileApplyStep::Put(FileWriteStep { staged, .. }) = step else { continue };
            let Ok((directory, name)) = self.open_staged_parent(staged) else { continue };
            // After an exchange the temporary name belongs to the replaced file.
            if matches!(is_same_file(&directory, &name, staged.id), Ok(true)) {
                directory.remove_file(&name).unwrap_or_default();
            }
        }
    }

    fn undo_step(&self, step: &FileApplyStep) -> Result<(), StepApplyError> {
        match step {
            FileApplyStep::Put(put) => {
                let (parent, name) = self.open_parent(&put.path.0)?;
                if is_same_file(&parent, &name, put.staged.id)? { self.undo_put(&parent, &name, put) } else { Ok(()) }
            }
            FileApplyStep::MakeDirectory { path, .. } => {
                let (parent, name) = self.open_parent(&path.0)?;
                match parent.remove_directory(&name) {
                    // Another program uses the directory or has removed it.
                    Err(error) if matches!(error.kind, DiskErrorKind::NotEmpty | DiskErrorKind::NotFound) => Ok(()),
                    removed => Ok(removed?),
                }
            }
            FileApplyStep::MakeLink { path, target } => {
                let (parent, name) = self.open_parent(&path.0)?;
                let is_ours = parent.stat(&name)?.is_some_and(|stat| stat.file_type == FileType::Symlink)
                    && parent.read_link(&name)? == *target;
                if is_ours { Ok(parent.remove_file(&name)?) } else { Ok(()) }
            }
            FileApplyStep::Move { .. } | FileApplyStep::Remove { .. } | FileApplyStep::Restore { .. } => {
                let Some((old, new, id)) = self.open_rename(step)? else { return Ok(()) };
                if !is_same_file(&new.0, &new.1, id)? {
                    return Ok(());
                }
                if let FileApplyStep::Move { over: Some(replaced), .. } = step {
                    return self.undo_move_over(&new, &old, replaced);
                }
                Ok(new.0.rename(&new.1, &old.0, &old.1, ExistingTargetPolicy::Refuse)?)
            }
            FileApplyStep::RemoveDirectory { path, mode, .. } => {
                let (parent, name) = self.open_parent(&path.0)?;
                parent.create_directory(&name, *mode)?;
                Ok(parent.set_mode(&name, *mode)?)
            }
        }
    }

    fn undo_put(&self, parent: &DirectoryHandle, name: &FileName, put: &FileWriteStep) -> Result<(), StepApplyError> {
        let (source, temporary) = self.open_staged_parent(&put.staged)?;
        let Some(replaced) = &put.over else {
            return Ok(parent.rename(name, &source, &temporary, ExistingTargetPolicy::Refuse)?);
        };
        if is_same_file(&source, &temporary, replaced.id)? {
            return Ok(source.rename(&temporary, parent, name, ExistingTargetPolicy::Exchange)?);
        }
        // The replaced file was already released, so its content is restored in a new file.
        let ours = parent.open_file(name)?;
        let old = self.restage_replaced(parent, replaced, FileAttributeSource::CopyFrom(&ours))?;
        match parent.rename(old.name(), parent, name, ExistingTargetPolicy::Exchange) {
            Ok(()) => Ok(parent.rename(old.name(), &source, &temporary, ExistingTargetPolicy::Refuse)?),
            Err(error) if error.kind == DiskErrorKind::Unsupported => {
                parent.rename(name, &source, &temporary, ExistingTargetPolicy::Refuse)?;
                Ok(parent.rename(old.name(), parent, name, ExistingTargetPolicy::Refuse)?)
            }
            Err(error) => {
                old.discard(parent).unwrap_or_default();
                Err(error.into())
            }
        }
    }

    fn undo_move_over(
        &self,
        (parent, name): &FilePlace,
        (back, old_name): &FilePlace,
        replaced: &ReplacedFileRecord,
    ) -> Result<(), StepApplyError> {
        if is_same_file(back, old_name, replaced.id)? {
            return Ok(back.rename(old_name, parent, name, ExistingTargetPolicy::Exchange)?);
        }
        let old = self.restage_replaced(parent, replaced, FileAttributeSource::New { mode: replaced.mode })?;
        parent.rename(name, back, old_name, ExistingTargetPolicy::Refuse)?;
        Ok(parent.rename(old.name(), parent, name, ExistingTargetPolicy::Refuse)?)
    }

    fn restage_replaced(
        &self,
        parent: &DirectoryHandle,
        replaced: &ReplacedFileRecord,
        attributes: FileAttributeSource<'_>,
    ) -> Result<StagedFile, StepApplyError> {
        let lost = DiskError { kind: DiskErrorKind::Io, step: "retained version", errno: None };
        match replaced.retained_in {
            RetainedVersionLocation::File => {
                let old = self.state.open_blob(&replaced.version.to_string())?.ok_or(StepApplyError::Disk(lost))?;
                Ok(parent.stage_file(StagedContentSource::File(&old), attributes)?)
            }
            RetainedVersionLocation::Database => {
                let bytes = (self.read_retained)(&replaced.version).ok_or(StepApplyError::Disk(lost))?;
                Ok(parent.stage_file(StagedContentSource::Bytes(&bytes), attributes)?)
            }
        }
    }

    /// A path that goes through a symlink counts as not existing.
    pub(crate) fn id_at(&self, path: &RelPath) -> Result<Option<StoredInodeId>, DiskError> {
        let stat = self.root.stat(path).map_err(StepApplyError::from);
        ignore_foreign_change(stat.map(|stat| stat.map(|stat| StoredInodeId::from_stat(&stat))))
    }
}

/// If a step finds another program's change, the default value is returned, as if the step had nothing to do.
pub(crate) fn ignore_foreign_change<T: Default>(result: Result<T, StepApplyError>) -> Result<T, DiskError> {
    match result {
        Ok(value) => Ok(value),
        Err(StepApplyError::ForeignChange) => Ok(T::default()),
        Err(StepApplyError::Disk(error)) => Err(error),
    }
}
