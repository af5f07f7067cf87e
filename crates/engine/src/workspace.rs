//! [`Workspace`], the trait between the engine and the storage of a workspace.
//!
//! [`Workspace::locate`] resolves the symlinks of a path; all other methods of [`Workspace`] accept only paths that
//! `locate` returned. Only [`Workspace::commit_transaction`] writes.

use std::time::Instant;

use stead_journal::{Digest, JournalEntry, JournalEntryDetails};
pub use stead_path::FinalSymlink;
use stead_path::{FileName, RelPath};

use crate::{
    caller::{Caller, CallerResourceLifetime, Principal},
    errors::{Error, ErrorKind},
    index::{IndexBasedSearchFilter, IndexedSearchCandidates, RequiredTrigrams},
    plan::{FileKind, PlanTimeFileVersion, TreeSummary},
    policy::{ActivePolicy, SupervisionTier},
    quota::{PrincipalUsage, RequiredUsageFreshness, StorageQuotaLimits, WorkspaceUsage},
    rows::{RowFamily, RowQuery, RowSet},
    session_store::{FilesystemTrashAndHistorySizes, SessionTotals, SessionTotalsQuery},
    transaction::{ClockReading, FailedExpectation, Transaction},
    version::Version,
};

/// A value by which a workspace recognises a file, directory or symlink under any of its names, whatever its content.
/// Only the workspace that made the value knows what its bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity(pub [u8; 16]);

/// A value that changes whenever a file is replaced or written, or its metadata changes. A commit does not hash a file
/// again if its stamp is the same as during planning. Only the workspace that made the value knows what its bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp(pub [u8; 56]);

/// The attributes of one file, directory, symlink or special file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub kind: FileKind,
    /// The size of the file in bytes; a directory has the size zero.
    pub size: u64,
    /// The permission bits of the file.
    pub mode: u32,
    pub link_count: u64,
    pub modified_ms: i64,
    pub identity: FileIdentity,
    pub stamp: FileStamp,
}

/// The creation time and the owner of a file, which few operations need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOwnerAndCreationTime {
    pub created_ms: Option<i64>,
    /// The user name of the file's owner, or the owner's user id if the user id has no name.
    pub owner: Option<String>,
}

/// The name and the kind of one entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    pub name: FileName,
    pub kind: FileKind,
}

/// The attributes of a directory entry; `None` if the directory has no entry with the name.
pub type FileStatLookupResult = Result<Option<FileStat>, Error>;

/// A directory that a walk keeps open. A walk opens entries relative to the open directory, so it continues even if
/// another program moves the directory.
pub trait OpenDirectoryForWalk<'w>: Send + Sync {
    /// Opens and lists a subdirectory as [`Workspace::list`] does, but never follows a symlink.
    fn open_subdirectory(&self, name: &FileName) -> Result<OpenDirectoryWithEntries<'w>, Error>;

    /// The attributes of an entry of the open directory; a symlink is not followed.
    fn stat(&self, name: &FileName) -> FileStatLookupResult;

    /// Reads a regular file of the open directory into `bytes`, which is cleared first. Reading stops if `goes_on`
    /// returns `false` for the first bytes of the file. Reading fails if the file is larger than `limit_bytes`.
    fn read_without_version(
        &self,
        name: &FileName,
        limit_bytes: u64,
        goes_on: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// Opens a regular file of the open directory for reading in pieces.
    fn open_file(&self, name: &FileName) -> Result<Box<dyn FileReader>, Error>;
}

/// An open regular file that is read in pieces because it may be too large for memory.
pub trait FileReader {
    /// The size in bytes that the file had when it was opened.
    fn size(&self) -> u64;

    /// Reads bytes at `offset` of the file into `buffer` and returns their number, which is 0 at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error>;
}

/// An open directory and its entries in byte order of their names.
pub type OpenDirectoryWithEntries<'w> = (Box<dyn OpenDirectoryForWalk<'w> + 'w>, Vec<DirectoryEntry>);

/// The part of a file's bytes that a read returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesToRead {
    /// The read returns the whole file and fails if the file is larger than `limit_bytes`.
    Whole { limit_bytes: u64 },
    /// The read returns a byte range of the file.
    Range {
        offset: u64,
        /// The largest number of bytes to read from the file.
        length: u64,
    },
    /// The read returns no bytes and only computes the version of the file.
    VersionOnly,
}

/// Bytes read from a file, with the version of the whole file.
#[derive(Debug, Clone)]
pub struct FileBytesWithVersion {
    pub bytes: Vec<u8>,
    /// The version of the whole file, even if only a part was read.
    pub version: Version,
    /// The attributes that the file had when it was read.
    pub stat: FileStat,
}

