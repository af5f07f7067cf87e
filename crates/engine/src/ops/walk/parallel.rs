//! A tree walk on several threads. Owns the job queue and termination: when no job is left, at the entry limit, or
//! when a thread fails, which includes cancellation and the deadline.
//!
//! The number of open handles is bounded for any tree, a small tree starts no thread, and a panicking thread stops no
//! other. The queue is a stack, so it grows with the depth of the tree, not with its size.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

use stead_path::RelPath;

use super::{
    ParallelWalkEntry, WalkOmissions, WalkVisitFn,
    ignore_rules::{self, IgnoreRules},
    is_included,
};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    plan::FileKind,
    workspace::{DirectoryEntry, DirectoryReader},
};

const PROGRESS_EVERY: u64 = 256;
/// Entries that one thread visits before others start.
const SINGLE_THREAD_ENTRIES: u64 = 256;
const THREADS_MAX: usize = 8;
/// Entries of one directory in one job; other threads can take the rest.
const ENTRIES_PER_JOB: usize = 128;
/// Maximum number of open directory handles; beyond it, children are opened by path.
const HANDLES_MAX: usize = 128;

pub(super) struct ParallelWalk<'a, 'v> {
    context: &'a CallContext<'v>,
    start: &'a RelPath,
    /// Length of the path prefix up to the start directory.
    prefix_bytes: usize,
    queue: Mutex<WalkQueue<'v>>,
    queue_changed: Condvar,
    entries_visited: AtomicU64,
    open_handles: Arc<AtomicUsize>,
}

#[derive(Default)]
struct WalkQueue<'v> {
    jobs: Vec<WalkJob<'v>>,
    busy_workers: usize,
    is_stopped: bool,
    error: Option<Error>,
}

/// One directory, or a part of one.
struct WalkJob<'v> {
    directory: RelPath,
    rules: Option<Arc<IgnoreRules>>,
    task: WalkTask<'v>,
}

enum WalkTask<'v> {
    /// List it, from its parent handle if that is open.
    ListDirectory(Option<Arc<CountedDirectoryReader<'v>>>),
    VisitEntries(Option<Arc<CountedDirectoryReader<'v>>>, Vec<DirectoryEntry>),
}

/// Counts towards `HANDLES_MAX`.
struct CountedDirectoryReader<'v> {
    reader: Box<dyn DirectoryReader<'v> + 'v>,
    count: Arc<AtomicUsize>,
}

impl Drop for CountedDirectoryReader<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A job in progress; dropping the guard marks it as done.
struct WalkJobGuard<'c, 'a, 'v>(&'c ParallelWalk<'a, 'v>);

impl Drop for WalkJobGuard<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.lock_queue().busy_workers -= 1;
        self.0.queue_changed.notify_all();
    }
}

impl<'a, 'v> ParallelWalk<'a, 'v> {
    pub(super) fn new(context: &'a CallContext<'v>, start: &'a RelPath) -> Self {
        let prefix_bytes = if start.is_root() { 0 } else { start.as_bytes().len() + 1 };
        let (queue, queue_changed) = (Mutex::default(), Condvar::new());
        Self {
            context,
            start,
            prefix_bytes,
            queue,
            queue_changed,
            entries_visited: AtomicU64::new(0),
            open_handles: Arc::default(),
        }
    }

    /// Runs the walk to its end. The calling thread works too.
    pub(super) fn run<A: Send>(
        &self,
        rules: Option<Arc<IgnoreRules>>,
        make: &(dyn Fn() -> A + Sync),
        visit: &WalkVisitFn<'_, A>,
    ) -> Result<(Vec<A>, WalkOmissions), Error> {
        self.add_jobs(self.list_directory(self.start.clone(), rules, None)?);
        let begin = || WalkWorker { results: make(), omissions: WalkOmissions::default(), visit };
        let (mut first, mut results, mut died) = (begin(), Vec::new(), false);
        thread::scope(|scope| {
            let (mut workers, mut reported) = (Vec::new(), 0);
            self.run_worker(&mut first, &mut |visited| {
                if visited >= SINGLE_THREAD_ENTRIES && workers.is_empty() {
                    let work = || {
                        let mut worker = begin();
                        self.run_worker(&mut worker, &mut |_| {});
                        (worker.results, worker.omissions)
                    };
                    // If no more threads can be started, fewer run.
                    let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
                    workers.extend((1..thread_count()).map_while(spawn));
                }
                if visited >= reported + PROGRESS_EVERY {
                    self.context.control.report_entries(visited - reported);
                    reported = visited;
                }
            });
            for worker in workers {
                match worker.join() {
                    Ok((own, omissions)) => {
                        results.push(own);
                        first.omissions.add(omissions);
                    }
                    Err(_) => died = true,
                }
            }
        });
        results.push(first.results);
        match self.lock_queue().error.take() {
            Some(error) => Err(error),
            None if died => Err(Error::new(ErrorKind::Io, "a thread of the walk failed")),
            None => Ok((results, first.omissions)),
        }
    }

    /// Runs jobs until none is left.
    fn run_worker<A>(&self, worker: &mut WalkWorker<'_, A>, between: &mut dyn FnMut(u64)) {
        while let Some((WalkJob { directory, rules, task }, _turn)) = self.next_job() {
            let more = match task {
                WalkTask::ListDirectory(above) => {
                    self.list_directory(directory, rules, above).or_else(|error| {
                        // A directory that is gone had nothing to list.
                        worker.omissions.unlistable_directories += u64::from(error.kind != ErrorKind::NotFound);
                        Ok(Vec::new())
                    })
                }
                WalkTask::VisitEntries(within, listed) => {
                    self.visit_entries(&directory, rules.as_ref(), within.as_ref(), &listed, worker)
                }
            };
            match more {
                Ok(more) => self.add_jobs(more),
                Err(error) => self.stop(Some(error)),
            }
            between(self.entries_visited.load(Ordering::Relaxed));
        }
    }

