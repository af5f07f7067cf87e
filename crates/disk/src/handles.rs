//! How many handles this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many may be open at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handles {
    /// At most this many.
    Bounded(u64),
    /// As many as there is memory for.
    Unbounded,
}

/// Lets this process have as many open as the operator allows at all, and says how many that is: usual limits are made for
/// programs that serve one thing. Where that is not to be had it stays as it is, and whoever needs one too many is told.
pub fn allow_many_handles() -> Handles {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let held = match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    held.map_or(Handles::Unbounded, Handles::Bounded)
}
