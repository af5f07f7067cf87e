//! Finds out how far the steps of an entry came before its process died, and does the rest. Idempotent, and may itself
//! be killed at any point.
//!
//! While the machine has not been started again the directory is the truth: a staged file that still lies under its
//! temporary name was not put, one that does not was, whatever became of its place afterwards. After a power cut
//! renames may be lost and small files torn, so there the bytes decide.

use disk::{Attributes, Directory, DiskError, ErrorKind, Over, Source};
use journal::Digest;
use path::{Name, RelPath};

use crate::{
    apply::{Hands, Trouble, is, is_replaced, trash_name},
    intent::{Id, Kept, Replaced, Step, Temporary, nanoseconds},
    since::Since,
};

/// Since when the machine has been running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boot {
    /// Since before the entry was recorded.
    Same,
    /// Only since after: there was a power cut, or a restart.
    Other,
}

/// What was found of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is done: what it made is there.
    Done,
    /// It was done, and somebody changed the place since.
    Gone,
    /// It is still to be done.
    NotYet,
}

/// A step that met somebody else's work.
pub(crate) struct Blocked {
    /// Which one; those before it are done.
    pub(crate) at: usize,
}

impl Hands<'_> {
    /// Does what is left of these steps, by what is known of each `since`. Answers how many had to be done, or which one
    /// cannot be.
    pub(crate) fn resume(
        &self,
        steps: &[Step],
        boot: Boot,
        since: &[Since<'_>],
    ) -> Result<Result<u64, Blocked>, DiskError> {
        let found = steps.iter().map(|step| self.found(step, boot)).collect::<Result<Vec<_>, _>>()?;
        let mut replayed = 0;
        for (at, (step, since)) in steps.iter().zip(since).enumerate() {
            // Steps are done in order: whatever comes before one that was done has been done as well. A power cut knows
            // no order.
            let passed = boot == Boot::Same
                && !step.may_be_half_done()
                && found[at..].iter().zip(&steps[at..]).any(was_done);
            // What was just done again may have made way for this one.
            let now = if replayed == 0 { found[at] } else { self.found(step, boot)? };
            if boot == Boot::Other {
                replayed += none_if_vanished(self.drop_old_name(step, since))?;
            }
            if now != Found::NotYet || passed || !may_be_undone(step, since) {
                continue;
            }
            match (self.do_again(step, boot), since) {
                (Ok(()), _) => replayed += 1,
                (Err(Trouble::Foreign), Since::Superseded) => {}
                (Err(Trouble::Foreign), _) => return Ok(Err(Blocked { at })),
                (Err(Trouble::Disk(error)), _) => return Err(error),
            }
        }
        for step in steps {
            replayed += none_if_vanished(self.mend(step))?;
            vanished_is_fine(self.let_go(step))?;
        }
        Ok(Ok(replayed))
    }

    /// A power cut may bring the old name of a file back: beside the new one, which is the same file, or when the new
    /// one has come to stand for another. In the second case it may hold the only copy of bytes that are to be kept,
    /// and whoever has written to it since keeps it.
    fn drop_old_name(&self, step: &Step, since: &Since<'_>) -> Result<u64, Trouble> {
        let (old, new, id) = match step {
            Step::Move { from, to, id, .. } => (self.parent(&from.0)?, self.parent(&to.0)?, *id),
            Step::Remove { path, id, trash } => (self.parent(&path.0)?, self.in_trash(trash)?, *id),
            Step::Restore { path, id, trash } => (self.in_trash(trash)?, self.parent(&path.0)?, *id),
            Step::Put { .. }
            | Step::MakeDirectory { .. }
            | Step::MakeLink { .. }
            | Step::RemoveDirectory { .. } => return Ok(0),
        };
        let ((old, old_name), (new, new_name)) = (old, new);
        if matches!(since, Since::OldPlaceUsed) || !is(&old, &old_name, id)? {
            return Ok(0);
        }
        if is(&new, &new_name, id)? {
            old.remove_file(&old_name)?;
        } else if let Since::Replaced(replaced) = since {
            is_replaced(&old, &old_name, replaced)?;
            self.let_go_of(&old, &old_name, replaced)?;
        } else {
            return Ok(0);
        }
        Ok(1)
    }

    fn in_trash(&self, trash: &str) -> Result<(Directory, Name), Trouble> {
        Ok((self.trash.try_clone()?, trash_name(trash)?))
    }

    /// Looks how far a step came.
    pub(crate) fn found(&self, step: &Step, boot: Boot) -> Result<Found, DiskError> {
        Ok(match step {
            Step::Put { path, staged, over, version, .. } => {
                self.found_put(&path.0, staged, over.as_ref(), version, boot)?
            }
            Step::MakeDirectory { path, .. } | Step::MakeLink { path, .. } => match self.id_at(&path.0)? {
                Some(_) => Found::Done,
                None => Found::NotYet,
            },
            Step::Move { from, to, id, .. } => found_rename(self.id_at(&from.0)?, self.id_at(&to.0)?, *id),
            Step::Remove { path, id, trash } => {
                found_rename(self.id_at(&path.0)?, self.id_in_trash(trash)?, *id)
            }
            Step::Restore { path, id, trash } => {
                found_rename(self.id_in_trash(trash)?, self.id_at(&path.0)?, *id)
            }
            Step::RemoveDirectory { path, id, .. } => match self.id_at(&path.0)? {
                None => Found::Done,
                Some(there) if there == *id => Found::NotYet,
                Some(_) => Found::Gone,
            },
        })
    }

    /// Whether a step was done and survived a power cut. The bytes of a file are no proof: they may have been there
    /// before.
    pub(crate) fn has_survived(&self, step: &Step) -> Result<bool, DiskError> {
        let Step::Put { path, staged, over, .. } = step else {
            return Ok(self.found(step, Boot::Other)? == Found::Done);
        };
        let under = self.id_at(&temporary_path(staged)?)?;
        let swapped = under.is_some() && under == over.as_ref().map(|replaced| replaced.id);
        Ok(swapped || (under != Some(staged.id) && self.id_at(&path.0)? == Some(staged.id)))
    }

    fn found_put(
        &self,
        path: &RelPath,
        staged: &Temporary,
        over: Option<&Replaced>,
        version: &Digest,
        boot: Boot,
    ) -> Result<Found, DiskError> {
        let under = self.id_at(&temporary_path(staged)?)?;
        if under == Some(staged.id) {
            return Ok(Found::NotYet);
        }
        if under.is_some() && under == over.map(|replaced| replaced.id) {
            return Ok(Found::Done);
        }
        if self.id_at(path)? == Some(staged.id) {
            return Ok(Found::Done);
        }
        if boot == Boot::Same {
            return Ok(Found::Gone);
        }
        let current = self.version_at(path)?;
        let before = over.map(|replaced| replaced.version);
        Ok(match current {
            Content::Version(found) if found == *version => Found::Done,
            Content::Version(found) if Some(found) == before => Found::NotYet,
            // The cut may have taken the old file along with its name; the new one was acknowledged.
            Content::Absent => Found::NotYet,
            Content::Version(_) | Content::Other => Found::Gone,
        })
    }

    fn do_again(&self, step: &Step, boot: Boot) -> Result<(), Trouble> {
        match step {
            Step::Put { path, staged, over, version, mode, .. } => {
                let put = Putting { path: &path.0, staged, over: over.as_ref(), version, mode: *mode };
                self.put_again(&put, boot)
            }
            Step::MakeDirectory { .. }
            | Step::MakeLink { .. }
            | Step::Move { .. }
            | Step::Remove { .. }
            | Step::RemoveDirectory { .. }
            | Step::Restore { .. } => self.apply(step),
        }
    }

    /// Puts the bytes in place from wherever they survived, over the bytes that were to be replaced.
    fn put_again(&self, put: &Putting<'_>, boot: Boot) -> Result<(), Trouble> {
        let (parent, name) = self.parent(put.path)?;
        let over = match (self.version_at(put.path)?, put.over) {
            (Content::Absent, None) => None,
            (Content::Absent, Some(_)) if boot == Boot::Other => None,
            // What was replaced may have been taken back in a new file: it is the bytes that count.
            (Content::Version(found), Some(replaced)) if found == replaced.version => {
                let stat = parent.stat(&name)?.ok_or(Trouble::Foreign)?;
                let modified_ns = nanoseconds(stat.modified_ns);
                Some(Replaced { id: Id::of(&stat), size: stat.size, modified_ns, ..replaced.clone() })
            }
            (Content::Version(found), _) if found == *put.version => {
                let (source, temporary) = self.staged_in(put.staged)?;
                return match source.remove_file(&temporary) {
                    Err(error) if error.kind != ErrorKind::NotFound => Err(error.into()),
                    Ok(()) | Err(_) => Ok(()),
                };
            }
            (Content::Absent | Content::Version(_) | Content::Other, _) => return Err(Trouble::Foreign),
        };
        let (source, temporary) = match self.intact(put)? {
            Some(found) => found,
            None => self.stage_again(put, over.as_ref(), &parent, &name)?,
        };
        self.put(put.path, &source, &temporary, over.as_ref())?;
        match over {
            Some(replaced) => self.let_go_of(&source, &temporary, &replaced),
            None => Ok(()),
        }
    }

    /// The staged file, if it is still there and whole.
    fn intact(&self, put: &Putting<'_>) -> Result<Option<(Directory, Name)>, Trouble> {
        let (source, temporary) = self.staged_in(put.staged)?;
        if !is(&source, &temporary, put.staged.id)? {
            return Ok(None);
        }
        if source.open_file(&temporary)?.hash()?.0 == *put.version.as_bytes() {
            return Ok(Some((source, temporary)));
        }
        source.remove_file(&temporary)?;
        Ok(None)
    }

    fn stage_again(
        &self,
        put: &Putting<'_>,
        over: Option<&Replaced>,
        parent: &Directory,
        name: &Name,
    ) -> Result<(Directory, Name), Trouble> {
        let bytes = (self.kept)(put.version).ok_or(Trouble::Foreign)?;
        let old = over.map(|_| parent.open_file(name)).transpose()?;
        let attributes = old.as_ref().map_or(Attributes::New { mode: put.mode }, Attributes::Like);
        let staged = parent.stage(Source::Bytes(&bytes), attributes)?;
        Ok((parent.try_clone()?, staged.name().clone()))
    }

    /// A file that was renamed but not synced may be torn after a power cut, or when the device failed: it is ours, so
    /// it is ours to write again, unless somebody else has written to it since.
    fn mend(&self, step: &Step) -> Result<u64, Trouble> {
        let Step::Put { path, staged, version, .. } = step else { return Ok(0) };
        let (parent, name) = self.parent(&path.0)?;
        if !is(&parent, &name, staged.id)? {
            return Ok(0);
        }
        let torn = parent.open_file(&name)?;
        let edited = nanoseconds(torn.stat().modified_ns) > staged.modified_ns;
        if edited || torn.hash()?.0 == *version.as_bytes() {
            return Ok(0);
        }
        let bytes = (self.kept)(version).ok_or(Trouble::Foreign)?;
        let whole = parent.stage(Source::Bytes(&bytes), Attributes::Like(&torn))?;
        parent.rename(whole.name(), &parent, &name, Over::Replace)?;
        Ok(1)
    }

    /// Keeps our bytes by version when they may not go to their place.
    pub(crate) fn set_aside(&self, steps: &[Step]) {
        for step in steps {
            let Step::Put { staged, version, after: Kept::File, .. } = step else { continue };
            let Ok((source, temporary)) = self.staged_in(staged) else { continue };
            if matches!(is(&source, &temporary, staged.id), Ok(true)) {
                // Best effort: a failure leaves the hidden file where it is.
                match self.state.adopt_blob(&version.to_string(), &source, &temporary) {
                    Ok(()) | Err(_) => {}
                }
            }
        }
    }

    fn version_at(&self, path: &RelPath) -> Result<Content, DiskError> {
        let read = self.root.open_file(path).and_then(|file| file.hash());
        match read {
            Ok((hash, _)) => Ok(Content::Version(Digest(hash))),
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::NotDirectory) => {
                Ok(Content::Absent)
            }
            Err(error) => match Trouble::from(error) {
                Trouble::Foreign => Ok(Content::Other),
                Trouble::Disk(error) => Err(error),
            },
        }
    }

    fn id_in_trash(&self, trash: &str) -> Result<Option<Id>, DiskError> {
        let Ok(name) = trash_name(trash) else { return Ok(None) };
        Ok(self.trash.stat(&name)?.map(|stat| Id::of(&stat)))
    }
}

