//! Where renames cannot go. Everything here moves by rename, and no rename crosses a mount; with mounts that belong to
//! the workspace this is found out before anything is recorded, not after.

use disk::{Directory, ErrorKind};
use engine::{Failure, Kind};
use path::RelPath;

use crate::{failure, open::LocalWorkspace};

impl LocalWorkspace {
    /// Refuses unless one rename can move something from this place to that one.
    pub(crate) fn refuse_between_mounts(&self, from: &RelPath, to: &RelPath) -> Result<(), Failure> {
        if self.mounts.is_empty() || self.holder(from)?.shares_mount(&self.holder(to)?) {
            return Ok(());
        }
        Err(Failure::new(Kind::CrossMount, format!("{from} and {to} are on different file systems"))
            .hint("copy it, then remove what you no longer need"))
    }

    /// Refuses unless one rename can move something between this place and the trash.
    pub(crate) fn refuse_far_from_trash(&self, path: &RelPath) -> Result<(), Failure> {
        // Without mounts of its own the trash can still be far: beside a workspace that nobody can write to.
        if self.holder(path)?.shares_mount(&self.trash_place) {
            return Ok(());
        }
        Err(Failure::new(Kind::CrossMount, format!("{path} is on another file system than the trash"))
            .hint("ask a person to do this"))
    }

    /// The directory that holds a place, or will: the nearest one that is there.
    fn holder(&self, path: &RelPath) -> Result<Directory, Failure> {
        let above: Vec<RelPath> = path.ancestors().collect();
        for place in above.iter().rev() {
            match self.root.open_directory(place) {
                Err(error) if error.kind == ErrorKind::NotFound => {}
                opened => return opened.map_err(|error| failure::at(place, &error)),
            }
        }
        self.root.open_directory(&RelPath::root()).map_err(|error| failure::at(path, &error))
    }
}
