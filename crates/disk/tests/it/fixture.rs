//! A workspace in a temporary directory, with an outside next to it.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use disk::{Directory, ErrorKind, Resolver, Root, RootOptions};
use path::{Name, RelPath};

/// Both ways of resolving.
pub(crate) const BOTH: [Resolver; 2] = [Resolver::Kernel, Resolver::Walker];

/// `ws` is the workspace, `out` is not.
pub(crate) struct Fixture {
    _keep: tempfile::TempDir,
    pub(crate) ws: PathBuf,
    pub(crate) out: PathBuf,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap())
    }

    /// In memory where the machine has such a place: for cases that make very many files.
    pub(crate) fn in_memory() -> Self {
        Self::within(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn within(keep: tempfile::TempDir) -> Self {
        let base = std::fs::canonicalize(keep.path()).unwrap();
        let (ws, out) = (base.join("ws"), base.join("out"));
        std::fs::create_dir(&ws).unwrap();
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("secret"), "secret").unwrap();
        Self { _keep: keep, ws, out }
    }

    pub(crate) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.ws.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn directory(&self, path: &str) {
        std::fs::create_dir_all(self.ws.join(path)).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.ws.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.ws.join(path)).unwrap()
    }

    pub(crate) fn root(&self, resolver: Resolver) -> Root {
        let root = Root::open(&self.ws, RootOptions { resolver, ..RootOptions::default() }).unwrap();
        assert_eq!(root.resolver(), resolver);
        root
    }

    pub(crate) fn top(&self) -> Directory {
        self.root(Resolver::Kernel).open_directory(&RelPath::root()).unwrap()
    }
}

pub(crate) fn rel(wire: &str) -> RelPath {
    RelPath::from_wire(wire).unwrap()
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

/// The kind of a refusal.
pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, disk::DiskError>) -> ErrorKind {
    result.unwrap_err().kind
}
