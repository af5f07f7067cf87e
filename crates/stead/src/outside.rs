//! Files that a person names on the command line, outside any workspace: checkpoints kept elsewhere, exports, sockets. The only
//! place of the binary that opens files by path.
#![expect(
    clippy::disallowed_methods,
    reason = "a file the person at the command line names, outside any workspace"
)]

mod socket;

use std::{
    fs,
    io::BufWriter,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

pub(crate) use self::socket::SocketPlace;
use crate::show::Problem;

/// Largest file that is read this way.
const READ_BYTES_MAX: u64 = 1 << 20;
/// The bit of a mode that lets everybody read.
const OTHERS_READ: u32 = 0o004;

/// The text of a small file.
pub(crate) fn read(path: &Path) -> Result<String, Problem> {
    let size = fs::metadata(path).map_err(|error| problem(path, &error))?.len();
    if size > READ_BYTES_MAX {
        return Err(Problem::Outside(format!("{}: larger than {READ_BYTES_MAX} bytes", path.display())));
    }
    fs::read_to_string(path).map_err(|error| problem(path, &error))
}

/// A new file to write to; one that exists is not touched.
pub(crate) fn create(path: &Path) -> Result<BufWriter<fs::File>, Problem> {
    fs::File::create_new(path).map(BufWriter::new).map_err(|error| problem(path, &error))
}

/// A file to read from its beginning.
pub(crate) fn open(path: &Path) -> Result<fs::File, Problem> {
    fs::File::open(path).map_err(|error| problem(path, &error))
}

/// Replaces a small file.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Problem> {
    fs::write(path, text).map_err(|error| problem(path, &error))
}

/// Whether anything is there.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

/// Whether every user of this machine may read a file.
pub(crate) fn is_for_everybody(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.mode() & OTHERS_READ != 0)
}

/// Where a file is when every link is followed.
pub(crate) fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// The user this process acts as: the kernel lists it under its effective user.
pub(crate) fn user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|own| own.uid())
}

/// Whether a process of this number runs.
pub(crate) fn runs(process: u32) -> bool {
    fs::metadata(format!("/proc/{process}")).is_ok()
}

pub(crate) fn problem(path: &Path, error: &std::io::Error) -> Problem {
    Problem::Outside(format!("{}: {error}", path.display()))
}
