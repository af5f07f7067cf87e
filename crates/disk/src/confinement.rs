//! Confines every file access to the open root directory. The kernel never follows a symbolic link, never leaves the
//! root, and never enters a hidden directory or a mount that is not allowed. Paths are resolved by the system call
//! `openat2`, or component by component on kernels without `openat2`; both give the same results.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{OFlags, ResolveFlags},
    io::Errno,
};
use stead_path::RelPath;

use crate::{DiskError, DiskErrorKind, FileType, InodeId, stat::StatWithMount, sys};

/// The method of path resolution: by the kernel or by this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathResolutionMethod {
    /// The kernel resolves paths if it has the system call `openat2`; otherwise this crate does. Opening the root fails
    /// if a seccomp filter denies `openat2`.
    #[default]
    Auto,
    /// The kernel resolves a whole path in one `openat2` call; opening the root fails on a kernel without `openat2`.
    Kernel,
    /// This crate resolves a path by opening one path component after the other.
    Walker,
}

impl PathResolutionMethod {
    /// The name of the path resolution method in reports and settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Kernel => "kernel",
            Self::Walker => "walker",
        }
    }
}

const RESOLVE_BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
const RESOLVE_BENEATH_ONE_MOUNT: ResolveFlags = RESOLVE_BENEATH.union(ResolveFlags::NO_XDEV);

const MOUNT_RETRIES_MAX: usize = 8;

