//! How many handles this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many open as the operator allows at all: usual limits are made for programs that serve one
/// thing. Where that is not to be had it stays as it is, and whoever needs one too many is told.
pub fn allow_many_handles() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap_or_default();
}
