//! A directory to throw away, with everything a recording puts there. Owns the fixture and nothing else: every touch
//! goes through handles beneath the directory it made, and the directory is removed at the end.

use std::path::{Path, PathBuf};

use disk::{Attributes, Directory, DiskError, ErrorKind, FileType, Last, Root, RootOptions, Source};
use path::{Name, RelPath};

use crate::show::Problem;

/// How the directory is called, before what tells it apart.
const PREFIX: &str = "stead-replay-";
/// The part that recordings see.
const SEEN: &str = "root";
/// The state directory, which they do not.
const STATE: &str = "state";
/// Largest file that is compared.
const FILE_BYTES_MAX: u64 = 64 << 20;
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// A fresh directory.
pub(super) struct Ground {
    holder: Directory,
    name: Name,
    base: PathBuf,
    root: Root,
}

/// What is at a path.
pub(super) struct Found {
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) mode: u32,
    pub(super) is_link: bool,
}

impl Ground {
    /// Makes one below the system's place for temporary things.
    pub(super) fn new() -> Result<Self, Problem> {
        let temporary = std::env::temp_dir();
        let failed = |error: DiskError| Problem::Outside(format!("{}: {error}", temporary.display()));
        let outer = Root::open(&temporary, RootOptions::default()).map_err(failed)?;
        let number = u64::from_be_bytes(disk::random_bytes().map_err(failed)?);
        let called = format!("{PREFIX}{number:016x}");
        let name = Name::new(called.as_bytes()).map_err(|error| Problem::Outside(error.to_string()))?;
        let holder = outer.open_directory(&RelPath::root()).map_err(failed)?;
        holder.make_directory(&name, 0o700).map_err(failed)?;
        let inside = holder.open_directory(&name).map_err(failed)?;
        let seen = Name::new(SEEN.as_bytes()).map_err(|error| Problem::Outside(error.to_string()))?;
        inside.make_directory(&seen, DIRECTORY_MODE).map_err(failed)?;
        let base = PathBuf::from(outer.absolute()).join(called);
        let root = Root::open(&base.join(SEEN), RootOptions::default()).map_err(failed)?;
        Ok(Self { holder, name, base, root })
    }

    /// The directory that recordings call `$ROOT`.
    pub(super) fn root(&self) -> &str {
        self.root.absolute()
    }

    /// Where the journal goes.
    pub(super) fn state(&self) -> PathBuf {
        self.base.join(STATE)
    }

    /// The path below `$ROOT` that an absolute path means.
    fn place(&self, path: &Path) -> Result<RelPath, Problem> {
        let below = path.strip_prefix(self.root()).ok().and_then(Path::to_str);
        let below = below.ok_or_else(|| odd(path, "not below $ROOT"))?;
        let names = below.split('/').filter(|name| !name.is_empty()).map(str::as_bytes);
        RelPath::from_components(names).map_err(|error| odd(path, &error.to_string()))
    }

    fn parent(&self, path: &Path) -> Result<(Directory, Name), Problem> {
        let (parent, name) = self.place(path)?.split().ok_or_else(|| odd(path, "is $ROOT itself"))?;
        let (directory, _) = self
            .root
            .make_directories(&parent, DIRECTORY_MODE)
            .map_err(|error| odd(path, &error.to_string()))?;
        Ok((directory, name))
    }

    pub(super) fn make_directory(&self, path: &Path) -> Result<(), Problem> {
        let place = self.place(path)?;
        let made = self.root.make_directories(&place, DIRECTORY_MODE);
        made.map(|_| ()).map_err(|error| odd(path, &error.to_string()))
    }

    pub(super) fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), Problem> {
        let (directory, name) = self.parent(path)?;
        let staged = directory.stage(Source::Bytes(bytes), Attributes::New { mode: FILE_MODE });
        staged
            .and_then(|staged| directory.replace(&staged, &name))
            .and_then(|()| directory.set_mode(&name, FILE_MODE))
            .map_err(|error| odd(path, &error.to_string()))
    }

    pub(super) fn link(&self, path: &Path, target: &str) -> Result<(), Problem> {
        let (directory, name) = self.parent(path)?;
        directory.make_link(&name, target.as_bytes()).map_err(|error| odd(path, &error.to_string()))
    }

    pub(super) fn set_mode(&self, path: &Path, mode: &str) -> Result<(), Problem> {
        let (directory, name) = self.parent(path)?;
        let bits = u32::from_str_radix(mode, 8).map_err(|error| odd(path, &error.to_string()))?;
        directory.set_mode(&name, bits).map_err(|error| odd(path, &error.to_string()))
    }

    /// What is at a path, links followed; nothing when nothing is.
    pub(super) fn look(&self, path: &Path) -> Result<Option<Found>, Problem> {
        let failed = |error: DiskError| odd(path, &error.to_string());
        let place = self.place(path)?;
        let Some(own) = self.root.stat(&place).or_else(nothing).map_err(failed)? else { return Ok(None) };
        let real = match self.root.canonical(&place, Last::Follow) {
            Err(error) if matches!(error.kind, ErrorKind::Escape | ErrorKind::LinkLoop) => return Ok(None),
            other => other.map_err(failed)?,
        };
        let Some(stat) = self.root.stat(&real).or_else(nothing).map_err(failed)? else { return Ok(None) };
        let bytes = match stat.file_type {
            FileType::File => Some(
                self.root.open_file(&real).and_then(|file| file.read_all(FILE_BYTES_MAX)).map_err(failed)?,
            ),
            FileType::Directory
            | FileType::Link
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharDevice
            | FileType::BlockDevice
            | FileType::Unknown => None,
        };
        Ok(Some(Found { bytes, mode: own.mode & 0o777, is_link: own.file_type == FileType::Link }))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What cannot be removed is left in the system's place for temporary things, which is emptied some day.
        self.holder.remove_tree(&self.name).map(|_| ()).unwrap_or_default();
    }
}

/// A path through a file leads to nothing.
fn nothing(error: DiskError) -> Result<Option<disk::Stat>, DiskError> {
    if error.kind == ErrorKind::NotDirectory { Ok(None) } else { Err(error) }
}

fn odd(path: &Path, problem: &str) -> Problem {
    Problem::Outside(format!("{}: {problem}", path.display()))
}
