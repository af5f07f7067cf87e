//! [`Workspace`], the trait between the engine and the storage of a workspace. `stead-local` implements [`Workspace`]
//! for a local directory. [`Workspace`] is not a general file-system interface: it has only the methods that operations
//! need.
//!
//! [`Workspace::locate`] resolves the symlinks of a path. All other methods of [`Workspace`] accept only paths that
//! `locate` returned. Only [`Workspace::commit`] changes files.

use std::time::Instant;

use serde_json::Value;
use stead_journal::{Digest, JournalEntry};
pub use stead_path::FinalSymlink;
use stead_path::{FileName, RelPath};

use crate::{
    approval::{Approval, ApprovalAnswer, ApprovalFilter, ApprovalRequest},
    buffers::BufferStore,
    caller::{Caller, Principal},
    errors::{Error, ErrorKind},
    index::{IndexBasedSearchFilter, IndexedSearchCandidates, RequiredTrigrams},
    plan::{FileKind, Plan, TreeSummary},
    policy::{ActivePolicy, SupervisionTier},
    quota::StorageQuotaLimits,
    session_store::SessionStore,
    version::Version,
    watches::{Watch, WatchBeginOrEndRequest},
};

/// File attributes that are cheap to read and change when a file is replaced or written. If a file still has the
/// identity that it had during planning, the commit need not hash the file again. File identities are never compared
/// across calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStatFingerprint {
    /// Device and inode of the file, or an equivalent identifier.
    pub device_and_inode: (u64, u64),
    /// Length in bytes.
    pub size: u64,
    /// Time of the last change of the file's content, in unix nanoseconds.
    pub modified_ns: i128,
    /// Time of the last change of the file's metadata, in unix nanoseconds.
    pub changed_ns: i128,
}

/// The attributes of one file, directory, symlink or special file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// Whether the entry is a file, a directory, a symlink or a special file.
    pub kind: FileKind,
    /// Size of the file in bytes; zero for directories.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Number of hard links of the file.
    pub link_count: u64,
    /// Time of the last change of the file's content, in unix milliseconds.
    pub modified_ms: i64,
    /// The attributes that show whether the file was replaced or written.
    pub identity: FileStatFingerprint,
}

/// File attributes beyond [`FileStat`] that few operations need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOwnerAndCreationTime {
    /// Creation time of the file in unix milliseconds, if known.
    pub created_ms: Option<i64>,
    /// The user name of the file's owner, or the user id if it has no name.
    pub owner: Option<String>,
}

/// The name and the kind of one entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name of the directory entry.
    pub name: FileName,
    /// Whether the entry is a file, a directory, a symlink or a special file.
    pub kind: FileKind,
}

/// The result of looking up one name in a directory: the file's attributes, `None` if the name does not exist, or an
/// error.
pub type FileStatLookupResult = Result<Option<FileStat>, Error>;

/// A directory that is open for a walk. Entries are opened relative to the open directory, so the walk continues even
/// if another program moves the directory.
pub trait OpenDirectoryForWalk<'w>: Send + Sync {
    /// Opens and lists a subdirectory, as [`Workspace::list`] does, but never follows a symlink to it.
    fn open_subdirectory(&self, name: &FileName) -> Result<OpenDirectoryWithEntries<'w>, Error>;

    /// The stat of an entry of this directory; a symlink is not followed.
    fn stat(&self, name: &FileName) -> FileStatLookupResult;

    /// Reads a regular file of this directory into `bytes`, which is cleared first. Calls `goes_on` with the first
    /// bytes of the file and stops reading if `goes_on` returns `false`. A file larger than `limit_bytes` is an error.
    fn read_without_version(
        &self,
        name: &FileName,
        limit_bytes: u64,
        goes_on: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// Opens a regular file of this directory for reading in pieces.
    fn open_file(&self, name: &FileName) -> Result<Box<dyn FileReader>, Error>;
}

/// An open regular file that is read in pieces because it may be too large for memory.
pub trait FileReader {
    /// The size in bytes that the file had when it was opened.
    fn size(&self) -> u64;

    /// Reads bytes at `offset` of the file into `buffer` and returns the number of bytes read, which is 0 at the end of
    /// the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error>;
}

