//! [`Workspace`], the trait between the engine and the storage of a workspace.
//!
//! Only [`Workspace::commit_transaction`] writes the effects of a call on files and rows; the trait [`Tree`] looks at files.

use std::time::Instant;

use stead_journal::{Digest, JournalEntry, JournalEntryDetails};
use stead_path::RelPath;

use crate::{
    caller::{Caller, CallerResourceLifetime, Principal},
    errors::{Error, ErrorKind},
    plan::TreeSummary,
    policy::{ActivePolicy, SupervisionTier},
    quota::{PrincipalUsage, RequiredUsageFreshness, StorageQuotaLimits, WorkspaceUsage},
    rows::{RowFamily, RowQuery, RowSet},
    session_store::{FilesystemTrashAndHistorySizes, SessionTotals, SessionTotalsQuery},
    transaction::{ClockReading, FailedExpectation, Transaction},
    tree::Tree,
    version::Version,
};

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

/// The storage of a file tree and its journal.
pub trait Workspace: Tree {
    /// The clock that decides about leases, approvals and retention.
    fn now(&self) -> ClockReading;

    /// The wall clock, in unix milliseconds.
    fn now_ms(&self) -> i64 {
        self.now().wall_ms
    }

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

    /// Waits until a row of the family is written after this generation, or until the deadline. A write by another
    /// process may be noticed only at the deadline.
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
