//! A test workspace in a temporary directory, next to a directory outside the workspace.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use stead_disk::{DirectoryHandle, DiskErrorKind, PathResolutionMethod, RootDirectory, RootDirectoryOptions};
use stead_path::{FileName, RelPath};

pub(crate) const BOTH_RESOLVERS: [PathResolutionMethod; 2] =
    [PathResolutionMethod::Kernel, PathResolutionMethod::Walker];

pub(crate) struct DiskFixture {
    _temporary: tempfile::TempDir,
    pub(crate) workspace: PathBuf,
    pub(crate) outside: PathBuf,
}

impl DiskFixture {
    pub(crate) fn new() -> Self {
        Self::in_directory(tempfile::tempdir().unwrap())
    }

    pub(crate) fn in_memory() -> Self {
        Self::in_directory(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn in_directory(temporary: tempfile::TempDir) -> Self {
        let base = std::fs::canonicalize(temporary.path()).unwrap();
        let (workspace, outside) = (base.join("ws"), base.join("out"));
        std::fs::create_dir(&workspace).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret"), "secret").unwrap();
        Self { _temporary: temporary, workspace, outside }
    }

    pub(crate) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.workspace.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn directory(&self, path: &str) {
        std::fs::create_dir_all(self.workspace.join(path)).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.workspace.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.workspace.join(path)).unwrap()
    }

    pub(crate) fn root(&self, resolver: PathResolutionMethod) -> RootDirectory {
        let root =
            RootDirectory::open(&self.workspace, RootDirectoryOptions { resolver, ..RootDirectoryOptions::default() })
                .unwrap();
        assert_eq!(root.resolver(), resolver);
        root
    }

    pub(crate) fn root_directory(&self) -> DirectoryHandle {
        self.root(PathResolutionMethod::Kernel).open_directory(&RelPath::root()).unwrap()
    }
}

pub(crate) fn rel_path(wire: &str) -> RelPath {
    RelPath::from_wire(wire).unwrap()
}

pub(crate) fn name(text: &str) -> FileName {
    FileName::new(text.as_bytes()).unwrap()
}

pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, stead_disk::DiskError>) -> DiskErrorKind {
    result.unwrap_err().kind
}
