//! Giving names to files: placing staged content, exchanging, renaming. Promises: whether a taken name is overwritten is
//! decided by the kernel in the same step, never by looking first; a hidden directory is never moved or replaced.

use path::Name;
use rustix::{fs::RenameFlags, io::Errno};

use crate::{Directory, DiskError, ErrorKind, Staged, sys};

/// What happens when the new name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Refuse with `Exists`.
    Refuse,
    /// Swap the two.
    Exchange,
    /// Replace it, in one step.
    Replace,
}

impl Over {
    fn flags(self) -> RenameFlags {
        match self {
            Self::Refuse => RenameFlags::NOREPLACE,
            Self::Exchange => RenameFlags::EXCHANGE,
            Self::Replace => RenameFlags::empty(),
        }
    }
}

impl Directory {
    /// Gives staged content its name; `Exists` when the name is taken.
    pub fn place_new(&self, staged: &Staged, name: &Name) -> Result<(), DiskError> {
        match self.rename(staged.name(), self, name, Over::Refuse) {
            Err(error) if error.kind == ErrorKind::Unsupported => {
                // A second name refuses a taken one on every file system; then the first is taken away.
                let (place, temp) = (self.place(), staged.name().as_bytes());
                sys::hard_link(place, temp, place, name.as_bytes())?;
                sys::unlink(place, temp)
            }
            other => other,
        }
    }

    /// Swaps staged content with the file under `name`: the old file is then under the temporary name. `Unsupported`
    /// where the file system cannot; [`Directory::replace`] is for those.
    pub fn exchange(&self, staged: &Staged, name: &Name) -> Result<(), DiskError> {
        self.rename(staged.name(), self, name, Over::Exchange)
    }

    /// Puts staged content in the place of the file under `name`, which loses that name.
    pub fn replace(&self, staged: &Staged, name: &Name) -> Result<(), DiskError> {
        self.rename(staged.name(), self, name, Over::Replace)
    }

    /// Moves a name to another directory on the same mount; `CrossMount` when it is another one. `Unsupported` where
    /// the file system cannot decide about taken names as asked.
    pub fn rename(&self, name: &Name, to: &Self, to_name: &Name, over: Over) -> Result<(), DiskError> {
        self.refuse_hidden(name)?;
        to.refuse_hidden(to_name)?;
        let (from, from_name) = (self.place(), name.as_bytes());
        match sys::rename(from, from_name, to.place(), to_name.as_bytes(), over.flags()) {
            Err(error) if error.is_errno(Errno::INVAL) && over != Over::Replace => {
                Err(error.seen_as(ErrorKind::Unsupported))
            }
            other => other,
        }
    }
}
