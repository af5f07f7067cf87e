//! The temporary directory of a replay, which is removed at the end. A replay accesses files only through handles below
//! its temporary directory.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use stead_disk::{
    DirectoryHandle, DiskError, DiskErrorKind, FileAttributeSource, FileType, FinalSymlink, RootDirectory,
    RootDirectoryOptions, StagedContentSource,
};
use stead_path::{FileName, RelPath};

use crate::{limits::REPLAY_FILE_BYTES_MAX, output::CommandError};

const DIRECTORY_NAME_PREFIX: &str = "stead-replay-";
const ROOT_NAME: &str = "root";
const STATE_NAME: &str = "state";
const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

pub(super) struct ReplayTempDirectory {
    parent: DirectoryHandle,
    name: FileName,
    base: PathBuf,
    root: RootDirectory,
}

pub(super) struct RecordingReplayActualFileState {
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) mode: u32,
    pub(super) is_link: bool,
}

impl ReplayTempDirectory {
    pub(super) fn new() -> Result<Self, CommandError> {
        let temporary = std::env::temp_dir();
        let failed = |error: DiskError| CommandError::System(format!("{}: {error}", temporary.display()));
        let outer = RootDirectory::open(&temporary, RootDirectoryOptions::default()).map_err(failed)?;
        let number = u64::from_be_bytes(stead_disk::random_bytes().map_err(failed)?);
        let name_text = format!("{DIRECTORY_NAME_PREFIX}{number:016x}");
        let name = FileName::new(name_text.as_bytes()).map_err(|error| CommandError::System(error.to_string()))?;
        let parent = outer.open_directory(&RelPath::root()).map_err(failed)?;
        parent.create_directory(&name, 0o700).map_err(failed)?;
        let inside = parent.open_directory(&name).map_err(failed)?;
        let root_name = FileName::new(ROOT_NAME.as_bytes()).map_err(|error| CommandError::System(error.to_string()))?;
        inside.create_directory(&root_name, DIRECTORY_MODE).map_err(failed)?;
        let base = PathBuf::from(outer.absolute_path()).join(name_text);
        let root = RootDirectory::open(&base.join(ROOT_NAME), RootDirectoryOptions::default()).map_err(failed)?;
        Ok(Self { parent, name, base, root })
    }

    pub(super) fn root(&self) -> &str {
        self.root.absolute_path()
    }

    pub(super) fn state_path(&self) -> PathBuf {
        self.base.join(STATE_NAME)
    }

    fn relative_path(&self, path: &Path) -> Result<RelPath, CommandError> {
        let below = path.strip_prefix(self.root()).ok().and_then(Path::to_str);
        let below = below.ok_or_else(|| path_error(path, "not below $ROOT"))?;
        let names = below.split('/').filter(|name| !name.is_empty()).map(str::as_bytes);
        RelPath::from_components(names).map_err(|error| path_error(path, error))
    }

    fn open_parent(&self, path: &Path) -> Result<(DirectoryHandle, FileName), CommandError> {
        let (parent, name) = self.relative_path(path)?.split().ok_or_else(|| path_error(path, "is $ROOT itself"))?;
        let (directory, _) =
            self.root.create_directories(&parent, DIRECTORY_MODE).map_err(|error| path_error(path, error))?;
        Ok((directory, name))
    }

    pub(super) fn make_directory(&self, path: &Path) -> Result<(), CommandError> {
        let place = self.relative_path(path)?;
        let created = self.root.create_directories(&place, DIRECTORY_MODE);
        created.map(drop).map_err(|error| path_error(path, error))
    }

    pub(super) fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
        let (directory, name) = self.open_parent(path)?;
        let staged =
            directory.stage_file(StagedContentSource::Bytes(bytes), FileAttributeSource::New { mode: FILE_MODE });
        staged
            .and_then(|staged| directory.replace_with_staged(&staged, &name))
            .and_then(|()| directory.set_mode(&name, FILE_MODE))
            .map_err(|error| path_error(path, error))
    }

    pub(super) fn make_symlink(&self, path: &Path, target: &str) -> Result<(), CommandError> {
        let (directory, name) = self.open_parent(path)?;
        directory.create_symlink(&name, target.as_bytes()).map_err(|error| path_error(path, error))
    }

    pub(super) fn set_mode(&self, path: &Path, mode: &str) -> Result<(), CommandError> {
        let (directory, name) = self.open_parent(path)?;
        let bits = u32::from_str_radix(mode, 8).map_err(|error| path_error(path, error))?;
        directory.set_mode(&name, bits).map_err(|error| path_error(path, error))
    }

    pub(super) fn read_file(&self, path: &Path) -> Result<Option<RecordingReplayActualFileState>, CommandError> {
        let failed = |error: DiskError| path_error(path, error);
        let place = self.relative_path(path)?;
        let Some(link_stat) = self.root.stat(&place).or_else(missing_as_none).map_err(failed)? else {
            return Ok(None);
        };
        let real = match self.root.canonicalize(&place, FinalSymlink::Follow) {
            Err(error) if matches!(error.kind, DiskErrorKind::OutsideRoot | DiskErrorKind::SymlinkLoop) => {
                return Ok(None);
            }
            other => other.map_err(failed)?,
        };
        let Some(stat) = self.root.stat(&real).or_else(missing_as_none).map_err(failed)? else {
            return Ok(None);
        };
        let read = || self.root.open_file(&real).and_then(|file| file.read_all(REPLAY_FILE_BYTES_MAX)).map_err(failed);
        let bytes = (stat.file_type == FileType::RegularFile).then(read).transpose()?;
        Ok(Some(RecordingReplayActualFileState {
            bytes,
            mode: link_stat.mode & 0o777,
            is_link: link_stat.file_type == FileType::Symlink,
        }))
    }
}

impl Drop for ReplayTempDirectory {
    fn drop(&mut self) {
        self.parent.remove_tree(&self.name).unwrap_or_default();
    }
}

/// Returns `None` for a path below a regular file, because a replay treats the path as missing.
fn missing_as_none(error: DiskError) -> Result<Option<stead_disk::DiskStat>, DiskError> {
    if error.kind == DiskErrorKind::NotDirectory { Ok(None) } else { Err(error) }
}

fn path_error(path: &Path, problem: impl Display) -> CommandError {
    CommandError::System(format!("{}: {problem}", path.display()))
}
