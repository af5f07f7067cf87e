//! What may be opened, and how. Owns the root handle and the rules that hold for everything opened through it.
//! Promises: the kernel never follows a link for us, never goes above the handle it starts from, and never enters a
//! mount that was not allowed or a directory that is hidden. Two ways give the same answers: `openat2`, and a walk
//! component by component for kernels without it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use path::RelPath;
use rustix::{
    fs::{OFlags, ResolveFlags},
    io::Errno,
};

use crate::{DiskError, ErrorKind, FileId, FileType, stat::Meta, sys};

/// How paths are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resolver {
    /// In the kernel where it has the call, else by walking. A filter that forbids the call is a refusal, not a missing
    /// call: whoever knows such a filter asks for the walker.
    #[default]
    Auto,
    /// In the kernel (`openat2`); refused where it cannot.
    Kernel,
    /// One component at a time.
    Walker,
}

/// Beneath the start, and no link anywhere.
const INSIDE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
/// The same, and no mount on the way.
const INSIDE_ONE_MOUNT: ResolveFlags = INSIDE.union(ResolveFlags::NO_XDEV);

/// How often a kernel resolution that seems to meet a mount is tried again.
const CROSSINGS_MAX: usize = 8;

/// One kernel resolution that stays on its mount. The kernel gives the same error for a mount and for a directory that
/// is moved out of the root at this moment: a mount is still there at the next try.
fn open_on_one_mount(from: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, DiskError> {
    let mut tries = 0;
    loop {
        match sys::open_beneath(from, path, flags, INSIDE_ONE_MOUNT) {
            Err(error) if error.kind == ErrorKind::CrossMount && tries < CROSSINGS_MAX => tries += 1,
            other => return other,
        }
    }
}

/// A place handle and what it was seen to be.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) handle: OwnedFd,
    pub(crate) meta: Meta,
}

impl Held {
    pub(crate) fn look(handle: OwnedFd) -> Result<Self, DiskError> {
        let meta = sys::stat_handle(handle.as_fd())?;
        Ok(Self { handle, meta })
    }

    pub(crate) fn file_type(&self) -> FileType {
        self.meta.stat.file_type
    }

    /// Says no unless this is a directory.
    pub(crate) fn need_directory(self) -> Result<Self, DiskError> {
        match self.file_type() {
            FileType::Directory => Ok(self),
            FileType::Link => Err(DiskError::new(ErrorKind::IsLink, "open directory")),
            FileType::File
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharDevice
            | FileType::BlockDevice
            | FileType::Unknown => Err(DiskError::new(ErrorKind::NotDirectory, "open directory")),
        }
    }

    /// Says no unless this is a regular file.
    pub(crate) fn need_file(self) -> Result<Self, DiskError> {
        let kind = match self.file_type() {
            FileType::File => return Ok(self),
            FileType::Directory => ErrorKind::IsDirectory,
            FileType::Link => ErrorKind::IsLink,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharDevice
            | FileType::BlockDevice
            | FileType::Unknown => ErrorKind::NotRegular,
        };
        Err(DiskError::new(kind, "open file"))
    }
}

/// Whether a step may enter another mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mounts {
    Stay,
    Cross,
}

/// The root and its rules.
#[derive(Debug)]
pub(crate) struct Confines {
    root: Held,
    resolver: Resolver,
    /// Mount points that may be crossed, shallow first.
    mounts: Vec<RelPath>,
    hidden: Vec<FileId>,
}

