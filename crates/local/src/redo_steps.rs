//! Determines which steps of an entry were applied before its process died, and applies the rest. It can be killed at
//! any point and run again.
//!
//! Without a reboot the names on disk are reliable: if a staged file still has its temporary name, its step was not
//! done; otherwise it was done, even if its path changed afterwards. A power cut can lose renames and truncate small
//! files, so after a reboot the content of the files decides.

use stead_disk::{AttributeSource, ContentSource, DirectoryHandle, DiskError, DiskErrorKind, ExistingTarget};
use stead_journal::Digest;
use stead_path::{FileName, RelPath};

use crate::{
    file_steps::{FileStep, ReplacedFile, RetainedIn, StagedFileRef, StoredInodeId, to_stored_ns},
    recovery::LaterEvidence,
    step_executor::{
        ApplyError, StepExecutor, ensure_is_replaced_file, ignore_foreign_change, is_same_file, trash_name,
    },
};

/// Whether the machine was restarted after an entry was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootComparison {
    /// It was not restarted.
    Same,
    /// It was restarted, perhaps by a power cut.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepProgress {
    /// The step was done.
    Done,
    /// The step was done, and its path has changed since.
    Superseded,
    NotDone,
}

/// A step that another program's change blocks. The steps before it are done.
pub(crate) struct BlockedStep {
    pub(crate) step_index: usize,
}

