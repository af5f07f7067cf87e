//! Evidence from later changes about a pending step after a power cut, which preserves writes in no particular order.
//! Only a later step that survived counts, and only for its own paths. Never touches the disk.

use stead_path::RelPath;

use crate::{
    file_steps::{FileStep, ReplacedFile, StoredInodeId},
    recovery::overlaps,
};

/// Outcome of a step, as later changes prove it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LaterEvidence<'a> {
    /// Later changes prove nothing.
    Unknown,
    /// A later step used the same path, so the step was done.
    Superseded,
    /// A later step used the old path of a move: the file there belongs there.
    OldPathReused,
    /// The moved file was replaced by another at its new path.
    Replaced(&'a ReplacedFile),
}

impl<'a> LaterEvidence<'a> {
    /// Evidence of the later steps about `step`, given which of them survived.
    pub(crate) fn from_later_steps<E>(
        step: &FileStep,
        later: &[&'a FileStep],
        has_survived: impl Fn(&FileStep) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let mut since = Self::Unknown;
        for other in later.iter().filter(|other| proves_outcome_of(other, step)) {
            if !has_survived(other)? {
                continue;
            }
            if reuses_old_path(other, step) {
                return Ok(Self::OldPathReused);
            }
            since = Self::Superseded;
        }
        // The replacing file may have been replaced in turn and need not have survived.
        let replaced = || later.iter().find_map(|other| file_replaced_by(other, step));
        Ok(match since {
            Self::Superseded => replaced().map_or(since, Self::Replaced),
            Self::Unknown | Self::OldPathReused | Self::Replaced(_) => since,
        })
    }
}

/// Whether a later step, if it survived, proves the outcome of this one.
fn proves_outcome_of(later: &FileStep, step: &FileStep) -> bool {
    match later {
        FileStep::Put { .. } | FileStep::Move { .. } | FileStep::Remove { .. } | FileStep::Restore { .. } => {}
        // A missing directory only proves that its children are gone too.
        FileStep::RemoveDirectory { path: gone, .. } => {
            return matches!(step, FileStep::MakeDirectory { path, .. } if path.0.is_within(&gone.0));
        }
        FileStep::MakeDirectory { .. } | FileStep::MakeLink { .. } => return false,
    }
    match step {
        // A move out of or into a directory does not prove that the directory's own name survived.
        FileStep::MakeDirectory { path, .. } => removed_file(later).is_some_and(|(gone, _)| path.0.is_within(gone)),
        FileStep::Put { path, .. } | FileStep::MakeLink { path, .. } => {
            later.paths().iter().any(|later_path| path.0.is_within(later_path))
        }
        FileStep::Move { .. }
        | FileStep::Remove { .. }
        | FileStep::RemoveDirectory { .. }
        | FileStep::Restore { .. } => {
            let places = later.paths();
            step.paths().iter().any(|later_path| places.iter().any(|other| overlaps(later_path, other)))
        }
    }
}

/// Whether a surviving later step proves that the file at the old path belongs there. A file found in a directory that
/// never moved proves nothing: it may always have been there.
fn reuses_old_path(later: &FileStep, step: &FileStep) -> bool {
    let Some((old, id)) = removed_file(step) else { return false };
    match later {
        FileStep::Put { path, .. } => path.0.is_within(old),
        FileStep::Move { .. } | FileStep::Restore { .. } => placed_file(later) == Some((old, id)),
        FileStep::MakeDirectory { .. }
        | FileStep::MakeLink { .. }
        | FileStep::Remove { .. }
        | FileStep::RemoveDirectory { .. } => false,
    }
}

/// The file that a step removes from a path.
fn removed_file(step: &FileStep) -> Option<(&RelPath, StoredInodeId)> {
    match step {
        FileStep::Move { from: path, id, .. } | FileStep::Remove { path, id, .. } => Some((&path.0, *id)),
        FileStep::Put { .. }
        | FileStep::MakeDirectory { .. }
        | FileStep::MakeLink { .. }
        | FileStep::RemoveDirectory { .. }
        | FileStep::Restore { .. } => None,
    }
}

/// The file that a step puts at a path.
fn placed_file(step: &FileStep) -> Option<(&RelPath, StoredInodeId)> {
    match step {
        FileStep::Move { to: path, id, .. } | FileStep::Restore { path, id, .. } => Some((&path.0, *id)),
        FileStep::Put { .. }
        | FileStep::MakeDirectory { .. }
        | FileStep::MakeLink { .. }
        | FileStep::Remove { .. }
        | FileStep::RemoveDirectory { .. } => None,
    }
}

/// The file that a later step replaced, if this step had put it there.
fn file_replaced_by<'a>(later: &'a FileStep, step: &FileStep) -> Option<&'a ReplacedFile> {
    let (new_path, over) = match later {
        FileStep::Put { path, over, .. } => (&path.0, over.as_ref()?),
        FileStep::Move { to, over, .. } => (&to.0, over.as_ref()?),
        FileStep::MakeDirectory { .. }
        | FileStep::MakeLink { .. }
        | FileStep::Remove { .. }
        | FileStep::RemoveDirectory { .. }
        | FileStep::Restore { .. } => return None,
    };
    (placed_file(step) == Some((new_path, over.id))).then_some(over)
}
