//! Records changes by other programs as journal entries. A thread watches the tree while there is any watch; among
//! several processes the one that holds a lock records, and the kernel frees the lock when it dies.
//!
//! Promises: a change at a watched path is recorded, or a rescan entry reports possible loss; a change through stead is
//! recorded only once. Never changes a file, and costs nothing while idle.

mod attach;
mod classify;
mod event_batch;
mod observed_state;
mod record;
mod recorded_state;
mod recorder;
mod watch_rows;
mod watch_scopes;
mod watched_directories;
mod watched_tree;

use std::{
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use stead_disk::{DiskErrorKind, fs_events::FsQueueWaker};
use stead_engine::{
    CallRecord, CallerLifetime, CommitReceipt, Error, ErrorKind, Principal, Watch, WatchLifetime, WatchRequest,
};
use stead_journal::EntryRelation;
use watch_rows::{WatchRequester, WatchStage};

use crate::{
    commit::recorded_outcome,
    errors,
    group_commit::{TransactionBody, TransactionOutcome},
    open::LocalWorkspace,
    options::WatchStart,
    random::random_name,
    store::{self, SyncRequirement, lock_ignoring_poison},
};

/// Longest time that a new watch waits for the recorder.
const ATTACH_WAIT: Duration = Duration::from_secs(10);
/// Poll interval of a caller that waits for its watch to be attached.
const ATTACH_POLL_PAUSE: Duration = Duration::from_millis(20);
/// How often a principal's polling of its watches is stored.
const POLL_RECORD_INTERVAL_MS: i64 = 60 * 60 * 1000;

/// The recorder thread of one open workspace, if it runs.
#[derive(Default)]
pub(crate) struct ExternalChangeListener {
    /// Weak, because the thread must not keep the workspace open.
    workspace: OnceLock<Weak<LocalWorkspace>>,
    thread: Mutex<Option<ListenerThread>>,
    /// Whether the thread is signalled when another process writes to the store.
    is_listening: AtomicBool,
    rounds: AtomicU64,
}

struct ListenerThread {
    waker: FsQueueWaker,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl ExternalChangeListener {
    pub(crate) fn set_workspace(&self, workspace: &Arc<LocalWorkspace>) {
        self.workspace.get_or_init(|| Arc::downgrade(workspace));
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }

    /// Stops the thread and joins it, unless called from the thread itself.
    pub(crate) fn stop(&self) {
        let Some(running) = lock_ignoring_poison(&self.thread).take() else { return };
        running.stop.store(true, Ordering::Release);
        running.waker.wake();
        if running.thread.thread().id() != std::thread::current().id() {
            // A panic is ignored here; the next recorder reports the gap.
            match running.thread.join() {
                Ok(()) | Err(_) => {}
            }
        }
    }
}

impl LocalWorkspace {
    /// How often the recorder thread has woken up.
    pub fn listening_rounds(&self) -> u64 {
        self.external_changes.rounds.load(Ordering::Relaxed)
    }

    /// Starts the thread if there is a watch and the options allow it.
    pub(crate) fn listen_if_watched(&self) -> Result<(), Error> {
        if self.watch_start == WatchStart::AtOpen && self.store.run_query(watch_rows::has_watches)? {
            self.start_listening()?;
        }
        Ok(())
    }

    fn start_listening(&self) -> Result<(), Error> {
        let Some(workspace) = self.external_changes.workspace.get() else { return Ok(()) };
        let mut running = lock_ignoring_poison(&self.external_changes.thread);
        if let Some(running) = running.as_ref().filter(|running| !running.thread.is_finished()) {
            running.waker.wake();
            return Ok(());
        }
        let waker = FsQueueWaker::new().map_err(|error| watching_unsupported(error.kind))?;
        let recorder = recorder::ExternalChangeRecorder::new(self, waker.clone())
            .map_err(|error| watching_unsupported(error.kind))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (weak, stopped) = (Weak::clone(workspace), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("outside".to_owned())
            .spawn(move || recorder.run(&weak, &stopped))
            .map_err(|_| Error::new(ErrorKind::Busy, "no thread could be started").with_next_step("call again"))?;
        *running = Some(ListenerThread { waker, stop, thread });
        Ok(())
    }

    /// Wakes callers that wait for entries.
    pub(crate) fn notify_waiters(&self) {
        *lock_ignoring_poison(&self.new_entries.0) += 1;
        self.new_entries.1.notify_all();
    }

    pub(crate) fn change_watch(
        &self,
        request: &WatchRequest,
        record: &CallRecord<'_>,
        deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error> {
        match request {
            WatchRequest::Begin { .. } => self.create_watch(request, record, deadline),
            WatchRequest::End { id } => self.end_watch(id, record),
        }
    }

    pub(crate) fn watches_of(&self, owner: &Principal) -> Result<Vec<Watch>, Error> {
        let (owner, now_ms) = (owner.to_string(), self.clock.now().wall_ms);
        let (watches, unheard) = self.store.run_query(|connection| {
            let unheard = watch_rows::not_polled_since(connection, &owner, now_ms - POLL_RECORD_INTERVAL_MS)?;
            Ok((watch_rows::watches_of_owner(connection, &owner)?, unheard))
        })?;
        if unheard {
            self.write_watch_rows(|connection| watch_rows::record_last_poll(connection, &owner, now_ms))?;
        }
        if !watches.is_empty() {
            self.listen_if_watched()?;
        }
        Ok(watches)
    }

    fn create_watch(
        &self,
        request: &WatchRequest,
        record: &CallRecord<'_>,
        deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error> {
        let id = random_name("w-")?;
        let caller = record.caller;
        if let WatchRequest::Begin { lifetime: WatchLifetime::Process, .. } = request {
            self.liveness.register(&CallerLifetime::Process)?;
        }
        let (owner, now_ms) = (caller.principal.to_string(), self.clock.now().wall_ms);
        let by = WatchRequester { owner: &owner, session: &caller.session, process: &self.process_id };
        self.write_watch_rows(|connection| watch_rows::insert_watch(connection, &id, &by, request, now_ms))??;
        let started = self
            .start_listening()
            .and_then(|()| self.wait_until_attached(&id, deadline.min(Instant::now() + ATTACH_WAIT)))
            .and_then(|()| self.record_watch_created(&id, record));
        match started {
            Ok(committed) => {
                let row = self.store.run_query(|connection| watch_rows::load_watch(connection, &id))?;
                let gone = || Error::new(ErrorKind::NotFound, "the watch was ended before it started");
                Ok((row.ok_or_else(gone)?.watch, committed))
            }
            Err(error) => {
                self.write_watch_rows(|connection| watch_rows::delete_watch(connection, &id))?;
                // The oldest watch of this caller, which could be ended to make room.
                let oldest = self
                    .store
                    .run_query(|connection| watch_rows::watches_of_owner(connection, &owner))?
                    .into_iter()
                    .next();
                Err(match oldest {
                    Some(watch) if error.kind == ErrorKind::TooMany => error.with_detail("oldest", watch.id),
                    Some(_) | None => error,
                })
            }
        }
    }

    /// Waits until the recorder has attached the watch.
    fn wait_until_attached(&self, id: &str, deadline: Instant) -> Result<(), Error> {
        loop {
            let heard = *lock_ignoring_poison(&self.new_entries.0);
            match self.store.run_query(|connection| watch_rows::load_watch(connection, id))?.map(|row| row.stage) {
                Some(WatchStage::Attached) => return Ok(()),
                Some(WatchStage::LimitReached) => return Err(watch_limit_reached()),
                Some(WatchStage::Unsupported) => {
                    return Err(watching_unsupported(DiskErrorKind::Unsupported));
                }
                Some(WatchStage::Requested) => {}
                None => return Err(Error::new(ErrorKind::NotFound, "the watch was ended before it started")),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(
                    Error::new(ErrorKind::Busy, "the watch could not be started in time").with_next_step("call again")
                );
            }
            let same = |announced: &mut u64| *announced == heard;
            let announced = lock_ignoring_poison(&self.new_entries.0);
            drop(self.new_entries.1.wait_timeout_while(announced, left.min(ATTACH_POLL_PAUSE), same));
        }
    }

    fn record_watch_created(&self, id: &str, record: &CallRecord<'_>) -> Result<CommitReceipt, Error> {
        let mut draft = self.pending_entry(record, Vec::new(), EntryRelation::None, 0);
        let id = id.to_owned();
        let work: TransactionBody = Box::new(move |transaction, tip| {
            store::append_entry(transaction, tip, &mut draft)?;
            watch_rows::set_first_entry(transaction, &id, draft.entry.number)?;
            Ok(recorded_outcome(&draft, tip))
        });
        self.submit_watch_change(work)
    }

    fn end_watch(&self, id: &str, record: &CallRecord<'_>) -> Result<(Watch, CommitReceipt), Error> {
        let mut draft = self.pending_entry(record, Vec::new(), EntryRelation::None, 0);
        let (owner, watch_id) = (record.caller.principal.to_string(), id.to_owned());
        let found = Arc::new(Mutex::new(None));
        let result = Arc::clone(&found);
        let work: TransactionBody = Box::new(move |transaction, tip| {
            let row = watch_rows::load_watch(transaction, &watch_id)?.filter(|row| row.watch.owner == owner);
            let Some(row) = row else {
                return Ok(TransactionOutcome::Refused(
                    Error::new(ErrorKind::NotFound, "you have no watch with that id")
                        .with_next_step("call watched to list your watches"),
                ));
            };
            store::append_entry(transaction, tip, &mut draft)?;
            watch_rows::delete_watch(transaction, &watch_id)?;
            *lock_ignoring_poison(&result) = Some(row.watch);
            Ok(recorded_outcome(&draft, tip))
        });
        let committed = self.submit_watch_change(work)?;
        if let Some(running) = lock_ignoring_poison(&self.external_changes.thread).as_ref() {
            running.waker.wake();
        }
        let watch = lock_ignoring_poison(&found).take();
        watch.map(|watch| (watch, committed)).ok_or_else(watch_not_recorded)
    }

    fn submit_watch_change(&self, work: TransactionBody) -> Result<CommitReceipt, Error> {
        match self.group_commit.submit(&self.store, self.durability, SyncRequirement::Now, work)? {
            TransactionOutcome::Recorded(number, hash) => {
                self.announce_entry();
                Ok(CommitReceipt { entry: number, hash, trash_ids: Vec::new(), notices: Vec::new() })
            }
            TransactionOutcome::Refused(error) => Err(error),
            TransactionOutcome::Replayed(_) => Err(watch_not_recorded()),
        }
    }

    fn write_watch_rows<T>(
        &self,
        write: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.store.run_transaction(SyncRequirement::Later, self.durability, |transaction| {
            write(transaction).map_err(|error| errors::store_error(&error))
        })
    }
}

fn watch_not_recorded() -> Error {
    Error::new(ErrorKind::AuditUnavailable, "the watch was not recorded")
}

/// Error when the kernel's watch limit is reached.
fn watch_limit_reached() -> Error {
    Error::new(ErrorKind::TooMany, "the system limit on file watches is reached")
        .with_next_step("watch fewer directories or without recursive, or call unwatch on a watch you no longer need")
        .with_detail("watches_max", stead_disk::fs_events::watch_limit())
}

/// Error when the file system reports no changes.
fn watching_unsupported(kind: DiskErrorKind) -> Error {
    if matches!(kind, DiskErrorKind::NoSpace | DiskErrorKind::TooManyOpenFiles) {
        return watch_limit_reached();
    }
    Error::new(ErrorKind::SystemDenied, "this file system does not report changes made by other programs")
        .with_next_step("call changes for changes made through stead; call list or stat again to see the others")
}
