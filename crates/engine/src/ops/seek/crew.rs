//! Several threads that walk one tree. Owns the list of what is still to do, and how the threads end: when nothing is
//! left, at the limit of entries, or when one of them fails, which is also how cancellation and deadline arrive.
//!
//! Promises: open handles are bounded whatever the shape of the tree, a small tree costs no thread, and a thread that
//! dies takes nobody with it. The list is a stack, so it grows with the depth of a tree and not with its size.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

use path::RelPath;

use super::{
    Met, Unseen, Visit, is_taken,
    rules::{self, Rules},
};
use crate::{
    failure::{Failure, Kind},
    limits,
    plan::Top,
    view::View,
    workspace::{Branch, Listed},
};

/// Entries between two progress reports.
const PROGRESS_EVERY: u64 = 256;
/// Entries after which one thread no longer walks alone.
const ALONE_ENTRIES: u64 = 256;
/// Most threads of one walk.
const THREADS_MAX: usize = 8;
/// Entries of one directory that are visited in one go; the others can be taken by another thread.
const PORTION: usize = 128;
/// Directory handles that wait for their children to be visited; beyond it children are reached by their paths.
const HANDLES_MAX: usize = 128;

/// A walk in progress.
pub(super) struct Crew<'a, 'v> {
    view: &'a View<'v>,
    start: &'a RelPath,
    /// Bytes of a path up to what is below the start.
    base: usize,
    list: Mutex<List<'v>>,
    changed: Condvar,
    met: AtomicU64,
    handles: Arc<AtomicUsize>,
}

/// What is still to do.
#[derive(Default)]
struct List<'v> {
    jobs: Vec<Job<'v>>,
    busy: usize,
    ended: bool,
    failure: Option<Failure>,
}

/// One directory, or a portion of one.
struct Job<'v> {
    directory: RelPath,
    rules: Option<Arc<Rules>>,
    task: Task<'v>,
}

enum Task<'v> {
    /// List it, from the directory above if that is held.
    Enter(Option<Arc<Held<'v>>>),
    /// Visit these.
    Visit(Option<Arc<Held<'v>>>, Vec<Listed>),
}

/// A handle that is counted.
struct Held<'v> {
    branch: Box<dyn Branch<'v> + 'v>,
    count: Arc<AtomicUsize>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A job that somebody works on; it is done when this goes, however that happens.
struct Turn<'c, 'a, 'v>(&'c Crew<'a, 'v>);

impl Drop for Turn<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.list().busy -= 1;
        self.0.changed.notify_all();
    }
}

impl<'a, 'v> Crew<'a, 'v> {
    pub(super) fn new(view: &'a View<'v>, start: &'a RelPath) -> Self {
        let base = if start.is_root() { 0 } else { start.as_bytes().len() + 1 };
        let (list, changed) = (Mutex::default(), Condvar::new());
        Self { view, start, base, list, changed, met: AtomicU64::new(0), handles: Arc::default() }
    }

    /// Walks to the end. The thread that asked works too.
    pub(super) fn run<A: Send>(
        &self,
        rules: Option<Arc<Rules>>,
        make: &(dyn Fn() -> A + Sync),
        visit: &Visit<'_, A>,
    ) -> Result<(Vec<A>, Unseen), Failure> {
        self.add(self.enter(self.start.clone(), rules, None)?);
        let begin = || Hand { own: make(), unseen: Unseen::default(), visit };
        let (mut first, mut gathered, mut died) = (begin(), Vec::new(), false);
        thread::scope(|scope| {
            let (mut hands, mut told) = (Vec::new(), 0);
            self.work(&mut first, &mut |met| {
                if met >= ALONE_ENTRIES && hands.is_empty() {
                    let work = || {
                        let mut hand = begin();
                        self.work(&mut hand, &mut |_| {});
                        (hand.own, hand.unseen)
                    };
                    // Where no more threads can be had, fewer do.
                    let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
                    hands.extend((1..threads()).map_while(spawn));
                }
                if met >= told + PROGRESS_EVERY {
                    self.view.control.advance(met - told);
                    told = met;
                }
            });
            for hand in hands {
                match hand.join() {
                    Ok((own, unseen)) => {
                        gathered.push(own);
                        first.unseen.add(unseen);
                    }
                    Err(_) => died = true,
                }
            }
        });
        gathered.push(first.own);
        match self.list().failure.take() {
            Some(failure) => Err(failure),
            None if died => Err(Failure::new(Kind::Io, "a part of the walk broke off")),
            None => Ok((gathered, first.unseen)),
        }
    }

