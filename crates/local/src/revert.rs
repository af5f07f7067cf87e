//! Takes back steps that were done when a later step of the same plan could not be. Only ever touches what the plan
//! itself had put there; whatever does not look like that is left alone. Staged files get their temporary names back,
//! so that what cannot be taken back to the end can still be finished forwards.

use disk::{Attributes, Directory, DiskError, ErrorKind, Over, Source, Staged};
use path::Name;

use crate::{
    apply::{Hands, Trouble, is, trash_name},
    intent::{Id, Kept, Replaced, Step, Temporary},
};

impl Hands<'_> {
    /// Takes back the steps that were done, last one first, and before them the one that failed, which may be half
    /// done. Places that vanished meanwhile hold nothing to take back.
    pub(crate) fn take_back(&self, done: &[Step], failed: Option<&Step>) -> Result<(), DiskError> {
        let half = failed.filter(|step| step.may_be_half_done());
        for step in half.into_iter().chain(done.iter().rev()) {
            match self.revert(step) {
                Ok(()) | Err(Trouble::Foreign) => {}
                Err(Trouble::Disk(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes staged files that lie under their temporary names. A leftover is invisible and swept later.
    pub(crate) fn drop_staged(&self, steps: &[Step]) {
        for step in steps {
            let Step::Put { staged, .. } = step else { continue };
            let Ok((directory, name)) = self.staged_in(staged) else { continue };
            // Under that name there may be a file that was swapped out.
            if matches!(is(&directory, &name, staged.id), Ok(true)) {
                match directory.remove_file(&name) {
                    Ok(()) | Err(_) => {}
                }
            }
        }
    }

    /// Takes back one step, if it was done.
    fn revert(&self, step: &Step) -> Result<(), Trouble> {
        match step {
            Step::Put { path, staged, over, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                if is(&parent, &name, staged.id)? {
                    self.unput(&parent, &name, staged, over.as_ref())?;
                }
                Ok(())
            }
            Step::MakeDirectory { path, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                match parent.remove_directory(&name) {
                    // Somebody else found it and uses it, or took it away.
                    Err(error) if matches!(error.kind, ErrorKind::NotEmpty | ErrorKind::NotFound) => Ok(()),
                    removed => Ok(removed?),
                }
            }
            Step::MakeLink { path, target } => {
                let (parent, name) = self.parent(&path.0)?;
                let ours = parent.stat(&name)?.is_some_and(|stat| stat.file_type == disk::FileType::Link)
                    && parent.read_link(&name)? == *target;
                if ours { Ok(parent.remove_file(&name)?) } else { Ok(()) }
            }
            Step::Move { from, to, id, over } => {
                let (parent, name) = self.parent(&to.0)?;
                let (back, old_name) = self.parent(&from.0)?;
                if is(&parent, &name, *id)? {
                    self.unshift((&parent, &name), (&back, &old_name), over.as_ref())?;
                }
                Ok(())
            }
            Step::Remove { path, id, trash } => {
                let (parent, name) = self.parent(&path.0)?;
                let item = trash_name(trash)?;
                if is(self.trash, &item, *id)? {
                    self.trash.rename(&item, &parent, &name, Over::Refuse)?;
                }
                Ok(())
            }
            Step::RemoveDirectory { path, mode, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                parent.make_directory(&name, *mode)?;
                Ok(parent.set_mode(&name, *mode)?)
            }
            Step::Restore { path, id, trash } => {
                let (parent, name) = self.parent(&path.0)?;
                if is(&parent, &name, *id)? {
                    parent.rename(&name, self.trash, &trash_name(trash)?, Over::Refuse)?;
                }
                Ok(())
            }
        }
    }

    fn unput(
        &self,
        parent: &Directory,
        name: &Name,
        staged: &Temporary,
        over: Option<&Replaced>,
    ) -> Result<(), Trouble> {
        let (source, temporary) = self.staged_in(staged)?;
        let Some(replaced) = over else {
            return Ok(parent.rename(name, &source, &temporary, Over::Refuse)?);
        };
        if is(&source, &temporary, replaced.id)? {
            return Ok(source.rename(&temporary, parent, name, Over::Exchange)?);
        }
        // It was let go already: the same bytes come back in a new file.
        let ours = parent.open_file(name)?;
        let old = self.stage_old(parent, replaced, Attributes::Like(&ours))?;
        match parent.rename(old.name(), parent, name, Over::Exchange) {
            Ok(()) => Ok(parent.rename(old.name(), &source, &temporary, Over::Refuse)?),
            Err(error) if error.kind == ErrorKind::Unsupported => {
                parent.rename(name, &source, &temporary, Over::Refuse)?;
                Ok(parent.rename(old.name(), parent, name, Over::Refuse)?)
            }
            Err(error) => {
                old.discard(parent).unwrap_or_default();
                Err(error.into())
            }
        }
    }

    fn unshift(
        &self,
        (parent, name): (&Directory, &Name),
        (back, old_name): (&Directory, &Name),
        over: Option<&Replaced>,
    ) -> Result<(), Trouble> {
        let Some(replaced) = over else {
            return Ok(parent.rename(name, back, old_name, Over::Refuse)?);
        };
        if is(back, old_name, replaced.id)? {
            return Ok(back.rename(old_name, parent, name, Over::Exchange)?);
        }
        let old = self.stage_old(parent, replaced, Attributes::New { mode: replaced.mode })?;
        parent.rename(name, back, old_name, Over::Refuse)?;
        Ok(parent.rename(old.name(), parent, name, Over::Refuse)?)
    }

    /// Replaced bytes, staged again from where they are kept.
    fn stage_old(
        &self,
        parent: &Directory,
        replaced: &Replaced,
        attributes: Attributes<'_>,
    ) -> Result<Staged, Trouble> {
        let lost = DiskError { kind: ErrorKind::Io, call: "kept bytes", errno: None };
        match replaced.kept {
            Kept::File => {
                let old = self.state.open_blob(&replaced.version.to_string())?.ok_or(Trouble::Disk(lost))?;
                Ok(parent.stage(Source::File(&old), attributes)?)
            }
            Kept::Row => {
                let bytes = (self.kept)(&replaced.version).ok_or(Trouble::Disk(lost))?;
                Ok(parent.stage(Source::Bytes(&bytes), attributes)?)
            }
        }
    }

    /// Which file is at a place; nothing when the place is not there or cannot be reached without a link.
    pub(crate) fn id_at(&self, path: &path::RelPath) -> Result<Option<Id>, DiskError> {
        match self.root.stat(path) {
            Ok(stat) => Ok(stat.map(|stat| Id::of(&stat))),
            Err(error) => match Trouble::from(error) {
                Trouble::Foreign => Ok(None),
                Trouble::Disk(error) => Err(error),
            },
        }
    }
}