impl StepExecutor<'_> {
    /// Applies the steps that are not done. `evidence` is what later entries prove about each step. Returns how many
    /// steps were applied, or the blocked step.
    pub(crate) fn redo_steps(
        &self,
        steps: &[FileStep],
        boot: BootComparison,
        evidence: &[LaterEvidence<'_>],
    ) -> Result<Result<u64, BlockedStep>, DiskError> {
        let progress = steps.iter().map(|step| self.step_progress(step, boot)).collect::<Result<Vec<_>, _>>()?;
        let mut redone = 0;
        for (at, (step, evidence)) in steps.iter().zip(evidence).enumerate() {
            // Steps are applied in order, so a done step proves that the earlier ones are done. After a power cut it
            // does not.
            let is_passed = boot == BootComparison::Same
                && !step.may_be_half_done()
                && progress[at..].iter().zip(&steps[at..]).any(proves_earlier_steps_done);
            // A step that was applied just now may have changed the progress of this one.
            let now = if redone == 0 { progress[at] } else { self.step_progress(step, boot)? };
            if boot == BootComparison::Other {
                redone += ignore_foreign_change(self.remove_old_name(step, evidence))?;
            }
            if now != StepProgress::NotDone || is_passed || !may_be_lost_in_power_cut(step, evidence) {
                continue;
            }
            match (self.redo_step(step, boot), evidence) {
                (Ok(()), _) => redone += 1,
                (Err(ApplyError::ForeignChange), LaterEvidence::Superseded) => {}
                (Err(ApplyError::ForeignChange), _) => return Ok(Err(BlockedStep { step_index: at })),
                (Err(ApplyError::Disk(error)), _) => return Err(error),
            }
        }
        for step in steps {
            redone += ignore_foreign_change(self.rewrite_torn_file(step))?;
            ignore_foreign_change(self.release_replaced(step))?;
        }
        Ok(Ok(redone))
    }

    /// Removes the old name of a moved file, which a power cut may have brought back. The file then has both names, or
    /// its new name already belongs to a different file. In the second case it may be the only copy of content that
    /// must be retained. A file that was written to since is left alone. Returns the number of removed names.
    fn remove_old_name(&self, step: &FileStep, evidence: &LaterEvidence<'_>) -> Result<u64, ApplyError> {
        let (old, new, id) = match step {
            FileStep::Move { from, to, id, .. } => (self.open_parent(&from.0)?, self.open_parent(&to.0)?, *id),
            FileStep::Remove { path, id, trash } => (self.open_parent(&path.0)?, self.open_in_trash(trash)?, *id),
            FileStep::Restore { path, id, trash } => (self.open_in_trash(trash)?, self.open_parent(&path.0)?, *id),
            FileStep::Put { .. }
            | FileStep::MakeDirectory { .. }
            | FileStep::MakeLink { .. }
            | FileStep::RemoveDirectory { .. } => return Ok(0),
        };
        let ((old, old_name), (new, new_name)) = (old, new);
        if matches!(evidence, LaterEvidence::OldPathReused) || !is_same_file(&old, &old_name, id)? {
            return Ok(0);
        }
        if is_same_file(&new, &new_name, id)? {
            old.remove_file(&old_name)?;
        } else if let LaterEvidence::Replaced(replaced) = evidence {
            ensure_is_replaced_file(&old, &old_name, replaced)?;
            self.release_replaced_file(&old, &old_name, replaced)?;
        } else {
            return Ok(0);
        }
        Ok(1)
    }

    fn open_in_trash(&self, trash: &str) -> Result<(DirectoryHandle, FileName), ApplyError> {
        Ok((self.trash.try_clone()?, trash_name(trash)?))
    }

    fn step_progress(&self, step: &FileStep, boot: BootComparison) -> Result<StepProgress, DiskError> {
        Ok(match step {
            FileStep::Put { path, staged, over, version, .. } => {
                self.put_progress(&path.0, staged, over.as_ref(), version, boot)?
            }
            FileStep::MakeDirectory { path, .. } | FileStep::MakeLink { path, .. } => match self.id_at(&path.0)? {
                Some(_) => StepProgress::Done,
                None => StepProgress::NotDone,
            },
            FileStep::Move { from, to, id, .. } => rename_progress(self.id_at(&from.0)?, self.id_at(&to.0)?, *id),
            FileStep::Remove { path, id, trash } => {
                rename_progress(self.id_at(&path.0)?, self.id_in_trash(trash)?, *id)
            }
            FileStep::Restore { path, id, trash } => {
                rename_progress(self.id_in_trash(trash)?, self.id_at(&path.0)?, *id)
            }
            FileStep::RemoveDirectory { path, id, .. } => match self.id_at(&path.0)? {
                None => StepProgress::Done,
                Some(found) if found == *id => StepProgress::NotDone,
                Some(_) => StepProgress::Superseded,
            },
        })
    }

    /// Whether a step was done and survived a power cut. Equal content does not prove it, because the file may have had
    /// that content before.
    pub(crate) fn has_survived(&self, step: &FileStep) -> Result<bool, DiskError> {
        let FileStep::Put { path, staged, over, .. } = step else {
            return Ok(self.step_progress(step, BootComparison::Other)? == StepProgress::Done);
        };
        let temporary = self.id_at(&staged_path(staged)?)?;
        let is_exchanged = temporary.is_some() && temporary == over.as_ref().map(|replaced| replaced.id);
        Ok(is_exchanged || (temporary != Some(staged.id) && self.id_at(&path.0)? == Some(staged.id)))
    }

    fn put_progress(
        &self,
        path: &RelPath,
        staged: &StagedFileRef,
        over: Option<&ReplacedFile>,
        version: &Digest,
        boot: BootComparison,
    ) -> Result<StepProgress, DiskError> {
        let temporary = self.id_at(&staged_path(staged)?)?;
        if temporary == Some(staged.id) {
            return Ok(StepProgress::NotDone);
        }
        let is_exchanged = temporary.is_some() && temporary == over.map(|replaced| replaced.id);
        if is_exchanged || self.id_at(path)? == Some(staged.id) {
            return Ok(StepProgress::Done);
        }
        if boot == BootComparison::Same {
            return Ok(StepProgress::Superseded);
        }
        let current = self.content_at(path)?;
        let before = over.map(|replaced| replaced.version);
        Ok(match current {
            PathContent::Version(found) if found == *version => StepProgress::Done,
            PathContent::Version(found) if Some(found) == before => StepProgress::NotDone,
            // The power cut may have lost the name of the old file. The new file was acknowledged, so it is put there.
            PathContent::Absent => StepProgress::NotDone,
            PathContent::Version(_) | PathContent::Other => StepProgress::Superseded,
        })
    }

    fn redo_step(&self, step: &FileStep, boot: BootComparison) -> Result<(), ApplyError> {
        let FileStep::Put { path, staged, over, version, mode, .. } = step else { return self.apply(step) };
        let put = PendingPut { path: &path.0, staged, replaced: over.as_ref(), version, mode: *mode };
        self.redo_put(&put, boot)
    }

    /// Puts the new content at its path, from the staged file or from the retained version. Replaces only the expected
    /// content.
    fn redo_put(&self, put: &PendingPut<'_>, boot: BootComparison) -> Result<(), ApplyError> {
        let (parent, name) = self.open_parent(put.path)?;
        let over = match (self.content_at(put.path)?, put.replaced) {
            (PathContent::Absent, None) => None,
            (PathContent::Absent, Some(_)) if boot == BootComparison::Other => None,
            // A rollback may have restored the replaced content in a new inode, so the content is compared.
            (PathContent::Version(found), Some(replaced)) if found == replaced.version => {
                let stat = parent.stat(&name)?.ok_or(ApplyError::ForeignChange)?;
                let modified_ns = to_stored_ns(stat.modified_ns);
                Some(ReplacedFile {
                    id: StoredInodeId::from_stat(&stat),
                    size: stat.size,
                    modified_ns,
                    ..replaced.clone()
                })
            }
            (PathContent::Version(found), _) if found == *put.version => {
                let (source, temporary) = self.open_staged_parent(put.staged)?;
                return match source.remove_file(&temporary) {
                    Err(error) if error.kind != DiskErrorKind::NotFound => Err(error.into()),
                    Ok(()) | Err(_) => Ok(()),
                };
            }
            (PathContent::Absent | PathContent::Version(_) | PathContent::Other, _) => {
                return Err(ApplyError::ForeignChange);
            }
        };
        let (source, temporary) = match self.find_intact_staged(put)? {
            Some(found) => found,
            None => self.restage(put, over.as_ref(), &parent, &name)?,
        };
        self.place_staged_file(put.path, &source, &temporary, over.as_ref())?;
        match over {
            Some(replaced) => self.release_replaced_file(&source, &temporary, &replaced),
            None => Ok(()),
        }
    }

    /// Finds the staged file, if its content is complete. Deletes an incomplete one.
    fn find_intact_staged(&self, put: &PendingPut<'_>) -> Result<Option<(DirectoryHandle, FileName)>, ApplyError> {
        let (source, temporary) = self.open_staged_parent(put.staged)?;
        if !is_same_file(&source, &temporary, put.staged.id)? {
            return Ok(None);
        }
        if source.open_file(&temporary)?.hash()?.0 == *put.version.as_bytes() {
            return Ok(Some((source, temporary)));
        }
        source.remove_file(&temporary)?;
        Ok(None)
    }

    fn restage(
        &self,
        put: &PendingPut<'_>,
        over: Option<&ReplacedFile>,
        parent: &DirectoryHandle,
        name: &FileName,
    ) -> Result<(DirectoryHandle, FileName), ApplyError> {
        let bytes = (self.read_retained)(put.version).ok_or(ApplyError::ForeignChange)?;
        let old = over.map(|_| parent.open_file(name)).transpose()?;
        let attributes = old.as_ref().map_or(AttributeSource::New { mode: put.mode }, AttributeSource::CopyFrom);
        let staged = parent.stage_file(ContentSource::Bytes(&bytes), attributes)?;
        Ok((parent.try_clone()?, staged.name().clone()))
    }

    /// Rewrites a file whose content was lost by a power cut or a disk error after it was renamed into place, unless
    /// another program has written to it since. Returns the number of rewritten files.
    fn rewrite_torn_file(&self, step: &FileStep) -> Result<u64, ApplyError> {
        let FileStep::Put { path, staged, version, .. } = step else { return Ok(0) };
        let (parent, name) = self.open_parent(&path.0)?;
        if !is_same_file(&parent, &name, staged.id)? {
            return Ok(0);
        }
        let torn = parent.open_file(&name)?;
        let edited = to_stored_ns(torn.stat().modified_ns) > staged.modified_ns;
        if edited || torn.hash()?.0 == *version.as_bytes() {
            return Ok(0);
        }
        let bytes = (self.read_retained)(version).ok_or(ApplyError::ForeignChange)?;
        let whole = parent.stage_file(ContentSource::Bytes(&bytes), AttributeSource::CopyFrom(&torn))?;
        parent.rename(whole.name(), &parent, &name, ExistingTarget::Replace)?;
        Ok(1)
    }

    /// Retains the content of staged files that cannot be put at their paths. A staged file that cannot be retained
    /// stays hidden under its temporary name.
    pub(crate) fn retain_staged(&self, steps: &[FileStep]) {
        for step in steps {
            let FileStep::Put { staged, version, after: RetainedIn::File, .. } = step else { continue };
            let Ok((source, temporary)) = self.open_staged_parent(staged) else { continue };
            if matches!(is_same_file(&source, &temporary, staged.id), Ok(true)) {
                self.state.adopt_blob(&version.to_string(), &source, &temporary).unwrap_or_default();
            }
        }
    }

    fn content_at(&self, path: &RelPath) -> Result<PathContent, DiskError> {
        let read = self.root.open_file(path).and_then(|file| file.hash());
        match read {
            Ok((hash, _)) => Ok(PathContent::Version(Digest(hash))),
            Err(error) if matches!(error.kind, DiskErrorKind::NotFound | DiskErrorKind::NotDirectory) => {
                Ok(PathContent::Absent)
            }
            Err(error) => match ApplyError::from(error) {
                ApplyError::ForeignChange => Ok(PathContent::Other),
                ApplyError::Disk(error) => Err(error),
            },
        }
    }

    fn id_in_trash(&self, trash: &str) -> Result<Option<StoredInodeId>, DiskError> {
        let Ok(name) = trash_name(trash) else { return Ok(None) };
        Ok(self.trash.stat(&name)?.map(|stat| StoredInodeId::from_stat(&stat)))
    }
}