    /// Does jobs until there is nothing left to do.
    fn work<A>(&self, hand: &mut Hand<'_, A>, between: &mut dyn FnMut(u64)) {
        while let Some((Job { directory, rules, task }, _turn)) = self.next() {
            let more = match task {
                Task::Enter(above) => self.enter(directory, rules, above).or_else(|failure| {
                    // Gone since it was met: nothing that could have been seen.
                    hand.unseen.closed += u64::from(failure.kind != Kind::NotFound);
                    Ok(Vec::new())
                }),
                Task::Visit(within, listed) => {
                    self.visit(&directory, rules.as_ref(), within.as_ref(), &listed, hand)
                }
            };
            match more {
                Ok(more) => self.add(more),
                Err(failure) => self.end(Some(failure)),
            }
            between(self.met.load(Ordering::Relaxed));
        }
    }

    /// The next job, waiting for one while others still work.
    fn next(&self) -> Option<(Job<'v>, Turn<'_, 'a, 'v>)> {
        let mut list = self.list();
        loop {
            if list.ended {
                return None;
            }
            if let Some(job) = list.jobs.pop() {
                list.busy += 1;
                return Some((job, Turn(self)));
            }
            if list.busy == 0 {
                list.ended = true;
                self.changed.notify_all();
                return None;
            }
            list = self.changed.wait(list).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Puts jobs on the list, the last one to be done first.
    fn add(&self, more: Vec<Job<'v>>) {
        if more.is_empty() {
            return;
        }
        let mut list = self.list();
        if !list.ended {
            list.jobs.extend(more);
            self.changed.notify_all();
        }
    }

    /// Ends the walk for everybody.
    fn end(&self, failure: Option<Failure>) {
        let mut list = self.list();
        list.ended = true;
        list.jobs.clear();
        list.failure = list.failure.take().or(failure);
        self.changed.notify_all();
    }

    fn list(&self) -> MutexGuard<'_, List<'v>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a directory and shares out what is in it.
    fn enter(
        &self,
        directory: RelPath,
        rules: Option<Arc<Rules>>,
        above: Option<Arc<Held<'v>>>,
    ) -> Result<Vec<Job<'v>>, Failure> {
        let entered = match (above, directory.split()) {
            (Some(above), Some((_, name))) => Some(above.branch.enter(&name)?),
            (Some(_) | None, _) => self.view.workspace().branch(&directory)?,
        };
        let (held, mut listed) = match entered {
            Some((branch, listed)) => (Some(self.held(branch)), listed),
            None => (None, self.view.workspace().list(&directory)?),
        };
        self.view.keep_visible(&directory, &mut listed);
        let rules =
            rules.map(|rules| rules.within(&|path| rules::bytes(self.view, path), &directory, &listed));
        let job = |listed: &[Listed]| Job {
            directory: directory.clone(),
            rules: rules.clone(),
            task: Task::Visit(held.clone(), listed.to_vec()),
        };
        Ok(listed.rchunks(PORTION).map(job).collect())
    }

    /// A counted handle.
    fn held(&self, branch: Box<dyn Branch<'v> + 'v>) -> Arc<Held<'v>> {
        self.handles.fetch_add(1, Ordering::Relaxed);
        Arc::new(Held { branch, count: Arc::clone(&self.handles) })
    }

    /// Visits entries of one directory; what comes back are the directories among them that are to be entered.
    fn visit<A>(
        &self,
        directory: &RelPath,
        rules: Option<&Arc<Rules>>,
        within: Option<&Arc<Held<'v>>>,
        listed: &[Listed],
        hand: &mut Hand<'_, A>,
    ) -> Result<Vec<Job<'v>>, Failure> {
        let exclude = &self.view.terms.filter.exclude;
        let mut more = Vec::new();
        for Listed { name, top } in listed {
            self.view.control.check()?;
            // A name deeper than a path can say cannot be read either.
            let Ok(path) = directory.join(name) else { continue };
            if rules.is_some_and(|rules| !is_taken(rules, &path, name, *top)) {
                hand.unseen.ignored += 1;
                continue;
            }
            if self.met.fetch_add(1, Ordering::Relaxed) >= limits::TREE_ENTRIES_MAX {
                hand.unseen.cut = true;
                self.end(None);
                return Ok(Vec::new());
            }
            let branch = within.map(|held| &*held.branch);
            let met = Met { directory, path: &path, top: *top, name, base: self.base, within: branch };
            if !exclude.match_bytes(met.below()) {
                (hand.visit)(&mut hand.own, &met)?;
            }
            if *top == Top::Directory && !exclude.match_bytes_below(met.below()) {
                let few = self.handles.load(Ordering::Relaxed) <= HANDLES_MAX;
                let above = within.filter(|_| few).cloned();
                more.push(Job { directory: path, rules: rules.cloned(), task: Task::Enter(above) });
            }
        }
        more.reverse();
        Ok(more)
    }
}

/// One thread: what it gathers, and how.
struct Hand<'h, A> {
    own: A,
    unseen: Unseen,
    visit: &'h Visit<'h, A>,
}

/// How many threads a walk has: as many as the machine runs at once. Asked once, for the answer costs files.
fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    let most = || thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    *THREADS.get_or_init(most)
}
