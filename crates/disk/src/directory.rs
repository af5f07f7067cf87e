//! An open directory. Every change of the workspace happens here: by parent handle and one name, so that no path is
//! resolved twice. Promises: no call follows a link, enters a mount that is not allowed, or names what is hidden.
//! Never joins strings to paths.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use path::Name;

use crate::{
    DiskError, ErrorKind, FileId, FileType, OpenFile, Stat,
    confines::{Confines, Held, duplicate},
    sys,
    sys::content,
};

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: Name,
    /// Its type, as the directory tells it.
    pub file_type: FileType,
}

/// An open directory beneath a root.
#[derive(Debug)]
pub struct Directory {
    place: OwnedFd,
    id: FileId,
    mount: Option<u64>,
    confines: Arc<Confines>,
}

impl Directory {
    pub(crate) fn from_held(held: Held, confines: Arc<Confines>) -> Result<Self, DiskError> {
        let held = held.need_directory()?;
        Ok(Self { id: held.meta.id(), mount: held.meta.mount, place: held.handle, confines })
    }

    pub(crate) fn place(&self) -> BorrowedFd<'_> {
        self.place.as_fd()
    }

    /// A place handle for one name, not followed.
    pub(crate) fn hold(&self, name: &Name) -> Result<Held, DiskError> {
        self.confines.child_of(self.place(), self.mount, name.as_bytes())
    }

    /// A handle that can be listed and synced, with a cursor of its own.
    pub(crate) fn readable(&self) -> Result<OwnedFd, DiskError> {
        sys::open_name(self.place(), b".", sys::LISTING, 0)
    }

    /// Refuses a name that stands for something hidden.
    pub(crate) fn refuse_hidden(&self, name: &Name) -> Result<(), DiskError> {
        if !self.confines.hides_anything() {
            return Ok(());
        }
        match sys::stat_name(self.place(), name.as_bytes()) {
            Ok(meta) => self.confines.refuse_hidden(meta.id()),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Which directory this is.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Whether a rename can go from one to the other: no rename crosses a mount, not even within one file system.
    pub fn shares_mount(&self, other: &Self) -> bool {
        self.mount.is_some() && self.mount == other.mount
    }

    /// What is known about the directory itself.
    pub fn stat_self(&self) -> Result<Stat, DiskError> {
        Ok(sys::stat_handle(self.place())?.stat)
    }

    /// A second handle for the same directory.
    pub fn try_clone(&self) -> Result<Self, DiskError> {
        let place = duplicate(self.place())?;
        Ok(Self { place, id: self.id, mount: self.mount, confines: Arc::clone(&self.confines) })
    }

    /// Everything in the directory, in the order of the file system, without what is hidden.
    pub fn list(&self) -> Result<Vec<Listed>, DiskError> {
        self.list_by(self.readable()?.as_fd())
    }

    /// Opens a directory in this one and lists it: the same as [`Directory::open_directory`] and [`Directory::list`],
    /// with one handle for both.
    pub fn enter(&self, name: &Name) -> Result<(Self, Vec<Listed>), DiskError> {
        match self.confines.open_child(self.place(), self.mount, name.as_bytes(), sys::LISTING) {
            Ok(held) => {
                let entered = Self::from_held(held, Arc::clone(&self.confines))?;
                let entries = entered.list_by(entered.place())?;
                Ok((entered, entries))
            }
            Err(error) if error.kind == ErrorKind::CrossMount => {
                let entered = self.open_directory(name)?;
                let entries = entered.list()?;
                Ok((entered, entries))
            }
            Err(error) => Err(error),
        }
    }

    /// Reads by this handle, whose cursor nobody else moves.
    fn list_by(&self, readable: BorrowedFd<'_>) -> Result<Vec<Listed>, DiskError> {
        let mut entries = Vec::new();
        sys::list(readable, |bytes, file_type, ino| {
            // The kernel gives only names that are one component.
            let Ok(name) = Name::new(bytes) else { return Ok(()) };
            let may_hide = self.confines.may_hide_inode(ino);
            if file_type != FileType::Unknown && !may_hide {
                entries.push(Listed { name, file_type });
                return Ok(());
            }
            match sys::stat_name(self.place(), bytes) {
                Ok(meta) if self.confines.refuse_hidden(meta.id()).is_err() => {}
                Ok(meta) => entries.push(Listed { name, file_type: meta.stat.file_type }),
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            Ok(())
        })?;
        Ok(entries)
    }

    /// What is known about a name; nothing when it is not there. Never follows a link.
    pub fn stat(&self, name: &Name) -> Result<Option<Stat>, DiskError> {
        match self.confines.stat_child(self.place(), self.mount, name.as_bytes()) {
            Ok(meta) => Ok(Some(meta.stat)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a directory in this one.
    pub fn open_directory(&self, name: &Name) -> Result<Self, DiskError> {
        Self::from_held(self.hold(name)?, Arc::clone(&self.confines))
    }

    /// Opens a regular file in this directory for reading.
    pub fn open_file(&self, name: &Name) -> Result<OpenFile, DiskError> {
        OpenFile::from_held(self.hold(name)?, || {
            sys::open_name(self.place(), name.as_bytes(), sys::READING, 0)
        })
    }

    /// Opens what a listing called a regular file, in one step instead of two: for looking through many files. Whatever
    /// else has come there meanwhile is opened without waiting, seen not to be a file, and never read.
    pub fn open_listed_file(&self, name: &Name) -> Result<OpenFile, DiskError> {
        match self.confines.open_child(self.place(), self.mount, name.as_bytes(), sys::READING) {
            Ok(held) => OpenFile::from_open(held),
            Err(error) if error.kind == ErrorKind::CrossMount => self.open_file(name),
            Err(error) => Err(error),
        }
    }

    /// The target of a link in this directory, as it is written.
    pub fn read_link(&self, name: &Name) -> Result<Vec<u8>, DiskError> {
        link_target(&self.hold(name)?)
    }

    /// Makes a directory; the process mask takes bits away from `mode`. Set-id bits are never set.
    pub fn make_directory(&self, name: &Name, mode: u32) -> Result<(), DiskError> {
        sys::make_directory(self.place(), name.as_bytes(), mode & 0o777)
    }

    /// Makes a link with this target, which is not looked at.
    pub fn make_link(&self, name: &Name, target: &[u8]) -> Result<(), DiskError> {
        sys::make_link(self.place(), name.as_bytes(), target)
    }

    /// Removes one name that is not a directory.
    pub fn remove_file(&self, name: &Name) -> Result<(), DiskError> {
        sys::unlink(self.place(), name.as_bytes())
    }

    /// Removes one empty directory.
    pub fn remove_directory(&self, name: &Name) -> Result<(), DiskError> {
        self.refuse_hidden(name)?;
        sys::remove_directory(self.place(), name.as_bytes())
    }

    /// Sets the permission bits of a file or directory. Set-id bits of files are cleared, never set; those of
    /// directories stay as they are.
    pub fn set_mode(&self, name: &Name, mode: u32) -> Result<(), DiskError> {
        let held = self.hold(name)?;
        let kept = match held.file_type() {
            FileType::File => 0,
            FileType::Directory => held.meta.stat.mode & 0o7000,
            FileType::Link => return Err(DiskError::new(ErrorKind::IsLink, "set mode")),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharDevice
            | FileType::BlockDevice
            | FileType::Unknown => return Err(DiskError::new(ErrorKind::NotRegular, "set mode")),
        };
        sys::set_mode_of_place(held.handle.as_fd(), kept | (mode & 0o777))
    }

    /// Makes the names in this directory durable.
    pub fn sync(&self) -> Result<(), DiskError> {
        content::sync_all(self.readable()?.as_fd())
    }
}

/// The target of a held link.
pub(crate) fn link_target(held: &Held) -> Result<Vec<u8>, DiskError> {
    match held.file_type() {
        FileType::Link => sys::read_link(held.handle.as_fd()),
        FileType::File
        | FileType::Directory
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharDevice
        | FileType::BlockDevice
        // Whoever asks has seen a link there.
        | FileType::Unknown => Err(DiskError::new(ErrorKind::Moved, "read link")),
    }
}
