//! A tree walk on several threads, with a bounded number of open directory handles. The walk ends when no job is left,
//! when the entry limit is reached, or when a thread fails. If a thread of the walk panics, the other threads continue.
//! The walk runs the last added job first, so that the job queue grows only with the depth of the tree.

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
    ignore::{self, IgnoreRules},
    is_included,
};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    plan::FileKind,
    tree::{DirectoryEntry, DirectoryReader},
};

const PROGRESS_EVERY: u64 = 256;
/// The number of entries that a walk visits on one thread before other threads start.
const SINGLE_THREAD_ENTRIES: u64 = 256;
const THREADS_MAX: usize = 8;
/// The maximum number of directory entries that one walk job visits.
const ENTRIES_PER_JOB: usize = 128;
/// The maximum number of open directory handles of a walk; further subdirectories are opened by path.
const HANDLES_MAX: usize = 128;

pub(super) struct ParallelWalk<'a, 'v> {
    context: &'a CallContext<'v>,
    start: &'a RelPath,
    prefix_bytes: usize,
    queue: Mutex<WalkQueue>,
    queue_changed: Condvar,
    entries_visited: AtomicU64,
    open_handles: Arc<AtomicUsize>,
}

#[derive(Default)]
struct WalkQueue {
    jobs: Vec<WalkJob>,
    busy_workers: usize,
    is_stopped: bool,
    error: Option<Error>,
}

struct WalkJob {
    directory: RelPath,
    rules: Option<Arc<IgnoreRules>>,
    task: WalkListOrVisitTask,
}

enum WalkListOrVisitTask {
    /// The job lists a directory, which is opened relative to its parent directory if the parent is open.
    ListDirectory(Option<Arc<HandleCountedDirectory>>),
    VisitEntries(Arc<HandleCountedDirectory>, Vec<DirectoryEntry>),
}

struct HandleCountedDirectory {
    reader: Box<dyn DirectoryReader>,
    count: Arc<AtomicUsize>,
}

impl Drop for HandleCountedDirectory {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A guard of a running walk job; dropping the guard marks the job as done.
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

