//! Which places a walk of plain names takes, for an index that must take the same.

use std::sync::Arc;

use path::{Name, RelPath};

use crate::{
    ops::seek::{Rules, is_taken},
    plan::Top,
    workspace::Listed,
};

/// What ignore files say in one directory and above it. The engine's walk judges by the same rules.
#[derive(Debug, Clone, Default)]
pub struct Ignored(Arc<Rules>);

impl Ignored {
    /// The rules in a directory that holds these names in byte order; `self` are those of the directory above. `read`
    /// brings the bytes of an ignore file.
    #[must_use]
    pub fn within(
        &self,
        directory: &RelPath,
        listed: &[Listed],
        read: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
    ) -> Self {
        Self(Arc::clone(&self.0).within(read, directory, listed))
    }

    /// Whether a place in the directory is visited.
    #[must_use]
    pub fn takes(&self, path: &RelPath, name: &Name, top: Top) -> bool {
        is_taken(&self.0, path, name, top)
    }
}
