//! New content, complete and with its attributes, under a temporary name in the directory where it will live. Owns
//! temporary names and the copying of bytes. Promises: a staged file was made exclusively, is never reached through a
//! link, and is gone again when staging fails. Never syncs by itself and never touches the name it will take.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use path::Name;
use rustix::io::Errno;

use crate::{
    Attribute, Attributes, Directory, DiskError, ErrorKind, FileId, OpenFile, Stamp, attributes,
    open_file::{CHUNK_BYTES, hash_up_to},
    random::temp_name,
    sys,
    sys::content,
};

/// How every temporary name begins.
pub const TEMP_PREFIX: &str = ".stead~";
/// How often another name is tried when one is taken.
const NAME_TRIES_MAX: u32 = 8;
/// Most bytes asked of one copy inside the kernel.
const COPY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The mode of a file while its attributes are not settled.
const PRIVATE_MODE: u32 = 0o600;

/// Where new content comes from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// From memory.
    Bytes(&'a [u8]),
    /// From an open file: blocks are shared where the file system can, else copied.
    File(&'a OpenFile),
}

/// New content under a temporary name. The handle stays open, so that the file can be synced and recognised.
#[derive(Debug)]
pub struct Staged {
    name: Name,
    file: OwnedFd,
    id: FileId,
    born_ns: Option<i128>,
    size: u64,
    lost: Vec<Attribute>,
}

impl Staged {
    fn look(name: Name, file: OwnedFd, lost: Vec<Attribute>) -> Result<Self, DiskError> {
        let stat = sys::stat_handle(file.as_fd())?.stat;
        Ok(Self { name, file, id: stat.stamp.id, born_ns: stat.born_ns, size: stat.size, lost })
    }

    /// The temporary name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Which file it is, also after it was renamed.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// When it was made, where the file system knows.
    pub fn born_ns(&self) -> Option<i128> {
        self.born_ns
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What could not be taken over from the file it is like.
    pub fn lost(&self) -> &[Attribute] {
        &self.lost
    }

    /// Its stamp now; a rename changes it.
    pub fn stamp(&self) -> Result<Stamp, DiskError> {
        Ok(sys::stat_handle(self.file.as_fd())?.stat.stamp)
    }

    /// The sha256 of the staged content and how many bytes went into it.
    pub fn hash(&self) -> Result<([u8; 32], u64), DiskError> {
        hash_up_to(self.file.as_fd(), self.size)
    }

    /// Writes more at the end, for content that comes in pieces. Only for what was staged from bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        content::write_all_at(self.file.as_fd(), bytes, self.size)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Makes the content durable. `Denied` for an adopted file that we may not read.
    pub fn sync(&self) -> Result<(), DiskError> {
        content::sync_content(self.file.as_fd()).map_err(|error| {
            if error.is_errno(Errno::BADF) { error.seen_as(ErrorKind::Denied) } else { error }
        })
    }

    /// Removes the temporary name, whatever file it stands for by now.
    pub fn discard(self, directory: &Directory) -> Result<(), DiskError> {
        match directory.remove_file(&self.name) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

impl Directory {
    /// Puts new content under a temporary name in this directory.
    pub fn stage(&self, content: Source<'_>, attributes: Attributes<'_>) -> Result<Staged, DiskError> {
        let mode = match attributes {
            Attributes::New { mode } => mode & 0o777,
            Attributes::Like(_) => PRIVATE_MODE,
        };
        let (name, file) = self.make_temp(mode)?;
        let filled = fill(file.as_fd(), content).and_then(|()| match attributes {
            Attributes::New { .. } => Ok(Vec::new()),
            Attributes::Like(model) => attributes::take_over(file.as_fd(), model),
        });
        let staged = filled.and_then(|lost| Staged::look(name.clone(), file, lost));
        if staged.is_err() {
            // The first failure is the one to tell; a leftover is recognised by its prefix.
            self.remove_file(&name).unwrap_or_default();
        }
        staged
    }

    /// Finds a temporary file again by its recorded name; nothing when it is gone.
    pub fn adopt_staged(&self, name: &Name) -> Result<Option<Staged>, DiskError> {
        let held = match self.hold(name) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            other => other?.need_file()?,
        };
        let id = held.meta.id();
        let file = match sys::reopen(held.handle.as_fd(), sys::READING) {
            // An old file under the temporary name may be closed to us; it can still be recognised and moved.
            Err(error) if error.kind == ErrorKind::Denied => held.handle,
            other => other?,
        };
        let staged = Staged::look(name.clone(), file, Vec::new())?;
        if staged.id == id { Ok(Some(staged)) } else { Err(DiskError::new(ErrorKind::Moved, "adopt staged")) }
    }

    /// An empty file under a name that was free.
    fn make_temp(&self, mode: u32) -> Result<(Name, OwnedFd), DiskError> {
        let mut tries = 1;
        loop {
            let name = temp_name()?;
            match sys::open_name(self.place(), name.as_bytes(), sys::MAKING, mode) {
                Err(error) if error.kind == ErrorKind::Exists && tries < NAME_TRIES_MAX => tries += 1,
                other => return Ok((name, other?)),
            }
        }
    }
}

/// Writes the content to an empty file.
fn fill(to: BorrowedFd<'_>, source: Source<'_>) -> Result<(), DiskError> {
    match source {
        Source::Bytes(bytes) => content::write_all_at(to, bytes, 0),
        Source::File(from) => copy(from, to),
    }
}

/// Shares blocks, copies in the kernel, or copies by hand; at most the size seen when `from` was opened.
fn copy(from: &OpenFile, to: BorrowedFd<'_>) -> Result<(), DiskError> {
    let size = from.stat().size;
    if size == 0 || content::clone_whole(from.handle(), to).is_ok() {
        return Ok(());
    }
    let mut offset = 0;
    while offset < size {
        let wanted = usize::try_from(size - offset).unwrap_or(COPY_BYTES_MAX).min(COPY_BYTES_MAX);
        match content::copy_range(from.handle(), to, offset, wanted) {
            Ok(0) => break,
            Ok(count) => offset += count as u64,
            // No space is no space by hand too; anything else may be the call's own limits.
            Err(error) if matches!(error.kind, ErrorKind::NoSpace | ErrorKind::Quota) => return Err(error),
            Err(_) => break,
        }
    }
    copy_by_hand(from, to, offset, size)
}

fn copy_by_hand(from: &OpenFile, to: BorrowedFd<'_>, start: u64, size: u64) -> Result<(), DiskError> {
    let mut offset = start;
    let mut buffer = Vec::new();
    while offset < size {
        let wanted = usize::try_from(size - offset).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        buffer.resize(wanted, 0);
        let count = content::read_at(from.handle(), &mut buffer, offset)?;
        if count == 0 {
            break;
        }
        content::write_all_at(to, &buffer[..count], offset)?;
        offset += count as u64;
    }
    Ok(())
}
