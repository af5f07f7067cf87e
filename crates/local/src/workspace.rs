//! Implements the engine's `Workspace` trait by delegating to the owning modules.

use std::time::Instant;

use serde_json::Value;
use stead_engine::{
    ActivePolicy, Approval, ApprovalAnswer, ApprovalFilter, ApprovalRequest, BytesToRead, CallLockGuard, CallRecord,
    CommitError, CommitReceipt, DirectoryEntry, Error, FileBytes, FileDetails, FileReader, FileStat, FinalSymlink,
    JournalEntryQuery, JournalHead, Lease, LeaseRequest, OpenedDirectory, PathLockRequest, Plan, Principal, StatResult,
    StoredJournalEntry, TrashItem, Version, Watch, WatchRequest, Workspace, WorkspaceProfile,
    index::{IndexFilter, IndexedWalk, RequiredTrigrams},
};
use stead_path::{FileName, RelPath};

use crate::{
    errors,
    group_commit::{TransactionBody, TransactionOutcome},
    maintenance,
    open::LocalWorkspace,
    path_locks,
    store::{self, SyncRequirement},
};

impl Workspace for LocalWorkspace {
    fn profile(&self) -> &WorkspaceProfile {
        &self.syntax_profile
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().wall_ms
    }

    fn locate(&self, path: &RelPath, last: FinalSymlink) -> Result<RelPath, Error> {
        self.resolve_path(path, last).map(|(resolved, _)| resolved)
    }

    fn locate_and_stat(&self, path: &RelPath, last: FinalSymlink) -> Result<(RelPath, Option<FileStat>), Error> {
        self.resolve_path(path, last)
    }

    fn stat(&self, path: &RelPath) -> Result<Option<FileStat>, Error> {
        self.stat_path(path)
    }

    fn file_details(&self, path: &RelPath) -> Result<FileDetails, Error> {
        self.read_file_details(path)
    }

    fn stat_names(&self, directory: &RelPath, names: &[FileName]) -> Result<Vec<StatResult>, Error> {
        self.stat_children(directory, names)
    }

    fn read(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytes, Error> {
        self.read_file(path, want)
    }

    fn read_without_version(&self, path: &RelPath, limit_bytes: u64) -> Result<Vec<u8>, Error> {
        self.read_for_search(path, limit_bytes)
    }

    fn open_file(&self, path: &RelPath) -> Result<Box<dyn FileReader>, Error> {
        self.open_file_reader(path)
    }

    fn open_directory(&self, path: &RelPath) -> Result<Option<OpenedDirectory<'_>>, Error> {
        self.open_walk_directory(path).map(Some)
    }