/// Lets the kernel resolve and open a path without crossing a mount. `openat2` also reports a mount if a directory is
/// being moved out of the root, so the call is repeated.
fn open_on_one_mount(from: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, DiskError> {
    let mut tries = 0;
    loop {
        match sys::open_beneath(from, path, flags, RESOLVE_BENEATH_ONE_MOUNT) {
            Err(error) if error.kind == DiskErrorKind::CrossesMount && tries < MOUNT_RETRIES_MAX => tries += 1,
            other => return other,
        }
    }
}

#[derive(Debug)]
pub(crate) struct OPathFdWithStat {
    pub(crate) handle: OwnedFd,
    pub(crate) meta: StatWithMount,
}

impl OPathFdWithStat {
    pub(crate) fn from_handle(handle: OwnedFd) -> Result<Self, DiskError> {
        let meta = sys::stat_handle(handle.as_fd())?;
        Ok(Self { handle, meta })
    }

    pub(crate) fn try_clone(&self) -> Result<Self, DiskError> {
        let handle = rustix::io::fcntl_dupfd_cloexec(self.handle.as_fd(), 0);
        Ok(Self { handle: handle.map_err(|errno| DiskError::from_errno("dup", errno))?, meta: self.meta })
    }

    pub(crate) fn file_type(&self) -> FileType {
        self.meta.stat.file_type
    }

    fn ensure_directory_or(self, symlink_error: DiskErrorKind, step: &'static str) -> Result<Self, DiskError> {
        if self.file_type() == FileType::Directory {
            return Ok(self);
        }
        let is_symlink = self.file_type() == FileType::Symlink;
        Err(DiskError::new(if is_symlink { symlink_error } else { DiskErrorKind::NotDirectory }, step))
    }

    pub(crate) fn ensure_directory(self) -> Result<Self, DiskError> {
        self.ensure_directory_or(DiskErrorKind::IsSymlink, "open directory")
    }

    pub(crate) fn ensure_file(self) -> Result<Self, DiskError> {
        self.require_file().map(|()| self)
    }

    pub(crate) fn require_file(&self) -> Result<(), DiskError> {
        let kind = match self.file_type() {
            FileType::RegularFile => return Ok(()),
            FileType::Directory => DiskErrorKind::IsDirectory,
            FileType::Symlink => DiskErrorKind::IsSymlink,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => DiskErrorKind::NotRegularFile,
        };
        Err(DiskError::new(kind, "open file"))
    }
}

#[derive(Debug)]
pub(crate) struct ConfinedPathResolver {
    root: OPathFdWithStat,
    resolver: PathResolutionMethod,
    allowed_mounts: Vec<RelPath>,
    hidden_inodes: Vec<InodeId>,
}

impl ConfinedPathResolver {
    pub(crate) fn new(
        root: OPathFdWithStat,
        resolver: PathResolutionMethod,
        mut mounts: Vec<RelPath>,
        hidden: Vec<InodeId>,
    ) -> Result<Self, DiskError> {
        mounts.sort_by_key(RelPath::depth);
        let resolver = match resolver {
            PathResolutionMethod::Walker => PathResolutionMethod::Walker,
            // Only the error `ENOSYS` means that the kernel lacks `openat2`.
            PathResolutionMethod::Auto | PathResolutionMethod::Kernel => {
                match sys::open_beneath(root.handle.as_fd(), b".", sys::PATH_HANDLE_FLAGS, RESOLVE_BENEATH_ONE_MOUNT) {
                    Ok(_) => PathResolutionMethod::Kernel,
                    Err(error) if error.is_errno(Errno::NOSYS) && resolver == PathResolutionMethod::Auto => {
                        PathResolutionMethod::Walker
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        // Mounts cannot be detected without mount ids.
        if root.meta.mount_id.is_none() {
            return Err(DiskError::new(DiskErrorKind::Unsupported, "mount id"));
        }
        let confines = Self { root, resolver, allowed_mounts: mounts, hidden_inodes: hidden };
        confines.refuse_hidden_inode(confines.root.meta.id())?;
        Ok(confines)
    }

    pub(crate) fn root(&self) -> &OPathFdWithStat {
        &self.root
    }

    pub(crate) fn resolver(&self) -> PathResolutionMethod {
        self.resolver
    }

    pub(crate) fn allowed_mounts(&self) -> &[RelPath] {
        &self.allowed_mounts
    }

    pub(crate) fn hides_anything(&self) -> bool {
        !self.hidden_inodes.is_empty()
    }

    /// The inode number of a file is compared with the hidden directories without the device number.
    pub(crate) fn may_hide_inode(&self, ino: u64) -> bool {
        self.hidden_inodes.iter().any(|id| id.ino == ino)
    }

    pub(crate) fn refuse_hidden_inode(&self, id: InodeId) -> Result<(), DiskError> {
        match self.hidden_inodes.contains(&id) {
            true => Err(DiskError::new(DiskErrorKind::Hidden, "resolve")),
            false => Ok(()),
        }
    }

    /// Opening a canonical path fails if a component before the last one has become a symbolic link.
    pub(crate) fn open(&self, path: &RelPath) -> Result<OPathFdWithStat, DiskError> {
        let opened = match self.resolver {
            PathResolutionMethod::Walker => return self.open_by_walking(path),
            PathResolutionMethod::Kernel | PathResolutionMethod::Auto => {
                self.open_in_kernel(path, sys::PATH_HANDLE_FLAGS)
            }
        };
        match opened {
            Ok(handle) => self.check_not_hidden(path, handle),
            Err(error) if error.is_errno(Errno::LOOP) => Err(error.with_kind(DiskErrorKind::ChangedConcurrently)),
            Err(error) => {
                // A path below a hidden directory is reported as hidden, whether or not it exists.
                if self.hides_anything() {
                    self.refuse_hidden_components(path)?;
                }
                Err(error)
            }
        }
    }

    /// Fails if the file of `handle`, or a directory above the file, is hidden. A hidden file is recognised by the
    /// inode of its open handle, because its name may now refer to another file.
    pub(crate) fn check_not_hidden(&self, path: &RelPath, handle: OwnedFd) -> Result<OPathFdWithStat, DiskError> {
        if self.hides_anything() {
            self.refuse_hidden_prefixes(path.as_bytes(), separator_positions(path.as_bytes()))?;
        }
        let path_handle = OPathFdWithStat::from_handle(handle)?;
        self.refuse_hidden_inode(path_handle.meta.id())?;
        Ok(path_handle)
    }

    pub(crate) fn open_in_kernel(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, DiskError> {
        match self.deepest_allowed_mount(path)? {
            None => open_on_one_mount(self.root.handle.as_fd(), path.as_bytes(), flags),
            Some((anchor, rest)) => open_on_one_mount(anchor.handle.as_fd(), rest.as_bytes(), flags),
        }
    }

    fn open_by_walking(&self, path: &RelPath) -> Result<OPathFdWithStat, DiskError> {
        match self.deepest_allowed_mount(path)? {
            None => self.walk_from(&self.root, path),
            Some((anchor, rest)) => self.walk_from(&anchor, &rest),
        }
    }

    fn walk_from(&self, start: &OPathFdWithStat, path: &RelPath) -> Result<OPathFdWithStat, DiskError> {
        let mut current = start.try_clone()?;
        for name in path.components() {
            current = current.ensure_directory_or(DiskErrorKind::ChangedConcurrently, "walk")?;
            current = self.open_child(&current, name, sys::PATH_HANDLE_FLAGS)?;
        }
        Ok(current)
    }

    /// Opens an `O_PATH` handle for an entry of `parent`; the entry may be the top of an allowed mount.
    pub(crate) fn child(&self, parent: &OPathFdWithStat, name: &[u8]) -> Result<OPathFdWithStat, DiskError> {
        match self.open_child(parent, name, sys::PATH_HANDLE_FLAGS) {
            Err(error) if error.kind == DiskErrorKind::CrossesMount && !self.allowed_mounts.is_empty() => {
                let crossed = self.open_child_across_mounts(parent, name)?;
                if self.is_allowed_mount(&crossed.meta) { Ok(crossed) } else { Err(error) }
            }
            other => other,
        }
    }

    /// Opening a directory entry fails if the entry is hidden or on another mount.
    pub(crate) fn open_child(
        &self,
        parent: &OPathFdWithStat,
        name: &[u8],
        flags: OFlags,
    ) -> Result<OPathFdWithStat, DiskError> {
        let from = parent.handle.as_fd();
        let handle = match self.resolver {
            PathResolutionMethod::Walker => sys::open_name(from, name, flags, 0)?,
            PathResolutionMethod::Kernel | PathResolutionMethod::Auto => open_on_one_mount(from, name, flags)?,
        };
        let path_handle = OPathFdWithStat::from_handle(handle)?;
        if path_handle.meta.mount_id != parent.meta.mount_id {
            return Err(DiskError::new(DiskErrorKind::CrossesMount, "open"));
        }
        self.refuse_hidden_inode(path_handle.meta.id())?;
        Ok(path_handle)
    }

    /// The caller must check whether the mount of the opened directory entry is allowed.
    fn open_child_across_mounts(&self, parent: &OPathFdWithStat, name: &[u8]) -> Result<OPathFdWithStat, DiskError> {
        let parent = parent.handle.as_fd();
        let handle = match self.resolver {
            PathResolutionMethod::Walker => sys::open_name(parent, name, sys::PATH_HANDLE_FLAGS, 0)?,
            PathResolutionMethod::Kernel | PathResolutionMethod::Auto => {
                sys::open_beneath(parent, name, sys::PATH_HANDLE_FLAGS, RESOLVE_BENEATH)?
            }
        };
        let path_handle = OPathFdWithStat::from_handle(handle)?;
        self.refuse_hidden_inode(path_handle.meta.id())?;
        Ok(path_handle)
    }

    pub(crate) fn stat_child(&self, parent: &OPathFdWithStat, name: &[u8]) -> Result<StatWithMount, DiskError> {
        let meta = sys::stat_name(parent.handle.as_fd(), name)?;
        if meta.mount_id != parent.meta.mount_id && !self.is_allowed_mount(&meta) {
            return Err(DiskError::new(DiskErrorKind::CrossesMount, "stat"));
        }
        self.refuse_hidden_inode(meta.id())?;
        Ok(meta)
    }

    fn deepest_allowed_mount(&self, path: &RelPath) -> Result<Option<(OPathFdWithStat, RelPath)>, DiskError> {
        let mut anchor: Option<(OPathFdWithStat, RelPath)> = None;
        let mut passed = RelPath::root();
        for mount in self.allowed_mounts.iter().filter(|mount| !mount.is_root() && path.is_within(mount)) {
            let Some((parent, name)) = mount.split() else { continue };
            let start = anchor.as_ref().map_or(&self.root, |(path_handle, _)| path_handle);
            let between = parent.strip_prefix(&passed).unwrap_or_default();
            let parent = match self.resolver {
                PathResolutionMethod::Walker => self.walk_from(start, &between)?,
                PathResolutionMethod::Kernel | PathResolutionMethod::Auto => {
                    let (from, between) = (start.handle.as_fd(), between.as_bytes());
                    let flags = sys::PATH_HANDLE_FLAGS;
                    OPathFdWithStat::from_handle(sys::open_beneath(from, between, flags, RESOLVE_BENEATH_ONE_MOUNT)?)?
                }
            };
            let path_handle = self.open_child_across_mounts(&parent, name.as_bytes())?;
            if path_handle.file_type() == FileType::Symlink && path != mount {
                return Err(
                    DiskError::from_errno("resolve mount", Errno::LOOP).with_kind(DiskErrorKind::ChangedConcurrently)
                );
            }
            passed = mount.clone();
            anchor = Some((path_handle, path.strip_prefix(mount).unwrap_or_default()));
        }
        Ok(anchor)
    }

    /// Whether a file is the top of a mount that is currently at an allowed mount point.
    fn is_allowed_mount(&self, meta: &StatWithMount) -> bool {
        self.allowed_mounts.iter().any(|mount| match self.deepest_allowed_mount(mount) {
            Ok(Some((path_handle, _))) => {
                path_handle.meta.mount_id == meta.mount_id && path_handle.meta.id() == meta.id()
            }
            Ok(None) | Err(_) => false,
        })
    }

    /// The components after an unreadable path component are not checked, because nothing can reach them.
    pub(crate) fn refuse_hidden_components(&self, path: &RelPath) -> Result<(), DiskError> {
        let bytes = path.as_bytes();
        self.refuse_hidden_prefixes(bytes, separator_positions(bytes).chain((!bytes.is_empty()).then_some(bytes.len())))
    }

    /// Fails if a prefix of the path is a hidden directory; the lengths of the checked prefixes are in `ends`.
    fn refuse_hidden_prefixes(&self, bytes: &[u8], ends: impl Iterator<Item = usize>) -> Result<(), DiskError> {
        for end in ends {
            match sys::stat_name(self.root.handle.as_fd(), &bytes[..end]) {
                Ok(meta) => self.refuse_hidden_inode(meta.id())?,
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}

fn separator_positions(path: &[u8]) -> impl Iterator<Item = usize> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at)
}