    /// The calling thread is one of the worker threads of the walk.
    pub(super) fn run<A: Send>(
        &self,
        rules: Option<Arc<IgnoreRules>>,
        make: &(dyn Fn() -> A + Sync),
        visit: &WalkVisitFn<'_, A>,
    ) -> Result<(Vec<A>, WalkOmissions), Error> {
        self.add_jobs(self.list_directory(self.start.clone(), rules, None)?);
        let new_worker = || WalkWorker { results: make(), omissions: WalkOmissions::default(), visit };
        let (mut first, mut results, mut panicked) = (new_worker(), Vec::new(), false);
        thread::scope(|scope| {
            let (mut workers, mut reported) = (Vec::new(), 0);
            self.run_worker(&mut first, &mut |visited| {
                if visited >= SINGLE_THREAD_ENTRIES && workers.is_empty() {
                    let work = || {
                        let mut worker = new_worker();
                        self.run_worker(&mut worker, &mut |_| {});
                        (worker.results, worker.omissions)
                    };
                    // If the system cannot start more threads, the walk continues with fewer.
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
                    Ok((result, omissions)) => {
                        results.push(result);
                        first.omissions.add(omissions);
                    }
                    Err(_) => panicked = true,
                }
            }
        });
        results.push(first.results);
        match self.lock_queue().error.take() {
            Some(error) => Err(error),
            None if panicked => {
                Err(Error::new(ErrorKind::Io, "internal error while listing directories; nothing was changed")
                    .with_next_step("choose a smaller directory"))
            }
            None => Ok((results, first.omissions)),
        }
    }

    /// Runs walk jobs until the walk ends; `after_job` receives the number of visited entries after each job.
    fn run_worker<A>(&self, worker: &mut WalkWorker<'_, A>, after_job: &mut dyn FnMut(u64)) {
        while let Some((WalkJob { directory, rules, task }, _guard)) = self.next_job() {
            let more = match task {
                WalkListOrVisitTask::ListDirectory(above) => {
                    self.list_directory(directory, rules, above).or_else(|error| {
                        // A directory that was removed during the walk does not count as unlistable.
                        worker.omissions.unlistable_directories += u64::from(error.kind != ErrorKind::NotFound);
                        Ok(Vec::new())
                    })
                }
                WalkListOrVisitTask::VisitEntries(within, listed) => {
                    self.visit_entries(&directory, rules.as_ref(), &within, &listed, worker)
                }
            };
            match more {
                Ok(more) => self.add_jobs(more),
                Err(error) => self.stop(Some(error)),
            }
            after_job(self.entries_visited.load(Ordering::Relaxed));
        }
    }

    /// Returns the next walk job; waits while the queue is empty and other threads may still add jobs.
    fn next_job(&self) -> Option<(WalkJob, WalkJobGuard<'_, 'a, 'v>)> {
        let mut queue = self.lock_queue();
        loop {
            if queue.is_stopped {
                return None;
            }
            if let Some(job) = queue.jobs.pop() {
                queue.busy_workers += 1;
                return Some((job, WalkJobGuard(self)));
            }
            if queue.busy_workers == 0 {
                queue.is_stopped = true;
                self.queue_changed.notify_all();
                return None;
            }
            queue = self.queue_changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add_jobs(&self, jobs: Vec<WalkJob>) {
        if jobs.is_empty() {
            return;
        }
        let mut queue = self.lock_queue();
        if !queue.is_stopped {
            queue.jobs.extend(jobs);
            self.queue_changed.notify_all();
        }
    }

    fn stop(&self, error: Option<Error>) {
        let mut queue = self.lock_queue();
        queue.is_stopped = true;
        queue.jobs.clear();
        queue.error = queue.error.take().or(error);
        self.queue_changed.notify_all();
    }

    fn lock_queue(&self) -> MutexGuard<'_, WalkQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list_directory(
        &self,
        directory: RelPath,
        rules: Option<Arc<IgnoreRules>>,
        above: Option<Arc<HandleCountedDirectory>>,
    ) -> Result<Vec<WalkJob>, Error> {
        let (reader, mut listed) = match (above, directory.split()) {
            (Some(above), Some((_, name))) => above.reader.open_subdirectory(&name)?,
            (Some(_) | None, _) => self.context.workspace().open_and_list(&directory)?,
        };
        let handle = self.count_handle(reader);
        self.context.retain_visible(&directory, &mut listed);
        let rules = rules.map(|rules| {
            rules.enter_directory(&|path| ignore::read_ignore_file(self.context, path), &directory, &listed)
        });
        let job = |listed: &[DirectoryEntry]| WalkJob {
            directory: directory.clone(),
            rules: rules.clone(),
            task: WalkListOrVisitTask::VisitEntries(Arc::clone(&handle), listed.to_vec()),
        };
        Ok(listed.rchunks(ENTRIES_PER_JOB).map(job).collect())
    }

    fn count_handle(&self, branch: Box<dyn DirectoryReader>) -> Arc<HandleCountedDirectory> {
        self.open_handles.fetch_add(1, Ordering::Relaxed);
        Arc::new(HandleCountedDirectory { reader: branch, count: Arc::clone(&self.open_handles) })
    }

    fn visit_entries<A>(
        &self,
        directory: &RelPath,
        rules: Option<&Arc<IgnoreRules>>,
        within: &Arc<HandleCountedDirectory>,
        listed: &[DirectoryEntry],
        worker: &mut WalkWorker<'_, A>,
    ) -> Result<Vec<WalkJob>, Error> {
        let exclude = &self.context.options.walk_filter.exclude;
        let mut jobs = Vec::new();
        for DirectoryEntry { name, kind } in listed {
            self.context.control.check()?;
            // An entry that is too deep for a valid path cannot be read, so the walk skips it.
            let Ok(path) = directory.join(name) else { continue };
            if rules.is_some_and(|rules| !is_included(rules, &path, name, *kind)) {
                worker.omissions.ignored += 1;
                continue;
            }
            if self.entries_visited.fetch_add(1, Ordering::Relaxed) >= limits::TREE_ENTRIES_MAX {
                worker.omissions.limit_reached = true;
                self.stop(None);
                return Ok(Vec::new());
            }
            let (prefix_bytes, directory_reader) = (self.prefix_bytes, &*within.reader);
            let entry = ParallelWalkEntry { directory, path: &path, kind: *kind, name, prefix_bytes, directory_reader };
            if !exclude.matches_bytes(entry.path_below_start()) {
                (worker.visit)(&mut worker.results, &entry)?;
            }
            if *kind == FileKind::Directory && !exclude.matches_all_below_bytes(entry.path_below_start()) {
                let few = self.open_handles.load(Ordering::Relaxed) <= HANDLES_MAX;
                let above = few.then(|| Arc::clone(within));
                jobs.push(WalkJob {
                    directory: path,
                    rules: rules.cloned(),
                    task: WalkListOrVisitTask::ListDirectory(above),
                });
            }
        }
        jobs.reverse();
        Ok(jobs)
    }
}

struct WalkWorker<'h, A> {
    results: A,
    omissions: WalkOmissions,
    visit: &'h WalkVisitFn<'h, A>,
}

/// The number of walk threads is cached, because the lookup of the available parallelism reads files.
fn thread_count() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    let count = || thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    *THREADS.get_or_init(count)
}