/// An open directory and the names in it, in byte order.
pub type OpenDirectoryWithEntries<'w> = (Box<dyn OpenDirectoryForWalk<'w> + 'w>, Vec<DirectoryEntry>);

/// Which bytes of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesToRead {
    /// Reads the whole file, and fails if the file is larger than `limit_bytes`.
    Whole {
        /// The largest file size in bytes that is read.
        limit_bytes: u64,
    },
    /// Reads a byte range of the file.
    Range {
        /// Offset in the file of the first byte to read.
        offset: u64,
        /// The largest number of bytes to read.
        length: u64,
    },
    /// Reads no bytes and only computes the version of the file.
    VersionOnly,
}

/// Bytes read from a file, with the version of the whole file.
#[derive(Debug, Clone)]
pub struct FileBytesWithVersion {
    /// The requested bytes.
    pub bytes: Vec<u8>,
    /// The version of the whole file, even if only a part was read.
    pub version: Version,
    /// The stat that the file had when it was read.
    pub stat: FileStat,
}

/// A path to lock for the duration of a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathLockRequest {
    /// The path that gets an exclusive lock. The directories above the path get shared locks, so that no other call
    /// moves them meanwhile.
    pub path: RelPath,
}

/// A guard that holds the path locks of one call and releases them when it is dropped.
pub trait CallLockGuard: Send {}

/// The part of a call's journal entry that does not depend on the changes of the call.
#[derive(Debug, Clone)]
pub struct JournalCallRecord<'a> {
    /// The principal, session and protocol of the call.
    pub caller: &'a Caller,
    /// The operation's name.
    pub operation: &'static str,
    /// The name of the dialect's tool, if the call came through a dialect.
    pub tool: Option<&'a str>,
    /// The arguments of the call as compact JSON, without file contents.
    pub arguments: String,
    /// The paths of the call, with symlinks resolved.
    pub paths: Vec<RelPath>,
    /// The caller's idempotency key.
    pub idempotency_key: Option<&'a str>,
    /// The error kind, if the call was refused or failed.
    pub error_kind: Option<ErrorKind>,
    /// The policy tier of the call.
    pub policy_tier: SupervisionTier,
    /// The id of the approval that the call uses up; for a refused call, of the approval that it requested.
    pub approval: Option<String>,
    /// The version of the policy that authorized or refused the call.
    pub policy_version: u64,
    /// The quota of the caller; `None` if the policy sets no quota for anybody. Usage is then not counted.
    pub quota: Option<StorageQuotaLimits>,
    /// Number of bytes that the call read or wrote.
    pub bytes: u64,
    /// When the call started.
    pub started: Instant,
}

impl<'a> JournalCallRecord<'a> {
    /// A record of a successful call that starts now, with empty optional fields.
    pub fn new(caller: &'a Caller, operation: &'static str, arguments: String) -> Self {
        Self {
            caller,
            operation,
            tool: None,
            arguments,
            paths: Vec::new(),
            idempotency_key: None,
            error_kind: None,
            policy_tier: SupervisionTier::Autonomous,
            approval: None,
            policy_version: 0,
            quota: None,
            bytes: 0,
            started: Instant::now(),
        }
    }
}

/// The last entry of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalHead {
    /// Number of the last journal entry; zero if the journal is empty.
    pub number: u64,
    /// The chain hash of the last journal entry.
    pub hash: Digest,
}

/// The result of a commit.
#[derive(Debug, Clone)]
pub struct CommitReceipt {
    /// Number of the journal entry that records the commit.
    pub entry: u64,
    /// The chain hash of the journal entry that records the commit.
    pub hash: Digest,
    /// Ids of the trash items that the commit created, in the order in which the plan removes paths.
    pub trash_ids: Vec<String>,
    /// Notices for the caller, for example about file attributes that could not be preserved or a hard link that was
    /// broken.
    pub notices: Vec<String>,
}

