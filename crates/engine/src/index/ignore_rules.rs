//! The ignore rules of a walk, for an index that must include the same files.

use std::sync::Arc;

use stead_path::{FileName, RelPath};

use crate::{
    ops::walk::{IgnoreRules, is_included},
    plan::FileKind,
    workspace::DirectoryEntry,
};

/// The ignore rules of a directory and its parents. The engine's walk uses the same rules.
#[derive(Debug, Clone, Default)]
pub struct IndexIgnoreRules(Arc<IgnoreRules>);

impl IndexIgnoreRules {
    /// The rules of a directory with these entries, in byte order; `self` has the rules of its parent. `read` returns
    /// the bytes of an ignore file.
    #[must_use]
    pub fn enter_directory(
        &self,
        directory: &RelPath,
        listed: &[DirectoryEntry],
        read: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
    ) -> Self {
        Self(Arc::clone(&self.0).enter_directory(read, directory, listed))
    }

    /// Whether a walk includes an entry of the directory.
    #[must_use]
    pub fn includes(&self, path: &RelPath, name: &FileName, top: FileKind) -> bool {
        is_included(&self.0, path, name, top)
    }
}
