//! What later changes say about a pending step after a power cut, when the device has kept them in no order. Only a
//! later step that survived says anything, and only about the places it worked on. Never touches the disk.

use path::RelPath;

use crate::{
    intent::{Id, Replaced, Step},
    recover::overlaps,
};

/// What became of a step's work, as later changes show.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Since<'a> {
    /// They show nothing.
    Unknown,
    /// Its place was worked on again, so it was done.
    Superseded,
    /// So was the place it had moved something away from: whatever is there belongs there.
    OldPlaceUsed,
    /// What it had moved was replaced by another file at its new place.
    Replaced(&'a Replaced),
}

impl<'a> Since<'a> {
    /// What these later steps show of one, by which of them have survived.
    pub(crate) fn of<E>(
        step: &Step,
        later: &[&'a Step],
        has_survived: impl Fn(&Step) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let mut since = Self::Unknown;
        for other in later.iter().filter(|other| tops(other, step)) {
            if !has_survived(other)? {
                continue;
            }
            if uses_old_place(other, step) {
                return Ok(Self::OldPlaceUsed);
            }
            since = Self::Superseded;
        }
        // What replaced it may have been replaced in its turn, and so need not have survived itself.
        let replaced = || later.iter().find_map(|other| replaced(other, step));
        Ok(match since {
            Self::Superseded => replaced().map_or(since, Self::Replaced),
            Self::Unknown | Self::OldPlaceUsed | Self::Replaced(_) => since,
        })
    }
}

/// Whether a later step, if it survived, shows what became of this one.
fn tops(later: &Step, step: &Step) -> bool {
    match later {
        Step::Put { .. } | Step::Move { .. } | Step::Remove { .. } | Step::Restore { .. } => {}
        // That there is no directory shows only that those in it are gone as well.
        Step::RemoveDirectory { path: gone, .. } => {
            return matches!(step, Step::MakeDirectory { path, .. } if path.0.is_within(&gone.0));
        }
        Step::MakeDirectory { .. } | Step::MakeLink { .. } => return false,
    }
    match step {
        // What left a directory, or came into one, does not show that the directory's own name survived.
        Step::MakeDirectory { path, .. } => taken(later).is_some_and(|(gone, _)| path.0.is_within(gone)),
        Step::Put { path, .. } | Step::MakeLink { path, .. } => {
            later.places().iter().any(|place| path.0.is_within(place))
        }
        Step::Move { .. } | Step::Remove { .. } | Step::RemoveDirectory { .. } | Step::Restore { .. } => {
            let places = later.places();
            step.places().iter().any(|place| places.iter().any(|other| overlaps(place, other)))
        }
    }
}

/// Whether a later step that survived shows that what this one moved away is at its old place again by right. A thing
/// found in a directory that never moved shows nothing: it may have been there all along.
fn uses_old_place(later: &Step, step: &Step) -> bool {
    let Some((old, id)) = taken(step) else { return false };
    match later {
        Step::Put { path, .. } => path.0.is_within(old),
        Step::Move { .. } | Step::Restore { .. } => brought(later) == Some((old, id)),
        Step::MakeDirectory { .. }
        | Step::MakeLink { .. }
        | Step::Remove { .. }
        | Step::RemoveDirectory { .. } => false,
    }
}

/// What a step takes away from which place, as it is.
fn taken(step: &Step) -> Option<(&RelPath, Id)> {
    match step {
        Step::Move { from: place, id, .. } | Step::Remove { path: place, id, .. } => Some((&place.0, *id)),
        Step::Put { .. }
        | Step::MakeDirectory { .. }
        | Step::MakeLink { .. }
        | Step::RemoveDirectory { .. }
        | Step::Restore { .. } => None,
    }
}

/// What a step brings to which place, as it is.
fn brought(step: &Step) -> Option<(&RelPath, Id)> {
    match step {
        Step::Move { to: place, id, .. } | Step::Restore { path: place, id, .. } => Some((&place.0, *id)),
        Step::Put { .. }
        | Step::MakeDirectory { .. }
        | Step::MakeLink { .. }
        | Step::Remove { .. }
        | Step::RemoveDirectory { .. } => None,
    }
}

/// What a later step replaced, if it is what this one had brought there.
fn replaced<'a>(later: &'a Step, step: &Step) -> Option<&'a Replaced> {
    let (place, over) = match later {
        Step::Put { path, over, .. } => (&path.0, over.as_ref()?),
        Step::Move { to, over, .. } => (&to.0, over.as_ref()?),
        Step::MakeDirectory { .. }
        | Step::MakeLink { .. }
        | Step::Remove { .. }
        | Step::RemoveDirectory { .. }
        | Step::Restore { .. } => return None,
    };
    (brought(step) == Some((place, over.id))).then_some(over)
}
