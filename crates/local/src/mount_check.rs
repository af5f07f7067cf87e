//! Checks that renames stay on one mount, before anything is recorded: all moves are renames, and a rename cannot cross
//! a mount.

use stead_disk::{DirectoryHandle, DiskErrorKind};
use stead_engine::{Error, ErrorKind};
use stead_path::RelPath;

use crate::{errors, open::LocalWorkspace};

impl LocalWorkspace {
    /// Refuses a move that a single rename cannot do.
    pub(crate) fn refuse_rename_across_mounts(&self, from: &RelPath, to: &RelPath) -> Result<(), Error> {
        if self.allowed_mounts.is_empty() || self.nearest_directory(from)?.shares_mount(&self.nearest_directory(to)?) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::CrossMount, format!("{from} and {to} are on different file systems"))
            .with_next_step("copy it, then remove the original"))
    }

    /// Refuses a removal or restore that a single rename cannot do.
    pub(crate) fn refuse_other_mount_than_trash(&self, path: &RelPath) -> Result<(), Error> {
        // Even without extra mounts the trash may be on another one: beside a read-only workspace.
        if self.nearest_directory(path)?.shares_mount(self.trash_directory.as_directory()) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::CrossMount, format!("{path} is on another file system than the trash"))
            .with_next_step("ask a person to do this"))
    }

    /// The nearest existing parent directory of a path.
    fn nearest_directory(&self, path: &RelPath) -> Result<DirectoryHandle, Error> {
        let above: Vec<RelPath> = path.ancestors().collect();
        for directory in above.iter().rev() {
            match self.root.open_directory(directory) {
                Err(error) if error.kind == DiskErrorKind::NotFound => {}
                opened => return opened.map_err(|error| errors::error_at_path(directory, &error)),
            }
        }
        self.root.open_directory(&RelPath::root()).map_err(|error| errors::error_at_path(path, &error))
    }
}
