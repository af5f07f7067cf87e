//! The trait between the engine and the storage of a workspace. Implemented for a local directory. Not a general
//! file-system trait: a method is added only when an operation needs it.
//!
//! Every path passed in is validated, and every path returned by [`Workspace::locate`] is free of symlinks; all other
//! methods take only such paths. Files change only through [`Workspace::commit`].

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
    index::{IndexFilter, IndexedWalk, RequiredTrigrams},
    plan::{FileKind, Plan},
    policy::{ActivePolicy, PolicyTier},
    quota::Quota,
    session_store::SessionStore,
    version::Version,
    watches::{Watch, WatchRequest},
};

/// Cheap attributes that change when a file is replaced or written. Equal identities let a commit skip a second hash
/// within one call; they are never compared across calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device and inode, or an equivalent identifier.
    pub device_and_inode: (u64, u64),
    /// Length in bytes.
    pub size: u64,
    /// Time of the last content change.
    pub modified_ns: i128,
    /// Time of the last metadata change.
    pub changed_ns: i128,
}

/// The stat of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// The kind of the entry.
    pub kind: FileKind,
    /// Length in bytes; zero for directories.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Number of hard links.
    pub link_count: u64,
    /// Time of the last content change, in unix milliseconds.
    pub modified_ms: i64,
    /// The current identity.
    pub identity: FileIdentity,
}

/// Attributes beyond [`FileStat`] that few operations need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDetails {
    /// Creation time in unix milliseconds, if known.
    pub created_ms: Option<i64>,
    /// The owner's name, or the owner's number.
    pub owner: Option<String>,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name.
    pub name: FileName,
    /// The kind of the entry.
    pub kind: FileKind,
}

/// The stat of one name: an entry, `None`, or the error that prevented it.
pub type StatResult = Result<Option<FileStat>, Error>;

/// A directory that is open for a walk. Its entries are reached by name, even if the path to the directory changes.
pub trait DirectoryReader<'w>: Send + Sync {
    /// Opens and lists a subdirectory, as [`Workspace::list`] does. Never follows a symlink.
    fn open_subdirectory(&self, name: &FileName) -> Result<OpenedDirectory<'w>, Error>;

    /// The stat of a name in this directory; symlinks are not followed.
    fn stat(&self, name: &FileName) -> StatResult;

    /// Reads a regular file of this directory into `bytes`, which is cleared first. Stops after the first bytes if
    /// `goes_on` returns false for them. Fails if the file is larger than `limit_bytes`.
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
    /// The size when it was opened.
    fn size(&self) -> u64;

    /// Reads at `offset`; 0 at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error>;
}

/// An open directory and the names in it, in byte order.
pub type OpenedDirectory<'w> = (Box<dyn DirectoryReader<'w> + 'w>, Vec<DirectoryEntry>);

/// The bytes to read from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesToRead {
    /// The whole file; fails if it is larger than the limit.
    Whole {
        /// The limit.
        limit_bytes: u64,
    },
    /// A byte range.
    Range {
        /// First byte.
        offset: u64,
        /// Most bytes to read.
        length: u64,
    },
    /// No bytes, only the version.
    VersionOnly,
}

/// Bytes of a file with the version of the whole file.
#[derive(Debug, Clone)]
pub struct FileBytes {
    /// The requested bytes.
    pub bytes: Vec<u8>,
    /// The version of the whole file.
    pub version: Version,
    /// The stat of the file when it was read.
    pub stat: FileStat,
}

/// A path to lock for the duration of a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathLockRequest {
    /// The path. Its ancestors are locked shared, so that no tree moves while an entry in it changes.
    pub path: RelPath,
}

/// Holds the locks of one call until dropped.
pub trait CallLockGuard: Send {}

