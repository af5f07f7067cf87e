//! Renames: placing staged content, exchanging, renaming. Promises: the kernel decides atomically whether an existing
//! target is overwritten, without an earlier check; a hidden directory is never moved or replaced.

use rustix::{fs::RenameFlags, io::Errno};
use stead_path::FileName;

use crate::{DirectoryHandle, DiskError, DiskErrorKind, StagedFile, sys};

/// The behaviour if the target exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingTarget {
    /// Refuse with `Exists`.
    Refuse,
    /// Swap the two.
    Exchange,
    /// Replace it, in one step.
    Replace,
}

impl ExistingTarget {
    fn rename_flags(self) -> RenameFlags {
        match self {
            Self::Refuse => RenameFlags::NOREPLACE,
            Self::Exchange => RenameFlags::EXCHANGE,
            Self::Replace => RenameFlags::empty(),
        }
    }
}

impl DirectoryHandle {
    /// Gives staged content its name; `Exists` if the name is taken.
    pub fn rename_staged_to_new(&self, staged: &StagedFile, name: &FileName) -> Result<(), DiskError> {
        match self.rename(staged.name(), self, name, ExistingTarget::Refuse) {
            Err(error) if error.kind == DiskErrorKind::Unsupported => {
                // A hard link refuses an existing target on every file system; then the temporary name is removed.
                let (directory, temp) = (self.path_handle(), staged.name().as_bytes());
                sys::hard_link(directory, temp, directory, name.as_bytes())?;
                sys::unlink(directory, temp)
            }
            other => other,
        }
    }

    /// Exchanges staged content with the file `name`: the old file then has the temporary name. `Unsupported` where
    /// the file system cannot; use [`Self::replace_with_staged`] there.
    pub fn exchange_staged(&self, staged: &StagedFile, name: &FileName) -> Result<(), DiskError> {
        self.rename(staged.name(), self, name, ExistingTarget::Exchange)
    }

    /// Replaces the file `name` by staged content.
    pub fn replace_with_staged(&self, staged: &StagedFile, name: &FileName) -> Result<(), DiskError> {
        self.rename(staged.name(), self, name, ExistingTarget::Replace)
    }

    /// Moves a name to another directory on the same mount; `CrossesMount` if it is another one. `Unsupported` if the
    /// file system does not support `if_exists`.
    pub fn rename(
        &self,
        name: &FileName,
        to: &Self,
        to_name: &FileName,
        over: ExistingTarget,
    ) -> Result<(), DiskError> {
        self.refuse_hidden(name)?;
        to.refuse_hidden(to_name)?;
        let (from, from_name) = (self.path_handle(), name.as_bytes());
        match sys::rename(from, from_name, to.path_handle(), to_name.as_bytes(), over.rename_flags()) {
            Err(error) if error.is_errno(Errno::INVAL) && over != ExistingTarget::Replace => {
                Err(error.with_kind(DiskErrorKind::Unsupported))
            }
            other => other,
        }
    }
}