fn proves_earlier_steps_done((found, step): (&StepProgress, &FileStep)) -> bool {
    step.may_be_half_done() && *found != StepProgress::NotDone
}

/// Whether a power cut may have lost a step that is not done. A later change of its path normally proves that the step
/// was done before. It does not prove the rename of a directory, because a file may have left the directory before it.
fn may_be_lost_in_power_cut(step: &FileStep, evidence: &LaterEvidence<'_>) -> bool {
    match evidence {
        LaterEvidence::Unknown => true,
        LaterEvidence::Superseded => {
            matches!(step, FileStep::Move { .. } | FileStep::Remove { .. } | FileStep::Restore { .. })
        }
        LaterEvidence::OldPathReused | LaterEvidence::Replaced(_) => false,
    }
}

fn rename_progress(old: Option<StoredInodeId>, new: Option<StoredInodeId>, id: StoredInodeId) -> StepProgress {
    if new == Some(id) {
        StepProgress::Done
    } else if old == Some(id) {
        StepProgress::NotDone
    } else {
        StepProgress::Superseded
    }
}

fn staged_path(staged: &StagedFileRef) -> Result<RelPath, DiskError> {
    let too_long = DiskError { kind: DiskErrorKind::NameTooLong, step: "temporary name", errno: None };
    staged.directory.0.append(&staged.name.0).map_err(|_| too_long)
}

enum PathContent {
    Absent,
    Version(Digest),
    Other,
}

struct PendingPut<'a> {
    path: &'a RelPath,
    staged: &'a StagedFileRef,
    replaced: Option<&'a ReplacedFile>,
    version: &'a Digest,
    mode: u32,
}