/// The journal record of one call, without its changes.
#[derive(Debug, Clone)]
pub struct CallRecord<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The operation's name.
    pub operation: &'static str,
    /// The dialect's tool name.
    pub tool: Option<&'a str>,
    /// The arguments without contents, as compact JSON.
    pub arguments: String,
    /// The paths of the call.
    pub paths: Vec<RelPath>,
    /// The caller's idempotency key.
    pub idempotency_key: Option<&'a str>,
    /// The error kind, if the call was refused or failed.
    pub error_kind: Option<crate::errors::ErrorKind>,
    /// The policy tier of the call.
    pub policy_tier: PolicyTier,
    /// The approval that lets the call run, used up by recording it; for a refusal, the requested approval.
    pub approval: Option<String>,
    /// Version of the policy.
    pub policy_version: u64,
    /// The quota for the caller; `None` if no quota is set for anybody, and then usage is not counted.
    pub quota: Option<Quota>,
    /// Bytes read or written.
    pub bytes: u64,
    /// Start of the call.
    pub started: Instant,
}

impl<'a> CallRecord<'a> {
    /// A record of a successful call that starts now, without the parts that few calls have.
    pub fn new(caller: &'a Caller, operation: &'static str, arguments: String) -> Self {
        Self {
            caller,
            operation,
            tool: None,
            arguments,
            paths: Vec::new(),
            idempotency_key: None,
            error_kind: None,
            policy_tier: PolicyTier::Autonomous,
            approval: None,
            policy_version: 0,
            quota: None,
            bytes: 0,
            started: Instant::now(),
        }
    }
}

/// The end of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalHead {
    /// Number of the last entry; zero if the journal is empty.
    pub number: u64,
    /// Its chain hash.
    pub hash: Digest,
}

/// The result of a commit.
#[derive(Debug, Clone)]
pub struct CommitReceipt {
    /// Number of the journal entry.
    pub entry: u64,
    /// The entry's chain hash.
    pub hash: Digest,
    /// Ids of new trash items, in the order of the plan's removals.
    pub trash_ids: Vec<String>,
    /// Notices for the caller: attributes that could not be preserved, a hard link that was broken.
    pub notices: Vec<String>,
}

/// The reason why a commit failed.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// An expectation of the plan no longer holds at this path; plan again.
    ExpectationFailed(RelPath),
    /// Another call committed the same idempotency key; its entry number.
    KeyAlreadyUsed(u64),
    /// Nothing was changed.
    Failed(Error),
    /// The call was recorded but could not be applied; the journal has a second entry about that.
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
    /// The entry.
    pub entry: JournalEntry,
    /// Its chain hash.
    pub hash: Digest,
}

/// Selects journal entries.
#[derive(Debug, Clone, Default)]
pub struct JournalEntryQuery {
    /// Only entries about this path or below it.
    pub path: Option<RelPath>,
    /// Only entries of this principal.
    pub principal: Option<String>,
    /// Only entries of this operation.
    pub operation: Option<String>,
    /// Only entries after this number.
    pub after: Option<u64>,
    /// Only entries before this number.
    pub before: Option<u64>,
    /// Only entries since this time, in unix milliseconds.
    pub since_ms: Option<i64>,
    /// Only entries until this time, in unix milliseconds.
    pub until_ms: Option<i64>,
    /// The kind of calls to include.
    pub selection: JournalEntrySelection,
    /// The order of the result.
    pub order: JournalEntryOrder,
    /// Most entries to return.
    pub limit: usize,
}

/// The calls whose entries a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JournalEntrySelection {
    /// Every call.
    #[default]
    All,
    /// Calls that changed something.
    WithChanges,
}

/// The order of journal entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JournalEntryOrder {
    /// Newest first.
    #[default]
    NewestFirst,
    /// Oldest first.
    OldestFirst,
}

/// An item in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashItem {
    /// The id of the item.
    pub id: String,
    /// The principal who removed it.
    pub owner: String,
    /// Its original path.
    pub path: RelPath,
    /// Its size.
    pub summary: crate::plan::TreeSummary,
    /// When it was removed, in unix milliseconds.
    pub removed_ms: i64,
    /// End of its retention, in unix milliseconds.
    pub retain_until_ms: i64,
    /// The entry that removed it.
    pub entry: u64,
}

/// An advisory lock visible to agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The path; everything below is included.
    pub path: RelPath,
    /// The principal who holds it.
    pub holder: String,
    /// Increases with every grant, so that a late holder can be detected.
    pub fencing_token: u64,
    /// When it ends, in unix milliseconds.
    pub ends_ms: i64,
}

