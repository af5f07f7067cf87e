//! Files outside any workspace that the user names on the command line: checkpoints, exports, sockets. Only this module of the
//! binary opens files by path.
#![expect(clippy::disallowed_methods, reason = "a file the person at the command line names, outside any workspace")]

mod unix_socket;

use std::{
    fs,
    io::BufWriter,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

pub(crate) use self::unix_socket::BoundSocketPath;
use crate::output::CommandError;

const READ_BYTES_MAX: u64 = 1 << 20;
const OTHERS_READ_BIT: u32 = 0o004;

/// Reads a small text file.
pub(crate) fn read_text(path: &Path) -> Result<String, CommandError> {
    let size = fs::metadata(path).map_err(|error| file_error(path, &error))?.len();
    if size > READ_BYTES_MAX {
        return Err(CommandError::System(format!("{}: larger than {READ_BYTES_MAX} bytes", path.display())));
    }
    fs::read_to_string(path).map_err(|error| file_error(path, &error))
}

/// Creates a file; fails if it exists.
pub(crate) fn create_new(path: &Path) -> Result<BufWriter<fs::File>, CommandError> {
    fs::File::create_new(path).map(BufWriter::new).map_err(|error| file_error(path, &error))
}

pub(crate) fn open(path: &Path) -> Result<fs::File, CommandError> {
    fs::File::open(path).map_err(|error| file_error(path, &error))
}

pub(crate) fn replace_text(path: &Path, text: &str) -> Result<(), CommandError> {
    fs::write(path, text).map_err(|error| file_error(path, &error))
}

pub(crate) fn exists(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

/// Whether all users may read a file.
pub(crate) fn is_world_readable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.mode() & OTHERS_READ_BIT != 0)
}

pub(crate) fn canonical_path(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// The effective user id of this process, from the owner of `/proc/self`.
pub(crate) fn effective_user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|own| own.uid())
}

pub(crate) fn is_process_running(process: u32) -> bool {
    fs::metadata(format!("/proc/{process}")).is_ok()
}

pub(crate) fn file_error(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::System(format!("{}: {error}", path.display()))
}
