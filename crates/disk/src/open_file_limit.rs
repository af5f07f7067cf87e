//! The limit on open files of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit on open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenFileLimit {
    /// At most this many.
    Bounded(u64),
    /// No limit.
    Unbounded,
}

/// Raises the soft limit on open files to the hard limit and returns it, because usual defaults are too low for a
/// server. If that fails the limit stays, and opening too many files is an error.
pub fn raise_open_file_limit() -> OpenFileLimit {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let limit = match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    limit.map_or(OpenFileLimit::Unbounded, OpenFileLimit::Bounded)
}
