//! Records changes by other programs as journal entries. While a client watches a path, a thread watches the directory
//! tree. Only the process that holds the recorder lock records changes; when that process dies, the kernel frees the
//! lock. Every change at a watched path is recorded, or a rescan entry reports that changes may have been missed. A
//! change that a call made is not recorded again as a change by another program.

mod attach;
mod classify;
mod event_batch;
mod observed_state;
mod record;
mod recorded_state;
mod recorder;
mod watch_rows;
mod watch_scopes;
mod watched_tree;

use std::{
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use stead_disk::{DiskErrorKind, fs_events::FsEventQueueWaker};
use stead_engine::{
    CallerResourceLifetime, CommitReceipt, Error, ErrorKind, JournalCallRecord, NextStep, Principal, Watch,
    WatchBeginOrEndRequest, WatchLifetimeKind,
    ops::{ListArgs, PollWatchEventsArgs, UnwatchArgs, WatchArgs},
};
use watch_rows::{ClientWatchRequestStatus, WatchRequester};

use crate::{
    open::LocalWorkspace,
    options::ExternalChangeRecordingStartPolicy,
    store::{TransactionSyncPolicy, lock_ignoring_poison},
    token::random_name,
};

const ATTACH_WAIT: Duration = Duration::from_secs(10);
const ATTACH_POLL_PAUSE: Duration = Duration::from_millis(20);
/// The least time between two updates of the stored time at which a principal last polled.
const POLL_RECORD_INTERVAL_MS: i64 = 60 * 60 * 1000;

#[derive(Default)]
pub(crate) struct ExternalChangeRecorderHandle {
    /// The reference to the workspace is weak, so that the recorder thread does not keep the workspace open.
    workspace: OnceLock<Weak<LocalWorkspace>>,
    thread: Mutex<Option<ExternalChangeListenerThread>>,
    /// Callers poll less often while the recorder thread listens for writes by other processes.
    is_listening: AtomicBool,
    rounds: AtomicU64,
}

struct ExternalChangeListenerThread {
    waker: FsEventQueueWaker,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl ExternalChangeRecorderHandle {
    pub(crate) fn set_workspace(&self, workspace: &Arc<LocalWorkspace>) {
        self.workspace.get_or_init(|| Arc::downgrade(workspace));
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }

    /// The recorder thread can stop the recorder without waiting for its own end.
    pub(crate) fn stop(&self) {
        let Some(running) = lock_ignoring_poison(&self.thread).take() else { return };
        running.stop.store(true, Ordering::Release);
        running.waker.wake();
        if running.thread.thread().id() != std::thread::current().id() {
            // A panic of the thread is ignored: the next recorder reports that changes may have been missed.
            running.thread.join().unwrap_or_default();
        }
    }
}

impl LocalWorkspace {
    /// The number of times that the recorder thread has woken up.
    pub fn listening_rounds(&self) -> u64 {
        self.external_changes.rounds.load(Ordering::Relaxed)
    }

    pub(crate) fn listen_if_watched(&self) -> Result<(), Error> {
        if self.watch_start == ExternalChangeRecordingStartPolicy::AtOpen
            && self.store.run_query(watch_rows::has_watches)?
        {
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
        let waker = FsEventQueueWaker::new().map_err(|error| watching_unsupported(error.kind))?;
        let recorder = recorder::ExternalChangeRecorder::new(self, waker.clone())
            .map_err(|error| watching_unsupported(error.kind))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (weak, stopped) = (Weak::clone(workspace), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("outside".to_owned())
            .spawn(move || recorder.run(&weak, &stopped))
            .map_err(|error| {
                let message = format!("cannot start the thread that watches the workspace: {error}");
                Error::new(ErrorKind::Busy, message).with_next_step(NextStep::repeat())
            })?;
        *running = Some(ExternalChangeListenerThread { waker, stop, thread });
        Ok(())
    }

    pub(crate) fn notify_waiters(&self) {
        *lock_ignoring_poison(&self.new_entries.0) += 1;
        self.new_entries.1.notify_all();
    }

    pub(crate) fn change_watch(
        &self,
        request: &WatchBeginOrEndRequest,
        record: &JournalCallRecord<'_>,
        deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error> {
        match request {
            WatchBeginOrEndRequest::Begin { .. } => self.create_watch(request, record, deadline),
            WatchBeginOrEndRequest::End { id } => self.end_watch(id, record),
        }
    }

    pub(crate) fn watches_of(&self, owner: &Principal) -> Result<Vec<Watch>, Error> {
        let (owner, now_ms) = (owner.to_string(), self.clock.now().wall_ms);
        let (watches, must_record) = self.store.run_query(|connection| {
            let must_record = watch_rows::not_polled_since(connection, &owner, now_ms - POLL_RECORD_INTERVAL_MS)?;
            Ok((watch_rows::watches_of_owner(connection, &owner)?, must_record))
        })?;
        if must_record {
            self.write_rows(|connection| watch_rows::record_last_poll(connection, &owner, now_ms))?;
        }
        if !watches.is_empty() {
            self.listen_if_watched()?;
        }
        Ok(watches)
    }

    fn create_watch(
        &self,
        request: &WatchBeginOrEndRequest,
        record: &JournalCallRecord<'_>,
        deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error> {
        let id = random_name("w-")?;
        let caller = record.caller;
        if let WatchBeginOrEndRequest::Begin { lifetime: WatchLifetimeKind::Process, .. } = request {
            self.liveness.register(&CallerResourceLifetime::Process)?;
        }
        let (owner, now_ms) = (caller.principal.to_string(), self.clock.now().wall_ms);
        let by = WatchRequester { owner: &owner, session: &caller.session, process: &self.process_id };
        self.write_rows(|connection| watch_rows::insert_watch(connection, &id, &by, request, now_ms))??;
        let started = self
            .start_listening()
            .and_then(|()| self.wait_until_attached(&id, deadline.min(Instant::now() + ATTACH_WAIT)))
            .and_then(|()| self.record_watch_created(&id, record));
        match started {
            Ok(committed) => {
                let row = self.store.run_query(|connection| watch_rows::load_watch(connection, &id))?;
                Ok((row.ok_or_else(watch_ended_error)?.watch, committed))
            }
            Err(error) => {
                self.write_rows(|connection| watch_rows::delete_watch(connection, &id))?;
                // The error names the oldest watch of the caller, because the caller can end that watch and try again.
                let watches = self.store.run_query(|connection| watch_rows::watches_of_owner(connection, &owner))?;
                Err(match watches.into_iter().next() {
                    Some(watch) if error.kind == ErrorKind::TooMany => error.with_oldest(watch.id),
                    Some(_) | None => error,
                })
            }
        }
    }

    fn wait_until_attached(&self, id: &str, deadline: Instant) -> Result<(), Error> {
        loop {
            let announced = *lock_ignoring_poison(&self.new_entries.0);
            match self.store.run_query(|connection| watch_rows::load_watch(connection, id))?.map(|row| row.stage) {
                Some(ClientWatchRequestStatus::Attached) => return Ok(()),
                Some(ClientWatchRequestStatus::LimitReached) => return Err(watch_limit_reached()),
                Some(ClientWatchRequestStatus::Unsupported) => {
                    return Err(watching_unsupported(DiskErrorKind::Unsupported));
                }
                Some(ClientWatchRequestStatus::Requested) => {}
                None => return Err(watch_ended_error()),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::new(ErrorKind::Busy, "the watch did not start in time, so there is no watch")
                    .with_next_step(NextStep::repeat()));
            }
            let is_same = |count: &mut u64| *count == announced;
            let count = lock_ignoring_poison(&self.new_entries.0);
            drop(self.new_entries.1.wait_timeout_while(count, left.min(ATTACH_POLL_PAUSE), is_same));
        }
    }

    fn record_watch_created(&self, id: &str, record: &JournalCallRecord<'_>) -> Result<CommitReceipt, Error> {
        let (draft, id) = (self.pending_entry_without_changes(record), id.to_owned());
        let recorded = self.append_with_result(draft, TransactionSyncPolicy::Now, move |transaction, append| {
            let number = append()?;
            Ok(Some(watch_rows::set_first_entry(transaction, &id, number)?))
        });
        recorded.map(|((), receipt)| receipt)
    }

    fn end_watch(&self, id: &str, record: &JournalCallRecord<'_>) -> Result<(Watch, CommitReceipt), Error> {
        let draft = self.pending_entry_without_changes(record);
        let (owner, id) = (record.caller.principal.to_string(), id.to_owned());
        let ended = self.append_with_result(draft, TransactionSyncPolicy::Now, move |transaction, append| {
            let row = watch_rows::load_watch(transaction, &id)?.filter(|row| row.watch.owner == owner);
            let Some(row) = row else {
                let unknown = Error::new(ErrorKind::NotFound, format!("you have no watch '{id}'"));
                let hint = NextStep::call(
                    PollWatchEventsArgs::default(),
                    "see your watches: each event has the id of its watch",
                )
                .or("continue if the watch has already ended");
                return Err(unknown.with_next_step(hint).into());
            };
            append()?;
            watch_rows::delete_watch(transaction, &id)?;
            Ok(Some(row.watch))
        })?;
        if let Some(running) = lock_ignoring_poison(&self.external_changes.thread).as_ref() {
            running.waker.wake();
        }
        Ok(ended)
    }
}

fn watch_ended_error() -> Error {
    Error::new(ErrorKind::NotFound, "the watch was ended by another call before it started")
        .with_next_step(NextStep::call(WatchArgs::default(), "start another one"))
}

fn watch_limit_reached() -> Error {
    Error::new(ErrorKind::TooMany, "the system limit on file watches is reached")
        .with_next_step(
            NextStep::repeat_without("recursive")
                .or(NextStep::call(UnwatchArgs { watch: "ID".to_owned() }, "end a watch that you no longer need")),
        )
        .with_watches_max(stead_disk::fs_events::watch_limit())
}

fn watching_unsupported(kind: DiskErrorKind) -> Error {
    if matches!(kind, DiskErrorKind::NoSpace | DiskErrorKind::TooManyOpenFiles) {
        return watch_limit_reached();
    }
    Error::new(ErrorKind::SystemDenied, "this file system does not report changes made by other programs")
        .with_next_step(NextStep::call(ListArgs::default(), "see changes that were not made through stead"))
}