/// A change of a lease.
#[derive(Debug, Clone)]
pub enum LeaseRequest {
    /// Acquires or extends a lease.
    Acquire {
        /// The path.
        path: RelPath,
        /// When it ends, in unix milliseconds.
        ends_ms: i64,
    },
    /// Releases a lease.
    Release {
        /// The path.
        path: RelPath,
    },
}

impl LeaseRequest {
    /// The path of the lease.
    pub fn path(&self) -> &RelPath {
        match self {
            LeaseRequest::Acquire { path, .. } | LeaseRequest::Release { path } => path,
        }
    }
}

/// The file names accepted for new entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNamePolicy {
    /// Only names valid on every common file system, and no look-alikes of existing names.
    Portable,
    /// Every name that this file system accepts.
    Posix,
}

/// Properties of a workspace that do not change while it is open.
#[derive(Debug, Clone)]
pub struct WorkspaceProfile {
    /// The workspace id.
    pub id: String,
    /// Absolute paths of the root that callers may use.
    pub root_spellings: Vec<String>,
    /// The file names accepted for new entries.
    pub name_policy: FileNamePolicy,
    /// Paths that belong to the server, compared case-insensitively.
    pub internal_paths: Vec<RelPath>,
}

/// A file tree with its journal.
pub trait Workspace: SessionStore + BufferStore + Send + Sync {
    /// The properties of the workspace.
    fn profile(&self) -> &WorkspaceProfile;

    /// The current time, in unix milliseconds.
    fn now_ms(&self) -> i64;

    /// Resolves a path to one without symlinks. It need not exist.
    fn locate(&self, path: &RelPath, last: FinalSymlink) -> Result<RelPath, Error>;

    /// The stat of a path; symlinks are not followed.
    fn stat(&self, path: &RelPath) -> Result<Option<FileStat>, Error>;

    /// The resolved path and, if known, its stat. `None` means it was not looked up; call [`Workspace::stat`].
    fn locate_and_stat(&self, path: &RelPath, last: FinalSymlink) -> Result<(RelPath, Option<FileStat>), Error> {
        self.locate(path, last).map(|place| (place, None))
    }

    /// Further attributes of a path; symlinks are not followed.
    fn file_details(&self, _path: &RelPath) -> Result<FileDetails, Error> {
        Ok(FileDetails::default())
    }

    /// The stat of each name in one directory; symlinks are not followed. An inaccessible name, such as a file on
    /// another mount, does not affect the others.
    fn stat_names(&self, directory: &RelPath, names: &[FileName]) -> Result<Vec<StatResult>, Error> {
        names.iter().map(|name| Ok(self.stat(&directory.join(name)?))).collect()
    }

    /// Bytes of a regular file, with the version of the whole file.
    fn read(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytes, Error>;

    /// Bytes of a regular file without the version, for reading many files. Fails if the file is too large.
    fn read_without_version(&self, path: &RelPath, limit_bytes: u64) -> Result<Vec<u8>, Error> {
        Ok(self.read(path, BytesToRead::Whole { limit_bytes })?.bytes)
    }

    /// Opens a regular file for reading in pieces. The default refuses, for workspaces without such large files.
    fn open_file(&self, path: &RelPath) -> Result<Box<dyn FileReader>, Error> {
        Err(Error::new(ErrorKind::TooLarge, format!("{path} cannot be read in pieces")))
    }

    /// Opens and lists a directory for a walk; `None` if the workspace has no directory handles.
    fn open_directory(&self, _path: &RelPath) -> Result<Option<OpenedDirectory<'_>>, Error> {
        Ok(None)
    }

