//! Rolls back the applied steps of a plan after a later step failed. Touches only files that the plan itself put there
//! and leaves everything else alone. Staged files get their temporary names back, so that an incomplete rollback can
//! still be finished forwards.

use stead_disk::{
    AttributeSource, ContentSource, DirectoryHandle, DiskError, DiskErrorKind, ExistingTarget, StagedFile,
};
use stead_path::FileName;

use crate::{
    file_steps::{FileStep, ReplacedFile, RetainedIn, StagedFileRef, StoredInodeId},
    step_executor::{ApplyError, StepExecutor, is_same_file, trash_name},
};

impl StepExecutor<'_> {
    /// Undoes the failed step, which may be half done, then the applied ones in reverse order. Paths that vanished
    /// meanwhile need nothing.
    pub(crate) fn roll_back(&self, done: &[FileStep], failed: Option<&FileStep>) -> Result<(), DiskError> {
        let half = failed.filter(|step| step.may_be_half_done());
        for step in half.into_iter().chain(done.iter().rev()) {
            match self.undo_step(step) {
                Ok(()) | Err(ApplyError::ForeignChange) => {}
                Err(ApplyError::Disk(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes staged files that still have their temporary names. A leftover is hidden and removed later.
    pub(crate) fn remove_staged(&self, steps: &[FileStep]) {
        for step in steps {
            let FileStep::Put { staged, .. } = step else { continue };
            let Ok((directory, name)) = self.open_staged_parent(staged) else { continue };
            // The temporary name may belong to a file that was swapped out.
            if matches!(is_same_file(&directory, &name, staged.id), Ok(true)) {
                match directory.remove_file(&name) {
                    Ok(()) | Err(_) => {}
                }
            }
        }
    }

    fn undo_step(&self, step: &FileStep) -> Result<(), ApplyError> {
        match step {
            FileStep::Put { path, staged, over, .. } => {
                let (parent, name) = self.open_parent(&path.0)?;
                if is_same_file(&parent, &name, staged.id)? {
                    self.undo_put(&parent, &name, staged, over.as_ref())?;
                }
                Ok(())
            }
            FileStep::MakeDirectory { path, .. } => {
                let (parent, name) = self.open_parent(&path.0)?;
                match parent.remove_directory(&name) {
                    // Another program uses the directory, or removed it.
                    Err(error) if matches!(error.kind, DiskErrorKind::NotEmpty | DiskErrorKind::NotFound) => Ok(()),
                    removed => Ok(removed?),
                }
            }
            FileStep::MakeLink { path, target } => {
                let (parent, name) = self.open_parent(&path.0)?;
                let ours = parent.stat(&name)?.is_some_and(|stat| stat.file_type == stead_disk::FileType::Symlink)
                    && parent.read_link(&name)? == *target;
                if ours { Ok(parent.remove_file(&name)?) } else { Ok(()) }
            }
            FileStep::Move { from, to, id, over } => {
                let (parent, name) = self.open_parent(&to.0)?;
                let (back, old_name) = self.open_parent(&from.0)?;
                if is_same_file(&parent, &name, *id)? {
                    self.undo_move((&parent, &name), (&back, &old_name), over.as_ref())?;
                }
                Ok(())
            }
            FileStep::Remove { path, id, trash } => {
                let (parent, name) = self.open_parent(&path.0)?;
                let item = trash_name(trash)?;
                if is_same_file(self.trash, &item, *id)? {
                    self.trash.rename(&item, &parent, &name, ExistingTarget::Refuse)?;
                }
                Ok(())
            }
            FileStep::RemoveDirectory { path, mode, .. } => {
                let (parent, name) = self.open_parent(&path.0)?;
                parent.create_directory(&name, *mode)?;
                Ok(parent.set_mode(&name, *mode)?)
            }
            FileStep::Restore { path, id, trash } => {
                let (parent, name) = self.open_parent(&path.0)?;
                if is_same_file(&parent, &name, *id)? {
                    parent.rename(&name, self.trash, &trash_name(trash)?, ExistingTarget::Refuse)?;
                }
                Ok(())
            }
        }
    }

    fn undo_put(
        &self,
        parent: &DirectoryHandle,
        name: &FileName,
        staged: &StagedFileRef,
        over: Option<&ReplacedFile>,
    ) -> Result<(), ApplyError> {
        let (source, temporary) = self.open_staged_parent(staged)?;
        let Some(replaced) = over else {
            return Ok(parent.rename(name, &source, &temporary, ExistingTarget::Refuse)?);
        };
        if is_same_file(&source, &temporary, replaced.id)? {
            return Ok(source.rename(&temporary, parent, name, ExistingTarget::Exchange)?);
        }
        // The replaced file is gone: its bytes come back in a new file.
        let ours = parent.open_file(name)?;
        let old = self.restage_replaced(parent, replaced, AttributeSource::CopyFrom(&ours))?;
        match parent.rename(old.name(), parent, name, ExistingTarget::Exchange) {
            Ok(()) => Ok(parent.rename(old.name(), &source, &temporary, ExistingTarget::Refuse)?),
            Err(error) if error.kind == DiskErrorKind::Unsupported => {
                parent.rename(name, &source, &temporary, ExistingTarget::Refuse)?;
                Ok(parent.rename(old.name(), parent, name, ExistingTarget::Refuse)?)
            }
            Err(error) => {
                old.discard(parent).unwrap_or_default();
                Err(error.into())
            }
        }
    }

    fn undo_move(
        &self,
        (parent, name): (&DirectoryHandle, &FileName),
        (back, old_name): (&DirectoryHandle, &FileName),
        over: Option<&ReplacedFile>,
    ) -> Result<(), ApplyError> {
        let Some(replaced) = over else {
            return Ok(parent.rename(name, back, old_name, ExistingTarget::Refuse)?);
        };
        if is_same_file(back, old_name, replaced.id)? {
            return Ok(back.rename(old_name, parent, name, ExistingTarget::Exchange)?);
        }
        let old = self.restage_replaced(parent, replaced, AttributeSource::New { mode: replaced.mode })?;
        parent.rename(name, back, old_name, ExistingTarget::Refuse)?;
        Ok(parent.rename(old.name(), parent, name, ExistingTarget::Refuse)?)
    }

    /// Stages the replaced bytes again from the retained version.
    fn restage_replaced(
        &self,
        parent: &DirectoryHandle,
        replaced: &ReplacedFile,
        attributes: AttributeSource<'_>,
    ) -> Result<StagedFile, ApplyError> {
        let lost = DiskError { kind: DiskErrorKind::Io, step: "retained version", errno: None };
        match replaced.retained_in {
            RetainedIn::File => {
                let old = self.state.open_blob(&replaced.version.to_string())?.ok_or(ApplyError::Disk(lost))?;
                Ok(parent.stage_file(ContentSource::File(&old), attributes)?)
            }
            RetainedIn::Database => {
                let bytes = (self.read_retained)(&replaced.version).ok_or(ApplyError::Disk(lost))?;
                Ok(parent.stage_file(ContentSource::Bytes(&bytes), attributes)?)
            }
        }
    }

    /// The file at a path; `None` if it does not exist or a parent is a symlink.
    pub(crate) fn id_at(&self, path: &stead_path::RelPath) -> Result<Option<StoredInodeId>, DiskError> {
        match self.root.stat(path) {
            Ok(stat) => Ok(stat.map(|stat| StoredInodeId::from_stat(&stat))),
            Err(error) => match ApplyError::from(error) {
                ApplyError::ForeignChange => Ok(None),
                ApplyError::Disk(error) => Err(error),
            },
        }
    }
}
