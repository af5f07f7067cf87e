//! Bytes kept by content: one file per sha256 in the state directory, spread over 256 directories. Promises: a blob
//! under its name was complete when it was put there. Never trusts a copy of a file that may change: its hash is taken
//! again. After a power cut a blob that was put with [`Durable::Later`] may be torn, so readers compare the hash.

use std::os::fd::AsFd;

use path::{Name, RelPath};

use crate::{
    Attributes, Directory, DiskError, ErrorKind, OpenFile, Over, Source, Staged, StateDirectory,
    state::bad_name, sys, sys::content,
};

/// The directory that holds the blobs.
const BLOBS: &str = "blobs";
/// Characters of a digest that name the directory of a blob.
const FAN_OUT_CHARACTERS: usize = 2;
/// Characters of a sha256 in hexadecimal.
const DIGEST_CHARACTERS: usize = 64;
/// The mode of a blob: written once.
const BLOB_MODE: u32 = 0o400;

/// When a blob has to survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// Before the call returns.
    Now,
    /// When the file system is synced.
    Later,
}

/// Where a blob lives.
struct Slot {
    fan: String,
    name: Name,
}

impl Slot {
    fn of(digest_hex: &str) -> Result<Self, DiskError> {
        let is_digest = digest_hex.len() == DIGEST_CHARACTERS
            && digest_hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_digest {
            return Err(bad_name());
        }
        let name = Name::new(digest_hex.as_bytes()).map_err(|_| bad_name())?;
        Ok(Self { fan: digest_hex[..FAN_OUT_CHARACTERS].to_owned(), name })
    }

    /// Its directory, made when it is missing.
    fn directory(&self, state: &StateDirectory) -> Result<Directory, DiskError> {
        state.directory(&format!("{BLOBS}/{}", self.fan))
    }

    /// Its directory if it is there.
    fn existing(&self, state: &StateDirectory) -> Result<Option<Directory>, DiskError> {
        state.existing_directory(&format!("{BLOBS}/{}", self.fan))
    }
}

impl StateDirectory {
    /// Keeps bytes under their sha256. A blob that is there already stays. `Moved` when the bytes of a file do not have
    /// that hash (any more).
    pub fn put_blob(&self, digest_hex: &str, source: Source<'_>, durable: Durable) -> Result<(), DiskError> {
        let slot = Slot::of(digest_hex)?;
        let directory = slot.directory(self)?;
        if directory.stat(&slot.name)?.is_some() {
            return settle(self, &directory, &slot.name, durable);
        }
        let staged = directory.stage(source, Attributes::New { mode: BLOB_MODE })?;
        let placed = check(&staged, source, digest_hex).and_then(|()| {
            if durable == Durable::Now {
                staged.sync()?;
            }
            directory.place_new(&staged, &slot.name)
        });
        match placed {
            Ok(()) => sync_names(self, &directory, durable),
            Err(error) => {
                staged.discard(&directory).unwrap_or_default();
                if error.kind == ErrorKind::Exists {
                    settle(self, &directory, &slot.name, durable)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Turns a file into a blob and takes its name away from `from`. It is moved where it can be; copied when it lies
    /// on another mount or has other names, through which it could be changed.
    pub fn adopt_blob(&self, digest_hex: &str, from: &Directory, name: &Name) -> Result<(), DiskError> {
        let slot = Slot::of(digest_hex)?;
        let directory = slot.directory(self)?;
        let held = from.hold(name)?.need_file()?;
        if held.meta.stat.links > 1 {
            return self.copy_then_unlink(digest_hex, from, name);
        }
        match from.rename(name, &directory, &slot.name, Over::Refuse) {
            Ok(()) => {
                // Best effort: a file of another owner keeps its mode, behind a directory that is closed anyway.
                sys::set_mode_of_place(held.handle.as_fd(), BLOB_MODE).unwrap_or_default();
                Ok(())
            }
            Err(error) if error.kind == ErrorKind::Exists => from.remove_file(name),
            Err(error) if matches!(error.kind, ErrorKind::CrossMount | ErrorKind::Unsupported) => {
                self.copy_then_unlink(digest_hex, from, name)
            }
            Err(error) => Err(error),
        }
    }

    fn copy_then_unlink(&self, digest_hex: &str, from: &Directory, name: &Name) -> Result<(), DiskError> {
        self.put_blob(digest_hex, Source::File(&from.open_file(name)?), Durable::Later)?;
        from.remove_file(name)
    }

    /// Opens a blob; nothing when it is not there.
    pub fn open_blob(&self, digest_hex: &str) -> Result<Option<OpenFile>, DiskError> {
        let slot = Slot::of(digest_hex)?;
        let Some(directory) = slot.existing(self)? else { return Ok(None) };
        match directory.open_file(&slot.name) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    /// Removes a blob; false when it was not there.
    pub fn remove_blob(&self, digest_hex: &str) -> Result<bool, DiskError> {
        let slot = Slot::of(digest_hex)?;
        let Some(directory) = slot.existing(self)? else { return Ok(false) };
        match directory.remove_file(&slot.name) {
            Ok(()) => Ok(true),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// A file may have changed while it was copied; bytes in memory cannot.
fn check(staged: &Staged, source: Source<'_>, digest_hex: &str) -> Result<(), DiskError> {
    match source {
        Source::Bytes(_) => Ok(()),
        Source::File(_) => {
            let (digest, _) = staged.hash()?;
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            if hex == digest_hex { Ok(()) } else { Err(DiskError::new(ErrorKind::Moved, "put blob")) }
        }
    }
}

/// A blob that is there may have been put to be durable later.
fn settle(
    state: &StateDirectory,
    directory: &Directory,
    name: &Name,
    durable: Durable,
) -> Result<(), DiskError> {
    if durable == Durable::Now {
        content::sync_content(directory.open_file(name)?.handle())?;
    }
    sync_names(state, directory, durable)
}

/// Makes the name of a blob durable, and the directories that lead to it.
fn sync_names(state: &StateDirectory, directory: &Directory, durable: Durable) -> Result<(), DiskError> {
    if durable == Durable::Later {
        return Ok(());
    }
    directory.sync()?;
    state.directory(BLOBS)?.sync()?;
    state.root().open_directory(&RelPath::root())?.sync()
}
