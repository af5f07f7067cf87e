//! Mount points between `/` and a path. For trusted paths only: links in them are followed.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use stead_path::RelPath;

use crate::{DiskError, DiskErrorKind, confinement::PathHandle, state_directory::from_io_error, sys};

/// The canonical path below `/`, and every mount point above it, outermost first. Missing components are kept as
/// written.
pub fn resolve_with_mount_points(path: &Path) -> Result<(RelPath, Vec<RelPath>), DiskError> {
    let whole = resolve_symlinks(path)?;
    let mut mounts = Vec::new();
    let mut above = mount_id_of(Path::new("/"))?;
    let mut at = PathBuf::from("/");
    for name in whole.components() {
        at.push(std::ffi::OsStr::from_bytes(name));
        let here = match mount_id_of(&at) {
            Err(error) if error.kind == DiskErrorKind::NotFound => break,
            other => other?,
        };
        if here != above {
            mounts.push(relative_to_root(&at)?);
            above = here;
        }
    }
    Ok((whole, mounts))
}

fn mount_id_of(path: &Path) -> Result<Option<u64>, DiskError> {
    Ok(PathHandle::from_handle(sys::open_trusted(path, OFlags::PATH)?)?.meta.mount_id)
}

/// The path without links, as far as it exists.
fn resolve_symlinks(path: &Path) -> Result<RelPath, DiskError> {
    let given = std::path::absolute(path).map_err(|error| from_io_error("absolute path", &error))?;
    let mut missing: Vec<&std::ffi::OsStr> = Vec::new();
    let mut there = given.as_path();
    loop {
        match (std::fs::canonicalize(there), there.parent(), there.file_name()) {
            (Ok(real), _, _) => {
                return relative_to_root(&missing.iter().rev().fold(real, |path, name| path.join(name)));
            }
            (Err(error), Some(parent), Some(name)) if error.kind() == std::io::ErrorKind::NotFound => {
                missing.push(name);
                there = parent;
            }
            (Err(error), _, _) => return Err(from_io_error("real path", &error)),
        }
    }
}

fn relative_to_root(path: &Path) -> Result<RelPath, DiskError> {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    RelPath::from_components(names).map_err(|_| DiskError::new(DiskErrorKind::NameTooLong, "real path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_mount_points_of_missing_paths() {
        let (whole, mounts) = resolve_with_mount_points(Path::new("/proc/self/../no such thing")).unwrap();
        assert_eq!(mounts, [RelPath::from_wire("proc").unwrap()]);
        assert!(whole.is_within(&mounts[0]), "{whole}");
        assert_eq!(resolve_with_mount_points(Path::new("/")).unwrap(), (RelPath::root(), vec![]));
    }
}