impl FileBytesWithVersion {
    /// The version that was read, for the plan of a change.
    pub fn observed(&self) -> PlanTimeFileVersion {
        PlanTimeFileVersion { version: self.version, size: self.stat.size, stamp: self.stat.stamp }
    }
}

/// A path to lock for the duration of a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathLockRequest {
    /// The path that gets an exclusive lock. The directories above a locked path get shared locks, so that no other
    /// call moves them.
    pub path: RelPath,
}

/// A guard that holds the path locks of one call and releases them when it is dropped.
pub trait CallLockGuard: Send {}

/// The journal fields that describe a call, without the changes of the call.
#[derive(Debug, Clone)]
pub struct JournalCallRecord<'a> {
    pub caller: &'a Caller,
    pub operation: &'static str,
    /// The name of the dialect's tool, if the call came through a dialect.
    pub tool: Option<&'a str>,
    /// The arguments of the caller as compact JSON, without file contents.
    pub caller_arguments: String,
    /// The facts that the server adds to the journal entry.
    pub details: JournalEntryDetails,
    /// With symlinks resolved.
    pub paths: Vec<RelPath>,
    pub idempotency_key: Option<&'a str>,
    pub error_kind: Option<ErrorKind>,
    pub policy_tier: SupervisionTier,
    /// The id of the approval that the call used up, or of the approval request if the call was refused.
    pub approval: Option<String>,
    pub policy_version: u64,
    /// The storage quota of the caller; `None` if the policy sets no quota for anybody. If the policy sets no quota,
    /// the workspace need not count its usage.
    pub quota: Option<StorageQuotaLimits>,
    /// The number of bytes that the call read or wrote.
    pub bytes: u64,
    pub started: Instant,
}

impl<'a> JournalCallRecord<'a> {
    /// Creates the record of a successful call that starts now, with empty optional fields.
    pub fn new(caller: &'a Caller, operation: &'static str, caller_arguments: String) -> Self {
        Self {
            caller,
            operation,
            tool: None,
            caller_arguments,
            details: JournalEntryDetails::default(),
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

/// The number and the chain hash of the last journal entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalHead {
    /// The number of the last journal entry, or zero if the journal is empty.
    pub number: u64,
    pub hash: Digest,
}

/// The result of a successful commit.
#[derive(Debug, Clone)]
pub struct CommitReceipt {
    pub entry: u64,
    pub hash: Digest,
    /// The ids of the trash items that the commit created, in the order of the plan's removals.
    pub trash_ids: Vec<String>,
    /// Notices for the caller about side effects of the commit, such as lost file attributes or a broken hard link.
    pub notices: Vec<String>,
}

/// The reason why a commit failed.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// A path or row changed since the plan was made; the commit changed nothing, and the call must be planned again.
    ExpectationFailed(FailedExpectation),
    /// A call with the same idempotency key was already committed as the journal entry with this number.
    KeyAlreadyUsed(u64),
    /// Nothing was changed.
    Failed(Error),
    /// The journal recorded the commit, but applying the commit failed; a second journal entry records the failure.
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
    pub entry: JournalEntry,
    pub hash: Digest,
}

/// A query that selects journal entries.
#[derive(Debug, Clone, Default)]
pub struct JournalEntryQuery {
    /// The query selects only journal entries about this path or paths below it.
    pub path: Option<RelPath>,
    pub principal: Option<String>,
    pub operation: Option<String>,
    /// The query selects only journal entries with a number higher than this one.
    pub after: Option<u64>,
    /// The query selects only journal entries with a number lower than this one.
    pub before: Option<u64>,
    /// The query selects only journal entries at or after this time, in unix milliseconds.
    pub since_ms: Option<i64>,
    /// The query selects only journal entries at or before this time, in unix milliseconds.
    pub until_ms: Option<i64>,
    /// Whether the query also returns journal entries of calls that changed nothing.
    pub selection: JournalNoChangeEntryFilter,
    pub order: JournalEntryOrder,
    pub limit: usize,
}

impl JournalEntryQuery {
    /// Selects the first `limit` entries with changes in the given order.
    pub fn changes(order: JournalEntryOrder, limit: usize) -> Self {
        Self { selection: JournalNoChangeEntryFilter::WithChanges, order, limit, ..Self::default() }
    }
}

/// Whether a journal query includes calls that changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JournalNoChangeEntryFilter {
    #[default]
    All,
    WithChanges,
}

/// The order of the journal entries that a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JournalEntryOrder {
    #[default]
    NewestFirst,
    OldestFirst,
}

/// A removed file or directory that can be restored from the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashItem {
    pub id: String,
    pub owner: String,
    pub path: RelPath,
    /// The number and total size of the files in the trash item.
    pub summary: TreeSummary,
    pub removed_ms: i64,
    /// The time from which the trash item may be purged, in unix milliseconds.
    pub retain_until_ms: i64,
    pub entry: u64,
}

