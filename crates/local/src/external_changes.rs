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
mod watch_scopes;
mod watched_tree;

use std::{
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use stead_disk::{DiskErrorKind, fs_events::FsEventQueueWaker};
use stead_engine::{Error, ErrorKind, NextStep, Workspace, watch_limit_error, watching_unsupported_error};

use crate::{open::LocalWorkspace, options::ExternalChangeRecordingStartPolicy, store::lock_ignoring_poison};

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
        if self.watch_start == ExternalChangeRecordingStartPolicy::AtOpen && self.has_watches()? {
            self.start_listening()?;
        }
        Ok(())
    }

    pub(crate) fn start_listening(&self) -> Result<(), Error> {
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

    pub(crate) fn has_watches(&self) -> Result<bool, Error> {
        Ok(!(self as &dyn Workspace).all_watches()?.watches.is_empty())
    }

    pub(crate) fn wake_recorder(&self) {
        if let Some(running) = lock_ignoring_poison(&self.external_changes.thread).as_ref() {
            running.waker.wake();
        }
    }
}

fn watching_unsupported(kind: DiskErrorKind) -> Error {
    if matches!(kind, DiskErrorKind::NoSpace | DiskErrorKind::TooManyOpenFiles) {
        return watch_limit_error(stead_disk::fs_events::watch_limit());
    }
    watching_unsupported_error()
}