    /// The next job; waits while other threads still work.
    fn next_job(&self) -> Option<(WalkJob<'v>, WalkJobGuard<'_, 'a, 'v>)> {
        let mut list = self.lock_queue();
        loop {
            if list.is_stopped {
                return None;
            }
            if let Some(job) = list.jobs.pop() {
                list.busy_workers += 1;
                return Some((job, WalkJobGuard(self)));
            }
            if list.busy_workers == 0 {
                list.is_stopped = true;
                self.queue_changed.notify_all();
                return None;
            }
            list = self.queue_changed.wait(list).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds jobs; the last one runs first.
    fn add_jobs(&self, more: Vec<WalkJob<'v>>) {
        if more.is_empty() {
            return;
        }
        let mut list = self.lock_queue();
        if !list.is_stopped {
            list.jobs.extend(more);
            self.queue_changed.notify_all();
        }
    }

    /// Stops all threads.
    fn stop(&self, error: Option<Error>) {
        let mut list = self.lock_queue();
        list.is_stopped = true;
        list.jobs.clear();
        list.error = list.error.take().or(error);
        self.queue_changed.notify_all();
    }

    fn lock_queue(&self) -> MutexGuard<'_, WalkQueue<'v>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a directory and splits its entries into jobs.
    fn list_directory(
        &self,
        directory: RelPath,
        rules: Option<Arc<IgnoreRules>>,
        above: Option<Arc<CountedDirectoryReader<'v>>>,
    ) -> Result<Vec<WalkJob<'v>>, Error> {
        let entered = match (above, directory.split()) {
            (Some(above), Some((_, name))) => Some(above.reader.open_subdirectory(&name)?),
            (Some(_) | None, _) => self.context.workspace().open_directory(&directory)?,
        };
        let (handle, mut listed) = match entered {
            Some((branch, listed)) => (Some(self.count_handle(branch)), listed),
            None => (None, self.context.workspace().list(&directory)?),
        };
        self.context.retain_visible(&directory, &mut listed);
        let rules = rules.map(|rules| {
            rules.enter_directory(&|path| ignore_rules::read_ignore_file(self.context, path), &directory, &listed)
        });
        let job = |listed: &[DirectoryEntry]| WalkJob {
            directory: directory.clone(),
            rules: rules.clone(),
            task: WalkTask::VisitEntries(handle.clone(), listed.to_vec()),
        };
        Ok(listed.rchunks(ENTRIES_PER_JOB).map(job).collect())
    }

    fn count_handle(&self, branch: Box<dyn DirectoryReader<'v> + 'v>) -> Arc<CountedDirectoryReader<'v>> {
        self.open_handles.fetch_add(1, Ordering::Relaxed);
        Arc::new(CountedDirectoryReader { reader: branch, count: Arc::clone(&self.open_handles) })
    }

    /// Visits entries of one directory; returns the directories to enter.
    fn visit_entries<A>(
        &self,
        directory: &RelPath,
        rules: Option<&Arc<IgnoreRules>>,
        within: Option<&Arc<CountedDirectoryReader<'v>>>,
        listed: &[DirectoryEntry],
        worker: &mut WalkWorker<'_, A>,
    ) -> Result<Vec<WalkJob<'v>>, Error> {
        let exclude = &self.context.options.walk_filter.exclude;
        let mut more = Vec::new();
        for DirectoryEntry { name, kind: top } in listed {
            self.context.control.check()?;
            // A name too deep for a path cannot be read either.
            let Ok(path) = directory.join(name) else { continue };
            if rules.is_some_and(|rules| !is_included(rules, &path, name, *top)) {
                worker.omissions.ignored += 1;
                continue;
            }
            if self.entries_visited.fetch_add(1, Ordering::Relaxed) >= limits::TREE_ENTRIES_MAX {
                worker.omissions.limit_reached = true;
                self.stop(None);
                return Ok(Vec::new());
            }
            let branch = within.map(|handle| &*handle.reader);
            let entry = ParallelWalkEntry {
                directory,
                path: &path,
                kind: *top,
                name,
                prefix_bytes: self.prefix_bytes,
                directory_reader: branch,
            };
            if !exclude.matches_bytes(entry.path_below_start()) {
                (worker.visit)(&mut worker.results, &entry)?;
            }
            if *top == FileKind::Directory && !exclude.matches_all_below_bytes(entry.path_below_start()) {
                let few = self.open_handles.load(Ordering::Relaxed) <= HANDLES_MAX;
                let above = within.filter(|_| few).cloned();
                more.push(WalkJob { directory: path, rules: rules.cloned(), task: WalkTask::ListDirectory(above) });
            }
        }
        more.reverse();
        Ok(more)
    }
}

/// The state of one thread.
struct WalkWorker<'h, A> {
    results: A,
    omissions: WalkOmissions,
    visit: &'h WalkVisitFn<'h, A>,
}

/// As many threads as the machine runs in parallel. Cached, because the lookup reads files.
fn thread_count() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    let most = || thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    *THREADS.get_or_init(most)
}
