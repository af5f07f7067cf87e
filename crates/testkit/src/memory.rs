//! A workspace in memory for tests, with a clock that tests advance. One mutex guards the whole state, so every
//! operation is atomic.

mod apply;
mod approval;
mod buffers;
mod fixture;
mod journal;
mod lease;
mod retained_versions;
mod sessions;
mod tree;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use journal::MemoryJournal;
use stead_engine::{
    ActivePolicy, Approval, ApprovalAnswer, ApprovalFilter, ApprovalRequest, BytesToRead, CallLockGuard, CommitError,
    CommitReceipt, ConnectionScopedResources, DirectoryEntry, Error, ErrorKind, FileBytesWithVersion, FileNamePolicy,
    FileReader, FileStat, FinalSymlink, ImmutableWorkspaceProperties, JournalCallRecord, JournalEntryQuery,
    JournalHead, Lease, LeaseAcquireOrReleaseRequest, PathLockRequest, Plan, Principal, QuotaCharge,
    StoredJournalEntry, TrashItem, Version, Watch, WatchBeginOrEndRequest, Workspace, WorkspaceUsage,
};
use stead_journal::JournalEntryRelation;
use stead_path::RelPath;
use tree::{InMemoryTreeNodeContent, MemoryTree};

/// The workspace clock starts at 2026-01-01T00:00:00Z.
const START_MS: i64 = 1_767_225_600_000;
const WORKSPACE_ID: &str = "memory";

/// A workspace that keeps all its state in memory, for tests.
pub struct MemoryWorkspace {
    profile: ImmutableWorkspaceProperties,
    state: Mutex<MemoryWorkspaceState>,
    entry_added: Condvar,
}

struct MemoryWorkspaceState {
    now_ms: i64,
    tree: MemoryTree,
    journal: MemoryJournal,
    retained_versions: BTreeMap<Version, retained_versions::TestMemoryWorkspaceRetainedVersion>,
    trash: BTreeMap<String, apply::MemoryTrashItem>,
    leases: Vec<Lease>,
    watches: Vec<Watch>,
    /// The ids of the watches that end with the process.
    process_watches: BTreeSet<String>,
    last_fencing_number: u64,
    approvals: Vec<Approval>,
    policy: ActivePolicy,
    sessions: sessions::MemorySessionStore,
    usage_before: BTreeMap<u64, WorkspaceUsage>,
    buffers: Vec<buffers::MemoryWorkspaceBuffer>,
    connections: BTreeMap<String, Arc<ConnectionScopedResources>>,
    is_full: bool,
    next_error: Option<Error>,
}

impl Default for MemoryWorkspace {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryWorkspace {
    /// The absolute path that the memory workspace reports as its root.
    pub const ROOT: &str = "/ws";

    /// Creates an empty workspace that allows only portable names and has the root `/ws`.
    pub fn new() -> Self {
        Self::with_profile(ImmutableWorkspaceProperties {
            id: WORKSPACE_ID.to_owned(),
            root_spellings: vec![Self::ROOT.to_owned()],
            name_policy: FileNamePolicy::Portable,
            internal_paths: Vec::new(),
        })
    }

    /// Creates an empty memory workspace with the given properties.
    pub fn with_profile(profile: ImmutableWorkspaceProperties) -> Self {
        let state = MemoryWorkspaceState {
            now_ms: START_MS,
            tree: MemoryTree::new(START_MS),
            journal: MemoryJournal::new(&profile.id),
            retained_versions: BTreeMap::new(),
            trash: BTreeMap::new(),
            leases: Vec::new(),
            watches: Vec::new(),
            process_watches: BTreeSet::new(),
            last_fencing_number: 0,
            approvals: Vec::new(),
            policy: ActivePolicy::built_in(),
            sessions: sessions::MemorySessionStore::default(),
            usage_before: BTreeMap::new(),
            buffers: Vec::new(),
            connections: BTreeMap::new(),
            is_full: false,
            next_error: None,
        };
        Self { profile, state: Mutex::new(state), entry_added: Condvar::new() }
    }

    fn lock_state(&self) -> MutexGuard<'_, MemoryWorkspaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(
        &self,
        state: &mut MemoryWorkspaceState,
        record: &JournalCallRecord<'_>,
        changes: Vec<stead_journal::RecordedChange>,
        link: JournalEntryRelation,
    ) -> JournalHead {
        let head = state.journal.append(record, changes, link, state.now_ms);
        self.entry_added.notify_all();
        head
    }
}

/// No path needs a lock, because every operation of the memory workspace is atomic.
struct NoopGuard;

impl CallLockGuard for NoopGuard {}

impl Workspace for MemoryWorkspace {
    fn profile(&self) -> &ImmutableWorkspaceProperties {
        &self.profile
    }

    fn now_ms(&self) -> i64 {
        self.lock_state().now_ms
    }