/// The reason why a commit failed.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// A path no longer has the state that the plan expects; the commit changed nothing, and the call must be planned
    /// again.
    ExpectationFailed(RelPath),
    /// Another call with the same idempotency key was already committed, by the journal entry with this number.
    KeyAlreadyUsed(u64),
    /// The commit failed and nothing was changed.
    Failed(Error),
    /// The commit was recorded in the journal but could not be applied; a second journal entry records the failure.
    RecordedThenFailed(Error),
}

impl From<Error> for CommitError {
    fn from(error: Error) -> Self {
        CommitError::Failed(error)
    }
}

/// A journal entry with its chain hash.
#[derive(Debug, Clone)]
pub struct StoredJournalEntry {
    /// The journal entry without its hash.
    pub entry: JournalEntry,
    /// The chain hash of the journal entry.
    pub hash: Digest,
}

/// Selects journal entries.
#[derive(Debug, Clone, Default)]
pub struct JournalEntryQuery {
    /// Selects only journal entries about this path or paths below it.
    pub path: Option<RelPath>,
    /// Selects only journal entries of calls by this principal.
    pub principal: Option<String>,
    /// Selects only journal entries of calls of this operation.
    pub operation: Option<String>,
    /// Selects only journal entries with a higher number.
    pub after: Option<u64>,
    /// Selects only journal entries with a lower number.
    pub before: Option<u64>,
    /// Selects only journal entries at or after this time, in unix milliseconds.
    pub since_ms: Option<i64>,
    /// Selects only journal entries at or before this time, in unix milliseconds.
    pub until_ms: Option<i64>,
    /// Whether to include journal entries of calls that changed nothing.
    pub selection: JournalNoChangeEntryFilter,
    /// Whether the newest or the oldest journal entry comes first.
    pub order: JournalEntryOrder,
    /// The largest number of journal entries to return.
    pub limit: usize,
}

/// Whether a journal query includes calls that changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JournalNoChangeEntryFilter {
    /// The query returns the journal entries of all calls.
    #[default]
    All,
    /// The query returns only journal entries of calls that changed something.
    WithChanges,
}

/// The order of the journal entries that a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JournalEntryOrder {
    /// The newest journal entry comes first.
    #[default]
    NewestFirst,
    /// The oldest journal entry comes first.
    OldestFirst,
}

/// An item in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashItem {
    /// The id of the trash item.
    pub id: String,
    /// The principal who moved the item to the trash.
    pub owner: String,
    /// The path that the trash item had before it was removed.
    pub path: RelPath,
    /// The number and total size of the files in the trash item.
    pub summary: TreeSummary,
    /// When the item was moved to the trash, in unix milliseconds.
    pub removed_ms: i64,
    /// When the trash item may be purged, in unix milliseconds.
    pub retain_until_ms: i64,
    /// The number of the journal entry that moved the item to the trash.
    pub entry: u64,
}

/// An advisory lock on a path that a principal holds for some time. While a lease exists, the engine refuses changes of
/// the path by other principals, but programs that do not use stead can still change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The leased path; the lease includes everything below it.
    pub path: RelPath,
    /// The principal who holds the lease.
    pub holder: String,
    /// A fencing token: a number that increases with every new lease, so that other systems can reject a former holder.
    pub fencing_token: u64,
    /// When the lease ends, in unix milliseconds.
    pub ends_ms: i64,
}

/// A request to acquire or release a lease.
#[derive(Debug, Clone)]
pub enum LeaseAcquireOrReleaseRequest {
    /// Acquires or extends a lease.
    Acquire {
        /// The path to lease.
        path: RelPath,
        /// When the lease ends, in unix milliseconds.
        ends_ms: i64,
    },
    /// Releases a lease.
    Release {
        /// The leased path.
        path: RelPath,
    },
}

impl LeaseAcquireOrReleaseRequest {
    /// The leased path.
    pub fn path(&self) -> &RelPath {
        match self {
            LeaseAcquireOrReleaseRequest::Acquire { path, .. } | LeaseAcquireOrReleaseRequest::Release { path } => path,
        }
    }
}

/// Which names new files and directories may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNamePolicy {
    /// New files and directories may have only names that are valid on every common file system and do not look like
    /// the name of an existing entry.
    Portable,
    /// New files and directories may have every name that the file system accepts.
    Posix,
}