    fn index_filter(&self, required: &RequiredTrigrams) -> Option<Box<dyn IndexFilter + '_>> {
        self.index_filter_for(required)
    }

    fn indexed_walk(&self, start: &RelPath, required: &RequiredTrigrams) -> Option<IndexedWalk> {
        self.indexed_walk_for(start, required)
    }

    fn report_files_searched(&self, files: u64) {
        self.note_search(files);
    }

    fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Error> {
        self.root.read_link(path).map_err(|error| errors::error_at_path(path, &error))
    }

    fn list(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error> {
        self.list_directory(path)
    }

    fn lock(&self, asks: &[PathLockRequest], deadline: Instant) -> Result<Box<dyn CallLockGuard>, Error> {
        self.store.ensure_writable()?;
        let paths: Vec<RelPath> = asks.iter().map(|request| request.path.clone()).collect();
        loop {
            let guard = self.locks.lock(path_locks::path_slots(&paths), deadline)?;
            let waiting = self.unfinished_near(&paths)?;
            if waiting.is_empty() {
                return Ok(Box::new(guard));
            }
            // An unfinished entry may reach beyond these paths, so its own paths are locked instead.
            drop(guard);
            self.finish_entries(&waiting, deadline)?;
        }
    }

    fn commit(&self, plan: &Plan, record: &CallRecord<'_>) -> Result<CommitReceipt, CommitError> {
        self.commit_plan(plan, record)
    }

    fn record_call(&self, record: &CallRecord<'_>) -> Result<(), Error> {
        let mut draft = self.pending_entry(record, Vec::new(), stead_journal::EntryRelation::None, 0);
        let ticket = self.approval_use(record);
        if record.error_kind.is_none() && ticket.is_none() {
            // A read does not depend on its record: a full disk must not stop it.
            let lost = |count| {
                self.pending_system_entry(
                    "records_lost",
                    format!("{{\"count\":{count}}}"),
                    stead_journal::EntryRelation::None,
                )
            };
            // Only now and then: while the store cannot be written, each attempt fails and delays a reader.
            if self.group_commit.defer_entry(draft, lost).is_multiple_of(maintenance::DEFERRED_ENTRIES_FLUSH_AT) {
                self.flush_if_possible();
            }
            self.wake_maintenance();
            return Ok(());
        }
        let sync = if ticket.is_some() { SyncRequirement::Now } else { SyncRequirement::Later };
        let work: TransactionBody = Box::new(move |transaction, tip| {
            if let Some(error) = ticket.as_ref().map(|ticket| ticket.check_usable(transaction)).transpose()?.flatten() {
                return Ok(TransactionOutcome::Refused(error));
            }
            store::append_entry(transaction, tip, &mut draft)?;
            if let Some(ticket) = &ticket {
                ticket.consume(transaction, draft.entry.number)?;
            }
            Ok(TransactionOutcome::Recorded(draft.entry.number, tip.hash))
        });
        match self.group_commit.submit(&self.store, self.durability, sync, work)? {
            TransactionOutcome::Refused(error) => Err(error),
            TransactionOutcome::Recorded(..) | TransactionOutcome::Replayed(_) => Ok(()),
        }
    }

    fn head(&self) -> Result<JournalHead, Error> {
        self.flush_if_possible();
        let tip = self.store.run_query(|connection| store::load_tip(connection, &self.store.origin))?;
        Ok(JournalHead { number: tip.number, hash: tip.hash })
    }

    fn entry(&self, number: u64) -> Result<Option<StoredJournalEntry>, Error> {
        self.entry_by_number(number)
    }

    fn entries(&self, filter: &JournalEntryQuery) -> Result<Vec<StoredJournalEntry>, Error> {
        self.find_entries(filter)
    }

    fn wait_for_entry_after(&self, number: u64, deadline: Instant) -> Result<(), Error> {
        self.wait_for_new_entry(number, deadline)
    }

    fn change_counter(&self) -> Result<u64, Error> {
        self.announcement_count()
    }

    fn entry_of_version(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Error> {
        self.last_entry_with_version(&path.to_wire(), version)
    }

    fn entry_for_idempotency_key(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Error> {
        self.entry_with_key(&principal.to_string(), key)
    }

    fn retained_bytes(&self, version: &Version) -> Result<Option<Vec<u8>>, Error> {
        self.load_retained_bytes(version)
    }

    fn trash_item(&self, id: &str) -> Result<Option<TrashItem>, Error> {
        self.load_trash_item(id)
    }

    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<TrashItem>, Error> {
        self.trash_items(owner)
    }

    fn execute_lease_request(
        &self,
        request: &LeaseRequest,
        record: &CallRecord<'_>,
    ) -> Result<(Lease, CommitReceipt), Error> {
        self.change_lease(request, record)
    }

    fn leases(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Error> {
        self.leases_overlapping(paths)
    }

    fn active_policy(&self) -> Result<ActivePolicy, Error> {
        self.current_policy()
    }

    fn approval(&self, id: &str) -> Result<Option<Approval>, Error> {
        self.approval_by_id(id)
    }

    fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, Error> {
        self.find_approvals(filter)
    }

    fn request_approval(&self, request: &ApprovalRequest) -> Result<Approval, Error> {
        self.insert_approval_request(request)
    }

    fn answer_approval(
        &self,
        answer: &ApprovalAnswer,
        record: &CallRecord<'_>,
    ) -> Result<(Approval, CommitReceipt), Error> {
        self.record_approval_answer(answer, record)
    }

    fn execute_watch_request(
        &self,
        request: &WatchRequest,
        record: &CallRecord<'_>,
        deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error> {
        self.change_watch(request, record, deadline)
    }

    fn watches(&self, owner: &Principal) -> Result<Vec<Watch>, Error> {
        self.watches_of(owner)
    }

    fn undone_by(&self, number: u64) -> Result<Option<u64>, Error> {
        self.undone_by(number)
    }

    fn describe(&self) -> Value {
        serde_json::json!(self.status_facts())
    }
}
