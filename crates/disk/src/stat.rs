//! What is known about a file without reading it. Owns the plain values that callers compare and store; never holds a
//! handle or a path.

use rustix::fs::{Statx, StatxFlags, StatxTimestamp};

/// What to do with a link in the last component of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// Go where it leads.
    Follow,
    /// Mean the link itself.
    Keep,
}

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// Something the kernel has no name for.
    Unknown,
}

impl From<rustix::fs::FileType> for FileType {
    fn from(file_type: rustix::fs::FileType) -> Self {
        match file_type {
            rustix::fs::FileType::RegularFile => Self::File,
            rustix::fs::FileType::Directory => Self::Directory,
            rustix::fs::FileType::Symlink => Self::Link,
            rustix::fs::FileType::Fifo => Self::Fifo,
            rustix::fs::FileType::Socket => Self::Socket,
            rustix::fs::FileType::CharacterDevice => Self::CharDevice,
            rustix::fs::FileType::BlockDevice => Self::BlockDevice,
            rustix::fs::FileType::Unknown => Self::Unknown,
        }
    }
}

/// The identity of a file for as long as it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device of the file system.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
}

/// Changes whenever a file may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Which file.
    pub id: FileId,
    /// Its size in bytes.
    pub size: u64,
    /// When its content changed, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// When its inode changed, in nanoseconds since 1970.
    pub changed_ns: i128,
}

/// What is known about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its type.
    pub file_type: FileType,
    /// Its size in bytes.
    pub size: u64,
    /// Permission bits with set-id and sticky, without the type.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// How many names it has.
    pub links: u64,
    /// When its content changed, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// When it was made, where the file system knows.
    pub born_ns: Option<i128>,
    /// For comparing.
    pub stamp: Stamp,
}

/// The free and the whole size of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that may still be written.
    pub free_bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
}

/// [`Stat`] plus the mount it was seen on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    pub(crate) stat: Stat,
    /// The kernel's mount id; nothing on kernels whose `statx` does not tell.
    pub(crate) mount: Option<u64>,
}

impl Meta {
    pub(crate) fn id(&self) -> FileId {
        self.stat.stamp.id
    }
}

impl From<Statx> for Meta {
    fn from(raw: Statx) -> Self {
        let has = |flag: StatxFlags| raw.stx_mask & flag.bits() != 0;
        let id = FileId { dev: rustix::fs::makedev(raw.stx_dev_major, raw.stx_dev_minor), ino: raw.stx_ino };
        let modified_ns = nanoseconds(raw.stx_mtime);
        let changed_ns = nanoseconds(raw.stx_ctime);
        let stat = Stat {
            file_type: rustix::fs::FileType::from_raw_mode(u32::from(raw.stx_mode)).into(),
            size: raw.stx_size,
            mode: u32::from(raw.stx_mode) & 0o7777,
            uid: raw.stx_uid,
            gid: raw.stx_gid,
            links: u64::from(raw.stx_nlink),
            modified_ns,
            born_ns: has(StatxFlags::BTIME).then(|| nanoseconds(raw.stx_btime)),
            stamp: Stamp { id, size: raw.stx_size, modified_ns, changed_ns },
        };
        Self { stat, mount: has(StatxFlags::MNT_ID).then_some(raw.stx_mnt_id) }
    }
}

fn nanoseconds(time: StatxTimestamp) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}