/// Properties of a workspace that do not change while it is open.
#[derive(Debug, Clone)]
pub struct ImmutableWorkspaceProperties {
    /// The workspace id.
    pub id: String,
    /// Absolute paths of the workspace root; a path argument may start with any of them.
    pub root_spellings: Vec<String>,
    /// Which names new files and directories may have.
    pub name_policy: FileNamePolicy,
    /// Paths of the server's own files, which calls cannot access; the comparison is case-insensitive.
    pub internal_paths: Vec<RelPath>,
}

/// The storage of a file tree and its journal.
pub trait Workspace: SessionStore + BufferStore + Send + Sync {
    /// The properties of the workspace that do not change while it is open.
    fn profile(&self) -> &ImmutableWorkspaceProperties;

    /// The current time, in unix milliseconds.
    fn now_ms(&self) -> i64;

    /// Resolves the symlinks of a path, which need not exist.
    fn locate(&self, path: &RelPath, last: FinalSymlink) -> Result<RelPath, Error>;

    /// The attributes of the entry at a path, or `None` if the path does not exist; a symlink is not followed.
    fn stat(&self, path: &RelPath) -> Result<Option<FileStat>, Error>;

    /// Resolves the symlinks of a path, and returns its stat if the implementation has it at no extra cost. Without a
    /// stat, the caller must call [`Workspace::stat`].
    fn locate_and_stat(&self, path: &RelPath, last: FinalSymlink) -> Result<(RelPath, Option<FileStat>), Error> {
        self.locate(path, last).map(|resolved| (resolved, None))
    }

    /// The creation time and owner of the entry at a path; a symlink is not followed.
    fn file_details(&self, _path: &RelPath) -> Result<FileOwnerAndCreationTime, Error> {
        Ok(FileOwnerAndCreationTime::default())
    }

    /// The stats of several entries of one directory, without following symlinks. An error for one entry, for example
    /// because it is on another mount, does not affect the other entries.
    fn stat_names(&self, directory: &RelPath, names: &[FileName]) -> Result<Vec<FileStatLookupResult>, Error> {
        names.iter().map(|name| Ok(self.stat(&directory.join(name)?))).collect()
    }

    /// Bytes of a regular file, with the version of the whole file.
    fn read(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytesWithVersion, Error>;

    /// Reads a regular file without computing its version, which is faster; fails if the file is larger than
    /// `limit_bytes`.
    fn read_without_version(&self, path: &RelPath, limit_bytes: u64) -> Result<Vec<u8>, Error> {
        Ok(self.read(path, BytesToRead::Whole { limit_bytes })?.bytes)
    }

    /// Opens a regular file for reading in pieces; the default implementation always fails.
    fn open_file(&self, path: &RelPath) -> Result<Box<dyn FileReader>, Error> {
        Err(Error::new(ErrorKind::TooLarge, format!("{path} is too large to read at once")))
    }

    /// Opens and lists a directory for a walk, or returns `None` if the workspace does not support open directories.
    fn open_directory(&self, _path: &RelPath) -> Result<Option<OpenDirectoryWithEntries<'_>>, Error> {
        Ok(None)
    }

