//! Directories that only the server uses, and their error type. Promises: a [`StateError`] comes from the state
//! directory, its lock file or a [`PrivateDirectory`]. Other crates cannot make one from a [`DiskError`], so a failure
//! in the workspace is never reported as a broken state directory.

use stead_path::FileName;

use crate::{DirectoryHandle, DiskError, DiskErrorKind};

/// A failed access to a file of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct StateError(DiskError);

impl StateError {
    /// Only for calls that access nothing but the server's own files.
    pub(crate) fn new(error: DiskError) -> Self {
        Self(error)
    }

    /// The kind of the error.
    pub fn kind(&self) -> DiskErrorKind {
        self.0.kind
    }
}

/// Calls that access both sides return the general error.
impl From<StateError> for DiskError {
    fn from(error: StateError) -> Self {
        error.0
    }
}

/// A directory that only the server uses: in the state directory, or hidden in the workspace.
#[derive(Debug)]
pub struct PrivateDirectory(DirectoryHandle);

impl PrivateDirectory {
    /// Only for directories in the state directory.
    pub(crate) fn new(directory: DirectoryHandle) -> Self {
        Self(directory)
    }

    /// A directory of the workspace that is hidden from every caller, such as a trash that must be on the same mount.
    pub fn hidden_in_workspace(directory: DirectoryHandle) -> Self {
        Self(directory)
    }

    /// Runs `work` on the directory. `work` must access nothing else.
    pub fn with<T>(&self, work: impl FnOnce(&DirectoryHandle) -> Result<T, DiskError>) -> Result<T, StateError> {
        work(&self.0).map_err(StateError)
    }

    /// Opens a child directory.
    pub fn open_directory(&self, name: &FileName) -> Result<Self, StateError> {
        self.with(|directory| directory.open_directory(name)).map(Self)
    }

    /// The directory for calls that also access the workspace, such as a rename between both.
    pub fn as_directory(&self) -> &DirectoryHandle {
        &self.0
    }

    /// Converts into the directory; see [`Self::as_directory`].
    pub fn into_directory(self) -> DirectoryHandle {
        self.0
    }
}