    /// The index's knowledge of files for a search that requires these trigrams; `None` if there is no index or it can
    /// exclude nothing.
    fn index_filter(&self, _need: &RequiredTrigrams) -> Option<Box<dyn IndexFilter + '_>> {
        None
    }

    /// The result of a walk below a directory by a caller with full read access; `None` if it is not known for
    /// certain, or if reading the candidates would cost more than a walk.
    fn indexed_walk(&self, _start: &RelPath, _need: &RequiredTrigrams) -> Option<IndexedWalk> {
        None
    }

    /// Reports the number of files that a search read, so that the workspace can decide to build an index.
    fn report_files_searched(&self, _files: u64) {}

    /// The target of a symlink.
    fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Error>;

    /// The entries of a directory, in byte order, without the server's own and temporary files.
    fn list(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error>;

    /// Locks these paths in sorted order, waiting until the deadline. Completes interrupted commits of dead processes.
    fn lock(&self, requests: &[PathLockRequest], deadline: Instant) -> Result<Box<dyn CallLockGuard>, Error>;

    /// Applies a plan atomically and records it. The only method that changes files. The paths of the plan are locked.
    fn commit(&self, plan: &Plan, record: &CallRecord<'_>) -> Result<CommitReceipt, CommitError>;

    /// Records a call that changed nothing.
    fn record_call(&self, record: &CallRecord<'_>) -> Result<(), Error>;

    /// The end of the journal.
    fn head(&self) -> Result<JournalHead, Error>;

    /// The entry with this number.
    fn entry(&self, number: u64) -> Result<Option<StoredJournalEntry>, Error>;

    /// The entries that match a query.
    fn entries(&self, filter: &JournalEntryQuery) -> Result<Vec<StoredJournalEntry>, Error>;

    /// Waits for an entry after this one, until the deadline.
    fn wait_for_entry_after(&self, number: u64, deadline: Instant) -> Result<(), Error>;

    /// A number that changes whenever the workspace may have changed. Cheap, because every call reads it. Changes of
    /// other processes may take a second to appear.
    fn change_counter(&self) -> Result<u64, Error> {
        Ok(self.head()?.number)
    }

    /// The last entry that produced this version at this path.
    fn entry_of_version(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Error>;

    /// The entry of a principal's idempotency key.
    fn entry_for_idempotency_key(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Error>;

    /// Bytes of a stored version, verified against its hash. `None` if they are no longer stored.
    fn retained_bytes(&self, version: &Version) -> Result<Option<Vec<u8>>, Error>;

    /// The trash item with this id, if it still exists.
    fn trash_item(&self, id: &str) -> Result<Option<TrashItem>, Error>;

    /// Trash items, newest first.
    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<TrashItem>, Error>;

    /// Acquires or releases a lease and records it. Fails if another principal holds an overlapping lease.
    fn execute_lease_request(
        &self,
        request: &LeaseRequest,
        record: &CallRecord<'_>,
    ) -> Result<(Lease, CommitReceipt), Error>;

    /// Current leases that overlap these paths.
    fn leases(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Error>;

    /// The policy in force. Fails if its file cannot be read or parsed; then no call runs.
    fn active_policy(&self) -> Result<ActivePolicy, Error> {
        Ok(ActivePolicy::built_in())
    }

    /// The approval with this id.
    fn approval(&self, id: &str) -> Result<Option<Approval>, Error>;

    /// The approvals that match a filter, newest first.
    fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, Error>;

    /// Stores an approval request, unless the same one is pending. A pending or approved request for the same call
    /// with another plan becomes stale.
    fn request_approval(&self, request: &ApprovalRequest) -> Result<Approval, Error>;

    /// Stores a person's answer and records it. Fails if the request is no longer pending.
    fn answer_approval(
        &self,
        answer: &ApprovalAnswer,
        record: &CallRecord<'_>,
    ) -> Result<(Approval, CommitReceipt), Error>;

    /// Begins or ends a watch and records it. From then on the journal has entries for external changes there, or for
    /// lost events. Waits at most until the deadline for the watcher.
    fn execute_watch_request(
        &self,
        request: &WatchRequest,
        record: &CallRecord<'_>,
        deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error>;

    /// The watches of a principal, oldest first.
    fn watches(&self, owner: &Principal) -> Result<Vec<Watch>, Error>;

    /// The entry that currently undoes this entry, if any.
    fn undone_by(&self, number: u64) -> Result<Option<u64>, Error>;

    /// Properties of the workspace for people: durability, resolver, sandbox.
    fn describe(&self) -> Value;
}
