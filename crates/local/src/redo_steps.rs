//! Determines which steps of a pending entry were applied before its process died, and applies the other steps. Redoing
//! steps can be killed at any point and run again.
//!
//! Without a reboot, the names on disk are reliable: a staged file keeps its temporary name until its step is done. A
//! power cut can lose renames and truncate small files, so after a reboot the content of a file decides.

use stead_disk::{
    DirectoryHandle, DiskError, DiskErrorKind, ExistingTargetPolicy, FileAttributeSource, StagedContentSource,
};
use stead_journal::Digest;
use stead_path::{FileName, RelPath};

use crate::{
    file_steps::{
        FileApplyStep, FileWriteStep, ReplacedFileRecord, RetainedVersionLocation, StagedFileRecord, StoredInodeId,
        to_stored_ns,
    },
    recovery::RecoveryLaterStepEvidence,
    step_executor::{
        FileApplyStepExecutor, FilePlace, StepApplyError, ensure_is_replaced_file, ignore_foreign_change, is_same_file,
        trash_name,
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootComparison {
    Same,
    /// The machine was restarted, perhaps by a power cut.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileApplyStepStatus {
    Done,
    /// The disk shows the file neither as before the step nor as after the step, because a later change replaced it.
    Superseded,
    NotDone,
}

impl FileApplyStepExecutor<'_> {
    /// The list `evidence` says for each step of a pending entry what later entries prove about the step. Redoing the
    /// steps returns the number of applied steps, or the position of the step that another program's change blocks; the
    /// steps before it are done.
    pub(crate) fn redo_steps(
        &self,
        steps: &[FileApplyStep],
        boot: BootComparison,
        evidence: &[RecoveryLaterStepEvidence<'_>],
    ) -> Result<Result<u64, usize>, DiskError> {
        let progress = steps.iter().map(|step| self.step_progress(step, boot)).collect::<Result<Vec<_>, _>>()?;
        let mut redone = 0;
        for (at, (step, evidence)) in steps.iter().zip(evidence).enumerate() {
            // Steps are applied in order, so a done step proves that the earlier steps are done. After a power cut a
            // done step proves nothing about earlier steps.
            let is_passed = boot == BootComparison::Same
                && !step.may_be_half_done()
                && progress[at..].iter().zip(&steps[at..]).any(proves_earlier_steps_done);
            // An earlier step that this loop applied may have changed the progress of the current step.
            let now = if redone == 0 { progress[at] } else { self.step_progress(step, boot)? };
            if boot == BootComparison::Other {
                redone += ignore_foreign_change(self.remove_old_name(step, evidence))?;
            }
            if now != FileApplyStepStatus::NotDone || is_passed || !may_be_lost_in_power_cut(step, evidence) {
                continue;
            }
            match (self.redo_step(step, boot), evidence) {
                (Ok(()), _) => redone += 1,
                (Err(StepApplyError::ForeignChange), RecoveryLaterStepEvidence::Superseded) => {}
                (Err(StepApplyError::ForeignChange), _) => return Ok(Err(at)),
                (Err(StepApplyError::Disk(error)), _) => return Err(error),
            }
        }
        for step in steps {
            redone += ignore_foreign_change(self.rewrite_torn_file(step))?;
            ignore_foreign_change(self.release_replaced(step))?;
        }
        Ok(Ok(redone))
    }

    /// A power cut may have brought back the old name of a moved file. If a moved file has both names, the old name is
    /// deleted. If a later step replaced the moved file, the content at the old name is retained and the old name is
    /// deleted.
    fn remove_old_name(
        &self,
        step: &FileApplyStep,
        evidence: &RecoveryLaterStepEvidence<'_>,
    ) -> Result<u64, StepApplyError> {
        let Some(((old, old_name), (new, new_name), id)) = self.open_rename(step)? else { return Ok(0) };
        if matches!(evidence, RecoveryLaterStepEvidence::OldPathReused) || !is_same_file(&old, &old_name, id)? {
            return Ok(0);
        }
        if is_same_file(&new, &new_name, id)? {
            old.remove_file(&old_name)?;
        } else if let RecoveryLaterStepEvidence::Replaced(replaced) = evidence {
            ensure_is_replaced_file(&old, &old_name, replaced)?;
            self.release_replaced_file(&old, &old_name, replaced)?;
        } else {
            return Ok(0);
        }
        Ok(1)
    }

    fn step_progress(&self, step: &FileApplyStep, boot: BootComparison) -> Result<FileApplyStepStatus, DiskError> {
        Ok(match step {
            FileApplyStep::Put(put) => self.put_progress(put, boot)?,
            FileApplyStep::MakeDirectory { path, .. } | FileApplyStep::MakeLink { path, .. } => {
                match self.id_at(&path.0)? {
                    Some(_) => FileApplyStepStatus::Done,
                    None => FileApplyStepStatus::NotDone,
                }
            }
            FileApplyStep::Move { from, to, id, .. } => rename_progress(self.id_at(&from.0)?, self.id_at(&to.0)?, *id),
            FileApplyStep::Remove { path, id, trash } => {
                rename_progress(self.id_at(&path.0)?, self.id_in_trash(trash)?, *id)
            }
            FileApplyStep::Restore { path, id, trash } => {
                rename_progress(self.id_in_trash(trash)?, self.id_at(&path.0)?, *id)
            }
            FileApplyStep::RemoveDirectory { path, id, .. } => match self.id_at(&path.0)? {
                None => FileApplyStepStatus::Done,
                Some(found) if found == *id => FileApplyStepStatus::NotDone,
                Some(_) => FileApplyStepStatus::Superseded,
            },
        })
    }

    /// The content of a file does not prove that a step was done, because the file may have had the content before.
    pub(crate) fn has_survived(&self, step: &FileApplyStep) -> Result<bool, DiskError> {
        let FileApplyStep::Put(FileWriteStep { path, staged, over, .. }) = step else {
            return Ok(self.step_progress(step, BootComparison::Other)? == FileApplyStepStatus::Done);
        };
        let temporary = self.id_at(&staged_path(staged)?)?;
        let is_exchanged = temporary.is_some() && temporary == over.as_ref().map(|replaced| replaced.id);
        Ok(is_exchanged || (temporary != Some(staged.id) && self.id_at(&path.0)? == Some(staged.id)))
    }

    fn put_progress(&self, put: &FileWriteStep, boot: BootComparison) -> Result<FileApplyStepStatus, DiskError> {
        let FileWriteStep { path, staged, over, version, .. } = put;
        let over = over.as_ref();
        let temporary = self.id_at(&staged_path(staged)?)?;
        if temporary == Some(staged.id) {
            return Ok(FileApplyStepStatus::NotDone);
        }
        let is_exchanged = temporary.is_some() && temporary == over.map(|replaced| replaced.id);
        if is_exchanged || self.id_at(&path.0)? == Some(staged.id) {
            return Ok(FileApplyStepStatus::Done);
        }
        if boot == BootComparison::Same {
            return Ok(FileApplyStepStatus::Superseded);
        }
        let current = self.content_at(&path.0)?;
        let before = over.map(|replaced| replaced.version);
        Ok(match current {
            FoundVersion::Version(found) if found == *version => FileApplyStepStatus::Done,
            FoundVersion::Version(found) if Some(found) == before => FileApplyStepStatus::NotDone,
            // The power cut may have lost the name of the old file; the acknowledged new file is put at the path.
            FoundVersion::Absent => FileApplyStepStatus::NotDone,
            FoundVersion::Version(_) | FoundVersion::Other => FileApplyStepStatus::Superseded,
        })
    }

    fn redo_step(&self, step: &FileApplyStep, boot: BootComparison) -> Result<(), StepApplyError> {
        if let FileApplyStep::Put(put) = step { self.redo_put(put, boot) } else { self.apply(step) }
    }

    /// Recovery never replaces content that the plan did not expect at the path.
    fn redo_put(&self, put: &FileWriteStep, boot: BootComparison) -> Result<(), StepApplyError> {
        let (parent, name) = self.open_parent(&put.path.0)?;
        let over = match (self.content_at(&put.path.0)?, &put.over) {
            (FoundVersion::Absent, None) => None,
            (FoundVersion::Absent, Some(_)) if boot == BootComparison::Other => None,
            // A rollback may have restored the replaced content in a new inode, so the content is compared.
            (FoundVersion::Version(found), Some(replaced)) if found == replaced.version => {
                let stat = parent.stat(&name)?.ok_or(StepApplyError::ForeignChange)?;
                let modified_ns = to_stored_ns(stat.modified_ns);
                Some(ReplacedFileRecord {
                    id: StoredInodeId::from_stat(&stat),
                    size: stat.size,
                    modified_ns,
                    ..replaced.clone()
                })
            }
            (FoundVersion::Version(found), _) if found == put.version => {
                let (source, temporary) = self.open_staged_parent(&put.staged)?;
                return match source.remove_file(&temporary) {
                    Err(error) if error.kind != DiskErrorKind::NotFound => Err(error.into()),
                    Ok(()) | Err(_) => Ok(()),
                };
            }
            (FoundVersion::Absent | FoundVersion::Version(_) | FoundVersion::Other, _) => {
                return Err(StepApplyError::ForeignChange);
            }
        };
        let (source, temporary) = match self.find_intact_staged(put)? {
            Some(found) => found,
            None => self.restage(put, over.as_ref(), &parent, &name)?,
        };
        self.place_staged_file(&put.path.0, &source, &temporary, over.as_ref())?;
        match over {
            Some(replaced) => self.release_replaced_file(&source, &temporary, &replaced),
            None => Ok(()),
        }
    }

    /// A staged file whose content is not the planned version is deleted.
    fn find_intact_staged(&self, put: &FileWriteStep) -> Result<Option<FilePlace>, StepApplyError> {
        let (source, temporary) = self.open_staged_parent(&put.staged)?;
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
        put: &FileWriteStep,
        over: Option<&ReplacedFileRecord>,
        parent: &DirectoryHandle,
        name: &FileName,
    ) -> Result<FilePlace, StepApplyError> {
        let bytes = (self.read_retained)(&put.version).ok_or(StepApplyError::ForeignChange)?;
        let old = over.map(|_| parent.open_file(name)).transpose()?;
        let attributes =
            old.as_ref().map_or(FileAttributeSource::New { mode: put.mode }, FileAttributeSource::CopyFrom);
        let staged = parent.stage_file(StagedContentSource::Bytes(&bytes), attributes)?;
        Ok((parent.try_clone()?, staged.name().clone()))
    }

    /// A power cut or disk error can lose a file's content after its rename; recovery writes the content again.
    /// Recovery does not rewrite a file that another program has modified after the rename.
    fn rewrite_torn_file(&self, step: &FileApplyStep) -> Result<u64, StepApplyError> {
        let FileApplyStep::Put(FileWriteStep { path, staged, version, .. }) = step else { return Ok(0) };
        let (parent, name) = self.open_parent(&path.0)?;
        if !is_same_file(&parent, &name, staged.id)? {
            return Ok(0);
        }
        let torn = parent.open_file(&name)?;
        let edited = to_stored_ns(torn.stat().modified_ns) > staged.modified_ns;
        if edited || torn.hash()?.0 == *version.as_bytes() {
            return Ok(0);
        }
        let bytes = (self.read_retained)(version).ok_or(StepApplyError::ForeignChange)?;
        let whole = parent.stage_file(StagedContentSource::Bytes(&bytes), FileAttributeSource::CopyFrom(&torn))?;
        parent.rename(whole.name(), &parent, &name, ExistingTargetPolicy::Replace)?;
        Ok(1)
    }

    /// A staged file that cannot be retained stays hidden under its temporary name.
    pub(crate) fn retain_staged(&self, steps: &[FileApplyStep]) {
        for step in steps {
            let FileApplyStep::Put(FileWriteStep { staged, version, after: RetainedVersionLocation::File, .. }) = step
            else {
                continue;
            };
            let Ok((source, temporary)) = self.open_staged_parent(staged) else { continue };
            if matches!(is_same_file(&source, &temporary, staged.id), Ok(true)) {
                self.state.adopt_blob(&version.to_string(), &source, &temporary).unwrap_or_default();
            }
        }
    }

    fn content_at(&self, path: &RelPath) -> Result<FoundVersion, DiskError> {
        let read = self.root.open_file(path).and_then(|file| file.hash());
        match read {
            Ok((hash, _)) => Ok(FoundVersion::Version(Digest(hash))),
            Err(error) if matches!(error.kind, DiskErrorKind::NotFound | DiskErrorKind::NotDirectory) => {
                Ok(FoundVersion::Absent)
            }
            Err(error) => match StepApplyError::from(error) {
                StepApplyError::ForeignChange => Ok(FoundVersion::Other),
                StepApplyError::Disk(error) => Err(error),
            },
        }
    }

    fn id_in_trash(&self, trash: &str) -> Result<Option<StoredInodeId>, DiskError> {
        let Ok(name) = trash_name(trash) else { return Ok(None) };
        Ok(self.trash.stat(&name)?.map(|stat| StoredInodeId::from_stat(&stat)))
    }
}

fn proves_earlier_steps_done((found, step): (&FileApplyStepStatus, &FileApplyStep)) -> bool {
    step.may_be_half_done() && *found != FileApplyStepStatus::NotDone
}

/// A later change of its path proves that a step was done, unless the step is a rename. A power cut can lose the rename
/// of a directory and keep the later move of a file out of the directory.
fn may_be_lost_in_power_cut(step: &FileApplyStep, evidence: &RecoveryLaterStepEvidence<'_>) -> bool {
    match evidence {
        RecoveryLaterStepEvidence::Unknown => true,
        RecoveryLaterStepEvidence::Superseded => {
            matches!(step, FileApplyStep::Move { .. } | FileApplyStep::Remove { .. } | FileApplyStep::Restore { .. })
        }
        RecoveryLaterStepEvidence::OldPathReused | RecoveryLaterStepEvidence::Replaced(_) => false,
    }
}

fn rename_progress(old: Option<StoredInodeId>, new: Option<StoredInodeId>, id: StoredInodeId) -> FileApplyStepStatus {
    if new == Some(id) {
        FileApplyStepStatus::Done
    } else if old == Some(id) {
        FileApplyStepStatus::NotDone
    } else {
        FileApplyStepStatus::Superseded
    }
}

fn staged_path(staged: &StagedFileRecord) -> Result<RelPath, DiskError> {
    let too_long = DiskError { kind: DiskErrorKind::NameTooLong, step: "temporary name", errno: None };
    staged.directory.0.append(&staged.name.0).map_err(|_| too_long)
}

enum FoundVersion {
    Absent,
    Version(Digest),
    Other,
}