    fn locate(&self, path: &RelPath, last: FinalSymlink) -> Result<RelPath, Error> {
        self.lock_state().tree.locate(path, last, &self.profile.root_spellings)
    }

    fn stat(&self, path: &RelPath) -> Result<Option<FileStat>, Error> {
        Ok(self.lock_state().tree.get(path).map(tree::MemoryNode::node))
    }

    fn read(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytesWithVersion, Error> {
        let state = self.lock_state();
        let placed =
            state.tree.get(path).ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{path} does not exist")))?;
        let bytes = match &placed.item {
            InMemoryTreeNodeContent::File(bytes) => bytes,
            InMemoryTreeNodeContent::Directory => {
                return Err(Error::new(ErrorKind::IsDirectory, format!("{path} is a directory")));
            }
            InMemoryTreeNodeContent::Link(_) | InMemoryTreeNodeContent::Special => {
                return Err(Error::new(ErrorKind::NotRegular, format!("{path} is no file")));
            }
        };
        let wanted = match want {
            BytesToRead::VersionOnly => Vec::new(),
            BytesToRead::Whole { limit_bytes } if bytes.len() as u64 > limit_bytes => {
                return Err(Error::new(ErrorKind::TooLarge, format!("{path} is too large to read at once")));
            }
            BytesToRead::Whole { .. } => bytes.clone(),
            BytesToRead::Range { offset, length } => {
                let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
                let taken = usize::try_from(length).unwrap_or(usize::MAX);
                bytes.iter().skip(skipped).take(taken).copied().collect()
            }
        };
        Ok(FileBytesWithVersion { bytes: wanted, version: Version::hash_bytes(bytes), stat: placed.node() })
    }

    fn open_file(&self, path: &RelPath) -> Result<Box<dyn FileReader>, Error> {
        Ok(Box::new(tree::MemoryFileReader(self.read_without_version(path, u64::MAX)?)))
    }

    fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Error> {
        match self.lock_state().tree.get(path).map(|placed| &placed.item) {
            Some(InMemoryTreeNodeContent::Link(target)) => Ok(target.clone()),
            Some(
                InMemoryTreeNodeContent::File(_)
                | InMemoryTreeNodeContent::Directory
                | InMemoryTreeNodeContent::Special,
            )
            | None => Err(Error::new(ErrorKind::NotFound, format!("{path} is no link"))),
        }
    }

    fn list(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error> {
        self.lock_state().tree.list(path)
    }

    fn lock(&self, _asks: &[PathLockRequest], _deadline: Instant) -> Result<Box<dyn CallLockGuard>, Error> {
        Ok(Box::new(NoopGuard))
    }

    fn commit(&self, plan: &Plan, record: &JournalCallRecord<'_>) -> Result<CommitReceipt, CommitError> {
        let mut state = self.lock_state();
        if state.is_full {
            return Err(Error::new(ErrorKind::NoSpace, "no space left").into());
        }
        if let Some(number) = record
            .idempotency_key
            .and_then(|key| state.journal.entry_for_idempotency_key(&record.caller.principal, key))
        {
            return Err(CommitError::KeyAlreadyUsed(number));
        }
        approval::check_approval(&state, record)?;
        let holding = sessions::count_usage(&state, &record.caller.principal);
        if let Some(charge) = record.quota.map(|quota| QuotaCharge::for_plan(plan, quota)) {
            let before = charge.undone_entry().and_then(|number| state.usage_before.get(&number).copied());
            charge.check(&holding, before)?;
        }
        let owner = record.caller.principal.to_string();
        buffers::check_steps(&state, &plan.buffers)?;
        let applied = apply::apply_plan(&state, plan, &owner)?;
        let record = &JournalCallRecord { bytes: record.bytes.max(applied.written_bytes), ..record.clone() };
        let head = self.record(&mut state, record, applied.changes, plan.link.clone());
        approval::consume_approval(&mut state, record, head.number);
        state.usage_before.insert(head.number, holding.workspace);
        let trash = applied.trashed.iter().map(|item| item.item.id.clone()).collect();
        state.tree = applied.tree;
        for (version, bytes) in applied.retained {
            state.retain_version(version, bytes, &record.caller.principal);
        }
        buffers::apply_steps(&mut state, &plan.buffers);
        for id in &applied.restored {
            state.trash.remove(id);
        }
        for mut item in applied.trashed {
            item.item.entry = head.number;
            state.trash.insert(item.item.id.clone(), item);
        }
        Ok(CommitReceipt { entry: head.number, hash: head.hash, trash_ids: trash, notices: applied.notices })
    }

    fn record_call(&self, record: &JournalCallRecord<'_>) -> Result<(), Error> {
        let mut state = self.lock_state();
        if record.error_kind.is_none() {
            approval::check_approval(&state, record)?;
        }
        let head = self.record(&mut state, record, Vec::new(), JournalEntryRelation::None);
        if record.error_kind.is_none() {
            approval::consume_approval(&mut state, record, head.number);
        }
        Ok(())
    }

    fn head(&self) -> Result<JournalHead, Error> {
        Ok(self.lock_state().journal.head())
    }

    fn entry(&self, number: u64) -> Result<Option<StoredJournalEntry>, Error> {
        Ok(self.lock_state().journal.entry(number).cloned())
    }

    fn entries(&self, filter: &JournalEntryQuery) -> Result<Vec<StoredJournalEntry>, Error> {
        Ok(self.lock_state().journal.entries(filter))
    }

    fn wait_for_entry_after(&self, number: u64, deadline: Instant) -> Result<(), Error> {
        let mut state = self.lock_state();
        while state.journal.head().number <= number {
            let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                break;
            };
            state = self.entry_added.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn entry_of_version(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Error> {
        Ok(self.lock_state().journal.entry_of_version(path, version))
    }

    fn entry_for_idempotency_key(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Error> {
        Ok(self.lock_state().journal.entry_for_idempotency_key(principal, key))
    }

    fn retained_bytes(&self, version: &Version) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.lock_state().retained_versions.get(version).map(|retained| retained.bytes.clone()))
    }

    fn trash_item(&self, id: &str) -> Result<Option<TrashItem>, Error> {
        Ok(self.lock_state().trash.get(id).map(|item| item.item.clone()))
    }

    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<TrashItem>, Error> {
        let owner = owner.map(ToString::to_string);
        let state = self.lock_state();
        let mut items: Vec<TrashItem> = state.trash.values().map(|item| item.item.clone()).collect();
        items.retain(|item| owner.as_ref().is_none_or(|owner| item.owner == *owner));
        items.sort_by_key(|item| std::cmp::Reverse(item.entry));
        Ok(items)
    }

    fn execute_lease_request(
        &self,
        ask: &LeaseAcquireOrReleaseRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(Lease, CommitReceipt), Error> {
        let mut state = self.lock_state();
        approval::check_approval(&state, record)?;
        let lease = lease::check_lease(&state, ask, &record.caller.principal.to_string())?;
        lease::apply_lease(&mut state, ask, &lease);
        let head = self.record(&mut state, record, Vec::new(), JournalEntryRelation::None);
        approval::consume_approval(&mut state, record, head.number);
        let committed =
            CommitReceipt { entry: head.number, hash: head.hash, trash_ids: Vec::new(), notices: Vec::new() };
        Ok((lease, committed))
    }

    fn leases(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Error> {
        let state = self.lock_state();
        Ok(lease::running_leases(&state)
            .filter(|lease| paths.iter().any(|path| lease::is_overlapping(&lease.path, path)))
            .cloned()
            .collect())
    }

    fn active_policy(&self) -> Result<ActivePolicy, Error> {
        let mut state = self.lock_state();
        match state.next_error.take() {
            Some(failure) => Err(failure),
            None => Ok(state.policy.clone()),
        }
    }

    fn approval(&self, id: &str) -> Result<Option<Approval>, Error> {
        Ok(approval::current_approvals(&self.lock_state()).into_iter().find(|approval| approval.id == id))
    }

    fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, Error> {
        Ok(approval::filter_approvals(&self.lock_state(), filter))
    }

    fn request_approval(&self, ask: &ApprovalRequest) -> Result<Approval, Error> {
        approval::request_approval(&mut self.lock_state(), ask)
    }

    fn answer_approval(
        &self,
        answer: &ApprovalAnswer,
        record: &JournalCallRecord<'_>,
    ) -> Result<(Approval, CommitReceipt), Error> {
        let mut state = self.lock_state();
        let approval = approval::answer_approval(&mut state, answer, record)?;
        let record = JournalCallRecord { approval: Some(answer.id.clone()), ..record.clone() };
        let head = self.record(&mut state, &record, Vec::new(), JournalEntryRelation::None);
        let committed =
            CommitReceipt { entry: head.number, hash: head.hash, trash_ids: Vec::new(), notices: Vec::new() };
        Ok((approval, committed))
    }

    fn execute_watch_request(
        &self,
        ask: &WatchBeginOrEndRequest,
        record: &JournalCallRecord<'_>,
        _deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error> {
        let mut state = self.lock_state();
        let watch = watch::find_or_make_watch(&state, ask, record)?;
        watch::apply_watch(&mut state, ask, &watch);
        let head = self.record(&mut state, record, Vec::new(), JournalEntryRelation::None);
        let committed =
            CommitReceipt { entry: head.number, hash: head.hash, trash_ids: Vec::new(), notices: Vec::new() };
        Ok((watch, committed))
    }

    fn watches(&self, owner: &Principal) -> Result<Vec<Watch>, Error> {
        let owner = owner.to_string();
        Ok(self.lock_state().watches.iter().filter(|watch| watch.owner == owner).cloned().collect())
    }

    fn undone_by(&self, number: u64) -> Result<Option<u64>, Error> {
        Ok(self.lock_state().journal.undone_by(number))
    }
}