/// An advisory lock on a path that a principal holds for some time. While a lease exists, the engine refuses changes of
/// the leased path by other principals. Programs that do not use stead can still change a leased path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The leased path; the lease includes everything below the path.
    pub path: RelPath,
    pub holder: String,
    /// The fencing token of the lease: a number that increases with every new lease. Another system can reject a former
    /// lease holder, whose fencing token is lower.
    pub fencing_token: u64,
    pub ends_ms: i64,
}

/// A request to acquire or release a lease.
#[derive(Debug, Clone)]
pub enum LeaseAcquireOrReleaseRequest {
    /// The caller acquires or extends a lease.
    Acquire {
        path: RelPath,
        ends_ms: i64,
    },
    Release {
        path: RelPath,
    },
}

impl LeaseAcquireOrReleaseRequest {
    /// The path of the lease that is acquired or released.
    pub fn path(&self) -> &RelPath {
        match self {
            LeaseAcquireOrReleaseRequest::Acquire { path, .. } | LeaseAcquireOrReleaseRequest::Release { path } => path,
        }
    }
}

/// Which names new files and directories may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNamePolicy {
    /// New names must be valid on every common file system and must not look like an existing name.
    Portable,
    /// New files and directories may have every name that the file system accepts.
    Posix,
}

/// The properties of a workspace that do not change while the workspace is open.
#[derive(Debug, Clone)]
pub struct ImmutableWorkspaceProperties {
    pub id: String,
    /// All absolute paths of the workspace root with which a path argument may start.
    pub root_spellings: Vec<String>,
    pub name_policy: FileNamePolicy,
    /// The paths of the server's own files, which calls cannot access; the case of letters is ignored.
    pub internal_paths: Vec<RelPath>,
}

/// The storage of a file tree and its journal.
pub trait Workspace: Send + Sync {
    /// The properties of the workspace that do not change while it is open.
    fn profile(&self) -> &ImmutableWorkspaceProperties;

    /// The clock that decides about leases, approvals and retention.
    fn now(&self) -> ClockReading;

    /// The wall clock, in unix milliseconds.
    fn now_ms(&self) -> i64 {
        self.now().wall_ms
    }

    /// Resolves the symlinks of a path, which need not exist.
    fn locate(&self, path: &RelPath, last: FinalSymlink) -> Result<RelPath, Error>;

    /// The attributes of the entry at a path, or `None` if the path does not exist; a symlink is not followed.
    fn stat(&self, path: &RelPath) -> Result<Option<FileStat>, Error>;

    /// Resolves the symlinks of a path, and returns the file's attributes if the lookup provides them at no cost. If
    /// the attributes are `None`, the calling code must call [`Workspace::stat`].
    fn locate_and_stat(&self, path: &RelPath, last: FinalSymlink) -> Result<(RelPath, Option<FileStat>), Error> {
        self.locate(path, last).map(|resolved| (resolved, None))
    }

    /// The creation time and owner of the entry at a path; a symlink is not followed.
    fn file_details(&self, _path: &RelPath) -> Result<FileOwnerAndCreationTime, Error> {
        Ok(FileOwnerAndCreationTime::default())
    }

    /// The attributes of several entries of one directory; symlinks are not followed. An error for one directory entry
    /// does not affect the other entries.
    fn stat_names(&self, directory: &RelPath, names: &[FileName]) -> Result<Vec<FileStatLookupResult>, Error> {
        names.iter().map(|name| Ok(self.stat(&directory.join(name)?))).collect()
    }

    /// Reads bytes of a regular file, and computes the version of the whole file.
    fn read(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytesWithVersion, Error>;

    /// Reads a regular file without computing its version, which is faster. Reading fails if the file is larger than
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

    /// Returns an index filter with which a search skips files that lack the required trigrams. The filter is `None` if
    /// the index is missing or cannot exclude any file.
    fn index_filter(&self, _need: &RequiredTrigrams) -> Option<Box<dyn IndexBasedSearchFilter + '_>> {
        None
    }

    /// The files below a directory that may match a search, according to the search index. The caller of a search by
    /// index must have full read access, because the search index checks no access. The method returns `None` if the
    /// search index may be incomplete or a walk would be faster.
    fn indexed_walk(&self, _start: &RelPath, _need: &RequiredTrigrams) -> Option<IndexedSearchCandidates> {
        None
    }

    /// Reports the number of files that a search read, so that the workspace can decide to build an index.
    fn report_files_searched(&self, _files: u64) {}

    /// The target of a symlink.
    fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Error>;

