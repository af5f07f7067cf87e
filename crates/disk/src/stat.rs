//! File metadata as plain values that callers compare and store, without any handle or path.

use rustix::fs::{FileType, Statx, StatxFlags, StatxTimestamp};

/// The device and inode numbers of a file, which identify the file as long as it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeId {
    pub dev: u64,
    pub ino: u64,
}

/// File metadata by which callers detect a change: different fingerprints mean that the file may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InodeFingerprint {
    pub id: InodeId,
    pub size: u64,
    /// When the content last changed, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// When the content or metadata last changed (ctime), in nanoseconds since 1970.
    pub changed_ns: i128,
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskStat {
    pub file_type: FileType,
    pub size: u64,
    /// The permission bits of the file with the set-id and sticky bits, but without the file type.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub hard_links: u64,
    /// When the content last changed, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// In nanoseconds since 1970; `None` if the file system does not record it.
    pub created_ns: Option<i128>,
    pub fingerprint: InodeFingerprint,
}

/// The free and total space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// The number of free bytes on the file system that this user may write.
    pub free_bytes: u64,
    pub total_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct StatWithMount {
    pub(crate) stat: DiskStat,
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
            file_type: FileType::from_raw_mode(u32::from(raw.stx_mode)),
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
