//! File metadata, as plain values that callers compare and store. The values contain no handle and no path.

use rustix::fs::{Statx, StatxFlags, StatxTimestamp};

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A type that the file system did not state.
    Unknown,
}

impl From<rustix::fs::FileType> for FileType {
    fn from(file_type: rustix::fs::FileType) -> Self {
        match file_type {
            rustix::fs::FileType::RegularFile => Self::File,
            rustix::fs::FileType::Directory => Self::Directory,
            rustix::fs::FileType::Symlink => Self::Symlink,
            rustix::fs::FileType::Fifo => Self::Fifo,
            rustix::fs::FileType::Socket => Self::Socket,
            rustix::fs::FileType::CharacterDevice => Self::CharDevice,
            rustix::fs::FileType::BlockDevice => Self::BlockDevice,
            rustix::fs::FileType::Unknown => Self::Unknown,
        }
    }
}

/// Device and inode, which together identify a file as long as the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeId {
    /// The device number of the file system.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
}

/// Metadata that identifies a state of a file. If two fingerprints of a file differ, the file may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InodeFingerprint {
    /// The device and inode of the file.
    pub id: InodeId,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last content change, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// The time of the last inode change, in nanoseconds since 1970.
    pub changed_ns: i128,
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskStat {
    /// The type of the file.
    pub file_type: FileType,
    /// The size in bytes.
    pub size: u64,
    /// The permission bits with set-id and sticky bits, without the file type.
    pub mode: u32,
    /// The user id of the owner.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
    /// The number of hard links.
    pub hard_links: u64,
    /// The time of the last content change, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// The creation time in nanoseconds since 1970, if the file system records it.
    pub created_ns: Option<i128>,
    /// The fingerprint, which callers compare to detect a change.
    pub fingerprint: InodeFingerprint,
}

/// The free and total size of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// The number of bytes that this user can still write.
    pub free_bytes: u64,
    /// The total size in bytes.
    pub total_bytes: u64,
}

/// The metadata of a file together with its mount.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatWithMount {
    pub(crate) stat: DiskStat,
    /// The mount id; `None` on kernels whose `statx` does not return it.
    pub(crate) mount_id: Option<u64>,
}

impl StatWithMount {
    pub(crate) fn id(&self) -> InodeId {
        self.stat.fingerprint.id
    }
}

impl From<Statx> for StatWithMount {
    fn from(raw: Statx) -> Self {
        let has = |flag: StatxFlags| raw.stx_mask & flag.bits() != 0;
        let id = InodeId { dev: rustix::fs::makedev(raw.stx_dev_major, raw.stx_dev_minor), ino: raw.stx_ino };
        let modified_ns = timestamp_ns(raw.stx_mtime);
        let changed_ns = timestamp_ns(raw.stx_ctime);
        let stat = DiskStat {
            file_type: rustix::fs::FileType::from_raw_mode(u32::from(raw.stx_mode)).into(),
            size: raw.stx_size,
            mode: u32::from(raw.stx_mode) & 0o7777,
            uid: raw.stx_uid,
            gid: raw.stx_gid,
            hard_links: u64::from(raw.stx_nlink),
            modified_ns,
            created_ns: has(StatxFlags::BTIME).then(|| timestamp_ns(raw.stx_btime)),
            fingerprint: InodeFingerprint { id, size: raw.stx_size, modified_ns, changed_ns },
        };
        Self { stat, mount_id: has(StatxFlags::MNT_ID).then_some(raw.stx_mnt_id) }
    }
}

fn timestamp_ns(time: StatxTimestamp) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}