    /// The entries of a directory in byte order of their names, without the server's own files and its temporary files.
    fn list(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error>;

    /// Locks paths in sorted order, and waits until the deadline for locks that other calls hold. Locking also
    /// completes commits whose process died before the commit was complete.
    fn lock(&self, requests: &[PathLockRequest], deadline: Instant) -> Result<Box<dyn CallLockGuard>, Error>;

    /// Checks the expectations of a transaction and writes all of it, or nothing. With a record, the transaction appends
    /// a journal entry. The caller must hold the locks of the changed paths. The receipt is `None` if the journal entry
    /// is not numbered yet, or if there is none.
    fn commit_transaction(
        &self,
        transaction: &Transaction<'_>,
        record: Option<&JournalCallRecord<'_>>,
    ) -> Result<Option<CommitReceipt>, CommitError>;

    /// The rows that a query selects, in the order in which they were created.
    fn rows(&self, query: &RowQuery) -> Result<RowSet, Error>;

    /// Waits until a row of the family is written after this generation, or until the deadline.
    fn wait_for_rows(&self, family: RowFamily, generation: u64, deadline: Instant) -> Result<(), Error>;

    /// Shows other processes that the holder of rows lives, and returns the name of the holder. Names are never reused.
    fn hold_presence(&self, lifetime: &CallerResourceLifetime) -> Result<String, Error>;

    /// Whether the holder of a row lives.
    fn presence(&self, holder: &str) -> Result<HolderPresence, Error>;

    /// Starts to listen for changes by other programs, which the workspace records if they are watched. A workspace that
    /// no other program can change does nothing.
    fn listen_for_external_changes(&self, request: ExternalChangeListening) -> Result<(), Error>;

    /// Writes the journal entries that are still buffered in memory, and returns the last journal entry.
    fn head(&self) -> Result<JournalHead, Error>;

    /// The journal entry with this number, if it exists.
    fn entry(&self, number: u64) -> Result<Option<StoredJournalEntry>, Error>;

    /// The journal entries that match a query.
    fn entries(&self, filter: &JournalEntryQuery) -> Result<Vec<StoredJournalEntry>, Error>;

    /// Waits until the journal has an entry with a number higher than `number`, or until the deadline.
    fn wait_for_entry_after(&self, number: u64, deadline: Instant) -> Result<(), Error>;

    /// A counter that changes whenever the workspace may have changed. Every call reads the change counter, so an
    /// implementation must be fast. A change by another process may appear in the change counter up to a second late.
    fn change_counter(&self) -> Result<u64, Error> {
        Ok(self.head()?.number)
    }

    /// The number of the last journal entry that produced this version at this path.
    fn entry_of_version(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Error>;

    /// The number of the journal entry whose call used this idempotency key of the principal.
    fn entry_for_idempotency_key(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Error>;

    /// The bytes of a stored file version, or `None` if the bytes are no longer stored. A persistent workspace checks
    /// that the stored bytes have the hash of the version.
    fn retained_bytes(&self, version: &Version) -> Result<Option<Vec<u8>>, Error>;

    /// The trash item with this id, if it still exists.
    fn trash_item(&self, id: &str) -> Result<Option<TrashItem>, Error>;

    /// The trash items of one owner, or of everybody, sorted from the newest to the oldest.
    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<TrashItem>, Error>;

    /// The policy in force; an unreadable policy file is an error, so that no call runs without its policy.
    fn active_policy(&self) -> Result<ActivePolicy, Error> {
        Ok(ActivePolicy::built_in())
    }

    /// The number of the journal entry that undid entry `number`; `None` if the entry is not undone.
    fn undone_by(&self, number: u64) -> Result<Option<u64>, Error>;

    /// The number of calls and bytes of a session.
    fn session_totals(&self, query: &SessionTotalsQuery<'_>) -> Result<SessionTotals, Error>;

    /// The storage that the workspace uses.
    fn storage_usage(&self) -> Result<FilesystemTrashAndHistorySizes, Error>;

    /// The usage that counts towards a principal's quota; `None` if the usage was never counted. Calling code that holds
    /// path locks may request only the cached usage.
    fn principal_usage(
        &self,
        principal: &Principal,
        freshness: RequiredUsageFreshness,
    ) -> Result<Option<PrincipalUsage>, Error>;

    /// The workspace usage before a journal entry; `None` if the usage is no longer known.
    fn usage_before_entry(&self, number: u64) -> Result<Option<WorkspaceUsage>, Error>;

    /// The number of bytes of the stored file versions that a principal wrote or overwrote.
    fn history_bytes(&self, principal: &Principal) -> Result<u64, Error>;
}

/// Whether the holder of a row lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderPresence {
    /// The holder lives in this process.
    Here,
    /// The holder lives in another process.
    Elsewhere,
    /// The holder is gone and never returns.
    Gone,
}

/// When a workspace begins to listen for changes by other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExternalChangeListening {
    Start,
    /// Start if the workspace listens from its opening on and has watches.
    IfAlreadyWatched,
    /// If the workspace listens, look at the watches again.
    Reconsider,
}
