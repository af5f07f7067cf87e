//! Limits of `stead` commands, such as the maximum size of a file that a command reads.

use stead_protocols::limits::{CALLS_WAITING_TOTAL_MAX, CALLS_WORKING_MAX};

/// The maximum size in bytes of a file outside any workspace that a command reads.
pub(crate) const HOST_FILE_BYTES_MAX: u64 = 1 << 20;
/// The maximum number of plan paths that a new policy rule can name without `--paths`.
pub(crate) const RULE_PATHS_MAX: usize = 50;
/// The maximum size in bytes of a file that a replay compares.
pub(crate) const REPLAY_FILE_BYTES_MAX: u64 = 64 << 20;
/// The maximum number of journal entries that a replay compares.
pub(crate) const REPLAY_ENTRIES_MAX: usize = 100_000;
/// The maximum number of threads for the calls of all clients of a server.
pub(crate) const SERVER_CALL_THREADS_MAX: usize = CALLS_WAITING_TOTAL_MAX + CALLS_WORKING_MAX * 8;
/// The maximum number of concurrent calls per hosted workspace, so that one workspace cannot block the others.
pub(crate) const CALLS_PER_WORKSPACE_MAX: usize = SERVER_CALL_THREADS_MAX / 8;