impl Confines {
    pub(crate) fn new(
        root: Held,
        resolver: Resolver,
        mut mounts: Vec<RelPath>,
        hidden: Vec<FileId>,
    ) -> Result<Self, DiskError> {
        mounts.sort_by_key(RelPath::depth);
        let resolver = match resolver {
            Resolver::Walker => Resolver::Walker,
            // Asked once: only "no such system call" means that the kernel cannot. A refusal is a refusal.
            Resolver::Auto | Resolver::Kernel => {
                match sys::open_beneath(root.handle.as_fd(), b".", sys::PLACE, INSIDE_ONE_MOUNT) {
                    Ok(_) => Resolver::Kernel,
                    Err(error) if error.is_errno(Errno::NOSYS) && resolver == Resolver::Auto => {
                        Resolver::Walker
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        // Without a mount id the walk could not tell where a mount begins.
        if root.meta.mount.is_none() {
            return Err(DiskError::new(ErrorKind::Unsupported, "mount id"));
        }
        let confines = Self { root, resolver, mounts, hidden };
        confines.refuse_hidden(confines.root.meta.id())?;
        Ok(confines)
    }

    pub(crate) fn root(&self) -> &Held {
        &self.root
    }

    pub(crate) fn resolver(&self) -> Resolver {
        self.resolver
    }

    pub(crate) fn mounts(&self) -> &[RelPath] {
        &self.mounts
    }

    pub(crate) fn hides_anything(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// Whether some hidden directory has this inode number, on whatever device.
    pub(crate) fn may_hide_inode(&self, ino: u64) -> bool {
        self.hidden.iter().any(|id| id.ino == ino)
    }

    pub(crate) fn refuse_hidden(&self, id: FileId) -> Result<(), DiskError> {
        match self.hidden.contains(&id) {
            true => Err(DiskError::new(ErrorKind::Hidden, "resolve")),
            false => Ok(()),
        }
    }

    /// A place handle for a canonical path. A link as the last component is held, not followed; a link before that
    /// means that the path is no longer canonical.
    pub(crate) fn open(&self, path: &RelPath) -> Result<Held, DiskError> {
        let opened = match self.resolver {
            Resolver::Walker => return self.open_by_walking(path),
            Resolver::Kernel | Resolver::Auto => self.open_in_kernel(path, sys::PLACE),
        };
        match opened {
            Ok(handle) => self.unhidden(path, handle),
            Err(error) if error.is_errno(Errno::LOOP) => Err(error.seen_as(ErrorKind::Moved)),
            Err(error) => {
                // What is hidden says so, whether or not something lies beneath it.
                if self.hides_anything() {
                    self.refuse_hidden_on_the_way(path)?;
                }
                Err(error)
            }
        }
    }

    /// What was opened at a path, unless it is hidden or something on the way is. Of what is open the handle tells, and
    /// not the name once more.
    pub(crate) fn unhidden(&self, path: &RelPath, handle: OwnedFd) -> Result<Held, DiskError> {
        if self.hides_anything() {
            self.refuse_hidden_among(path.as_bytes(), separators(path.as_bytes()))?;
        }
        let held = Held::look(handle)?;
        self.refuse_hidden(held.meta.id())?;
        Ok(held)
    }

    /// One kernel resolution of a whole path.
    pub(crate) fn open_in_kernel(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, DiskError> {
        match self.anchor(path)? {
            None => open_on_one_mount(self.root.handle.as_fd(), path.as_bytes(), flags),
            Some((anchor, rest)) => open_on_one_mount(anchor.handle.as_fd(), rest.as_bytes(), flags),
        }
    }

    fn open_by_walking(&self, path: &RelPath) -> Result<Held, DiskError> {
        match self.anchor(path)? {
            None => self.walk(&self.root, path),
            Some((anchor, rest)) => self.walk(&anchor, &rest),
        }
    }

    fn walk(&self, start: &Held, path: &RelPath) -> Result<Held, DiskError> {
        let mut current = Held { handle: duplicate(start.handle.as_fd())?, meta: start.meta };
        for name in path.components() {
            match current.file_type() {
                FileType::Directory => {}
                FileType::Link => return Err(DiskError::new(ErrorKind::Moved, "walk")),
                FileType::File
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharDevice
                | FileType::BlockDevice
                | FileType::Unknown => return Err(DiskError::new(ErrorKind::NotDirectory, "walk")),
            }
            current = self.step(&current, name, Mounts::Stay)?;
        }
        Ok(current)
    }

    /// One name further down, without following it; crosses into allowed mounts.
    pub(crate) fn child(&self, parent: &Held, name: &[u8]) -> Result<Held, DiskError> {
        self.child_of(parent.handle.as_fd(), parent.meta.mount, name)
    }

    /// The same for a bare handle on a known mount.
    pub(crate) fn child_of(
        &self,
        parent: BorrowedFd<'_>,
        mount: Option<u64>,
        name: &[u8],
    ) -> Result<Held, DiskError> {
        match self.step_from(parent, mount, name, Mounts::Stay) {
            Err(error) if error.kind == ErrorKind::CrossMount && !self.mounts.is_empty() => {
                let crossed = self.step_from(parent, mount, name, Mounts::Cross)?;
                if self.is_allowed_mount(&crossed.meta) { Ok(crossed) } else { Err(error) }
            }
            other => other,
        }
    }

    /// One name further down on the same mount, opened in earnest and then looked at. Never follows a link.
    pub(crate) fn open_child(
        &self,
        parent: BorrowedFd<'_>,
        mount: Option<u64>,
        name: &[u8],
        flags: OFlags,
    ) -> Result<Held, DiskError> {
        let held = match self.resolver {
            Resolver::Walker => Held::look(sys::open_name(parent, name, flags, 0)?)?,
            Resolver::Kernel | Resolver::Auto => Held::look(open_on_one_mount(parent, name, flags)?)?,
        };
        if held.meta.mount != mount {
            return Err(DiskError::new(ErrorKind::CrossMount, "open"));
        }
        self.refuse_hidden(held.meta.id())?;
        Ok(held)
    }

    /// What is known about one name; the same rules as [`Confines::child_of`], in one call.
    pub(crate) fn stat_child(
        &self,
        parent: BorrowedFd<'_>,
        mount: Option<u64>,
        name: &[u8],
    ) -> Result<Meta, DiskError> {
        let meta = sys::stat_name(parent, name)?;
        if meta.mount != mount && !self.is_allowed_mount(&meta) {
            return Err(DiskError::new(ErrorKind::CrossMount, "stat"));
        }
        self.refuse_hidden(meta.id())?;
        Ok(meta)
    }

    fn step(&self, parent: &Held, name: &[u8], mounts: Mounts) -> Result<Held, DiskError> {
        self.step_from(parent.handle.as_fd(), parent.meta.mount, name, mounts)
    }

    fn step_from(
        &self,
        parent: BorrowedFd<'_>,
        mount: Option<u64>,
        name: &[u8],
        mounts: Mounts,
    ) -> Result<Held, DiskError> {
        let held = match (self.resolver, mounts) {
            (Resolver::Walker, _) => Held::look(sys::open_name(parent, name, sys::PLACE, 0)?)?,
            (Resolver::Kernel | Resolver::Auto, Mounts::Stay) => {
                Held::look(open_on_one_mount(parent, name, sys::PLACE)?)?
            }
            (Resolver::Kernel | Resolver::Auto, Mounts::Cross) => {
                Held::look(sys::open_beneath(parent, name, sys::PLACE, INSIDE)?)?
            }
        };
        if mounts == Mounts::Stay && held.meta.mount != mount {
            return Err(DiskError::new(ErrorKind::CrossMount, "walk"));
        }
        self.refuse_hidden(held.meta.id())?;
        Ok(held)
    }

    /// The deepest allowed mount point above a path, and the rest of the path below it.
    fn anchor(&self, path: &RelPath) -> Result<Option<(Held, RelPath)>, DiskError> {
        let mut anchor: Option<(Held, RelPath)> = None;
        let mut passed = RelPath::root();
        for mount in self.mounts.iter().filter(|mount| !mount.is_root() && path.is_within(mount)) {
            let Some((parent, name)) = mount.split() else { continue };
            let start = anchor.as_ref().map_or(&self.root, |(held, _)| held);
            let between = parent.below(&passed).unwrap_or_default();
            let parent = match self.resolver {
                Resolver::Walker => self.walk(start, &between)?,
                Resolver::Kernel | Resolver::Auto => {
                    let (from, flags) = (start.handle.as_fd(), INSIDE_ONE_MOUNT);
                    Held::look(sys::open_beneath(from, between.as_bytes(), sys::PLACE, flags)?)?
                }
            };
            let held = self.step(&parent, name.as_bytes(), Mounts::Cross)?;
            if held.file_type() == FileType::Link && path != mount {
                return Err(DiskError::from_errno("resolve mount", Errno::LOOP).seen_as(ErrorKind::Moved));
            }
            passed = mount.clone();
            anchor = Some((held, path.below(mount).unwrap_or_default()));
        }
        Ok(anchor)
    }

    /// Whether this is one of the allowed mount points as they are mounted now.
    fn is_allowed_mount(&self, meta: &Meta) -> bool {
        self.mounts.iter().any(|mount| match self.anchor(mount) {
            Ok(Some((held, _))) => held.meta.mount == meta.mount && held.meta.id() == meta.id(),
            Ok(None) | Err(_) => false,
        })
    }

    /// Compares every directory on the way, and the last name, with what is hidden. Ends at the first name that cannot
    /// be looked at: nothing beyond it can be reached either.
    pub(crate) fn refuse_hidden_on_the_way(&self, path: &RelPath) -> Result<(), DiskError> {
        let bytes = path.as_bytes();
        self.refuse_hidden_among(bytes, separators(bytes).chain((!bytes.is_empty()).then_some(bytes.len())))
    }

    /// The same for the beginnings of a path that end here.
    fn refuse_hidden_among(&self, bytes: &[u8], ends: impl Iterator<Item = usize>) -> Result<(), DiskError> {
        for end in ends {
            match sys::stat_name(self.root.handle.as_fd(), &bytes[..end]) {
                Ok(meta) => self.refuse_hidden(meta.id())?,
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}

/// Where the names of a path end, but the last.
fn separators(path: &[u8]) -> impl Iterator<Item = usize> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at)
}

/// A second handle for the same place.
pub(crate) fn duplicate(handle: BorrowedFd<'_>) -> Result<OwnedFd, DiskError> {
    rustix::io::fcntl_dupfd_cloexec(handle, 0).map_err(|errno| DiskError::from_errno("dup", errno))
}
