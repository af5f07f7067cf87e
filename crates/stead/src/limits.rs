//! The limits of the commands that a user can notice. The limits of calls and of connections are in the crates that
//! enforce them.

use stead_protocols::limits::{CALLS_WAITING_TOTAL_MAX, CALLS_WORKING_MAX};

/// Largest file outside a workspace that a command reads, in bytes.
pub(crate) const HOST_FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of paths of a plan for which a rule without `--paths` is written.
pub(crate) const RULE_PATHS_MAX: usize = 50;
/// Largest file that a replay compares, in bytes.
pub(crate) const REPLAY_FILE_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of journal entries that a replay compares.
pub(crate) const REPLAY_ENTRIES_MAX: usize = 100_000;
/// Maximum number of threads for the calls of all clients of a server. Waiting calls cannot use up the threads of
/// working calls.
pub(crate) const SERVER_CALL_THREADS_MAX: usize = CALLS_WAITING_TOTAL_MAX + CALLS_WORKING_MAX * 8;
/// Maximum number of concurrent calls per hosted workspace: a part of all threads, so that one workspace cannot block
/// the others.
pub(crate) const CALLS_PER_WORKSPACE_MAX: usize = SERVER_CALL_THREADS_MAX / 8;
