//! Finds the mount points above a path, and rejects file systems on which the state directory or watches are
//! unreliable. Network file systems are rejected, because their locks, renames and syncs have weaker guarantees.

use std::{
    ffi::OsStr,
    os::{fd::BorrowedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use stead_path::RelPath;

use crate::{
    DiskError, DiskErrorKind, confinement::OPathFdWithStat, stat::StatWithMount, state_directory::from_io_error, sys,
};

const NETWORK_MAGICS: &[i64] = &[
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF53_4D42, // CIFS
    0xFE53_4D42, // SMB2
    0x0102_1997, // 9P
    0x5346_414F, // AFS (OpenAFS and the kernel's)
    0x6B41_4653, // kAFS
    0x00C3_6400, // Ceph
    0x7375_7245, // Coda
    0x564C,      // NCP
    0x0BD0_0BD0, // Lustre
    0x0117_7642, // BeeGFS
    0x4750_4653, // GPFS
];
/// All FUSE file systems have this `statfs` magic number, local and remote.
const FUSE_MAGIC: i64 = 0x6573_5546;
/// The types of FUSE file systems that use a network, without the prefix `fuse.`.
const REMOTE_FUSE_NAMES: &str = "\
    sshfs s3fs goofys mountpoint-s3 gcsfuse rclone glusterfs davfs davfs2 curlftpfs smbnetfs ceph ceph-fuse juicefs \
    seaweedfs moosefs blobfuse blobfuse2 google-drive-ocamlfuse";

/// Returns the canonical path of `path`, relative to `/`, and every mount point above it, outermost first. Path
/// components that do not exist are kept as written. Symbolic links in `path` are followed, so callers must pass a
/// trusted path.
pub fn resolve_with_mount_points(path: &Path) -> Result<(RelPath, Vec<RelPath>), DiskError> {
    let whole = resolve_symlinks(path)?;
    let mut mounts = Vec::new();
    let mut above = mount_id_of(Path::new("/"))?;
    let mut at = PathBuf::from("/");
    for name in whole.components() {
        at.push(OsStr::from_bytes(name));
        let mount_id = match mount_id_of(&at) {
            Err(error) if error.kind == DiskErrorKind::NotFound => break,
            other => other?,
        };
        if mount_id != above {
            mounts.push(relative_to_root(&at)?);
            above = mount_id;
        }
    }
    Ok((whole, mounts))
}

fn mount_id_of(path: &Path) -> Result<Option<u64>, DiskError> {
    Ok(OPathFdWithStat::from_handle(sys::open_trusted(path, OFlags::PATH)?)?.meta.mount_id)
}

fn resolve_symlinks(path: &Path) -> Result<RelPath, DiskError> {
    let given = std::path::absolute(path).map_err(|error| from_io_error("absolute path", &error))?;
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut existing = given.as_path();
    loop {
        match (std::fs::canonicalize(existing), existing.parent(), existing.file_name()) {
            (Ok(real), _, _) => {
                return relative_to_root(&missing.iter().rev().fold(real, |path, name| path.join(name)));
            }
            (Err(error), Some(parent), Some(name)) if error.kind() == std::io::ErrorKind::NotFound => {
                missing.push(name);
                existing = parent;
            }
            (Err(error), _, _) => return Err(from_io_error("real path", &error)),
        }
    }
}

fn relative_to_root(path: &Path) -> Result<RelPath, DiskError> {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    RelPath::from_components(names).map_err(|_| DiskError::new(DiskErrorKind::NameTooLong, "real path"))
}

/// Fails if a directory is on a network or FUSE file system, because inotify does not report all changes there.
pub(crate) fn refuse_unwatchable(handle: BorrowedFd<'_>) -> Result<(), DiskError> {
    let magic = sys::file_system_magic(handle)?;
    let unwatchable = NETWORK_MAGICS.contains(&magic) || magic == FUSE_MAGIC;
    if unwatchable { Err(DiskError::new(DiskErrorKind::Unsupported, "watch")) } else { Ok(()) }
}

pub(crate) fn refuse_network_filesystem(handle: BorrowedFd<'_>, meta: &StatWithMount) -> Result<(), DiskError> {
    let magic = sys::file_system_magic(handle)?;
    let remote = NETWORK_MAGICS.contains(&magic)
        || (magic == FUSE_MAGIC && fuse_filesystem_name(meta).is_some_and(|name| is_remote_fuse(&name)));
    if remote { Err(DiskError::new(DiskErrorKind::Unsupported, "network file system")) } else { Ok(()) }
}

fn is_remote_fuse(name: &str) -> bool {
    name.strip_prefix("fuse.").is_some_and(|name| REMOTE_FUSE_NAMES.split(' ').any(|remote| remote == name))
}

fn fuse_filesystem_name(meta: &StatWithMount) -> Option<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    filesystem_type_of_mount(&table, meta.mount_id?)
}

fn filesystem_type_of_mount(table: &str, mount: u64) -> Option<String> {
    table.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let id: u64 = left.split(' ').next()?.parse().ok()?;
        (id == mount).then(|| right.split(' ').next().unwrap_or_default().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_mount_table() {
        let table = "21 1 8:1 / / rw shared:1 - ext4 /dev/a rw\n44 21 0:9 / /m rw - fuse.sshfs h: rw\n";
        assert_eq!(filesystem_type_of_mount(table, 44).as_deref(), Some("fuse.sshfs"));
        assert_eq!(filesystem_type_of_mount(table, 4), None);
        assert!(is_remote_fuse("fuse.sshfs"));
        assert!(!is_remote_fuse("fuse.gocryptfs"));
    }

    #[test]
    fn resolves_mount_points_of_missing_paths() {
        let (whole, mounts) = resolve_with_mount_points(Path::new("/proc/self/../no such thing")).unwrap();
        assert_eq!(mounts, [RelPath::from_wire("proc").unwrap()]);
        assert!(whole.is_within(&mounts[0]), "{whole}");
        assert_eq!(resolve_with_mount_points(Path::new("/")).unwrap(), (RelPath::root(), vec![]));
    }
}
