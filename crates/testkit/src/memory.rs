//! A workspace in memory for tests, with a clock that tests advance. One mutex guards the whole state, so every
//! operation is atomic.

mod apply;
mod fixture;
mod journal;
mod retained_versions;
mod rows;
mod tree;
mod usage;

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use journal::MemoryJournal;
use rows::{MemoryRowHolders, MemoryRows, time_left};
use stead_engine::{
    ActivePolicy, CallLockGuard, CallerResourceLifetime, ClockReading, CommitError, CommitReceipt, Error, ErrorKind,
    ExternalChangeListening, FileNamePolicy, FilesystemTrashAndHistorySizes, HolderPresence,
    ImmutableWorkspaceProperties, JournalCallRecord, JournalEntryQuery, JournalHead, LocateRequest, LocatedPath,
    PathLockRequest, Plan, Principal, PrincipalUsage, QuotaCharge, RequiredUsageFreshness, RowFamily, RowQuery, RowSet,
    RowStamp, SessionTotals, SessionTotalsQuery, StoredJournalEntry, Transaction, TrashItem, Tree, Version,
    WatchAttachStage, Workspace, WorkspaceUsage,
};
use stead_journal::{JournalEntryRelation, RecordedUsage};
use stead_path::RelPath;
use tree::MemoryTree;

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
    rows: MemoryRows,
    holders: MemoryRowHolders,
    policy: ActivePolicy,
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
            rows: MemoryRows::default(),
            holders: MemoryRowHolders::default(),
            policy: ActivePolicy::built_in(),
            is_full: false,
            next_error: None,
        };
        Self { profile, state: Mutex::new(state), entry_added: Condvar::new() }
    }

    fn lock_state(&self) -> MutexGuard<'_, MemoryWorkspaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit_files(
        &self,
        state: &mut MemoryWorkspaceState,
        plan: &Plan,
        transaction: &Transaction<'_>,
        record: &JournalCallRecord<'_>,
    ) -> Result<CommitReceipt, CommitError> {
        if state.is_full {
            return Err(Error::new(ErrorKind::NoSpace, "no space left").into());
        }
        let used_key = |key| state.journal.entry_for_idempotency_key(&record.caller.principal, key);
        if let Some(number) = record.idempotency_key.and_then(used_key) {
            return Err(CommitError::KeyAlreadyUsed(number));
        }
        let usage = state.count_usage(&record.caller.principal);
        if let Some(charge) = record.quota.map(|quota| QuotaCharge::for_plan(plan, quota)) {
            let before = charge.undone_entry().and_then(|number| state.journal.usage_before(number));
            charge.check(&usage, before)?;
        }
        state.rows.check(&transaction.expect, &state.now())?;
        let applied = apply::apply_plan(state, plan, &record.caller.principal.to_string())?;
        let mut details = record.details.clone();
        let WorkspaceUsage { bytes, files } = usage.workspace;
        details.usage_before = record.quota.map(|_| RecordedUsage { bytes, files });
        let bytes = record.bytes.max(applied.written_bytes);
        let record = &JournalCallRecord { bytes, details, ..record.clone() };
        let head = self.record(state, record, applied.changes, plan.link.clone());
        state.rows.write(&transaction.rows, Some(RowStamp { entry: head.number, time_ms: state.now_ms }));
        let trash_ids = applied.trashed.iter().map(|item| item.item.id.clone()).collect();
        state.tree = applied.tree;
        for (version, bytes) in applied.retained {
            state.retain_version(version, bytes, &record.caller.principal);
        }
        for id in &applied.restored {
            state.trash.remove(id);
        }
        for mut item in applied.trashed {
            item.item.entry = head.number;
            state.trash.insert(item.item.id.clone(), item);
        }
        Ok(receipt(head, trash_ids, applied.notices))
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

impl MemoryWorkspaceState {
    fn now(&self) -> ClockReading {
        ClockReading { wall_ms: self.now_ms, uptime_ms: self.now_ms - START_MS, boot_id: WORKSPACE_ID.to_owned() }
    }
}

/// No path needs a lock, because every operation of the memory workspace is atomic.
struct NoopGuard;

impl CallLockGuard for NoopGuard {}

impl Tree for MemoryWorkspace {
    fn profile(&self) -> &ImmutableWorkspaceProperties {
        &self.profile
    }

    fn locate(&self, request: &LocateRequest<'_>) -> Result<LocatedPath, Error> {
        let tree = self.lock_state().tree.clone();
        let path = match *request {
            LocateRequest::Resolve(path, last) => tree.locate(path, last, &self.profile.root_spellings)?,
            LocateRequest::LinkFree(path) => path.clone(),
        };
        Ok(LocatedPath { entry: tree.entry(&path), path })
    }
}

impl Workspace for MemoryWorkspace {
    fn now(&self) -> ClockReading {
        self.lock_state().now()
    }

    fn lock(&self, _asks: &[PathLockRequest], _deadline: Instant) -> Result<Box<dyn CallLockGuard>, Error> {
        Ok(Box::new(NoopGuard))
    }

    fn commit_transaction(
        &self,
        transaction: &Transaction<'_>,
        record: Option<&JournalCallRecord<'_>>,
    ) -> Result<Option<CommitReceipt>, CommitError> {
        let mut state = self.lock_state();
        if let (Some(plan), Some(record)) = (transaction.files, record) {
            return self.commit_files(&mut state, plan, transaction, record).map(Some);
        }
        state.rows.check(&transaction.expect, &state.now())?;
        let head = record.map(|record| self.record(&mut state, record, Vec::new(), JournalEntryRelation::None));
        let stamp = head.map(|head| RowStamp { entry: head.number, time_ms: state.now_ms });
        state.rows.write(&transaction.rows, stamp);
        Ok(head.map(|head| receipt(head, Vec::new(), Vec::new())))
    }

    fn rows(&self, query: &RowQuery) -> Result<RowSet, Error> {
        Ok(self.lock_state().rows.query(query))
    }

    fn wait_for_rows(&self, family: RowFamily, generation: u64, deadline: Instant) -> Result<(), Error> {
        let mut state = self.lock_state();
        while state.rows.generation(family) == generation {
            let Some(left) = time_left(deadline) else { break };
            state = self.entry_added.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn hold_presence(&self, lifetime: &CallerResourceLifetime) -> Result<String, Error> {
        self.lock_state().holders.hold(lifetime)
    }

    fn presence(&self, holder: &str) -> Result<HolderPresence, Error> {
        Ok(self.lock_state().holders.presence(holder))
    }

    /// Every change that a watch reports is in the journal, so a watch is attached at once.
    fn listen_for_external_changes(&self, request: ExternalChangeListening) -> Result<(), Error> {
        let workspace: &dyn Workspace = self;
        match request {
            ExternalChangeListening::Start => {
                let requested = workspace.all_watches()?.watches.into_iter();
                requested
                    .filter(|row| row.stage == WatchAttachStage::Requested)
                    .try_for_each(|row| workspace.set_watch_stage(&row.watch.id, WatchAttachStage::Attached))
            }
            ExternalChangeListening::IfAlreadyWatched | ExternalChangeListening::Reconsider => Ok(()),
        }
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
            let Some(left) = time_left(deadline) else { break };
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

    fn active_policy(&self) -> Result<ActivePolicy, Error> {
        let mut state = self.lock_state();
        match state.next_error.take() {
            Some(failure) => Err(failure),
            None => Ok(state.policy.clone()),
        }
    }

    fn undone_by(&self, number: u64) -> Result<Option<u64>, Error> {
        Ok(self.lock_state().journal.undone_by(number))
    }

    fn session_totals(&self, query: &SessionTotalsQuery<'_>) -> Result<SessionTotals, Error> {
        Ok(self.lock_state().session_totals(query))
    }

    fn storage_usage(&self) -> Result<FilesystemTrashAndHistorySizes, Error> {
        Ok(self.lock_state().storage_usage())
    }

    fn principal_usage(
        &self,
        principal: &Principal,
        freshness: RequiredUsageFreshness,
    ) -> Result<Option<PrincipalUsage>, Error> {
        match freshness {
            RequiredUsageFreshness::Cached | RequiredUsageFreshness::RecountIfStale => {}
            RequiredUsageFreshness::Recount => self.purge_expired_trash(),
        }
        Ok(Some(self.lock_state().count_usage(principal)))
    }

    fn usage_before_entry(&self, number: u64) -> Result<Option<WorkspaceUsage>, Error> {
        Ok(self.lock_state().journal.usage_before(number))
    }

    fn history_bytes(&self, principal: &Principal) -> Result<u64, Error> {
        Ok(self.lock_state().history_bytes_of(principal))
    }
}

fn receipt(head: JournalHead, trash_ids: Vec<String>, notices: Vec<String>) -> CommitReceipt {
    CommitReceipt { entry: head.number, hash: head.hash, trash_ids, notices }
}
