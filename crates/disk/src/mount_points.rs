//! Which mount points lie between the root of the machine and a place. Trusted paths only: links in them are followed.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use path::RelPath;
use rustix::fs::OFlags;

use crate::{DiskError, ErrorKind, confines::Held, state::from_std, sys};

/// The link-free path of a place, beneath `/`, and every mount point on the way to it, outermost first. What does not
/// exist yet is kept as it is written.
pub fn way_to(place: &Path) -> Result<(RelPath, Vec<RelPath>), DiskError> {
    let whole = link_free(place)?;
    let mut mounts = Vec::new();
    let mut above = mount_of(Path::new("/"))?;
    let mut at = PathBuf::from("/");
    for name in whole.components() {
        at.push(std::ffi::OsStr::from_bytes(name));
        let here = match mount_of(&at) {
            Err(error) if error.kind == ErrorKind::NotFound => break,
            other => other?,
        };
        if here != above {
            mounts.push(beneath(&at)?);
            above = here;
        }
    }
    Ok((whole, mounts))
}

fn mount_of(path: &Path) -> Result<Option<u64>, DiskError> {
    Ok(Held::look(sys::open_trusted(path, OFlags::PATH)?)?.meta.mount)
}

/// The path without links, as far as it exists.
fn link_free(place: &Path) -> Result<RelPath, DiskError> {
    let given = std::path::absolute(place).map_err(|error| from_std("absolute path", &error))?;
    let mut missing: Vec<&std::ffi::OsStr> = Vec::new();
    let mut there = given.as_path();
    loop {
        match (std::fs::canonicalize(there), there.parent(), there.file_name()) {
            (Ok(real), _, _) => {
                return beneath(&missing.iter().rev().fold(real, |path, name| path.join(name)));
            }
            (Err(error), Some(parent), Some(name)) if error.kind() == std::io::ErrorKind::NotFound => {
                missing.push(name);
                there = parent;
            }
            (Err(error), _, _) => return Err(from_std("real path", &error)),
        }
    }
}

fn beneath(path: &Path) -> Result<RelPath, DiskError> {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    RelPath::from_components(names).map_err(|_| DiskError::new(ErrorKind::NameTooLong, "real path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_has_its_mounts_and_may_end_in_nothing() {
        let (whole, mounts) = way_to(Path::new("/proc/self/../no such thing")).unwrap();
        assert_eq!(mounts, [RelPath::from_wire("proc").unwrap()]);
        assert!(whole.is_within(&mounts[0]), "{whole}");
        assert_eq!(way_to(Path::new("/")).unwrap(), (RelPath::root(), vec![]));
    }
}