    /// A filter with which a search skips files that lack the required trigrams; `None` if the workspace has no index,
    /// or if the index cannot exclude any file.
    fn index_filter(&self, _need: &RequiredTrigrams) -> Option<Box<dyn IndexBasedSearchFilter + '_>> {
        None
    }

    /// The files below a directory that may match a search, according to the search index. The caller must have full
    /// read access, which the index does not check. `None` if the index may be incomplete or a walk would be faster.
    fn indexed_walk(&self, _start: &RelPath, _need: &RequiredTrigrams) -> Option<IndexedSearchCandidates> {
        None
    }

    /// Reports the number of files that a search read, so that the workspace can decide to build an index.
    fn report_files_searched(&self, _files: u64) {}

    /// The target of a symlink.
    fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Error>;

    /// The entries of a directory in byte order of their names, without the server's own files and its temporary files.
    fn list(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error>;

    /// Locks these paths in sorted order and waits until the deadline for locks that other calls hold. Locking also
    /// completes commits that were interrupted because their process died.
    fn lock(&self, requests: &[PathLockRequest], deadline: Instant) -> Result<Box<dyn CallLockGuard>, Error>;

    /// Applies a plan atomically and records the call. The caller of `commit` must hold the locks of the plan's paths.
    fn commit(&self, plan: &Plan, record: &JournalCallRecord<'_>) -> Result<CommitReceipt, CommitError>;

    /// Records in the journal a call that changed nothing.
    fn record_call(&self, record: &JournalCallRecord<'_>) -> Result<(), Error>;

    /// The last entry of the journal, after writing the entries that are still buffered in memory.
    fn head(&self) -> Result<JournalHead, Error>;

    /// The journal entry with this number.
    fn entry(&self, number: u64) -> Result<Option<StoredJournalEntry>, Error>;

    /// The journal entries that match a query.
    fn entries(&self, filter: &JournalEntryQuery) -> Result<Vec<StoredJournalEntry>, Error>;

    /// Waits until the journal has an entry with a number higher than `number`, or until the deadline.
    fn wait_for_entry_after(&self, number: u64, deadline: Instant) -> Result<(), Error>;

    /// A number that changes whenever the workspace may have changed. An implementation of the change counter must be
    /// fast, because every call reads it. Changes by other processes may affect the change counter up to a second late.
    fn change_counter(&self) -> Result<u64, Error> {
        Ok(self.head()?.number)
    }

    /// The number of the last journal entry that produced this version at this path.
    fn entry_of_version(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Error>;

    /// The number of the journal entry whose call used this idempotency key of the principal.
    fn entry_for_idempotency_key(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Error>;

    /// The bytes of a stored file version, or `None` if they are no longer stored. A persistent implementation checks
    /// that the stored bytes have the hash of the version.
    fn retained_bytes(&self, version: &Version) -> Result<Option<Vec<u8>>, Error>;

    /// The trash item with this id, if it still exists.
    fn trash_item(&self, id: &str) -> Result<Option<TrashItem>, Error>;

    /// The trash items of one owner, or of everybody, sorted from the newest to the oldest.
    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<TrashItem>, Error>;

    /// Acquires or releases a lease and records the call; fails if another principal holds an overlapping lease.
    fn execute_lease_request(
        &self,
        request: &LeaseAcquireOrReleaseRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(Lease, CommitReceipt), Error>;

    /// The current leases that overlap these paths.
    fn leases(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Error>;

    /// The policy in force; fails if the policy file cannot be read or parsed, so that no call runs without its policy.
    fn active_policy(&self) -> Result<ActivePolicy, Error> {
        Ok(ActivePolicy::built_in())
    }

    /// The approval with this id.
    fn approval(&self, id: &str) -> Result<Option<Approval>, Error>;

    /// The approvals that match a filter, sorted from the newest to the oldest.
    fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, Error>;

    /// Stores an approval request, unless the same request is already pending. An earlier pending or approved request
    /// for the same call with a different plan becomes stale.
    fn request_approval(&self, request: &ApprovalRequest) -> Result<Approval, Error>;

    /// Stores the answer to an approval request and records the call; fails if the request is no longer pending.
    fn answer_approval(
        &self,
        answer: &ApprovalAnswer,
        record: &JournalCallRecord<'_>,
    ) -> Result<(Approval, CommitReceipt), Error>;

    /// Begins or ends a watch and records the call. While a watch exists, the journal gets an entry for every change by
    /// other programs, or a rescan entry if events were lost. Beginning a watch waits, at most until the deadline, for
    /// the watcher to start.
    fn execute_watch_request(
        &self,
        request: &WatchBeginOrEndRequest,
        record: &JournalCallRecord<'_>,
        deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error>;

    /// The watches of a principal, sorted from the oldest to the newest.
    fn watches(&self, owner: &Principal) -> Result<Vec<Watch>, Error>;

    /// The number of the journal entry that undid the entry `number`; `None` if it was never undone, or was redone.
    fn undone_by(&self, number: u64) -> Result<Option<u64>, Error>;

    /// Properties of the workspace to display to people, such as durability, path resolver and sandbox.
    fn describe(&self) -> Value;
}
