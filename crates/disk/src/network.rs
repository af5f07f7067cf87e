//! Detection of file systems unsuitable for state: network file systems, where locks, renames or syncs have weaker
//! guarantees. Recognised by the magic number of the kernel, and for FUSE by the mount type.

use std::os::fd::BorrowedFd;

use crate::{DiskError, DiskErrorKind, stat::StatWithMount, sys};

/// Network file systems of the kernel, by `statfs` magic.
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
/// FUSE, local or remote.
const FUSE_MAGIC: i64 = 0x6573_5546;
/// Remote FUSE file systems, by their type in `/proc/self/mountinfo`.
const REMOTE_FUSE_NAMES: &[&str] = &[
    "fuse.sshfs",
    "fuse.s3fs",
    "fuse.goofys",
    "fuse.mountpoint-s3",
    "fuse.gcsfuse",
    "fuse.rclone",
    "fuse.glusterfs",
    "fuse.davfs",
    "fuse.davfs2",
    "fuse.curlftpfs",
    "fuse.smbnetfs",
    "fuse.ceph",
    "fuse.ceph-fuse",
    "fuse.juicefs",
    "fuse.seaweedfs",
    "fuse.moosefs",
    "fuse.blobfuse",
    "fuse.blobfuse2",
    "fuse.google-drive-ocamlfuse",
];

/// Refuses a directory whose changes this kernel does not see completely: on a network file system or on any FUSE.
pub(crate) fn refuse_unwatchable(handle: BorrowedFd<'_>) -> Result<(), DiskError> {
    let magic = sys::file_system_magic(handle)?;
    let unseen = NETWORK_MAGICS.contains(&magic) || magic == FUSE_MAGIC;
    if unseen { Err(DiskError::new(DiskErrorKind::Unsupported, "watch")) } else { Ok(()) }
}

/// Refuses a directory on a network file system.
pub(crate) fn refuse_network_filesystem(handle: BorrowedFd<'_>, meta: &StatWithMount) -> Result<(), DiskError> {
    let magic = sys::file_system_magic(handle)?;
    let remote = NETWORK_MAGICS.contains(&magic)
        || (magic == FUSE_MAGIC && fuse_filesystem_name(meta).is_some_and(|name| is_remote_fuse(&name)));
    if remote { Err(DiskError::new(DiskErrorKind::Unsupported, "network file system")) } else { Ok(()) }
}

fn is_remote_fuse(name: &str) -> bool {
    REMOTE_FUSE_NAMES.contains(&name)
}

/// The type of a FUSE mount.
fn fuse_filesystem_name(meta: &StatWithMount) -> Option<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    filesystem_type_of_mount(&table, meta.mount_id?)
}

/// The file-system type of one mount in `mountinfo`.
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
}
