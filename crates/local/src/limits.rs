//! The limits of a workspace on this machine that a caller can notice: in an error, in a truncated result, or in a file
//! that is not indexed, hashed or retained. The limits of calls are in `limits.rs` of the engine.

use stead_engine::limits::WRITE_BYTES_MAX;

/// The most valid access tokens of one workspace.
pub(crate) const TOKENS_MAX: usize = 10_000;
/// The most characters of the label of an access token.
pub(crate) const TOKEN_LABEL_CHARS_MAX: usize = 100;
/// The age in milliseconds at which a session ticket is deleted; an open connection stays in its session even then.
pub(crate) const TICKET_LIFETIME_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// The fewest characters of the approver's secret.
pub(crate) const APPROVER_SECRET_CHARS_MIN: usize = 8;
/// The most bytes of the approver's secret.
pub(crate) const APPROVER_SECRET_BYTES_MAX: usize = 1024;
/// The longest time in milliseconds that must pass after a wrong secret before the next attempt.
pub(crate) const APPROVER_RETRY_DELAY_MS_MAX: i64 = 60 * 60 * 1000;
/// The most workspaces of a registry, including those in the trash.
pub(crate) const WORKSPACES_MAX: usize = 100_000;
/// The most bytes of the name of a workspace.
pub(crate) const WORKSPACE_NAME_BYTES_MAX: usize = 63;
/// The most characters of the label of a workspace.
pub(crate) const WORKSPACE_LABEL_CHARS_MAX: usize = 200;
/// The most workspaces in one page of a list.
pub(crate) const WORKSPACES_PER_PAGE_MAX: usize = 1_000;
/// The most files and directories that are counted to describe the size of a workspace; above that, the count is
/// reported as incomplete.
pub(crate) const MEASURED_ENTRIES_MAX: u64 = 1_000_000;
/// The most files, symlinks and directories of a workspace that can be copied.
pub(crate) const COPIED_ENTRIES_MAX: u64 = 1_000_000;
/// The most entries of an imported archive.
pub(crate) const ARCHIVE_ENTRIES_MAX: u64 = 200_000;
/// The largest total size of the files of an imported archive, in bytes.
pub(crate) const ARCHIVE_BYTES_MAX: u64 = 8 << 30;
/// The largest file of an imported archive, in bytes. An import uses the operation `write` and therefore has the size
/// limit of `write`.
pub(crate) const ARCHIVE_FILE_BYTES_MAX: u64 = WRITE_BYTES_MAX;
/// The most journal entries that one query returns.
pub(crate) const ENTRIES_PER_QUERY_MAX: usize = 10_000;
/// The most deferred journal entries that are kept in memory while the store cannot be written. Journal entries above
/// this limit are dropped, and their number is recorded.
pub(crate) const DEFERRED_ENTRIES_MAX: usize = 65_536;
/// The largest content in bytes that is stored in the database; larger content is stored in a file with its own sync.
pub(crate) const INLINE_BYTES_MAX: u64 = 64 << 10;
/// The largest retained version, in bytes, that is read into memory from a blob file.
pub(crate) const RETAINED_READ_BYTES_MAX: u64 = 64 << 20;
/// The most changes by other programs that one journal entry records; further changes get further entries.
pub(crate) const EXTERNAL_CHANGES_PER_ENTRY_MAX: usize = 500;
/// The largest number of bytes of new file content that one journal entry about changes by other programs retains.
pub(crate) const RETAINED_BYTES_PER_ENTRY_MAX: usize = 1 << 20;
/// The size in bytes of the largest changed file that is hashed, because larger files take long to hash.
pub(crate) const HASHED_BYTES_MAX: u64 = 16 << 20;
/// The largest size of the search index on disk, in bytes.
pub(crate) const INDEX_BYTES_MAX: u64 = 4 << 30;