/// Whether this is a step whose being done proves that those before it are.
fn was_done((found, step): (&Found, &Step)) -> bool {
    step.may_be_half_done() && *found != Found::NotYet
}

/// Whether a step that is still to be done may be one that a power cut has taken back. Something that left a directory
/// afterwards, and survived, does not show that the directory's own rename did; for all others a later change at the
/// place does.
fn may_be_undone(step: &Step, since: &Since<'_>) -> bool {
    match since {
        Since::Unknown => true,
        Since::Superseded => {
            matches!(step, Step::Move { .. } | Step::Remove { .. } | Step::Restore { .. })
        }
        Since::OldPlaceUsed | Since::Replaced(_) => false,
    }
}

fn found_rename(old: Option<Id>, new: Option<Id>, id: Id) -> Found {
    if new == Some(id) {
        Found::Done
    } else if old == Some(id) {
        Found::NotYet
    } else {
        Found::Gone
    }
}

fn vanished_is_fine(done: Result<(), Trouble>) -> Result<(), DiskError> {
    match done {
        Ok(()) | Err(Trouble::Foreign) => Ok(()),
        Err(Trouble::Disk(error)) => Err(error),
    }
}

fn none_if_vanished(count: Result<u64, Trouble>) -> Result<u64, DiskError> {
    match count {
        Ok(count) => Ok(count),
        Err(Trouble::Foreign) => Ok(0),
        Err(Trouble::Disk(error)) => Err(error),
    }
}

fn temporary_path(staged: &Temporary) -> Result<RelPath, DiskError> {
    let too_long = DiskError { kind: ErrorKind::NameTooLong, call: "temporary name", errno: None };
    staged.directory.0.append(&staged.name.0).map_err(|_| too_long)
}

/// What is at a place.
enum Content {
    Absent,
    Version(Digest),
    Other,
}

/// A pending write.
struct Putting<'a> {
    path: &'a RelPath,
    staged: &'a Temporary,
    over: Option<&'a Replaced>,
    version: &'a Digest,
    mode: u32,
}
